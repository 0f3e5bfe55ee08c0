//! The rows of journals, and when a journal file may go.
//!
//! ```text
//!   open --- rolled over, closed [finished] ---> finished --- every record sealed [forget] --> gone
//!   open --- its owner died, [take_over] ------> adopted ---- every record sealed [forget] --> gone
//! ```
//! A row stands before the first acknowledgement, and goes durably before its file is unlinked.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::core::Core;
use super::store::Store;
use super::streams::{Source, Streams};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::format::record::RECORD_HEADER_BYTES;
use crate::ids::{Generation, OwnerId, Sequence, StreamId};
use crate::journal::{OpenJournal, Record, Registrar};
use crate::manifest::{JournalRow, JournalState, Reading};
use crate::vfs::Step;

/// A journal that a dead owner left and that still holds unsealed records.
#[derive(Debug, Clone)]
pub(crate) struct Adopted {
    pub(crate) owner: OwnerId,
    pub(crate) n: u64,
    pub(crate) end: u64,
    /// Part of it does not read: it is never removed.
    pub(crate) is_set_aside: bool,
}

/// Commits the rows of our own journal files.
#[derive(Debug)]
pub(crate) struct Rowkeeper {
    pub(crate) core: Arc<Core>,
}

impl Registrar for Rowkeeper {
    fn born(&self, n: u64, salt: [u8; 16]) -> Result<()> {
        let me = self.core.check_write("append")?;
        let row = JournalRow {
            salt,
            keeper: me.owner,
            state: JournalState::Open,
            first: Vec::new(),
            objects: Vec::new(),
            needed: Vec::new(),
        };
        self.core.transact(Step::JournalRow, |w| w.put(&(me.owner, n), &row))?;
        Ok(())
    }

    fn finished(&self, n: u64, end: u64, first: &[(StreamId, Generation, Sequence)]) -> Result<()> {
        let me = self.core.check_write("append")?;
        self.core.transact(Step::JournalRow, |w| {
            let Some(mut row) = w.get::<JournalRow>(&(me.owner, n))? else { return Ok(()) };
            row.state = JournalState::Finished { end };
            row.first = first.to_vec();
            w.put(&(me.owner, n), &row)
        })?;
        Ok(())
    }
}

impl Store {
    /// Forgets journals that hold nothing unsealed: rows durably first, then the files.
    pub(super) fn forget_journals(&self) -> Result<()> {
        if self.core().is_shared() {
            return self.forget_left();
        }
        let gone = self.unneeded()?;
        if gone.is_empty() {
            return Ok(());
        }
        // A copy that is being made reads them: they go with a later call.
        let Some(_right) = super::retain::may_remove(self.core())? else { return Ok(()) };
        self.core().transact(Step::JournalForget, |w| {
            for key in &gone {
                w.remove::<JournalRow>(key)?;
            }
            Ok(())
        })?;
        let writer = self.writer("forget")?;
        writer.adopted.lock().retain(|kept| !gone.contains(&(kept.owner, kept.n)));
        let me = self.core().check_write("forget")?.owner;
        let ours = gone.iter().filter(|(owner, _)| *owner == me);
        ours.for_each(|(_, n)| writer.journal.forget(*n));
        unlink_journals(self.core(), &gone)
    }

    /// Finished journals of ours, and adopted ones, that no unsealed record needs.
    fn unneeded(&self) -> Result<Vec<(OwnerId, u64)>> {
        let writer = self.writer("forget")?;
        let me = self.core().check_write("forget")?;
        let mut finished = writer.journal.files();
        finished.retain(|file| file.finished);
        let adopted = writer.adopted.lock().clone();
        if finished.is_empty() && adopted.is_empty() {
            return Ok(Vec::new());
        }
        let streams = writer.streams.lock();
        let needed: BTreeSet<Source> =
            streams.iter().flat_map(|(_, end)| end.tail.iter().map(|r| r.source)).collect();
        let ours = finished.iter().filter(|f| !is_needed(f, &streams)).map(|f| (me.owner, f.n));
        let theirs = adopted
            .iter()
            .filter(|a| {
                let source = Source::Adopted { owner: a.owner, n: a.n };
                !a.is_set_aside && !needed.contains(&source)
            })
            .map(|a| (a.owner, a.n));
        Ok(ours.chain(theirs).collect())
    }

