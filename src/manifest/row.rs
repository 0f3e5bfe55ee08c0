//! What a row type is: its table, its key, its version, and every object that it refers to.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::row as envelope;
use crate::ids::ObjectId;
use crate::manifest::key::Key;
use crate::manifest::table::Table;

/// A type of row.
///
/// [`edges`](Row::edges) has no default: a row type that forgets its references does not compile.
///
/// ```compile_fail,E0046
/// use sealstone::manifest::{Row, Table};
///
/// #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Forgetful {
///     object: sealstone::ids::ObjectId,
/// }
///
/// impl Row for Forgetful {
///     type Key = u64;
///     const TABLE: Table = Table::Parts;
///     const VERSION: u8 = 1;
/// }
/// ```
pub trait Row: Serialize + DeserializeOwned + Clone + Debug + PartialEq {
    /// Its key.
    type Key: Key;
    /// Its table.
    const TABLE: Table;
    /// The version of its encoding.
    const VERSION: u8;

    /// Names every object that the row refers to; one named twice is one edge.
    fn edges(&self, to: &mut dyn FnMut(ObjectId));

    /// What no row says: such a row is not written, and is damage when it is read. Whoever reads
    /// numbers below it may add two of them.
    fn excess(&self) -> Option<&'static str> {
        None
    }

    /// What the row says against itself, if it does: such a row is not written.
    fn contradiction(&self) -> Option<String> {
        None
    }

    /// Names every index row, table and key, that follows from the row at `key`.
    fn derived(&self, key: &Self::Key, to: &mut dyn FnMut(Table, Vec<u8>)) {
        let _ = (key, to);
    }
}

/// The largest length, count or sequence that a row may hold.
const NUMBER_MAX: u64 = 1 << 60;

/// Whether one of `numbers` is larger than anything that fits on a disk.
pub(super) fn exceeds(numbers: &[u64]) -> Option<&'static str> {
    let is_over = numbers.iter().any(|number| *number > NUMBER_MAX);
    is_over.then_some("a number in it is larger than any that is written")
}

/// Names the row at `key` in an error.
pub(super) fn place_of<R: Row>(key: &R::Key) -> String {
    format!("{} {key:?}", R::TABLE.name())
}

/// The same, of a key's bytes.
fn place_in<R: Row>(key: &[u8]) -> String {
    match R::Key::from_bytes(key) {
        Ok(key) => place_of::<R>(&key),
        Err(_) => format!("{} {key:02x?}", R::TABLE.name()),
    }
}

/// A row's bytes under its key.
///
/// # Errors
/// `LimitExceeded` for a row that is too long, and for one that would be damage when it is read.
pub fn to_value<R: Row>(key: &[u8], row: &R) -> Result<Vec<u8>> {
    if let Some(cause) = row.excess() {
        return Err(Error::new(ErrorKind::LimitExceeded, "write", place_in::<R>(key), cause));
    }
    let body = codec::encode(R::TABLE.name(), row)?;
    Ok(envelope::seal(R::TABLE.number(), key, R::VERSION, &body))
}

/// Reads a row from its bytes under its key: for whoever goes on where one row does not read.
///
/// # Errors
/// `Damage`; `NewerFormat` when a later release wrote it.
pub fn from_value<R: Row>(key: &[u8], value: &[u8]) -> Result<R> {
    let place = || place_in::<R>(key);
    let body = envelope::open(R::TABLE.number(), key, R::VERSION, value, &place)?;
    let row: R = codec::decode(R::TABLE.name(), body)
        .map_err(|e| Error::damage("read", place(), "the row does not decode").with_source(e))?;
    match row.excess() {
        None => Ok(row),
        Some(cause) => Err(Error::damage("read", place(), cause)),
    }
}
