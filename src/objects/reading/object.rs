//! Object: immutable bytes that a reader holds on to.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use super::reader::{ObjectReader, READ_AHEAD_BYTES, Windows};
use crate::digest::Digest;
use crate::engine::{Pin, Run};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;

/// The most bytes that [`Object::bytes`] and [`Object::range`] give at once.
pub const IN_MEMORY_BYTES_MAX: u64 = 1 << 30;

/// An object that was got. As long as it is held, its bytes stay where they are in this process, also
/// when nothing refers to them any more: do not hold it for longer than it is needed. Cheap to clone,
/// usable from any thread; it keeps the store open.
#[derive(Debug, Clone)]
pub struct Object {
    pub(super) pin: Arc<Pin>,
    pub(super) id: ObjectId,
    digest: Digest,
    len: u64,
}

impl Object {
    pub(super) fn new(pin: Pin, id: ObjectId, digest: Digest) -> Self {
        let len = pin.len_of(id).unwrap_or_default();
        Self { pin: Arc::new(pin), id, digest, len }
    }

    /// Names its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of its bytes, each of which passed its checksum.
    ///
    /// # Errors
    /// `LimitExceeded` above [`IN_MEMORY_BYTES_MAX`]: read it in ranges or as a stream; `Damage`, which
    /// names file and offset; `Conflict` when another process gave it back meanwhile: get it again;
    /// `Io`, `Halted`, `Closed`.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        self.range(0..self.len)
    }

    /// Bytes `range` of it, each of which passed its checksum. No more is read than the blocks that hold
    /// them.
    ///
    /// # Errors
    /// As [`Object::bytes`]; `Invalid` for a range beyond its end.
    pub fn range(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let len = range.end.saturating_sub(range.start);
        if len > IN_MEMORY_BYTES_MAX {
            let cause = format!(
                "{len} bytes, and {IN_MEMORY_BYTES_MAX} at most are read at once; read it as a stream"
            );
            return Err(Error::new(ErrorKind::LimitExceeded, "read", self.digest, cause));
        }
        self.pin.fetch_run(self.id, range, &mut Run::default())
    }

    /// A stream of its bytes, from the first on. Memory: [`READ_AHEAD_BYTES`](super::READ_AHEAD_BYTES),
    /// however long it is.
    pub fn reader(&self) -> ObjectReader {
        self.reader_with(READ_AHEAD_BYTES)
    }

    /// As [`Object::reader`], which reads `read_ahead_bytes` at a time and holds them: fewer for one who
    /// goes to and fro, more where each read costs much. From 1 to [`IN_MEMORY_BYTES_MAX`]; what is beyond
    /// counts as these.
    pub fn reader_with(&self, read_ahead_bytes: u64) -> ObjectReader {
        ObjectReader::new(self.clone(), read_ahead_bytes.clamp(1, IN_MEMORY_BYTES_MAX))
    }

    /// Writes its bytes to `to`, in the memory of a stream; how many.
    ///
    /// # Errors
    /// As [`Object::bytes`], but for its bound; `Io` and `DiskFull` when `to` refuses. What was written
    /// before an error passed its checksums.
    pub fn write_to(&self, to: &mut impl Write) -> Result<u64> {
        let mut windows = Windows::default();
        let mut at = 0;
        while at < self.len {
            let window = windows.at(self, at)?;
            to.write_all(window).map_err(|e| Error::io("write", self.digest, e))?;
            at = at.saturating_add(window.len() as u64);
        }
        Ok(at)
    }
}
