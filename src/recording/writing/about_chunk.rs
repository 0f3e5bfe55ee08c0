//! What a sealed file's footer says of a chunk, for salvage. The schema is in the chunk.

use serde::{Deserialize, Serialize};

use crate::codec;
use crate::error::Result;
use crate::format::column::EncodedChunk;

/// The version of its form.
const VERSION: u16 = 1;

/// Which chunk it is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AboutChunk {
    version: u16,
    stream: String,
    first: u64,
    records: u64,
    iterations: (i64, i64),
    times: Option<(f64, f64)>,
}

impl AboutChunk {
    pub fn new(stream: &str, first: u64, chunk: &EncodedChunk) -> Self {
        let EncodedChunk { records, iterations, times, .. } = *chunk;
        Self { version: VERSION, stream: stream.to_owned(), first, records, iterations, times }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        codec::encode("about", self)
    }
}
