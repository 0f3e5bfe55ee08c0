//! The lenient reader: everything of a recording that reads, in bounded memory, and a list of the
//! gaps. Nothing that it shows is less checked than elsewhere; it goes on where others stop.
//!
//! ```text
//!   row of the stream ─▶ its fields ─▶ rows of chunks, one by one ─▶ each chunk ─▶ each column
//!                                      journals, as far as they read ─▶ the tail
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use super::chunks::Chunks;
use super::open_chunk::Footers;
use super::reader::Recording;
use super::run::{backwards, not_growing};
use super::stream::Stream;
use crate::engine::StreamView;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Column, ColumnId, Schema, Value};
use crate::ids::{Ordinal, StreamId};
use crate::manifest::{ChunkRow, Reading, RecordingStatus, StreamRow};
use crate::protection::Protection;

/// Rows of chunks that are held at once.
const ROWS_HELD: usize = 256;

/// Records that read, one behind the other.
#[derive(Debug)]
#[non_exhaustive]
pub struct Readable<'r> {
    /// The stream's name.
    pub stream: &'r str,
    /// Its fields.
    pub schema: &'r Schema,
    /// Which records of the stream.
    pub records: Range<u64>,
    /// Their iterations.
    pub iterations: Column,
    /// Their times, where they have times that read.
    pub times: Option<Column>,
    /// Their values, field by field; none of a field that does not read.
    pub columns: Vec<Option<Column>>,
}

/// What a lenient reader could not return.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Gap {
    /// The stream's name, or its number where that does not read.
    pub stream: String,
    /// The field, where only one of the records' fields is missing.
    pub field: Option<String>,
    /// Which records of the stream; up to `u64::MAX` where nobody knows how many they were.
    pub records: Range<u64>,
    /// Their first and last iteration, where that is known.
    pub iterations: Option<(i64, i64)>,
    /// Why.
    pub cause: Error,
}

impl Recording {
    /// The recording, if it is complete.
    ///
    /// # Errors
    /// `Conflict` for one that is running or failed, with the reason.
    pub fn strict(&self) -> Result<&Self> {
        let cause = match self.status() {
            RecordingStatus::Complete => return Ok(self),
            RecordingStatus::Running => "it is running, not complete".to_owned(),
            RecordingStatus::Failed { reason } => format!("it failed: {reason}"),
        };
        Err(Error::new(ErrorKind::Conflict, "read", format!("{:?}", self.name()), cause))
    }

    /// Shows every record that reads, stream by stream and in order, and returns the gaps between
    /// them. A gap is not an error; what `visit` returns ends it.
    ///
    /// # Errors
    /// What `visit` returns; `Halted`, `Io` where it is not a chunk or a record that the disk does not
    /// give, and such, which say nothing about the data.
    pub fn lenient(&self, visit: &mut dyn FnMut(Readable<'_>) -> Result<()>) -> Result<Vec<Gap>> {
        let mut reading = Lenient { gaps: Vec::new(), visit };
        for id in self.stream_ids() {
            reading.stream(self, *id)?;
        }
        Ok(reading.gaps)
    }
}

/// Whether the data is at fault, and not the way to it.
fn is_gap(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Damage | ErrorKind::NewerFormat | ErrorKind::NotFound)
}

struct Lenient<'v> {
    gaps: Vec<Gap>,
    visit: &'v mut dyn FnMut(Readable<'_>) -> Result<()>,
}

/// A stretch of a stream's records.
struct Stretch<'s> {
    name: &'s str,
    records: Range<u64>,
    iterations: Option<(i64, i64)>,
}

