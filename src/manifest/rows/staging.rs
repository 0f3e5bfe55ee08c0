//! Rows of stages: groups of batches, the parts that hold them, the outputs that they became, and how
//! far each producer got.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::ids::{
    CommitSeq, GroupId, HandoffId, ObjectId, OutputId, PartId, QuarantineId, Sequence, StageId,
    StreamId,
};
use crate::manifest::key::Key;
use crate::manifest::row::{Row, exceeds};
use crate::manifest::table::Table;

/// A stage, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRow {
    /// Its number: one that is made again under the same name has another.
    pub stage: StageId,
    /// Wall-clock nanoseconds when it was made.
    pub created: Option<i64>,
    /// The streams whose unsealed records are its batches.
    pub intakes: Vec<StreamId>,
    /// The union of the schemas of its outputs, opaque here.
    pub schema: Vec<u8>,
    /// The shape of its keys, opaque here.
    pub about: Vec<u8>,
}

impl Row for StageRow {
    type Key = String;
    const TABLE: Table = Table::Stages;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// How far a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupState {
    /// Batches of its key come to it.
    Open,
    /// Nothing comes to it any more: its parts are what it is.
    Detached {
        /// The commit that detached it.
        at: CommitSeq,
    },
}

/// The batches of one key between two flushes. Its number is its generation: later ones are higher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRow {
    /// The key, as bytes.
    pub key: Vec<u8>,
    /// How far it is.
    pub state: GroupState,
    /// Rows in its parts.
    pub rows: u64,
    /// Batches in its parts.
    pub batches: u64,
    /// Bytes of those batches.
    pub len: u64,
    /// Wall-clock nanoseconds of its first batch.
    pub first_at: Option<i64>,
    /// And of its last.
    pub last_at: Option<i64>,
    /// How often its conversion failed, or wrote no rows.
    pub failures: u32,
    /// Why, the last time.
    pub failure: Option<String>,
}

impl Row for GroupRow {
    type Key = (StageId, GroupId);
    const TABLE: Table = Table::Groups;
    const VERSION: u8 = 1;
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.rows, self.batches, self.len])
    }
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
    fn derived(&self, key: &Self::Key, to: &mut dyn FnMut(Table, Vec<u8>)) {
        if self.state == GroupState::Open {
            let open = OpenGroupKey { stage: key.0, key: self.key.clone(), group: key.1 };
            to(Table::OpenGroups, open.to_bytes());
        }
    }
}

/// The group that batches of a key come to: the stage, the length of the key in four bytes, the key, the
/// group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OpenGroupKey {
    /// Whose.
    pub stage: StageId,
    /// The key.
    pub key: Vec<u8>,
    /// Which group.
    pub group: GroupId,
}

impl Ord for OpenGroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_bytes().cmp(&other.to_bytes())
    }
}

impl PartialOrd for OpenGroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for OpenGroupKey {
    fn to_bytes(&self) -> Vec<u8> {
        // A longer key than this is refused before it comes here.
        let len = u32::try_from(self.key.len()).unwrap_or(u32::MAX);
        let mut bytes = self.stage.to_bytes();
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(&self.key);
        bytes.extend_from_slice(&self.group.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<8>().and_then(|(stage, rest)| {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
            let (key, group) = rest.split_at_checked(len)?;
            Some(Self {
                stage: StageId(u64::from_be_bytes(*stage)),
                key: key.to_vec(),
                group: GroupId(u64::from_be_bytes(group.try_into().ok()?)),
            })
        });
        parts.ok_or_else(|| misfit("stage, key and group", bytes))
    }
}

/// An entry of that index. All of it is in the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenGroupRow;

impl Row for OpenGroupRow {
    type Key = OpenGroupKey;
    const TABLE: Table = Table::OpenGroups;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// A durable piece of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRow {
    /// Its bytes.
    pub object: ObjectId,
    /// Objects that its bytes name by digest: batches too large to lie twice.
    pub payloads: Vec<ObjectId>,
    /// Rows of its batches.
    pub rows: u64,
    /// Its batches.
    pub batches: u64,
    /// Batches at its beginning that are in an output already: they are not counted in the others.
    pub skip: u64,
    /// Bytes of its batches.
    pub len: u64,
    /// The stream that its batches were accepted in.
    pub intake: StreamId,
    /// The first record of it that may be here.
    pub first: Sequence,
    /// The record behind the last that may be.
    pub upto: Sequence,
}

impl Row for PartRow {
    type Key = (GroupId, PartId);
    const TABLE: Table = Table::Parts;
    const VERSION: u8 = 1;
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.rows, self.batches, self.len, self.first.0, self.upto.0])
    }
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
        self.payloads.iter().copied().for_each(to);
    }
}

