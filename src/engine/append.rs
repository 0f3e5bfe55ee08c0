//! Append: records are accepted, written and made durable; tickets say how far one got.
//!
//! Records get their sequence and their place in the journal's queue under one lock, so the order
//! of a stream is the order of its frames.

use std::sync::{Arc, Weak};

use super::store::{Inner, Store, Writer};
use super::streams::{Source, Streams, Unsealed, inline};
use crate::error::{Error, ErrorKind, Result};
use crate::format::record::RECORD_HEADER_BYTES;
use crate::ids::{LeaseId, Sequence, StreamId};
use crate::journal::{Level, Payload, Record, Ticket};
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
        let writer = self.writer("append")?;
        self.core().check_intake("append")?;
        if group.is_empty() {
            return Err(Error::invalid("append", "group", "it holds no record"));
        }
        self.check_group(&group)?;
        // Between a payload and the frame that names it no stream may be let go.
        let _stays = writer.releasing.read();
        let payloads = self.payloads(group)?;
        let accepted = self.enqueue_when_there_is_room(writer, &payloads);
        if accepted.is_err() {
            self.release_payloads(&payloads);
        }
        accepted
    }

    /// Whether the group can ever be held, before anything is stored for it.
    fn check_group(&self, group: &[Append]) -> Result<()> {
        let limits = &self.core().limits;
        let inline_max = limits.payload_inline_bytes_max;
        let frame: u64 = group
            .iter()
            .map(|one| match one.payload.len() as u64 {
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

    fn enqueue_when_there_is_room(
        &self,
        writer: &Writer,
        payloads: &[(StreamId, Payload, Option<LeaseId>)],
    ) -> Result<Accepted> {
        loop {
            let accepted = self.enqueue(&mut writer.streams.lock(), payloads);
            match accepted {
                Err(e) if e.kind() == ErrorKind::LimitExceeded && e.place() == "queue_bytes" => {
                    writer.journal.flush().inspect_err(|e| self.note_journal_failure(e))?;
                }
                accepted => return accepted,
            }
        }
    }

    /// Gives back what was stored for a group that was not accepted.
    fn release_payloads(&self, payloads: &[(StreamId, Payload, Option<LeaseId>)]) {
        let leases: Vec<LeaseId> = payloads.iter().filter_map(|(_, _, lease)| *lease).collect();
        if leases.is_empty() || !self.core().condition.is_working() {
            return;
        }
        let released = self.transact(Step::LeaseCommit, |w| {
            leases.iter().try_for_each(|lease| w.remove::<LeaseRow>(lease).map(|_| ()))
        });
        self.core().note_untidy(released.map(|_| ()));
    }

    fn payloads(&self, group: Vec<Append>) -> Result<Vec<(StreamId, Payload, Option<LeaseId>)>> {
        let inline_max = self.core().limits.payload_inline_bytes_max;
        if group.iter().any(|one| one.payload.len() as u64 > inline_max) {
            // Known before anything is stored for it.
            let named: Vec<StreamId> = group.iter().map(|one| one.stream).collect();
            self.load_all(&mut self.writer("append")?.streams.lock(), &named)?;
        }
        let mut payloads = Vec::with_capacity(group.len());
        for one in group {
            if one.payload.len() as u64 > inline_max {
                match self.put_payload(one.stream, one.payload) {
                    Ok((payload, lease)) => payloads.push((one.stream, payload, Some(lease))),
                    Err(e) => {
                        self.release_payloads(&payloads);
                        return Err(e);
                    }
                }
            } else {
                payloads.push((one.stream, inline(&one.payload), None));
            }
        }
        Ok(payloads)
    }

    fn enqueue(
        &self,
        streams: &mut Streams,
        payloads: &[(StreamId, Payload, Option<LeaseId>)],
    ) -> Result<Accepted> {
        let mut ahead: std::collections::BTreeMap<StreamId, u64> = Default::default();
        let mut records = Vec::with_capacity(payloads.len());
        for (stream, payload, _) in payloads {
            self.load(streams, *stream)?;
            let end = streams.known("append", *stream)?;
            let before = ahead.entry(*stream).or_default();
            let sequence = Sequence(end.next().0 + *before);
            *before += 1;
            let (stream, payload, generation) = (*stream, payload.clone(), end.generation);
            records.push(Record { stream, generation, sequence, payload });
        }
        let sequences = records.iter().map(|record| record.sequence).collect();
        let ticket = self.writer("append")?.journal.enqueue(records)?;
        for (stream, payload, lease) in payloads {
            if let Some(end) = streams.get_mut(*stream) {
                let source = Source::Own { since: 0 };
                let (generation, payload, lease) = (end.generation, payload.clone(), *lease);
                end.push(Unsealed { generation, payload, source, lease });
            }
        }
        Ok(Accepted { ticket, sequences, inner: Arc::downgrade(&self.inner) })
    }

    /// Makes sure that the end of `stream` is in memory, and that it is ours.
    pub(super) fn load(&self, streams: &mut Streams, stream: StreamId) -> Result<()> {
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
