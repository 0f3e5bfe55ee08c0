//! Counts what was read back: a bit for each row of each producer, and a hash of all rows that does
//! not depend on their order.

use sealstone::staging::{Key, KeyPart};

use super::source::{PRODUCERS, ROW_BYTES, Source, mix};

/// Rows that were read, whoever read them.
#[derive(Debug, Clone)]
pub struct Tally {
    source: Source,
    /// A bit for each row, of each producer.
    seen: Vec<Vec<u64>>,
    counts: [u64; PRODUCERS],
    hashes: u64,
    /// The first rows that were there before, as (producer, number).
    pub twice: Vec<(usize, u64)>,
    /// Bytes that are no row, and rows under a key that is not theirs.
    pub strange: Vec<String>,
}

/// Adds the hash of `row` to those of others, in whatever order.
fn add(hashes: u64, row: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap());
    hashes.wrapping_add(mix(word(0) ^ mix(word(8) ^ mix(word(12)))))
}

impl Tally {
    pub fn new(source: Source) -> Self {
        Self {
            source,
            seen: vec![Vec::new(); PRODUCERS],
            counts: [0; PRODUCERS],
            hashes: 0,
            twice: Vec::new(),
            strange: Vec::new(),
        }
    }

    /// Rows taken in.
    pub fn rows(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Takes in `bytes`, found under `key` and said to be `rows` rows.
    pub fn take(&mut self, key: &Key, bytes: &[u8], rows: u64) {
        if bytes.len() as u64 != rows * ROW_BYTES as u64 {
            self.strange(format!("{key}: {} bytes are said to be {rows} rows", bytes.len()));
        }
        let mut last = None;
        for row in bytes.chunks(ROW_BYTES) {
            let Some((producer, n)) = self.source.read(row) else {
                self.strange(format!("{key}: {row:?} is no row"));
                continue;
            };
            let batch = (producer, n / self.source.rows + 1);
            if last != Some(batch) {
                last = Some(batch);
                let own = self.source.key(batch.0, batch.1);
                if own != *key {
                    self.strange(format!("row {n} of {producer} is under {key}, not {own}"));
                }
            }
            self.hashes = add(self.hashes, row);
            self.counts[producer] += 1;
            let (at, bit) = ((n / 64) as usize, 1 << (n % 64));
            let seen = &mut self.seen[producer];
            if seen.len() <= at {
                seen.resize(at + 1, 0);
            }
            if seen[at] & bit != 0 && self.twice.len() < 10 {
                self.twice.push((producer, n));
            }
            seen[at] |= bit;
        }
    }

    fn strange(&mut self, what: String) {
        if self.strange.len() < 10 {
            self.strange.push(what);
        }
    }

    /// Compares with every row of the first `batches` of each producer, and no other.
    pub fn compare(&self, batches: &[u64]) -> Result<(), String> {
        if !self.strange.is_empty() {
            return Err(format!("strange: {:?}", self.strange));
        }
        if !self.twice.is_empty() {
            return Err(format!("rows that are there twice: {:?}", self.twice));
        }
        let mut hashes = 0;
        for (producer, batches) in batches.iter().enumerate() {
            let rows = batches * self.source.rows;
            let is_there = |n: u64| {
                let word = self.seen[producer].get((n / 64) as usize).copied().unwrap_or(0);
                word & (1 << (n % 64)) != 0
            };
            if let Some(missing) = (0..rows).find(|n| !is_there(*n)) {
                let has = self.counts[producer];
                return Err(format!(
                    "row {missing} of producer {producer} is missing; {has} of {rows} are there"
                ));
            }
            if self.counts[producer] != rows {
                let has = self.counts[producer];
                return Err(format!("producer {producer} has {has} rows, {rows} were accepted"));
            }
            hashes = (0..rows).fold(hashes, |hashes, n| add(hashes, &self.source.row(producer, n)));
        }
        match hashes == self.hashes {
            true => Ok(()),
            false => Err("the hashes of the rows differ".to_owned()),
        }
    }

    /// How many batches of each producer are there. Fails where one is there in part, or behind one
    /// that is not.
    pub fn batches(&self) -> Result<[u64; PRODUCERS], String> {
        let batches = self.counts.map(|rows| rows / self.source.rows);
        self.compare(&batches).map(|()| batches)
    }
}

/// Does the tally see a row that is missing, one that is there twice, one under another key, one that
/// changed, and half a batch?
#[test]
fn stg32_the_tally_sees_what_is_wrong() {
    let source = Source { seed: 7, rows: 10, minute: 8 };
    let whole = || {
        let mut tally = Tally::new(source);
        for (producer, sequence) in [(0, 1), (0, 2), (1, 2), (1, 1), (3, 1)] {
            let key = source.key(producer, sequence);
            tally.take(&key, &source.batch(producer, sequence), 10);
        }
        tally
    };
    whole().compare(&[2, 2, 0, 1]).unwrap();
    assert_eq!(whole().batches().unwrap(), [2, 2, 0, 1]);
    assert!(whole().compare(&[2, 2, 0, 2]).unwrap_err().contains("missing"));
    assert!(whole().compare(&[2, 1, 0, 1]).unwrap_err().contains("were accepted"));
    let (key, batch) = (source.key(2, 1), source.batch(2, 1));
    let mut half = whole();
    half.take(&key, &batch[..ROW_BYTES * 5], 5);
    assert!(half.batches().is_err());
    let mut twice = whole();
    twice.take(&source.key(3, 1), &source.batch(3, 1), 10);
    assert!(twice.compare(&[2, 2, 0, 1]).unwrap_err().contains("twice"));
    let mut elsewhere = whole();
    let other = Key::new([KeyPart::Text("other".to_owned())]);
    elsewhere.take(&other, &batch, 10);
    assert!(elsewhere.compare(&[2, 2, 1, 1]).unwrap_err().contains("strange"));
    let mut changed = whole();
    let mut other = batch.clone();
    other[ROW_BYTES + 13] ^= 1;
    changed.take(&key, &other, 10);
    assert!(changed.compare(&[2, 2, 1, 1]).unwrap_err().contains("no row"));
    let mut short = whole();
    short.take(&key, &batch, 9);
    assert!(short.compare(&[2, 2, 1, 1]).unwrap_err().contains("9 rows"));
}
