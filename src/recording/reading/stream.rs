//! A stream for reading: sealed chunks, then the journal's tail, as one sequence of records.

use std::ops::Range;

use super::chunks::Chunks;
use super::field::FieldRead;
use super::open_chunk::Footers;
use super::records::Records;
use crate::engine::{Store, StreamView};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{
    Column, ColumnId, Field, FieldType, Schema, Value, row_payload, split_dropped,
};
use crate::ids::StreamId;
use crate::manifest::{ChunkRow, ObjectRow, Reading};

/// A stream as it stood at one instant. Row `n` is the `n`-th record, from 0.
#[derive(Debug, Clone)]
pub struct Stream {
    pub(super) store: Store,
    pub(super) schema: Schema,
    pub(super) view: StreamView,
    pub(super) chunks: Chunks,
    pub(super) footers: Footers,
}

/// Unsealed records, as columns.
#[derive(Debug)]
pub(super) struct Tail {
    pub iterations: Column,
    pub times: Option<Column>,
    pub columns: Vec<Column>,
}

/// From where on records are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    Iteration(i64),
    Time(f64),
}

impl Bound {
    /// Whether a whole chunk lies below it, as its row says.
    fn is_behind(self, chunk: &ChunkRow) -> bool {
        match self {
            Self::Iteration(bound) => chunk.iterations.is_some_and(|(_, last)| last < bound),
            Self::Time(bound) => chunk.times.is_some_and(|(_, last)| f64::from_bits(last) < bound),
        }
    }

    /// Whether none of a chunk lies below it, as its row says.
    fn is_before(self, chunk: &ChunkRow) -> bool {
        match self {
            Self::Iteration(bound) => chunk.iterations.is_some_and(|(first, _)| first >= bound),
            Self::Time(bound) => {
                chunk.times.is_some_and(|(first, _)| f64::from_bits(first) >= bound)
            }
        }
    }
}

impl Stream {
    pub(in crate::recording) fn of_view(store: &Store, mut view: StreamView) -> Result<Self> {
        let schema = Schema::from_bytes(&view.row.schema)?;
        let chunks = Chunks::of_view(store, &mut view)?;
        Ok(Self { store: store.clone(), schema, view, chunks, footers: Footers::default() })
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        self.view.stream
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.view.row.name
    }

    /// Its fields.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How many records it has.
    pub fn record_count(&self) -> u64 {
        self.view.record_count()
    }

    /// How many of them are sealed.
    pub fn sealed_record_count(&self) -> u64 {
        self.view.row.sealed_upto.0
    }

    /// How many chunks it has.
    pub fn chunk_count(&self) -> usize {
        usize::try_from(self.chunks.len()).unwrap_or(usize::MAX)
    }

    /// Bytes of its sealed records before encoding.
    ///
    /// # Errors
    /// `Damage` when the row of a chunk cannot be read.
    pub fn raw_bytes(&self) -> Result<u64> {
        let mut bytes = 0u64;
        for chunk in self.chunks.iter() {
            bytes = bytes.saturating_add(chunk?.raw_len);
        }
        Ok(bytes)
    }

    /// Bytes of its chunks as they are stored.
    ///
    /// # Errors
    /// `Damage` when a chunk has no object.
    pub fn stored_bytes(&self) -> Result<u64> {
        let snapshot = self.store.snapshot()?;
        let mut bytes = 0u64;
        for chunk in self.chunks.iter() {
            let stored = snapshot.require::<ObjectRow>(&chunk?.object)?.stored_len;
            bytes = bytes.saturating_add(stored);
        }
        Ok(bytes)
    }

