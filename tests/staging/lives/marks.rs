//! What an ingesting child tells its parent: how much it sent and how much is acknowledged, and that
//! it stands still inside a publication.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sealstone::vfs::{RealDisk, Step, TraceDisk};

use super::source::PRODUCERS;

/// The file of both, eight bytes for each number: sent, acknowledged, and whether it stands still.
pub struct Marks {
    file: File,
}

/// What it says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// The last batch of each producer that was begun.
    pub sent: [u64; PRODUCERS],
    /// The last one of each that is durable.
    pub acknowledged: [u64; PRODUCERS],
    /// It stands still, to be killed.
    pub is_stopped: bool,
}

impl Marks {
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
        Self { file }
    }

    fn write(&self, slot: usize, number: u64) {
        self.file.write_all_at(&number.to_le_bytes(), 8 * slot as u64).unwrap();
    }

    pub fn sent(&self, producer: usize, sequence: u64) {
        self.write(producer, sequence);
    }

    pub fn acknowledged(&self, producer: usize, sequence: u64) {
        self.write(PRODUCERS + producer, sequence);
    }

    fn stopped(&self, is_stopped: bool) {
        self.write(2 * PRODUCERS, u64::from(is_stopped));
    }

    pub fn read(path: &Path) -> Told {
        let bytes = std::fs::read(path).unwrap_or_default();
        let slot = |slot: usize| {
            let found = bytes.get(8 * slot..).and_then(|rest| rest.first_chunk::<8>());
            found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        Told {
            sent: std::array::from_fn(slot),
            acknowledged: std::array::from_fn(|producer| slot(PRODUCERS + producer)),
            is_stopped: slot(2 * PRODUCERS) != 0,
        }
    }
}

/// The real disk; once `is_armed`, the process stands still in its next publication of an output.
pub fn stopping(marks: &Path, is_armed: Arc<AtomicBool>) -> Arc<TraceDisk> {
    let disk = TraceDisk::counting(RealDisk::new());
    let marks = Marks::open(marks);
    marks.stopped(false);
    disk.on_mark(move |step| {
        if step == Step::OutputCommit && is_armed.load(Ordering::Relaxed) {
            marks.stopped(true);
            loop {
                std::thread::park();
            }
        }
    });
    Arc::new(disk)
}
