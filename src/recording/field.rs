//! Reading one field: a range of rows or iterations, as columns or as values of a Rust type.

use std::ops::Range;

use super::stream::Stream;
use crate::error::{Error, Result};
use crate::format::column::{Column, ColumnId, Value};

/// A field of a stream and a range of its rows: all of them until said otherwise.
#[derive(Debug, Clone)]
#[must_use]
pub struct FieldRead<'s> {
    stream: &'s Stream,
    column: ColumnId,
    name: String,
    rows: Range<u64>,
    iterations: Option<Range<i64>>,
}

impl<'s> FieldRead<'s> {
    pub(super) fn new(stream: &'s Stream, column: ColumnId, name: &str) -> Self {
        let rows = 0..stream.rows();
        Self { stream, column, name: name.to_owned(), rows, iterations: None }
    }

    /// Only these rows, as far as they are there.
    pub fn rows(mut self, rows: Range<u64>) -> Self {
        let end = rows.end.min(self.rows.end);
        self.rows = rows.start.min(end)..end;
        self
    }

    /// Only the rows whose iterations lie in this range.
    pub fn iterations(mut self, iterations: Range<i64>) -> Self {
        self.iterations = Some(iterations);
        self
    }

    /// The values chunk by chunk: at most one chunk of this field is in memory.
    ///
    /// # Errors
    /// `Damage` when the rows of the range cannot be found.
    pub fn columns(self) -> Result<Columns<'s>> {
        let mut rows = self.rows;
        if let Some(iterations) = self.iterations {
            let of = self.stream.rows_of(iterations)?;
            rows = rows.start.max(of.start)..rows.end.min(of.end);
        }
        Ok(Columns { stream: self.stream, column: self.column, rows })
    }

    /// All values as one column.
    ///
    /// # Errors
    /// `Damage`.
    pub fn to_column(self) -> Result<Column> {
        let ty = match self.column {
            ColumnId::Iteration => crate::format::column::FieldType::I64,
            ColumnId::Field(at) => match self.stream.schema().fields().get(at) {
                Some(field) => field.ty,
                None => return Err(self.stream.wrong("no such field")),
            },
        };
        let stream = self.stream;
        let mut all: Option<Column> = None;
        for column in self.columns()? {
            let column = column?;
            match &mut all {
                None => all = Some(column),
                Some(all) => {
                    if !all.extend(&column, 0..column.len()) {
                        return Err(stream.wrong("chunks of different types"));
                    }
                }
            }
        }
        Ok(all.unwrap_or_else(|| Column::new(ty)))
    }

    /// All values as a Rust type: `f64`, `i64`, `bool`, `String`, `Vec<u8>`, or an `Option` of
    /// one of them where values may be missing.
    ///
    /// # Errors
    /// `Invalid`, naming the row, for a value of another type or a missing one; `Damage`.
    pub fn to_vec<T: Element>(self) -> Result<Vec<T>> {
        let name = format!("stream {:?} field {:?}", self.stream.name(), self.name);
        let columns = self.columns()?;
        let mut row = columns.rows.start;
        let mut values = Vec::new();
        for column in columns {
            for value in column?.iter() {
                values.push(T::from_value(value).ok_or_else(|| {
                    let found = value.field_type().map_or("missing", |ty| ty.name());
                    let cause = format!("row {row} is {found}, not {}", T::NAME);
                    Error::invalid("read", &name, cause)
                })?);
                row += 1;
            }
        }
        Ok(values)
    }
}

/// Values of one field, chunk by chunk.
#[derive(Debug)]
pub struct Columns<'s> {
    stream: &'s Stream,
    column: ColumnId,
    rows: Range<u64>,
}

impl Columns<'_> {
    fn next_column(&mut self) -> Result<Column> {
        let wanted = self.rows.clone();
        let column = match self.stream.chunk_of(wanted.start) {
            Some(at) => self.stream.open_chunk(at)?.column(self.column, wanted.clone())?,
            None => match self.column {
                ColumnId::Iteration => self.stream.tail(&[], wanted.clone())?.0,
                ColumnId::Field(at) => {
                    let (_, mut columns) = self.stream.tail(&[at], wanted.clone())?;
                    columns.pop().ok_or_else(|| self.stream.wrong("no such field"))?
                }
            },
        };
        if column.is_empty() {
            return Err(self.stream.wrong("fewer rows than its rows say"));
        }
        self.rows.start += column.len() as u64;
        Ok(column)
    }
}

impl Iterator for Columns<'_> {
    type Item = Result<Column>;

    fn next(&mut self) -> Option<Result<Column>> {
        if self.rows.start >= self.rows.end {
            return None;
        }
        let column = self.next_column();
        if column.is_err() {
            // The first error ends it.
            self.rows.start = self.rows.end;
        }
        Some(column)
    }
}

/// A Rust type that a field's values can be read as.
pub trait Element: Sized {
    /// Its name in errors.
    const NAME: &'static str;
    /// The value, if it is of this type.
    fn from_value(value: Value<'_>) -> Option<Self>;
}

macro_rules! elements {
    ($($ty:ty, $name:literal, $pattern:pat => $value:expr;)*) => {$(
        impl Element for $ty {
            const NAME: &'static str = $name;
            fn from_value(value: Value<'_>) -> Option<Self> {
                match value {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}

elements! {
    f64, "f64", Value::F64(v) => v;
    i64, "i64", Value::I64(v) => v;
    bool, "bool", Value::Bool(v) => v;
    String, "string", Value::String(v) | Value::Json(v) => v.to_owned();
    Vec<u8>, "bytes", Value::Bytes(v) => v.to_vec();
}

impl<T: Element> Element for Option<T> {
    const NAME: &'static str = T::NAME;
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Missing => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}
