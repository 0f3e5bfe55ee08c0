//! reading: everything that was acknowledged, each row once, at one instant.
//!
//! ```text
//!   [Stage::view]: pin ─▶ ONE snapshot of outputs, parts, quarantine, and the tails of all intakes
//!                             ╰─ [StageView::batches]: outputs, parts, quarantine, tails
//! ```
//!
//! - STG8: a row is in a tail until the transaction that seals it, in a part until the one that publishes
//!   it, in an output from then on; a view sees either side of each, and of all at the same instant.
//! - What a view reads stays where it is as long as it stands, in the process that has it.
//! - P6: a part that does not read whole gives what passes its own checksums, and says so.

#[cfg(feature = "arrow")]
mod as_arrow;
mod as_text;
mod batches;
mod part;
mod parts;
mod view;

pub use batches::{Origin, ReadBatch, StageBatches};
pub(in crate::staging) use part::{Fault, Look, PartBatch, read_part};
pub use parts::PartView;
pub use view::StageView;
