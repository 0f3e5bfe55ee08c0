//! writing: a recording from its description to its end, by one process.
//!
//! ```text
//!   draft, stream_options ──[begin]──▶ recorder ── observe (observable), append ──▶ recorded
//!     │                                 │                                            │
//!     │                                 │   journal ◀── admit, ring: a full queue ◀──┘
//!     │                                 │      └─ counted: tally ──▶ batch ──▶ chunks
//!     │                                 ├─▶ ack: how sure     checkpoint     note: events
//!     └─[start_bulk]─▶ bulk ──▶ filling ──▶ chunks      [end]─▶ complete, failed; dropped: running
//!   open_stream: all that is known of a stream that is written     about_chunk: its chunks' footer
//! ```
//!
//! - Every error in a description is found before anything is written.
//! - Where a chunk ends depends on the records, on `chunk_bytes` and, in bulk, on flushes and the
//!   bound of memory: never on barriers or timing.
//! - An observation is one group: all its streams take their record, or none does.

mod about_chunk;
mod ack;
mod admit;
mod batch;
mod begin;
mod bulk;
mod checkpoint;
mod draft;
mod end;
mod filling;
mod note;
mod observable;
mod observe;
mod open_stream;
mod recorded;
mod recorder;
mod ring;
mod stream_options;
mod tally;

pub(super) use batch::{Batch, chunks_of_view};
pub use bulk::{BULK_COLUMNS_MAX, BULK_STREAMS_MAX, Bulk};
pub use checkpoint::CHECKPOINTS_KEPT;
pub use draft::NewRecording;
pub use observable::{Cell, Observable, ValueMap};
pub(super) use observe::digest_of;
pub(super) use open_stream::OpenStream;
pub use recorder::{NewRecord, Recorder};
pub use stream_options::StreamOptions;
