//! Bytes of any length through zstd, piece by piece: one frame with its length unknown and its checksum
//! at its end, so that every zstd reads it. Memory does not follow the length.

use std::fmt;
use std::io::{self, BufReader, Read, Write};

use zstd::stream::read::Decoder as ZstdDecoder;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::error::{Error, ErrorKind, Result};

/// The level of what is published; levels above 3 gain next to nothing.
pub const PUBLISHED_LEVEL: i32 = 3;
/// The largest window that is set up for bytes from a disk: 8 MiB. Level 3 writes one of 2 MiB.
const WINDOW_LOG_MAX: u32 = 23;
/// Compressed bytes are handed on in pieces of about this size.
const PIECE_BYTES: usize = 128 << 10;

/// Compresses what is pushed, and hands it on. Equal bytes in equal order give equal bytes.
pub struct Encoder(ZstdEncoder<'static, Vec<u8>>);

impl Encoder {
    /// Sets the working memory up: a few MiB.
    ///
    /// # Errors
    /// `LimitExceeded` when it cannot be had.
    pub fn new() -> Result<Self> {
        let encoder = ZstdEncoder::new(Vec::with_capacity(2 * PIECE_BYTES), PUBLISHED_LEVEL);
        let mut encoder = encoder.map_err(refused)?;
        encoder.include_checksum(true).map_err(refused)?;
        Ok(Self(encoder))
    }

    /// Takes `raw` in. What is compressed by now goes to `out`.
    ///
    /// # Errors
    /// Those of `out`; `LimitExceeded` when memory cannot be had.
    pub fn push(&mut self, raw: &[u8], out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for piece in raw.chunks(PIECE_BYTES) {
            self.0.write_all(piece).map_err(refused)?;
            let compressed = self.0.get_mut();
            if compressed.len() >= PIECE_BYTES {
                out(compressed)?;
                compressed.clear();
            }
        }
        Ok(())
    }

    /// Ends the frame.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        out(&self.0.finish().map_err(refused)?)
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Encoder").finish_non_exhaustive()
    }
}

/// Reads what an [`Encoder`] wrote, and other frames one behind the other. An end within a frame is an
/// error, as is a checksum that does not fit.
pub struct Decoder<R: Read>(ZstdDecoder<'static, BufReader<R>>);

impl<R: Read> Decoder<R> {
    /// Reads compressed bytes from `from`.
    ///
    /// # Errors
    /// `LimitExceeded` when memory cannot be had.
    pub fn new(from: R) -> Result<Self> {
        let mut decoder = ZstdDecoder::new(from).map_err(refused)?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(refused)?;
        Ok(Self(decoder))
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl<R: Read> fmt::Debug for Decoder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoder").finish_non_exhaustive()
    }
}

fn refused(source: io::Error) -> Error {
    let kind = ErrorKind::LimitExceeded;
    Error::new(kind, "compress", "a stream", "zstd refused").with_source(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(raw: &[u8], step: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        let mut encoder = Encoder::new().unwrap();
        raw.chunks(step).for_each(|piece| encoder.push(piece, &mut out).unwrap());
        encoder.finish(&mut out).unwrap();
        bytes
    }

    fn read_back(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut raw = Vec::new();
        Decoder::new(bytes).unwrap().read_to_end(&mut raw).map(|_| raw)
    }

    fn text() -> Vec<u8> {
        let mut random = 7_u64;
        let line = |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{{\"n\":{}}}\n", random >> 24).into_bytes()
        };
        (0..200_000).flat_map(line).collect()
    }

    /// Does it come back, from one frame and from several, and is it the same whatever the pieces were?
    #[test]
    fn what_is_compressed_reads_back() {
        let raw = text();
        let bytes = compressed(&raw, raw.len());
        assert!(bytes.len() * 2 < raw.len());
        assert_eq!(read_back(&bytes).unwrap(), raw);
        assert_eq!(compressed(&raw, 1 << 20), bytes, "other pieces, other bytes");
        assert_eq!(read_back(&[bytes.clone(), bytes].concat()).unwrap(), raw.repeat(2));
        assert!(read_back(&compressed(&[], 1)).unwrap().is_empty());
    }

    /// Is a frame that ends early, or that was changed, an error and never a shorter text?
    #[test]
    fn a_torn_or_changed_frame_is_an_error() {
        let raw = text();
        let bytes = compressed(&raw, raw.len());
        for len in [1, 3, bytes.len() / 2, bytes.len() - 1] {
            assert!(read_back(&bytes[..len]).is_err(), "{len} bytes were enough");
        }
        for at in (0..bytes.len()).step_by(bytes.len() / 50) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(read_back(&changed).map_or(true, |found| found == raw), "byte {at}");
        }
    }

    /// Is memory bounded for a frame that asks for a window of 2 GiB?
    #[test]
    fn a_frame_that_asks_for_much_memory_is_refused() {
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
        assert!(read_back(&frame).is_err());
    }
}
