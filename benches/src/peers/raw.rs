//! The disk itself: one file, positioned writes and data syncs. The limit, not a store.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use sealstone::vfs::AlignedBuffer;

use super::{Each, Peer, Promise, Setup};
use crate::Outcome;
use crate::payload::Source;

/// Larger buffered writes cost more processor time.
const SLICE_BYTES: usize = 512 << 10;
/// Bytes read at a time: they stay in the processor's cache until they are looked at.
const SCAN_BYTES: u64 = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The file grows with each write.
    Grown,
    /// Zeros were written and synced before: a sync has data to write and nothing else.
    Prewritten,
    /// Past the page cache, into a file that grows.
    Direct,
}

pub struct Raw {
    file: File,
    setup: Setup,
    slice: AlignedBuffer,
    end: u64,
    syncs: u64,
    how: How,
}

impl Raw {
    pub fn open(dir: &Path, setup: &Setup, how: How) -> Outcome<Self> {
        let flags = if how == How::Direct { OFlag::O_DIRECT.bits() } else { 0 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
        let file = options.open(dir.join("raw"))?;
        if how == How::Prewritten {
            let zeros = vec![0; SLICE_BYTES];
            let bytes = setup.record_bytes * setup.records;
            for at in (0..bytes).step_by(SLICE_BYTES) {
                let len = (bytes - at).min(SLICE_BYTES as u64);
                file.write_all_at(&zeros[..len as usize], at)?;
            }
            file.sync_all()?;
        }
        let slice = AlignedBuffer::with_capacity(SLICE_BYTES);
        let end = if how == How::Prewritten { 0 } else { file.metadata()?.len() };
        Ok(Self { file, setup: *setup, slice, end, syncs: 0, how })
    }

    fn write_slice(&mut self) -> Outcome<()> {
        let len = self.slice.len();
        if self.how == How::Direct {
            self.slice.pad();
        }
        self.file.write_all_at(self.slice.as_slice(), self.end)?;
        self.end += len as u64;
        self.slice.clear();
        Ok(())
    }
}

impl Peer for Raw {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        for number in numbers {
            let mut record = source.record(number);
            while !record.is_empty() {
                record = &record[self.slice.fill(record)..];
                if self.slice.is_full() {
                    self.write_slice()?;
                }
            }
        }
        if !self.slice.is_empty() {
            self.write_slice()?;
        }
        if self.setup.promise == Promise::Durable {
            self.file.sync_data()?;
            self.syncs += 1;
        }
        Ok(())
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let start = number * self.setup.record_bytes;
        let mut record = vec![0; self.setup.record_bytes as usize];
        if self.how != How::Direct {
            self.file.read_exact_at(&mut record, start)?;
            return Ok(record);
        }
        // A direct read wants all aligned: the page cache's view is asked instead.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.file));
        File::open(path)?.read_exact_at(&mut record, start)?;
        Ok(record)
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let bytes = self.setup.record_bytes;
        let some = (SCAN_BYTES / bytes).max(1);
        let mut held = vec![0; (some * bytes) as usize];
        for from in numbers.clone().step_by(some as usize) {
            let count = some.min(numbers.end - from);
            let held = &mut held[..(count * bytes) as usize];
            self.file.read_exact_at(held, from * bytes)?;
            for (number, record) in (from..).zip(held.chunks_exact(bytes as usize)) {
                each(number, record)?;
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.end / self.setup.record_bytes)
    }

    fn syncs(&self) -> Option<u64> {
        Some(self.syncs)
    }
}
