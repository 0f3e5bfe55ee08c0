//! What every part of an opened store stands on: the disk, the manifest, who we are, and the one
//! way to change a row.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::ballast::Ballast;
use super::bell::Bell;
use super::claim_left::Unreleased;
use super::condition::{Attempt, Condition};
use super::enter::WriteAccess;
use super::pin::Pins;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::format::head::Head;
use crate::format::layout;
use crate::ids::{CommitSeq, Epoch, OwnerId, UniqueId};
use crate::journal::Level;
use crate::limits::Limits;
use crate::manifest::{
    CheckIntegrity, Committed, Manifest, OwnerRow, Reading, Snapshot, Write, replace_head,
};
use crate::protection::Protection;
use crate::vfs::{Disk, Identity, Step};

/// The opening that acts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Me {
    pub(crate) owner: OwnerId,
    pub(crate) epoch: Epoch,
}

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) root: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) check_integrity: CheckIntegrity,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) me: Option<Me>,
    pub(crate) pid: u32,
    pub(crate) condition: Condition,
    pub(crate) ballast: Option<Ballast>,
    pub(crate) head_at: Mutex<CommitSeq>,
    pub(crate) access: WriteAccess,
    /// Where several processes write: our lock file, which stands as long as nobody took over.
    pub(crate) own_lock: Option<(PathBuf, Identity)>,
    /// Wakes who follows in this process.
    pub(crate) bell: Bell,
    /// What readers of this process need of files that may go.
    pub(crate) pins: Pins,
    /// Claims of ours whose guard is gone and whose release failed.
    pub(super) unreleased: Unreleased,
    /// Journals of others of which this opening has dropped the cached pages.
    pub(super) fresh: Mutex<BTreeSet<(OwnerId, u64)>>,
}

impl Core {
    /// Fails unless a read may go on.
    pub(crate) fn check_read(&self, operation: &'static str) -> Result<()> {
        // A row that failed to read inside a snapshot halted the manifest behind our back.
        if let Some(cause) = self.manifest.halt_cause() {
            self.condition.halt(&cause, None);
        }
        self.condition.check(operation)
    }

    /// Fails unless this handle may change something.
    pub(crate) fn check_write(&self, operation: &'static str) -> Result<Me> {
        self.check_read(operation)?;
        let Some(me) = self.me else {
            let cause = "it was opened for reading; open it for writing";
            return Err(Error::new(ErrorKind::ReadOnly, operation, self.root.display(), cause));
        };
        if self.disk.pid() != self.pid {
            let cause = "a forked child may not write through its parent's handle; open it anew";
            return Err(Error::new(ErrorKind::Forked, operation, self.root.display(), cause));
        }
        Ok(me)
    }

    /// As [`Core::check_write`], for what takes space.
    pub(crate) fn check_intake(&self, operation: &'static str) -> Result<Me> {
        let me = self.check_write(operation)?;
        if let Some(ballast) = &self.ballast {
            ballast
                .before_intake(operation, &self.disk, &self.root, &self.limits)
                .inspect_err(|e| self.halt_if_sync_failed(e))?;
        }
        Ok(me)
    }

    /// Whether other processes may write as well.
    pub(crate) fn is_shared(&self) -> bool {
        self.access == WriteAccess::Shared
    }

    /// P1, P5: comes between a sync and its acknowledgement. Who takes an owner over removes its
    /// lock file before it reads the journals: as long as the file stands, what is synced is read.
    pub(crate) fn check_not_taken_over(&self) -> Result<()> {
        let Some((path, identity)) = &self.own_lock else { return Ok(()) };
        if !Protection::OwnerCheck.is_on() {
            return Ok(());
        }
        let fail = |e| Error::io("look at", path.display(), e);
        if self.disk.meta(path).map_err(fail)?.map(|meta| meta.identity) == Some(*identity) {
            return Ok(());
        }
        let cause = "its lock file is gone: another process took over what this owner had";
        let error = Error::new(ErrorKind::Fenced, "sync", path.display(), cause);
        self.halt(&error);
        Err(error)
    }

