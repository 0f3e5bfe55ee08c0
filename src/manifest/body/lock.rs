//! The lock of a store that is one file: one byte of it, where neither redb nor any content reaches.
//! A writer holds it alone, for life; who recovers in memory what a killed writer left shares it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::vfs::{Access, Disk, File, Held, LockRange, Sharing};

/// Far behind every byte that a file has, and before redb's own locks at 1 << 62.
const STORE_BYTE: LockRange = LockRange { start: 1 << 61, end: Some((1 << 61) + 1) };

/// Every other byte.
pub(in crate::manifest) const AROUND_THE_STORES_LOCK: [LockRange; 2] =
    [LockRange { start: 0, end: Some(1 << 61) }, LockRange { start: (1 << 61) + 1, end: None }];

/// How often the path may come to name another file before this gives up.
const TRIES_MAX: usize = 8;

#[derive(Debug)]
struct HeldFile {
    disk: Arc<dyn Disk>,
    file: Arc<dyn File>,
    pid: u32,
}

impl Held for HeldFile {}

impl Drop for HeldFile {
    fn drop(&mut self) {
        // G18: the lock is the same open file's in a forked child, which lets go of nothing.
        if self.disk.pid() == self.pid {
            let _ = self.file.unlock(STORE_BYTE);
        }
    }
}

/// Locks the file that `path` names then; `None` when another holds it.
///
/// # Errors
/// Those of the disk; `Unsupported` where the file system has no byte-range locks.
pub fn lock_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    sharing: Sharing,
) -> io::Result<Option<Box<dyn Held>>> {
    let access = match sharing {
        Sharing::Exclusive => Access::ReadWrite,
        Sharing::Shared => Access::Read,
    };
    for _ in 0..TRIES_MAX {
        let file = disk.open(path, access)?;
        let Some(held) = lock_open_file(disk, Arc::clone(&file), sharing)? else {
            return Ok(None);
        };
        // G24: another file may have been put in its place meanwhile.
        let named = disk.meta(path)?.map(|meta| meta.identity);
        if named == Some(file.identity()?) {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

/// Locks a file that is open.
pub(in crate::manifest) fn lock_open_file(
    disk: &Arc<dyn Disk>,
    file: Arc<dyn File>,
    sharing: Sharing,
) -> io::Result<Option<Box<dyn Held>>> {
    match file.try_lock(STORE_BYTE, sharing) {
        Ok(true) => Ok(Some(Box::new(HeldFile { pid: disk.pid(), disk: Arc::clone(disk), file }))),
        Ok(false) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => lock_open_file(disk, file, sharing),
        Err(e) => Err(e),
    }
}
