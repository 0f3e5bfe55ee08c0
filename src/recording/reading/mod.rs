//! reading: records and states given back, from any process, whatever the status of a recording.
//!
//! ```text
//!   reader ──▶ stream ──▶ field ──▶ element: as Rust types
//!                │ └─────▶ records ──▶ merge: many streams     states, decoders: own types
//!                └▶ chunks: their rows   open_chunk: one of them, or else the tail   run: all columns
//!                └▶ blocks: what footers say of values    restored: the state of a checkpoint
//!   follow ──▶ lane, follow_chunk ──▶ followed: each record once while it is written
//!   diff: where two begin to differ    lenient: what reads, and the gaps    history: before a resume
//! ```
//!
//! - A reader sees chunks below the stream's sealed end and the journal from there on: each record
//!   once.
//! - P6: a value that is given back passed the checksums of its chunk or of its frame.
//! - P9: iterations that do not grow, rows that do not follow each other and chunks that contradict
//!   their rows are damage, whatever else they say.

mod blocks;
mod chunks;
mod decoders;
mod diff;
mod element;
mod field;
mod follow;
mod follow_chunk;
mod followed;
mod history;
mod lane;
mod lenient;
mod merge;
mod open_chunk;
mod reader;
mod records;
mod restored;
mod run;
mod states;
mod stream;

pub use blocks::{Block, Blocks};
pub(super) use chunks::CHUNKS_HELD_MAX;
pub(super) use decoders::Ask;
pub use decoders::Decoders;
pub use diff::{Diff, Difference};
pub use element::{Element, NdArray, Opaque};
pub use field::{Columns, FieldRead};
pub use follow::{Follow, PausedFollow};
pub use followed::{Followed, FollowedRecord};
pub(super) use history::History;
pub use lenient::{Gap, Readable};
pub use merge::Merged;
pub use reader::Recording;
pub use records::Records;
pub use restored::Restored;
pub(super) use restored::{At, encode_state};
pub use states::{Decoded, States};
pub use stream::Stream;
