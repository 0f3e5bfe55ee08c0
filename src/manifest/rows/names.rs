//! Rows of names: which object is the value of a name, and which were before it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{CommitSeq, NameGeneration, ObjectId};
use crate::manifest::key::Key;
use crate::manifest::row::{Row, exceeds};
use crate::manifest::table::Table;

/// What a set of names belongs to. A number is never given to something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(pub u16);

impl Namespace {
    /// The names of `store.state()`.
    pub const STATE: Self = Self(1);

    /// The names of `store.objects()`: a namespace of theirs, a zero byte, the name in it.
    pub const OBJECTS: Self = Self(2);
}

/// A name, in its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameKey {
    /// Where it is a name.
    pub namespace: Namespace,
    /// The name.
    pub name: String,
}

impl Key for NameKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 + self.name.len());
        bytes.extend_from_slice(&self.namespace.0.to_be_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<2>().and_then(|(namespace, name)| {
            let name = String::from_utf8(name.to_vec()).ok()?;
            Some(Self { namespace: Namespace(u16::from_be_bytes(*namespace)), name })
        });
        parts.ok_or_else(|| misfit("name", bytes))
    }
}

/// One earlier value of a name. The length of the name comes before it, so that no name's rows
/// stand between those of another; order is by namespace, length, name, generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HistoryKey {
    /// Where it is a name.
    pub namespace: Namespace,
    /// The name.
    pub name: String,
    /// Which value of it.
    pub generation: NameGeneration,
}

impl Ord for HistoryKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let parts = |key: &Self| (key.namespace, key.name.len());
        parts(self)
            .cmp(&parts(other))
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.generation.cmp(&other.generation))
    }
}

impl PartialOrd for HistoryKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for HistoryKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + self.name.len());
        bytes.extend_from_slice(&self.namespace.0.to_be_bytes());
        // A longer name than this is refused before it comes here.
        let len = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&self.generation.0.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<2>().and_then(|(namespace, rest)| {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            let (name, generation) = rest.split_last_chunk::<8>()?;
            if name.len() != usize::from(u16::from_be_bytes(*len)) {
                return None;
            }
            Some(Self {
                namespace: Namespace(u16::from_be_bytes(*namespace)),
                name: String::from_utf8(name.to_vec()).ok()?,
                generation: NameGeneration(u64::from_be_bytes(*generation)),
            })
        });
        parts.ok_or_else(|| misfit("name and generation", bytes))
    }
}

fn misfit(what: &str, bytes: &[u8]) -> Error {
    Error::damage("read", what, format!("{} bytes are not a key", bytes.len()))
}

/// What the bytes of a value are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueForm {
    /// As they were handed in.
    Bytes,
    /// A value of some type, encoded.
    Typed {
        /// The type's name, for messages.
        name: String,
        /// Names the type's shape; a type of another one does not read the value.
        fingerprint: u64,
    },
}

/// The value of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRow {
    /// Rises with each value of the name, and is never used twice for it.
    pub generation: NameGeneration,
    /// Its bytes.
    pub object: ObjectId,
    /// Their length.
    pub len: u64,
    /// The commit that made it the value.
    pub commit: CommitSeq,
    /// What the bytes are.
    pub form: ValueForm,
}

impl Row for NameRow {
    type Key = NameKey;
    const TABLE: Table = Table::Names;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
    }
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.generation.0, self.len, self.commit.0])
    }
}

/// An earlier value of a name; its generation is in the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// Its bytes.
    pub object: ObjectId,
    /// Their length.
    pub len: u64,
    /// The commit that made it the value.
    pub commit: CommitSeq,
    /// What the bytes are.
    pub form: ValueForm,
}

impl Row for HistoryRow {
    type Key = HistoryKey;
    const TABLE: Table = Table::History;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
    }
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.len, self.commit.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do keys survive their bytes and sort as they do, names that begin with each other included?
    #[test]
    fn keys_of_names_sort_as_their_bytes() {
        let mut keys = Vec::new();
        for name in ["a", "b", "ab", "a\0", "a\0\0\0\0\0\0\0\0", "é", "zz"] {
            for generation in [0, 1, 255, 256, u64::MAX] {
                keys.push(HistoryKey {
                    namespace: Namespace(generation as u16 % 2),
                    name: name.to_owned(),
                    generation: NameGeneration(generation),
                });
            }
        }
        let mut bytes: Vec<_> = keys.iter().map(Key::to_bytes).collect();
        keys.sort();
        bytes.sort();
        assert_eq!(keys.iter().map(Key::to_bytes).collect::<Vec<_>>(), bytes);
        for key in keys {
            assert_eq!(HistoryKey::from_bytes(&key.to_bytes()).unwrap(), key);
            let name = NameKey { namespace: key.namespace, name: key.name };
            assert_eq!(NameKey::from_bytes(&name.to_bytes()).unwrap(), name);
        }
        assert!(HistoryKey::from_bytes(&[0; 11]).is_err());
        assert!(HistoryKey::from_bytes(&[0, 1, 0, 9, b'a', 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
        assert!(NameKey::from_bytes(&[0]).is_err());
        assert!(NameKey::from_bytes(&[0, 1, 0xff]).is_err());
    }
}
