//! A store directory on a simulated disk, a journal in it, and someone who keeps its rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use sealstone::error::{Error, ErrorKind, Result};
use sealstone::format::frame::Salt;
use sealstone::format::layout;
use sealstone::ids::{CommitSeq, Epoch, Generation, OwnerId, Sequence, StoreId, StreamId};
use sealstone::journal::{
    Expect, FrameAt, Journal, JournalConfig, Payload, Record, Registrar, Scan, Tail, scan,
};
use sealstone::limits::Limits;
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, read_whole, write_all_at};

pub const STORE: StoreId = StoreId([1; 16]);
pub const OWNER: OwnerId = OwnerId([2; 16]);

/// A row of the manifest that the rig plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub n: u64,
    pub salt: Salt,
    pub end: Option<u64>,
}

/// Keeps rows in memory, and notes each commit in the event log of the disk.
#[derive(Default)]
pub struct Rows {
    pub rows: Mutex<Vec<Row>>,
    pub refuse: AtomicBool,
    pub panics: AtomicBool,
    disk: Option<SimDisk>,
}

impl Registrar for Rows {
    fn born(&self, n: u64, salt: Salt) -> Result<()> {
        assert!(!self.panics.load(Ordering::Relaxed), "a registrar that panics");
        if self.refuse.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "commit", "the row", "refused by the test"));
        }
        self.rows.lock().push(Row { n, salt, end: None });
        if let Some(disk) = &self.disk {
            disk.note([b"born ".as_slice(), &n.to_le_bytes(), &salt].concat());
        }
        Ok(())
    }

    fn finished(&self, n: u64, end: u64, _: &[(StreamId, Generation, Sequence)]) -> Result<()> {
        if self.refuse.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "commit", "the row", "refused by the test"));
        }
        for row in self.rows.lock().iter_mut().filter(|row| row.n == n) {
            row.end = Some(end);
        }
        if let Some(disk) = &self.disk {
            disk.note([b"done ".as_slice(), &n.to_le_bytes(), &end.to_le_bytes()].concat());
        }
        Ok(())
    }
}

pub struct Rig {
    pub disk: SimDisk,
    pub rows: Arc<Rows>,
    pub journal: Arc<Journal>,
}

pub fn root() -> &'static Path {
    Path::new("/run.stone")
}

pub fn path(n: u64) -> PathBuf {
    layout::journal(root(), OWNER, n)
}

/// Small bounds, so that every path is taken with few bytes.
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.journal_prewrite_bytes = 512;
    limits.journal_file_bytes = 4096;
    limits.background = false;
    limits
}

/// An empty store directory whose names are durable.
pub fn fresh_disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(root()).unwrap();
    disk.mkdir(&layout::journal_dir(root())).unwrap();
    disk.sync_dir(root()).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

impl Rig {
    pub fn new(limits: Limits) -> Self {
        Self::on(fresh_disk(7), limits)
    }

    pub fn on(disk: SimDisk, limits: Limits) -> Self {
        Self::through(disk.clone(), Arc::new(disk), limits)
    }

    /// The journal of another opening.
    pub fn owned_by(owner: OwnerId) -> Self {
        let disk = fresh_disk(7);
        Self::whole(disk.clone(), Arc::new(disk), limits(), owner)
    }

    /// The journal writes to `disk` through `door`.
    pub fn through(disk: SimDisk, door: Arc<dyn Disk>, limits: Limits) -> Self {
        Self::whole(disk, door, limits, OWNER)
    }

    fn whole(disk: SimDisk, door: Arc<dyn Disk>, limits: Limits, owner: OwnerId) -> Self {
        let rows = Arc::new(Rows { disk: Some(disk.clone()), ..Rows::default() });
        let config = JournalConfig {
            disk: door,
            root: root().to_owned(),
            store: STORE,
            owner,
            epoch: Epoch(3),
            limits,
            commit: Arc::new(|| CommitSeq(9)),
            first_n: 0,
            is_written_by_sync: false,
        };
        let journal = Arc::new(Journal::new(config, Arc::clone(&rows) as Arc<dyn Registrar>));
        Self { disk, rows, journal }
    }

    /// What a scan of file `n` finds by what its row says.
    pub fn scan(&self, n: u64) -> (Result<Scan>, Vec<Record>) {
        let row = self.rows.rows.lock().iter().find(|row| row.n == n).cloned();
        scan_on(&self.disk, n, row.as_ref())
    }

    /// All records of all files that have a row, in the order of the files, each scanned by its row.
    pub fn recover(&self) -> Vec<Record> {
        self.shown().expect("no file is damaged")
    }

    /// As `recover`, or `None` where a file is damaged.
    pub fn shown(&self) -> Option<Vec<Record>> {
        let mut all = Vec::new();
        for row in self.rows.rows.lock().iter() {
            let (found, mut records) = scan_on(&self.disk, row.n, Some(row));
            if matches!(found.ok()?.tail, Tail::Damaged { .. }) {
                return None;
            }
            all.append(&mut records);
        }
        Some(all)
    }

    /// The bytes of file `n`.
    pub fn bytes(&self, n: u64) -> Vec<u8> {
        read_whole(&*self.disk.open(&path(n), Access::Read).unwrap(), 1 << 30).unwrap()
    }

    pub fn salt(&self, n: u64) -> Salt {
        self.rows.rows.lock().iter().find(|row| row.n == n).unwrap().salt
    }
}

pub fn expect(n: u64, row: Option<&Row>) -> Expect {
    let (salt, end) = (row.map(|row| row.salt), row.and_then(|row| row.end));
    Expect { store: STORE, owner: OWNER, n, salt, end }
}

pub fn scan_on(disk: &dyn Disk, n: u64, row: Option<&Row>) -> (Result<Scan>, Vec<Record>) {
    let mut records = Vec::new();
    let mut last_end = 0;
    let found = scan(disk, &path(n), &expect(n, row), &mut |at: FrameAt, mut group| {
        assert!(at.offset >= last_end && at.end > at.offset && at.synced_up_to <= at.offset);
        last_end = at.end;
        records.append(&mut group);
        Ok(())
    });
    (found, records)
}

/// A disk on which journal file 0 holds `bytes`.
pub fn disk_with(bytes: &[u8]) -> SimDisk {
    let disk = fresh_disk(8);
    let file = disk.open(&path(0), Access::CreateNew).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    disk
}

/// A scan of `bytes` as file 0 with this salt in its row.
pub fn scan_bytes(bytes: &[u8], salt: Salt, end: Option<u64>) -> (Result<Scan>, Vec<Record>) {
    scan_on(&disk_with(bytes), 0, Some(&Row { n: 0, salt, end }))
}

pub fn record(stream: u64, sequence: u64, payload: &[u8]) -> Record {
    Record {
        stream: StreamId(stream),
        generation: Generation(0),
        sequence: Sequence(sequence),
        payload: Payload::Inline(payload.into()),
    }
}

/// Records `from..upto` of stream 1, one frame each, of lengths that differ.
pub fn numbered(from: u64, upto: u64) -> Vec<Record> {
    (from..upto)
        .map(|n| record(1, n, format!("{n}{}", "x".repeat(n as usize % 11)).as_bytes()))
        .collect()
}

/// Counts what lies in the journal folder.
pub trait ListJournals {
    /// How many names.
    fn list_journals(&self) -> usize;
}

impl ListJournals for SimDisk {
    fn list_journals(&self) -> usize {
        self.list(&layout::journal_dir(root())).unwrap().len()
    }
}
