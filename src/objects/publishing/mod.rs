//! publishing: names come to stand for objects, all or none, and go again.
//!
//! ```text
//!   leased, named by nobody --[publish]--> a name stands for it --[publish, release]--> it goes, unless
//!        |                                          ^             something else refers to it
//!        '--[hand_off]--> pending --[complete]------'
//!                            '----[roll_back]--> forgotten, names as they were
//!
//!   (no row) --[snapshot]--> open --[add.., commit]--> committed --[retire_snapshot]--> (no row)
//! ```
//!
//! - OBJ7: the names of one publication change in one transaction, each compared with what was expected.
//! - OBJ8: a name comes to stand only for what the caller's lease keeps, whole; what a lease keeps is
//!   durable (OBJ9).
//! - A generation is never used twice for a name, not even after it was released.
//! - OBJ11: from open a snapshot goes to committed, and from there away, no other way; it pins what is in it
//!   from the moment it came in.
//! - OBJ12: what is done outside was prepared durably before; it is completed by evidence of that very
//!   hand-off, or rolled back, and until then readers see what stood before (OBJ13).

mod change;
mod draft;
mod hand_off;
mod leased;
mod prepared;
mod publish;
mod settle;
mod snapshots;

pub use crate::ids::HandoffId;
pub use crate::manifest::{HANDOFF_NAMES_MAX, ObjectSnapshotState};
pub use change::{Expected, PUBLISH_NAMES_MAX, Present, Publish, Published};
pub use draft::{SNAPSHOT_NAME_BYTES_MAX, SnapshotDraft};
pub use hand_off::{
    Evidence, HANDOFF_BYTES_MAX, HANDOFF_TARGET_BYTES_MAX, HandoffChange, NameHandoff,
};
pub use snapshots::{SnapshotInfo, SnapshotName, SnapshotView};