impl Lenient<'_> {
    fn gap(&mut self, of: &Stretch<'_>, field: Option<&str>, cause: Error) -> Result<()> {
        if !is_gap(&cause) {
            return Err(cause);
        }
        self.note(of, field, cause);
        Ok(())
    }

    /// The same where one chunk or one record is read: sectors that the disk does not give are a gap
    /// in it, and nothing is known of others. What stopped the store is told as `Halted`.
    fn unread(&mut self, of: &Stretch<'_>, field: Option<&str>, cause: Error) -> Result<()> {
        if cause.kind() == ErrorKind::Io {
            self.note(of, field, cause);
            return Ok(());
        }
        self.gap(of, field, cause)
    }

    fn note(&mut self, of: &Stretch<'_>, field: Option<&str>, cause: Error) {
        let gap = Gap {
            stream: of.name.to_owned(),
            field: field.map(str::to_owned),
            records: of.records.clone(),
            iterations: of.iterations,
            cause,
        };
        if Protection::GapListed.is_on() {
            self.gaps.push(gap);
        }
    }

    fn stream(&mut self, of: &Recording, id: StreamId) -> Result<()> {
        let all = |name| Stretch { name, records: 0..u64::MAX, iterations: None };
        let row = match of.store().snapshot()?.require::<StreamRow>(&id) {
            Ok(row) => row,
            Err(e) => return self.gap(&all(&format!("stream {id}")), None, e),
        };
        let schema = match Schema::from_bytes(&row.schema) {
            Ok(schema) => schema,
            Err(e) => {
                let place = format!("stream {:?}", row.name);
                let e = Error::new(e.kind(), "read", place, e.cause()).with_source(e);
                return self.gap(&all(&row.name), None, e);
            }
        };
        // The tail first: what is sealed meanwhile is then in chunks, not in neither.
        let (tail, broken) = of.store().tail_as_far_as_it_reads(id)?;
        let name = row.name.clone();
        let view = StreamView { stream: id, row: tail.row, chunks: Vec::new(), tail: tail.tail };
        let sealed_upto = view.row.sealed_upto.0;
        let tail_end = sealed_upto.saturating_add(view.tail.len() as u64);
        let chunks = Chunks::none(&view);
        let footers = Footers::default();
        let stream = Stream { store: of.store().clone(), schema, view, chunks, footers };
        let last = self.chunks(&stream, sealed_upto)?;
        self.tail(&stream, sealed_upto..tail_end, last)?;
        if let Some(cause) = broken {
            let records = tail_end..u64::MAX;
            self.gap(&Stretch { name: &name, records, iterations: None }, None, cause)?;
        }
        Ok(())
    }

    /// Every chunk; returns the last iteration that was shown.
    fn chunks(&mut self, stream: &Stream, sealed_upto: u64) -> Result<Option<i64>> {
        let (mut next, mut last, mut lost) = (0, None, None);
        // P9: the rows that there are tell how many there are, not the one that says it.
        let (mut expected, end) = (0, stream.view.row.next_ordinal.0);
        let mut rows = VecDeque::new();
        while expected < end {
            if rows.is_empty() {
                let of = |ordinal| (stream.id(), Ordinal(ordinal));
                let snapshot = stream.store.snapshot()?;
                rows = snapshot.list_each::<ChunkRow>(of(expected)..of(end), ROWS_HELD)?.into();
            }
            let found = rows.pop_front();
            let ordinal = found.as_ref().map_or(end, |((_, ordinal), _)| ordinal.0);
            if ordinal > expected {
                let cause = format!("the rows of chunks {expected}..{ordinal} are not there");
                let place = format!("stream {:?}", stream.name());
                lost.get_or_insert(Error::damage("read", place, cause));
            }
            expected = ordinal.saturating_add(1);
            let row = match found {
                None => break,
                Some((_, Ok(row))) => row,
                Some((_, Err(e))) => {
                    // The next row tells where this one ended.
                    lost.get_or_insert(e);
                    continue;
                }
            };
            let hole = next..row.first.0;
            if let Some(cause) = lost.take().or_else(|| missing(stream, ordinal, &hole)) {
                self.gap(
                    &Stretch { name: stream.name(), records: hole, iterations: None },
                    None,
                    cause,
                )?;
            }
            if row.first.0 < next || row.records > row.records_written {
                let place = stream.chunk_place(ordinal);
                let cause = format!("it begins at record {} instead of {next}", row.first);
                let records = row.first.0..row.first.0.saturating_add(row.records);
                let of = Stretch { name: stream.name(), records, iterations: row.iterations };
                self.gap(&of, None, Error::damage("read", place, cause))?;
                continue;
            }
            next = row.first.0.saturating_add(row.records);
            self.chunk(stream, ordinal, &row, &mut last)?;
        }
        let hole = next..sealed_upto;
        let cause = lost.or_else(|| missing(stream, stream.view.row.next_ordinal.0, &hole));
        if let Some(cause) = cause {
            self.gap(
                &Stretch { name: stream.name(), records: hole, iterations: None },
                None,
                cause,
            )?;
        }
        Ok(last)
    }

    fn chunk(
        &mut self,
        stream: &Stream,
        ordinal: u64,
        row: &ChunkRow,
        last: &mut Option<i64>,
    ) -> Result<()> {
        let records = row.first.0..row.first.0.saturating_add(row.records);
        let of = Stretch { name: stream.name(), records, iterations: row.iterations };
        let open = match stream.open_row(ordinal, row) {
            Ok(open) => open,
            Err(e) => return self.unread(&of, None, e),
        };
        let column = |column| open.column(column, of.records.clone());
        let iterations = match column(ColumnId::Iteration) {
            Ok(iterations) => iterations,
            Err(e) => return self.unread(&of, None, e),
        };
        let times = match stream.schema().is_timed().then(|| column(ColumnId::Time)).transpose() {
            Ok(times) => times,
            Err(e) => {
                self.unread(&of, Some("time"), e)?;
                None
            }
        };
        let mut columns = Vec::new();
        for (at, field) in stream.schema().fields().iter().enumerate() {
            columns.push(match column(ColumnId::Field(at)) {
                Ok(column) => Some(column),
                Err(e) => {
                    self.unread(&of, Some(&field.name), e)?;
                    None
                }
            });
        }
        let place = || stream.chunk_place(ordinal);
        self.show(stream, of, &place, (iterations, times, columns), last)
    }

    fn tail(&mut self, stream: &Stream, records: Range<u64>, mut last: Option<i64>) -> Result<()> {
        let fields: Vec<usize> = (0..stream.schema().fields().len()).collect();
        // One by one: of an unsealed record that does not decode nothing else is lost.
        for at in records {
            let records = at..at + 1;
            let of = Stretch { name: stream.name(), records: records.clone(), iterations: None };
            match stream.tail(&fields, records) {
                Ok(tail) => {
                    let columns = tail.columns.into_iter().map(Some).collect();
                    let place = || format!("stream {:?} record {at}", stream.name());
                    let found = (tail.iterations, tail.times, columns);
                    self.show(stream, of, &place, found, &mut last)?;
                }
                Err(e) => self.unread(&of, None, e)?,
            }
        }
        Ok(())
    }

    /// Shows what was found, as far as its iterations grow.
    fn show(
        &mut self,
        stream: &Stream,
        of: Stretch<'_>,
        place: &dyn Fn() -> String,
        (iterations, times, columns): (Column, Option<Column>, Vec<Option<Column>>),
        last: &mut Option<i64>,
    ) -> Result<()> {
        let wrong = not_growing(&iterations, *last);
        let good = wrong.map_or(iterations.len(), |(at, _, _)| at);
        let upto = of.records.start.saturating_add(good as u64);
        if let Some(wrong) = wrong {
            let Stretch { name, iterations, .. } = of;
            let rest = Stretch { name, records: upto..of.records.end, iterations };
            self.gap(&rest, None, backwards(place(), wrong))?;
        }
        if good == 0 {
            return Ok(());
        }
        let part = |column: Column| match good == column.len() {
            true => Ok(column),
            false => first_values(&column, good).ok_or_else(|| stream.wrong("no such type")),
        };
        let iterations = part(iterations)?;
        if let Value::I64(iteration) = iterations.get(good - 1) {
            *last = Some(iteration);
        }
        let columns = columns.into_iter().map(|column| column.map(part).transpose());
        (self.visit)(Readable {
            stream: stream.name(),
            schema: stream.schema(),
            records: of.records.start..upto,
            iterations,
            times: times.map(part).transpose()?,
            columns: columns.collect::<Result<_>>()?,
        })
    }
}

/// The first values of a column.
fn first_values(column: &Column, count: usize) -> Option<Column> {
    let mut first = column.empty();
    first.extend(column, 0..count).then_some(first)
}

/// What to say of records that no chunk has.
fn missing(stream: &Stream, ordinal: u64, hole: &Range<u64>) -> Option<Error> {
    let cause = || format!("records {}..{} before it are in no chunk", hole.start, hole.end);
    (!hole.is_empty()).then(|| Error::damage("read", stream.chunk_place(ordinal), cause()))
}
