//! The disk and the compressor, and nothing else: blocks of 1 MiB by zstd-1 in one thread, a data sync at
//! each promise. The limit of one thread, not a store: nothing in it can be found again.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use zstd::bulk::{Compressor, decompress};

use super::{Each, Peer, Setup};
use crate::Outcome;
use crate::payload::Source;

const BLOCK_BYTES: usize = 1 << 20;

pub struct RawZstd {
    file: File,
    setup: Setup,
    compressor: Compressor<'static>,
    block: Vec<u8>,
    /// Where each block begins, and where the last one ends.
    places: Vec<u64>,
    records: u64,
}

impl RawZstd {
    pub fn open(dir: &Path, setup: &Setup) -> Outcome<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Self {
            file: options.open(dir.join("raw"))?,
            setup: *setup,
            compressor: Compressor::new(1)?,
            block: Vec::with_capacity(BLOCK_BYTES),
            places: vec![0],
            records: 0,
        })
    }

    fn end(&self) -> u64 {
        self.places.last().copied().unwrap_or(0)
    }

    fn write_block(&mut self) -> Outcome<()> {
        let stored = self.compressor.compress(&self.block)?;
        let at = self.end();
        self.file.write_all_at(&stored, at)?;
        self.places.push(at + stored.len() as u64);
        self.block.clear();
        Ok(())
    }

    fn per_block(&self) -> u64 {
        BLOCK_BYTES as u64 / self.setup.record_bytes
    }

    fn read_block(&self, at: u64) -> Outcome<Vec<u8>> {
        let places = self.places.get(at as usize..at as usize + 2).ok_or("no such block")?;
        let mut stored = vec![0; (places[1] - places[0]) as usize];
        self.file.read_exact_at(&mut stored, places[0])?;
        Ok(decompress(&stored, BLOCK_BYTES)?)
    }
}

impl Peer for RawZstd {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        for number in numbers {
            self.block.extend_from_slice(source.record(number));
            self.records += 1;
            if self.block.len() as u64 == self.per_block() * self.setup.record_bytes {
                self.write_block()?;
            }
        }
        if !self.block.is_empty() {
            return Err("an append is whole blocks".into());
        }
        Ok(self.file.sync_data()?)
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let block = self.read_block(number / self.per_block())?;
        let at = (number % self.per_block() * self.setup.record_bytes) as usize;
        Ok(block[at..at + self.setup.record_bytes as usize].to_vec())
    }

    fn scan(&mut self, _: Range<u64>, _: &mut Each<'_>) -> Outcome<()> {
        Err("it is only written".into())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.records)
    }

    fn syncs(&self) -> Option<u64> {
        None
    }
}
