//! Rows of parameters: what a recording was made with, and an index of it by value.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::ids::{ObjectId, RecordingId};
use crate::manifest::key::Key;
use crate::manifest::row::Row;
use crate::manifest::table::Table;

/// A parameter of a recording: the recording, then the name to its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterKey {
    /// Whose.
    pub recording: RecordingId,
    /// Its name there.
    pub name: String,
}

impl Key for ParameterKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.recording.to_bytes();
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<8>().and_then(|(recording, name)| {
            let name = String::from_utf8(name.to_vec()).ok()?;
            Some(Self { recording: RecordingId(u64::from_be_bytes(*recording)), name })
        });
        parts.ok_or_else(|| misfit("recording and name", bytes))
    }
}

/// The recordings with a parameter, in the order of its values: the length of the name in two
/// bytes, the name, the value as bytes that sort as values do, the recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParameterOrderKey {
    /// Its name.
    pub name: String,
    /// Its value. No such bytes begin with others.
    pub order: Vec<u8>,
    /// Whose.
    pub recording: RecordingId,
}

impl Ord for ParameterOrderKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_bytes().cmp(&other.to_bytes())
    }
}

impl PartialOrd for ParameterOrderKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for ParameterOrderKey {
    fn to_bytes(&self) -> Vec<u8> {
        // A longer name than this is refused before it comes here.
        let len = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        let mut bytes = len.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&self.order);
        bytes.extend_from_slice(&self.recording.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<2>().and_then(|(len, rest)| {
            let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
            let (order, recording) = rest.split_last_chunk::<8>()?;
            Some(Self {
                name: String::from_utf8(name.to_vec()).ok()?,
                order: order.to_vec(),
                recording: RecordingId(u64::from_be_bytes(*recording)),
            })
        });
        parts.ok_or_else(|| misfit("name, value and recording", bytes))
    }
}

fn misfit(what: &str, bytes: &[u8]) -> Error {
    Error::damage("read", what, format!("{} bytes are not a key", bytes.len()))
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterRow {
    /// It, opaque here.
    pub value: Vec<u8>,
    /// It, or its beginning, as bytes that sort as values do.
    pub order: Vec<u8>,
}

impl Row for ParameterRow {
    type Key = ParameterKey;
    const TABLE: Table = Table::Parameters;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn derived(&self, key: &ParameterKey, to: &mut dyn FnMut(Table, Vec<u8>)) {
        let (name, order) = (key.name.clone(), self.order.clone());
        let index = ParameterOrderKey { name, order, recording: key.recording };
        to(Table::ParameterOrder, index.to_bytes());
    }
}

/// An entry of the index. All of it is in the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterOrderRow;

impl Row for ParameterOrderRow {
    type Key = ParameterOrderKey;
    const TABLE: Table = Table::ParameterOrder;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do keys survive their bytes, and are all other bytes refused?
    #[test]
    fn keys_of_parameters_read_back() {
        let key = ParameterKey { recording: RecordingId(7), name: "dt".to_owned() };
        assert_eq!(ParameterKey::from_bytes(&key.to_bytes()).unwrap(), key);
        let order = vec![2, 0, 9];
        let index = ParameterOrderKey { name: key.name, order, recording: RecordingId(8) };
        assert_eq!(ParameterOrderKey::from_bytes(&index.to_bytes()).unwrap(), index);
        assert!(ParameterKey::from_bytes(&[0; 7]).is_err());
        assert!(ParameterKey::from_bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff]).is_err());
        for bytes in [&[][..], &[0, 3, b'd', b't'], &[0, 1, b'd', 0, 0, 0, 0, 0, 0, 0]] {
            assert!(ParameterOrderKey::from_bytes(bytes).is_err());
        }
    }
}
