//! Rows about the store itself: what it is, what was counted, who opened it, who works on what.

use serde::{Deserialize, Serialize};

use crate::ids::{
    CheckpointId, CommitCount, CommitSeq, Epoch, FileId, GroupId, HandoffId, LeaseId, ObjectId,
    ObjectSnapshotId, OutputId, OwnerId, PartId, QuarantineId, ReceiptId, RecordingId, StageId,
    StoreId, StreamId,
};
use crate::manifest::key::{CountersKey, ResourceKey, StoreKey};
use crate::manifest::row::Row;
use crate::manifest::table::Table;

/// What the store is; fixed at birth, but for the features.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaRow {
    /// The version of the whole format.
    pub format: u16,
    /// Features, one bit each, without which the store cannot be read.
    pub features_read: u64,
    /// Features, one bit each, without which it cannot be written.
    pub features_write: u64,
    /// Its name, for ever.
    pub store: StoreId,
    /// Wall-clock nanoseconds at birth.
    pub created: Option<i64>,
    /// Folders under `sealed/`.
    pub sealed_folders: u16,
    /// Whether it is one file.
    pub single_file: bool,
}

impl Row for MetaRow {
    type Key = StoreKey;
    const TABLE: Table = Table::Meta;
    const VERSION: u8 = 1;
    fn excess(&self) -> Option<&'static str> {
        let fits = self.sealed_folders.is_power_of_two() && self.sealed_folders <= 256;
        (!fits).then_some("its number of sealed folders is none that a store has")
    }
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// The last number of each kind that was given out; a number is never given twice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CountersRow {
    /// Commits.
    pub commit_seq: CommitSeq,
    /// Openings.
    pub epoch: Epoch,
    /// Objects.
    pub object: ObjectId,
    /// Files.
    pub file: FileId,
    /// Leases.
    pub lease: LeaseId,
    /// Recordings.
    pub recording: RecordingId,
    /// Streams.
    pub stream: StreamId,
    /// Checkpoints.
    pub checkpoint: CheckpointId,
    /// Receipts.
    pub receipt: ReceiptId,
    /// Stages.
    pub stage: StageId,
    /// Groups.
    pub group: GroupId,
    /// Parts.
    pub part: PartId,
    /// Outputs.
    pub output: OutputId,
    /// Things in quarantine.
    pub quarantine: QuarantineId,
    /// Publications to outside systems.
    pub handoff: HandoffId,
    /// Snapshots of names.
    pub object_snapshot: ObjectSnapshotId,
}

impl Row for CountersRow {
    type Key = CountersKey;
    const TABLE: Table = Table::Meta;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// How an opening ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnerEnd {
    /// By its own hand.
    Closed,
    /// Its process died; another took over what it had.
    TakenOver {
        /// Who did.
        by: OwnerId,
    },
}

/// One opening of the store by a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRow {
    /// Its number.
    pub epoch: Epoch,
    /// Its commits so far: by this an unknown outcome is learnt.
    pub commits: CommitCount,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The boot of the machine.
    pub boot_id: String,
    /// Wall-clock nanoseconds when it opened.
    pub opened: Option<i64>,
    /// How it ended; `None` while it stands.
    pub ended: Option<OwnerEnd>,
}

impl Row for OwnerRow {
    type Key = OwnerId;
    const TABLE: Table = Table::Owners;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// What a claim is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimKind {
    /// Appending to a stream.
    Stream,
    /// Converting a group.
    Group,
    /// Building a sealed file.
    Build,
    /// Compaction and the like.
    Maintenance,
    /// Writing a recording.
    Recording,
    /// Recovering or removing a stage.
    Stage,
    /// Being a producer of a stage.
    Producer,
    /// Merging an output, or handing it to an outside system.
    Output,
    /// Storing objects under a preparation.
    Preparation,
    /// Adding names to a snapshot of them.
    Snapshot,
}

impl ClaimKind {
    /// Its name, as told to people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Group => "group",
            Self::Build => "build",
            Self::Maintenance => "maintenance",
            Self::Recording => "recording",
            Self::Stage => "stage",
            Self::Producer => "producer",
            Self::Output => "output",
            Self::Preparation => "preparation",
            Self::Snapshot => "snapshot",
        }
    }
}

/// One owner's exclusive right to work on a thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRow {
    /// Who holds it.
    pub owner: OwnerId,
    /// The holder's epoch.
    pub epoch: Epoch,
    /// What for.
    pub kind: ClaimKind,
    /// Wall-clock nanoseconds when it was taken.
    pub since: Option<i64>,
    /// The commit that took it: a right taken anew is another one.
    pub taken: CommitSeq,
}

impl Row for ClaimRow {
    type Key = ResourceKey;
    const TABLE: Table = Table::Claims;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}

/// What was retired or set aside, by which commit, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptRow {
    /// The commit that did it.
    pub commit: CommitSeq,
    /// To what.
    pub what: String,
    /// For what reason.
    pub why: String,
    /// Wall-clock nanoseconds.
    pub at: Option<i64>,
    /// Objects concerned.
    pub objects: u64,
    /// Bytes concerned.
    pub bytes: u64,
}

impl Row for ReceiptRow {
    type Key = ReceiptId;
    const TABLE: Table = Table::Receipts;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}
