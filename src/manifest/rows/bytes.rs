//! Rows about bytes: objects, where they lie, the files that hold them, and the indexes that
//! follow from them.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{CommitSeq, FileId, ObjectId, UniqueId};
use crate::manifest::key::{EdgeKey, Key};
use crate::manifest::row::{Row, exceeds};
use crate::manifest::table::Table;

/// Where an object's bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In the [`InlineRow`] of the same object.
    Inline,
    /// In a sealed file.
    Extent {
        /// Which.
        file: FileId,
        /// From which byte of its content on.
        offset: u64,
    },
    /// In other objects, its pieces: the [`RecipeRow`](super::RecipeRow)s of this one name them in order. It
    /// takes no bytes itself.
    Recipe,
}

/// Immutable bytes, named by their digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRow {
    /// Names the raw bytes.
    pub digest: Digest,
    /// Their length.
    pub len: u64,
    /// The length that they take where they lie.
    pub stored_len: u64,
    /// How they are encoded there.
    pub codec: u8,
    /// Where that is.
    pub place: Place,
}

impl Row for ObjectRow {
    type Key = ObjectId;
    const TABLE: Table = Table::Objects;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.len, self.stored_len])
    }
    fn derived(&self, key: &ObjectId, to: &mut dyn FnMut(Table, Vec<u8>)) {
        to(Table::Digests, (self.digest.prefix(), *key).to_bytes());
        if let Place::Extent { file, .. } = self.place {
            to(Table::FileObjects, (file, *key).to_bytes());
        }
    }
}

/// The bytes of a small object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineRow {
    /// As stored.
    pub bytes: Vec<u8>,
}

impl Row for InlineRow {
    type Key = ObjectId;
    const TABLE: Table = Table::Inline;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// An object has a digest with this prefix. Follows from the object's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestRow;

impl Row for DigestRow {
    type Key = (u64, ObjectId);
    const TABLE: Table = Table::Digests;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// A row refers to an object. Follows from the referring row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeRow;

impl Row for EdgeRow {
    type Key = EdgeKey;
    const TABLE: Table = Table::Edges;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// What is done with a sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileState {
    /// It holds live bytes.
    Sealed,
    /// It holds none; its bytes are not given back yet.
    Condemned,
    /// Its unlink may have happened.
    Unlinking,
}

/// A sealed file. `len = framing + live + dead`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Names its content.
    pub digest: Digest,
    /// Makes its path unique.
    pub unique: UniqueId,
    /// Its length on disk, label included.
    pub len: u64,
    /// What of it belongs to no object: header, footer, checksums, label.
    pub framing: u64,
    /// Stored bytes of objects that stand.
    pub live: u64,
    /// Stored bytes of objects that went.
    pub dead: u64,
    /// What is done with it.
    pub state: FileState,
    /// The commit that published it.
    pub sealed: CommitSeq,
}

impl Row for FileRow {
    type Key = FileId;
    const TABLE: Table = Table::Files;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn derived(&self, key: &FileId, to: &mut dyn FnMut(Table, Vec<u8>)) {
        if self.state != FileState::Sealed {
            to(Table::Condemned, key.to_bytes());
        }
    }
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.len, self.framing, self.live, self.dead])
    }
    fn contradiction(&self) -> Option<String> {
        // P10: every byte of a file is counted in exactly one class.
        let Self { len, framing, live, dead, .. } = self;
        let sum = framing.checked_add(*live).and_then(|sum| sum.checked_add(*dead));
        (sum != Some(*len)).then(|| {
            format!("framing {framing} + live {live} + dead {dead} is not its length {len}")
        })
    }
}

/// A file holds no live byte. Follows from the file's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CondemnedRow;

impl Row for CondemnedRow {
    type Key = FileId;
    const TABLE: Table = Table::Condemned;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// An object lies in a file. Follows from the object's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileObjectRow;

impl Row for FileObjectRow {
    type Key = (FileId, ObjectId);
    const TABLE: Table = Table::FileObjects;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}
