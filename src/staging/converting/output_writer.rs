//! Where a converter writes its output: into a temporary file, up to a bound.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Bytes gathered before they go on.
const HELD_BYTES: usize = 64 << 10;

/// Takes the bytes of an output, in order. The first error stays: whatever is written after it fails
/// too, and nothing is published.
pub struct OutputWriter<'a> {
    to: &'a mut (dyn FnMut(&[u8]) -> Result<()> + Send),
    held: Vec<u8>,
    len: u64,
    len_max: u64,
    has_failed: &'a AtomicBool,
    error: Option<Error>,
}

impl<'a> OutputWriter<'a> {
    pub(super) fn new(
        to: &'a mut (dyn FnMut(&[u8]) -> Result<()> + Send),
        len_max: u64,
        has_failed: &'a AtomicBool,
    ) -> Self {
        Self { to, held: Vec::new(), len: 0, len_max, has_failed, error: None }
    }

    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes `bytes` behind those that were written.
    ///
    /// # Errors
    /// `LimitExceeded` above the bound; `Cancelled` once another output of the group has failed; `Io`,
    /// `DiskFull`.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let result = self.take(bytes);
        if let Err(e) = &result {
            self.error.get_or_insert_with(|| e.clone());
        }
        result
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        check_group(self.has_failed)?;
        let len = self.len.saturating_add(bytes.len() as u64);
        if len > self.len_max {
            let cause = format!(
                "it would be longer than {} bytes; allow more, or fewer parts for each output",
                self.len_max
            );
            return Err(Error::new(ErrorKind::LimitExceeded, "convert", "output", cause));
        }
        self.len = len;
        if self.held.len() + bytes.len() <= HELD_BYTES {
            self.held.extend_from_slice(bytes);
            return Ok(());
        }
        self.pass_on()?;
        match bytes.len() < HELD_BYTES {
            true => self.held.extend_from_slice(bytes),
            false => (self.to)(bytes)?,
        }
        Ok(())
    }

    fn pass_on(&mut self) -> Result<()> {
        let passed = if self.held.is_empty() { Ok(()) } else { (self.to)(&self.held) };
        self.held.clear();
        passed
    }

    /// The first error, which the converter may have passed over.
    pub(super) fn check(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Ends the output: an error that the converter passed over is told here.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.check()?;
        self.pass_on().map(|()| self.len)
    }
}

/// Whether the group goes on: as soon as one output of it failed, no other is finished.
pub(super) fn check_group(has_failed: &AtomicBool) -> Result<()> {
    if has_failed.load(Ordering::Acquire) {
        let cause = "another output of its group has failed";
        return Err(Error::new(ErrorKind::Cancelled, "convert", "output", cause));
    }
    Ok(())
}

impl io::Write for OutputWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes).map(|()| bytes.len()).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for OutputWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputWriter").field("len", &self.len).finish_non_exhaustive()
    }
}
