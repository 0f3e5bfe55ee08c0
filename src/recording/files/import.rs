//! Import: a CSV or JSON-lines file becomes a recording.
//!
//! The rows go straight into chunks. On any error nothing of the recording stays.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;

use super::left_over::{name_of_replacement, remove_left_over};
use super::spelling;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{FieldType, Schema, Value};
use crate::interop::{Cells, Format, Plan, ReadOptions, RowPlace, Table, write_scalar};
use crate::recording::describing::{check_name, check_recording_name};
use crate::recording::keeping::REPLACES;
use crate::recording::writing::Bulk;

/// The stream of an import that is not split.
pub const ROWS_STREAM: &str = "rows";
/// Progress is told after so many rows.
const PROGRESS_ROWS: u64 = 4096;

/// What to import, and as what.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The recording's name.
    pub name: String,
    /// What the input is.
    pub format: Format,
    /// How it is read.
    pub read: ReadOptions,
    /// The column whose values name the streams; one stream called `rows` without it.
    pub stream_by: Option<String>,
    /// The `i64` column that holds the iterations; the row number, from 0, without it.
    pub iteration: Option<String>,
    /// Bytes of records, before encoding, after which a chunk is sealed.
    pub chunk_bytes: u64,
    /// Whether a recording of this name is replaced, once all of the input is read.
    pub replaces: bool,
}

impl ImportOptions {
    /// Imports as the recording `name`, with the defaults of [`ReadOptions::new`].
    pub fn new(name: impl Into<String>, format: Format, source: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            format,
            read: ReadOptions::new(source),
            stream_by: None,
            iteration: None,
            chunk_bytes: crate::limits::Limits::default().chunk_bytes,
            replaces: false,
        }
    }

    /// One stream for each value of `column`.
    #[must_use]
    pub fn stream_by(mut self, column: impl Into<String>) -> Self {
        self.stream_by = Some(column.into());
        self
    }

    /// Replaces the recording of this name, if there is one, once all of the input is read.
    #[must_use]
    pub fn replacing(mut self) -> Self {
        self.replaces = true;
        self
    }
}

/// What an import did, or would do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Imported {
    /// Rows read.
    pub rows: u64,
    /// Values read, missing ones included.
    pub values: u64,
    /// Missing ones.
    pub missing: u64,
    /// The columns and their types.
    pub schema: Schema,
    /// Streams in the order in which they were met, each with its number of records.
    pub streams: Vec<(String, u64)>,
    /// Columns in which missing values are spelled in several ways, with the number of those that
    /// an export will spell otherwise.
    pub spelled_otherwise: Vec<(String, u64)>,
}

/// Called with the rows read so far; `Break` cancels.
pub type Progress<'p> = dyn FnMut(u64) -> ControlFlow<()> + 'p;

impl Store {
    /// Imports `input` as a new recording, which is complete when this returns.
    ///
    /// # Errors
    /// `Exists` when the name is taken and not replaced; `Invalid` for options that do not fit the input; `Input`,
    /// naming line, row, column, value and expected type; `Cancelled`; `Io`, `DiskFull`. Nothing
    /// of the recording stays then, unless the store halted: `retire_recording` removes that. A
    /// recording that was to be replaced stays as it is.
    ///
    /// # Durability
    /// The whole recording is durable when this returns.
    pub fn import(
        &self,
        input: impl Read,
        options: &ImportOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Imported> {
        Import::open(input, options)?.into_store(self, progress)
    }
}

/// Reads all of `input` as an import would, and writes nothing.
///
/// # Errors
/// As [`Store::import`], but for what concerns the store.
pub fn import_dry_run(
    input: impl Read,
    options: &ImportOptions,
    progress: &mut Progress<'_>,
) -> Result<Imported> {
    Import::open(input, options)?.dry_run(progress)
}

/// An input whose columns and types are known and fit the options. Nothing is written yet.
#[derive(Debug)]
pub struct Import<R> {
    rows: Rows<R>,
    options: ImportOptions,
}

impl<R: Read> Import<R> {
    /// Reads as much of `input` as is needed to know its columns and types.
    ///
    /// # Errors
    /// `Invalid`, `Input`, `Io`, as [`Store::import`].
    pub fn open(input: R, options: &ImportOptions) -> Result<Self> {
        Ok(Self { rows: Rows::open(input, options)?, options: options.clone() })
    }

    /// Imports it: the rest of [`Store::import`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub fn into_store(mut self, store: &Store, progress: &mut Progress<'_>) -> Result<Imported> {
        let mut bulk = self.start(store)?;
        let done = self.rows.each(progress, &mut |to| bulk_push(&mut bulk, to));
        if let Err(e) = done.and_then(|()| bulk.flush()) {
            // The first error is the one to tell; what could not be removed is found by name.
            let _ = bulk.discard();
            return Err(e);
        }
        let streams = bulk.streams().map(|(name, records)| (name.to_owned(), records)).collect();
        let metadata = spelling::metadata(self.rows.table.plans());
        if self.options.replaces {
            bulk.complete_replacing(&self.options.name, &metadata)?;
        } else {
            bulk.complete(&metadata)?;
        }
        Ok(self.rows.report(streams))
    }

    fn start(&self, store: &Store) -> Result<Bulk> {
        let Self { rows, options } = self;
        let name = if options.replaces {
            remove_left_over(store, &options.name)?;
            name_of_replacement(&options.name)
        } else {
            options.name.clone()
        };
        let mut draft = store
            .record(&name, &rows.schema)
            .chunk_bytes(options.chunk_bytes)
            .metadata(spelling::SOURCE, &options.read.source)
            .metadata(spelling::FORMAT, options.format.name());
        if options.replaces {
            draft = draft.metadata(REPLACES, &options.name);
        }
        draft.start_bulk()
    }

