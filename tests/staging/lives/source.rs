//! What producers of these tests produce: every row follows from its producer and its number, so that
//! whoever reads one back knows whether it is right, whose it is, and under which key it belongs.

use sealstone::staging::{Key, KeyPart, KeyShape};

/// Producers side by side.
pub const PRODUCERS: usize = 4;

/// Bytes of a row: producer, number, a hash of both.
pub const ROW_BYTES: usize = 20;

/// splitmix64, which also mixes numbers into hashes.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Every bit of `z` changes every bit of what comes back.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seeded source of batches: batch 1 of a producer is its first.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub seed: u64,
    /// Rows of a batch.
    pub rows: u64,
    /// Batches of one producer that have one minute.
    pub minute: u64,
}

impl Source {
    /// Row `n` of `producer`.
    pub fn row(&self, producer: usize, n: u64) -> [u8; ROW_BYTES] {
        let mut row = [0; ROW_BYTES];
        row[..4].copy_from_slice(&(producer as u32).to_le_bytes());
        row[4..12].copy_from_slice(&n.to_le_bytes());
        let hash = mix(self.seed ^ mix(n ^ (producer as u64) << 56));
        row[12..].copy_from_slice(&hash.to_le_bytes());
        row
    }

    /// The bytes of batch `sequence` of `producer`.
    pub fn batch(&self, producer: usize, sequence: u64) -> Vec<u8> {
        let first = (sequence - 1) * self.rows;
        (first..first + self.rows).flat_map(|n| self.row(producer, n)).collect()
    }

    /// Whose row this is and which, if it is one.
    pub fn read(&self, row: &[u8]) -> Option<(usize, u64)> {
        let producer = u32::from_le_bytes(row.get(..4)?.try_into().ok()?) as usize;
        let n = u64::from_le_bytes(row.get(4..12)?.try_into().ok()?);
        (producer < PRODUCERS && row == self.row(producer, n)).then_some((producer, n))
    }

    /// The minute of a batch: one in five comes late, for the minute before.
    pub fn minute(&self, producer: usize, sequence: u64) -> i64 {
        let is_late = mix(self.seed ^ sequence ^ (producer as u64) << 48).is_multiple_of(5);
        let minute = sequence / self.minute;
        (if is_late { minute.saturating_sub(1) } else { minute }) as i64
    }

    /// The key of a batch. Two producers share each.
    pub fn key(&self, producer: usize, sequence: u64) -> Key {
        let site = KeyPart::Text(format!("site-{}", producer % 2));
        Key::new([site, KeyPart::Minute(self.minute(producer, sequence))])
    }
}

/// The shape of those keys.
pub fn shape() -> KeyShape {
    KeyShape::new().text("site").minute("minute")
}

/// The name of a producer.
pub fn name(producer: usize) -> String {
    format!("producer-{producer}")
}
