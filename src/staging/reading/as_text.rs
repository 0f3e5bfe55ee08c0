//! Rows of a view as lines of text.

use std::borrow::Cow;
use std::io::Read;

use super::batches::ReadBatch;
use crate::error::{Error, Result};
use crate::format::compressed::Decoder;
use crate::staging::shipped::JSON_LINES_ZSTD;

/// What is decompressed of an output of one view is as long as its bytes say, and no longer than this.
const TEXT_BYTES_MAX: u64 = 4 << 30;

impl ReadBatch {
    /// Its rows as text: of a batch that is UTF-8 its bytes, of an output that is JSON lines through zstd
    /// what it decompresses to; `None` for any other.
    ///
    /// # Errors
    /// `Damage` for an output that is no frame of zstd, or longer than 4 GiB.
    pub fn text(&self) -> Result<Option<Cow<'_, str>>> {
        if self.form != JSON_LINES_ZSTD {
            return Ok(std::str::from_utf8(&self.bytes).ok().map(Cow::Borrowed));
        }
        let damaged = |cause: &str| Error::damage("decompress", self.key.to_string(), cause);
        let mut text = String::new();
        let mut decoder = Decoder::new(&self.bytes[..])?.take(TEXT_BYTES_MAX.saturating_add(1));
        decoder
            .read_to_string(&mut text)
            .map_err(|e| damaged("it is no text in a frame of zstd").with_source(e))?;
        if text.len() as u64 > TEXT_BYTES_MAX {
            return Err(damaged("it is longer than any that is read at once"));
        }
        Ok(Some(Cow::Owned(text)))
    }
}
