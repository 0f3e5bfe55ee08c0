//! salvage: a new store from what is left of one, by hand, without its manifest.
//!
//! ```text
//!   source (read raw, never written): sealed files, labels, journals, HEAD
//!      |--> chain    the newest readable snapshot of the rows, or no rows at all
//!      |--> journey  each stream: its chunks, then what is newer, then its journal records
//!      v
//!   target (beside NEW): objects, verified one by one -> rows -> records -> `check` -> renamed
//! ```
//!
//! - G25: only bytes whose digest or checksum fits are taken; what is missing is listed as lost;
//!   what is newer than the snapshot is listed as unconfirmed; nothing is written to the source.
//! - A manifest that is there is not read: who salvages does not trust it.
//! - A stream keeps what lies before its first gap; what lies behind becomes a stream of its own.
//! - The new store appears under its name when it is whole, and not before.

mod chain;
mod files;
mod journey;
mod making;
mod merged;
mod objects;
mod pieces;
mod producers;
mod refused;
mod report;
mod rows;
mod run;
mod settle;
mod source;
mod stages;
mod tails;
mod target;

pub use report::{Lost, Salvaged, Unconfirmed};
pub use run::{SalvageOptions, salvage};