    /// How many records were due and left out, for want of room in the queue, or because nobody
    /// triggered them: see [`Overflow`](crate::recording::Overflow). It survives a crash as far as the record does
    /// that came next; what was left out behind the last one is counted when its recorder ends, and a
    /// crash before that loses it. A run that goes on from a checkpoint, and a fork, begin with what was
    /// counted when the checkpoint was made. One that goes on from the end keeps what was counted behind the
    /// last record: iterations of those that it does again, as it may, are counted a second time if they
    /// are left out again, and are counted and recorded if not.
    ///
    /// # Errors
    /// `Damage`.
    pub fn dropped(&self) -> Result<u64> {
        let mut dropped = self.view.row.dropped;
        for (_, payload) in &self.view.tail {
            let mut fetched = Vec::new();
            let bytes = self.store.payload_slice(payload, &mut fetched)?;
            dropped = dropped.saturating_add(split_dropped(bytes)?.0);
        }
        Ok(dropped)
    }

    /// First and last iteration; `None` without a record.
    ///
    /// # Errors
    /// `Damage`.
    pub fn iterations(&self) -> Result<Option<(i64, i64)>> {
        let records = self.record_count();
        if records == 0 {
            return Ok(None);
        }
        let at = |record: u64| -> Result<Option<i64>> {
            let column = self.iteration().records(record..record + 1).to_column()?;
            Ok(column.as_i64().and_then(|values| values.first().copied()))
        };
        match (at(0)?, at(records - 1)?) {
            (Some(first), Some(last)) => Ok(Some((first, last))),
            _ => Err(self.wrong("records without an iteration")),
        }
    }

