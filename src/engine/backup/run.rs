//! The backup itself, from the barrier to the last unlink.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::bounds::{self, Bounds};
use super::one_file;
use super::rows::{self, Named};
use super::staged::Staged;
use super::target::Target;
use crate::engine::core::Core;
use crate::engine::retain;
use crate::engine::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::CommitSeq;
use crate::manifest::{FileRow, FileState, JournalRow, Reading, Table};
use crate::vfs::{Access, Disk, Step};

/// How to back up.
#[derive(Debug, Clone, Default)]
pub struct BackupOptions {
    /// Of files that an earlier backup has already, looks at length and label only, not at their
    /// content. What is copied is read back in any case.
    pub fast: bool,
    /// Backs up into a directory that other users may enter.
    pub allow_shared_root: bool,
    /// Another disk than the store's own.
    pub disk: Option<Arc<dyn Disk>>,
}

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    /// What is being done: "rows", "copy", "verify".
    pub part: &'static str,
    /// Rows, or bytes, done in this part.
    pub done: u64,
    /// How many there are; 0 where that is not known.
    pub total: u64,
}

/// What a backup did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// The commit that the backup stands at.
    pub commit: CommitSeq,
    /// The commit of the earlier backup whose place it took.
    pub onto: Option<CommitSeq>,
    /// Rows of its manifest.
    pub rows: u64,
    /// Length of its manifest.
    pub manifest_bytes: u64,
    /// Sealed files that its rows name.
    pub files: u64,
    /// Those of them that were copied; the others were there.
    pub files_copied: u64,
    /// Sealed files of the earlier backup that nothing names any more.
    pub files_removed: u64,
    /// Bytes of sealed files and journals that were copied.
    pub bytes_copied: u64,
    /// Journals with unsealed records.
    pub journals: u64,
}

/// A backup under way.
pub(super) struct Job<'c, 'p> {
    pub(super) core: &'c Core,
    pub(super) target: Target,
    pub(super) is_fast: bool,
    pub(super) named: Named,
    pub(super) done: Backup,
    progress: &'p mut dyn FnMut(BackupProgress) -> ControlFlow<()>,
    at: BackupProgress,
}

