//! Export: a recording becomes a CSV or JSON-lines file, rows and columns in their first order.

use std::io::Write;

use super::import::Progress;
use super::spelling;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Value;
use crate::interop::{Format, OutColumn, RowWriter};
use crate::recording::reading::{Merged, Recording, Stream};

const PROGRESS_ROWS: u64 = 4096;

/// What to export.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The format of the output.
    pub format: Format,
    /// Only these streams; all when empty.
    pub streams: Vec<String>,
    /// Only these fields, in this order; all, in schema order, when empty.
    pub fields: Vec<String>,
}

impl ExportOptions {
    /// Everything, in this format.
    pub fn new(format: Format) -> Self {
        Self { format, streams: Vec::new(), fields: Vec::new() }
    }
}

/// What an export did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Rows written.
    pub rows: u64,
    /// Values written, missing ones included.
    pub values: u64,
    /// Missing ones.
    pub missing: u64,
}

impl Recording {
    /// Writes the records of all streams as rows, by iteration; what an import read comes out in
    /// its first order. Streams that share an iteration keep the order of declaration.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream or field; `Damage`; `Cancelled`; `Io`, `DiskFull`.
    pub fn export<W: Write>(
        &self,
        output: W,
        options: &ExportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<(Exported, W)> {
        let streams = self.chosen_streams(&options.streams)?;
        let columns = self.chosen_columns(&options.fields)?;
        // Positions in each stream's own schema, of the columns that it has.
        let mut fields = Vec::with_capacity(streams.len());
        let mut sources = Vec::with_capacity(streams.len());
        for stream in &streams {
            let positions = columns.iter().map(|c| stream.schema().position(&c.name));
            let mut taken = Vec::new();
            let source = positions.map(|position| {
                position.map(|at| {
                    taken.push(at);
                    taken.len() - 1
                })
            });
            sources.push(source.collect::<Vec<Option<usize>>>());
            fields.push(taken);
        }
        let mut merged = Merged::new(&streams, &fields)?;
        let mut writer = RowWriter::new(output, options.format, columns)?;
        let mut missing = 0;
        while let Some(at) = merged.advance()? {
            let (Some(records), Some(source)) = (merged.records(at), sources.get(at)) else {
                continue;
            };
            let value = |from: &Option<usize>| from.map_or(Value::Missing, |at| records.get(at));
            let values: Vec<Value<'_>> = source.iter().map(value).collect();
            missing += values.iter().filter(|value| value.is_missing()).count() as u64;
            writer.row(&values)?;
            if writer.rows().is_multiple_of(PROGRESS_ROWS) && progress(writer.rows()).is_break() {
                let cause = format!("it was cancelled after {} records", writer.rows());
                let place = format!("{:?}", self.name());
                return Err(Error::new(ErrorKind::Cancelled, "export", place, cause));
            }
        }
        let rows = writer.rows();
        let values = rows * sources.first().map_or(0, Vec::len) as u64;
        Ok((Exported { rows, values, missing }, writer.finish()?))
    }

    fn chosen_streams(&self, names: &[String]) -> Result<Vec<Stream>> {
        if names.is_empty() {
            return self.streams();
        }
        names.iter().map(|name| self.stream(name)).collect()
    }

    fn chosen_columns(&self, names: &[String]) -> Result<Vec<OutColumn>> {
        let column = |name: &str| OutColumn::new(name, spelling::of(self.metadata(), name));
        if names.is_empty() {
            return Ok(self.schema().fields().iter().map(|f| column(&f.name)).collect());
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            if self.schema().position(name).is_none() {
                let place = format!("{:?} field {name:?}", self.name());
                return Err(Error::new(ErrorKind::NotFound, "export", place, "no such field"));
            }
            columns.push(column(name));
        }
        Ok(columns)
    }
}
