//! The rows of a snapshot by type, as far as salvage has to understand them.

use std::collections::BTreeMap;

use super::chain::{Snapshot, Values};
use super::report::Salvaged;
use crate::ids::{
    CheckpointId, FileId, GroupId, LeaseId, ObjectId, Ordinal, OutputId, PartId, RecordingId,
    StageId, StreamId,
};
use crate::manifest::{
    CheckpointRow, ChunkRow, CountersRow, FileRow, GroupRow, InlineRow, Key, LeaseRow, ObjectRow,
    ObjectSnapshotRow, OutputRow, OwnerRow, PartRow, ProducerKey, ProducerRow, RecipeRow,
    RecordingNameRow, RecordingRow, Row, SnapshotNameKey, SnapshotNameRow, StageRow, StreamRow,
    Table, from_value,
};

/// Leases of journals have this bit: the records that they serve are appended anew.
const JOURNAL_LEASES: u64 = 1 << 63;

/// Rows by type; `others` are carried over as they are.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) counters: CountersRow,
    pub(super) objects: BTreeMap<ObjectId, ObjectRow>,
    pub(super) inline: BTreeMap<ObjectId, InlineRow>,
    pub(super) files: BTreeMap<FileId, FileRow>,
    pub(super) streams: BTreeMap<StreamId, StreamRow>,
    pub(super) chunks: BTreeMap<(StreamId, Ordinal), ChunkRow>,
    pub(super) checkpoints: BTreeMap<(u64, CheckpointId), CheckpointRow>,
    pub(super) leases: BTreeMap<LeaseId, LeaseRow>,
    pub(super) recordings: BTreeMap<RecordingId, RecordingRow>,
    pub(super) names: BTreeMap<String, RecordingNameRow>,
    pub(super) stages: BTreeMap<String, StageRow>,
    pub(super) groups: BTreeMap<(StageId, GroupId), GroupRow>,
    pub(super) parts: BTreeMap<(GroupId, PartId), PartRow>,
    pub(super) outputs: BTreeMap<(StageId, OutputId), OutputRow>,
    pub(super) producers: BTreeMap<ProducerKey, ProducerRow>,
    pub(super) recipes: BTreeMap<(ObjectId, u64), RecipeRow>,
    pub(super) object_snapshots: BTreeMap<String, ObjectSnapshotRow>,
    pub(super) snapshot_names: BTreeMap<SnapshotNameKey, SnapshotNameRow>,
    pub(super) others: Values,
}

impl Rows {
    pub(super) fn of(snapshot: &mut Snapshot, salvaged: &mut Salvaged) -> Self {
        let counters = snapshot.counters();
        let values = &mut std::mem::take(&mut snapshot.values);
        if snapshot.unknown > 0 {
            let what = format!("{} rows", snapshot.unknown);
            salvaged.lose(what, 0, "a later release wrote them");
        }
        // What an opening was busy with ends with it.
        let gone = [Table::Meta, Table::Claims, Table::Journals, Table::Snapshots];
        values.retain(|(table, _), _| !gone.contains(table));
        let mut rows = Self {
            counters,
            objects: take::<ObjectRow>(values, salvaged),
            inline: take::<InlineRow>(values, salvaged),
            files: take::<FileRow>(values, salvaged),
            streams: take::<StreamRow>(values, salvaged),
            chunks: take::<ChunkRow>(values, salvaged),
            checkpoints: take::<CheckpointRow>(values, salvaged),
            leases: take::<LeaseRow>(values, salvaged),
            recordings: take::<RecordingRow>(values, salvaged),
            names: take::<RecordingNameRow>(values, salvaged),
            stages: take::<StageRow>(values, salvaged),
            groups: take::<GroupRow>(values, salvaged),
            parts: take::<PartRow>(values, salvaged),
            outputs: take::<OutputRow>(values, salvaged),
            producers: take::<ProducerRow>(values, salvaged),
            recipes: take::<RecipeRow>(values, salvaged),
            object_snapshots: take::<ObjectSnapshotRow>(values, salvaged),
            snapshot_names: take::<SnapshotNameRow>(values, salvaged),
            others: Values::new(),
        };
        rows.leases.retain(|lease, _| lease.0 & JOURNAL_LEASES == 0);
        // How many commits an owner made in the end is known of those alone that had ended.
        let owners = take::<OwnerRow>(values, salvaged);
        values.retain(|(table, _), _| *table != Table::Owners);
        rows.others = std::mem::take(values);
        for (owner, row) in owners.into_iter().filter(|(_, row)| row.ended.is_some()) {
            let key = owner.to_bytes();
            if let Ok(value) = crate::manifest::to_value(&key, &row) {
                rows.others.insert((Table::Owners, key), value);
            }
        }
        super::files::leave_retiring(&mut rows);
        rows
    }
}

/// Takes the rows of one type out of `values`.
fn take<R: Row>(values: &mut Values, salvaged: &mut Salvaged) -> BTreeMap<R::Key, R> {
    let mut rows = BTreeMap::new();
    values.retain(|(table, key), value| {
        if *table != R::TABLE {
            return true;
        }
        let read = R::Key::from_bytes(key).and_then(|at| Ok((at, from_value::<R>(key, value)?)));
        match read {
            Ok((key, row)) => {
                rows.insert(key, row);
            }
            Err(e) => salvaged.lose(format!("a row of {}", table.name()), 0, e),
        }
        false
    });
    rows
}
