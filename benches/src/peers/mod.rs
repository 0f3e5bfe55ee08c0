//! The peers as record stores: a number names a record.

mod fjall;
mod group;
mod mcap;
mod parquet;
mod raw;
mod raw_zstd;
mod redb;
mod sqlite;

use std::ops::Range;
use std::path::Path;

pub use group::Group;

use crate::Outcome;
use crate::payload::Source;

/// How sure a record is when [`Peer::append`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// It survives the death of the process.
    Written,
    /// It survives a power cut.
    Durable,
}

/// What a peer is set up for.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub promise: Promise,
    pub record_bytes: u64,
    /// All that will be appended.
    pub records: u64,
}

/// What is shown each record of a range, with its number.
pub type Each<'a> = dyn FnMut(u64, &[u8]) -> Outcome<()> + 'a;

/// A record store.
pub trait Peer: Send {
    /// Appends the records of these numbers as one whole and keeps the promise before it returns.
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()>;
    /// All is appended. A file that can be read only now becomes durable now.
    fn finish(&mut self) -> Outcome<()> {
        Ok(())
    }
    /// The record with this number.
    fn read(&mut self, number: u64) -> Outcome<Vec<u8>>;
    /// Shows the records of these numbers, in order.
    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()>;
    /// How many records there are.
    fn count(&mut self) -> Outcome<u64>;
    /// Syncs so far, where they are counted.
    fn syncs(&self) -> Option<u64> {
        None
    }
}

/// Opens the peer `arm` in `dir`, which exists; makes it where it is not there.
pub fn open(arm: &str, dir: &Path, setup: &Setup) -> Outcome<Box<dyn Peer>> {
    Ok(match arm {
        "raw" => Box::new(raw::Raw::open(dir, setup, raw::How::Grown)?),
        "raw-prewritten" => Box::new(raw::Raw::open(dir, setup, raw::How::Prewritten)?),
        "raw-direct" => Box::new(raw::Raw::open(dir, setup, raw::How::Direct)?),
        "sqlite" => Box::new(sqlite::Sqlite::open(dir, setup, false)?),
        "sqlite-tuned" => Box::new(sqlite::Sqlite::open(dir, setup, true)?),
        "redb" => Box::new(redb::Redb::open(dir, false)?),
        "redb-quick" => Box::new(redb::Redb::open(dir, true)?),
        "fjall" => Box::new(fjall::Fjall::open(dir, setup)?),
        "raw-zstd" => Box::new(raw_zstd::RawZstd::open(dir, setup)?),
        "mcap" => Box::new(mcap::Mcap::open(dir, false)?),
        "mcap-zstd" => Box::new(mcap::Mcap::open(dir, true)?),
        "parquet" => Box::new(parquet::Parquet::open(dir, false)?),
        "parquet-zstd" => Box::new(parquet::Parquet::open(dir, true)?),
        other => return Err(format!("no peer is called {other}").into()),
    })
}
