//! One file into a directory.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::read_whole;
use super::run::Job;
use super::verify::verify;
use crate::engine::open::make_folders;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::manifest::{Table, write_head};
use crate::protection::Protection;
use crate::vfs::{Access, Disk, EntryKind, Held, Sharing, Step, write_all_at};

/// Tables whose rows are files in a directory.
const FILES: [Table; 3] = [Table::Bodies, Table::Frames, Table::Pages];

pub(super) fn make(job: &mut Job<'_>) -> Result<u64> {
    let (disk, target) = (Arc::clone(&job.disk), job.target.to_owned());
    let tmp = layout::newborn(&target);
    disk.mark(Step::UnpackFolders);
    let _lock = begin(&disk, &tmp)?;
    let source = job.source.store.clone();
    let manifest = &source.core().manifest;
    make_folders(&disk, &tmp, manifest.meta().sealed_folders)?;
    disk.mark(Step::UnpackCopy);
    copy(job, &tmp)?;
    disk.mark(Step::UnpackManifest);
    source.snapshot()?.copy_to(&disk, &layout::manifest(&tmp), &FILES, &mut |meta| {
        meta.single_file = false;
        Ok(())
    })?;
    write_head(&disk, &tmp, manifest.meta().store, manifest.commit_seq())?;
    sync_dir(&disk, &tmp)?;
    disk.mark(Step::UnpackVerify);
    let mut objects = 0;
    if Protection::PackedVerified.is_on() {
        let store = job.options.clone().open_read_only(&tmp)?;
        objects = verify(job, &store)?;
        store.close()?;
    }
    // P3: nothing has the name that is not durable and verified.
    disk.mark(Step::UnpackRename);
    disk.rename(&tmp, &target).map_err(|e| match e.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::DirectoryNotEmpty => taken(&target),
        _ => Error::io("rename", target.display(), e),
    })?;
    disk.mark(Step::UnpackSyncDir);
    let parent = layout::parent(&target);
    disk.sync_dir(parent).map_err(|e| Error::io("sync", parent.display(), e))?;
    Ok(objects)
}

fn taken(target: &Path) -> Error {
    let cause = "something took the name meanwhile, and was left as it is";
    Error::new(ErrorKind::Exists, "unpack", target.display(), cause)
}

/// The directory under its first name, locked and empty but for folders: what a crash left in it of
/// an earlier call is taken away.
fn begin(disk: &Arc<dyn Disk>, tmp: &Path) -> Result<Box<dyn Held>> {
    let fail = |e| Error::io("create", tmp.display(), e);
    match disk.mkdir(tmp) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let meta = disk.meta(tmp).map_err(fail)?;
            if meta.is_some_and(|meta| meta.kind != EntryKind::Directory) {
                return Err(stranger(tmp));
            }
        }
        Err(e) => return Err(fail(e)),
    }
    let Some(held) = disk.lock_dir(tmp, Sharing::Exclusive).map_err(fail)? else {
        let cause = "another process is unpacking a store there";
        return Err(Error::new(ErrorKind::InUse, "create", tmp.display(), cause));
    };
    let left = left_over(disk, tmp)?;
    for path in left {
        disk.unlink(&path).map_err(|e| Error::io("clear", path.display(), e))?;
    }
    Ok(held)
}

fn stranger(path: &Path) -> Error {
    let cause = "it is in the way, and no part of a store; move it away";
    Error::new(ErrorKind::Exists, "unpack", path.display(), cause)
}

/// Every file in the directory; all of them must have names of ours.
fn left_over(disk: &Arc<dyn Disk>, tmp: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![tmp.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = disk.list(&folder).map_err(|e| Error::io("list", folder.display(), e))?;
        for entry in entries {
            let path = folder.join(&entry.name);
            let is_top = folder == tmp && layout::TOP.contains(&entry.name.as_str());
            let is_folder = folder == layout::sealed_dir(tmp) && entry.name.len() == 2;
            let is_ours = layout::parse_sealed(&entry.name).is_some()
                || layout::parse_journal(&entry.name).is_some();
            match entry.kind {
                EntryKind::Directory if is_top || is_folder => folders.push(path),
                EntryKind::File if is_top || is_ours => files.push(path),
                _ => return Err(stranger(&path)),
            }
        }
    }
    Ok(files)
}

/// Every file, synced, and then the folders that hold their names.
fn copy(job: &mut Job<'_>, tmp: &Path) -> Result<()> {
    job.begin("copy")?;
    let (disk, source) = (Arc::clone(&job.disk), job.source.store.clone());
    let mut folders = BTreeSet::new();
    for item in job.items.clone() {
        let path = tmp.join(&item.name);
        let fail = |operation| {
            let place = path.display().to_string();
            move |e| Error::io(operation, place, e)
        };
        let file = disk.open(&path, Access::CreateNew).map_err(fail("create"))?;
        read_whole(job, &source, &item, &mut |at, bytes| {
            write_all_at(&*file, bytes, at).map_err(fail("write"))
        })?;
        if Protection::UnpackedSynced.is_on() {
            file.sync_data().map_err(fail("sync"))?;
        }
        folders.extend(path.parent().map(Path::to_owned));
    }
    if Protection::UnpackedSynced.is_on() {
        folders.iter().try_for_each(|folder| sync_dir(&disk, folder))?;
    }
    Ok(())
}

fn sync_dir(disk: &Arc<dyn Disk>, path: &Path) -> Result<()> {
    disk.sync_dir(path).map_err(|e| Error::io("sync", path.display(), e))
}
