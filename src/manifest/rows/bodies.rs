//! Rows of the single-file layout: the files that a directory would hold, by name, and their bytes
//! in pages.

use serde::{Deserialize, Serialize};

use crate::ids::{ObjectId, OwnerId, UniqueId};
use crate::manifest::row::{Row, exceeds};
use crate::manifest::table::Table;

/// A file that lies in the manifest; its key is the path that it would have below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyRow {
    /// Its length in bytes.
    pub len: u64,
}

impl Row for BodyRow {
    type Key = String;
    const TABLE: Table = Table::Bodies;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.len])
    }
}

/// A page of a journal; its key ends with the page's first byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameRow {
    /// The bytes.
    #[serde(with = "run")]
    pub bytes: Vec<u8>,
}

impl Row for FrameRow {
    type Key = (OwnerId, u64, u64);
    const TABLE: Table = Table::Frames;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// A page of any other file, by the id that makes that file's path unique, and its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRow {
    /// The bytes.
    #[serde(with = "run")]
    pub bytes: Vec<u8>,
}

impl Row for PageRow {
    type Key = (UniqueId, u64);
    const TABLE: Table = Table::Pages;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// A list of bytes in one run, and not byte by byte: the same encoding, many times faster.
mod run {
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Bytes)
    }

    struct Bytes;

    impl<'de> Visitor<'de> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = list.next_element()? {
                bytes.push(byte);
            }
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    /// Is a run of bytes encoded as a list of bytes is, with nothing that a peer would not expect?
    #[test]
    fn a_run_of_bytes_is_a_list_of_bytes() {
        let row = PageRow { bytes: vec![1, 2, 250] };
        let encoded = codec::encode("pages", &row).unwrap();
        assert_eq!(encoded, codec::encode("pages", &vec![1u8, 2, 250]).unwrap());
        assert_eq!(codec::decode::<PageRow>("pages", &encoded).unwrap(), row);
    }

    /// Does a length that the bytes cannot hold allocate, or is it refused?
    #[test]
    fn p9_a_lying_length_is_damage() {
        assert!(codec::decode::<PageRow>("pages", &[255, 255, 255, 255, 255, 0, 0, 0]).is_err());
    }
}
