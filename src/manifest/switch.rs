//! One manifest takes the place of another: a finished draft gets the name, by rename. Who has the
//! old one open keeps reading it and would never hear of a commit again, so nobody may have it open.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::body::AROUND_THE_STORES_LOCK;
use super::draft::{Draft, Drafted};
use super::halt::from_io;
use super::handle::Manifest;
use super::newborn::Newborn;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::CommitSeq;
use crate::vfs::{Access, Disk, File, Sharing, Step};

/// What compacting a manifest did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// The commit that it stands at, before and after.
    pub commit: CommitSeq,
    /// Its rows, before and after.
    pub rows: u64,
    /// Its length before.
    pub bytes_before: u64,
    /// Its length now.
    pub bytes_after: u64,
}

impl Manifest {
    /// Copies all rows into a new file at `tmp`, in the same file system, and gives that the name of
    /// this manifest. Every row stays as it is, the counters and the commit number too. The caller
    /// keeps all other writers out, and takes `tmp` away when it is left over.
    ///
    /// # Durability
    /// When this returns, the new file has the name durably. After an error or a crash the old file
    /// has it or the new one, whole either way, and both hold the same rows.
    ///
    /// # Errors
    /// `InUse` while somebody reads it. `Damage` when a row or a page does not read. `DiskFull` when
    /// there is no room for the copy. `Io`. The old file stands then, unless the directory could not
    /// be synced.
    pub fn compact(self, tmp: &Path) -> Result<Compacted> {
        let (disk, path) = (self.disk().clone(), self.path().to_owned());
        let (bytes_before, commit) = (self.len_bytes()?, self.commit_seq());
        disk.mark(Step::ManifestCopy);
        let drafted = self.read()?.copy_to(&disk, tmp, &[], &mut |_| Ok(()))?;
        self.check_name()?;
        self.close()?;
        switch(&disk, tmp, &path, [Step::ManifestSwitch, Step::ManifestSyncDir])?;
        let (rows, bytes_after) = (drafted.rows, drafted.bytes);
        Ok(Compacted { commit, rows, bytes_before, bytes_after })
    }

    /// The same for a store that is one file, into one that was begun beside it.
    ///
    /// # Durability
    /// As [`compact`](Self::compact).
    ///
    /// # Errors
    /// As there.
    pub fn compact_file(self, newborn: Newborn) -> Result<Compacted> {
        let (bytes_before, commit) = (self.len_bytes()?, self.commit_seq());
        self.disk().mark(Step::ManifestCopy);
        let mut draft = Draft::over(self.disk(), newborn.path(), newborn.file())?;
        draft.copy_rows(&self.read()?, &[], &mut |_| Ok(()))?;
        let Drafted { rows, bytes: bytes_after, .. } = draft.finish()?;
        self.check_name()?;
        self.close()?;
        newborn.replace([Step::ManifestSwitch, Step::ManifestSyncDir])?;
        Ok(Compacted { commit, rows, bytes_before, bytes_after })
    }
}

/// Gives a finished draft the name `path`, and makes the name durable. What had it is gone then. The
/// two steps are the rename and the sync.
///
/// # Durability
/// The name is durable when this returns; before, a crash leaves it with the old file or the new.
///
/// # Errors
/// `InUse` while somebody has the old file open: nothing was changed. `Io`.
pub fn switch(disk: &Arc<dyn Disk>, draft: &Path, path: &Path, steps: [Step; 2]) -> Result<()> {
    let locked = lock_out(disk, path)?;
    keep_mode(disk, draft, path).map_err(|e| Error::io("rename", path.display(), e))?;
    disk.mark(steps[0]);
    disk.rename(draft, path).map_err(|e| Error::io("rename", path.display(), e))?;
    disk.mark(steps[1]);
    let dir = layout::parent(path);
    disk.sync_dir(dir).map_err(|e| Error::io("sync", dir.display(), e))?;
    drop(locked);
    Ok(())
}

/// Whoever was allowed to read the old file may read the new one, and nobody else.
fn keep_mode(disk: &Arc<dyn Disk>, draft: &Path, path: &Path) -> io::Result<()> {
    let Some(old) = disk.meta(path)? else { return Ok(()) };
    match disk.meta(draft)? {
        Some(new) if new.mode != old.mode => disk.set_mode(draft, old.mode),
        _ => Ok(()),
    }
}

/// Locks every byte of the manifest at `path`, if one is there: whoever has it open holds some.
///
/// # Errors
/// `InUse`, `Unsupported`, `Io`.
pub fn lock_out(disk: &Arc<dyn Disk>, path: &Path) -> Result<Option<Arc<dyn File>>> {
    let file = match disk.open(path, Access::ReadWrite) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", path.display(), e)),
    };
    // All but the byte that locks a single-file store: who replaces one holds it.
    for range in AROUND_THE_STORES_LOCK {
        let locked = file.try_lock(range, Sharing::Exclusive);
        if !locked.map_err(|e| from_io("lock", path, e))? {
            let cause = "somebody reads it; try again when nobody does";
            return Err(Error::new(ErrorKind::InUse, "replace", path.display(), cause));
        }
    }
    Ok(Some(file))
}
