//! rows: one type for each kind of fact.
//!
//! ```text
//!   store        meta, counters, owners, claims, receipts
//!   bytes        objects -> inline | files; digests and file_objects follow from objects
//!   journals     journals, leases: rows of the engine that refer to objects
//!   names        names -> objects; history -> objects
//!   objects      recipes, leased, snapshot_names, name_handoffs -> objects; preparations -> leases
//!   bodies       bodies -> pages | frames: files that lie in the manifest
//!   snapshots    snapshots of the rows themselves -> objects
//!   recordings   recordings -> streams -> chunks -> objects; checkpoints -> objects
//!   parameters   parameters of recordings; parameter_order follows from them
//!   events       events and notes of recordings
//!   staging      stages -> groups -> parts -> objects; outputs, handoffs, quarantine -> objects; producers;
//!                open_groups follows from groups
//! ```
//!
//! A row refers to an object only through [`Row::edges`](super::Row::edges).

mod bodies;
mod bytes;
mod events;
mod journals;
mod names;
mod objects;
mod parameters;
mod recordings;
mod snapshots;
mod staging;
mod store;

pub use bodies::{BodyRow, FrameRow, PageRow};
pub use bytes::{
    CondemnedRow, DigestRow, EdgeRow, FileObjectRow, FileRow, FileState, InlineRow, ObjectRow,
    Place,
};
pub use events::{EventForm, EventRow};
pub use journals::{JournalRow, JournalState, LeaseRow};
pub use names::{HistoryKey, HistoryRow, NameKey, NameRow, Namespace, ValueForm};
pub use objects::{
    HANDOFF_NAMES_MAX, HandoffName, LeasedRow, NameHandoffRow, ObjectSnapshotRow,
    ObjectSnapshotState, PIECES_PER_ROW_MAX, PREPARATION_HOLDER, Piece, PreparationRow, RecipeRow,
    RetiringRow, ScrubRow, SnapshotNameKey, SnapshotNameRow,
};
pub use parameters::{ParameterKey, ParameterOrderKey, ParameterOrderRow, ParameterRow};
pub use recordings::{
    CheckpointRow, ChunkRow, Cursor, Cut, RecordingNameRow, RecordingRow, RecordingStatus,
    StateBytes, StreamRow,
};
pub use snapshots::SnapshotRow;
pub use staging::{
    GroupRow, GroupState, HandoffOrderKey, HandoffOrderRow, HandoffRow, HandoffState, OpenGroupKey,
    OpenGroupRow, OutputRow, PartRow, ProducerKey, ProducerRow, QuarantineRow, StageRow,
};
pub use store::{ClaimKind, ClaimRow, CountersRow, MetaRow, OwnerEnd, OwnerRow, ReceiptRow};