impl Store {
    /// Makes `to` a whole store as this one stands now, in the same layout, or brings the earlier
    /// backup there up to now: only sealed files that are missing there are copied, and a store in
    /// one file is copied whole. Works while the store is written,
    /// also from a reading handle in another process. Bytes that are retired meanwhile are given
    /// back only after it.
    ///
    /// # Errors
    /// `Invalid` when `to` is the store or lies in it; `Foreign` when it is another store; `Conflict`
    /// when it is newer, or was written to since it was a backup, or another backup is being made;
    /// `InUse` when it is open; `Exists` when something else is there. `Damage` when something of
    /// the store does not read, or the copy does not. `DiskFull`, `Io`. After any error the target
    /// is the earlier backup, or no store; the next call goes on from there.
    ///
    /// # Durability
    /// *Durable* when it returns, and read back from the medium. Everything acknowledged before the
    /// call is in it, unsealed records too.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<Backup> {
        let go_on = &mut |_| ControlFlow::Continue(());
        self.backup_with(to, &BackupOptions::default(), go_on)
    }

    /// As [`Store::backup`], with options; `progress` may end it.
    ///
    /// # Errors
    /// As [`Store::backup`]; `Cancelled`.
    ///
    /// # Durability
    /// As [`Store::backup`].
    pub fn backup_with(
        &self,
        to: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(BackupProgress) -> ControlFlow<()>,
    ) -> Result<Backup> {
        let core: &Core = self.core();
        core.check_read("back up")?;
        if core.manifest.meta().single_file {
            return one_file::back_up(self, to.as_ref(), options, progress);
        }
        let target = Target::open(core, to.as_ref(), options)?;
        // P1: whatever was acknowledged, or accepted, before the call.
        self.settle_journal()?;
        let hold = retain::retain(core)?;
        let mut job = Job {
            core,
            target,
            is_fast: options.fast,
            named: Named::default(),
            done: Backup::default(),
            progress,
            at: BackupProgress::default(),
        };
        let draft = job.draft(self)?;
        let made = job.fill(&draft);
        drop(hold);
        let ended = made.and_then(|()| job.end(&draft));
        if ended.is_err() {
            // Ours alone: the next backup sweeps it if this cannot.
            let _ = job.target.disk.unlink(&draft);
        }
        ended.map(|()| job.done)
    }

    /// What [`Store::backup_with`] would do: which commit, how many files it would copy. The target is
    /// looked at and refused as there; nothing is changed.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_estimate(&self, to: impl AsRef<Path>, options: &BackupOptions) -> Result<Backup> {
        let core: &Core = self.core();
        core.check_read("back up")?;
        let is_one_file = core.manifest.meta().single_file;
        let target = match is_one_file {
            true => Target::open_file(core, to.as_ref(), options)?,
            false => Target::open(core, to.as_ref(), options)?,
        };
        let snapshot = core.snapshot()?;
        target.check_past(&snapshot)?;
        if is_one_file {
            return one_file::planned(core, &target, &snapshot);
        }
        let mut plan = Backup {
            commit: snapshot.counters()?.commit_seq,
            onto: target.earlier.as_ref().map(|earlier| earlier.commit),
            journals: snapshot.count(Table::Journals)?,
            ..Backup::default()
        };
        for table in Table::ALL {
            plan.rows += snapshot.count(*table)?;
        }
        snapshot.scan::<FileRow>(.., &mut |_, row| {
            let to = layout::sealed(&target.root, &row.digest, row.unique, target.folders);
            if row.state == FileState::Sealed {
                plan.files += 1;
                let there = target.disk.meta(&to);
                let there = there.map_err(|e| Error::io("look at", to.display(), e))?;
                if there.is_none_or(|meta| meta.len != row.len) {
                    plan.files_copied += 1;
                    plan.bytes_copied = plan.bytes_copied.saturating_add(row.len);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(plan)
    }

    /// Everything accepted by this handle is durable.
    pub(super) fn settle_journal(&self) -> Result<()> {
        if self.inner.writer.is_some() { self.barrier() } else { Ok(()) }
    }

    /// What was read of the journals is durable: no later backup finds less.
    fn keep_journals(&self, bounds: &Bounds) -> Result<()> {
        let core = self.core();
        let me = core.me.map(|me| me.owner);
        self.settle_journal()?;
        for (owner, n) in bounds.open.keys().filter(|(owner, _)| Some(*owner) != me) {
            let path = layout::journal(&core.root, *owner, *n);
            let synced = core.disk.open(&path, Access::Read).and_then(|file| file.sync_data());
            synced.map_err(|e| Error::io("sync", path.display(), e))?;
        }
        Ok(())
    }
}

impl Job<'_, '_> {
    /// The rows, first: the snapshot is kept no longer than they take.
    fn draft(&mut self, store: &Store) -> Result<std::path::PathBuf> {
        let snapshot = self.core.snapshot()?;
        self.target.check_past(&snapshot)?;
        let bounds = bounds::read(&self.core.disk, self.core, &snapshot)?;
        store.keep_journals(&bounds)?;
        self.target.prepare()?;
        self.done.onto = self.target.earlier.as_ref().map(|earlier| earlier.commit);
        self.done.commit = snapshot.counters()?.commit_seq;
        let path = self.target.tmp()?;
        let disk = Arc::clone(&self.target.disk);
        disk.mark(Step::BackupRows);
        self.begin("rows", 0)?;
        let mut tell = |rows| {
            self.at.done = rows;
            self.tell()
        };
        let made = rows::draft(&snapshot, &bounds, &disk, &path, &mut tell);
        let (drafted, named) = made.inspect_err(|_| drop(disk.unlink(&path)))?;
        (self.done.rows, self.done.manifest_bytes) = (drafted.rows, drafted.bytes);
        (self.done.files, self.named) = (named.files, named);
        Ok(path)
    }

    /// Everything that the rows name, copied and read back.
    fn fill(&mut self, draft: &Path) -> Result<()> {
        let staged = self.staged(draft)?;
        let snapshot = staged.snapshot()?;
        let mut folders = BTreeSet::new();
        self.begin("copy", self.named.bytes)?;
        snapshot.scan::<FileRow>(.., &mut |_, row| {
            folders.insert(layout::folder_of(&row.digest, self.target.folders));
            match self.copy_file(&row)? {
                true => {
                    self.done.files_copied += 1;
                    self.done.bytes_copied += row.len;
                }
                false => self.did(row.len)?,
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for (key, row) in snapshot.list::<JournalRow>(.., usize::MAX)? {
            self.copy_journal(key, &row)?;
            self.done.journals += 1;
        }
        self.sync_names(&folders)?;
        let before = self.done.files_copied;
        self.verify(&staged)?;
        if self.done.files_copied > before {
            self.sync_names(&folders)?;
        }
        drop(snapshot);
        staged.close()
    }

    /// The target as whoever opens it after the switch will see it.
    fn staged(&self, draft: &Path) -> Result<Store> {
        let manifest = layout::manifest(&self.target.root);
        let (disk, draft) = (Arc::clone(&self.target.disk), draft.to_owned());
        let staged: Arc<dyn Disk> = Arc::new(Staged { disk, manifest, draft });
        let store = self.target.opening(staged, self.core).open_read_only(&self.target.root)?;
        self.target.compare(&store, self.done.commit)?;
        Ok(store)
    }

    /// The switch, and what follows it.
    fn end(&mut self, draft: &Path) -> Result<()> {
        self.target.switch(draft, self.done.commit)?;
        let disk = Arc::clone(&self.target.disk);
        let made = self.target.opening(disk, self.core).open_read_only(&self.target.root)?;
        self.target.compare(&made, self.done.commit)?;
        self.done.files_removed = self.target.sweep(&made)?;
        made.close()
    }

    /// Begins a part with so much to do.
    pub(super) fn begin(&mut self, part: &'static str, total: u64) -> Result<()> {
        self.at = BackupProgress { part, done: 0, total };
        self.tell()
    }

    /// So much more is done.
    pub(super) fn did(&mut self, more: u64) -> Result<()> {
        self.at.done = self.at.done.saturating_add(more);
        self.tell()
    }

    fn tell(&mut self) -> Result<()> {
        match (self.progress)(self.at) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                let cause = "the caller ended it; what was there is there";
                let place = self.target.root.display();
                Err(Error::new(ErrorKind::Cancelled, "back up", place, cause))
            }
        }
    }
}
