//! Records of one length, the same for every arm: noise that no compressor shortens, or text that zstd
//! makes about three times shorter. No two are alike, so that no deduplication joins them.

use crate::Outcome;
use crate::text;

/// Bytes that records are cut from. Small, so that it counts for nothing in an arm's memory.
const POOL_BYTES: usize = 1 << 20;

/// Where an arm gets its records from.
pub trait Source {
    /// The record with this number.
    fn record(&mut self, number: u64) -> &[u8];
}

/// What records are made of.
enum Matter {
    /// A pool that they are cut from.
    Noise(Vec<u8>),
    /// Lines as a service logs them.
    Text,
}

/// Makes records of one length.
pub struct Payload {
    matter: Matter,
    record: Vec<u8>,
}

impl Payload {
    /// Records of noise.
    pub fn new(record_bytes: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut pool = Vec::with_capacity(POOL_BYTES + record_bytes);
        while pool.len() < POOL_BYTES + record_bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            pool.extend_from_slice(&state.to_le_bytes());
        }
        Self { matter: Matter::Noise(pool), record: vec![0; record_bytes] }
    }

    /// Records of text.
    pub fn text(record_bytes: usize) -> Self {
        Self { matter: Matter::Text, record: vec![0; record_bytes] }
    }

    /// Writes the record `number` into `into`, which has a record's length.
    pub fn fill(&self, number: u64, into: &mut [u8]) {
        match &self.matter {
            Matter::Noise(pool) => {
                let at = (number.wrapping_mul(7919) % POOL_BYTES as u64) as usize;
                into.copy_from_slice(&pool[at..at + into.len()]);
            }
            Matter::Text => text::fill(number, into),
        }
        into[..8].copy_from_slice(&number.to_le_bytes());
    }

    /// Fails unless `found` is the record `number`.
    pub fn check(&mut self, number: u64, found: &[u8]) -> Outcome<()> {
        if self.record(number) == found {
            return Ok(());
        }
        Err(format!("record {number} came back as other {} bytes", found.len()).into())
    }
}

impl Source for Payload {
    fn record(&mut self, number: u64) -> &[u8] {
        let mut record = std::mem::take(&mut self.record);
        self.fill(number, &mut record);
        self.record = record;
        &self.record
    }
}

/// So many numbers below `count`, evenly spread, the first and the last among them.
pub fn sample(count: u64, at_most: u64) -> impl Iterator<Item = u64> {
    let taken = count.min(at_most);
    (0..taken).map(move |i| if taken < 2 { 0 } else { i * (count - 1) / (taken - 1) })
}
