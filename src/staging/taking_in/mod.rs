//! taking_in: batches become records of an intake, and the records of an intake become parts of groups.
//!
//! ```text
//!   append ──[one record: batch, number, position]──▶ intake, unsealed ──[seal]──▶ part of the open
//!                                                                                  group of its key
//!   group:  open ──[flush: the rule says ready]──▶ detached      (later batches begin another one)
//! ```
//!
//! - STG1: which group a batch belongs to is decided in the transaction that seals it: the open one of
//!   its key, or a new one.
//! - STG9: what is unsealed is in the journal; it is taken from there by the transaction that has it in
//!   parts, and each row is in one of the two at every instant.
//! - STG11: an error that no caller waited for is told by `health`, and by the next call.

mod append;
mod aside;
mod create;
mod draft;
mod due;
mod flush;
mod intake;
mod list;
mod memory;
mod portion;
mod producer;
mod progress;
mod ready;
mod remove;
mod seal;
mod slots;
mod stage;
mod tail;

pub use append::Appended;
pub use create::STAGE_NAME_BYTES_MAX;
pub use flush::Flushed;
pub use list::StageAbout;
pub use progress::Progress;
pub use ready::Ready;
pub use remove::RemovedStage;
pub use stage::Stage;
pub(in crate::staging) use tail::check_head;
