//! recording: streams of typed state, written by one process, read by any.
//!
//! ```text
//!   files       CSV and JSON lines, in and out      writing, reading, keeping, describing
//!   resuming    go on behind the last record        writing, reading, keeping, describing
//!               or at a checkpoint, or fork there
//!   writing     draft ─▶ recorder, bulk ─▶ end      reading, keeping, describing
//!   finding     the catalogue and its filters       reading, describing
//!   reading     fields, records, states; follow,    keeping, describing
//!               compare, read what is left
//!   keeping     status, events; remove, retain      describing
//!   describing  names, axis, rules, parameters
//! ```
//!
//! Beside each folder those that it uses: arrows only point down here too.
//!
//! - Every error in a description is found before anything is written.
//! - Where a chunk ends depends on the records, on `chunk_bytes` and, in bulk, on flushes and the
//!   bound of memory: never on barriers or timing.
//! - A reader sees chunks below the stream's sealed end and the journal from there on: each record
//!   once.
//! - An import that fails leaves nothing of its recording, and what it was to replace as it was.

mod describing;
#[cfg(feature = "interop")]
mod files;
mod finding;
mod keeping;
mod reading;
mod resuming;
mod writing;

pub use crate::engine::FollowLevel;
pub use crate::format::column::{
    Array, Axis, Blob, BlockCodec, Column, Data, Elements, Field, FieldType, Flags, Number,
    OpaqueType, Schema, Shape, Value,
};
pub use crate::ids::EventId;
pub use crate::journal::{Level, Ticket};
pub use crate::manifest::RecordingStatus;
pub use describing::{Every, NAME_BYTES_MAX, Overflow, PARAMETER_BYTES_MAX, Parameter, TimeAxis};
#[cfg(feature = "interop")]
pub use files::{
    ExportOptions, Exported, Import, ImportOptions, Imported, Progress, ROWS_STREAM, import_dry_run,
};
pub use finding::{Catalogue, Selected};
pub use keeping::{
    Applied, EVENT_BYTES_MAX, EVENT_KIND_BYTES_MAX, Event, EventValue, NOTE, Retention,
    RetentionPlan, Stays, ToRetire,
};
pub use reading::{
    Block, Blocks, Columns, Decoded, Decoders, Diff, Difference, Element, FieldRead, Follow,
    Followed, FollowedRecord, Gap, Merged, NdArray, Opaque, PausedFollow, Readable, Recording,
    Records, Restored, States, Stream,
};
pub use resuming::{
    ForkedRecording, QUARANTINE_HOLDER, Quarantined, Resume, ResumeFrom, ResumePlan, Resumed,
    SetAside, StreamPlan, Undecodable,
};
pub use writing::{
    BULK_COLUMNS_MAX, BULK_STREAMS_MAX, Bulk, CHECKPOINTS_KEPT, Cell, NewRecord, NewRecording,
    Observable, Recorder, StreamOptions, ValueMap,
};
