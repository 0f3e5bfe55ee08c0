//! Append: records are accepted, written and made durable; tickets say how far one got.
//!
//! Records get their sequence and their place in the journal's queue under one lock, so the order
//! of a stream is the order of its frames.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use super::store::{Inner, Store, Writer};
use super::streams::{Source, Streams, Unsealed, inline};
use crate::error::{Error, ErrorKind, Result};
use crate::format::record::RECORD_HEADER_BYTES;
use crate::ids::{Generation, LeaseId, Sequence, StreamId};
use crate::journal::{Level, Record, Ticket};
use crate::manifest::LeaseRow;
use crate::vfs::Step;

/// The holder of leases on payloads that a journal names.
pub(crate) const JOURNAL_HOLDER: &str = "journal";

/// What a record that names an object takes of a frame, at most.
const OBJECT_RECORD_BYTES_MAX: u64 = 64;
/// What a frame takes besides its records, at most.
const FRAME_BYTES_EXTRA: u64 = 64;

/// Leases on payloads that a journal names have this bit, so that recovery finds them apart from
/// all others.
pub(crate) const JOURNAL_LEASES: u64 = 1 << 63;

/// The purpose of a lease on a payload of `stream`.
pub(crate) fn payload_purpose(stream: StreamId) -> String {
    format!("{PAYLOAD_OF}{stream}{JOURNAL_NAMES}")
}

/// The stream whose payload a journal's lease keeps.
pub(crate) fn stream_of_payload(row: &LeaseRow) -> Option<StreamId> {
    let named = row.purpose.strip_prefix(PAYLOAD_OF)?.strip_suffix(JOURNAL_NAMES)?;
    named.parse().ok().map(StreamId)
}

const PAYLOAD_OF: &str = "a payload of stream ";
const JOURNAL_NAMES: &str = " that a journal names";

/// One record to append.
#[derive(Debug, Clone)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// The record, as its face encodes it.
    pub payload: Vec<u8>,
}

/// What [`Store::append`] accepted. Awaited, it is durable.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// Ask it how far the group got.
    pub ticket: Ticket,
    /// The sequence of each record, in the order given.
    pub sequences: Vec<Sequence>,
    pub(super) inner: Weak<Inner>,
}

/// A group on its way into the queue.
struct Offered {
    records: Vec<Record>,
    /// What keeps large payloads, each with the position of its record.
    leases: Vec<(usize, LeaseId)>,
}

/// In groups up to this long, sequences are counted without a map.
const SHORT_GROUP: usize = 16;

impl Store {
    /// Accepts `group` as one atomic whole: after a crash all of its records are there, or none.
    /// Blocks while the queue is full.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream, with nothing accepted; `LimitExceeded` for a group that
    /// the queue or a frame can never hold; `DiskFull`.
    ///
    /// # Durability
    /// None (*Accepted*). [`Store::wait`] on the ticket, or [`Store::barrier`], gives more.
    pub fn append(&self, group: Vec<Append>) -> Result<Accepted> {
        let group = group.iter().map(|one| (one.stream, one.payload.as_slice()));
        let (ticket, offered) = self.offer(group)?;
        let sequences = offered.records.iter().map(|record| record.sequence).collect();
        Ok(Accepted { ticket, sequences, inner: Arc::downgrade(&self.inner) })
    }

    /// As [`Store::append`], of a group whose payloads lie in `bytes`, each in its range.
    pub(crate) fn append_parts(
        &self,
        bytes: &[u8],
        parts: &[(StreamId, Range<usize>)],
    ) -> Result<Ticket> {
        let part = |(stream, range): &(StreamId, Range<usize>)| {
            (*stream, bytes.get(range.clone()).unwrap_or_default())
        };
        self.offer(parts.iter().map(part)).map(|(ticket, _)| ticket)
    }

    /// A ticket of nothing: it is durable.
    pub(crate) fn ticket_of_nothing(&self) -> Result<Ticket> {
        Ok(Ticket::of_nothing(self.core().check_write("append")?.owner))
    }

    fn offer<'a>(
        &self,
        group: impl ExactSizeIterator<Item = (StreamId, &'a [u8])> + Clone,
    ) -> Result<(Ticket, Offered)> {
        let writer = self.writer("append")?;
        self.core().check_intake("append")?;
        if group.len() == 0 {
            return Err(Error::invalid("append", "group", "it holds no record"));
        }
        self.check_group(group.clone())?;
        // Between a payload and the frame that names it no stream may be let go.
        let _stays = writer.releasing.read();
        let mut offered = self.offered(group)?;
        match self.enqueue_when_there_is_room(writer, &mut offered) {
            Ok(ticket) => Ok((ticket, offered)),
            Err(e) => {
                self.release_payloads(&offered);
                Err(e)
            }
        }
    }

