//! ObjectReader: an object as a stream, a window of it in memory at a time.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use super::object::Object;
use crate::engine::Run;
use crate::error::{Error, ErrorKind, Result};

/// Bytes that a stream reads at a time, and holds.
pub const READ_AHEAD_BYTES: u64 = 1 << 20;

/// Reads an object from any place of it on. Every byte passed its checksum. An error carries an
/// [`Error`](crate::Error) of this crate inside; after it the same bytes may be asked for again.
#[derive(Debug)]
pub struct ObjectReader {
    object: Object,
    at: u64,
    windows: Windows,
}

/// One window of an object, which begins at a multiple of its length.
#[derive(Debug)]
pub(super) struct Windows {
    len: u64,
    begins: u64,
    bytes: Vec<u8>,
    run: Run,
}

impl Default for Windows {
    fn default() -> Self {
        Self::of(READ_AHEAD_BYTES)
    }
}

impl Windows {
    /// Windows of `len` bytes, at least one.
    fn of(len: u64) -> Self {
        Self { len, begins: 0, bytes: Vec::new(), run: Run::default() }
    }

    /// Bytes from `at`, which is before the end, as far as the window reaches: at least one.
    pub(super) fn at(&mut self, object: &Object, at: u64) -> Result<&[u8]> {
        if at < self.begins || at - self.begins >= self.bytes.len() as u64 {
            let begins = at - at % self.len.max(1);
            let ends = begins.saturating_add(self.len).min(object.len());
            // Its memory first, then that of the next one.
            self.bytes = Vec::new();
            self.bytes = object.pin.fetch_run(object.id, begins..ends, &mut self.run)?;
            self.begins = begins;
        }
        let from = usize::try_from(at - self.begins).ok();
        let rest = from.and_then(|from| self.bytes.get(from..)).filter(|rest| !rest.is_empty());
        rest.ok_or_else(|| Error::damage("read", object.digest(), "it ends before its length"))
    }
}

impl ObjectReader {
    pub(super) fn new(object: Object, read_ahead_bytes: u64) -> Self {
        Self { object, at: 0, windows: Windows::of(read_ahead_bytes) }
    }

    /// What it reads.
    pub fn object(&self) -> &Object {
        &self.object
    }
}

impl BufRead for ObjectReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.object.len() {
            return Ok(&[]);
        }
        self.windows.at(&self.object, self.at).map_err(outside)
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.at.saturating_add(amount as u64);
    }
}

impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl Seek for ObjectReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.object.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let cause = "a place before the first byte, or beyond any number";
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, cause))?;
        Ok(self.at)
    }
}

/// An error of this crate as one of the standard library's, with itself inside.
fn outside(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Damage => io::ErrorKind::InvalidData,
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
