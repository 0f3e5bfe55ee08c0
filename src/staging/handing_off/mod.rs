//! handing_off: outputs go to an outside system, once, whatever crashes on the way.
//!
//! ```text
//!                        .--[hand_off, resume_handoffs: the target failed]--.
//!                        |                                                  |
//!   (no row) --[hand_off]-+-> Prepared <------------------------------------'
//!                               | |
//!                               | '--[hand_off, resume_handoffs: the evidence is there]--> Done
//!                               '----[roll_back: the evidence is not there]--> RolledBack
//! ```
//!
//! - The row that says *Prepared*, with what is to be there, is durable before anything happens outside:
//!   whatever is half done outside is listed, and its bytes stay.
//! - The claim on the output is held from before that until the decision, and ends in the transaction
//!   that makes it: an upload may be as slow as it likes.
//! - Whether it is there is read back from the target each time, and never taken from a name's existence
//!   or from what an earlier attempt said.
//! - One that fails is told, stays *Prepared*, and concerns no other.

mod attempt;
mod directory;
mod file_name;
mod hand_off;
mod listing;
mod target;

pub use attempt::HandedOff;
pub use directory::DirectoryTarget;
pub use hand_off::Resumed;
pub use listing::HandoffView;
pub(in crate::staging) use listing::forget_handoffs;
pub use target::{Offer, Target};