/// What a group, or several outputs, became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRow {
    /// Its bytes.
    pub object: ObjectId,
    /// The key of its group; empty for one of several keys.
    pub key: Vec<u8>,
    /// The groups whose rows it holds.
    pub groups: Vec<GroupId>,
    /// The outputs that it was merged from.
    pub merged: Vec<OutputId>,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub len: u64,
    /// What its bytes are: the name that its converter gives.
    pub form: String,
    /// Its schema, opaque here.
    pub schema: Vec<u8>,
    /// Wall-clock nanoseconds when it was published.
    pub at: Option<i64>,
}

impl Row for OutputRow {
    type Key = (StageId, OutputId);
    const TABLE: Table = Table::Outputs;
    const VERSION: u8 = 1;
    fn excess(&self) -> Option<&'static str> {
        exceeds(&[self.rows, self.len])
    }
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        to(self.object);
    }
}

/// A producer of a stage: the stage, then its name to its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerKey {
    /// Where it produces.
    pub stage: StageId,
    /// Its name there.
    pub name: String,
}

impl Key for ProducerKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.stage.to_bytes();
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<8>().and_then(|(stage, name)| {
            let name = String::from_utf8(name.to_vec()).ok()?;
            Some(Self { stage: StageId(u64::from_be_bytes(*stage)), name })
        });
        parts.ok_or_else(|| misfit("stage and name", bytes))
    }
}

/// How far a producer got with the batches that are in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerRow {
    /// The sequence of its last batch.
    pub last: Option<u64>,
    /// Where its source stood then, as the producer puts it.
    pub position: Vec<u8>,
    /// Its last sequences, oldest first, each with the beginning of the digest of its batch.
    pub recent: Vec<(u64, [u8; 16])>,
    /// Its batches.
    pub batches: u64,
    /// Their rows.
    pub rows: u64,
}

impl Row for ProducerRow {
    type Key = ProducerKey;
    const TABLE: Table = Table::Producers;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// What could not be read or converted, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRow {
    /// The group that it was in; 0 for a record of an intake that did not read.
    pub group: GroupId,
    /// The key of that group; empty for such a record.
    pub key: Vec<u8>,
    /// Why it is here.
    pub reason: String,
    /// Its bytes, as many as were there.
    pub objects: Vec<ObjectId>,
    /// Its part, to be given back when it is tried again; of such a record where its bytes were.
    pub part: PartRow,
    /// Wall-clock nanoseconds.
    pub at: Option<i64>,
}

impl Row for QuarantineRow {
    type Key = (StageId, QuarantineId);
    const TABLE: Table = Table::Quarantine;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        self.objects.iter().copied().for_each(&mut *to);
        self.part.edges(to);
    }
}

/// How far the publication of an output to an outside system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandoffState {
    /// It may have begun outside.
    Prepared,
    /// It is there: the evidence says so.
    Done,
    /// It is not there, and will not be.
    RolledBack,
}

/// A publication of an output to an outside system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffRow {
    /// Whose output.
    pub stage: StageId,
    /// Which.
    pub output: OutputId,
    /// Its bytes, which stay as long as it is not decided.
    pub object: ObjectId,
    /// The outside system, by the name that it gives itself.
    pub target: String,
    /// What is to be there, as the target puts it before anything is done.
    pub intent: Vec<u8>,
    /// What shows that it is there, as the target puts it.
    pub evidence: Vec<u8>,
    /// How far it is.
    pub state: HandoffState,
    /// How often it was tried.
    pub tries: u32,
    /// Why the last try failed.
    pub failure: Option<String>,
    /// Wall-clock nanoseconds when it was prepared.
    pub at: Option<i64>,
}

