//! Rows of the objects face: recipes, preparations, snapshots of names, and publications to outside
//! systems.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{CommitSeq, HandoffId, LeaseId, NameGeneration, ObjectId, ObjectSnapshotId};
use crate::manifest::key::Key;
use crate::manifest::row::{Row, exceeds};
use crate::manifest::rows::names::NameKey;
use crate::manifest::table::Table;

/// The most pieces that one row of a recipe names.
pub const PIECES_PER_ROW_MAX: usize = 1024;

/// The most names that one publication to an outside system changes.
pub const HANDOFF_NAMES_MAX: usize = 4096;

/// A piece of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The object that holds its bytes; no recipe itself.
    pub object: ObjectId,
    /// Their length.
    pub len: u64,
}

/// A run of the pieces of an object whose place is a recipe. Its key is the object and the byte of it at
/// which the first of the pieces begins: the next row begins where the last one ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeRow {
    /// The pieces, in order; at most [`PIECES_PER_ROW_MAX`].
    pub pieces: Vec<Piece>,
}

impl Row for RecipeRow {
    type Key = (ObjectId, u64);
    const TABLE: Table = Table::Recipes;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        self.pieces.iter().for_each(|piece| to(piece.object));
    }
    fn excess(&self) -> Option<&'static str> {
        if self.pieces.len() > PIECES_PER_ROW_MAX {
            return Some("it has more pieces than one row of a recipe may name");
        }
        if self.pieces.iter().any(|piece| piece.len == 0) {
            return Some("one of its pieces has no bytes");
        }
        self.pieces.iter().find_map(|piece| exceeds(&[piece.len]))
    }
}

impl RecipeRow {
    /// The sum of its pieces' lengths, or `None` where it is larger than any number.
    pub fn bytes(&self) -> Option<u64> {
        self.pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.len))
    }
}

/// An object that lost its last reference, and whose recipe is taken apart in bounded transactions. It is
/// found by nobody any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiringRow {
    /// The commit that took its last reference.
    pub commit: CommitSeq,
}

impl Row for RetiringRow {
    type Key = ObjectId;
    const TABLE: Table = Table::Retiring;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.commit.0])
    }
}

/// An object that a lease keeps, beside those that its own row names. Its key ends with the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeasedRow {
    /// What it keeps.
    pub object: ObjectId,
    /// Whether it is kept as it is, until it is published.
    pub is_whole: bool,
    /// Whether it is kept as a piece of something whose recipe is not complete yet.
    pub is_piece: bool,
}

impl Row for LeasedRow {
    type Key = (LeaseId, ObjectId);
    const TABLE: Table = Table::Leased;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
    }
}

/// The holder of a lease that is one of a preparation.
pub const PREPARATION_HOLDER: &str = "preparation";

/// A preparation, by its name: a lease under which objects are stored before anything names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparationRow {
    /// What keeps its objects.
    pub lease: LeaseId,
    /// Wall-clock nanoseconds when it began.
    pub created: Option<i64>,
}

impl Row for PreparationRow {
    type Key = String;
    const TABLE: Table = Table::Preparations;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// How far a snapshot of names is. From open it goes to committed, and from there it goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectSnapshotState {
    /// Names are added; nobody reads it.
    Open,
    /// It does not change any more.
    Committed,
}

/// A snapshot of names and what they stood for, by its own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectSnapshotRow {
    /// Its number: one that is made again under the same name has another.
    pub snapshot: ObjectSnapshotId,
    /// How far it is.
    pub state: ObjectSnapshotState,
    /// Wall-clock nanoseconds when it was opened.
    pub created: Option<i64>,
    /// The commit that committed it.
    pub committed: Option<CommitSeq>,
    /// Names in it.
    pub names: u64,
    /// The sum of the lengths of what they stand for.
    pub bytes: u64,
}

impl Row for ObjectSnapshotRow {
    type Key = String;
    const TABLE: Table = Table::ObjectSnapshots;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.names, self.bytes, self.committed.map_or(0, |commit| commit.0)])
    }
}

