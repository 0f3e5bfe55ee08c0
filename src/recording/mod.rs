//! recording: streams of typed state, written by one process, read by any.
//!
//! ```text
//!   write    draft ──[start: begin]──▶ recorder ── observe, append ──▶ admit ──▶ journal
//!               │                          │                 └─ counted: tally ──▶ batch ──▶ chunks
//!               └─[start_bulk]─▶ bulk ─────┼──────────────────▶ filling ─────────────────▶ chunks
//!            axis, every, stream_options, parameters: what a draft says     overflow, ring: a full queue
//!            events: what happened         └─[end]─▶ status: complete, failed; dropped: running
//!   resume   checkpoint ──▶ resume_from ──▶ resume ──[streams move back]──▶ recorder
//!            resume_plan: told, not done    difference: other settings    undecodable, history: damage
//!            fork: another recording from there, chunks shared
//!   read     reader ──▶ stream ──▶ field ──▶ element: as Rust types
//!                         └─────▶ records ──▶ merge, states: many fields, many streams, own types
//!            follow ──▶ followed: each record once while it is written
//!            diff: where two begin to differ     lenient: everything that reads, and the gaps
//!            catalogue ──▶ filter ──▶ parameter: which recordings, by an index where there is one
//!   keep     remove, replace: all rows in one transaction     retention: a plan first
//!   files    import ──▶ bulk     export ◀── merge
//! ```
//!
//! - Every error in a description is found before anything is written.
//! - Where a chunk ends depends on the records, on `chunk_bytes` and, in bulk, on flushes and the
//!   bound of memory: never on barriers or timing.
//! - A reader sees chunks below the stream's sealed end and the journal from there on: each record
//!   once.
//! - An import that fails leaves nothing of its recording, and what it was to replace as it was.

mod about;
mod about_chunk;
mod ack;
mod admit;
mod axis;
mod batch;
mod begin;
mod bulk;
mod catalogue;
mod checkpoint;
mod chunks;
mod decoders;
mod diff;
mod difference;
mod draft;
mod element;
mod end;
mod events;
mod every;
#[cfg(feature = "interop")]
mod export;
mod field;
mod filling;
mod filter;
mod filter_words;
mod flatten;
mod follow;
mod follow_chunk;
mod followed;
mod fork;
mod history;
#[cfg(feature = "interop")]
mod import;
mod lane;
mod last_record;
mod left_out;
#[cfg(feature = "interop")]
mod left_over;
mod lenient;
mod merge;
mod observable;
mod observe;
mod open_chunk;
mod open_stream;
mod overflow;
mod parameter;
mod parameters;
mod reader;
mod recorded;
mod recorder;
mod records;
mod remove;
mod replace;
mod restored;
mod resume;
mod resume_from;
mod resume_plan;
mod retention;
mod ring;
mod run;
mod schema;
#[cfg(feature = "interop")]
mod spelling;
mod spoken_time;
mod states;
mod status;
mod stream;
mod stream_options;
mod tally;
mod undecodable;

pub use crate::engine::FollowLevel;
pub use crate::format::column::{
    Array, Axis, Blob, Column, Data, Elements, Field, FieldType, Flags, Number, OpaqueType, Schema,
    Shape, Value,
};
pub use crate::ids::EventId;
pub use crate::journal::{Level, Ticket};
pub use crate::manifest::RecordingStatus;
pub use axis::TimeAxis;
pub use bulk::{BULK_COLUMNS_MAX, BULK_STREAMS_MAX, Bulk};
pub use catalogue::{Catalogue, Selected};
pub use checkpoint::CHECKPOINTS_KEPT;
pub use decoders::Decoders;
pub use diff::{Diff, Difference};
pub use draft::{NAME_BYTES_MAX, NewRecording};
pub use element::{Element, NdArray, Opaque};
pub use events::{EVENT_BYTES_MAX, EVENT_KIND_BYTES_MAX, Event, EventValue, NOTE};
pub use every::Every;
#[cfg(feature = "interop")]
pub use export::{ExportOptions, Exported};
pub use field::{Columns, FieldRead};
pub use follow::{Follow, PausedFollow};
pub use followed::{Followed, FollowedRecord};
pub use fork::ForkedRecording;
#[cfg(feature = "interop")]
pub use import::{Import, ImportOptions, Imported, Progress, ROWS_STREAM, import_dry_run};
pub use lenient::{Gap, Readable};
pub use merge::Merged;
pub use observable::{Cell, Observable, ValueMap};
pub use overflow::Overflow;
pub use parameter::{PARAMETER_BYTES_MAX, Parameter};
pub use reader::Recording;
pub use recorder::{NewRecord, Recorder};
pub use records::Records;
pub use restored::Restored;
pub use resume::{Resume, Resumed};
pub use resume_from::ResumeFrom;
pub use resume_plan::{ResumePlan, StreamPlan};
pub use retention::{Applied, Retention, RetentionPlan, Stays, ToRetire};
pub use states::{Decoded, States};
pub use stream::Stream;
pub use stream_options::StreamOptions;
pub use undecodable::{QUARANTINE_HOLDER, Quarantined, SetAside, Undecodable};
