//! The end of an opening: what was accepted is made durable, our row says that we closed, and the
//! locks go last.

use std::sync::Arc;

use super::journals::{is_needed, unlink_journals};
use super::left::{add, is_spent, trim};
use super::store::{Inner, Store, Writer};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::Finished;
use crate::manifest::{
    ClaimRow, JournalRow, JournalState, OwnerEnd, OwnerRow, Reading, SnapshotRow,
};
use crate::vfs::Step;

impl Store {
    /// Makes everything accepted durable and ends this opening for all of its handles.
    ///
    /// # Errors
    /// What prevented it; the store recovers at the next opening.
    ///
    /// # Durability
    /// *Durable* for everything accepted, when it returns without an error.
    pub fn close(self) -> Result<()> {
        self.end()
    }

    fn end(&self) -> Result<()> {
        let Some(writer) = &self.inner.writer else {
            self.core().condition.end();
            return self.core().manifest.close();
        };
        *writer.linger.lock() = None;
        self.stop_reclaiming();
        let finished =
            self.core().check_write("close").map(|_| ()).and_then(|()| self.finish(writer));
        let is_first = self.core().condition.end();
        // No thread of ours may touch a journal once the locks are gone.
        let ended = Error::new(ErrorKind::Closed, "append", "store", "it was closed");
        if self.core().disk.pid() == self.core().pid {
            writer.journal.stop(ended);
        }
        if let Some(cause) = self.core().condition.halt_cause() {
            // P8: after a failed sync not even the manifest's own closing writes anything.
            self.core().manifest.stop(&cause);
        }
        let closed = if is_first { self.core().manifest.close() } else { Ok(()) };
        if let Some((own, store)) = writer.locks.lock().take() {
            // G18: a forked child lets go of nothing; P8: a halted store changes nothing more.
            if self.core().disk.pid() != self.core().pid {
                drop(own);
            } else if self.core().condition.halt_cause().is_some() {
                own.let_go();
            } else {
                own.release();
            }
            drop(store);
        }
        if self.core().disk.pid() == self.core().pid {
            // The thread that wakes is gone, and no lock is held any more.
            writer.journal.wake();
        }
        finished.and(closed)
    }

    fn finish(&self, writer: &Writer) -> Result<()> {
        self.core().disk.mark(Step::CloseSync);
        let finished = writer.journal.finish().inspect_err(|e| self.note_journal_failure(e))?;
        self.forget_journals()?;
        // While a copy is being made, journals stay for the next opening.
        let right = super::retain::may_remove(self.core())?;
        let spent = if right.is_some() { self.spent(&finished)? } else { Vec::new() };
        let needed = self.needed_of_ours(&writer.streams.lock(), None)?;
        self.keep_snapshot();
        let me = self.core().check_write("close")?;
        let committed = self.transact(Step::CloseCommit, |w| {
            for (resource, row) in w.list::<ClaimRow>(.., usize::MAX)? {
                if row.owner == me.owner {
                    w.remove::<ClaimRow>(&resource)?;
                }
            }
            let mut gone = Vec::new();
            for (file, lasts) in &needed {
                let key = (me.owner, file.n);
                let Some(mut row) = w.get::<JournalRow>(&key)? else { continue };
                // Whoever claims one of these streams finds its tail here.
                add(&mut row.needed, lasts);
                trim(w, &mut row.needed)?;
                if spent.contains(&file.n) && is_spent(&row) {
                    w.remove::<JournalRow>(&key)?;
                    gone.push(key);
                    continue;
                }
                if let Some(file) = finished.iter().find(|one| one.n == file.n) {
                    row.state = JournalState::Finished { end: file.end };
                    row.first = file.first.clone();
                }
                w.put(&key, &row)?;
            }
            if let Some(mut row) = w.get::<OwnerRow>(&me.owner)? {
                row.ended = Some(OwnerEnd::Closed);
                w.put(&me.owner, &row)?;
            }
            let quiet = self.quiet_since(w)?;
            if let Some(covers) = quiet
                && let Some(mut row) = w.get::<SnapshotRow>(&covers.0)?
            {
                row.quiet_upto = w.commit_seq();
                w.put(&covers.0, &row)?;
            }
            w.keep_quiet();
            Ok((gone, quiet))
        })?;
        let (gone, quiet) = committed.value;
        self.core().write_quiet_head(committed.commit, quiet.unwrap_or(committed.commit));
        self.core().note_untidy(unlink_journals(self.core(), &gone));
        Ok(())
    }

    /// Which of the journals that closing finished hold nothing unsealed.
    fn spent(&self, finished: &[Finished]) -> Result<Vec<u64>> {
        let writer = self.writer("close")?;
        let streams = writer.streams.lock();
        let files = writer.journal.files();
        let is_spent = |n: u64| files.iter().any(|f| f.n == n && !is_needed(f, &streams));
        Ok(finished.iter().map(|file| file.n).filter(|n| is_spent(*n)).collect())
    }
}

/// Shared by the handles that callers hold: when the last of them goes without a close, the opening
/// ends all the same, as far as that goes.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) inner: Arc<Inner>,
}

impl Drop for Last {
    fn drop(&mut self) {
        // Nobody is left to tell; the next opening recovers what was not finished. A halted store
        // ends too: its locks must not wait for a thread that may still hold it.
        let _ = Store::within(&self.inner).end();
    }
}
