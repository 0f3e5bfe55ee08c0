//! One journal file that still gets frames: what is in it, what of that is durable, and what an error
//! left of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::format::frame::{FrameHeader, FrameKind, HEADER_BYTES, Salt, body_checksum};
use crate::protection::Protection;
use crate::vfs::{File, Step, write_all_at};

use super::append::JournalConfig;
use super::queue::Queued;

/// Larger buffered writes cost more CPU, smaller ones more calls.
pub(super) const PIECE_BYTES: usize = 512 << 10;

/// A failure, and whether anything may be tried again.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// Nothing that was told is in doubt: tell it, keep the frames, try again when asked.
    Again(Error),
    /// What the disk holds is unknown.
    Fatal(Error),
}

impl Failure {
    pub fn again(operation: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Again(Error::io(operation, path.display(), source))
    }

    /// G14: a sync that failed may have dropped the pages it was to write; a second one that
    /// succeeds says nothing of them.
    pub fn of_sync(operation: &'static str, path: &Path, source: std::io::Error) -> Self {
        let error = Error::io(operation, path.display(), source);
        if Protection::HaltAfterFailedSync.is_on() {
            Self::Fatal(error)
        } else {
            Self::Again(error)
        }
    }

    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal(_))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Again(error)
    }
}

#[derive(Debug)]
pub(super) struct OpenFile {
    pub n: u64,
    pub path: PathBuf,
    pub salt: Salt,
    /// Its row is committed.
    pub registered: bool,
    file: Arc<dyn File>,
    /// Where the next frame goes: all before it was written whole.
    end: u64,
    synced: u64,
    /// Zeros lie from `end` to here, where nothing else was begun.
    prewritten: u64,
    /// Something behind `end` was written, or cut, that no sync covers.
    dirty: bool,
    /// A write failed for another reason than a full disk: no byte goes here any more.
    spoiled: bool,
    /// Its row may say where it ends: no frame goes behind that.
    ending: bool,
}

impl OpenFile {
    pub fn new(n: u64, path: PathBuf, file: Arc<dyn File>, salt: Salt, prewritten: u64) -> Self {
        let start = HEADER_BYTES as u64;
        Self {
            n,
            path,
            salt,
            registered: false,
            file,
            end: start,
            synced: start,
            prewritten,
            dirty: false,
            spoiled: false,
            ending: false,
        }
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether it takes no further frame.
    pub fn is_full(&self, file_bytes: u64) -> bool {
        self.spoiled || self.ending || self.end >= file_bytes
    }

    /// Writes the first frames of `run`, at least one, at most what one call to the disk should carry.
    /// Returns how many are in the file, or begun in it when the write failed.
    pub fn write_piece(
        &mut self,
        run: &[Queued],
        file_bytes: u64,
        buffer: &mut Vec<u8>,
    ) -> (usize, Result<(), Failure>) {
        buffer.clear();
        let (mut frames, mut end) = (0, self.end);
        for frame in run {
            if frames > 0 && (buffer.len() >= PIECE_BYTES || end >= file_bytes) {
                break;
            }
            self.put(buffer, end, FrameKind::Records, &frame.body, frame.body_checksum);
            end += frame.bytes();
            frames += 1;
        }
        let written = write_all_at(&*self.file, buffer, self.end);
        let result = match written {
            Ok(()) => {
                self.end = end;
                Ok(())
            }
            Err(e) => Err(self.failed_write(e, end)),
        };
        (frames, result)
    }

    /// Renews the zeros ahead: a sync of bytes that lie over written ones spares the file system its
    /// own journal.
    pub fn write_ahead(&mut self, config: &JournalConfig) {
        let limits = &config.limits;
        let ahead = self.end.saturating_add(limits.journal_prewrite_bytes);
        let upto = ahead.min(limits.journal_file_bytes);
        if self.end < self.prewritten || upto <= self.end {
            return;
        }
        config.disk.mark(Step::JournalPrewrite);
        self.dirty = true;
        match fill_with_zeros(&*self.file, self.end, upto) {
            Ok(()) => self.prewritten = upto,
            // The frames are there: the next ones will find out whether the disk is full.
            Err(e) => drop(self.failed_write(e, self.end)),
        }
    }

    /// Makes all that is written durable.
    pub fn sync(&mut self, config: &JournalConfig) -> Result<(), Failure> {
        config.disk.mark(Step::AppendSync);
        if Protection::JournalSyncBeforeAck.is_on() {
            // P1: nothing is told *Durable* before this returned.
            self.file.sync_data().map_err(|e| Failure::of_sync("sync", &self.path, e))?;
        }
        self.synced = self.end;
        self.dirty = false;
        Ok(())
    }

    /// States behind the last frame that all before it is durable. The next frame takes its place;
    /// until then damage to the last acknowledged frames is not taken for a tear. Not synced: after
    /// a power cut it may be missing.
    pub fn state_synced(&mut self, buffer: &mut Vec<u8>) {
        if self.spoiled || self.ending || self.synced != self.end {
            return;
        }
        buffer.clear();
        self.put(buffer, self.end, FrameKind::Synced, &[], body_checksum(&[]));
        self.dirty = true;
        if let Err(e) = write_all_at(&*self.file, buffer, self.end) {
            // No frame is missing: a file that is in doubt gets none any more.
            drop(self.failed_write(e, self.end));
        }
    }

    /// Cuts what lies behind the last frame and makes the rest durable. No frame follows.
    pub fn settle(&mut self, config: &JournalConfig) -> Result<(), Failure> {
        self.ending = true;
        if !self.spoiled && (self.dirty || self.prewritten > self.end) {
            // Only space: where the cut fails or is lost, the end stands in the row.
            self.dirty = true;
            let _ = self.file.set_len(self.end);
            self.prewritten = self.end;
        }
        if self.synced < self.end || (self.dirty && !self.spoiled) {
            self.sync(config)?;
        }
        Ok(())
    }

    fn failed_write(&mut self, source: std::io::Error, begun: u64) -> Failure {
        let error = Error::io("write", self.path.display(), source);
        self.dirty = true;
        if !Protection::NewFileBehindTear.is_on() {
            self.end = begun;
        } else if error.kind() != ErrorKind::DiskFull {
            // A full disk leaves what was written before as it was. After anything else the file is
            // left alone, once a sync has told whether more is lost.
            self.spoiled = true;
        }
        Failure::Again(error)
    }

    fn put(&self, into: &mut Vec<u8>, offset: u64, kind: FrameKind, body: &[u8], sum: u32) {
        let header = FrameHeader::new(kind, body.len(), sum, self.synced);
        let end = into.len() + header.padded_len();
        into.extend_from_slice(&header.encode(&self.salt, offset));
        into.extend_from_slice(body);
        into.resize(end, 0);
    }
}

/// Writes zeros from `start` to `end`.
pub(super) fn fill_with_zeros(file: &dyn File, start: u64, end: u64) -> std::io::Result<()> {
    let zeros = [0; 16 << 10];
    let mut at = start;
    while at < end {
        let len = (end - at).min(zeros.len() as u64);
        write_all_at(file, &zeros[..len as usize], at)?;
        at += len;
    }
    Ok(())
}
