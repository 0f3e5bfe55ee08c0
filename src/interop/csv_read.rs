//! CSV to typed rows, in bounded memory.

use std::collections::VecDeque;
use std::io::Read;

use csv::ByteRecord;

use super::cells::Cells;
use super::gate::{Allowance, Gate};
use super::guess::Guess;
use super::options::ReadOptions;
use super::plan::{self, Missing, Plan, RowPlace};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{FIELD_NAME_BYTES_MAX, FIELDS_MAX, FieldType};

const BUFFER_BYTES: usize = 64 << 10;
/// The longest header line: as many names as there may be, as long as they may be.
const HEADER_BYTES_MAX: usize = FIELDS_MAX * (FIELD_NAME_BYTES_MAX + 3);

/// Reads CSV with a header line. Blank lines are no rows.
#[derive(Debug)]
pub struct CsvReader<R> {
    options: ReadOptions,
    reader: csv::Reader<Gate<R>>,
    allowance: Allowance,
    plans: Vec<Plan>,
    /// Rows that were read to infer types and not given out yet.
    sample: VecDeque<(ByteRecord, u64)>,
    record: ByteRecord,
    row: u64,
}

impl<R: Read> CsvReader<R> {
    /// Reads the header and the rows that types are inferred from.
    ///
    /// # Errors
    /// `Invalid` for options that do not fit the columns; `Input` for a header that is missing,
    /// repeats a name or is not UTF-8, for rows that are too long or of another width, and for a
    /// value that contradicts a given type; `Io`.
    pub fn open(input: R, options: ReadOptions) -> Result<Self> {
        options.check()?;
        let allowance = Allowance::default();
        let reader = csv::ReaderBuilder::new()
            .delimiter(options.delimiter)
            .buffer_capacity(BUFFER_BYTES)
            .has_headers(false)
            .from_reader(Gate::new(input, allowance.clone()));
        let mut this = Self {
            options,
            reader,
            allowance,
            plans: Vec::new(),
            sample: VecDeque::new(),
            record: ByteRecord::new(),
            row: 0,
        };
        this.read_header()?;
        this.read_sample()?;
        Ok(this)
    }

    /// The columns, as far as they are known: spellings of missing values may still be met.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Reads the next row into `cells`, or `None` at the end.
    ///
    /// # Errors
    /// `Input`, naming line, row and column; `Io`.
    pub fn next_row(&mut self, cells: &mut Cells) -> Result<Option<RowPlace>> {
        let line = match self.sample.pop_front() {
            Some((record, line)) => {
                self.record = record;
                line
            }
            None => match self.read_record(self.options.record_bytes_max)? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        let at = RowPlace { row: self.row, line };
        self.row += 1;
        cells.clear();
        for (plan, bytes) in self.plans.iter_mut().zip(self.record.iter()) {
            let text = text_of(&self.options, at, &plan.name, bytes)?;
            if let Some(spelling) = missing(&self.options, plan, text) {
                plan.met(&spelling);
                cells.push(crate::format::column::Value::Missing);
            } else if !cells.parse(plan.ty, &plan.shape, text) {
                return Err(plan::conflict(&self.options, at, plan, text));
            }
        }
        Ok(Some(at))
    }

    fn read_header(&mut self) -> Result<()> {
        let at = RowPlace { row: 0, line: 1 };
        // The parser takes 24 bytes for each value of a first row, so that row has a bound of its own.
        let most = self.options.record_bytes_max.min(HEADER_BYTES_MAX);
        if self.read_record(most)?.is_none() {
            let place = &self.options.source;
            return Err(Error::new(ErrorKind::Input, "import", place, "it has no header line"));
        }
        // Before anything is made of each: a header may be nothing but commas.
        if self.record.len() > FIELDS_MAX {
            let cause = format!("it has {} columns; {FIELDS_MAX} is the most", self.record.len());
            return Err(plan::wrong(&self.options, at, cause));
        }
        for (number, bytes) in self.record.iter().enumerate() {
            let name = text_of(&self.options, at, &format!("number {number}"), bytes)?;
            let given = self.options.given(name);
            self.plans.push(Plan::new(name.to_owned(), given, FieldType::String));
        }
        plan::schema(&self.plans)?;
        plan::check_given(&self.options, &self.plans)
    }

    fn read_sample(&mut self) -> Result<()> {
        let mut bytes = 0;
        while self.sample.len() < self.options.infer_rows && bytes < self.options.infer_bytes {
            let Some(line) = self.read_record(self.options.record_bytes_max)? else { break };
            bytes += self.record.as_slice().len() + 64 + 8 * self.record.len();
            self.sample.push_back((self.record.clone(), line));
        }
        for (column, plan) in self.plans.iter_mut().enumerate() {
            let texts = self.sample.iter().filter_map(|(record, _)| record.get(column));
            let rank = texts
                .clone()
                .filter_map(|text| self.options.missing.iter().position(|m| m.as_bytes() == text))
                .min();
            plan.missing = rank.map(|rank| Missing::Text(self.options.missing[rank].clone()));
            if !plan.given {
                let mut guess = Guess::of_text();
                // A text that is not UTF-8 is refused when its row is given out.
                for text in texts.filter_map(|text| std::str::from_utf8(text).ok()) {
                    if !self.options.missing.iter().any(|m| m == text) {
                        guess.see_text(text);
                    }
                }
                plan.ty = guess.narrowest();
            }
        }
        Ok(())
    }

    /// Reads one record of at most `most` bytes and returns its line.
    fn read_record(&mut self, most: usize) -> Result<Option<u64>> {
        let most = most as u64;
        self.allowance.set(most.saturating_add(BUFFER_BYTES as u64));
        let row = self.row + self.sample.len() as u64;
        let line = self.reader.position().line();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(false) => Ok(None),
            Ok(true) => Ok(Some(self.record.position().map_or(line, csv::Position::line))),
            Err(_) if self.allowance.is_spent() => {
                let cause = format!("it is longer than {most} bytes; is a quote never closed?");
                Err(plan::wrong(&self.options, RowPlace { row, line }, cause))
            }
            Err(e) => Err(self.refused(RowPlace { row, line }, e)),
        }
    }

    fn refused(&self, at: RowPlace, error: csv::Error) -> Error {
        match error.into_kind() {
            csv::ErrorKind::Io(e) => Error::io("import", &self.options.source, e),
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let line = pos.map_or(at.line, |pos| pos.line());
                let cause = format!("it has {len} values under a header of {expected_len}");
                plan::wrong(&self.options, RowPlace { line, ..at }, cause)
            }
            other => plan::wrong(&self.options, at, format!("it is not CSV: {other:?}")),
        }
    }
}

/// How `text` spells a missing value of this column, if it does. In a column of text only the
/// column's own spelling does, so that every other text is kept as it is.
fn missing(options: &ReadOptions, plan: &Plan, text: &str) -> Option<Missing> {
    let listed = options.missing.iter().any(|m| m == text);
    let own = match (&plan.missing, plan.ty) {
        (Some(Missing::Text(own)), FieldType::String | FieldType::Json) => own == text,
        _ => true,
    };
    (listed && own).then(|| Missing::Text(text.to_owned()))
}

fn text_of<'a>(
    options: &ReadOptions,
    at: RowPlace,
    column: &str,
    bytes: &'a [u8],
) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        let cause = format!("{:?} is not UTF-8", plan::shortened(&String::from_utf8_lossy(bytes)));
        plan::wrong_at(options, at, column, cause).with_source(e)
    })
}
