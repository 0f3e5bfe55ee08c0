//! Rows of recordings: streams, their chunks, the checkpoints to resume from.

use serde::{Deserialize, Serialize};

use crate::ids::{CheckpointId, Generation, ObjectId, Ordinal, RecordingId, Sequence, StreamId};
use crate::manifest::row::{Row, exceeds};
use crate::manifest::table::Table;

/// How far a recording is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordingStatus {
    /// It may grow.
    Running,
    /// It ended as it should.
    Complete,
    /// It ended otherwise.
    Failed {
        /// As its owner put it.
        reason: String,
    },
}

/// A named set of streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingRow {
    /// Its name.
    pub name: String,
    /// How far it is.
    pub status: RecordingStatus,
    /// Its streams, by position.
    pub streams: Vec<StreamId>,
    /// What its owner says of it.
    pub metadata: Vec<(String, String)>,
    /// Wall-clock nanoseconds when it was made.
    pub created: Option<i64>,
    /// Its schema, opaque here.
    pub schema: Vec<u8>,
    /// Its time axis, its parameters and notes, opaque here.
    pub about: Vec<u8>,
}

impl Row for RecordingRow {
    type Key = RecordingId;
    const TABLE: Table = Table::Recordings;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// The recording of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingNameRow {
    /// Which.
    pub recording: RecordingId,
}

impl Row for RecordingNameRow {
    type Key = String;
    const TABLE: Table = Table::RecordingNames;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// Records of generations below `generation` from `at` on do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The generation that began here.
    pub generation: Generation,
    /// The first record of it.
    pub at: Sequence,
}

/// A stream of records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRow {
    /// The recording that it belongs to.
    pub recording: Option<RecordingId>,
    /// Its name there.
    pub name: String,
    /// Its position there.
    pub position: u32,
    /// Raised whenever it is moved back.
    pub generation: Generation,
    /// Records below this left the stream for rows of a face: its chunks begin here.
    pub taken_upto: Sequence,
    /// Records below this are in chunks, or were taken.
    pub sealed_upto: Sequence,
    /// The position of its next chunk.
    pub next_ordinal: Ordinal,
    /// Where it was moved back to, oldest first.
    pub cuts: Vec<Cut>,
    /// Its schema, opaque here.
    pub schema: Vec<u8>,
    /// Its sampling and its limits, opaque here.
    pub about: Vec<u8>,
    /// Records that were left out for want of room, but for those that unsealed records tell of.
    pub dropped: u64,
}

impl Row for StreamRow {
    type Key = StreamId;
    const TABLE: Table = Table::Streams;
    const VERSION: u8 = 1;
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.taken_upto.0, self.sealed_upto.0, self.next_ordinal.0, self.dropped])
    }
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// A sealed run of records of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkRow {
    /// Its bytes.
    pub object: ObjectId,
    /// The generation of its records.
    pub generation: Generation,
    /// The first of them.
    pub first: Sequence,
    /// How many of them count.
    pub records: u64,
    /// How many of them there are.
    pub records_written: u64,
    /// The first and last iteration.
    pub iterations: Option<(i64, i64)>,
    /// The bits of the first and last time, where the records have one.
    pub times: Option<(u64, u64)>,
    /// The length of the records before encoding, in bytes.
    pub raw_len: u64,
    /// Objects that its bytes name by digest.
    pub payloads: Vec<ObjectId>,
}

impl Row for ChunkRow {
    type Key = (StreamId, Ordinal);
    const TABLE: Table = Table::Chunks;
    const VERSION: u8 = 1;
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.first.0, self.records, self.records_written, self.raw_len])
    }
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
        self.payloads.iter().copied().for_each(to);
    }
}

/// The end of a stream at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Which stream.
    pub stream: StreamId,
    /// Its generation then.
    pub generation: Generation,
    /// The record after the last.
    pub end: Sequence,
}

/// A whole state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StateBytes {
    /// In the row.
    Inline(Vec<u8>),
    /// In an object.
    Object(ObjectId),
}

/// A state and the cursor of every stream, from which a run resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRow {
    /// Every stream's end.
    pub cursors: Vec<Cursor>,
    /// The state.
    pub state: StateBytes,
    /// Wall-clock nanoseconds.
    pub at: Option<i64>,
}

impl Row for CheckpointRow {
    type Key = (u64, CheckpointId);
    const TABLE: Table = Table::Checkpoints;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        if let StateBytes::Object(object) = self.state {
            to(object);
        }
    }
}
