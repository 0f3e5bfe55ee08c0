//! Reading one field: a range of records or iterations, as columns or as values of a Rust type.

use std::ops::Range;

use super::blocks::Blocks;
use super::element::Element;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::format::column::{Column, ColumnId};

/// A field of a stream and a range of its records: all of them until said otherwise.
#[derive(Debug, Clone)]
#[must_use]
pub struct FieldRead<'s> {
    stream: &'s Stream,
    column: ColumnId,
    name: String,
    records: Range<u64>,
    iterations: Option<Range<i64>>,
    times: Option<Range<f64>>,
}

impl<'s> FieldRead<'s> {
    pub(super) fn new(stream: &'s Stream, column: ColumnId, name: &str) -> Self {
        let records = 0..stream.record_count();
        Self { stream, column, name: name.to_owned(), records, iterations: None, times: None }
    }

    /// Only these records, as far as they are there.
    pub fn records(mut self, records: Range<u64>) -> Self {
        let end = records.end.min(self.records.end);
        self.records = records.start.min(end)..end;
        self
    }

    /// Only the records whose iterations lie in this range.
    pub fn iterations(mut self, iterations: Range<i64>) -> Self {
        self.iterations = Some(iterations);
        self
    }

    /// Only the records whose times lie in this range.
    pub fn times(mut self, times: Range<f64>) -> Self {
        self.times = Some(times);
        self
    }

    /// The values chunk by chunk: at most one chunk of this field is in memory.
    ///
    /// # Errors
    /// `Damage` when the records of the range cannot be found; else as [`FieldRead::to_column`].
    pub fn columns(self) -> Result<Columns<'s>> {
        let this = self.resolved()?;
        Ok(Columns { stream: this.stream, column: this.column, records: this.records })
    }

    /// What is known of its blocks, sealed ones alone: bounds, missing values, how each is stored. The
    /// footers of the chunks are read, and no value; a block that the bounds of this take a part of is
    /// told whole.
    ///
    /// # Errors
    /// `Damage` when the records of the range cannot be found, or later for a footer.
    pub fn blocks(self) -> Result<Blocks<'s>> {
        let this = self.resolved()?;
        let ty = this.stream.field_of(this.column)?.ty;
        Ok(Blocks::new(this.stream, this.column, ty, this.records))
    }

    /// All values as one column.
    ///
    /// # Errors
    /// `Damage`; `NotFound` for times that there are not; `Conflict` when a stream of more than 1,024
    /// chunks was moved back or retired since it was opened.
    pub fn to_column(self) -> Result<Column> {
        let none = Column::of(&self.stream.field_of(self.column)?);
        let stream = self.stream;
        let mut all = none;
        self.each_column(&mut |column| {
            if all.is_empty() {
                all = column;
            } else if !all.extend(&column, 0..column.len()) {
                return Err(stream.wrong("chunks of different types"));
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// All values as a Rust type: see [`Element`]; as an `Option` where values may be missing.
    ///
    /// # Errors
    /// `Invalid`, naming the record, for a value of another type or a missing one; `TypeMismatch`
    /// for an opaque field of another type; else as [`FieldRead::to_column`].
    pub fn to_vec<T: Element>(self) -> Result<Vec<T>> {
        let name = format!("stream {:?} field {:?}", self.stream.name(), self.name);
        T::check(&self.stream.field_of(self.column)?)
            .map_err(|e| Error::new(e.kind(), "read", &name, e.cause()).with_source(e))?;
        let this = self.resolved()?;
        let mut at = this.records.start;
        let mut values = Vec::new();
        this.each_column(&mut |column| {
            for value in column.iter() {
                let decoded = T::decode(value)
                    .map_err(|e| e.told_of("read", format!("{name} record {at}")))?;
                values.push(decoded.ok_or_else(|| {
                    let cause = format!("record {at} is {}, not {}", value.kind(), T::NAME);
                    Error::invalid("read", &name, cause)
                })?);
                at += 1;
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// With the records that its bounds leave.
    fn resolved(mut self) -> Result<Self> {
        if let Some(iterations) = self.iterations.take() {
            let of = self.stream.records_of(iterations)?;
            self.records = self.records.start.max(of.start)..self.records.end.min(of.end);
        }
        if let Some(times) = self.times.take() {
            let of = self.stream.records_between_times(times)?;
            self.records = self.records.start.max(of.start)..self.records.end.min(of.end);
        }
        Ok(self)
    }

    /// Hands on the column of each chunk, in order; several chunks are decoded at once.
    fn each_column(self, take: &mut dyn FnMut(Column) -> Result<()>) -> Result<()> {
        let this = self.resolved()?;
        let (stream, column, records) = (this.stream, this.column, this.records.clone());
        let sealed = records.start..records.end.min(stream.sealed_record_count());
        if !sealed.is_empty()
            && let (Some(first), Some(last)) =
                (stream.chunk_of(sealed.start)?, stream.chunk_of(sealed.end - 1)?)
        {
            let decode = |n: u64| {
                let column = stream.open_chunk(first + n)?.column(column, sealed.clone())?;
                match column.is_empty() {
                    true => Err(stream.wrong("fewer records than its chunks say")),
                    false => Ok(column),
                }
            };
            stream.store.in_order(last + 1 - first, &decode, take)?;
        }
        let tail =
            Columns { records: records.start.max(sealed.end)..records.end, ..this.columns()? };
        tail.into_iter().try_for_each(|column| take(column?))
    }
}

/// Values of one field, chunk by chunk.
#[derive(Debug)]
pub struct Columns<'s> {
    stream: &'s Stream,
    column: ColumnId,
    records: Range<u64>,
}

impl Columns<'_> {
    fn next_column(&mut self) -> Result<Column> {
        let wanted = self.records.clone();
        let column = match self.stream.chunk_of(wanted.start)? {
            Some(at) => self.stream.open_chunk(at)?.column(self.column, wanted.clone())?,
            None => {
                let fields = match self.column {
                    ColumnId::Field(at) => vec![at],
                    ColumnId::Iteration | ColumnId::Time => Vec::new(),
                };
                let mut tail = self.stream.tail(&fields, wanted.clone())?;
                let column = match self.column {
                    ColumnId::Iteration => Some(tail.iterations),
                    ColumnId::Time => tail.times,
                    ColumnId::Field(_) => tail.columns.pop(),
                };
                column.ok_or_else(|| self.stream.wrong("no such field"))?
            }
        };
        if column.is_empty() {
            return Err(self.stream.wrong("fewer records than its chunks say"));
        }
        self.records.start += column.len() as u64;
        Ok(column)
    }
}

impl Iterator for Columns<'_> {
    type Item = Result<Column>;

    fn next(&mut self) -> Option<Result<Column>> {
        if self.records.start >= self.records.end {
            return None;
        }
        let column = self.next_column();
        if column.is_err() {
            // The first error ends it.
            self.records.start = self.records.end;
        }
        Some(column)
    }
}
