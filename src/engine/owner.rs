//! Owners: our own lock file, who holds the store, and who died.
//!
//! Liveness is the exclusive OS lock on `owners/<owner>.lock`, not pid, age or heartbeat: a
//! suspended process keeps it, a dead one cannot.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::core::{Core, parts};
use super::enter::{WriteAccess, no_locks};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::OwnerId;
use crate::manifest::{OwnerRow, Reading};
use crate::vfs::{Access, Disk, File, Identity, LockRange, Sharing, read_whole, write_all_at};

/// The lock file of this opening. Ends with the process, or when dropped.
#[derive(Debug)]
pub(super) struct OwnLock {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl OwnLock {
    /// Creates and locks the file of a new owner.
    pub(super) fn take(
        disk: &Arc<dyn Disk>,
        root: &Path,
        access: WriteAccess,
    ) -> Result<(OwnerId, Self)> {
        let (millis, random) = parts(disk)?;
        let owner = OwnerId::from_parts(millis, random);
        let path = layout::owner_lock(root, owner);
        let fail = |e| Error::io("open", path.display(), e);
        let file = disk.open(&path, Access::CreateNew).map_err(fail)?;
        let locked = file
            .try_lock(LockRange::WHOLE, Sharing::Exclusive)
            .map_err(|e| no_locks(&path, access).with_source(e))?;
        if !locked {
            let cause = "a new lock file is locked already";
            return Err(Error::new(ErrorKind::Conflict, "lock", path.display(), cause));
        }
        // A lock that another handle does not see keeps nobody away.
        if access == WriteAccess::Shared {
            let seen = disk.open(&path, Access::Read).map_err(fail)?.is_locked(LockRange::WHOLE);
            if !matches!(seen, Ok(true)) {
                return Err(no_locks(&path, access));
            }
        }
        let text = format!("process {} on {}, {} access\n", disk.pid(), disk.host(), access.name());
        write_all_at(&*file, text.as_bytes(), 0).map_err(fail)?;
        Ok((owner, Self { disk: Arc::clone(disk), path, file }))
    }

    /// Where it stands, and who it is.
    pub(super) fn identity(&self) -> Result<(PathBuf, Identity)> {
        let identity = self.file.identity();
        let identity = identity.map_err(|e| Error::io("look at", self.path.display(), e))?;
        Ok((self.path.clone(), identity))
    }

    /// Takes the name away, and the lock.
    pub(super) fn release(self) {
        let _ = self.disk.unlink(&self.path);
        self.let_go();
    }

    /// Lets go of the lock, and of nothing else. Closing alone would leave it with a child that was
    /// forked meanwhile.
    pub(super) fn let_go(self) {
        let _ = self.file.unlock(LockRange::WHOLE);
    }
}

/// Longest note in a lock file that is shown.
const NOTE_BYTES_MAX: u64 = 4096;

/// Who holds the store, each in words, for the message of a refused opening.
pub(super) fn holders(disk: &Arc<dyn Disk>, root: &Path) -> Vec<String> {
    let dir = layout::owners_dir(root);
    let mut holders = Vec::new();
    for entry in disk.list(&dir).unwrap_or_default() {
        let Some(owner) = layout::parse_owner_lock(&entry.name) else { continue };
        let Ok(file) = disk.open(&dir.join(&entry.name), Access::Read) else { continue };
        if file.is_locked(LockRange::WHOLE).unwrap_or(false) {
            let note = read_whole(&*file, NOTE_BYTES_MAX).unwrap_or_default();
            let note = String::from_utf8_lossy(&note);
            let since = crate::ids::unix_millis(&owner);
            holders.push(format!("{} (owner {owner}, since {since} ms)", note.trim()));
        }
    }
    holders.sort();
    holders
}

/// An owner that ended without saying so, and its lock, held so that nobody else takes over.
#[derive(Debug)]
pub(super) struct Dead {
    pub(super) owner: OwnerId,
    _lock: Option<Arc<dyn File>>,
}

/// Owners whose lock is held now: what they build and lock is theirs.
pub(super) fn the_living(core: &Core) -> Result<Vec<OwnerId>> {
    let mut living = Vec::new();
    for (owner, row) in core.snapshot()?.list::<OwnerRow>(.., usize::MAX)? {
        if row.ended.is_some() {
            continue;
        }
        let path = layout::owner_lock(&core.root, owner);
        match core.disk.open(&path, Access::Read) {
            Ok(file) => {
                let locked = file.is_locked(LockRange::WHOLE);
                if locked.map_err(|e| Error::io("look at", path.display(), e))? {
                    living.push(owner);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("look at", path.display(), e)),
        }
    }
    Ok(living)
}

/// Every owner whose row stands open and whose lock is free, and those that live.
pub(super) fn the_dead(core: &Core, me: OwnerId) -> Result<(Vec<Dead>, Vec<OwnerId>)> {
    let mut dead = Vec::new();
    let mut living = vec![me];
    for (owner, row) in core.snapshot()?.list::<OwnerRow>(.., usize::MAX)? {
        if owner == me || row.ended.is_some() {
            continue;
        }
        match dead_one(core, owner)? {
            Some(one) => dead.push(one),
            None => living.push(owner),
        }
    }
    Ok((dead, living))
}

/// `owner`, if nobody holds its lock; then we do.
pub(super) fn dead_one(core: &Core, owner: OwnerId) -> Result<Option<Dead>> {
    let path = layout::owner_lock(&core.root, owner);
    let fail = |e: io::Error| match e.kind() {
        io::ErrorKind::Unsupported => no_locks(&path, core.access).with_source(e),
        _ => Error::io("lock", path.display(), e),
    };
    match core.disk.open(&path, Access::ReadWrite) {
        Ok(file) => {
            let is_free = file.try_lock(LockRange::WHOLE, Sharing::Exclusive).map_err(fail)?;
            Ok(is_free.then_some(Dead { owner, _lock: Some(file) }))
        }
        // Its file is gone, so nobody can hold it.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Some(Dead { owner, _lock: None })),
        Err(e) => Err(fail(e)),
    }
}
