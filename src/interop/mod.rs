//! interop: files of others to typed rows, and back.
//!
//! ```text
//!   bytes ──▶ gate ──▶ csv_read | jsonl_read ──▶ cells (one typed row) ──▶ recording
//!                         │ first rows: guess ──▶ plan (name, type, spelling of missing values)
//!   bytes ◀── write ◀── values of a row ◀────────────────────────────────── recording
//!   arrow: batches of Arrow, JSON lines as columns, Parquet ─────────────── staging
//! ```
//!
//! - Memory follows the options, never the length of the input or of a row.
//! - A value is taken for a number only where printing it gives the same number; what does not fit
//!   its column is an error that names line, row and column, never a value changed in silence.
//! - A missing value is spelled on the way out as on the way in.

// Unions of schemas are for outputs: without Parquet no output has columns.
#[cfg(feature = "arrow")]
#[cfg_attr(not(feature = "parquet"), allow(dead_code, unused_imports))]
pub(crate) mod arrow;
mod cells;
mod csv_read;
mod gate;
mod guess;
mod json_check;
mod jsonl_read;
mod number;
mod options;
mod plan;
mod table;
mod write;

pub use cells::Cells;
pub(crate) use json_check::check_json;
pub use options::{Format, ReadOptions};
pub use plan::{Missing, Plan, RowPlace};
pub use table::Table;
pub use write::{OutColumn, RowWriter, write_json, write_scalar};