    /// Whether the group can ever be held, before anything is stored for it.
    fn check_group<'a>(&self, group: impl Iterator<Item = (StreamId, &'a [u8])>) -> Result<()> {
        let limits = &self.core().limits;
        let inline_max = limits.payload_inline_bytes_max;
        let frame: u64 = group
            .map(|(_, payload)| match payload.len() as u64 {
                large if large > inline_max => OBJECT_RECORD_BYTES_MAX,
                small => small + RECORD_HEADER_BYTES as u64,
            })
            .sum();
        let limit = limits.queue_bytes.min(limits.frame_bytes_max - FRAME_BYTES_EXTRA);
        if frame > limit {
            let cause = format!("{frame} bytes of records pass the {limit} of a queue or a frame");
            return Err(Error::new(ErrorKind::LimitExceeded, "append", "group", cause));
        }
        Ok(())
    }

    fn enqueue_when_there_is_room(&self, writer: &Writer, offered: &mut Offered) -> Result<Ticket> {
        loop {
            let accepted = self.enqueue(&mut writer.streams.lock(), offered);
            match accepted {
                Err(e) if e.kind() == ErrorKind::LimitExceeded && e.place() == "queue_bytes" => {
                    writer.journal.flush().inspect_err(|e| self.note_journal_failure(e))?;
                }
                accepted => return accepted,
            }
        }
    }

    /// Gives back what was stored for a group that was not accepted.
    fn release_payloads(&self, offered: &Offered) {
        if offered.leases.is_empty() || !self.core().condition.is_working() {
            return;
        }
        let released = self.transact(Step::LeaseCommit, |w| {
            let mut leases = offered.leases.iter();
            leases.try_for_each(|(_, lease)| w.remove::<LeaseRow>(lease).map(|_| ()))
        });
        self.core().note_untidy(released.map(|_| ()));
    }

    /// Stores large payloads, and holds the others in memory. Sequences are given later.
    fn offered<'a>(
        &self,
        group: impl ExactSizeIterator<Item = (StreamId, &'a [u8])> + Clone,
    ) -> Result<Offered> {
        let inline_max = self.core().limits.payload_inline_bytes_max;
        if group.clone().any(|(_, payload)| payload.len() as u64 > inline_max) {
            // Known before anything is stored for it.
            let named: Vec<StreamId> = group.clone().map(|(stream, _)| stream).collect();
            self.load_all(&mut self.writer("append")?.streams.lock(), &named)?;
        }
        let mut offered = Offered { records: Vec::with_capacity(group.len()), leases: Vec::new() };
        for (at, (stream, payload)) in group.enumerate() {
            let payload = if payload.len() as u64 > inline_max {
                match self.put_payload(stream, payload.to_vec()) {
                    Ok((payload, lease)) => {
                        offered.leases.push((at, lease));
                        payload
                    }
                    Err(e) => {
                        self.release_payloads(&offered);
                        return Err(e);
                    }
                }
            } else {
                inline(payload)
            };
            let (generation, sequence) = (Generation(0), Sequence(0));
            offered.records.push(Record { stream, generation, sequence, payload });
        }
        Ok(offered)
    }

    fn enqueue(&self, streams: &mut Streams, offered: &mut Offered) -> Result<Ticket> {
        let mut ahead: BTreeMap<StreamId, u64> = BTreeMap::new();
        let is_short = offered.records.len() <= SHORT_GROUP;
        for at in 0..offered.records.len() {
            let (earlier, rest) = offered.records.split_at_mut(at);
            let Some(record) = rest.first_mut() else { break };
            let stream = record.stream;
            self.load(streams, stream)?;
            let end = streams.known("append", stream)?;
            let before = if is_short {
                earlier.iter().filter(|one| one.stream == stream).count() as u64
            } else {
                let count = ahead.entry(stream).or_default();
                *count += 1;
                *count - 1
            };
            record.generation = end.generation;
            record.sequence = Sequence(end.next().0 + before);
        }
        let ticket = self.writer("append")?.journal.enqueue(&offered.records)?;
        let mut leases = offered.leases.iter().peekable();
        for (at, record) in offered.records.iter().enumerate() {
            let lease = leases.next_if(|(of, _)| *of == at).map(|(_, lease)| *lease);
            if let Some(end) = streams.get_mut(record.stream) {
                let source = Source::Own { since: 0 };
                let (generation, payload) = (record.generation, record.payload.clone());
                end.push(Unsealed { generation, payload, source, lease });
            }
        }
        Ok(ticket)
    }

    /// Makes sure that the end of `stream` is in memory, and that it is ours.
    pub(super) fn load(&self, streams: &mut Streams, stream: StreamId) -> Result<()> {
        if streams.get(stream).is_some() {
            return Ok(());
        }
        self.load_all(streams, &[stream])
    }

    /// Waits until the group behind `ticket` reached `level`; the caller may be the one who writes
    /// and syncs, for itself and for all who wait.
    ///
    /// # Errors
    /// `Io` or `DiskFull` when it could not be written, and may be tried again; `OutcomeUnknown`
    /// when a sync failed: the store has halted.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut.
    pub fn wait(&self, ticket: &Ticket, level: Level) -> Result<()> {
        let writer = self.writer("wait")?;
        self.core().check_write("wait")?;
        let level = self.core().level(level);
        writer.journal.wait(ticket, level).inspect_err(|e| self.note_journal_failure(e))?;
        self.core().bell.ring();
        if level == Level::Durable {
            self.core().check_not_taken_over()?;
            self.core().note_untidy(self.keep_budget());
        }
        Ok(())
    }

    /// Returns when everything accepted before it is durable. On nothing new it does no I/O.
    ///
    /// # Errors
    /// As [`Store::wait`].
    ///
    /// # Durability
    /// *Durable*, with one data sync for any number of streams.
    pub fn barrier(&self) -> Result<()> {
        let writer = self.writer("barrier")?;
        self.core().check_write("barrier")?;
        writer.journal.barrier().inspect_err(|e| self.note_journal_failure(e))?;
        self.core().bell.ring();
        self.core().check_not_taken_over()?;
        self.core().note_untidy(self.keep_budget());
        Ok(())
    }

    /// P8: a poisoned journal stops the store.
    pub(super) fn note_journal_failure(&self, _seen: &Error) {
        if let Ok(writer) = self.writer_even_halted()
            && let Some(cause) = writer.journal.poisoned()
        {
            self.core().halt(&cause);
        }
    }
}
