//! The journal as its users see it: frames are handed over here and waited for.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::{FRAME_HEADER_BYTES, body_checksum, padded};
use crate::format::record::{
    Payload, Place, Record, body_len, encode_body, encode_single, single_len,
};
use crate::ids::{CommitSeq, Epoch, OwnerId, Sequence, StoreId, StreamId};
use crate::limits::Limits;
use crate::protection::Protection;
use crate::vfs::Disk;

use super::birth::Registrar;
use super::book::{Book, OpenJournal};
use super::commit::State;
use super::queue::{Places, Queue};
use super::room::full;
use super::seats::Bell;
use super::ticket::{Level, Ticket};
use super::writer::{Finished, Writer};

/// What a journal is told when it begins.
#[derive(Clone)]
pub struct JournalConfig {
    /// Where its files go.
    pub disk: Arc<dyn Disk>,
    /// The store directory; `journal/` in it exists.
    pub root: PathBuf,
    /// The store.
    pub store: StoreId,
    /// This opening of it.
    pub owner: OwnerId,
    /// Its number.
    pub epoch: Epoch,
    /// The bounds: queue, frame, file, prewrite, linger, budget.
    pub limits: Limits,
    /// The highest commit known durable, for the headers of new files.
    pub commit: Arc<dyn Fn() -> CommitSeq + Send + Sync>,
    /// The number of the first file.
    pub first_n: u64,
    /// What is written stays in this process until it is synced: *Written* then takes a sync.
    pub is_written_by_sync: bool,
}

impl fmt::Debug for JournalConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalConfig")
            .field("root", &self.root)
            .field("owner", &self.owner)
            .finish()
    }
}

/// The journal of one owner.
///
/// It may be used from many threads. No call holds a lock during I/O.
pub struct Journal {
    pub(super) config: Arc<JournalConfig>,
    pub(super) state: Mutex<State>,
    /// Rings when a leader goes, for whoever wants the writer for something else than frames.
    pub(super) changed: Condvar,
    /// Rings when there is a future to wake.
    pub(super) bell: OnceLock<Bell>,
    pid: u32,
    book: Arc<Mutex<Book>>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("owner", &self.config.owner).finish_non_exhaustive()
    }
}

impl Journal {
    /// Begins a journal. It has no file until something is written.
    pub fn new(config: JournalConfig, registrar: Arc<dyn Registrar>) -> Self {
        let config = Arc::new(config);
        let book = Arc::new(Mutex::new(Book::default()));
        let writer = Writer::new(Arc::clone(&config), registrar, Arc::clone(&book));
        Self {
            pid: config.disk.pid(),
            config,
            book,
            state: Mutex::new(State::new(writer)),
            changed: Condvar::new(),
            bell: OnceLock::new(),
        }
    }

    /// Takes in one frame: all of `records`, or none, will be there after a crash.
    ///
    /// # Durability
    /// None: the frame is *Accepted*, in memory.
    ///
    /// # Errors
    /// `LimitExceeded` at `frame_bytes_max` (the group is too large); `QueueFull` (write what is queued
    /// first: [`flush`](Self::flush)); `Invalid` without records; `Halted` with the root cause;
    /// `Closed`; `Forked`.
    pub fn enqueue(&self, records: impl AsRef<[Record]>) -> Result<Ticket> {
        let records = records.as_ref();
        if records.is_empty() {
            return refuse(ErrorKind::Invalid, "records", "a frame holds at least one".into());
        }
        self.check_process()?;
        self.check_frame(body_len(records))?;
        let places = Places::Many(records.iter().map(Record::place).collect());
        self.accept(encode_body(records).into(), places)
    }

    /// As [`enqueue`](Self::enqueue), of one record with these bytes; also returns them as they are held
    /// now. Whoever calls has asked whether this is the process that began the journal.
    ///
    /// # Durability
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub fn enqueue_single(&self, place: Place, payload: &[u8]) -> Result<(Ticket, Payload)> {
        self.check_frame(single_len(payload.len()))?;
        let (body, held) = encode_single(&place, payload);
        let ticket = self.accept(body, Places::One(place))?;
        Ok((ticket, Payload::Inline(held)))
    }

