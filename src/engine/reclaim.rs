//! Reclaim: bytes of condemned files are given back.
//!
//! ```text
//!   sealed --- last live byte went [settle] ---> condemned --- [mark] ---> unlinking
//!   unlinking --- unlink, sync directories, [forget] ---> no row
//! ```
//! P3: no file is unlinked before the transaction that forgets it is durable. No decision to delete
//! depends on a clock, a modification time or "the file exists"; an unreadable row stops reclaim.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;

use super::core::Core;
use super::fetch::FileCache;
use super::phases::{Phases, Stopwatch};
use super::retire::Thing;
use super::store::Store;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{FileId, LeaseId};
use crate::manifest::{CondemnedRow, FileRow, FileState, LeaseRow, Reading, Table};
use crate::protection::Protection;
use crate::vfs::Step;

/// How much one call of [`Store::reclaim`] may do.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Files unlinked at most.
    pub files: u64,
    /// Bytes copied by compaction at most; the last file may pass it.
    pub copy_bytes: u64,
    /// References of retired recipes taken away at most; the last transaction may pass it.
    pub references: u64,
    /// Partly live files with this share of dead bytes or a larger one are rewritten, in percent of their
    /// objects; `None` for the limit `compact_dead_percent`. With 5 the store comes within 5 percent of its
    /// live objects.
    pub dead_percent: Option<u8>,
}

/// References of recipes that one transaction takes away.
const REFERENCES_AT_ONCE: u64 = 1 << 14;

impl Default for Budget {
    fn default() -> Self {
        Self { files: 10_000, copy_bytes: 1 << 30, references: 1 << 20, dead_percent: None }
    }
}

/// What a reclaim gave back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Files unlinked that rows had condemned.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Partly live files rewritten.
    pub compacted: u64,
    /// Live bytes moved by that.
    pub moved_bytes: u64,
    /// Partly live files left as they are, because something in them does not read: see
    /// [`Health`](super::Health) and `check`.
    pub unreadable: u64,
    /// Orphans removed: files of ours that no row names.
    pub orphans: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
    /// Files that the disk did not let go of: `health` says why, and the next reclaim tries again.
    pub not_unlinked: u64,
    /// Retired recipes of which nothing is left.
    pub recipes: u64,
    /// References to pieces that went with them.
    pub references: u64,
    /// Whether the budget ended before the work.
    pub is_more_left: bool,
    /// Whether condemned files were left because a backup is being made, or a view of this process reads
    /// them: call again.
    pub is_held: bool,
    /// Nothing was given back: the store was salvaged, not all of it came back, and nobody released it
    /// yet ([`Store::release_salvaged`]).
    pub is_held_by_salvage: bool,
    /// How long it took (OBJ25).
    pub phases: Phases,
}

impl Store {
    /// Gives bytes back: unlinks condemned files, rewrites partly live ones, sweeps orphans. A store
    /// that was salvaged with something lost or unconfirmed gives nothing back until it is released.
    ///
    /// # Errors
    /// `Damage` when a row or a live object does not read: nothing that depends on it is removed.
    ///
    /// # Durability
    /// What it removed was forgotten durably before.
    pub fn reclaim(&self, budget: Budget) -> Result<Reclaimed> {
        let writer = self.writer("reclaim")?;
        self.core().check_write("reclaim")?;
        let mut done = Reclaimed::default();
        if Protection::SalvageHold.is_on() && !self.salvage_holds()?.is_empty() {
            (done.is_held_by_salvage, done.is_more_left) = (true, true);
            return Ok(done);
        }
        let mut watch = Stopwatch::start(self.core());
        // What gives space back without taking any comes first.
        super::sweep::sweep_sealed(self.core(), &writer.building, &mut done)?;
        done.phases.unlink += watch.lap();
        self.forget_journals()?;
        done.phases.manifest += watch.lap();
        self.take_apart_retired(budget.references, &mut done)?;
        unlink_condemned(self.core(), self.files(), budget.files, &mut done)?;
        watch.lap();
        self.compact_files(&budget, &mut done)?;
        done.phases.unlink += watch.lap();
        let left = budget.files.saturating_sub(done.files);
        unlink_condemned(self.core(), self.files(), left, &mut done)?;
        watch.lap();
        self.core().settle_pending()?;
        done.phases.manifest += watch.lap();
        Ok(done)
    }

    /// Goes on with bounded retirements that a crash, or their caller, left.
    fn take_apart_retired(&self, references: u64, done: &mut Reclaimed) -> Result<()> {
        if !Protection::RetiringResumed.is_on() {
            return Ok(());
        }
        let mut left = references;
        while left > 0 {
            let (apart, retired) = self.go_on_retiring(left.min(REFERENCES_AT_ONCE))?;
            done.phases.add(&retired.phases);
            done.recipes += apart.recipes;
            done.references += apart.references;
            done.is_held |= apart.is_held;
            left = left.saturating_sub(apart.references);
            if !apart.is_more_left || apart.recipes + apart.references == 0 {
                done.is_more_left |= apart.is_more_left;
                return Ok(());
            }
        }
        done.is_more_left |= self.snapshot()?.count(Table::Retiring)? > 0;
        Ok(())
    }
}

/// The purpose of the lease that holds a salvaged store from being reclaimed.
pub(crate) const SALVAGE_HOLD: &str =
    "not all came back: nothing is reclaimed until it is released";
/// The holder of that lease, and of what no row is known to refer to.
pub(crate) const SALVAGE_HOLDER: &str = "salvage";

