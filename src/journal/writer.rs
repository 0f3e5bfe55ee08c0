//! The leader's hands: files are begun, filled, synced and finished here, by one thread at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::{FrameHeader, FrameKind, HEADER_BYTES, Salt, body_checksum};
use crate::ids::{Generation, Sequence, StreamId};
use crate::protection::Protection;
use crate::vfs::{File, Step, write_all_at};

use super::birth::{self, Registrar};
use super::book::Book;
use super::commit::JournalConfig;
use super::queue::Queued;

/// Larger buffered writes cost more CPU, smaller ones more calls.
const PIECE_BYTES: usize = 512 << 10;

/// A file that [`finish`](super::Journal::finish) closed and that the registrar was not told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its number.
    pub n: u64,
    /// It is durable up to here, and nothing follows.
    pub end: u64,
    /// The lowest sequence of each stream and generation in it.
    pub first: Vec<(StreamId, Generation, Sequence)>,
}

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

/// A journal file that still gets frames.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub n: u64,
    pub salt: Salt,
    /// Its row is committed.
    pub registered: bool,
    path: PathBuf,
    file: Arc<dyn File>,
    /// Where the next frame goes: all before it was written whole.
    good: u64,
    synced: u64,
    /// Zeros lie from `good` to here.
    prewritten: u64,
    /// Something behind `good` was written that no sync covers.
    dirty: bool,
    /// A write failed for another reason than a full disk: no byte goes here any more.
    spoiled: bool,
}

impl OpenFile {
    pub fn new(n: u64, path: PathBuf, file: Arc<dyn File>, salt: Salt, prewritten: u64) -> Self {
        let start = HEADER_BYTES as u64;
        Self {
            n,
            salt,
            registered: false,
            path,
            file,
            good: start,
            synced: start,
            prewritten,
            dirty: false,
            spoiled: false,
        }
    }
}

/// What became of a run of frames.
#[derive(Debug, Default)]
pub(super) struct Appended {
    /// So many of its first frames are in the file.
    pub written: usize,
    /// The position of the last of which a part may be in a file.
    pub begun: u64,
    /// What stopped it.
    pub failure: Option<Failure>,
}

pub(super) struct Writer {
    config: Arc<JournalConfig>,
    registrar: Arc<dyn Registrar>,
    book: Arc<Mutex<Book>>,
    next_n: u64,
    open: Option<OpenFile>,
    /// The last frame written, and the last known durable.
    written_position: u64,
    synced_position: u64,
    buffer: Vec<u8>,
}

impl Writer {
    pub fn new(
        config: Arc<JournalConfig>,
        registrar: Arc<dyn Registrar>,
        book: Arc<Mutex<Book>>,
    ) -> Self {
        let next_n = config.first_n;
        Self {
            config,
            registrar,
            book,
            next_n,
            open: None,
            written_position: 0,
            synced_position: 0,
            buffer: Vec::new(),
        }
    }

    /// All that is written up to this position is durable.
    pub fn synced_position(&self) -> u64 {
        self.synced_position
    }

    /// Writes the frames of `run`, as many as the file takes, beginning a file where there is none.
    pub fn append(&mut self, run: &[Arc<Queued>]) -> Appended {
        let mut done = Appended::default();
        if !run.is_empty()
            && let Err(failure) = self.make_room().and_then(|()| self.fill(run, &mut done))
        {
            done.failure = Some(failure);
        }
        self.buffer.shrink_to(2 * PIECE_BYTES);
        done
    }

    fn make_room(&mut self) -> Result<(), Failure> {
        let full = |f: &OpenFile| f.spoiled || f.good >= self.config.limits.journal_file_bytes;
        if self.open.as_ref().is_some_and(full) {
            self.finish_open()?;
        }
        let file = match self.open.take() {
            Some(file) => file,
            None => {
                let n = self.next_n;
                // A name is used once, so that what a failed birth left behind cannot matter.
                self.next_n += 1;
                birth::create(&self.config, n)?
            }
        };
        let file = self.open.insert(file);
        if !file.registered {
            birth::register(&self.registrar, file)?;
            self.book.lock().open(file.n, file.path.clone(), file.good);
        }
        Ok(())
    }

    fn fill(&mut self, run: &[Arc<Queued>], done: &mut Appended) -> Result<(), Failure> {
        let Some(file) = self.open.as_mut() else { return Ok(()) };
        self.config.disk.mark(Step::AppendWrite);
        let mut left = run;
        while !left.is_empty() && file.good < self.config.limits.journal_file_bytes {
            self.buffer.clear();
            let mut taken = 0;
            let mut end = file.good;
            for frame in left {
                if self.buffer.len() >= PIECE_BYTES || end >= self.config.limits.journal_file_bytes
                {
                    break;
                }
                put_frame(&mut self.buffer, file, end, frame);
                end += frame.bytes();
                taken += 1;
            }
            let (piece, rest) = left.split_at(taken);
            done.begun = piece.last().map_or(done.begun, |frame| frame.position);
            if let Err(e) = write_all_at(&*file.file, &self.buffer, file.good) {
                return Err(file.failed_write(e, end));
            }
            file.good = end;
            done.written += taken;
            self.written_position = done.begun;
            let places = piece.iter().flat_map(|frame| frame.places.iter());
            self.book.lock().wrote(file.n, end, places);
            left = rest;
        }
        file.write_ahead(&self.config);
        Ok(())
    }

