//! shipped: the converters and mergers that come with the crate.
//!
//! ```text
//!   JSON lines ──▶ JsonLinesToZstd ──▶ jsonl.zst ──[merge]──▶ jsonl.zst
//!   JSON lines, Arrow ──[schemas: union]──▶ ToParquet ──▶ parquet ──[merge]──▶ parquet
//! ```
//!
//! - STG24: rows are counted in the bytes that were read back: line by line, or row group by row group.
//! - STG28: an output has the union of the schemas of its batches, the stage that of its outputs. Types
//!   without a union are an error of that group, and name the column and both.
//! - Equal batches in equal order give equal bytes; memory follows a row group, not the output.

mod json_lines_to_zstd;
mod lines;
#[cfg(feature = "parquet")]
mod parquet_outputs;
#[cfg(feature = "parquet")]
mod rows;
#[cfg(feature = "parquet")]
mod to_parquet;

pub(super) use json_lines_to_zstd::FORM as JSON_LINES_ZSTD;
pub use json_lines_to_zstd::JsonLinesToZstd;
#[cfg(any(feature = "arrow", all(test, feature = "interop")))]
pub(super) use lines::rows_of;
#[cfg(feature = "parquet")]
pub use to_parquet::ToParquet;
