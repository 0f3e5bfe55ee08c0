//! Rows of the engine that keep objects alive before anything publishes them.

use serde::{Deserialize, Serialize};

use crate::ids::{Generation, LeaseId, ObjectId, OwnerId, Sequence, StreamId};
use crate::manifest::row::Row;
use crate::manifest::table::Table;

/// What is known of a journal file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JournalState {
    /// Its keeper appends to it.
    Open,
    /// Nothing more is appended.
    Finished {
        /// Its durable end.
        end: u64,
    },
    /// A recovery read it up to here; what lies behind is a tear.
    Adopted {
        /// Its end, as recovery found it.
        end: u64,
    },
    /// It is damaged, and was set aside by an explicit decision.
    SetAside {
        /// The first byte that cannot be read.
        from: u64,
        /// What was found there.
        reason: String,
    },
}

/// A journal file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRow {
    /// Part of every frame's checksum.
    pub salt: [u8; 16],
    /// Who answers for it now: its writer, or who took it over.
    pub keeper: OwnerId,
    /// What is known of it.
    pub state: JournalState,
    /// The first record of each stream in it.
    pub first: Vec<(StreamId, Generation, Sequence)>,
    /// Objects that its frames name.
    pub objects: Vec<ObjectId>,
    /// Streams whose unsealed tail is in no owner's memory and lies in here, each with the last
    /// record that does. Once its owner has ended, the file goes when none is left.
    pub needed: Vec<(StreamId, Sequence)>,
}

impl Row for JournalRow {
    type Key = (OwnerId, u64);
    const TABLE: Table = Table::Journals;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        self.objects.iter().copied().for_each(to);
    }
}

/// Forbids reclaim of some objects; may outlive the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// Who asked for it.
    pub holder: String,
    /// What for.
    pub purpose: String,
    /// Wall-clock nanoseconds after which it is reported as stale. Nothing drops it but a call.
    pub deadline: Option<i64>,
    /// What it keeps.
    pub objects: Vec<ObjectId>,
}

impl Row for LeaseRow {
    type Key = LeaseId;
    const TABLE: Table = Table::Leases;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        self.objects.iter().copied().for_each(to);
    }
}
