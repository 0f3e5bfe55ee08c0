//! Records one after the other, column-wise behind the scenes, in bounded memory.

use std::ops::Range;

use super::open_chunk::OpenChunk;
use super::run::{backwards, not_growing};
use super::stream::Stream;
use crate::error::Result;
use crate::format::column::{Column, ColumnId, FieldType, Value};

/// With a smaller share of memory than this a chunk is not kept between loads.
const CHUNK_KEPT_BYTES_MIN: u64 = 1 << 20;

/// What a decoded record takes. The chunk says how long its records are; fields take their share of
/// memory whatever it says.
fn record_bytes(raw_len: u64, records: u64, fields: usize) -> u64 {
    (raw_len / records.max(1)).max(9 + 8 * fields as u64)
}

/// Walks over records. Call [`Records::advance`], then look.
#[derive(Debug)]
pub struct Records<'s> {
    stream: &'s Stream,
    fields: Vec<usize>,
    /// Records that are not loaded yet.
    rest: Range<u64>,
    held_bytes: u64,
    chunk: Option<OpenChunk<'s>>,
    iterations: Column,
    /// Of a timed stream.
    times: Option<Column>,
    columns: Vec<Column>,
    /// The record at hand, in the columns.
    at: usize,
    /// The last iteration that was loaded.
    last: Option<i64>,
}

impl<'s> Records<'s> {
    pub(super) fn new(
        stream: &'s Stream,
        fields: Vec<usize>,
        records: Range<u64>,
        held_bytes: u64,
    ) -> Self {
        let end = records.end.min(stream.record_count());
        Self {
            stream,
            fields,
            rest: records.start.min(end)..end,
            held_bytes,
            chunk: None,
            iterations: Column::new(FieldType::I64),
            times: None,
            columns: Vec::new(),
            at: 0,
            last: None,
        }
    }

    /// Goes to the next record. Returns whether there is one. The first error ends it: nothing is
    /// at hand behind it, and nothing follows.
    ///
    /// # Errors
    /// `Damage`; `Invalid` for a field that the stream does not have; `Conflict` when a stream of
    /// more than 1,024 chunks was moved back or retired since it was opened.
    pub fn advance(&mut self) -> Result<bool> {
        self.at += 1;
        if self.at < self.iterations.len() {
            return Ok(true);
        }
        if self.rest.is_empty() {
            // Stay beyond the end.
            self.at = self.iterations.len();
            return Ok(false);
        }
        let loaded = self.load();
        if loaded.is_err() {
            self.end();
        }
        loaded.map(|()| true)
    }

    /// Forgets what is at hand, which may be half of a record, and all that would follow.
    fn end(&mut self) {
        self.rest = self.rest.end..self.rest.end;
        self.chunk = None;
        self.iterations = Column::new(FieldType::I64);
        (self.times, self.at) = (None, 0);
        self.columns.clear();
    }

    /// The iteration of the record at hand.
    pub fn iteration(&self) -> i64 {
        match self.iterations.get(self.at) {
            Value::I64(iteration) => iteration,
            _ => 0,
        }
    }

    /// The time of the record at hand, where the stream has times.
    pub fn time(&self) -> Option<f64> {
        match self.times.as_ref()?.get(self.at) {
            Value::F64(time) => Some(time),
            _ => None,
        }
    }

    /// The value of the field at `at` among those asked for.
    pub fn get(&self, at: usize) -> Value<'_> {
        self.columns.get(at).map_or(Value::Missing, |column| column.get(self.at))
    }

    /// All values of the record at hand.
    pub fn values(&self) -> Vec<Value<'_>> {
        self.columns.iter().map(|column| column.get(self.at)).collect()
    }

    fn load(&mut self) -> Result<()> {
        self.at = 0;
        let start = self.rest.start;
        let Some(index) = self.stream.chunk_of(start)? else {
            self.chunk = None;
            let end = self.rest.end.min(start + self.tail_records());
            let tail = self.stream.tail(&self.fields, start..end)?;
            (self.iterations, self.times, self.columns) =
                (tail.iterations, tail.times, tail.columns);
            return self.loaded();
        };
        if self.chunk.as_ref().is_none_or(|open| !open.records.contains(&start)) {
            let mut open = self.stream.open_chunk(index)?;
            // One read of everything is cheaper than one for each of most blocks.
            if self.fields.len() * 2 > self.stream.schema().fields().len() {
                open.fetch_whole()?;
            }
            self.chunk = Some(open);
        }
        let Some(open) = &self.chunk else { return Ok(()) };
        let record_bytes =
            record_bytes(open.chunk.raw_len(), open.chunk.record_count(), self.fields.len());
        let count = (self.held_bytes / record_bytes).max(1);
        let end = self.rest.end.min(open.records.end).min(start.saturating_add(count));
        self.iterations = open.column(ColumnId::Iteration, start..end)?;
        self.times = match self.stream.schema().is_timed() {
            true => Some(open.column(ColumnId::Time, start..end)?),
            false => None,
        };
        self.columns.clear();
        for at in &self.fields {
            self.columns.push(open.column(ColumnId::Field(*at), start..end)?);
        }
        if self.held_bytes < CHUNK_KEPT_BYTES_MIN {
            self.chunk = None;
        }
        self.loaded()
    }

    /// Unsealed records are few: a chunk is sealed before they are many.
    fn tail_records(&self) -> u64 {
        (self.held_bytes / 64).max(1)
    }

    fn loaded(&mut self) -> Result<()> {
        let records = self.iterations.len();
        if records == 0
            || self.columns.iter().chain(&self.times).any(|column| column.len() != records)
        {
            return Err(self.stream.wrong("columns of different lengths"));
        }
        if let Some(wrong) = not_growing(&self.iterations, self.last) {
            let place = format!(
                "stream {:?} record {}",
                self.stream.name(),
                self.rest.start + wrong.0 as u64
            );
            return Err(backwards(place, wrong));
        }
        if let Value::I64(last) = self.iterations.get(records - 1) {
            self.last = Some(last);
        }
        self.rest.start += records as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Can a chunk that says nothing of its length be decoded all at once?
    #[test]
    fn g22_a_lying_chunk_takes_no_more_memory() {
        assert_eq!(record_bytes(0, 131_072, 10), 89);
        assert_eq!(record_bytes(1 << 20, 1 << 10, 10), 1024);
        assert_eq!(record_bytes(5, 0, 0), 9);
    }
}
