//! The batches of a group as batches of Arrow, within one schema: read once where they fit into memory,
//! twice where they do not.

use std::sync::Arc;

use super::lines::rows_of;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::Form;
use crate::interop::arrow::{
    JsonColumns, ParquetWriter, RecordBatch, Schema, SchemaRef, batches_from_bytes,
    schema_of_batch, union,
};
use crate::staging::describing::Batch;

/// A group of at most so many bytes in memory is read once.
const KEPT_BYTES: usize = 48 << 20;
/// JSON lines become a batch after so many bytes, where they are read twice.
const STEP_BYTES: usize = 8 << 20;

/// What is known of the batches of a group. Each is shown to [`look`](Self::look) first; the union of
/// schemas is known then.
#[derive(Debug)]
pub(super) struct Rows {
    arrow: Schema,
    json: JsonColumns,
    /// The batches seen so far, while they are few.
    kept: Option<Vec<RecordBatch>>,
    kept_bytes: usize,
    rows: u64,
    /// The schema of the Arrow batch that was looked at last, which Parquet has a form for.
    fitting: Option<SchemaRef>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            arrow: Schema::empty(),
            json: JsonColumns::new(),
            kept: Some(Vec::new()),
            kept_bytes: 0,
            rows: 0,
            fitting: None,
        }
    }

    /// Rows of all batches.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the schema of `batch` in, and its rows as long as there is room. `Some` is why Parquet has no
    /// form for it, whatever the others are: it is as if it had not been looked at.
    pub(super) fn look(&mut self, batch: Batch) -> Result<Option<String>> {
        match batch.form() {
            Form::JsonLines => {
                if let Some(why) = unfit_lines(&batch) {
                    return Ok(Some(why));
                }
                self.look_at_lines(&batch)?;
            }
            Form::Arrow => {
                let schema = match self.fitting(&batch) {
                    Err(e) if is_of_batch(&e) => return Ok(Some(e.chain())),
                    schema => schema?,
                };
                self.arrow = union(&self.arrow, &schema)?;
                self.rows = self.rows.saturating_add(batch.rows());
                self.look_at_arrow(batch)?;
            }
            other => return Err(refused(&format!("a batch is {other}"))),
        }
        if self.kept_bytes.saturating_add(self.json.bytes()) > KEPT_BYTES {
            self.kept = None;
            self.json.take()?;
        }
        Ok(None)
    }

    /// The schema of an Arrow batch, if Parquet has a form for it.
    fn fitting(&mut self, batch: &Batch) -> Result<SchemaRef> {
        let schema = schema_of_batch(batch.bytes())?;
        if self.fitting.as_ref() != Some(&schema) {
            ParquetWriter::check(&schema)?;
            self.fitting = Some(schema.clone());
        }
        Ok(schema)
    }

    fn look_at_lines(&mut self, batch: &Batch) -> Result<()> {
        for line in rows_of(batch.bytes()) {
            self.json.push(line)?;
            if self.json.bytes() > KEPT_BYTES {
                self.kept = None;
                self.json.take()?;
            }
        }
        self.rows = self.rows.saturating_add(batch.rows());
        Ok(())
    }

    fn look_at_arrow(&mut self, batch: Batch) -> Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        // Rows stay in the order in which they were accepted.
        if self.json.rows() > 0 {
            let lines = self.json.take()?;
            self.kept_bytes += lines.get_array_memory_size();
            kept.push(lines);
        }
        self.kept_bytes = self.kept_bytes.saturating_add(batch.bytes().len());
        if self.kept_bytes <= KEPT_BYTES {
            let rows = batch.rows();
            kept.extend(batches_from_bytes(batch.into_bytes(), rows)?.1);
        }
        Ok(())
    }

    /// The union of what was seen: columns of JSON lines behind those of Arrow batches.
    pub(super) fn schema(&self) -> Result<SchemaRef> {
        union(&self.arrow, &self.json.schema()).map(Arc::new)
    }

    /// All rows, if they are still here.
    pub(super) fn take_kept(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        // Lines looked at after there was no room are not to be there when they are read again.
        let lines = self.json.take()?;
        let Some(mut kept) = self.kept.take() else { return Ok(None) };
        if lines.num_rows() > 0 {
            kept.push(lines);
        }
        Ok(Some(kept))
    }

    /// Gives the rows of `batch`, seen before, to `each`: perhaps later, but in order.
    pub(super) fn read_again(
        &mut self,
        batch: Batch,
        each: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        if batch.form() == Form::Arrow {
            self.rest(each)?;
            let rows = batch.rows();
            let (_, batches) = batches_from_bytes(batch.into_bytes(), rows)?;
            return batches.iter().try_for_each(each);
        }
        for line in rows_of(batch.bytes()) {
            self.json.push(line)?;
            if self.json.bytes() > STEP_BYTES {
                self.rest(each)?;
            }
        }
        Ok(())
    }

    /// Gives what was held back.
    pub(super) fn rest(&mut self, each: &mut dyn FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        match self.json.rows() {
            0 => Ok(()),
            _ => each(&self.json.take()?),
        }
    }
}

/// Why lines have no form in Parquet.
fn unfit_lines(batch: &Batch) -> Option<String> {
    let mut rows = 0;
    for line in rows_of(batch.bytes()) {
        rows += 1;
        if !line.starts_with(b"{") {
            return Some(format!("its line {rows} is no object, and a key is a column"));
        }
    }
    (rows != batch.rows()).then(|| format!("a batch of {} rows has {rows} lines", batch.rows()))
}

/// Whether an error is about a batch alone, and stays.
fn is_of_batch(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Damage | ErrorKind::Unsupported | ErrorKind::LimitExceeded)
}

fn refused(what: &str) -> Error {
    let cause = format!("{what}: only Arrow batches and JSON lines become Parquet");
    Error::new(ErrorKind::TypeMismatch, "convert", "group", cause)
}
