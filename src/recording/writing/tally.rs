//! What is open in a stream, counted: where its next chunk begins, and how much lies in it. The
//! records themselves are in the engine's tail.
//!
//! A chunk ends before the record that would pass a limit, never at a barrier or by timing, so
//! equal runs give equal chunks. Ending a recording ends one earlier.

use crate::error::Result;
use crate::format::column::{
    CHUNK_RAW_BYTES_MAX, Schema, Value, cells_len, row_payload, split_dropped,
};
use crate::recording::describing::ChunkLimits;

/// What a record adds.
#[derive(Debug, Clone, Copy)]
pub(in crate::recording) struct Counted {
    pub iteration: i64,
    pub time: Option<f64>,
    /// Length of its payload.
    pub len: u64,
    /// What it takes in columns at most.
    pub cells_len: u64,
}

impl Counted {
    /// Of a record as the journal keeps it.
    pub fn of(schema: &Schema, bytes: &[u8]) -> Result<Self> {
        let mut values: Vec<Value<'_>> = Vec::new();
        let (iteration, time) = row_payload::decode(schema, bytes, &mut values)?;
        let (_, record) = split_dropped(bytes)?;
        let (len, cells_len) = (record.len() as u64, cells_len(&values));
        Ok(Self { iteration, time, len, cells_len })
    }
}

/// Records that are a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) struct Span {
    pub first: u64,
    pub records: u64,
    pub raw_len: u64,
}

/// The open end of one stream.
#[derive(Debug, Clone, Copy)]
pub(in crate::recording) struct Tally {
    first: u64,
    records: u64,
    raw_len: u64,
    cells_len: u64,
    first_time: Option<f64>,
    /// The last record's iteration and time, sealed or not.
    last: Option<(i64, Option<f64>)>,
}

impl Tally {
    /// A stream whose next chunk begins at record `first`, behind a record of `last`.
    pub fn new(first: u64, last: Option<(i64, Option<f64>)>) -> Self {
        Self { first, records: 0, raw_len: 0, cells_len: 0, first_time: None, last }
    }

    /// The last record's iteration and time.
    pub fn last(&self) -> Option<(i64, Option<f64>)> {
        self.last
    }

    /// The next record follows one of `last`, where that is behind the last one counted.
    pub fn follow(&mut self, last: Option<(i64, Option<f64>)>) {
        if last.map(|(at, _)| at) > self.last.map(|(at, _)| at) {
            self.last = last;
        }
    }

    /// How many records the stream has.
    #[cfg(test)]
    pub fn next(&self) -> u64 {
        self.first + self.records
    }

    /// Counts a record; returns the chunk that it would have overfilled, if there is one.
    pub fn add(&mut self, limits: &ChunkLimits, record: Counted) -> Option<Span> {
        let full = if self.is_full_for(limits, &record) { self.cut() } else { None };
        if self.records == 0 {
            self.first_time = record.time;
        }
        self.records += 1;
        self.raw_len = self.raw_len.saturating_add(record.len);
        self.cells_len = self.cells_len.saturating_add(record.cells_len);
        self.last = Some((record.iteration, record.time));
        full
    }

    fn is_full_for(&self, limits: &ChunkLimits, record: &Counted) -> bool {
        let passes = |limit: Option<u64>, len: u64| limit.is_some_and(|limit| len > limit);
        let is_long = || {
            let elapsed = record.time.zip(self.first_time).map(|(now, first)| now - first);
            limits.span.zip(elapsed).is_some_and(|(span, elapsed)| elapsed >= span)
        };
        self.records > 0
            && (passes(limits.bytes, self.raw_len.saturating_add(record.len))
                || passes(limits.records, self.records + 1)
                || self.cells_len.saturating_add(record.cells_len) > CHUNK_RAW_BYTES_MAX
                || is_long())
    }

    /// Ends the chunk at hand; `None` when no record is open.
    pub fn cut(&mut self) -> Option<Span> {
        if self.records == 0 {
            return None;
        }
        let span = Span { first: self.first, records: self.records, raw_len: self.raw_len };
        *self = Self::new(self.first + self.records, self.last);
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(limits: ChunkLimits, records: &[(u64, f64)]) -> Vec<u64> {
        let mut tally = Tally::new(0, None);
        let mut counts = Vec::new();
        for (at, (len, time)) in records.iter().enumerate() {
            let (iteration, time, cells_len) = (at as i64, Some(*time), *len);
            let record = Counted { iteration, time, len: *len, cells_len };
            counts.extend(tally.add(&limits, record).map(|span| span.records));
        }
        assert_eq!(tally.next(), records.len() as u64);
        counts.extend(tally.cut().map(|span| span.records));
        counts
    }

    /// Does each limit end a chunk between records, and does a record above it sit alone?
    #[test]
    fn each_limit_ends_a_chunk_between_records() {
        let bytes = ChunkLimits { bytes: Some(10), ..ChunkLimits::default() };
        let of = |lens: &[u64]| lens.iter().map(|len| (*len, 0.0)).collect::<Vec<_>>();
        assert_eq!(chunks(bytes, &of(&[5, 5, 5, 99, 1, 10])), [2, 1, 1, 1, 1]);
        let records = ChunkLimits { records: Some(3), ..ChunkLimits::default() };
        assert_eq!(chunks(records, &of(&[1; 7])), [3, 3, 1]);
        let span = ChunkLimits { span: Some(1.0), ..ChunkLimits::default() };
        assert_eq!(chunks(span, &[(1, 0.0), (1, 0.5), (1, 1.0), (1, 1.5), (1, 9.0)]), [2, 2, 1]);
        let none = ChunkLimits::default();
        assert_eq!(chunks(none, &of(&[CHUNK_RAW_BYTES_MAX, 1, 1])), [1, 2]);
    }
}