/// A name in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotNameKey {
    /// Which snapshot.
    pub snapshot: ObjectSnapshotId,
    /// The name, as it is outside.
    pub name: NameKey,
}

impl Key for SnapshotNameKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.snapshot.0.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.name.to_bytes());
        bytes
    }
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Some((snapshot, name)) = bytes.split_first_chunk::<8>() else {
            let cause = format!("{} bytes are not a key", bytes.len());
            return Err(Error::damage("read", "snapshot and name", cause));
        };
        let snapshot = ObjectSnapshotId(u64::from_be_bytes(*snapshot));
        Ok(Self { snapshot, name: NameKey::from_bytes(name)? })
    }
}

/// What a name stands for in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotNameRow {
    /// The object.
    pub object: ObjectId,
    /// Its length.
    pub len: u64,
    /// Which value of the name it was, where it was one.
    pub generation: Option<NameGeneration>,
}

impl Row for SnapshotNameRow {
    type Key = SnapshotNameKey;
    const TABLE: Table = Table::SnapshotNames;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
    }
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.len])
    }
}

/// One name that a publication changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffName {
    /// The namespace's number.
    pub namespace: u16,
    /// The name.
    pub name: String,
    /// Which value of the name is to be replaced; `None` for none.
    pub expected: Option<NameGeneration>,
    /// What it is to stand for.
    pub object: ObjectId,
    /// Its length.
    pub len: u64,
}

/// A publication of names that an outside system takes part in, not decided yet. Decided ones have no row,
/// but a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameHandoffRow {
    /// The outside system, by the name that the caller gives it.
    pub target: String,
    /// The names that it changes.
    pub names: Vec<HandoffName>,
    /// What is to be there outside, as the caller puts it before anything is done.
    pub intent: Vec<u8>,
    /// The lease whose objects it names, if it stands still.
    pub lease: Option<LeaseId>,
    /// The commit that prepared it: its generation, which what shows that it was done has to name.
    pub prepared: CommitSeq,
    /// Wall-clock nanoseconds when it was prepared.
    pub at: Option<i64>,
}

impl Row for NameHandoffRow {
    type Key = HandoffId;
    const TABLE: Table = Table::NameHandoffs;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        self.names.iter().for_each(|name| to(name.object));
    }
    fn excess(&self) -> Option<&'static str> {
        if self.names.len() > HANDOFF_NAMES_MAX {
            return Some("it changes more names than one publication may");
        }
        let generation = |name: &HandoffName| name.expected.map_or(0, |expected| expected.0);
        exceeds(&[self.prepared.0])
            .or_else(|| self.names.iter().find_map(|name| exceeds(&[name.len, generation(name)])))
    }
}

/// How far looking through all sealed files has come; there is none between two passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubRow {
    /// The last file that was looked at.
    pub after: crate::ids::FileId,
    /// Wall-clock nanoseconds when the pass began.
    pub began: Option<i64>,
    /// Files looked at so far.
    pub files: u64,
    /// Bytes read so far.
    pub bytes: u64,
    /// Files in which something did not read, at most 1,000 of them.
    pub damaged: Vec<crate::ids::FileId>,
}

impl Row for ScrubRow {
    type Key = u64;
    const TABLE: Table = Table::Scrub;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.files, self.bytes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::rows::names::Namespace;

    /// Does a name in a snapshot survive its key's bytes, and are all other bytes refused?
    #[test]
    fn keys_of_snapshots_read_back() {
        let name = NameKey { namespace: Namespace::OBJECTS, name: "a\0b/é".to_owned() };
        let key = SnapshotNameKey { snapshot: ObjectSnapshotId(7), name };
        assert_eq!(SnapshotNameKey::from_bytes(&key.to_bytes()).unwrap(), key);
        assert!(SnapshotNameKey::from_bytes(&[0; 9]).is_err());
        assert!(SnapshotNameKey::from_bytes(&[0; 7]).is_err());
    }
}
