//! What a salvage brought back, and what it did not.

use std::fmt;

use crate::digest::Digest;
use crate::ids::{CommitSeq, GroupId, OutputId, Sequence, StageId, StoreId, StreamId};

/// Something that is in the new store although it is newer than the snapshot: whether it was ever
/// committed, and whether it was taken back since, is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unconfirmed {
    /// Commits that the snapshot does not cover: what they changed is not there, unless it is
    /// listed here.
    Commits {
        /// The last that the snapshot covers.
        after: CommitSeq,
        /// The last that anything tells of; there may be more.
        upto: CommitSeq,
    },
    /// A recording.
    Recording {
        /// Its name in the new store.
        name: String,
    },
    /// A stream that the snapshot does not know, or that holds what lies behind a gap or a rewind.
    Stream {
        /// Its number in the new store.
        stream: StreamId,
        /// Its name there.
        name: String,
    },
    /// A chunk.
    Chunk {
        /// Its stream in the new store.
        stream: StreamId,
        /// Its first record there.
        first: Sequence,
        /// Its records.
        records: u64,
    },
    /// Records of a journal.
    Records {
        /// Their stream in the new store.
        stream: StreamId,
        /// The first there.
        first: Sequence,
        /// How many.
        records: u64,
    },
    /// A stage.
    Stage {
        /// Its name in the new store.
        name: String,
    },
    /// A part of a group.
    Part {
        /// Its stage.
        stage: StageId,
        /// Its group in the new store.
        group: GroupId,
        /// Its rows.
        rows: u64,
    },
    /// An output: what it was made of is not there any more.
    Output {
        /// Its stage.
        stage: StageId,
        /// Its number in the new store.
        output: OutputId,
        /// Its rows, by its label.
        rows: u64,
    },
    /// A name of a file.
    Name {
        /// The name, with its namespace.
        name: String,
    },
    /// An object, kept by a lease whose holder is `salvage`.
    Object {
        /// Names it.
        digest: Digest,
        /// Its length.
        len: u64,
        /// What its label says that it was for.
        of: String,
    },
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commits { after, upto } => {
                write!(f, "what commits after {after} changed, up to {upto} or later")
            }
            Self::Recording { name } => write!(f, "recording {name:?}"),
            Self::Stream { stream, name } => write!(f, "stream {stream}, {name:?}"),
            Self::Chunk { stream, first, records } => {
                write!(f, "a chunk of stream {stream}: {records} records from {first} on")
            }
            Self::Records { stream, first, records } => {
                write!(f, "{records} records of stream {stream} from {first} on")
            }
            Self::Stage { name } => write!(f, "stage {name:?}"),
            Self::Part { stage, group, rows } => {
                write!(f, "a part of group {group} of stage {stage}: {rows} rows")
            }
            Self::Output { stage, output, rows } => {
                write!(f, "output {output} of stage {stage}: {rows} rows")
            }
            Self::Name { name } => write!(f, "the file {name:?}"),
            Self::Object { digest, len, of } => {
                write!(f, "object {digest} of {len} bytes, {of}")
            }
        }
    }
}

/// Something that was stored and is not in the new store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What, by name.
    pub what: String,
    /// Records that are lost with it.
    pub records: u64,
    /// Why.
    pub why: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// The result of a salvage.
#[derive(Debug, Clone)]
pub struct Salvaged {
    /// The store's name; the new one has the same.
    pub store: StoreId,
    /// The commit that the snapshot covers; `None` when no snapshot reads.
    pub covers: Option<CommitSeq>,
    /// Snapshots that were read: a base and what changed since.
    pub chain: u64,
    /// The newest commit that anything tells of.
    pub witnessed: CommitSeq,
    /// Whether HEAD says that nothing but bookkeeping followed the snapshot.
    pub is_complete: bool,
    /// Objects in the new store, each verified by its digest.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Streams in it.
    pub streams: u64,
    /// Chunks in it.
    pub chunks: u64,
    /// Unsealed records in it, read from journals.
    pub records: u64,
    /// What is in it and newer than the snapshot.
    pub unconfirmed: Vec<Unconfirmed>,
    /// What is not in it.
    pub lost: Vec<Lost>,
    /// What was passed over, and harms nothing.
    pub notes: Vec<String>,
}

impl Salvaged {
    /// Whether the new store is the old one: nothing was lost, and nothing is unconfirmed.
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty() && self.unconfirmed.is_empty()
    }

    pub(super) fn lose(&mut self, what: impl Into<String>, records: u64, why: impl fmt::Display) {
        self.lost.push(Lost { what: what.into(), records, why: why.to_string() });
    }
}
