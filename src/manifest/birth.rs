//! Birth: the manifest is made whole under a temporary name, and given its own by a link, which
//! replaces nothing. Whatever crash cuts it short, the name stands for a whole manifest or for none.

use redb::{Builder, ConcurrencyMode};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::backend::Backend;
use super::commit;
use super::halt::Halt;
use super::handle::Manifest;
use super::key::{CountersKey, Key, StoreKey};
use super::newborn::Newborn;
use super::open::FORMAT;
use super::row::to_value;
use super::rows::{CountersRow, MetaRow};
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{CommitSeq, StoreId};
use crate::protection::Protection;
use crate::vfs::{Access, Disk, File, Step};

/// What is fixed at birth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    /// The store's name, for ever.
    pub store: StoreId,
    /// Wall-clock nanoseconds.
    pub created: Option<i64>,
    /// Folders under `sealed/`.
    pub sealed_folders: u16,
    /// Whether it is one file.
    pub single_file: bool,
}

impl Manifest {
    /// Makes the manifest of a new store at `root`, whose folder `tmp/` is there; `tmp_name` is the
    /// name that it has in it meanwhile.
    ///
    /// # Durability
    /// The manifest and its name are durable when this returns; the name in `tmp/` is gone, or is
    /// left to the sweep.
    ///
    /// # Errors
    /// `Exists` when a manifest stands there already: it was left as it is. `Unsupported` where the
    /// file system has no links or no byte-range locks. `Io`, `DiskFull`: the store is not born.
    /// `OutcomeUnknown`: it is, and its name may not be durable.
    pub fn create(disk: &Arc<dyn Disk>, root: &Path, birth: &Birth, tmp_name: &str) -> Result<()> {
        let target = layout::manifest(root);
        let fail = |operation, path: &Path, e| Err(Error::io(operation, path.display(), e));
        match disk.meta(&target) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(exists(&target)),
            Err(e) => return fail("look at", &target, e),
        }
        disk.mark(Step::BirthManifest);
        if !Protection::BirthByLink.is_on() {
            return fill(disk, &target, birth);
        }
        let tmp = layout::tmp_dir(root).join(tmp_name);
        let born = fill(disk, &tmp, birth).and_then(|()| {
            disk.mark(Step::BirthLink);
            disk.link(&tmp, &target).map_err(|e| link_failed(&target, e))
        });
        if let Err(error) = born {
            // Ours alone, and named by nothing; the sweep takes it if this cannot.
            let _ = disk.unlink(&tmp);
            return Err(error);
        }
        disk.mark(Step::BirthSyncDir);
        if let Err(e) = disk.sync_dir(root) {
            return Err(name_unsure(&target, e));
        }
        let _ = disk.unlink(&tmp);
        Ok(())
    }
}

impl Manifest {
    /// Makes a new store that is one file at `path`.
    ///
    /// # Durability
    /// The store and its name are durable when this returns, and no other name is left beside it.
    ///
    /// # Errors
    /// `Exists` when something stands there already; `InUse` while another process makes it;
    /// `Invalid` for a name too long to be made; `Unsupported` where the file system has no links
    /// or no byte-range locks. `Io`, `DiskFull`: the store is not born. `OutcomeUnknown`: it is, and
    /// its name may not be durable.
    pub fn create_file(disk: &Arc<dyn Disk>, path: &Path, birth: &Birth) -> Result<()> {
        disk.mark(Step::BirthManifest);
        if !Protection::BirthByLink.is_on() {
            return fill(disk, path, birth);
        }
        let newborn = Newborn::begin(disk, path)?;
        fill_file(disk, newborn.file(), newborn.path(), birth)?;
        disk.mark(Step::BirthLink);
        newborn.name(Step::BirthParent)
    }
}

pub(super) fn exists(target: &Path) -> Error {
    let cause = "a manifest stands there already, and was left as it is";
    Error::new(ErrorKind::Exists, "create", target.display(), cause)
}

/// P8: the name is there, and nobody knows whether it is durable.
pub(super) fn name_unsure(target: &Path, error: io::Error) -> Error {
    let cause = "the store stands, and its name may not outlast a power failure; open it, or \
                 remove it";
    Error::new(ErrorKind::OutcomeUnknown, "create", target.display(), cause).with_source(Error::io(
        "sync",
        layout::parent(target).display(),
        error,
    ))
}

pub(super) fn link_failed(target: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => exists(target),
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => {
            let cause = "the file system gives no file a second name";
            Error::new(ErrorKind::Unsupported, "link", target.display(), cause).with_source(error)
        }
        _ => Error::io("link", target.display(), error),
    }
}

/// Makes a whole manifest at `path`, and closes it.
fn fill(disk: &Arc<dyn Disk>, path: &Path, birth: &Birth) -> Result<()> {
    let file =
        disk.open(path, Access::CreateNew).map_err(|e| Error::io("create", path.display(), e))?;
    fill_file(disk, &file, path, birth)
}

fn fill_file(disk: &Arc<dyn Disk>, file: &Arc<dyn File>, path: &Path, birth: &Birth) -> Result<()> {
    let halt = Halt::new(disk, path.to_owned());
    let filled = write_birth(file, &halt, birth);
    // redb syncs content; the length and the rest of the file go with it.
    filled.and_then(|()| file.sync_all().map_err(|e| Error::io("sync", path.display(), e)))
}

fn write_birth(file: &Arc<dyn File>, halt: &Arc<Halt>, birth: &Birth) -> Result<()> {
    let db = halt.guard("create", || {
        Builder::new()
            .set_cache_size(1 << 20)
            .set_concurrency_mode(ConcurrencyMode::SingleWriter)
            .create_with_backend(Backend::new(file.clone(), halt.clone()))
    })?;
    let txn = commit::begin(&db, halt)?;
    let (store, counters) = rows(birth)?;
    halt.guard("create", || {
        for table in Table::ALL {
            let mut open = txn.open_table(table.definition())?;
            if *table == Table::Meta {
                open.insert(&*StoreKey.to_bytes(), &*store)?;
                open.insert(&*CountersKey.to_bytes(), &*counters)?;
            }
        }
        Ok::<_, redb::Error>(())
    })?;
    halt.guard("create", || txn.commit())?;
    halt.guard("create", || db.close())
}

fn rows(birth: &Birth) -> Result<(Vec<u8>, Vec<u8>)> {
    let store = MetaRow {
        format: FORMAT,
        features_read: 0,
        features_write: 0,
        store: birth.store,
        created: birth.created,
        sealed_folders: birth.sealed_folders,
        single_file: birth.single_file,
    };
    let counters = CountersRow { commit_seq: CommitSeq(1), ..CountersRow::default() };
    Ok((to_value(&StoreKey.to_bytes(), &store)?, to_value(&CountersKey.to_bytes(), &counters)?))
}
