//! A handle on an open manifest: reading, writing, closing, and what it answers meanwhile.

use parking_lot::{RwLock, RwLockReadGuard};
use redb::{Database, ReadOnlyDatabase, ReadableDatabase};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::body::{self, Pending};
use super::changes::{ChangeLoad, Changes, RowKey};
use super::commit::{self, Committed};
use super::examine::Facts;
use super::halt::{Halt, drop_quietly};
use super::pinned::{Apart, PinnedRecipes};
use super::read::Snapshot;
use super::refit::Passing;
use super::rows::MetaRow;
use super::turn::{Turns, Waits};
use super::write::Write;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, OwnerId};
use crate::protection::Protection;
use crate::vfs::{Disk, File, Held, Step};

pub(super) enum Handle {
    Writer(Database),
    /// Beside a writer, or when none lives.
    Shared(ReadOnlyDatabase),
    /// What a killed writer left, recovered in memory; no writer may come meanwhile.
    Copied(Database, #[expect(dead_code, reason = "held until dropped")] Box<dyn Held>),
}

/// The manifest of an open store.
///
/// Any error of redb or of the disk under it halts the handle: that call returns the error, every
/// later one `Halted` with the same cause, and not a byte is written any more. Reopen it.
pub struct Manifest {
    handle: RwLock<Option<Handle>>,
    halt: Arc<Halt>,
    file: Arc<dyn File>,
    meta: MetaRow,
    last: AtomicU64,
    /// What the files of a single-file store wait to have carried; empty in any other.
    pending: Arc<Pending>,
    /// Where other processes write as well.
    turns: Option<Turns>,
    changes: Changes,
    pinned: Arc<PinnedRecipes>,
    /// What redb's handle leaves to the next one when the file is given another length.
    passing: Arc<Passing>,
    cache: usize,
    /// Held by every snapshot.
    readers: Arc<()>,
}

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest").field("path", &self.halt.path()).finish_non_exhaustive()
    }
}

impl Manifest {
    pub(super) fn new(handle: Handle, halt: Arc<Halt>, file: Arc<dyn File>, facts: Facts) -> Self {
        if !matches!(handle, Handle::Writer(_)) {
            // G20: whatever redb may try, a reader's backend writes nothing.
            halt.freeze();
        }
        Self {
            handle: RwLock::new(Some(handle)),
            halt,
            file,
            meta: facts.meta,
            last: AtomicU64::new(facts.counters.commit_seq.0),
            pending: Arc::default(),
            turns: None,
            changes: Changes::new(facts.counters.commit_seq),
            pinned: Arc::default(),
            passing: Arc::default(),
            cache: 0,
            readers: Arc::default(),
        }
    }

    pub(super) fn with_turns(mut self, turns: Option<Turns>) -> Self {
        self.turns = turns;
        self
    }

    pub(super) fn with_passing(mut self, passing: Arc<Passing>, cache: usize) -> Self {
        (self.passing, self.cache) = (passing, cache);
        self
    }

    /// How often and how long this handle waited for other processes to end their transactions.
    pub fn waits(&self) -> Waits {
        self.turns.as_ref().map(Turns::waits).unwrap_or_default()
    }

    /// Whether other processes may write as well.
    pub fn is_shared(&self) -> bool {
        self.turns.is_some()
    }

    /// Takes a snapshot: the manifest as of the last commit. Keep it briefly.
    ///
    /// # Errors
    /// `Halted`, `Forked`, `Closed`; `Io` and `Damage` halt the handle.
    pub fn read(&self) -> Result<Snapshot> {
        self.halt.check("read")?;
        // Not `read`: a snapshot taken inside `write` must not wait for a `close` that waits for it.
        let handle = self.opened();
        let txn = match handle.as_deref().and_then(Option::as_ref) {
            Some(Handle::Writer(db) | Handle::Copied(db, _)) => {
                self.halt.guard("read", || db.begin_read())
            }
            Some(Handle::Shared(db)) => self.halt.guard("read", || db.begin_read()),
            None => return Err(self.closed("read")),
        }?;
        Ok(Snapshot::new(txn, self.halt.clone()).held_by(&self.readers))
    }