    fn check_frame(&self, body_len: usize) -> Result<()> {
        let bytes = padded(FRAME_HEADER_BYTES + body_len) as u64;
        let limits = &self.config.limits;
        if bytes > limits.frame_bytes_max {
            let cause = format!("{bytes} bytes in one group, {} allowed", limits.frame_bytes_max);
            return refuse(ErrorKind::LimitExceeded, "frame_bytes_max", cause);
        }
        Ok(())
    }

    fn accept(&self, body: Arc<[u8]>, places: Places) -> Result<Ticket> {
        let bytes = padded(FRAME_HEADER_BYTES + body.len()) as u64;
        let limits = &self.config.limits;
        let sum = body_checksum(&body);
        let now = self.config.disk.monotonic_nanos();

        let mut state = self.state.lock();
        state.check_intake()?;
        if !state.queue.has_room(bytes, limits.queue_bytes) {
            return Err(full(state.queue.bytes(), bytes, limits.queue_bytes));
        }
        let position = state.queue.push(body, sum, places, now);
        Ok(Ticket::new(self.config.owner, position))
    }

    /// Returns when the frame is as sure as `level` asks.
    ///
    /// # Errors
    /// `DiskFull` or `Io` when a write failed: the frame stays queued, in its place, and the next
    /// call that waits tries again. `OutcomeUnknown` when a sync failed over it: it may or may not be
    /// there when the store is opened again. `Halted` when it never reached the disk because of
    /// an earlier failure. Each carries the root cause. `Invalid` for a ticket of another opening.
    pub fn wait(&self, ticket: &Ticket, level: Level) -> Result<()> {
        self.check_ticket(ticket)?;
        let state = self.state.lock();
        if level == Level::Accepted {
            return state
                .poison
                .as_ref()
                .map_or(Ok(()), |root| Err(root.clone().as_kind(ErrorKind::Halted)));
        }
        self.drive(state, ticket.position, level)
    }

