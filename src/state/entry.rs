//! What is told of a value, and what a name may be.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, NameGeneration};
use crate::manifest::{HistoryKey, HistoryRow, NameKey, NameRow, Namespace, ValueForm};

/// The longest name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 1024;

/// The longest value, in bytes as stored.
pub const VALUE_BYTES_MAX: usize = crate::codec::ENCODED_BYTES_MAX;

/// A value of a name, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Rises with each value of the name, and is never used twice for it.
    pub generation: NameGeneration,
    /// The commit that made it the value.
    pub commit: CommitSeq,
    /// Its length as stored, in bytes.
    pub len: u64,
    /// The type that it was put as; `None` for bytes.
    pub type_name: Option<String>,
}

/// A value that was read, and which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The value.
    pub value: T,
    /// Give it to a compare-and-set that replaces this very value.
    pub generation: NameGeneration,
    /// The commit that made it the value.
    pub commit: CommitSeq,
}

/// What stands under a name where something else was expected: the source of a `Conflict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// The name.
    pub name: String,
    /// What stands there; `None` for nothing.
    pub generation: Option<NameGeneration>,
}

impl fmt::Display for Present {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            Some(generation) => write!(f, "generation {generation} stands"),
            None => f.write_str("nothing stands there"),
        }
    }
}

impl std::error::Error for Present {}

impl Present {
    /// What stands there, from the `Conflict` of a compare-and-set; `None` for another error.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

/// A value as its row tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Valued {
    pub(super) generation: NameGeneration,
    pub(super) row: HistoryRow,
}

impl From<NameRow> for Valued {
    fn from(row: NameRow) -> Self {
        let NameRow { generation, object, len, commit, form } = row;
        Self { generation, row: HistoryRow { object, len, commit, form } }
    }
}

impl Valued {
    pub(super) fn entry(&self, name: &str) -> Entry {
        Entry {
            name: name.to_owned(),
            generation: self.generation,
            commit: self.row.commit,
            len: self.row.len,
            type_name: match &self.row.form {
                ValueForm::Bytes => None,
                ValueForm::Typed { name, .. } => Some(name.clone()),
            },
        }
    }
}

/// Refuses what is no name.
pub(super) fn check_name(operation: &'static str, name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::invalid(operation, "name", "it is blank"));
    }
    if name.len() > NAME_BYTES_MAX {
        let cause = format!("{} bytes of name, {NAME_BYTES_MAX} allowed", name.len());
        return Err(Error::new(ErrorKind::LimitExceeded, operation, "name", cause));
    }
    Ok(())
}

pub(super) fn place(name: &str) -> String {
    format!("{name:?}")
}

pub(super) fn key(name: &str) -> NameKey {
    NameKey { namespace: Namespace::STATE, name: name.to_owned() }
}

/// Every earlier value of a name, oldest first.
pub(super) fn history_of(name: &str) -> std::ops::RangeInclusive<HistoryKey> {
    let at = |generation| HistoryKey {
        namespace: Namespace::STATE,
        name: name.to_owned(),
        generation: NameGeneration(generation),
    };
    at(0)..=at(u64::MAX)
}