    /// Runs `change` in a transaction and commits it, as `owner` unless it is `None`. While it
    /// runs, every other writer waits; it must not call this again.
    ///
    /// # Durability
    /// When this returns `Ok`, everything that `change` wrote is durable. After an error nothing
    /// of it is, but for `OutcomeUnknown`.
    ///
    /// # Errors
    /// Whatever `change` returns. `Fenced` when the owner's row does not stand. `CallerPanicked`
    /// when `change` panicked. `OutcomeUnknown` when the commit failed: reopen, and compare the
    /// owner's count with the one in the message. `ReadOnly`, `Halted`, `Forked`, `Closed`.
    pub fn write<T>(
        &self,
        owner: Option<OwnerId>,
        step: Step,
        change: impl FnOnce(&mut Write<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        self.with_writer(|db| {
            self.halt.disk().mark(step);
            self.write_in(db, owner, change)
        })
    }

    fn with_writer<T>(&self, act: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
        self.halt.check("write")?;
        let handle = self.opened();
        match handle.as_deref().and_then(Option::as_ref) {
            Some(Handle::Writer(db)) => act(db),
            Some(_) => {
                let cause = "the store was opened read-only";
                let place = self.halt.path().display();
                Err(Error::new(ErrorKind::ReadOnly, "write", place, cause))
            }
            None => Err(self.closed("write")),
        }
    }

    fn write_in<T>(
        &self,
        db: &Database,
        owner: Option<OwnerId>,
        change: impl FnOnce(&mut Write<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        let mut carried = None;
        // Until the transaction has ended, whichever way.
        let apart = Apart::new(&self.pinned);
        let first = Protection::BytesWithTheirRows.is_on();
        let done = commit::run(
            db,
            self.turns.as_ref(),
            &self.halt,
            &self.changes,
            owner,
            || self.check_name(),
            |w| {
                w.note_apart(&apart);
                if first && !self.pending.is_empty() {
                    // P3: what was written before this transaction is durable with it.
                    carried = Some(self.pending.carry(w)?);
                }
                change(w)
            },
        )?;
        self.last.fetch_max(done.commit.0, Ordering::AcqRel);
        if !first && !self.pending.is_empty() {
            let carry = |w: &mut Write<'_>| self.pending.carry(w);
            let (halt, changes) = (&self.halt, &self.changes);
            carried = Some(commit::run(db, None, halt, changes, None, || Ok(()), carry)?.value);
        }
        if let Some(carried) = carried {
            self.pending.carried(carried);
            if carried.is_much_erased() {
                // redb gives out what one commit let go of after the next one. What comes of this
                // one changes nothing about the first: a failure halts, and whoever calls next hears.
                let (halt, changes, name) = (&self.halt, &self.changes, || self.check_name());
                if let Ok(empty) = commit::run(db, None, halt, changes, None, name, |_| Ok(())) {
                    self.last.fetch_max(empty.commit.0, Ordering::AcqRel);
                }
            }
        }
        Ok(done)
    }

    /// The rows that changed after commit `covered` up to `now`, or `None` when not all of them are
    /// known; then those that change from here on are.
    ///
    /// # Errors
    /// `Halted`, `Forked`, `Closed`, `ReadOnly`.
    pub fn changed_since(
        &self,
        covered: Option<CommitSeq>,
        now: CommitSeq,
    ) -> Result<Option<Vec<RowKey>>> {
        let known = covered.and_then(|covered| self.changes.since(covered, now));
        if known.is_none() {
            let turns = self.turns.as_ref();
            let begin = || self.changes.begin();
            self.with_writer(|db| commit::alone(db, turns, &self.halt, begin))?;
        }
        Ok(known)
    }

    /// How much changed since the newest snapshot, as far as this opening knows.
    pub fn change_load(&self) -> ChangeLoad {
        self.changes.load()
    }

    /// A snapshot of the rows as of `covered` stands.
    pub fn note_covered(&self, covered: CommitSeq) {
        self.changes.covered(covered);
    }

    /// What an earlier opening said: nothing but bookkeeping followed `covered` up to now.
    pub fn resume_changes(&self, covered: CommitSeq) {
        self.changes.resume(covered);
    }

    /// Whether nothing but bookkeeping was committed after `covered` up to `now`.
    pub fn is_quiet_since(&self, covered: CommitSeq, now: CommitSeq) -> bool {
        self.changes.is_quiet_since(covered, now)
    }

    /// What waits to be carried by the next transaction.
    pub(super) fn pending(&self) -> Arc<Pending> {
        Arc::clone(&self.pending)
    }

    /// Whether files of a single-file store wait for the next transaction.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether this handle writes.
    pub fn is_writer(&self) -> bool {
        matches!(self.opened().as_deref(), Some(Some(Handle::Writer(_))))
    }

    /// Whether some process has the manifest open for writing.
    ///
    /// # Errors
    /// `Io`.
    pub fn writer_lives(&self) -> Result<bool> {
        super::open::writer_lives(&*self.file, self.halt.path())
    }

    /// G24: a commit into a file that no longer has the manifest's name would be lost.
    pub(super) fn check_name(&self) -> Result<()> {
        let path = self.halt.path();
        let fail = |e| Error::io("look at", path.display(), e);
        let named = self.halt.disk().meta(path).map_err(fail)?.map(|meta| meta.identity);
        if named == Some(self.file.identity().map_err(fail)?) {
            return Ok(());
        }
        let cause = match named {
            Some(_) => "another file was put in its place while it was open",
            None => "it was renamed or removed while it was open",
        };
        Err(self.halt.halt(Error::new(ErrorKind::ManifestLost, "commit", path.display(), cause)))
    }

    /// Whether the file still has the manifest's name; nothing halts.
    pub(super) fn is_named(&self) -> Result<bool> {
        let fail = |e| Error::io("look at", self.path().display(), e);
        let named = self.disk().meta(self.path()).map_err(fail)?.map(|meta| meta.identity);
        Ok(named == Some(self.file.identity().map_err(fail)?))
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        self.halt.disk()
    }

    pub(super) fn path(&self) -> &Path {
        self.halt.path()
    }

    /// What is open, for as long as the guard lives; waits while redb is opened anew.
    fn opened(&self) -> Option<RwLockReadGuard<'_, Option<Handle>>> {
        self.passing.once_open(|| self.handle.try_read())
    }

    /// Why there is nothing open.
    fn closed(&self, operation: &'static str) -> Error {
        let stopped = self.halt.check(operation).err();
        stopped.unwrap_or_else(|| closed(operation, self.halt.path()))
    }

    /// Recipes that readers of this process are in the middle of.
    pub(super) fn pinned_recipes(&self) -> &Arc<PinnedRecipes> {
        &self.pinned
    }

    pub(super) fn handle(&self) -> &RwLock<Option<Handle>> {
        &self.handle
    }

    pub(super) fn halt(&self) -> &Arc<Halt> {
        &self.halt
    }

    pub(super) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub(super) fn passing(&self) -> &Arc<Passing> {
        &self.passing
    }

    pub(super) fn cache(&self) -> usize {
        self.cache
    }

    /// Whether a snapshot of this handle lives.
    pub(super) fn is_read_here(&self) -> bool {
        Arc::strong_count(&self.readers) > 1
    }

    /// The last commit that this handle knows of.
    pub fn commit_seq(&self) -> CommitSeq {
        CommitSeq(self.last.load(Ordering::Acquire))
    }

    /// What the store is.
    pub fn meta(&self) -> &MetaRow {
        &self.meta
    }

    /// The length of the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn len_bytes(&self) -> Result<u64> {
        self.file.len().map_err(|e| Error::io("measure", self.halt.path().display(), e))
    }

