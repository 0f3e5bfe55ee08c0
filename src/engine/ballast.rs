//! Ballast: bytes written ahead, given back when the disk is nearly full, so that retire, reclaim
//! and the end of a run can still commit. Released *before* the transaction that needs it: running
//! out of space inside a commit halts the store.
//!
//! ```text
//!   held --- free space below the low-water mark [before_commit] ---> released
//!   released --- free space is enough again [keep, before_intake] ---> held
//! ```
//! While it is released, intake is refused with `DiskFull`; what frees space goes on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::limits::Limits;
use crate::vfs::{Access, Disk, Step, write_all_at};

#[derive(Debug)]
pub(crate) struct Ballast {
    held: AtomicBool,
}

impl Ballast {
    /// Looks whether the ballast is there.
    pub(crate) fn open(disk: &Arc<dyn Disk>, root: &Path, limits: &Limits) -> Result<Self> {
        let path = layout::ballast(root);
        let found = disk.meta(&path).map_err(|e| Error::io("open", path.display(), e))?;
        let is_whole = found.is_some_and(|meta| meta.len >= limits.ballast_bytes);
        Ok(Self { held: AtomicBool::new(is_whole || limits.ballast_bytes == 0) })
    }

    /// Fills the ballast where it is missing and there is room.
    pub(crate) fn keep(&self, disk: &Arc<dyn Disk>, root: &Path, limits: &Limits) -> Result<()> {
        if self.is_held() { Ok(()) } else { self.refill(disk, root, limits) }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// Gives the bytes back when the disk is nearly full.
    pub(crate) fn before_commit(
        &self,
        disk: &Arc<dyn Disk>,
        root: &Path,
        limits: &Limits,
    ) -> Result<()> {
        if self.is_held() && limits.ballast_bytes > 0 && free(disk, root)? < limits.low_water_bytes
        {
            self.release(disk, root)?;
        }
        Ok(())
    }

    /// Refuses what takes space while the ballast is released, and takes the ballast back first
    /// where that is possible again.
    pub(crate) fn before_intake(
        &self,
        operation: &'static str,
        disk: &Arc<dyn Disk>,
        root: &Path,
        limits: &Limits,
    ) -> Result<()> {
        if self.is_held() {
            return Ok(());
        }
        self.refill(disk, root, limits)?;
        if self.is_held() {
            return Ok(());
        }
        let cause = "less space is left than the low-water mark; retire and reclaim, or enlarge \
                     the disk";
        Err(Error::new(ErrorKind::DiskFull, operation, root.display(), cause))
    }

    /// Gives the bytes back now.
    pub(crate) fn release(&self, disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
        let path = layout::ballast(root);
        disk.mark(Step::BallastRelease);
        match disk.unlink(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("release", path.display(), e)),
        }
        self.held.store(false, Ordering::Release);
        Ok(())
    }

    fn refill(&self, disk: &Arc<dyn Disk>, root: &Path, limits: &Limits) -> Result<()> {
        if free(disk, root)? < limits.low_water_bytes.saturating_add(limits.ballast_bytes) {
            return Ok(());
        }
        disk.mark(Step::BallastFill);
        match self.fill(disk, root, limits.ballast_bytes) {
            Ok(()) => self.held.store(true, Ordering::Release),
            Err(e) if e.operation() == "sync" => return Err(e),
            // Half a ballast is no ballast: take it away and go on without.
            Err(_) => self.release(disk, root)?,
        }
        Ok(())
    }

    fn fill(&self, disk: &Arc<dyn Disk>, root: &Path, bytes: u64) -> Result<()> {
        let path = layout::ballast(root);
        let fail = |operation| move |e| Error::io(operation, "ballast", e);
        // Another process may have filled it meanwhile.
        let found = disk.meta(&path).map_err(fail("look at"))?;
        if found.is_some_and(|meta| meta.len >= bytes) {
            return Ok(());
        }
        match disk.unlink(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(fail("replace")(e)),
        }
        let file = disk.open(&path, Access::CreateNew).map_err(fail("create"))?;
        // Not zeros: a file system that elides them would keep no space.
        let slice: Vec<u8> =
            (0..64 << 10).map(|i: u32| (i.wrapping_mul(167) >> 3) as u8 | 1).collect();
        let mut offset = 0;
        while offset < bytes {
            let n = (bytes - offset).min(slice.len() as u64);
            write_all_at(&*file, &slice[..n as usize], offset).map_err(fail("write"))?;
            offset += n;
        }
        file.sync_data().map_err(fail("sync"))
    }
}

fn free(disk: &Arc<dyn Disk>, root: &Path) -> Result<u64> {
    Ok(disk.space(root).map_err(|e| Error::io("measure", root.display(), e))?.free)
}