    /// A field, for reading.
    ///
    /// # Errors
    /// `NotFound`, with the fields there are.
    pub fn field(&self, name: &str) -> Result<FieldRead<'_>> {
        match self.schema.position(name) {
            Some(at) => Ok(FieldRead::new(self, ColumnId::Field(at), name)),
            None => {
                let names = self.schema.fields().iter().map(|f| format!("{:?}", f.name));
                let names = names.take(20).collect::<Vec<_>>().join(", ");
                let cause = format!("there is no such field; there are {names}");
                let place = format!("stream {:?} field {name:?}", self.name());
                Err(Error::new(ErrorKind::NotFound, "read", place, cause))
            }
        }
    }

    /// The iterations, for reading.
    pub fn iteration(&self) -> FieldRead<'_> {
        FieldRead::new(self, ColumnId::Iteration, "iteration")
    }

    /// The times, for reading.
    ///
    /// # Errors
    /// `NotFound` where its records have none.
    pub fn time(&self) -> Result<FieldRead<'_>> {
        if !self.schema.is_timed() {
            let place = format!("stream {:?}", self.name());
            return Err(Error::new(ErrorKind::NotFound, "read", place, "its records have no time"));
        }
        Ok(FieldRead::new(self, ColumnId::Time, "time"))
    }

    /// What a column holds.
    pub(super) fn field_of(&self, column: ColumnId) -> Result<Field> {
        match column {
            ColumnId::Iteration => Ok(Field::new("iteration", FieldType::I64)),
            ColumnId::Time => Ok(Field::new("time", FieldType::F64)),
            ColumnId::Field(at) => {
                let field = self.schema.fields().get(at);
                field.cloned().ok_or_else(|| self.wrong("no such field"))
            }
        }
    }

    /// Records with the fields at `fields`, over `records`, one after the other. At most about
    /// `held_bytes` of them are in memory, and one chunk.
    pub fn records(&self, fields: Vec<usize>, records: Range<u64>, held_bytes: u64) -> Records<'_> {
        Records::new(self, fields, records, held_bytes)
    }

    /// The records whose iterations lie in `wanted`.
    ///
    /// # Errors
    /// `Damage`; `Conflict` when a stream of more than 1,024 chunks was moved back or retired since
    /// it was opened.
    pub fn records_of(&self, wanted: Range<i64>) -> Result<Range<u64>> {
        let start = self.first_row_from(Bound::Iteration(wanted.start))?;
        let end = self.first_row_from(Bound::Iteration(wanted.end))?;
        Ok(start..end.max(start))
    }

    /// The records whose times lie in `wanted`.
    ///
    /// # Errors
    /// `NotFound` where its records have no time; `Invalid` for a bound that is no number; `Damage`.
    pub fn records_between_times(&self, wanted: Range<f64>) -> Result<Range<u64>> {
        self.time().map(drop)?;
        if wanted.start.is_nan() || wanted.end.is_nan() {
            let place = format!("stream {:?}", self.name());
            return Err(Error::invalid("read", place, "a range of times with NaN"));
        }
        let start = self.first_row_from(Bound::Time(wanted.start))?;
        let end = self.first_row_from(Bound::Time(wanted.end))?;
        Ok(start..end.max(start))
    }

    /// The first record that is not below `bound`; the record count if all are.
    fn first_row_from(&self, bound: Bound) -> Result<u64> {
        let from = self.chunks.partition_point(|chunk| bound.is_behind(chunk))?;
        // A chunk that was cut may end before `bound` all the same: then the next one is asked.
        for at in from..self.chunks.len() {
            let row = self.chunks.get(at)?;
            let found = match bound.is_before(&row) {
                true => 0,
                false => self.open_chunk(at)?.first_row_from(bound)?,
            };
            if found < row.records {
                return Ok(row.first.0.saturating_add(found));
            }
        }
        let mut record = self.sealed_record_count();
        for (_, payload) in &self.view.tail {
            let bytes = self.store.payload_bytes(payload)?;
            let is_there = match bound {
                Bound::Iteration(bound) => row_payload::iteration(&bytes)? >= bound,
                Bound::Time(bound) => {
                    row_payload::moment(&bytes)?.1.is_some_and(|time| time >= bound)
                }
            };
            if is_there {
                break;
            }
            record += 1;
        }
        Ok(record)
    }

    /// The position of the chunk that holds `record`; `None` in the tail.
    ///
    /// # Errors
    /// `Damage`; `Conflict` when the stream was moved back since it was opened.
    pub(super) fn chunk_of(&self, record: u64) -> Result<Option<u64>> {
        if record >= self.sealed_record_count() {
            return Ok(None);
        }
        let ends_before = |chunk: &ChunkRow| chunk.first.0.saturating_add(chunk.records) <= record;
        self.chunks.partition_point(ends_before).map(Some)
    }

    /// Decodes unsealed records as columns, with the fields at `fields`.
    pub(super) fn tail(&self, fields: &[usize], records: Range<u64>) -> Result<Tail> {
        let mut iterations = Column::new(FieldType::I64);
        let mut times = self.schema.is_timed().then(|| Column::new(FieldType::F64));
        let mut columns = Vec::with_capacity(fields.len());
        for at in fields {
            let field = self.schema.fields().get(*at).ok_or_else(|| {
                let cause = format!("it has no field number {at}");
                Error::invalid("read", format!("stream {:?}", self.name()), cause)
            })?;
            columns.push(Column::of(field));
        }
        let from = records.start.saturating_sub(self.sealed_record_count()) as usize;
        let count = records.end.saturating_sub(records.start) as usize;
        for (sequence, payload) in self.view.tail.iter().skip(from).take(count) {
            let bytes = self.store.payload_bytes(payload)?;
            let mut values = Vec::new();
            let (iteration, time) = row_payload::decode(&self.schema, &bytes, &mut values)
                .map_err(|e| {
                    let place = format!("stream {:?} record {sequence}", self.name());
                    Error::new(e.kind(), "read", place, e.cause()).with_source(e)
                })?;
            let mut taken = iterations.push(Value::I64(iteration));
            if let (Some(times), Some(time)) = (&mut times, time) {
                taken &= times.push(Value::F64(time));
            }
            for (column, at) in columns.iter_mut().zip(fields) {
                taken &= column.push(values.get(*at).copied().unwrap_or(Value::Missing));
            }
            if !taken {
                return Err(self.wrong("a record of another type"));
            }
        }
        Ok(Tail { iterations, times, columns })
    }

    pub(in crate::recording) fn wrong(&self, cause: &str) -> Error {
        Error::damage("read", format!("stream {:?}", self.name()), cause)
    }
}
