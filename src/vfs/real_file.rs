//! An open file of the real disk: positioned reads and writes, syncs, eviction.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};

use super::aligned::ALIGNMENT_BYTES;
use super::disk::{File, Identity, LockRange, Sharing};
use super::real::identity_of;
use super::real_lock;

/// An open file, with a second handle for direct writes where it has one.
#[derive(Debug)]
pub(super) struct RealFile {
    file: fs::File,
    direct: Option<fs::File>,
    /// The file system took the open but refuses the writes.
    direct_refused: AtomicBool,
}

impl RealFile {
    pub(super) fn buffered(file: fs::File) -> Self {
        Self::with_direct(file, None)
    }

    pub(super) fn with_direct(file: fs::File, direct: Option<fs::File>) -> Self {
        Self { file, direct, direct_refused: AtomicBool::new(false) }
    }

    /// Writes past the page cache if everything is aligned; `None` where the write must be
    /// buffered.
    fn write_direct(&self, from: &[u8], offset: u64) -> Option<io::Result<usize>> {
        let direct = self.direct.as_ref()?;
        let unit = ALIGNMENT_BYTES;
        let aligned = !from.is_empty()
            && from.as_ptr().align_offset(unit) == 0
            && from.len().is_multiple_of(unit)
            && offset.is_multiple_of(unit as u64);
        if !aligned || self.direct_refused.load(Ordering::Relaxed) {
            return None;
        }
        match direct.write_at(from, offset) {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                self.direct_refused.store(true, Ordering::Relaxed);
                None
            }
            written => Some(written),
        }
    }
}

#[cfg(target_vendor = "apple")]
fn full_sync(file: &fs::File) -> io::Result<()> {
    // fsync stops at the drive's own cache there.
    nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_FULLFSYNC)?;
    Ok(())
}

/// Makes content and length durable, drive caches included.
pub(super) fn sync_data(file: &fs::File) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    return full_sync(file);
    #[cfg(not(target_vendor = "apple"))]
    file.sync_data()
}

/// Makes everything about a file or directory durable, drive caches included.
pub(super) fn sync_all(file: &fs::File) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    return full_sync(file);
    #[cfg(not(target_vendor = "apple"))]
    file.sync_all()
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn evict(file: &fs::File, offset: u64, len: u64) -> io::Result<()> {
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    let bounds = i64::try_from(offset).and_then(|offset| Ok((offset, i64::try_from(len)?)));
    let (offset, len) = bounds.map_err(io::Error::other)?;
    posix_fadvise(file, offset, len, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn evict(_file: &fs::File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn allocate(file: &fs::File, offset: u64, len: u64) -> io::Result<bool> {
    use nix::errno::Errno;
    use nix::fcntl::{FallocateFlags, fallocate};
    let bounds = i64::try_from(offset).and_then(|offset| Ok((offset, i64::try_from(len)?)));
    let (offset, len) = bounds.map_err(io::Error::other)?;
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, offset, len) {
        Ok(()) => Ok(true),
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &fs::File, _offset: u64, _len: u64) -> io::Result<bool> {
    Ok(false)
}

impl File for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        // The unit of this count, whatever the file system's blocks are.
        const UNIT_BYTES: u64 = 512;
        Ok(self.file.metadata()?.blocks().saturating_mul(UNIT_BYTES))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        allocate(&self.file, offset, len)
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity_of(&self.file.metadata()?))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        match self.write_direct(from, offset) {
            Some(written) => written,
            None => self.file.write_at(from, offset),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        sync_data(&self.file)
    }

    fn sync_all(&self) -> io::Result<()> {
        sync_all(&self.file)
    }

    fn evict(&self) -> io::Result<()> {
        // A length of 0 reaches to the end.
        evict(&self.file, 0, 0)
    }

    fn evict_range(&self, offset: u64, len: u64) -> io::Result<()> {
        evict(&self.file, offset, len)
    }

    fn try_lock(&self, range: LockRange, sharing: Sharing) -> io::Result<bool> {
        real_lock::try_lock(&self.file, range, sharing)
    }

    fn lock(&self, range: LockRange, sharing: Sharing) -> io::Result<()> {
        real_lock::lock(&self.file, range, sharing)
    }

    fn unlock(&self, range: LockRange) -> io::Result<()> {
        real_lock::unlock(&self.file, range)
    }

    fn is_locked(&self, range: LockRange) -> io::Result<bool> {
        real_lock::is_locked(&self.file, range)
    }
}
