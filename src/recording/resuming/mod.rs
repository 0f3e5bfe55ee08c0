//! resuming: going on where a recording stood, behind its last record or at a checkpoint.
//!
//! ```text
//!   checkpoint, tails ──[resume_from]──▶ a target: cursors and a state ──▶ resume ──▶ a recorder
//!                 │                       │  └─▶ resume_plan: told, not done
//!                 └─▶ undecodable         │  └─▶ fork: another recording, chunks shared
//!                                         └─▶ last_record, left_out: what is to be known there
//! ```
//!
//! - Nothing is written before the whole target is known; then the streams move back in one
//!   transaction.
//! - Records that do not decode are kept before they are cut.

mod fork;
mod last_record;
mod left_out;
mod resume;
mod resume_from;
mod resume_plan;
mod undecodable;

pub use fork::ForkedRecording;
pub use resume::{Resume, Resumed};
pub use resume_from::ResumeFrom;
pub use resume_plan::{ResumePlan, StreamPlan};
pub use undecodable::{QUARANTINE_HOLDER, Quarantined, SetAside, Undecodable};
