//! Arrow batches and JSON lines to Parquet.

use super::parquet_outputs;
use super::rows::Rows;
use crate::error::Result;
use crate::interop::arrow::{ParquetWriter, RecordBatch};
use crate::staging::converting::{
    Converter, Input, Merger, OutputReader, OutputView, OutputWriter,
};
use crate::staging::describing::GroupView;

const FORM: &str = "parquet";

/// Writes the rows of Arrow batches and of JSON lines as Parquet, through zstd-3, in row groups of 32 MiB.
///
/// An output has the union of the schemas of its batches: a column that a batch lacks is null for its
/// rows, and a type widens where no value changes (int32 to int64, float32 to float64, integers to
/// float64 where one equals each of them, unsigned beside signed, a dictionary to what is in it). Types
/// that have no union are an error of that group, which names the column and both; the stage's schema,
/// the union of those of its outputs, stays then.
///
/// Of JSON lines, which must be objects, a key is a column: text, boolean, int64, float64, a list, a struct.
/// A key that has only nulls, or only empty objects, is a column of nulls. A batch with other lines, and one
/// of Arrow types that Parquet has no form for, goes to quarantine, and the others become the output.
///
/// A group of up to about 48 MiB is read once; a larger one twice, the first time for its schema. Memory is
/// bounded by that and a row group. As a [`Merger`] it makes several of its outputs one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToParquet;

impl ToParquet {
    /// The converter: it has nothing to set.
    pub fn new() -> Self {
        Self
    }
}

impl Converter for ToParquet {
    fn form(&self) -> &str {
        FORM
    }

    fn convert(
        &self,
        _group: &GroupView,
        input: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        let mut rows = Rows::new();
        while let Some(batch) = input.next() {
            if let Some(why) = rows.look(batch?)? {
                input.refuse(why)?;
            }
        }
        // STG23: no row, no byte.
        if rows.rows() == 0 {
            return Ok(0);
        }
        let schema = rows.schema()?;
        let mut writer = ParquetWriter::new(schema.clone())?;
        let mut written = 0;
        let mut push = |batch: &RecordBatch| {
            written += batch.num_rows() as u64;
            parquet_outputs::push(&mut writer, batch, &schema, out)
        };
        match rows.take_kept()? {
            Some(kept) => kept.iter().try_for_each(push)?,
            None => {
                input.start_over();
                for batch in input {
                    rows.read_again(batch?, &mut push)?;
                }
                rows.rest(&mut push)?;
            }
        }
        writer.finish(&mut |bytes| out.put(bytes))?;
        Ok(written)
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        parquet_outputs::count_rows(output)
    }

    fn schema(&self, output: &mut OutputReader) -> Result<Vec<u8>> {
        parquet_outputs::schema(output)
    }

    fn merge_schema(&self, stage: &[u8], output: &[u8]) -> Result<Vec<u8>> {
        parquet_outputs::merge_schema(stage, output)
    }
}

impl Merger for ToParquet {
    fn form(&self) -> &str {
        FORM
    }

    fn merge(
        &self,
        inputs: &[(OutputView, OutputReader)],
        out: &mut OutputWriter<'_>,
    ) -> Result<u64> {
        parquet_outputs::merge(inputs, out)
    }

    fn count_rows(&self, output: &mut OutputReader) -> Result<u64> {
        parquet_outputs::count_rows(output)
    }

    fn schema(&self, output: &mut OutputReader) -> Result<Vec<u8>> {
        parquet_outputs::schema(output)
    }
}
