//! converting: groups become outputs, each row exactly once; outputs become fewer.
//!
//! ```text
//!   detached group ──[Stage::plan]──▶ claimed, pending for as long as it likes
//!     ▲  ▲                              ├──[Plan drops]──▶ claims released ─────────────────╮
//!     │  │                              ╰──[Plan::convert]──▶ parts read ─▶ outputs written  │
//!     │  │                                    in tmp/, sealed, opened again and counted      │
//!     │  │                                    ├── an error, a panic ──[note_failure]─────────┤
//!     │  ╰────────────────────────────────────┼──────────────── free again ◀────────────────╯
//!     │                                       ╰──[publish_group], ONE transaction:
//!     │                                            outputs in, used parts out, claim released
//!     ╰─[Stage::retry]── quarantine ◀── what does not read, with its bytes
//!
//!   outputs ──[Stage::merge]──▶ fewer of them           ──[Stage::retire_outputs]──▶ condemned
//! ```
//!
//! - STG17 to STG19: a group is worked on by the plan that holds its claim, until the transaction that
//!   publishes it, or until the plan is dropped.
//! - STG24: an output is read back and counted before anything goes for it; only parts that it holds go.
//! - STG14, STG15: of a part that lost its end the batches before the tear are used; of one that does not
//!   decode in its middle none is. What is not used is in quarantine, in the same transaction.
//! - No code of a caller runs inside a transaction; what it throws is an error of one group.
//! - One output is in memory as little as its converter holds; a part is read whole.

mod convert;
mod converter;
mod failure;
mod input;
mod left;
mod merge;
mod options;
mod output_reader;
mod output_writer;
mod outputs;
mod plan;
mod publish;
mod quarantine;
mod refused;
mod set_aside;
mod write;

pub use convert::{Converted, Made};
pub use converter::{Converter, Merger};
pub use input::Input;
pub use merge::Merged;
pub use options::{ConvertOptions, ConvertProgress, MergeOptions, OnProgress, PlanOptions};
pub use output_reader::OutputReader;
pub use output_writer::OutputWriter;
pub(in crate::staging) use outputs::outputs_of;
pub use outputs::{OutputView, RetiredOutputs};
pub use plan::Plan;
pub use quarantine::Quarantined;
