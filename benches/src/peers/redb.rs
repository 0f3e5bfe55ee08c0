//! redb as a record store: one table, one transaction for each append, durability *Immediate*.

use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase, ReadableTableMetadata, StorageBackend, TableDefinition};

use super::{Each, Peer};
use crate::Outcome;
use crate::payload::Source;

const RECORDS: TableDefinition<u64, &[u8]> = TableDefinition::new("r");

pub struct Redb {
    db: Database,
    quick_repair: bool,
    syncs: Arc<AtomicU64>,
}

impl Redb {
    /// With quick repair a commit costs more, and reopening after a kill less.
    pub fn open(dir: &Path, quick_repair: bool) -> Outcome<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let inner = FileBackend::new(file.open(dir.join("peer.redb"))?)?;
        let syncs = Arc::new(AtomicU64::new(0));
        let backend = Counting { inner, syncs: Arc::clone(&syncs) };
        let db = Database::builder().create_with_backend(backend)?;
        let transaction = db.begin_write()?;
        transaction.open_table(RECORDS)?;
        transaction.commit()?;
        syncs.store(0, Ordering::Relaxed);
        Ok(Self { db, quick_repair, syncs })
    }
}

impl Peer for Redb {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_quick_repair(self.quick_repair);
        {
            let mut table = transaction.open_table(RECORDS)?;
            for number in numbers {
                table.insert(number, source.record(number))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        let found = table.get(number)?.ok_or_else(|| format!("record {number} is missing"))?;
        Ok(found.value().to_vec())
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        for row in table.range(numbers)? {
            let (number, record) = row?;
            each(number.value(), record.value())?;
        }
        Ok(())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.db.begin_read()?.open_table(RECORDS)?.len()?)
    }

    fn syncs(&self) -> Option<u64> {
        Some(self.syncs.load(Ordering::Relaxed))
    }
}

/// redb's own file, with its syncs counted.
#[derive(Debug)]
struct Counting {
    inner: FileBackend,
    syncs: Arc<AtomicU64>,
}

impl StorageBackend for Counting {
    fn len(&self) -> Result<u64, io::Error> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> Result<(), io::Error> {
        self.inner.close()
    }
}
