//! Batches to a Parquet file, row group by row group.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::union::check_width;
use crate::error::{Error, ErrorKind, Result};

/// A row group ends at about so many encoded bytes.
const GROUP_BYTES: usize = 32 << 20;
/// And at so many rows.
const GROUP_ROWS: usize = 1 << 20;
const LEVEL: i32 = 3;

/// Writes batches of one schema as Parquet, through zstd-3. Memory holds a row group of 32 MiB, as
/// encoded, at most. Equal batches give equal bytes, however what they say was staged.
pub struct ParquetWriter(pub(super) ArrowWriter<Vec<u8>>);

impl ParquetWriter {
    /// A file of batches of `schema`.
    ///
    /// # Errors
    /// `Unsupported` for a schema that has no column, or one of a type that Parquet has no form for;
    /// `LimitExceeded` for one of more than 10,000 columns together: each takes memory of its own.
    pub fn new(schema: SchemaRef) -> Result<Self> {
        if schema.fields().is_empty() {
            let cause = "its rows have no column, and Parquet holds columns only";
            return Err(Error::new(ErrorKind::Unsupported, "write", "Parquet", cause));
        }
        check_width(schema.fields())?;
        let level = ZstdLevel::try_new(LEVEL).map_err(refused)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map(Self).map_err(refused)
    }

    /// Looks whether Parquet has a form for `schema`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn check(schema: &SchemaRef) -> Result<()> {
        Self::new(schema.clone()).map(drop)
    }

    /// Takes `batch` in. What is complete by now goes to `out`.
    ///
    /// # Errors
    /// Those of `out`; `Unsupported` for a batch of another schema.
    pub fn push(
        &mut self,
        batch: &RecordBatch,
        out: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.0.write(batch).map_err(refused)?;
        let written = self.0.inner_mut();
        if !written.is_empty() {
            out(written)?;
            written.clear();
        }
        Ok(())
    }

    /// Writes what is left, and the footer.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        out(&self.0.into_inner().map_err(refused)?)
    }
}

impl fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ParquetWriter").finish_non_exhaustive()
    }
}

fn refused(source: ParquetError) -> Error {
    let cause = "Parquet has no form for it";
    Error::new(ErrorKind::Unsupported, "write", "Parquet", cause).with_source(source)
}
