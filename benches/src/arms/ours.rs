//! A sealstone store whose disk operations are counted.

use std::path::Path;
use std::sync::Arc;

use sealstone::ids::StreamId;
use sealstone::vfs::{RealDisk, TraceDisk};
use sealstone::{Options, Store};

use crate::Outcome;
use crate::payload::{Payload, sample};

pub struct Ours {
    pub store: Store,
    disk: TraceDisk,
    syncs: u64,
}

impl Ours {
    /// A new store in `dir`.
    pub fn create(dir: &Path) -> Outcome<Self> {
        Self::with(|options| options.create(dir.join("run.stone")))
    }

    /// The one that is there.
    pub fn open(dir: &Path) -> Outcome<Self> {
        Self::with(|options| options.open(dir.join("run.stone")))
    }

    fn with(open: impl FnOnce(Options) -> sealstone::Result<Store>) -> Outcome<Self> {
        let disk = TraceDisk::counting(RealDisk::new());
        let store = open(Store::options().disk(Arc::new(disk.clone())))?;
        Ok(Self { store, disk, syncs: 0 })
    }

    /// What is counted from here on is the work.
    pub fn begin(&mut self) {
        self.syncs = self.disk.counts().syncs();
    }

    /// Syncs since [`begin`](Self::begin), of data, of directories and of the manifest.
    pub fn syncs(&self) -> f64 {
        (self.disk.counts().syncs() - self.syncs) as f64
    }
}

/// Reads some records of what was appended to `streams`, in another opening, and counts them all.
/// Each record says its own number, below `count`.
pub fn check_tails(dir: &Path, streams: &[StreamId], count: u64, bytes: usize) -> Outcome<()> {
    let store = Store::open(dir.join("run.stone"))?;
    let mut payload = Payload::new(bytes);
    let mut found = 0;
    for view in store.views(streams)? {
        found += view.tail.len() as u64;
        for at in sample(view.tail.len() as u64, 100) {
            let record = store.payload_bytes(&view.tail[at as usize].1)?;
            let number = number_of(&record, count)?;
            payload.check(number, &record)?;
        }
    }
    store.close()?;
    if found == count {
        Ok(())
    } else {
        Err(format!("{found} records of {count} are there").into())
    }
}

/// The number that a record says it has.
pub fn number_of(record: &[u8], count: u64) -> Outcome<u64> {
    let head = record.first_chunk().ok_or("a record came back too short")?;
    let number = u64::from_le_bytes(*head);
    if number < count {
        Ok(number)
    } else {
        Err(format!("no record has the number {number}").into())
    }
}