    /// Makes all that is written durable.
    pub fn sync(&mut self) -> Result<(), Failure> {
        let Some(file) = self.open.as_mut() else { return Ok(()) };
        self.config.disk.mark(Step::AppendSync);
        if Protection::JournalSyncBeforeAck.is_on() {
            // P1: nothing is told *Durable* before this returned.
            file.file.sync_data().map_err(|e| Failure::of_sync("sync", &file.path, e))?;
        }
        file.synced = file.good;
        file.dirty = false;
        self.synced_position = self.written_position;
        Ok(())
    }

    /// States behind the last frame that all before it is durable. The next frame takes its place;
    /// until then damage to the last acknowledged frames is not taken for a tear. Not synced: after
    /// a power cut it may be missing.
    pub fn state_synced(&mut self) {
        let Some(file) = self.open.as_mut() else { return };
        if file.spoiled || file.synced != file.good {
            return;
        }
        self.buffer.clear();
        put(&mut self.buffer, file, file.good, FrameKind::Synced, &[], body_checksum(&[]));
        match write_all_at(&*file.file, &self.buffer, file.good) {
            Ok(()) => file.dirty = true,
            Err(e) => drop(file.failed_write(e, file.good)),
        }
    }

    /// Syncs the open file and tells the registrar that it is finished.
    pub fn finish_open(&mut self) -> Result<(), Failure> {
        if let Some(finished) = self.settle_open()? {
            self.registrar.finished(finished.n, finished.end, &finished.first)?;
            self.close_open(finished.n);
        }
        Ok(())
    }

    /// Syncs the open file for good; whoever calls tells of its end.
    pub fn settle_open(&mut self) -> Result<Option<Finished>, Failure> {
        let Some(file) = self.open.as_mut().filter(|file| file.registered) else { return Ok(None) };
        let (n, end) = (file.n, file.good);
        if !file.spoiled && (file.dirty || file.prewritten > end) {
            // Only space: where the cut fails or is lost, the end stands in the row.
            file.dirty = true;
            let _ = file.file.set_len(end);
            file.prewritten = end;
        }
        if file.synced < end || (file.dirty && !file.spoiled) {
            self.sync()?;
        }
        let first = self.book.lock().file(n).map(|file| file.first()).unwrap_or_default();
        Ok(Some(Finished { n, end, first }))
    }

    /// Lets go of the open file.
    pub fn close_open(&mut self, n: u64) {
        self.open = None;
        self.book.lock().finish(n);
    }
}

impl OpenFile {
    fn failed_write(&mut self, source: std::io::Error, end: u64) -> Failure {
        let error = Error::io("write", self.path.display(), source);
        if Protection::NewFileBehindTear.is_on() {
            // A full disk leaves what was written before as it was. After any other error the file
            // is left alone: it is synced, which may find that more is lost, and finished.
            self.spoiled |= error.kind() != ErrorKind::DiskFull;
        } else {
            self.good = end;
        }
        self.dirty = true;
        Failure::Again(error)
    }

    /// Renews the zeros ahead: syncs of bytes that lie over written ones need no journal commit of
    /// the file system.
    fn write_ahead(&mut self, config: &JournalConfig) {
        let limits = &config.limits;
        let ahead = self.good.saturating_add(limits.journal_prewrite_bytes);
        let end = ahead.min(limits.journal_file_bytes);
        if self.good < self.prewritten || end <= self.good {
            return;
        }
        config.disk.mark(Step::JournalPrewrite);
        match fill_with_zeros(&*self.file, self.good, end) {
            Ok(()) => self.prewritten = end,
            Err(e) => drop(self.failed_write(e, self.good)),
        }
        self.dirty = true;
    }
}

fn put_frame(into: &mut Vec<u8>, file: &OpenFile, offset: u64, frame: &Queued) {
    put(into, file, offset, FrameKind::Records, &frame.body, frame.body_checksum);
}

fn put(into: &mut Vec<u8>, file: &OpenFile, offset: u64, kind: FrameKind, body: &[u8], sum: u32) {
    let header = FrameHeader::new(kind, body.len(), sum, file.synced);
    let end = into.len() + header.padded_len();
    into.extend_from_slice(&header.encode(&file.salt, offset));
    into.extend_from_slice(body);
    into.resize(end, 0);
}

/// Writes zeros from `start` to `end`.
pub(super) fn fill_with_zeros(file: &dyn File, start: u64, end: u64) -> std::io::Result<()> {
    let mut at = start;
    let zeros = vec![0; usize::try_from(end - start).unwrap_or(PIECE_BYTES).min(PIECE_BYTES)];
    while at < end {
        let len = (end - at).min(zeros.len() as u64);
        write_all_at(file, &zeros[..len as usize], at)?;
        at += len;
    }
    Ok(())
}
