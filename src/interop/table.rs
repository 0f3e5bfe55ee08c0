//! A file as a table of typed rows, whatever its format.

use std::io::Read;

use super::cells::Cells;
use super::csv_read::CsvReader;
use super::jsonl_read::JsonlReader;
use super::options::{Format, ReadOptions};
use super::plan::{self, Plan, RowPlace};
use crate::error::Result;
use crate::format::column::Schema;

/// Typed rows of an input.
#[derive(Debug)]
pub struct Table<R>(Reader<R>);

#[derive(Debug)]
enum Reader<R> {
    Csv(Box<CsvReader<R>>),
    Jsonl(Box<JsonlReader<R>>),
}

impl<R: Read> Table<R> {
    /// Reads as much as is needed to know columns and types.
    ///
    /// # Errors
    /// `Invalid` for options that do not fit the input; `Input` for an input that is not of the
    /// format; `Io`.
    pub fn open(input: R, format: Format, options: ReadOptions) -> Result<Self> {
        Ok(Self(match format {
            Format::Csv => Reader::Csv(Box::new(CsvReader::open(input, options)?)),
            Format::Jsonl => Reader::Jsonl(Box::new(JsonlReader::open(input, options)?)),
        }))
    }

    /// The columns. How missing values are spelled is known for certain only at the end.
    pub fn plans(&self) -> &[Plan] {
        match &self.0 {
            Reader::Csv(reader) => reader.plans(),
            Reader::Jsonl(reader) => reader.plans(),
        }
    }

    /// The columns as a schema in which any value may be missing.
    ///
    /// # Errors
    /// `Input` for names that are no field names.
    pub fn schema(&self) -> Result<Schema> {
        plan::schema(self.plans())
    }

    /// Reads the next row into `cells`, or `None` at the end.
    ///
    /// # Errors
    /// `Input`, naming line, row, column, the value and the type expected; `Io`.
    pub fn next_row(&mut self, cells: &mut Cells) -> Result<Option<RowPlace>> {
        match &mut self.0 {
            Reader::Csv(reader) => reader.next_row(cells),
            Reader::Jsonl(reader) => reader.next_row(cells),
        }
    }
}
