//! Append: records are accepted, as many as the queue has room for.
//!
//! Records get their sequence and their place in the journal's queue under one lock, so the order
//! of a stream is the order of its frames.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::store::{Inner, Store, Writer};
use super::streams::{Source, Streams, Unsealed, inline, unknown};
use crate::clock::monotonic_nanos;
use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::{FRAME_HEADER_BYTES, padded};
use crate::format::record::{COUNT_BYTES, RECORD_HEADER_BYTES};
use crate::ids::{Generation, LeaseId, Sequence, StreamId};
use crate::journal::{Keeper, Place, Record, Ticket};
use crate::manifest::LeaseRow;
use crate::vfs::Step;

/// The holder of leases on payloads that a journal names.
pub(crate) const JOURNAL_HOLDER: &str = "journal";

/// What the name of an object takes of a frame.
const OBJECT_PAYLOAD_BYTES: usize = 32;

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

/// How long a group waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    None,
    Endless,
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
    /// `NotFound` for an unknown stream, `Conflict` for one of a recording that has ended, with nothing
    /// accepted; `LimitExceeded`, at once, for a group
    /// that the queue or a frame can never hold; `DiskFull`.
    ///
    /// # Durability
    /// None (*Accepted*). [`Ticket::wait`], or [`Store::barrier`], gives more.
    pub fn append(&self, group: Vec<Append>) -> Result<Accepted> {
        let group = group.iter().map(|one| (one.stream, one.payload.as_slice()));
        let (ticket, offered) = self.offer(group, Patience::Endless)?;
        let sequences = offered.records.iter().map(|record| record.sequence).collect();
        Ok(Accepted { ticket, sequences, inner: Arc::downgrade(&self.inner) })
    }

    /// As [`Store::append`], of a group whose payloads lie in `bytes`, each in its range; but it never
    /// waits for the queue: it fails with `QueueFull`, and nothing is accepted.
    pub(crate) fn try_append_parts(
        &self,
        bytes: &[u8],
        parts: &[(StreamId, Range<usize>)],
    ) -> Result<Ticket> {
        if let [(stream, range)] = parts
            && range.len() as u64 <= self.core().limits.payload_inline_bytes_max
        {
            return self.offer_single(*stream, bytes.get(range.clone()).unwrap_or_default());
        }
        let part = |(stream, range): &(StreamId, Range<usize>)| {
            (*stream, bytes.get(range.clone()).unwrap_or_default())
        };
        self.offer(parts.iter().map(part), Patience::None).map(|(ticket, _)| ticket)
    }

    /// What a group of these parts takes of the queue.
    pub(crate) fn frame_bytes_of(&self, parts: &[(StreamId, Range<usize>)]) -> u64 {
        self.frame_bytes(parts.iter().map(|(_, range)| range.len()))
    }

    /// A ticket of nothing: it is durable.
    pub(crate) fn ticket_of_nothing(&self) -> Result<Ticket> {
        let ticket = Ticket::of_nothing(self.core().check_write("append")?.owner);
        Ok(ticket.kept_by(Arc::downgrade(&self.inner) as Weak<dyn Keeper>))
    }

    /// Returns when there was room for `bytes`, or with `TimedOut` once `patience` is over. Without
    /// an end to its patience the caller writes itself; so does one in a store without a thread.
    pub(crate) fn wait_for_room(&self, bytes: u64, patience: Option<Duration>) -> Result<()> {
        let writer = self.writer("append")?;
        self.core().check_write("append")?;
        let deadline = patience.map(|patience| {
            let nanos = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
            monotonic_nanos().saturating_add(nanos)
        });
        let waited = writer.journal.wait_for_room(bytes, deadline, &|| self.ask_to_write());
        // What left the queue was written.
        self.core().bell.ring();
        waited.inspect_err(|e| self.note_journal_failure(e))
    }

    /// Lets the store's thread write what is queued; false where there is none.
    fn ask_to_write(&self) -> bool {
        let writer = self.inner.writer.as_ref();
        writer.is_some_and(|writer| writer.linger.lock().as_ref().is_some_and(|l| l.ask_to_write()))
    }

    /// As [`Store::offer`] without patience, of one payload that its frame holds: the stream's end then
    /// shares the frame's memory.
    fn offer_single(&self, stream: StreamId, payload: &[u8]) -> Result<Ticket> {
        let writer = self.writer("append")?;
        self.core().check_intake("append")?;
        self.check_group(std::iter::once(payload.len()))?;
        let _stays = writer.releasing.read();
        let taken = self.enqueue_single(writer, stream, payload);
        if writer.journal.queued_bytes() > self.core().limits.queue_bytes / 2 {
            // So that those who do not wait find room.
            self.ask_to_write();
        }
        taken
    }

    fn enqueue_single(&self, writer: &Writer, stream: StreamId, payload: &[u8]) -> Result<Ticket> {
        let mut streams = writer.streams.lock();
        self.load(&mut streams, stream)?;
        let end = streams.get_mut(stream).ok_or_else(|| unknown("append", stream))?;
        let (generation, sequence) = (end.generation, end.next());
        let place = Place { stream, generation, sequence };
        let (ticket, payload) = writer.journal.enqueue_single(place, payload)?;
        let source = Source::Own { since: 0 };
        end.push(Unsealed { generation, payload, source, lease: None });
        Ok(ticket.kept_by(Arc::downgrade(&self.inner) as Weak<dyn Keeper>))
    }

    fn offer<'a>(
        &self,
        group: impl ExactSizeIterator<Item = (StreamId, &'a [u8])> + Clone,
        patience: Patience,
    ) -> Result<(Ticket, Offered)> {
        let writer = self.writer("append")?;
        self.core().check_intake("append")?;
        if group.len() == 0 {
            return Err(Error::invalid("append", "group", "it holds no record"));
        }
        let bytes = self.check_group(group.clone().map(|(_, payload)| payload.len()))?;
        if patience == Patience::None
            && let Err(e) = writer.journal.check_room(bytes)
        {
            // A large payload would go to the disk: not for a group that has no room anyway.
            self.ask_to_write();
            return Err(e);
        }
        // Between a payload and the frame that names it no stream may be let go.
        let _stays = writer.releasing.read();
        let mut offered = self.offered(group)?;
        let taken = loop {
            let taken = self.enqueue(&mut writer.streams.lock(), &mut offered);
            match taken {
                Err(e) if e.kind() == ErrorKind::QueueFull && patience == Patience::Endless => {
                    if let Err(e) = self.wait_for_room(bytes, None) {
                        break Err(e);
                    }
                }
                taken => break taken,
            }
        };
        if patience == Patience::None
            && writer.journal.queued_bytes() > self.core().limits.queue_bytes / 2
        {
            // So that those who do not wait find room.
            self.ask_to_write();
        }
        match taken {
            Ok(ticket) => Ok((ticket, offered)),
            Err(e) => {
                self.release_payloads(&offered);
                Err(e)
            }
        }
    }

    /// Whether a group of payloads of these lengths can ever be held, before anything is stored for
    /// it; with what it takes of the queue.
    fn check_group(&self, lens: impl Iterator<Item = usize> + Clone) -> Result<u64> {
        let limits = &self.core().limits;
        let refuse = |cause| Err(Error::new(ErrorKind::LimitExceeded, "append", "group", cause));
        // One that lies in an object takes little of the queue, but is memory all the same.
        let largest = lens.clone().max().unwrap_or(0) as u64;
        if largest > limits.queue_bytes {
            return refuse(format!(
                "a record of {largest} bytes, a queue of {}",
                limits.queue_bytes
            ));
        }
        let bytes = self.frame_bytes(lens);
        let limit = limits.queue_bytes.min(limits.frame_bytes_max);
        if bytes > limit {
            let cause = format!("{bytes} bytes of records pass the {limit} of a queue or a frame");
            return refuse(cause);
        }
        Ok(bytes)
    }

    fn frame_bytes(&self, lens: impl Iterator<Item = usize>) -> u64 {
        let inline_max = self.core().limits.payload_inline_bytes_max;
        let held = lens.map(|len| match len {
            large if large as u64 > inline_max => OBJECT_PAYLOAD_BYTES,
            small => small,
        });
        let records = held.map(|held| RECORD_HEADER_BYTES + held).sum::<usize>();
        padded(FRAME_HEADER_BYTES + COUNT_BYTES + records) as u64
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
            end.check_growing("append", stream)?;
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
        Ok(ticket.kept_by(Arc::downgrade(&self.inner) as Weak<dyn Keeper>))
    }

    /// Makes sure that the end of `stream` is in memory, and that it is ours.
    pub(super) fn load(&self, streams: &mut Streams, stream: StreamId) -> Result<()> {
        if streams.get(stream).is_some() {
            return Ok(());
        }
        self.load_all(streams, &[stream])
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
