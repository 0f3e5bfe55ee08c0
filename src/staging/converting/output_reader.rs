//! Reads an output, published or just sealed, from any byte on.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::{Pin, SealedSet};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;

/// Bytes read at a time.
const HELD_BYTES: u64 = 256 << 10;

/// Where the bytes are.
#[derive(Clone)]
enum Source {
    /// In an object that a row names.
    Kept { pin: Arc<Pin>, object: ObjectId },
    /// Sealed, and named by no row yet.
    Sealed(Sealed),
}

/// A sealed output while it is looked at; empty once it is published or dropped.
#[derive(Clone)]
pub(super) struct Sealed(Arc<Mutex<Option<SealedSet>>>);

impl Sealed {
    pub(super) fn new(set: SealedSet) -> Self {
        Self(Arc::new(Mutex::new(Some(set))))
    }

    /// Takes the set back: whoever kept a reader reads no more.
    pub(super) fn take(&self) -> Result<SealedSet> {
        self.0.lock().take().ok_or_else(gone)
    }

    fn len(&self) -> Result<u64> {
        let set = self.0.lock();
        set.as_ref().and_then(|set| set.lens().first().copied()).ok_or_else(gone)
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        self.0.lock().as_ref().ok_or_else(gone)?.read_back(0, range)
    }
}

fn gone() -> Error {
    let cause = "it was given for the length of a call, which is over";
    Error::new(ErrorKind::Closed, "read", "output", cause)
}

/// Reads an output. A clone reads on its own, from the same place on.
#[derive(Clone)]
pub struct OutputReader {
    source: Source,
    len: u64,
    at: u64,
    held: Vec<u8>,
    held_at: u64,
}

impl OutputReader {
    pub(in crate::staging) fn kept(pin: Pin, object: ObjectId, len: u64) -> Self {
        let source = Source::Kept { pin: Arc::new(pin), object };
        Self { source, len, at: 0, held: Vec::new(), held_at: 0 }
    }

    pub(super) fn sealed(sealed: &Sealed) -> Result<Self> {
        let len = sealed.len()?;
        let source = Source::Sealed(sealed.clone());
        Ok(Self { source, len, at: 0, held: Vec::new(), held_at: 0 })
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes `range`, verified; where the reader stands does not change.
    ///
    /// # Errors
    /// `Invalid` for a range beyond its end; `Damage`; `Conflict` when the output was retired and another
    /// process gave its bytes back; `Closed` for one that was given for the length of a call.
    pub fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>> {
        match &self.source {
            Source::Kept { pin, object } => pin.fetch_range(*object, range),
            Source::Sealed(sealed) => sealed.read(range),
        }
    }

    /// The next bytes, at most [`HELD_BYTES`]; none at the end.
    fn fill(&mut self) -> Result<&[u8]> {
        let within = self.at.checked_sub(self.held_at).filter(|at| *at < self.held.len() as u64);
        if within.is_none() && self.at < self.len {
            let end = self.at.saturating_add(HELD_BYTES).min(self.len);
            self.held = self.read_range(self.at..end)?;
            self.held_at = self.at;
        }
        let from = usize::try_from(self.at - self.held_at.min(self.at)).unwrap_or(usize::MAX);
        Ok(self.held.get(from..).filter(|_| self.at < self.len).unwrap_or_default())
    }
}

impl io::Read for OutputReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let found = self.fill().map_err(io::Error::other)?;
        let len = found.len().min(to.len());
        if let (Some(to), Some(found)) = (to.get_mut(..len), found.get(..len)) {
            to.copy_from_slice(found);
        }
        self.at += len as u64;
        Ok(len)
    }
}

impl io::BufRead for OutputReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill().map_err(io::Error::other)
    }

    fn consume(&mut self, amount: usize) {
        self.at = self.at.saturating_add(amount as u64).min(self.len);
    }
}

impl io::Seek for OutputReader {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
            io::SeekFrom::End(by) => self.len.checked_add_signed(by),
        };
        let Some(at) = at else {
            let cause = "a seek to before the first byte";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, cause));
        };
        self.at = at;
        Ok(at)
    }
}

impl fmt::Debug for OutputReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputReader")
            .field("len", &self.len)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}
