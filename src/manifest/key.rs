//! Keys as bytes that sort as the keys do: big-endian, fixed width, text or bytes last.

use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::ids::{
    CheckpointId, EventId, FileId, GroupId, HandoffId, LeaseId, ObjectId, Ordinal, OutputId,
    OwnerId, PartId, QuarantineId, ReceiptId, RecordingId, StageId, StreamId, UniqueId,
};
use crate::manifest::table::Table;

/// The key of a row. Byte order is key order.
pub trait Key: Sized + Clone + Debug + Ord {
    /// As bytes.
    fn to_bytes(&self) -> Vec<u8>;
    /// From bytes.
    ///
    /// # Errors
    /// `Damage` when no key has these bytes.
    fn from_bytes(bytes: &[u8]) -> Result<Self>;
}

fn misfit(what: &str, bytes: &[u8]) -> Error {
    Error::damage("read", what, format!("{} bytes are not a key", bytes.len()))
}

/// A field of fixed width.
trait Field: Sized + Clone + Debug + Ord {
    const WIDTH: usize;
    fn put(&self, to: &mut Vec<u8>);
    fn take(from: &[u8]) -> Option<Self>;
}

impl Field for u64 {
    const WIDTH: usize = 8;
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_be_bytes());
    }
    fn take(from: &[u8]) -> Option<Self> {
        Some(u64::from_be_bytes(from.try_into().ok()?))
    }
}

macro_rules! id_fields {
    ($($id:ident)*) => {$(
        impl Field for $id {
            const WIDTH: usize = 16;
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.0);
            }
            fn take(from: &[u8]) -> Option<Self> {
                Some($id(from.try_into().ok()?))
            }
        }
    )*};
}

id_fields! { OwnerId UniqueId }

macro_rules! number_fields {
    ($($id:ident)*) => {$(
        impl Field for $id {
            const WIDTH: usize = 8;
            fn put(&self, to: &mut Vec<u8>) {
                self.0.put(to);
            }
            fn take(from: &[u8]) -> Option<Self> {
                u64::take(from).map($id)
            }
        }
    )*};
}

number_fields! {
    CheckpointId EventId FileId GroupId HandoffId LeaseId ObjectId Ordinal OutputId PartId QuarantineId
    ReceiptId RecordingId StageId StreamId
}

macro_rules! single_keys {
    ($($id:ident)*) => {$(
        impl Key for $id {
            fn to_bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity(Self::WIDTH);
                self.put(&mut bytes);
                bytes
            }
            fn from_bytes(bytes: &[u8]) -> Result<Self> {
                Self::take(bytes).ok_or_else(|| misfit(stringify!($id), bytes))
            }
        }
    )*};
}

single_keys! {
    u64 OwnerId FileId GroupId HandoffId LeaseId ObjectId ReceiptId RecordingId StageId StreamId
}

macro_rules! pair_keys {
    ($(($first:ident, $second:ident))*) => {$(
        impl Key for ($first, $second) {
            fn to_bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity($first::WIDTH + $second::WIDTH);
                self.0.put(&mut bytes);
                self.1.put(&mut bytes);
                bytes
            }
            fn from_bytes(bytes: &[u8]) -> Result<Self> {
                let pair = bytes.split_at_checked($first::WIDTH).and_then(|(first, second)| {
                    Some(($first::take(first)?, $second::take(second)?))
                });
                pair.ok_or_else(|| {
                    misfit(concat!(stringify!($first), " and ", stringify!($second)), bytes)
                })
            }
        }
    )*};
}

pair_keys! {
    (OwnerId, u64) (u64, ObjectId) (FileId, ObjectId) (StreamId, Ordinal) (u64, CheckpointId)
    (UniqueId, u64) (RecordingId, EventId) (StageId, GroupId) (GroupId, PartId) (StageId, OutputId)
    (StageId, QuarantineId) (ObjectId, u64) (LeaseId, ObjectId)
}

/// A page of a journal: owner, number, first byte.
impl Key for (OwnerId, u64, u64) {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.0, self.1).to_bytes();
        self.2.put(&mut bytes);
        bytes
    }
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_at_checked(OwnerId::WIDTH + u64::WIDTH).and_then(|(one, rest)| {
            let (owner, n) = <(OwnerId, u64)>::from_bytes(one).ok()?;
            Some((owner, n, u64::take(rest)?))
        });
        parts.ok_or_else(|| misfit("owner, number and offset", bytes))
    }
}

impl Key for String {
    fn to_bytes(&self) -> Vec<u8> {
        self.clone().into_bytes()
    }
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        String::from_utf8(bytes.to_vec()).map_err(|_| misfit("name", bytes))
    }
}

/// What a claim is on, as bytes that its claimant chooses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey(pub Vec<u8>);

impl std::fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl ResourceKey {
    /// What the claims on streams begin with; nobody else's do.
    pub const STREAMS: &'static str = "stream/";

    /// The claim on `stream`.
    pub fn of_stream(stream: StreamId) -> Self {
        Self(format!("{}{stream}", Self::STREAMS).into_bytes())
    }

    /// What the claims on recordings begin with.
    pub const RECORDINGS: &'static str = "recording/";