impl Store {
    /// The leases that salvages left, as long as nobody released them: a store that was salvaged may
    /// be salvaged again.
    pub(super) fn salvage_holds(&self) -> Result<Vec<LeaseId>> {
        let mut holds = Vec::new();
        self.core().snapshot()?.scan::<LeaseRow>(.., &mut |lease, row| {
            if row.holder == SALVAGE_HOLDER && row.purpose == SALVAGE_HOLD {
                holds.push(lease);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(holds)
    }

    /// Lets a salvaged store be reclaimed: what it lost was looked at, and is not looked for in it any
    /// more. Whether it was held until now.
    ///
    /// # Errors
    /// As [`Store::retire`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn release_salvaged(&self) -> Result<bool> {
        let holds: Vec<Thing> = self.salvage_holds()?.into_iter().map(Thing::Lease).collect();
        if holds.is_empty() {
            return self.core().check_write("release").map(|_| false);
        }
        self.retire(&holds, "the salvaged store was released").map(|_| true)
    }
}

/// Files in `state`, at most `at_most`, with their rows.
pub(super) fn files_in(
    core: &Core,
    state: FileState,
    at_most: u64,
) -> Result<Vec<(FileId, FileRow)>> {
    let snapshot = core.snapshot()?;
    let mut found = Vec::new();
    // The cost follows what was retired, not the store.
    snapshot.scan::<CondemnedRow>(.., &mut |id, _| {
        if found.len() as u64 >= at_most {
            return Ok(ControlFlow::Break(()));
        }
        let row = snapshot.require::<FileRow>(&id)?;
        if row.state == state {
            found.push((id, row));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn unlink_condemned(
    core: &Core,
    cache: &FileCache,
    at_most: u64,
    done: &mut Reclaimed,
) -> Result<()> {
    let mut files = files_in(core, FileState::Condemned, at_most.saturating_add(1))?;
    if files.len() as u64 > at_most {
        done.is_more_left = true;
        files.truncate(at_most as usize);
    }
    let mut unlinking = files_in(core, FileState::Unlinking, u64::MAX)?;
    // What is condemned now no later snapshot names: who pins a file afterwards does not need it.
    let found = files.len() + unlinking.len();
    files.retain(|(id, _)| core.pins.allow(*id));
    unlinking.retain(|(id, _)| core.pins.allow(*id));
    if files.len() + unlinking.len() < found {
        (done.is_held, done.is_more_left) = (true, true);
    }
    if files.is_empty() && unlinking.is_empty() {
        return Ok(());
    }
    let Some(_right) = super::retain::may_remove(core)? else {
        (done.is_held, done.is_more_left) = (true, true);
        return Ok(());
    };
    let mut watch = Stopwatch::start(core);
    if !Protection::CommitBeforeUnlink.is_on() {
        unlink(core, cache, &files, Step::ReclaimUnlink, done)?;
    }
    if !files.is_empty() {
        core.transact(Step::ReclaimMark, |w| {
            for (id, _) in &files {
                if let Some(mut row) = w.get::<FileRow>(id)?
                    && row.state == FileState::Condemned
                {
                    row.state = FileState::Unlinking;
                    w.put(id, &row)?;
                }
            }
            Ok(())
        })?;
    }
    files.extend(unlinking);
    done.phases.manifest += watch.lap();
    let gone = unlink(core, cache, &files, Step::ReclaimUnlink, done)?;
    done.phases.unlink += watch.lap();
    forget(core, &gone)?;
    done.phases.manifest += watch.lap();
    Ok(())
}

/// Finishes unlinks that a crash interrupted.
pub(super) fn finish_unlinks(core: &Core, cache: &FileCache) -> Result<Reclaimed> {
    let mut done = Reclaimed::default();
    let files = files_in(core, FileState::Unlinking, u64::MAX)?;
    let right = if files.is_empty() { None } else { super::retain::may_remove(core)? };
    if right.is_some() {
        let gone = unlink(core, cache, &files, Step::OpenUnlink, &mut done)?;
        forget(core, &gone)?;
    }
    Ok(done)
}

/// Unlinks `files`, then syncs each directory touched, once; those that are gone. One that the disk does
/// not let go of stops no other: its row stays as it is, and the next reclaim tries again (OBJ21).
fn unlink(
    core: &Core,
    cache: &FileCache,
    files: &[(FileId, FileRow)],
    step: Step,
    done: &mut Reclaimed,
) -> Result<Vec<FileId>> {
    let mut gone = Vec::with_capacity(files.len());
    let folders = core.manifest.meta().sealed_folders;
    let mut touched = BTreeSet::new();
    core.disk.mark(step);
    for (id, row) in files {
        cache.forget(*id);
        let path = layout::sealed(&core.root, &row.digest, row.unique, folders);
        match core.disk.unlink(&path) {
            Ok(()) => {
                done.files += 1;
                done.bytes += row.len;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => {
                core.condition.warn(Error::io("unlink", path.display(), e));
                done.not_unlinked += 1;
                done.is_more_left = true;
                continue;
            }
        }
        gone.push(*id);
        touched.insert(layout::folder_of(&row.digest, folders));
    }
    core.disk.mark(Step::ReclaimSyncDir);
    for folder in touched {
        let path = layout::sealed_folder(&core.root, folder);
        core.disk.sync_dir(&path).map_err(|e| {
            let error = Error::io("sync", path.display(), e);
            core.halt(&error);
            error
        })?;
    }
    Ok(gone)
}

/// Removes the rows of files that are gone for good.
fn forget(core: &Core, gone: &[FileId]) -> Result<()> {
    if gone.is_empty() {
        return Ok(());
    }
    core.transact(Step::ReclaimForget, |w| {
        for id in gone {
            if w.get::<FileRow>(id)?.is_some_and(|row| row.state == FileState::Unlinking) {
                w.remove::<FileRow>(id)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}
