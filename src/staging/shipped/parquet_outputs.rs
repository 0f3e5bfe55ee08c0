//! Outputs that are Parquet: their rows, their schema, several of them as one.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::interop::arrow::{
    ParquetReader, ParquetWriter, RecordBatch, Schema, SchemaRef, schema_from_bytes,
    schema_to_bytes, union, widen_in_steps,
};
use crate::staging::converting::{OutputReader, OutputView, OutputWriter};

/// Rows of an output: those that its footer says, once as many values of its first column were read.
pub(super) fn count_rows(output: &mut OutputReader) -> Result<u64> {
    let mut fetch = |range| output.read_range(range);
    let mut reader = ParquetReader::open_first_column(output.len(), &mut fetch)?;
    let mut found = 0_u64;
    while let Some(batch) = reader.next_batch(&mut fetch)? {
        found = found.saturating_add(batch.num_rows() as u64);
    }
    if found == reader.rows() {
        return Ok(found);
    }
    let cause = format!("its footer says {} rows, and {found} are there", reader.rows());
    Err(Error::damage("read", "Parquet", cause))
}

/// The schema of an output.
pub(super) fn schema(output: &OutputReader) -> Result<Vec<u8>> {
    let reader = ParquetReader::open(output.len(), &mut |range| output.read_range(range))?;
    schema_to_bytes(reader.schema())
}

/// STG28: the union of two schemas.
pub(super) fn merge_schema(stage: &[u8], output: &[u8]) -> Result<Vec<u8>> {
    schema_to_bytes(&union(&*schema_from_bytes(stage)?, &*schema_from_bytes(output)?)?)
}

/// Writes the rows of all outputs, in their order, as one.
pub(super) fn merge(
    inputs: &[(OutputView, OutputReader)],
    out: &mut OutputWriter<'_>,
) -> Result<u64> {
    let mut all = Schema::empty();
    for (_, output) in inputs {
        let reader = ParquetReader::open(output.len(), &mut |range| output.read_range(range))?;
        all = match all.fields().is_empty() {
            true => reader.schema().as_ref().clone(),
            false => union(&all, reader.schema())?,
        };
    }
    let all = Arc::new(all);
    let mut writer = ParquetWriter::new(all.clone())?;
    let mut rows = 0;
    for (_, output) in inputs {
        let mut fetch = |range| output.read_range(range);
        let mut reader = ParquetReader::open(output.len(), &mut fetch)?;
        while let Some(batch) = reader.next_batch(&mut fetch)? {
            push(&mut writer, &batch, &all, out)?;
            rows += batch.num_rows() as u64;
        }
    }
    writer.finish(&mut |bytes| out.put(bytes))?;
    Ok(rows)
}

/// Writes a batch as one of `schema`, which is the writer's, step by step.
pub(super) fn push(
    writer: &mut ParquetWriter,
    batch: &RecordBatch,
    schema: &SchemaRef,
    out: &mut OutputWriter<'_>,
) -> Result<()> {
    let mut step = |batch: &_| writer.push(batch, &mut |bytes| out.put(bytes));
    widen_in_steps(batch, schema, &mut step)
}
