//! objects: files of any size are stored by content, leased, published under names, retired together.
//!
//! ```text
//!   prepare ──▶ put (bytes, reader, file) ──▶ leased, named by nobody ──[publish]──▶ names ──▶ get
//!      │                                            │                        │
//!      └─[abandon]─▶ retired ◀──[release, replace]──┴── snapshots, handoffs ─┘
//!
//!   describing   names, digests, what is told of them     publishing   names, snapshots, handoffs
//!   storing      preparations, pieces, put                keeping      retire, reclaim, why, du, scrub
//!   reading      whole, ranges, streams
//! ```
//!
//! - OBJ9: what is needed to read an object is durable before anything makes it visible.
//! - OBJ15: what goes, goes in one transaction, by one routine, whatever its number.
//! - OBJ13: nobody's claim keeps a reader from what is published.

mod describing;
mod keeping;
mod publishing;
mod reading;
mod storing;

pub use crate::digest::Digest;
pub use crate::ids::{CommitSeq, NameGeneration};
pub use describing::{NAME_BYTES_MAX, NAMESPACE_BYTES_MAX, Name, NameView, Objects};
pub use keeping::{Gone, NamespaceUsage, Retirement, Subject, Usage, Why};
pub use publishing::{
    Evidence, Expected, HANDOFF_BYTES_MAX, HANDOFF_NAMES_MAX, HANDOFF_TARGET_BYTES_MAX,
    HandoffChange, HandoffId, NameHandoff, ObjectSnapshotState, PUBLISH_NAMES_MAX, Present,
    Publish, Published, SNAPSHOT_NAME_BYTES_MAX, SnapshotDraft, SnapshotInfo, SnapshotName,
    SnapshotView,
};
pub use reading::{IN_MEMORY_BYTES_MAX, Object, ObjectReader, READ_AHEAD_BYTES};
pub use storing::{
    Compress, PIECES_MAX, PREPARATION_NAME_BYTES_MAX, PUT_BYTES_MAX, PUT_OBJECTS_MAX, Pieces,
    Preparation, PreparationView, PrepareOptions, PutOptions, Stored, WHOLE_BYTES_MAX,
};
