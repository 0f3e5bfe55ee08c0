//! The raw bytes of an extent, whatever its codec.
//!
//! P6: each passed the checksum of its block, and where it is compressed that of its frame as well.

use std::cell::Cell;
use std::ops::Range;

use super::reader::Reader;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, ErrorKind, Result};
use crate::format::footer::CODEC_NONE;
use crate::format::framed;

/// Raw bytes that are read in one go where all are: a frame of compressed ones.
pub(crate) const STEP_BYTES: u64 = framed::FRAME_BYTES;

/// An extent, as a row or a footer tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Where it begins.
    pub(crate) offset: u64,
    /// What it takes there.
    pub(crate) stored_len: u64,
    /// The length of the raw bytes.
    pub(crate) len: u64,
    /// How they became the stored ones.
    pub(crate) codec: u8,
}

impl Reader {
    /// The raw bytes `range` of an extent; of a compressed one the frames that hold them are read.
    ///
    /// # Errors
    /// `Invalid` for a range beyond its end; `NewerFormat` for a codec that this release does not know;
    /// `Damage`, with the file and the place; `Io`.
    pub(crate) fn read_raw(&self, of: &Stored, range: &Range<u64>) -> Result<Vec<u8>> {
        let Stored { offset, stored_len, len, codec } = *of;
        if codec == CODEC_NONE && stored_len == len {
            return self.read_range(offset, stored_len, range.clone());
        }
        if codec == CODEC_NONE {
            let cause = format!("{len} bytes are stored raw in {stored_len}");
            return Err(Error::damage("read", self.at(offset), cause));
        }
        if codec != framed::CODEC {
            let cause = format!("bytes of codec {codec}, which this release does not know");
            return Err(Error::new(ErrorKind::NewerFormat, "read", self.at(offset), cause));
        }
        let is_told = Cell::new(false);
        let read = framed::read_range(stored_len, len, range, &mut |stored| {
            let read = self.read_range(offset, stored_len, stored);
            read.inspect_err(|_| is_told.set(true))
        });
        // What the blocks said has its place already.
        read.map_err(|e| if is_told.get() { e } else { self.placed(offset, e) })
    }

    /// The digest of the raw bytes of an extent, read in steps.
    ///
    /// # Errors
    /// As [`read_raw`](Self::read_raw).
    pub(crate) fn digest_of(&self, of: &Stored) -> Result<Digest> {
        let (mut hasher, mut at) = (Hasher::default(), 0);
        if of.len == 0 {
            self.read_raw(of, &(0..0))?;
        }
        while at < of.len {
            let end = at.saturating_add(STEP_BYTES).min(of.len);
            hasher.update(&self.read_raw(of, &(at..end))?);
            at = end;
        }
        Ok(hasher.finish())
    }
}
