//! Gives finished files their own paths.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::builder::Built;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::protection::Protection;
use crate::vfs::{Disk, Step};

/// Renames each of `built` from tmp/ to its own path under `sealed/`, then syncs each folder that it
/// touched once, however many files went there.
///
/// A path holds the digest and a unique id that one owner drew for one file, so a taken path is a
/// defect of the caller: it is looked for, and refused, before anything is renamed. A rename, and
/// not a link, gives the name: one directory operation instead of two, nothing under two names after
/// a crash, and nobody else can come in between, since nobody else draws that id.
///
/// # Durability
/// On success bytes and names are durable. On an error some files may have their names already, none
/// of which is durable for certain; no row may name any of them.
///
/// # Errors
/// `Exists` when a path is taken, and nothing was changed; `Io`, `DiskFull`.
pub fn place(disk: &Arc<dyn Disk>, root: &Path, built: &[Built], folders: u16) -> Result<()> {
    let mut paths = BTreeSet::new();
    for file in built {
        let path = layout::sealed(root, &file.digest, file.unique, folders);
        let taken =
            disk.meta(&path).map_err(|e| Error::io("look at", path.display(), e))?.is_some();
        if taken || paths.contains(&path) {
            let cause = "a file stands there already; nothing was changed";
            return Err(Error::new(ErrorKind::Exists, "place", path.display(), cause));
        }
        paths.insert(path);
    }
    disk.mark(Step::SealRename);
    for file in built {
        let path = layout::sealed(root, &file.digest, file.unique, folders);
        disk.rename(&file.tmp, &path).map_err(|e| Error::io("rename", path.display(), e))?;
    }
    disk.mark(Step::SealSyncDir);
    let touched: BTreeSet<u16> =
        built.iter().map(|file| layout::folder_of(&file.digest, folders)).collect();
    for folder in touched {
        let folder = layout::sealed_folder(root, folder);
        // G7: a name counts once its directory is synced.
        if Protection::SealedDirectorySync.is_on() {
            disk.sync_dir(&folder).map_err(|e| Error::io("sync", folder.display(), e))?;
        }
    }
    Ok(())
}