    /// Reads it all and writes nothing: the rest of [`import_dry_run`].
    ///
    /// # Errors
    /// As there.
    pub fn dry_run(mut self, progress: &mut Progress<'_>) -> Result<Imported> {
        let mut streams: Vec<(String, u64, i64)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        self.rows.each(progress, &mut |to| {
            let at = match known.get(to.stream) {
                Some(at) => *at,
                None => {
                    check_name("stream", to.stream)?;
                    streams.push((to.stream.to_owned(), 0, i64::MIN));
                    known.insert(to.stream.to_owned(), streams.len() - 1);
                    streams.len() - 1
                }
            };
            if let Some((_, records, last)) = streams.get_mut(at) {
                if *records > 0 && to.iteration <= *last {
                    let cause = format!("iteration {} does not follow {last}", to.iteration);
                    return Err(Error::invalid("append", format!("stream {:?}", to.stream), cause));
                }
                (*records, *last) = (*records + 1, to.iteration);
            }
            Ok(())
        })?;
        let streams = streams.into_iter().map(|(name, records, _)| (name, records)).collect();
        Ok(self.rows.report(streams))
    }
}

/// Where a row goes.
struct Destination<'a> {
    stream: &'a str,
    iteration: i64,
    values: &'a [Value<'a>],
}

fn bulk_push(bulk: &mut Bulk, to: &Destination<'_>) -> Result<()> {
    let stream = match bulk.stream(to.stream) {
        Some(stream) => stream,
        None => bulk.add_stream(to.stream)?,
    };
    bulk.push(stream, to.iteration, to.values)
}

/// The rows of an input, with what is counted on the way.
#[derive(Debug)]
struct Rows<R> {
    table: Table<R>,
    source: String,
    schema: Schema,
    stream_by: Option<usize>,
    iteration: Option<usize>,
    rows: u64,
    missing: u64,
}

impl<R: Read> Rows<R> {
    fn open(input: R, options: &ImportOptions) -> Result<Self> {
        check_recording_name(&options.name)?;
        let table = Table::open(input, options.format, options.read.clone())?;
        let schema = table.schema()?;
        let position = |column: &Option<String>, option: &str| match column {
            None => Ok(None),
            Some(column) => schema.position(column).map(Some).ok_or_else(|| {
                let cause = "there is no such column";
                Error::invalid("import", format!("{option} {column:?}"), cause)
            }),
        };
        let stream_by = position(&options.stream_by, "--stream-by")?;
        let iteration = position(&options.iteration, "--iteration")?;
        if let Some(field) = iteration.and_then(|at| schema.fields().get(at))
            && field.ty != FieldType::I64
        {
            let cause = format!("its type is {}; iterations are i64", field.ty.name());
            return Err(Error::invalid("import", format!("--iteration {:?}", field.name), cause));
        }
        let source = options.read.source.clone();
        Ok(Self { table, source, schema, stream_by, iteration, rows: 0, missing: 0 })
    }

    fn each(
        &mut self,
        progress: &mut Progress<'_>,
        take: &mut dyn FnMut(&Destination<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut cells = Cells::default();
        let mut stream = ROWS_STREAM.to_owned();
        while let Some(at) = self.table.next_row(&mut cells)? {
            let values = cells.values();
            self.rows += 1;
            self.missing += values.iter().filter(|value| value.is_missing()).count() as u64;
            if let Some(value) = self.stream_by.and_then(|at| values.get(at)) {
                stream.clear();
                self.stream_of(value, &mut stream);
            }
            let iteration = match self.iteration.map(|at| values.get(at)) {
                None => i64::try_from(at.row).unwrap_or(i64::MAX),
                Some(Some(Value::I64(iteration))) => *iteration,
                Some(_) => return Err(self.wrong(at, "its iteration is missing")),
            };
            take(&Destination { stream: &stream, iteration, values: &values }).map_err(|e| {
                match e.kind() {
                    // What the rows are to blame for names its row.
                    ErrorKind::Invalid | ErrorKind::LimitExceeded => {
                        self.wrong(at, format!("{}: {}", e.place(), e.cause())).with_source(e)
                    }
                    _ => e,
                }
            })?;
            if self.rows.is_multiple_of(PROGRESS_ROWS) && progress(self.rows).is_break() {
                let cause = format!("it was cancelled after {} rows", self.rows);
                return Err(Error::new(ErrorKind::Cancelled, "import", &self.source, cause));
            }
        }
        Ok(())
    }

    /// A missing value's stream is called as the column spells it.
    fn stream_of(&self, value: &Value<'_>, into: &mut String) {
        let plan = self.stream_by.and_then(|at| self.table.plans().get(at));
        match (value, plan) {
            (Value::Missing, Some(plan)) => into.push_str(spelling::stream_name(plan)),
            (value, _) => write_scalar(value, into),
        }
    }

    fn wrong(&self, at: RowPlace, cause: impl std::fmt::Display) -> Error {
        let place = format!("{} line {} (row {})", self.source, at.line, at.row);
        Error::new(ErrorKind::Input, "import", place, cause)
    }

    fn report(&self, streams: Vec<(String, u64)>) -> Imported {
        let plans = self.table.plans();
        let otherwise = |plan: &&Plan| plan.spelled_otherwise > 0;
        let otherwise = plans.iter().filter(otherwise);
        Imported {
            rows: self.rows,
            values: self.rows * plans.len() as u64,
            missing: self.missing,
            schema: self.schema.clone(),
            streams,
            spelled_otherwise: otherwise.map(|p| (p.name.clone(), p.spelled_otherwise)).collect(),
        }
    }
}