    /// What the file takes of its file system, holes left out.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated().map_err(|e| Error::io("measure", self.halt.path().display(), e))
    }

    /// What halted the handle, if anything did.
    pub fn halt_cause(&self) -> Option<Error> {
        self.halt.cause()
    }

    /// Halts the handle for a reason outside the manifest: not a byte is written any more.
    pub fn stop(&self, cause: &Error) {
        self.halt.halt(cause.clone());
    }

    /// Whether a killed writer left the store, and this handle reads what was recovered in memory.
    pub fn is_recovered_copy(&self) -> bool {
        matches!(self.opened().as_deref(), Some(Some(Handle::Copied(..))))
    }

    /// Closes the manifest: the next opening has nothing to recover. Snapshots end with it. A
    /// second call does nothing.
    ///
    /// # Errors
    /// `Halted` when it had halted: nothing was written. `Forked`. `Io`: what is durable stays so.
    pub fn close(&self) -> Result<()> {
        if self.is_pending() && self.is_writer() && self.halt.check("close").is_ok() {
            // What was unlinked last: nothing of it is left behind.
            self.write(None, Step::BodyCommit, |_| Ok(()))?;
        }
        if let Err(stopped) = self.halt.check("close") {
            if stopped.kind() == ErrorKind::Halted {
                // Its locks end all the same: whoever reopens the store waits for no handle.
                drop_quietly(self.handle.write().take());
                self.leave();
            }
            return Err(stopped);
        }
        let taken = self.handle.write().take();
        let closed = match taken {
            Some(Handle::Writer(db)) => {
                self.halt.disk().mark(Step::CloseManifest);
                if self.meta.single_file {
                    self.passing.spare(self.len_bytes().map_or(0, body::spare_bytes));
                }
                self.halt.guard("close", || db.close())
            }
            Some(Handle::Shared(db)) => self.halt.guard("close", || db.close()),
            Some(copied) => {
                drop_quietly(copied);
                Ok(())
            }
            None => Ok(()),
        };
        self.leave();
        closed
    }

    fn leave(&self) {
        if let Some(turns) = &self.turns {
            turns.leave();
        }
    }
}

impl Drop for Manifest {
    fn drop(&mut self) {
        // A halted or forked handle writes nothing here: its backend refuses.
        drop_quietly(self.handle.get_mut().take());
    }
}

fn closed(operation: &'static str, path: &Path) -> Error {
    Error::new(ErrorKind::Closed, operation, path.display(), "the manifest was closed")
}
