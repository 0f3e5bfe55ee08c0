//! check: a read-only comparison of everything on disk with what the rows say of it.
//!
//! ```text
//!   check ---> rows      each decodes; edges and indexes both ways; counters, owners, claims
//!         |--> files     there, as long, as the digest says; each object; the books of each file
//!         |--> journals  row and file both ways; frames; records without a hole behind the chunks
//!         |--> streams   chunks one behind the other up to `sealed_upto`; cuts; checkpoints
//!         |--> stages    groups the sum of their parts; all that belongs to a stage that stands
//!         `--> names     HEAD; what is ours and named by no row; what is not ours; the accounts
//!                 each ---> Report: findings, with what each of them means
//! ```
//!
//! - G20: nothing on disk is changed, whatever is found; it works beside a writer and after a kill.
//! - P6: a damaged thing is a finding that says what is lost, and never stops the rest.
//! - P10: the classes of bytes add up to what the disk holds, or that is a finding.
//! - What a writer moves meanwhile is looked at again before it is called damage.

mod edges;
mod files;
mod journals;
mod look;
mod names;
mod objects;
mod owners;
mod report;
mod rows;
mod run;
mod salvage;
mod stages;
mod streams;
mod values;

pub use report::{Finding, LookedAt, Report, Severity};
pub use run::{CheckOptions, Progress, check};
pub use salvage::{Lost, SalvageOptions, Salvaged, Unconfirmed, salvage};