impl Row for HandoffRow {
    type Key = HandoffId;
    const TABLE: Table = Table::Handoffs;
    const VERSION: u8 = 1;
    fn edges(&self, to: &mut dyn FnMut(ObjectId)) {
        if self.state == HandoffState::Prepared {
            to(self.object);
        }
    }
    fn derived(&self, key: &Self::Key, to: &mut dyn FnMut(Table, Vec<u8>)) {
        let is_decided = self.state != HandoffState::Prepared;
        let (stage, output) = (self.stage, self.output);
        let order = HandoffOrderKey { stage, is_decided, output, handoff: *key };
        to(Table::HandoffOrder, order.to_bytes());
    }
}

/// Finds the hand-offs of a stage that are not decided, and those of an output, in a range of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandoffOrderKey {
    /// Whose.
    pub stage: StageId,
    /// Whether it is done or rolled back.
    pub is_decided: bool,
    /// Of which output.
    pub output: OutputId,
    /// Which.
    pub handoff: HandoffId,
}

impl Key for HandoffOrderKey {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.stage.to_bytes();
        bytes.push(u8::from(self.is_decided));
        bytes.extend_from_slice(&self.output.0.to_be_bytes());
        bytes.extend_from_slice(&self.handoff.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk::<8>().and_then(|(stage, rest)| {
            let (decided, rest) = rest.split_first()?;
            let is_decided = match decided {
                0 => false,
                1 => true,
                _ => return None,
            };
            let (output, handoff) = rest.split_first_chunk::<8>()?;
            Some(Self {
                stage: StageId(u64::from_be_bytes(*stage)),
                is_decided,
                output: OutputId(u64::from_be_bytes(*output)),
                handoff: HandoffId(u64::from_be_bytes(handoff.try_into().ok()?)),
            })
        });
        parts.ok_or_else(|| misfit("stage, decision, output and hand-off", bytes))
    }
}

/// An entry of that index. All of it is in the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffOrderRow;

impl Row for HandoffOrderRow {
    type Key = HandoffOrderKey;
    const TABLE: Table = Table::HandoffOrder;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

fn misfit(what: &str, bytes: &[u8]) -> Error {
    Error::damage("read", what, format!("{} bytes are not a key", bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do keys survive their bytes, and are all other bytes refused?
    #[test]
    fn keys_of_stages_read_back() {
        let producer = ProducerKey { stage: StageId(7), name: "host-3".to_owned() };
        assert_eq!(ProducerKey::from_bytes(&producer.to_bytes()).unwrap(), producer);
        let open = OpenGroupKey { stage: StageId(1), key: vec![9, 0, 9], group: GroupId(3) };
        assert_eq!(OpenGroupKey::from_bytes(&open.to_bytes()).unwrap(), open);
        assert!(ProducerKey::from_bytes(&[0; 7]).is_err());
        assert!(ProducerKey::from_bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff]).is_err());
        let bytes = open.to_bytes();
        assert!((0..bytes.len()).all(|len| OpenGroupKey::from_bytes(&bytes[..len]).is_err()));
        assert!(OpenGroupKey::from_bytes(&[0xff; 40]).is_err());
        let order = HandoffOrderKey {
            stage: StageId(1),
            is_decided: true,
            output: OutputId(2),
            handoff: HandoffId(3),
        };
        let mut bytes = order.to_bytes();
        assert_eq!(HandoffOrderKey::from_bytes(&bytes).unwrap(), order);
        assert!((0..bytes.len()).all(|len| HandoffOrderKey::from_bytes(&bytes[..len]).is_err()));
        bytes[8] = 2;
        assert!(HandoffOrderKey::from_bytes(&bytes).is_err());
    }
}
