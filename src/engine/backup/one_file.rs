//! The backup of a store that is one file: another file, made beside it and named when it is whole.
//!
//! ```text
//!   refuse, lock the earlier one ---> barrier ---> ONE snapshot: rows and every byte of its files
//!     ---> all rows into <name>.sealstone-new ---> read back, every file against its digest
//!     ---> its name, or the earlier one's, by link or rename
//! ```
//! A snapshot pins what it shows, so nothing has to be held. The file is written whole each time:
//! what an earlier backup has already is not told apart.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::run::{Backup, BackupOptions, BackupProgress};
use super::target::{Earlier, Target};
use super::verify::{verify_file, verify_journals};
use super::{bounds, rows};
use crate::engine::core::Core;
use crate::engine::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::manifest::{
    BodyDisk, Draft, FileRow, FileState, Newborn, Pass, Reading, Snapshot, Table,
};
use crate::protection::Protection;
use crate::vfs::{Disk, Step};

/// Rows from one call of progress to the next.
const TOLD_EACH: u64 = 1000;

/// Told how far it is; ends it by breaking.
type Told<'p> = &'p mut dyn FnMut(BackupProgress) -> ControlFlow<()>;

pub(super) fn back_up(
    store: &Store,
    to: &Path,
    options: &BackupOptions,
    told: Told<'_>,
) -> Result<Backup> {
    let core: &Core = store.core();
    let target = Target::open_file(core, to, options)?;
    // P1: whatever was acknowledged, or accepted, before the call.
    store.settle_journal()?;
    let snapshot = Arc::new(core.snapshot()?);
    target.check_past(&snapshot)?;
    let mut done = planned(core, &target, &snapshot)?;
    let newborn = match target.earlier {
        Some(_) => Newborn::beside(&target.disk, to)?,
        None => Newborn::begin(&target.disk, to)?,
    };
    target.disk.mark(Step::BackupRows);
    copy(core, &snapshot, &newborn, &mut done, told)?;
    drop(snapshot);
    target.disk.mark(Step::BackupVerify);
    let opening = target.opening(Arc::clone(&target.disk), core);
    let made = opening.open_read_only(newborn.path())?;
    target.compare(&made, done.commit)?;
    if Protection::VerifyBeforeSwitch.is_on() {
        verify(&made, &done, told, to)?;
    }
    made.close()?;
    // P3: nothing has the name that is not durable and read back.
    match target.earlier {
        Some(Earlier { .. }) => newborn.replace([Step::BackupSwitch, Step::BackupSyncDir])?,
        None => {
            target.disk.mark(Step::BackupSwitch);
            newborn.name(Step::BackupSyncDir)?;
        }
    }
    Ok(done)
}

/// What a backup of `snapshot` would do.
pub(super) fn planned(core: &Core, target: &Target, snapshot: &Snapshot) -> Result<Backup> {
    let mut plan = Backup {
        commit: snapshot.counters()?.commit_seq,
        onto: target.earlier.as_ref().map(|earlier| earlier.commit),
        journals: snapshot.count(Table::Journals)?,
        manifest_bytes: core.manifest.len_bytes()?,
        ..Backup::default()
    };
    for table in Table::ALL {
        plan.rows += snapshot.count(*table)?;
    }
    snapshot.scan::<FileRow>(.., &mut |_, row| {
        if row.state == FileState::Sealed {
            plan.files += 1;
            plan.files_copied += 1;
            plan.bytes_copied = plan.bytes_copied.saturating_add(row.len);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(plan)
}

/// All rows of the snapshot, as a clean close at that commit would leave them.
fn copy(
    core: &Core,
    snapshot: &Arc<Snapshot>,
    newborn: &Newborn,
    done: &mut Backup,
    told: Told<'_>,
) -> Result<()> {
    // The journals as the snapshot has them, whatever is written meanwhile.
    let then = BodyDisk::at(Arc::clone(&core.disk), &core.root, &core.manifest, snapshot);
    let then: Arc<dyn Disk> = Arc::new(then);
    let bounds = bounds::read(&then, core, snapshot)?;
    let (total, mut seen) = (done.rows, 0);
    let mut draft = Draft::over(newborn.disk(), newborn.path(), newborn.file())?;
    draft.copy(snapshot, &mut |table, key, value| {
        seen += 1;
        if seen % TOLD_EACH == 0 {
            tell(told, BackupProgress { part: "rows", done: seen, total }, newborn.path())?;
        }
        match table {
            Table::Claims => Ok(Pass::Left),
            Table::Owners => rows::owner(key, value),
            Table::Journals => rows::journal(key, value, &bounds, snapshot),
            _ => Ok(Pass::Same),
        }
    })?;
    let drafted = draft.finish()?;
    (done.rows, done.manifest_bytes) = (drafted.rows, drafted.bytes);
    Ok(())
}

/// P6: every file of the copy has the digest that its row says, every journal its records.
fn verify(made: &Store, done: &Backup, told: Told<'_>, to: &Path) -> Result<()> {
    let (core, snapshot, mut at) = (made.core(), made.snapshot()?, 0u64);
    let folders = core.manifest.meta().sealed_folders;
    snapshot.scan::<FileRow>(.., &mut |_, row| {
        if row.state == FileState::Sealed {
            let path = layout::sealed(&core.root, &row.digest, row.unique, folders);
            verify_file(&core.disk, &path, made.id(), &row, false)?;
            at = at.saturating_add(row.len);
            let progress = BackupProgress { part: "verify", done: at, total: done.bytes_copied };
            tell(told, progress, to)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if snapshot.count(Table::Journals)? > 0 {
        verify_journals(made)?;
    }
    Ok(())
}

fn tell(told: Told<'_>, at: BackupProgress, to: &Path) -> Result<()> {
    match told(at) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            let cause = "the caller ended it; what was there is there";
            Err(Error::new(ErrorKind::Cancelled, "back up", to.display(), cause))
        }
    }
}