    /// Past the journal budget, unsealed records in the oldest files are copied forward into the
    /// newest, so that no slow stream pins old files.
    pub(super) fn keep_budget(&self) -> Result<()> {
        let writer = self.writer("append")?;
        let budget = self.core().limits.journal_budget_bytes;
        let adopted: u64 =
            writer.adopted.lock().iter().filter(|a| !a.is_set_aside).map(|a| a.end).sum();
        let total = adopted + writer.journal.file_bytes();
        if total <= budget {
            return Ok(());
        }
        // Unsealed records alone may pass the budget: copying them at every call would not help.
        let unsealed: u64 = writer.streams.lock().iter().map(|(_, end)| end.tail_bytes).sum();
        let files = writer.journal.files();
        let finished = files.iter().filter(|file| file.finished).map(|file| file.n).max();
        if total <= unsealed.saturating_mul(2) || (finished.is_none() && adopted == 0) {
            return Ok(());
        }
        self.copy_forward(finished.map_or(0, |n| n + 1))
    }

    /// Copies every unsealed record that lies in a file below `since`, or in an adopted one.
    fn copy_forward(&self, since: u64) -> Result<()> {
        let writer = self.writer("append")?;
        let mut streams = writer.streams.lock();
        let is_old = |source| match source {
            Source::Own { since: at } => at < since,
            Source::Adopted { .. } => true,
        };
        for stream in streams.iter().map(|(stream, _)| stream).collect::<Vec<_>>() {
            let Some(end) = streams.get(stream) else { continue };
            let first = end.sealed_upto.0;
            let mut group = Vec::new();
            for (record, sequence) in end.tail.iter().zip(first..) {
                if is_old(record.source) {
                    group.push(Record {
                        stream,
                        generation: record.generation,
                        sequence: Sequence(sequence),
                        payload: record.payload.clone(),
                    });
                }
            }
            self.enqueue_in_frames(&group)?;
        }
        // Still locked: a record sealed or moved back meanwhile would leave its copy behind.
        writer.journal.barrier().inspect_err(|e| self.note_journal_failure(e))?;
        // P3: only now that the copies are durable do the originals count no more.
        for stream in streams.iter().map(|(stream, _)| stream).collect::<Vec<_>>() {
            let Some(end) = streams.get_mut(stream) else { continue };
            for record in end.tail.iter_mut().filter(|record| is_old(record.source)) {
                record.source = Source::Own { since };
            }
        }
        drop(streams);
        self.forget_journals()
    }

    /// Enqueues records that are durable already, as few frames as fit.
    fn enqueue_in_frames(&self, records: &[Record]) -> Result<()> {
        let journal = &self.writer("append")?.journal;
        let frame_max = self.core().limits.frame_bytes_max.min(self.core().limits.queue_bytes) / 2;
        let mut rest = records;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|record| {
                bytes += record.payload.held_bytes() + RECORD_HEADER_BYTES as u64;
                bytes <= frame_max
            });
            let take = fits.count().max(1);
            let (group, later) = rest.split_at(take);
            if let Err(e) = journal.enqueue(group) {
                if e.kind() != ErrorKind::QueueFull {
                    return Err(e);
                }
                journal.flush().inspect_err(|e| self.note_journal_failure(e))?;
                continue;
            }
            rest = later;
        }
        Ok(())
    }
}

/// Whether any unsealed record lies in `file` and in no newer one.
pub(super) fn is_needed(file: &OpenJournal, streams: &Streams) -> bool {
    file.streams.iter().any(|&(stream, generation, low, high)| {
        let Some(end) = streams.get(stream) else { return false };
        let from = low.0.saturating_sub(end.sealed_upto.0) as usize;
        let count = (high.0 + 1).saturating_sub(low.0.max(end.sealed_upto.0)) as usize;
        end.tail.iter().skip(from).take(count).any(|record| {
            let is_here = match record.source {
                Source::Own { since } => since <= file.n,
                Source::Adopted { .. } => false,
            };
            is_here && record.generation == generation
        })
    })
}

/// Unlinks journals whose rows are gone durably. One that stays is swept at the next opening.
pub(super) fn unlink_journals(core: &Core, gone: &[(OwnerId, u64)]) -> Result<()> {
    core.disk.mark(Step::JournalUnlink);
    for (owner, n) in gone {
        let path = layout::journal(&core.root, *owner, *n);
        match core.disk.unlink(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("unlink", path.display(), e)),
        }
    }
    Ok(())
}
