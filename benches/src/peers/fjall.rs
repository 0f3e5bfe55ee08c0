//! fjall: batches with `SyncData`, key-value separation for values of 1 KiB and more.

use std::ops::Range;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::{Each, Peer, Promise, Setup};
use crate::Outcome;
use crate::payload::Source;

pub struct Fjall {
    db: Database,
    records: Keyspace,
    mode: PersistMode,
}

/// Values from here on go to files of their own, as fjall itself advises.
const SEPARATED_BYTES_MIN: u64 = 1024;

impl Fjall {
    pub fn open(dir: &Path, setup: &Setup) -> Outcome<Self> {
        let db = Database::builder(dir.join("peer.fjall")).open()?;
        let is_large = setup.record_bytes >= SEPARATED_BYTES_MIN;
        let records = db.keyspace("r", || {
            let separation = is_large.then(KvSeparationOptions::default);
            KeyspaceCreateOptions::default().with_kv_separation(separation)
        })?;
        let mode = match setup.promise {
            Promise::Durable => PersistMode::SyncData,
            Promise::Written => PersistMode::Buffer,
        };
        Ok(Self { db, records, mode })
    }
}

impl Peer for Fjall {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let mut batch = self.db.batch().durability(Some(self.mode));
        for number in numbers {
            batch.insert(&self.records, number.to_be_bytes(), source.record(number));
        }
        Ok(batch.commit()?)
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let found = self.records.get(number.to_be_bytes())?;
        Ok(found.ok_or_else(|| format!("record {number} is missing"))?.to_vec())
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        for row in self.records.range(numbers.start.to_be_bytes()..numbers.end.to_be_bytes()) {
            let (key, record) = row.into_inner()?;
            each(u64::from_be_bytes(key.as_ref().try_into()?), &record)?;
        }
        Ok(())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.records.len()? as u64)
    }
}
