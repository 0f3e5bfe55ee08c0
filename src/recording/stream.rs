//! A stream for reading: sealed chunks, then the journal's tail, as one sequence of rows.

use std::ops::Range;

use super::field::FieldRead;
use super::records::Records;
use crate::engine::{Store, StreamView};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{
    Chunk, Column, ColumnId, Field, FieldType, Schema, Value, row_payload,
};
use crate::ids::{ObjectId, StreamId};
use crate::manifest::{ChunkRow, ObjectRow, Reading};

/// A stream as it stood at one instant. Row `n` is the `n`-th record, from 0.
#[derive(Debug, Clone)]
pub struct Stream {
    store: Store,
    schema: Schema,
    view: StreamView,
}

/// A chunk that is open for reading.
#[derive(Debug)]
pub(super) struct OpenChunk<'s> {
    store: &'s Store,
    object: ObjectId,
    /// Its whole content, where most of it is wanted.
    content: Option<Vec<u8>>,
    pub chunk: Chunk,
    /// Its rows that count, in the stream.
    pub rows: Range<u64>,
}

/// Unsealed records, as columns.
#[derive(Debug)]
pub(super) struct Tail {
    pub iterations: Column,
    pub times: Option<Column>,
    pub columns: Vec<Column>,
}

impl Stream {
    pub(super) fn of_view(store: &Store, view: StreamView) -> Result<Self> {
        let schema = Schema::from_bytes(&view.row.schema)?;
        let mut next = 0u64;
        for (ordinal, chunk) in &view.chunks {
            if chunk.first.0 != next || chunk.rows > chunk.rows_written {
                let place = format!("stream {:?} chunk {ordinal}", view.row.name);
                let cause = format!("it begins at row {} instead of {next}", chunk.first);
                return Err(Error::damage("read", place, cause));
            }
            // P9: rows come from disk. What saturates cannot equal what is compared next.
            next = next.saturating_add(chunk.rows);
        }
        if next != view.row.sealed_upto.0 {
            let place = format!("stream {:?}", view.row.name);
            let cause = format!("{next} rows in chunks, {} sealed", view.row.sealed_upto);
            return Err(Error::damage("read", place, cause));
        }
        Ok(Self { store: store.clone(), schema, view })
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
    pub fn rows(&self) -> u64 {
        self.view.rows()
    }

    /// How many of them are sealed.
    pub fn sealed_rows(&self) -> u64 {
        self.view.row.sealed_upto.0
    }

    /// How many chunks it has.
    pub fn chunk_count(&self) -> usize {
        self.view.chunks.len()
    }

    /// Bytes of its sealed records before encoding.
    pub fn raw_bytes(&self) -> u64 {
        self.view.chunks.iter().fold(0, |sum, (_, chunk)| sum.saturating_add(chunk.raw_len))
    }

    /// Bytes of its chunks as they are stored.
    ///
    /// # Errors
    /// `Damage` when a chunk has no object.
    pub fn stored_bytes(&self) -> Result<u64> {
        let snapshot = self.store.snapshot()?;
        let mut bytes = 0u64;
        for (_, chunk) in &self.view.chunks {
            let stored = snapshot.require::<ObjectRow>(&chunk.object)?.stored_len;
            bytes = bytes.saturating_add(stored);
        }
        Ok(bytes)
    }

    /// First and last iteration; `None` without a record.
    ///
    /// # Errors
    /// `Damage`.
    pub fn iterations(&self) -> Result<Option<(i64, i64)>> {
        let rows = self.rows();
        if rows == 0 {
            return Ok(None);
        }
        let at = |row: u64| -> Result<Option<i64>> {
            let column = self.iteration().rows(row..row + 1).to_column()?;
            Ok(column.as_i64().and_then(|values| values.first().copied()))
        };
        match (at(0)?, at(rows - 1)?) {
            (Some(first), Some(last)) => Ok(Some((first, last))),
            _ => Err(self.wrong("rows without an iteration")),
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

    /// Records with the fields at `fields`, over `rows`, one after the other. At most about
    /// `held_bytes` of them are in memory, and one chunk.
    pub fn records(&self, fields: Vec<usize>, rows: Range<u64>, held_bytes: u64) -> Records<'_> {
        Records::new(self, fields, rows, held_bytes)
    }

    /// The rows whose iterations lie in `wanted`.
    ///
    /// # Errors
    /// `Damage`.
    pub fn rows_of(&self, wanted: Range<i64>) -> Result<Range<u64>> {
        let start = self.first_row_from(wanted.start)?;
        let end = self.first_row_from(wanted.end)?;
        Ok(start..end.max(start))
    }

    /// The first row whose iteration is at least `bound`; the row count if none is.
    fn first_row_from(&self, bound: i64) -> Result<u64> {
        let ends_before = |chunk: &ChunkRow| chunk.iterations.is_some_and(|(_, last)| last < bound);
        let from = self.view.chunks.partition_point(|(_, chunk)| ends_before(chunk));
        // A chunk that was cut may end before `bound` all the same: then the next one is asked.
        for (at, (_, row)) in self.view.chunks.iter().enumerate().skip(from) {
            let open = self.open_chunk(at)?;
            let found = open.chunk.rows_of(&mut |o, n| open.read(o, n), bound..i64::MAX)?.start;
            if found < row.rows {
                return Ok(row.first.0.saturating_add(found));
            }
        }
        let mut row = self.sealed_rows();
        for (_, payload) in &self.view.tail {
            if row_payload::iteration(&self.store.payload_bytes(payload)?)? >= bound {
                break;
            }
            row += 1;
        }
        Ok(row)
    }

    /// The chunk that holds `row`, as its index; `None` in the tail.
    pub(super) fn chunk_of(&self, row: u64) -> Option<usize> {
        let ends_before = |chunk: &ChunkRow| chunk.first.0.saturating_add(chunk.rows) <= row;
        let at = self.view.chunks.partition_point(|(_, chunk)| ends_before(chunk));
        (at < self.view.chunks.len()).then_some(at)
    }

    pub(super) fn open_chunk(&self, at: usize) -> Result<OpenChunk<'_>> {
        let Some((ordinal, row)) = self.view.chunks.get(at) else {
            return Err(self.wrong(&format!("no chunk number {at}")));
        };
        let place = format!("stream {:?} chunk {ordinal}", self.name());
        let len = self.store.snapshot()?.require::<ObjectRow>(&row.object)?.len;
        let object = row.object;
        let mut read = |offset, len| read_range(&self.store, object, offset, len);
        let chunk = Chunk::open(&place, len, &mut read)?;
        if chunk.schema() != &self.schema || chunk.rows() != row.rows_written {
            let cause = "schema or row count differ from what the rows say";
            return Err(Error::damage("read", place, cause));
        }
        let rows = row.first.0..row.first.0.saturating_add(row.rows);
        Ok(OpenChunk { store: &self.store, object, content: None, chunk, rows })
    }

    /// Decodes unsealed records as columns, with the fields at `fields`.
    pub(super) fn tail(&self, fields: &[usize], rows: Range<u64>) -> Result<Tail> {
        let mut iterations = Column::new(FieldType::I64);
        let mut times = self.schema.is_timed().then(|| Column::new(FieldType::F64));
        let of = fields.iter().filter_map(|at| self.schema.fields().get(*at));
        let mut columns: Vec<Column> = of.map(Column::of).collect();
        let from = rows.start.saturating_sub(self.sealed_rows()) as usize;
        let count = rows.end.saturating_sub(rows.start) as usize;
        for (sequence, payload) in self.view.tail.iter().skip(from).take(count) {
            let bytes = self.store.payload_bytes(payload)?;
            let mut values = Vec::new();
            let (iteration, time) = row_payload::decode(&self.schema, &bytes, &mut values)
                .map_err(|e| {
                    let place = format!("stream {:?} row {sequence}", self.name());
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

    pub(super) fn wrong(&self, cause: &str) -> Error {
        Error::damage("read", format!("stream {:?}", self.name()), cause)
    }
}

impl OpenChunk<'_> {
    /// Fetches the whole content at once, for a reader of most of it.
    pub fn fetch_whole(&mut self) -> Result<()> {
        self.content = Some(self.store.fetch(self.object)?);
        Ok(())
    }

    fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let Some(content) = &self.content else {
            return read_range(self.store, self.object, offset, len);
        };
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let bytes = range.and_then(|(at, len)| content.get(at..)?.get(..len));
        bytes.map(<[u8]>::to_vec).ok_or_else(|| {
            Error::damage("read", format!("object {}", self.object), "it is shorter than it says")
        })
    }

    /// Decodes rows of the stream that lie in this chunk.
    pub fn column(&self, column: ColumnId, rows: Range<u64>) -> Result<Column> {
        let rows = rows.start.max(self.rows.start)..rows.end.min(self.rows.end);
        let within = rows.start - self.rows.start..rows.end.max(rows.start) - self.rows.start;
        self.chunk.column(&mut |offset, len| self.read(offset, len), column, within)
    }
}

fn read_range(store: &Store, object: ObjectId, offset: u64, len: u64) -> Result<Vec<u8>> {
    store.fetch_range(object, offset..offset.saturating_add(len))
}
