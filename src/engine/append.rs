//! Append: records are accepted, written and made durable; tickets say how far one got.
//!
//! Records get their sequence and their place in the journal's queue under one lock, so the order
//! of a stream is the order of its frames.

use super::store::Store;
use super::streams::{Source, Streams, Unsealed, inline, unknown};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LeaseId, Sequence, StreamId};
use crate::journal::{Level, Payload, Record, Ticket};
use crate::manifest::{Reading, StreamRow};

/// The holder of leases on payloads that a journal names.
pub(crate) const JOURNAL_HOLDER: &str = "journal";

/// One record to append.
#[derive(Debug, Clone)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// The record, as its face encodes it.
    pub payload: Vec<u8>,
}

/// What [`Store::append`] accepted.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// Ask it how far the group got.
    pub ticket: Ticket,
    /// The sequence of each record, in the order given.
    pub sequences: Vec<Sequence>,
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
        let payloads = self.payloads(group)?;
        let bytes: u64 = payloads.iter().map(|(_, payload, _)| payload.held_bytes()).sum();
        let limit = self.core().limits.queue_bytes;
        if bytes > limit {
            let cause = format!("{bytes} bytes of records pass the queue's {limit}");
            return Err(Error::new(ErrorKind::LimitExceeded, "append", "group", cause));
        }
        loop {
            let queued = writer.journal.queued_bytes();
            if queued > 0 && queued + bytes > limit {
                writer.journal.flush().inspect_err(|e| self.note_journal_failure(e))?;
                continue;
            }
            let accepted = self.enqueue(&mut writer.streams.lock(), &payloads);
            match accepted {
                // Others filled the queue between our look and our turn.
                Err(e) if e.kind() == ErrorKind::LimitExceeded && e.place() == "queue_bytes" => {}
                accepted => return accepted,
            }
        }
    }

    fn payloads(&self, group: Vec<Append>) -> Result<Vec<(StreamId, Payload, Option<LeaseId>)>> {
        {
            // Known before anything is stored for it.
            let mut streams = self.writer("append")?.streams.lock();
            for one in &group {
                self.load(&mut streams, one.stream)?;
            }
        }
        let mut payloads = Vec::with_capacity(group.len());
        for one in group {
            if one.payload.len() as u64 > self.core().limits.payload_inline_bytes_max {
                let (payload, lease) = self.put_payload(one.payload)?;
                payloads.push((one.stream, payload, Some(lease)));
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
        Ok(Accepted { ticket, sequences })
    }

    /// Makes sure that the end of `stream` is in memory.
    pub(super) fn load(&self, streams: &mut Streams, stream: StreamId) -> Result<()> {
        if streams.get(stream).is_none() {
            let Some(row) = self.core().snapshot()?.get::<StreamRow>(&stream)? else {
                return Err(unknown("open", stream));
            };
            streams.insert(stream, super::streams::End::of(&row));
        }
        Ok(())
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
        writer.journal.wait(ticket, level).inspect_err(|e| self.note_journal_failure(e))
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
        self.keep_budget()
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