    /// Returns when all that was enqueued before is durable. Where nothing is new no I/O is done,
    /// otherwise one data sync (and what the birth of a file takes).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn barrier(&self) -> Result<()> {
        self.up_to(|queue| queue.last_open(), Level::Durable)
    }

    /// Returns when all that was enqueued before is written.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn flush(&self) -> Result<()> {
        self.up_to(|queue| queue.last_unwritten(), Level::Written)
    }

    /// Before the records below `sealed_upto` are published: makes durable every frame up to the last
    /// of them that holds others, so that no observation is ever half there, or there without an
    /// earlier one. No I/O where there is none.
    ///
    /// `sealed_upto` is as it will be after the publication; it is called under a lock of the journal and
    /// must not use it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn flush_partly_sealed(&self, sealed_upto: &dyn Fn(StreamId) -> Sequence) -> Result<()> {
        self.up_to(|queue| queue.last_partly_sealed(sealed_upto), Level::Durable)
    }

    /// After a publication: frames still queued, whose every record lies below its stream's
    /// `sealed_upto`, are durable without the journal. Their tickets say so, and they are dropped; one
    /// of which a failed write may have left a part in the file keeps its place there. No I/O.
    ///
    /// `sealed_upto` is called under a lock of the journal and must not use it.
    pub fn settle(&self, sealed_upto: &dyn Fn(StreamId) -> Sequence) {
        let mut state = self.state.lock();
        if state.queue.settle(sealed_upto) {
            self.ring(&mut state);
        }
    }

    /// Whether the oldest queued frame has waited for `linger_millis` at `now_nanos`, by the disk's
    /// monotonic clock: [`flush`](Self::flush) then.
    pub fn linger_due(&self, now_nanos: u64) -> bool {
        let linger = self.config.limits.linger_millis.saturating_mul(1_000_000);
        let oldest = self.state.lock().queue.oldest_nanos();
        oldest.is_some_and(|at| now_nanos.saturating_sub(at) >= linger)
    }

    /// Bytes accepted and not yet written.
    pub fn queued_bytes(&self) -> u64 {
        self.state.lock().queue.bytes()
    }

    /// Stops the journal for ever, for a cause outside it. The first cause stays.
    pub fn poison(&self, cause: Error) {
        let mut state = self.state.lock();
        state.poison.get_or_insert(cause);
        self.ring(&mut state);
    }

    /// Stops the journal for ever and returns when no thread writes to its files any more: only
    /// then may the locks that guard them go.
    pub fn stop(&self, cause: Error) {
        let mut state = self.state.lock();
        state.poison.get_or_insert(cause);
        self.ring(&mut state);
        while state.writer.is_none() && !state.is_writer_lost {
            self.changed.wait(&mut state);
        }
    }

    /// What stopped the journal.
    pub fn poisoned(&self) -> Option<Error> {
        self.state.lock().poison.clone()
    }

    /// Length of all files of this opening that were not [forgotten](Self::forget), in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.book.lock().bytes()
    }

    /// Every file of this opening that was not [forgotten](Self::forget).
    pub fn files(&self) -> Vec<OpenJournal> {
        self.book.lock().files()
    }

    /// The finished files, oldest first, that must go for the sum of all to be at most
    /// `journal_budget_bytes`: the engine enqueues the records in them that are not sealed yet
    /// again, makes them durable, and lets the files go. Spent files are not among them.
    pub fn over_budget(&self, sealed_upto: &dyn Fn(StreamId) -> Sequence) -> Vec<OpenJournal> {
        self.book.lock().over_budget(self.config.limits.journal_budget_bytes, sealed_upto)
    }

    /// File `n` is gone.
    pub fn forget(&self, n: u64) {
        self.book.lock().forget(n);
    }

    /// Finishes the open file, if there is one, so that it can be let go; what is queued goes to the
    /// next one. The registrar is told.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and those of the registrar.
    pub fn roll(&self) -> Result<()> {
        self.check_process()?;
        self.led(|writer| writer.finish_open())
    }

    /// Makes all durable and closes the journal: nothing more is taken in. Returns what was open; the
    /// registrar is not told of it, so that the caller can close everything in one transaction.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). The call may be repeated, unless the journal is poisoned.
    pub fn finish(&self) -> Result<Vec<Finished>> {
        self.state.lock().closed = true;
        self.flush()?;
        let finished = self.led(|writer| {
            let finished = writer.settle_open()?;
            if let Some(finished) = &finished {
                writer.close_open(finished.n);
            }
            Ok(finished)
        })?;
        Ok(finished.into_iter().collect())
    }

    /// The level that gives what `level` promises.
    pub(super) fn raised(&self, level: Level) -> Level {
        // P1: *Written* survives a killed process.
        match level {
            Level::Written
                if self.config.is_written_by_sync && Protection::WrittenByCommit.is_on() =>
            {
                Level::Durable
            }
            level => level,
        }
    }

    pub(super) fn check_ticket(&self, ticket: &Ticket) -> Result<()> {
        self.check_process()?;
        if ticket.owner != self.config.owner {
            // Its position here would be another frame's.
            let cause = "the ticket is of another opening; what came of it is known by reading";
            return Err(Error::invalid("wait for", format!("frame {}", ticket.position), cause));
        }
        Ok(())
    }

    /// G18: a forked child shares the file, but neither the queue nor the lock that guards it.
    pub(super) fn check_process(&self) -> Result<()> {
        match self.config.disk.pid() {
            pid if pid == self.pid => Ok(()),
            pid => {
                let cause = format!("opened by process {}, used by {pid}", self.pid);
                Err(Error::new(ErrorKind::Forked, "append to", self.config.root.display(), cause))
            }
        }
    }

    pub(super) fn up_to(
        &self,
        last: impl FnOnce(&Queue) -> Option<u64>,
        level: Level,
    ) -> Result<()> {
        self.check_process()?;
        let state = self.state.lock();
        match last(&state.queue) {
            Some(position) => self.drive(state, position, level),
            None => match &state.poison {
                Some(root) => Err(root.clone().as_kind(ErrorKind::Halted)),
                None => Ok(()),
            },
        }
    }
}

fn refuse<T>(kind: ErrorKind, limit: &str, cause: String) -> Result<T> {
    Err(Error::new(kind, "append", limit, cause))
}
