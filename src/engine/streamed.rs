//! One content on its way into a file of its own: hashed, perhaps compressed, and never in memory as a whole.

use super::seal::Part;
use crate::digest::{Digest, Hasher};
use crate::error::Result;
use crate::format::framed::{self, Encoder};
use crate::sealed::{Builder, Extent};

/// Bytes that are looked at to tell whether compressing pays.
const SAMPLE_BYTES: usize = 1 << 20;

/// How its bytes are stored.
enum How {
    /// Not known yet: its first bytes.
    Held(Vec<u8>),
    Raw,
    Compressed(Box<Encoder>),
}

/// A content that comes piece by piece.
pub(super) struct Streamed {
    builder: Builder,
    hasher: Hasher,
    len: u64,
    how: How,
}

impl Streamed {
    pub(super) fn begin(mut builder: Builder, compress: bool) -> Result<Self> {
        builder.begin()?;
        let how = if compress { How::Held(Vec::new()) } else { How::Raw };
        Ok(Self { builder, hasher: Hasher::default(), len: 0, how })
    }

    pub(super) fn push(&mut self, piece: &[u8]) -> Result<()> {
        self.hasher.update(piece);
        self.len += piece.len() as u64;
        if let How::Held(held) = &mut self.how {
            held.extend_from_slice(piece);
            return if held.len() < SAMPLE_BYTES { Ok(()) } else { self.decide() };
        }
        self.store(piece)
    }

    fn store(&mut self, piece: &[u8]) -> Result<()> {
        match &mut self.how {
            How::Compressed(encoder) => encoder.push(piece, &mut |out| self.builder.push(out)),
            How::Raw | How::Held(_) => self.builder.push(piece),
        }
    }

    fn decide(&mut self) -> Result<()> {
        let How::Held(held) = std::mem::replace(&mut self.how, How::Raw) else { return Ok(()) };
        if framed::pays(&held) {
            self.how = How::Compressed(Box::new(Encoder::new()?));
        }
        self.store(&held)
    }

    /// That was all: the builder, what the content is, and where it is in the first file of its set.
    pub(super) fn end(mut self, about: &[u8]) -> Result<(Builder, Digest, u64, Part)> {
        if matches!(self.how, How::Held(_)) {
            self.decide()?;
        }
        let codec = match std::mem::replace(&mut self.how, How::Raw) {
            How::Compressed(encoder) => {
                encoder.finish(&mut |out| self.builder.push(out))?;
                framed::CODEC
            }
            How::Raw | How::Held(_) => 0,
        };
        let (digest, len) = (self.hasher.finish(), self.len);
        let at = self.builder.end(&Extent { digest, len, codec, about })?;
        let (offset, stored_len) = (at.offset, at.stored_len);
        let part = Part::Extent { file: 0, offset, stored_len, codec };
        Ok((self.builder, digest, len, part))
    }
}
