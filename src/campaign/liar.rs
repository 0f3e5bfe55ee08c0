//! A disk that does one thing wrong, once: what the simulated one, which keeps the contract with
//! the medium, never does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::vfs::sim::SimDisk;
use crate::vfs::{Access, AroundDisk, AroundFile, Disk, File};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// One byte of a write to this folder is another one, and nobody says so.
    FlippedWrite(&'static str),
    /// Half of a write to this folder is there, and an error is returned.
    TornWrite(&'static str),
    /// A sync of a file in this folder fails.
    FailedSync(&'static str),
}

/// The disk. It lies once, after it was armed.
#[derive(Debug, Clone)]
pub(super) struct Liar {
    inner: SimDisk,
    lie: Lie,
    armed: Arc<AtomicBool>,
    /// Occasions that pass before it lies.
    skipped: Arc<AtomicU64>,
}

impl Liar {
    pub(super) fn new(inner: &SimDisk, lie: Lie) -> Self {
        Self { inner: inner.clone(), lie, armed: Arc::default(), skipped: Arc::default() }
    }

    pub(super) fn arm(&self) {
        self.armed.store(true, Ordering::Release);
    }

    /// Lies at the occasion after so many.
    pub(super) fn arm_after(&self, skipped: u64) {
        self.skipped.store(skipped, Ordering::Release);
        self.arm();
    }

    pub(super) fn has_lied(&self) -> bool {
        !self.armed.load(Ordering::Acquire)
    }

    /// Whether now is the time, for a file of `folder`.
    fn strikes(&self, path: &Path, folder: &str) -> bool {
        let is_there = path.parent().and_then(Path::file_name).is_some_and(|name| name == folder);
        if !is_there || !self.armed.load(Ordering::Acquire) {
            return false;
        }
        let left = self.skipped.load(Ordering::Acquire);
        if left > 0 {
            self.skipped.store(left - 1, Ordering::Release);
            return false;
        }
        self.armed.swap(false, Ordering::AcqRel)
    }
}

#[derive(Debug)]
struct LyingFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    disk: Liar,
}

/// Writes shorter than this are statements and headers, and are left alone.
const WRITE_BYTES_MIN: usize = 64;

impl AroundFile for LyingFile {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        if from.len() < WRITE_BYTES_MIN {
            return self.inner.write_at(from, offset);
        }
        match self.disk.lie {
            Lie::FlippedWrite(folder) if self.disk.strikes(&self.path, folder) => {
                let mut other = from.to_vec();
                other[WRITE_BYTES_MIN / 2] ^= 0x10;
                self.inner.write_at(&other, offset)
            }
            Lie::TornWrite(folder) if self.disk.strikes(&self.path, folder) => {
                self.inner.write_at(&from[..from.len() / 2], offset)?;
                Err(io::Error::other("the drive gave up"))
            }
            _ => self.inner.write_at(from, offset),
        }
    }
    fn sync_data(&self) -> io::Result<()> {
        match self.disk.lie {
            Lie::FailedSync(folder) if self.disk.strikes(&self.path, folder) => {
                Err(io::Error::other("the drive gave up"))
            }
            _ => self.inner.sync_data(),
        }
    }
}

impl AroundDisk for Liar {
    fn inner(&self) -> &dyn Disk {
        &self.inner
    }
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, access)?;
        Ok(Arc::new(LyingFile { inner, path: path.to_owned(), disk: self.clone() }))
    }
}
