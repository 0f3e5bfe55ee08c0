//! files: recordings out of files of others, and back into them.
//!
//! ```text
//!   CSV, JSON lines ──[import]──▶ writing: bulk      reading: merge ──[export]──▶ CSV, JSON lines
//!                        ├─ left_over: of one that was killed
//!                        └─ spelling: how missing values were written ──────┘
//! ```
//!
//! - An import that fails leaves nothing of its recording, and what it was to replace as it was.
//! - What an import read comes out in its first order and spelling.

mod export;
mod import;
mod left_over;
mod spelling;

pub use export::{ExportOptions, Exported};
pub use import::{Import, ImportOptions, Imported, Progress, ROWS_STREAM, import_dry_run};
