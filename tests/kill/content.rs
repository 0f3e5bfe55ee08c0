//! What the stores here hold: everything follows from its place or from a number, so that any
//! process can tell right from wrong.

use std::path::Path;
use std::sync::Arc;

use sealstone::engine::{Options, Store, StreamView};
use sealstone::ids::StreamId;
use sealstone::manifest::{Reading, StreamRow};
use sealstone::vfs::Disk;
use sealstone::{Layout, Limits};

/// splitmix64.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(seed);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Payloads above this are sealed first.
const INLINE_MAX: u64 = 1000;

/// Record `sequence` of `stream`.
pub fn record(stream: StreamId, sequence: u64) -> Vec<u8> {
    let seed = stream.0.wrapping_mul(1_000_003) ^ sequence.wrapping_mul(0x5851_f42d_4c95_7f2d);
    let mut rng = Rng(seed);
    let len = match rng.below(200) {
        0 => INLINE_MAX + 1 + rng.below(3000),
        _ => rng.below(90),
    };
    let mut bytes = stream.0.to_le_bytes().to_vec();
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(noise(rng.next(), len as usize));
    bytes
}

/// A checkpoint's state: its seed, then noise of it.
pub fn state(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = seed.to_le_bytes().to_vec();
    bytes.extend(noise(seed, len));
    bytes
}

pub fn is_state(bytes: &[u8]) -> bool {
    let Some((seed, rest)) = bytes.split_first_chunk() else { return false };
    noise(u64::from_le_bytes(*seed), rest.len()) == rest
}

/// Records one behind the other, each with its length, as the content of a chunk.
pub fn encode(stream: StreamId, sequences: std::ops::Range<u64>) -> Vec<u8> {
    let mut content = Vec::new();
    for sequence in sequences {
        let bytes = record(stream, sequence);
        content.extend((bytes.len() as u32).to_le_bytes());
        content.extend(bytes);
    }
    content
}

/// Bounds so small that files roll over, fill and are compacted all the time.
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.queue_bytes = 256 << 10;
    limits.linger_millis = 4;
    limits.journal_file_bytes = 24 << 10;
    limits.journal_budget_bytes = 64 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.frame_bytes_max = 64 << 10;
    limits.payload_inline_bytes_max = INLINE_MAX;
    limits.object_inline_bytes_max = 256;
    limits.block_bytes = 4 << 10;
    limits.sealed_file_bytes = 64 << 10;
    limits.compact_dead_percent = 20;
    limits.manifest_cache_bytes = 1 << 20;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.head_commits = 4;
    limits.receipts_max = 20;
    limits.owners_max = 40;
    limits
}

pub fn options(disk: Arc<dyn Disk>) -> Options {
    Store::options().limits(limits()).disk(disk)
}

/// The name of a store that is one file.
pub const ONE_FILE: &str = "one.stone";

/// How the store at `root` is made.
pub fn layout(root: &Path) -> Layout {
    if root.ends_with(ONE_FILE) { Layout::SingleFile } else { Layout::Directory }
}

/// A pair of streams whose records are appended, sealed and moved back together: at any instant both
/// have equally many.
pub type Pair = (StreamId, StreamId);

/// The pairs of a store, by name: `7a` goes with `7b`.
pub fn pairs(store: &Store) -> sealstone::Result<Vec<Pair>> {
    let rows = store.snapshot()?.list::<StreamRow>(.., usize::MAX)?;
    let other = |name: &str| {
        let name = format!("{}b", name.strip_suffix('a')?);
        rows.iter().find(|(_, row)| row.name == name).map(|(stream, _)| *stream)
    };
    Ok(rows.iter().filter_map(|(a, row)| Some((*a, other(&row.name)?))).collect())
}

/// Why a view does not verify.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An object of it went since it was taken: take a fresh one.
    Stale(String),
    /// What was read is not what was written.
    Torn(String),
}

impl Wrong {
    fn of(what: String, error: &sealstone::Error) -> Self {
        match error.kind() {
            sealstone::ErrorKind::NotFound => Self::Stale(format!("{what}: {error:?}")),
            _ => Self::Torn(format!("{what}: {error:?}")),
        }
    }
}

/// Reads a whole stream and compares each record with what it must be. Returns how many there are.
pub fn verify(store: &Store, view: &StreamView) -> Result<u64, Wrong> {
    let stream = view.stream;
    let mut next = 0;
    let torn = |text: String| Err(Wrong::Torn(text));
    for (ordinal, chunk) in &view.chunks {
        if chunk.first.0 != next {
            return torn(format!("chunk {ordinal} begins at {}, not {next}", chunk.first));
        }
        let fetched = store.fetch(chunk.object);
        let bytes = fetched.map_err(|e| Wrong::of(format!("chunk {ordinal}"), &e))?;
        let expected = encode(stream, next..next + chunk.records);
        // A chunk that was cut holds more than counts.
        if !bytes.starts_with(&expected) {
            return torn(format!("chunk {ordinal} does not hold records from {next}"));
        }
        next += chunk.records;
    }
    if next != view.row.sealed_upto.0 {
        return torn(format!("chunks end at {next}, sealed up to {}", view.row.sealed_upto));
    }
    for (sequence, payload) in &view.tail {
        if sequence.0 != next {
            return torn(format!("record {sequence} of the tail stands where {next} should"));
        }
        let read = store.payload_bytes(payload);
        if read.map_err(|e| Wrong::of(format!("record {next}"), &e))? != record(stream, next) {
            return torn(format!("record {next} has other bytes"));
        }
        next += 1;
    }
    Ok(next)
}
