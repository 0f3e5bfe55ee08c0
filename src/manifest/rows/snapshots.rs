//! Rows about snapshots of the manifest itself.

use serde::{Deserialize, Serialize};

use crate::ids::{CommitSeq, ObjectId};
use crate::manifest::row::Row;
use crate::manifest::table::Table;
use crate::protection::Protection;

/// A snapshot of all rows, or of those that changed since another one. Its key is the commit whose
/// rows it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRow {
    /// The commit whose snapshot a delta is onto; `None` for a base.
    pub onto: Option<CommitSeq>,
    /// Its bytes.
    pub object: ObjectId,
    /// Entries in it.
    pub rows: u64,
    /// Wall-clock nanoseconds.
    pub at: Option<i64>,
    /// Up to this commit nothing but bookkeeping followed the commit that it covers.
    pub quiet_upto: CommitSeq,
}

impl Row for SnapshotRow {
    type Key = u64;
    const TABLE: Table = Table::Snapshots;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        if Protection::SnapshotEdges.is_on() {
            to(self.object);
        }
    }
}