    /// The claim on the recording called `name`.
    pub fn of_recording(name: &str) -> Self {
        Self(format!("{}{name}", Self::RECORDINGS).into_bytes())
    }

    /// What the claims on stages and what is in them begin with.
    pub const STAGES: &'static str = "stage/";

    /// The claim on recovering or removing `stage`.
    pub fn of_stage(stage: StageId) -> Self {
        Self(format!("{}{stage}", Self::STAGES).into_bytes())
    }

    /// The claim on converting a group of `stage`.
    pub fn of_group(stage: StageId, group: GroupId) -> Self {
        Self(format!("{}{stage}/group/{group}", Self::STAGES).into_bytes())
    }

    /// The claim on an output of `stage`.
    pub fn of_output(stage: StageId, output: OutputId) -> Self {
        Self(format!("{}{stage}/output/{output}", Self::STAGES).into_bytes())
    }

    /// The claim on giving back what is in quarantine of `stage`.
    pub fn of_quarantined(stage: StageId, quarantined: QuarantineId) -> Self {
        Self(format!("{}{stage}/quarantine/{quarantined}", Self::STAGES).into_bytes())
    }

    /// The claim on being the producer called `name`.
    pub fn of_producer(stage: StageId, name: &str) -> Self {
        Self(format!("{}{stage}/producer/{name}", Self::STAGES).into_bytes())
    }

    /// What the claims on preparations begin with.
    pub const PREPARATIONS: &'static str = "preparation/";

    /// The claim on storing objects under the preparation called `name`.
    pub fn of_preparation(name: &str) -> Self {
        Self(format!("{}{name}", Self::PREPARATIONS).into_bytes())
    }

    /// The claim on adding to the snapshot of names called `name`.
    pub fn of_object_snapshot(name: &str) -> Self {
        Self(format!("snapshot/{name}").into_bytes())
    }

    /// Whether it is the claim on a stream.
    pub fn is_of_stream(&self) -> bool {
        self.0.starts_with(Self::STREAMS.as_bytes())
    }
}

impl From<&str> for ResourceKey {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Key for ResourceKey {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.clone()
    }
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Ok(Self(bytes.to_vec()))
    }
}

macro_rules! fixed_keys {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name;

        impl Key for $name {
            fn to_bytes(&self) -> Vec<u8> {
                $text.to_vec()
            }
            fn from_bytes(bytes: &[u8]) -> Result<Self> {
                if bytes == $text { Ok(Self) } else { Err(misfit(stringify!($name), bytes)) }
            }
        }
    )*};
}

fixed_keys! {
    /// The key of the one [`MetaRow`](super::MetaRow).
    StoreKey = b"store";
    /// The key of the one [`CountersRow`](super::CountersRow).
    CountersKey = b"counters";
}

/// An edge: the row at `key` of `table` refers to `object`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeKey {
    /// What is referred to.
    pub object: ObjectId,
    /// The table of the referring row.
    pub table: Table,
    /// Its key there, as bytes.
    pub key: Vec<u8>,
}

impl Key for EdgeKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(9 + self.key.len());
        self.object.put(&mut bytes);
        bytes.push(self.table.number());
        bytes.extend_from_slice(&self.key);
        bytes
    }
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_at_checked(ObjectId::WIDTH).and_then(|(object, rest)| {
            let (table, key) = rest.split_first()?;
            let table = Table::from_number(*table)?;
            Some(Self { object: ObjectId::take(object)?, table, key: key.to_vec() })
        });
        parts.ok_or_else(|| misfit("edge", bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<K: Key>(key: K) {
        assert_eq!(K::from_bytes(&key.to_bytes()).unwrap(), key);
    }

    /// Do bytes sort as keys do? A scan by key range is a scan by byte range.
    #[test]
    fn byte_order_is_key_order() {
        let mut keys: Vec<(StreamId, Ordinal)> =
            [(0, 256), (0, 255), (1, 0), (256, 0), (255, u64::MAX)]
                .map(|(s, o)| (StreamId(s), Ordinal(o)))
                .to_vec();
        let mut bytes: Vec<_> = keys.iter().map(Key::to_bytes).collect();
        keys.sort();
        bytes.sort();
        assert_eq!(keys.iter().map(Key::to_bytes).collect::<Vec<_>>(), bytes);
    }

    /// Does each key survive its bytes, and does a key of another width not?
    #[test]
    fn keys_read_back_and_misfits_are_damage() {
        let owner = OwnerId::from_parts(1, [2; 10]);
        round((owner, 7u64));
        round((FileId(1), ObjectId(2)));
        round((owner, 7u64, 8u64));
        round((UniqueId::from_parts(3, [4; 10]), 9u64));
        round("name".to_owned());
        round(StoreKey);
        round(EdgeKey { object: ObjectId(3), table: Table::Chunks, key: vec![1, 2] });
        assert!(ObjectId::from_bytes(&[0; 7]).is_err());
        assert!(<(OwnerId, u64)>::from_bytes(&[0; 25]).is_err());
        assert!(CountersKey::from_bytes(b"store").is_err());
        assert!(EdgeKey::from_bytes(&[0; 8]).is_err());
        assert!(EdgeKey::from_bytes(&[255; 9]).is_err());
        assert!(String::from_bytes(&[0xff]).is_err());
    }
}
