//! A stream that is being recorded: what it takes, and how far it is.

use super::recorded::Recorded;
use super::ring::{Kept, Ring};
use super::tally::{Counted, Span, Tally};
use crate::digest::Digest;
use crate::engine::Store;
use crate::error::{Error, Result};
use crate::format::column::{Field, Schema};
use crate::ids::StreamId;
use crate::protection::Protection;
use crate::recording::describing::{ChunkLimits, Due, Every, Moment, Overflow};
use crate::recording::reading::At;

/// One stream of a running recording.
#[derive(Debug)]
pub(in crate::recording) struct OpenStream {
    pub id: StreamId,
    pub name: String,
    pub schema: Schema,
    pub limits: ChunkLimits,
    pub every: Every,
    /// The field that it watches, of the recording's schema.
    pub watched: Option<Field>,
    pub tally: Tally,
    /// What it does when the queue is full.
    pub overflow: Overflow,
    /// What waits to be triggered.
    pub ring: Ring,
    /// How many records were dropped since the last that was recorded.
    pub dropped: u64,
    /// How many were dropped before and since, over all of it.
    pub dropped_in_all: u64,
    /// What the last record saw of the watched field.
    seen: Option<Digest>,
    /// When the last record was taken, by the disk's monotonic clock.
    taken_nanos: Option<u64>,
}

/// What only sampling needs to know of a record.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::recording) struct Sampled {
    pub seen: Option<Digest>,
    pub taken_nanos: Option<u64>,
}

impl OpenStream {
    /// A stream without a record.
    pub fn new(
        id: StreamId,
        name: String,
        schema: Schema,
        limits: ChunkLimits,
        every: Every,
        watched: Option<Field>,
    ) -> Self {
        Self {
            id,
            name,
            schema,
            limits,
            every,
            watched,
            tally: Tally::new(0, None),
            overflow: Overflow::default(),
            ring: Ring::default(),
            dropped: 0,
            dropped_in_all: 0,
            seen: None,
            taken_nanos: None,
        }
    }

    /// The same, that does so when the queue is full.
    pub fn overflowing(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// Goes on behind the records that the stream has, of which the last is as `at` says. Returns the
    /// full chunks among those that are not sealed.
    pub fn prime(&mut self, store: &Store, at: At) -> Result<Vec<Span>> {
        let end = store.tail_end(self.id)?;
        self.seen = at.seen.map(Digest);
        self.dropped_in_all = at.dropped;
        self.tally = Tally::new(end.sealed_upto.0, at.last);
        let mut full = Vec::new();
        for payload in store.tail_payloads(self.id, end.sealed_upto.0..end.next.0)? {
            let mut fetched = Vec::new();
            let bytes = store.payload_slice(&payload, &mut fetched)?;
            let counted = Counted::of(&self.schema, bytes)
                .map_err(|e| e.told_of("resume", format!("stream {:?}", self.name)))?;
            full.extend(self.tally.add(&self.limits, counted));
        }
        // What a ring kept and was lost lies behind the records that there are.
        self.tally.follow(at.last);
        Ok(full)
    }

    /// Where it is. What its ring keeps is counted as left out: whoever goes on from here does not
    /// have it.
    pub fn at(&self) -> At {
        let kept = self.ring.len() as u64;
        let dropped = if Protection::DropCounted.is_on() { kept } else { 0 };
        let dropped = self.dropped_in_all.saturating_add(dropped);
        At { last: self.last(), seen: self.seen.map(|digest| digest.0), dropped }
    }

    /// Whether it records the observation at `now`.
    pub fn due(&self, now: Moment, nanos: &mut dyn FnMut() -> u64) -> Due {
        let is_wall_due = |interval| match self.taken_nanos {
            Some(taken) => nanos().saturating_sub(taken) >= interval,
            None => true,
        };
        self.every.due(now, self.last(), is_wall_due)
    }

    /// Iteration and time of the last record, sealed, in the journal or kept until it is triggered.
    pub fn last(&self) -> Option<(i64, Option<f64>)> {
        self.ring.last().or(self.tally.last())
    }

    /// Whether the time of an observation tells if it is due.
    pub fn check_time(&self, now: Moment) -> Result<()> {
        if !self.schema.is_timed() {
            return Ok(());
        }
        // Of a stream by time, one that goes back would be before every tick, and not be missed.
        let last = self.last().filter(|_| self.every.is_by_time()).and_then(|(_, time)| time);
        self.schema.check_time(last, now.time)
    }

    /// Whether the watched field is another one than the last record saw.
    pub fn has_changed(&self, seen: Digest) -> bool {
        self.seen != Some(seen)
    }

    /// Whether a record at `now` can come behind the last one, or behind `before` in the same group.
    pub fn check_order(&self, now: Moment, before: Option<Moment>) -> Result<()> {
        let last = before.map(|m| (m.iteration, m.time)).or(self.last());
        let place = || format!("stream {:?}", self.name);
        if let Some((last, _)) = last.filter(|(last, _)| now.iteration <= *last) {
            let cause = format!("iteration {} does not follow {last}", now.iteration);
            return Err(Error::invalid("append", place(), cause));
        }
        let last = last.and_then(|(_, time)| time);
        self.schema.check_time(last, now.time).map_err(|e| e.told_of("append", place()))
    }

    /// Counts an accepted record; returns the chunk that is full by it, if there is one.
    pub fn count(&mut self, recorded: &Recorded) -> Option<Span> {
        self.sampled(recorded.sampled);
        // Its payload tells of them.
        self.dropped = 0;
        self.tally.add(&self.limits, recorded.counted)
    }

    /// Keeps a record until it is triggered.
    pub fn keep(&mut self, kept: Kept, sampled: Sampled) {
        let Overflow::Ring { records, bytes } = self.overflow else { return };
        self.sampled(sampled);
        let fallen = self.ring.push(kept, records, bytes);
        self.leave_out(fallen);
    }

    /// Counts records that are not recorded.
    pub fn leave_out(&mut self, records: u64) {
        if Protection::DropCounted.is_on() {
            self.dropped = self.dropped.saturating_add(records);
            self.dropped_in_all = self.dropped_in_all.saturating_add(records);
        }
    }

    fn sampled(&mut self, sampled: Sampled) {
        if sampled.seen.is_some() {
            self.seen = sampled.seen;
        }
        if sampled.taken_nanos.is_some() {
            self.taken_nanos = sampled.taken_nanos;
        }
    }
}