    /// A consistent view of all rows. Drop it soon: it pins what later commits free.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.check_read("read")?;
        self.manifest.read().inspect_err(|e| self.halt_if_manifest_did(e, None))
    }

    /// The one way to change rows. `step` names the protocol step that this transaction is.
    pub(crate) fn transact<T>(
        &self,
        step: Step,
        change: impl FnOnce(&mut Write<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        let me = self.check_write(step.name())?;
        if let Some(ballast) = &self.ballast {
            ballast.before_commit(&self.disk, &self.root, &self.limits)?;
        }
        let mut attempt = None;
        let counted = |w: &mut Write<'_>| {
            let value = change(w)?;
            let made = w.get::<OwnerRow>(&me.owner)?.and_then(|row| row.commits.next());
            attempt = made.map(|count| Attempt { owner: me.owner, count });
            Ok(value)
        };
        let written = self.manifest.write(Some(me.owner), step, counted);
        let committed = written.inspect_err(|e| {
            let unknown = (e.kind() == ErrorKind::OutcomeUnknown).then_some(attempt).flatten();
            self.halt_if_manifest_did(e, unknown);
        })?;
        self.keep_head(committed.commit);
        self.bell.ring();
        Ok(committed)
    }

    /// What has to be waited for to be as sure as `level` says.
    pub(crate) fn level(&self, level: Level) -> Level {
        match level {
            // P1: in a single file what is written waits in memory; only a commit survives a kill.
            Level::Written
                if self.manifest.meta().single_file && Protection::WrittenByCommit.is_on() =>
            {
                Level::Durable
            }
            level => level,
        }
    }

    /// Commits what a single-file store's own files wait to have carried, if anything.
    pub(crate) fn settle_pending(&self) -> Result<()> {
        if self.manifest.is_pending() {
            self.transact(Step::BodyCommit, |_| Ok(()))?;
        }
        Ok(())
    }

    /// A fresh name for a file: never used before, never used again.
    pub(crate) fn unique(&self) -> Result<UniqueId> {
        let (millis, mut random) = parts(&self.disk)?;
        if let Some(me) = self.me {
            random[..TAG_BYTES].copy_from_slice(&tag_of(me.owner));
        }
        Ok(UniqueId::from_parts(millis, random))
    }

    /// P8: stops the store.
    pub(crate) fn halt(&self, cause: &Error) {
        self.condition.halt(cause, None);
    }

    /// P8, G14: a sync that failed leaves unknown what the disk holds. It is not tried again.
    pub(crate) fn halt_if_sync_failed(&self, seen: &Error) {
        if seen.operation() == "sync" {
            self.condition.halt(seen, None);
        }
    }

    /// What tidying up after a commit could not do. The commit stands, so its caller is told so.
    pub(crate) fn note_untidy(&self, tidied: Result<()>) {
        if let Err(e) = tidied {
            self.halt_if_sync_failed(&e);
            self.condition.warn(e);
        }
    }

    fn halt_if_manifest_did(&self, seen: &Error, attempt: Option<Attempt>) {
        if self.manifest.halt_cause().is_some() {
            self.condition.halt(seen, attempt);
        }
    }

    /// Raises the witness after every so many commits of ours.
    fn keep_head(&self, commit: CommitSeq) {
        let mut at = self.head_at.lock();
        if commit.0.saturating_sub(at.0) >= self.limits.head_commits {
            *at = commit;
            self.write_head(commit);
        }
    }

    /// Writes the witness. A failure is a warning: an older witness stays true.
    pub(crate) fn write_head(&self, commit: CommitSeq) {
        self.write_quiet_head(commit, commit);
    }

    /// The same, saying since when nothing but bookkeeping was committed. Where others write too
    /// nobody can say that.
    pub(crate) fn write_quiet_head(&self, commit: CommitSeq, quiet_since: CommitSeq) {
        if self.manifest.meta().single_file {
            return;
        }
        let next = match self.me.filter(|_| self.is_shared()).map(|me| (me, self.unique())) {
            Some((me, Ok(unique))) => layout::tmp(&self.root, me.owner, unique),
            Some((_, Err(e))) => return self.condition.warn(e),
            None => layout::head_next(&self.root),
        };
        let quiet_since = if self.is_shared() { commit } else { quiet_since };
        let head = Head { store: self.manifest.meta().store, commit, quiet_since };
        if let Err(e) = replace_head(&self.disk, &self.root, &next, &head) {
            self.halt_if_sync_failed(&e);
            self.condition.warn(e);
        }
    }
}

/// Bytes of a file's unique name that tell whose it is.
pub(crate) const TAG_BYTES: usize = 4;
/// Where the random half of a name begins.
const RANDOM_AT: usize = 6;

/// The mark of an owner on the names of its files: while it lives, nobody else sweeps them.
pub(crate) fn tag_of(owner: OwnerId) -> [u8; TAG_BYTES] {
    let digest = Digest::of(&owner.0);
    std::array::from_fn(|at| digest.0[at])
}

/// The mark on a name.
pub(crate) fn tag_in(unique: UniqueId) -> [u8; TAG_BYTES] {
    std::array::from_fn(|at| unique.0[RANDOM_AT + at])
}

/// A fresh name from the clock and the disk's entropy; the clock decides nothing.
pub(crate) fn unique(disk: &Arc<dyn Disk>) -> Result<UniqueId> {
    let (millis, random) = parts(disk)?;
    Ok(UniqueId::from_parts(millis, random))
}

/// The two halves of a ULID.
pub(crate) fn parts(disk: &Arc<dyn Disk>) -> Result<(u64, [u8; 10])> {
    let mut random = [0; 10];
    disk.entropy(&mut random).map_err(|e| Error::io("open", "entropy", e))?;
    let millis = disk.wall_nanos().map_or(0, |n| n.max(0) as u64 / 1_000_000);
    Ok((millis, random))
}
