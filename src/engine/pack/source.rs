//! The source: a store that nobody writes and that needs no recovery, locked until this is dropped.

use std::path::Path;
use std::sync::Arc;

use crate::engine::enter::{WriteAccess, lock};
use crate::engine::open::check_root;
use crate::engine::options::Options;
use crate::engine::single::{Layout, layout_of};
use crate::engine::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::manifest::{OwnerRow, Reading};
use crate::vfs::{Access, Disk, Held};

/// How often it may be written between its recovery and its lock.
const TRIES_MAX: usize = 16;

pub(super) struct Source {
    pub(super) store: Store,
    _lock: Box<dyn Held>,
}

impl Source {
    /// Locks the store at `root`; one whose writer was killed is opened, recovered and closed first.
    pub(super) fn open(disk: &Arc<dyn Disk>, root: &Path, options: &Options) -> Result<Self> {
        // Alone, whoever may write it otherwise.
        let options = &options.clone().access(WriteAccess::Single);
        for _ in 0..TRIES_MAX {
            check_root(disk, root, options)?;
            let lock = lock(disk, root, options)?;
            match options.clone().open_read_only(root) {
                Ok(store) if is_settled(&store)? => {
                    sync(disk, root)?;
                    return Ok(Self { store, _lock: lock });
                }
                Ok(_) => {}
                // What a killed writer left is not read while we have the lock: it is recovered.
                Err(e) if e.kind() == ErrorKind::InUse => {}
                Err(e) => return Err(e),
            }
            drop(lock);
            options.clone().open(root)?.close()?;
        }
        let cause = "it is written again and again; try when nobody writes it";
        Err(Error::new(ErrorKind::InUse, "pack", root.display(), cause))
    }
}

/// That the manifest was closed is durable before a copy has a name: else a power cut may ask for a
/// recovery, which is a commit, and source and copy no longer stand at the same one.
fn sync(disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
    let path = match layout_of(disk, root)? {
        Layout::SingleFile => root.to_owned(),
        Layout::Directory => layout::manifest(root),
    };
    match disk.open(&path, Access::ReadWrite) {
        Ok(file) => file.sync_data().map_err(|e| Error::io("sync", path.display(), e)),
        // On a medium that may not be written nothing waits to be.
        Err(_) => Ok(()),
    }
}

/// Whether every owner ended: then no journal awaits a recovery.
fn is_settled(store: &Store) -> Result<bool> {
    let owners = store.snapshot()?.list::<OwnerRow>(.., usize::MAX)?;
    Ok(owners.iter().all(|(_, row)| row.ended.is_some()))
}
