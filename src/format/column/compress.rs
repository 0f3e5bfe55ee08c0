//! zstd at one pinned level, so that equal input gives equal bytes.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// The level; levels above 3 gain next to nothing on what is stored here.
pub const ZSTD_LEVEL: i32 = 1;

/// Compresses block after block, keeping its working memory between them.
pub struct Compressor(zstd::bulk::Compressor<'static>);

impl Compressor {
    /// Sets the working memory up.
    ///
    /// # Errors
    /// `LimitExceeded` when it cannot be had.
    pub fn new() -> Result<Self> {
        zstd::bulk::Compressor::new(ZSTD_LEVEL).map(Self).map_err(refused)
    }

    /// Compresses `raw`.
    ///
    /// # Errors
    /// `LimitExceeded` when memory for it cannot be had.
    pub fn compress(&mut self, raw: &[u8]) -> Result<Vec<u8>> {
        self.0.compress(raw).map_err(refused)
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compressor").finish_non_exhaustive()
    }
}

fn refused(source: std::io::Error) -> Error {
    let kind = ErrorKind::LimitExceeded;
    Error::new(kind, "compress", "block", "zstd refused").with_source(source)
}

/// Decompresses `stored` into exactly `raw_len` bytes. The caller has bounded `raw_len`.
///
/// # Errors
/// `Damage` for anything but a frame of that length.
pub fn decompress(stored: &[u8], raw_len: usize) -> Result<Vec<u8>> {
    let raw = zstd::bulk::decompress(stored, raw_len)
        .map_err(|e| Error::damage("decompress", "block", "zstd refused").with_source(e))?;
    if raw.len() != raw_len {
        let cause = format!("{} bytes instead of {raw_len}", raw.len());
        return Err(Error::damage("decompress", "block", cause));
    }
    Ok(raw)
}
