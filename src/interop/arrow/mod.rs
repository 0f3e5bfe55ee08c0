//! arrow: batches of Arrow to bytes and back, schemas to their union, JSON lines to columns, Parquet.
//!
//! ```text
//!   RecordBatch ──▶ ipc (a stream of one batch) ──▶ bytes of a batch
//!   JSON lines ──▶ json_columns (one column for each key, widened as values come) ──▶ RecordBatch
//!                         │ union (schemas)   steps (some rows at a time), widen (to that union)
//!                         ▼
//!   RecordBatch ──▶ parquet_write ──▶ bytes ──▶ parquet_read ──▶ RecordBatch
//! ```
//!
//! - A column is widened only where no value changes; types that have no union are an error that names
//!   the column and both types.
//! - Equal batches give equal bytes; memory follows the row group, never the length of the input.
//! - P9: values are built only where bytes justify them: what shares values, or has none, is summed up first.
//! - Bytes that were read are not trusted: what is no Arrow or Parquet is an error, whatever it is.

mod ipc;
mod json_column;
mod json_columns;
#[cfg(feature = "parquet")]
mod parquet_read;
#[cfg(feature = "parquet")]
mod parquet_write;
mod steps;
mod union;
mod widen;

pub use arrow_array::RecordBatch;
pub use arrow_schema::{Schema, SchemaRef};
pub use ipc::{
    batch_to_bytes, batches_from_bytes, schema_from_bytes, schema_of_batch, schema_to_bytes,
};
pub use json_columns::JsonColumns;
#[cfg(feature = "parquet")]
pub use parquet_read::ParquetReader;
#[cfg(feature = "parquet")]
pub use parquet_write::ParquetWriter;
pub use steps::widen_in_steps;
pub use union::union;
