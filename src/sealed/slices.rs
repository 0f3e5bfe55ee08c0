//! The file under a builder: gathers aligned slices and writes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::checksum_more;
use crate::error::{Error, ErrorKind, Result};
use crate::protection::Protection;
use crate::vfs::{AlignedBuffer, Disk, File, Step, write_all_at};

/// Bytes written at a time, and the memory that a [`Builder`](super::Builder) holds for them.
pub const SLICE_BYTES: usize = 512 << 10;

/// A file in tmp/ that grows.
#[derive(Debug)]
pub(super) struct Slices {
    disk: Arc<dyn Disk>,
    file: Arc<dyn File>,
    path: PathBuf,
    pid: u32,
    slice: AlignedBuffer,
    written: u64,
    failed: Option<Error>,
    synced: bool,
}

impl Slices {
    pub(super) fn new(disk: Arc<dyn Disk>, file: Arc<dyn File>, path: PathBuf) -> Self {
        Self {
            pid: disk.pid(),
            disk,
            file,
            path,
            slice: AlignedBuffer::with_capacity(SLICE_BYTES),
            written: 0,
            failed: None,
            synced: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes taken in so far.
    pub(super) fn len(&self) -> u64 {
        self.written + self.slice.len() as u64
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.put_checked(bytes, 0).map(drop)
    }

    /// Takes in `bytes` and goes on with their checksum, piece by piece while they are near.
    pub(super) fn put_checked(&mut self, mut bytes: &[u8], mut crc: u32) -> Result<u32> {
        while !bytes.is_empty() {
            if self.slice.is_full() {
                self.write_slice()?;
            }
            let (piece, rest) = bytes.split_at(self.slice.fill(bytes));
            crc = checksum_more(crc, piece);
            bytes = rest;
        }
        Ok(crc)
    }

    fn write_slice(&mut self) -> Result<()> {
        self.check()?;
        if let Err(e) = write_all_at(&*self.file, self.slice.as_slice(), self.written) {
            // After an error on a file that writing it began, nothing is written to it again.
            return Err(self.fail("write", e));
        }
        self.written += self.slice.len() as u64;
        self.slice.clear();
        Ok(())
    }

    /// Writes what is left and syncs; the length of the file.
    pub(super) fn sync(&mut self) -> Result<u64> {
        self.write_slice()?;
        self.disk.mark(Step::SealSync);
        // P3: the bytes are durable before any name, and so before any row, points at them.
        if Protection::PayloadSyncBeforeCommit.is_on()
            && let Err(e) = self.file.sync_data()
        {
            return Err(self.fail("sync", e));
        }
        self.synced = true;
        Ok(self.written)
    }

    fn check(&self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // G18: a forked child shares the file, but not its place in it.
        if self.disk.pid() != self.pid {
            let cause = "the builder belongs to the parent process";
            return Err(Error::new(ErrorKind::Forked, "seal", self.path.display(), cause));
        }
        Ok(())
    }

    fn fail(&mut self, operation: &'static str, source: std::io::Error) -> Error {
        let error = Error::io(operation, self.path.display(), source);
        self.failed = Some(error.clone());
        error
    }

    pub(super) fn misuse(&self, cause: &'static str) -> Error {
        Error::invalid("seal", self.path.display(), cause)
    }
}

impl Drop for Slices {
    fn drop(&mut self) {
        if !self.synced && self.disk.pid() == self.pid {
            // Whatever goes wrong here, the sweep of tmp/ comes again once the owner has ended.
            let _ = self.disk.unlink(&self.path);
        }
    }
}
