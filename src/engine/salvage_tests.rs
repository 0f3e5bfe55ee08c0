//! Does a stage come back from what is left of a store, each of its batches once?
#![cfg(feature = "sim")]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use super::stage_support::*;
use super::{Append, Budget, Content, SealedSet, Store, Taken, WriteAccess};
use crate::check::{SalvageOptions, Salvaged, Unconfirmed, salvage};
use crate::format::layout;
use crate::format::staged::{
    BatchHead, Form, PartBuilder, ProducerMark, decode_head, encode_batch,
};
use crate::ids::{GroupId, ObjectId, OutputId, PartId, Sequence, StageId, StreamId};
use crate::manifest::{
    GroupRow, GroupState, HandoffRow, HandoffState, Key, OutputRow, PartRow, ProducerKey,
    ProducerRow, QuarantineRow, Reading, Row, Snapshot, StageRow, Table, Write, to_value,
};
use crate::vfs::sim::SimDisk;
use crate::vfs::{Disk, Step};

const STAGE: StageId = StageId(1);

fn new() -> PathBuf {
    PathBuf::from("/data/new.stone")
}

/// Batches of one row, each long enough to lie in a file when it is a part.
fn batches(store: &Store, intake: StreamId, key: &[u8], sequences: std::ops::Range<u64>) {
    for sequence in sequences {
        let producer = ProducerMark {
            name: "p",
            sequence,
            position: b"pos",
            fingerprint: [sequence as u8; 16],
        };
        let (form, rows, at) = (Form::Opaque, 1, Some(9));
        let head = BatchHead { form, rows, at, key, producer: Some(producer) };
        let payload = encode_batch(&head, &[sequence as u8; 300]).unwrap();
        store.append(vec![Append { stream: intake, payload }]).unwrap();
    }
    store.barrier().unwrap();
}

fn open_group(w: &mut Write, key: &[u8]) -> GroupId {
    let groups = w.list::<GroupRow>(.., usize::MAX).unwrap();
    let open = groups.iter().find(|(_, row)| row.key == key && row.state == GroupState::Open);
    if let Some(((_, group), _)) = open {
        return *group;
    }
    let group = w.next_group_id().unwrap();
    let row = GroupRow {
        key: key.to_vec(),
        state: GroupState::Open,
        rows: 0,
        batches: 0,
        len: 0,
        first_at: Some(9),
        last_at: Some(9),
        failures: 0,
        failure: None,
    };
    w.put(&(STAGE, group), &row).unwrap();
    group
}

/// The part of the whole tail, which has one key.
fn sealed_part(store: &Store, intake: StreamId) -> (SealedSet, Taken, Vec<u8>) {
    let (first, tail) = store.unsealed(intake).unwrap();
    let upto = Sequence(first.0 + tail.len() as u64);
    let mut builder = PartBuilder::new(STAGE, intake, first, upto);
    let mut key = Vec::new();
    for (sequence, payload) in &tail {
        let bytes = store.payload_bytes(payload).unwrap();
        key = decode_head(&bytes).unwrap().0.key.to_vec();
        builder.push(*sequence, &bytes).unwrap();
    }
    let set = store.seal_contents(vec![Content::new(builder.finish(), None)]).unwrap();
    (set, Taken { stream: intake, first, upto }, key)
}

fn seal_part(store: &Store, intake: StreamId) {
    let (set, taken, key) = sealed_part(store, intake);
    let published = store.publish_taking(set, Step::PublishCommit, &[taken], |w, objects| {
        let group = open_group(w, &key);
        let part = w.next_part_id()?;
        let (intake, first, upto) = (taken.stream, taken.first, taken.upto);
        let (rows, len) = (upto.0 - first.0, 300 * (upto.0 - first.0));
        let (object, payloads) = (objects[0], Vec::new());
        let row =
            PartRow { object, payloads, rows, batches: rows, skip: 0, len, intake, first, upto };
        w.put(&(group, part), &row)?;
        let mut row = w.require::<GroupRow>(&(STAGE, group))?;
        (row.rows, row.batches, row.len) = (row.rows + rows, row.batches + rows, row.len + len);
        w.put(&(STAGE, group), &row)
    });
    published.unwrap();
}

/// Makes an output of every part of `key`.
fn convert(store: &Store, key: &[u8]) -> OutputId {
    let snapshot = store.snapshot().unwrap();
    let groups = snapshot.list::<GroupRow>(.., 99).unwrap();
    let (of, row) = groups.into_iter().find(|(_, row)| row.key == key).unwrap();
    let parts: Vec<_> = snapshot.list::<PartRow>(.., 99).unwrap();
    let parts: Vec<_> = parts.into_iter().filter(|(part, _)| part.0 == of.1).collect();
    drop(snapshot);
    let output = OutputRow {
        object: ObjectId(0),
        key: key.to_vec(),
        groups: vec![of.1],
        merged: Vec::new(),
        rows: row.rows,
        len: 0,
        form: "test".to_owned(),
        schema: Vec::new(),
        at: None,
    };
    let told = (STAGE, OutputId(0)).to_bytes();
    let referrer = (Table::Outputs.number(), told.clone(), to_value(&told, &output).unwrap());
    let text = |(key, row): &((GroupId, PartId), PartRow)| {
        let key = key.to_bytes();
        (Table::Parts.number(), key.clone(), to_value(&key, row).unwrap())
    };
    let context = parts.iter().map(text).collect();
    let content = Content { context, ..Content::new(Vec::new(), Some(referrer)) };
    let set = store.seal_written(content, |push, _| push(&[0xab; 700])).unwrap();
    let published = store.publish_set(set, Step::PublishCommit, |w, objects| {
        let id = w.next_output_id()?;
        w.put(&(STAGE, id), &OutputRow { object: objects[0], len: 700, ..output.clone() })?;
        for (part, _) in &parts {
            w.remove::<PartRow>(part)?;
        }
        w.remove::<GroupRow>(&of)?;
        Ok(id)
    });
    published.unwrap()
}

fn in_rows(snapshot: &Snapshot) -> crate::Result<u64> {
    let outputs = snapshot.list::<OutputRow>(.., usize::MAX)?;
    Ok(in_parts(snapshot)? + outputs.iter().map(|(_, row)| row.rows).sum::<u64>())
}

fn rows(store: &Store) -> u64 {
    let (views, rows) = store.views_with(intakes, in_rows).unwrap();
    rows + views.iter().map(|view| view.tail.len() as u64).sum::<u64>()
}

fn text<R: Row>(snapshot: &Snapshot) -> String
where
    R::Key: std::fmt::Debug,
{
    format!("{:?}\n", snapshot.list::<R>(.., usize::MAX).unwrap())
}

/// Every row of a stage, objects by what they are.
fn described(store: &Store) -> String {
    let snapshot = store.snapshot().unwrap();
    let staged = [
        text::<StageRow>(&snapshot),
        text::<GroupRow>(&snapshot),
        text::<PartRow>(&snapshot),
        text::<OutputRow>(&snapshot),
        text::<ProducerRow>(&snapshot),
        text::<QuarantineRow>(&snapshot),
        text::<HandoffRow>(&snapshot),
    ];
    let mut told = staged.concat();
    for (_, part) in snapshot.list::<PartRow>(.., usize::MAX).unwrap() {
        told += &format!("{:?}\n", crate::digest::Digest::of(&store.fetch(part.object).unwrap()));
    }
    told + &format!("{} rows\n", rows(store))
}

fn filled(seed: u64) -> (SimDisk, Store, StreamId) {
    let (world, store, intake) = begun(seed, WriteAccess::Single);
    batches(&store, intake, b"a", 0..5);
    seal_part(&store, intake);
    batches(&store, intake, b"b", 5..8);
    seal_part(&store, intake);
    (world, store, intake)
}

/// The rest of what a stage may have.
fn furnish(store: &Store) {
    let output = convert(store, b"b");
    let furnished = store.transact(Step::PublishCommit, |w| {
        let row = w.require::<OutputRow>(&(STAGE, output))?;
        let handoff = w.next_handoff_id()?;
        let prepared = HandoffRow {
            stage: STAGE,
            output,
            object: row.object,
            target: "dir".to_owned(),
            intent: vec![1],
            evidence: Vec::new(),
            state: HandoffState::Prepared,
            tries: 1,
            failure: None,
            at: None,
        };
        w.put(&handoff, &prepared)?;
        let parts = w.list::<PartRow>(.., 9)?;
        let (key, part) = parts.into_iter().next().unwrap();
        let quarantine = w.next_quarantine_id()?;
        let set_aside = QuarantineRow {
            group: key.0,
            key: b"a".to_vec(),
            reason: "for the test".to_owned(),
            objects: vec![part.object],
            part,
            at: None,
        };
        w.put(&(STAGE, quarantine), &set_aside)?;
        let name = "p".to_owned();
        let producer = ProducerRow {
            last: Some(7),
            position: b"pos".to_vec(),
            recent: vec![(7, [7; 16])],
            batches: 8,
            rows: 8,
        };
        w.put(&ProducerKey { stage: STAGE, name }, &producer)
    });
    furnished.unwrap();
}

fn reopened(world: &SimDisk, path: PathBuf) -> Store {
    options(&world.process(40), WriteAccess::Single).open_read_only(path).unwrap()
}

/// The store is killed and its manifest is lost.
fn lost(world: &SimDisk, store: Store) -> Salvaged {
    world.process(1).kill();
    drop(store);
    salvaged(world)
}

fn salvaged(world: &SimDisk) -> Salvaged {
    let disk = world.process(30);
    disk.unlink(&root().join("manifest.redb")).unwrap();
    salvage(root(), new(), &SalvageOptions { disk: Some(Arc::new(disk)) }).unwrap()
}

/// Does a closed store with a stage come back whole without its manifest?
#[test]
fn g25_a_closed_stage_comes_back_whole() {
    let (world, store, intake) = filled(1);
    furnish(&store);
    batches(&store, intake, b"c", 8..10);
    let before = described(&store);
    store.close().unwrap();
    let salvaged = salvaged(&world);
    assert!(salvaged.is_whole(), "{salvaged:#?}");
    assert_eq!(described(&reopened(&world, new())), before);
}

/// Is a part that is newer than the snapshot a part again, unconfirmed, and what is newer than that
/// unsealed?
#[test]
fn g25_parts_newer_than_the_snapshot_come_back_once() {
    for is_committed in [true, false] {
        let (world, store, _) = filled(2);
        store.close().unwrap();
        let store = options(&world.process(1), WriteAccess::Single).open(root()).unwrap();
        let intake = intakes(&store.snapshot().unwrap()).unwrap()[0];
        batches(&store, intake, b"a", 8..12);
        match is_committed {
            true => seal_part(&store, intake),
            // Its file is there and its records are in the journal: both are read.
            false => std::mem::forget(sealed_part(&store, intake)),
        }
        batches(&store, intake, b"c", 12..15);
        let (before, salvaged) = (rows(&store), lost(&world, store));
        assert!(salvaged.lost.is_empty(), "{salvaged:#?}");
        let is_part = |told: &&Unconfirmed| matches!(told, Unconfirmed::Part { rows: 4, .. });
        assert_eq!(salvaged.unconfirmed.iter().filter(is_part).count(), 1, "{salvaged:#?}");
        let store = reopened(&world, new());
        assert_eq!((rows(&store), before), (15, 15));
        let snapshot = store.snapshot().unwrap();
        let key = ProducerKey { stage: STAGE, name: "p".to_owned() };
        let producer = snapshot.get::<ProducerRow>(&key).unwrap().unwrap();
        assert_eq!((producer.last, producer.batches, producer.rows), (Some(11), 4, 4));
        assert_eq!(snapshot.count(Table::Groups).unwrap(), 2, "the open group of its key");
    }
}

/// Is an output that is newer than the snapshot there, where its parts are gone, and kept aside where
/// they are not?
#[test]
fn g25_rows_are_in_an_output_or_in_its_parts() {
    for is_given_back in [true, false] {
        let (world, store, intake) = filled(3);
        store.close().unwrap();
        let store = options(&world.process(1), WriteAccess::Single).open(root()).unwrap();
        batches(&store, intake, b"b", 8..9);
        // Its records are in the journal as well: in the output they count.
        seal_part(&store, intake);
        convert(&store, b"b");
        if is_given_back {
            assert!(store.reclaim(Budget::default()).unwrap().files > 0);
        }
        let (before, salvaged) = (rows(&store), lost(&world, store));
        assert!(salvaged.lost.is_empty(), "{salvaged:#?}");
        let is_output = |told: &&Unconfirmed| matches!(told, Unconfirmed::Output { .. });
        let outputs = salvaged.unconfirmed.iter().filter(is_output).count();
        assert_eq!(outputs, usize::from(is_given_back), "{salvaged:#?}");
        let store = reopened(&world, new());
        assert_eq!((rows(&store), before), (9, 9));
    }
}

/// Are batches that nothing holds any more told, and is all else there?
#[test]
fn g25_a_lost_part_is_told_and_its_group_counted_down() {
    let (world, store, intake) = filled(4);
    batches(&store, intake, b"a", 8..9);
    seal_part(&store, intake);
    let snapshot = store.snapshot().unwrap();
    let (_, part) = snapshot.list::<PartRow>(.., 1).unwrap().remove(0);
    let row = snapshot.require::<crate::manifest::ObjectRow>(&part.object).unwrap();
    let crate::manifest::Place::Extent { file, .. } = row.place else { panic!("in a file") };
    let file = snapshot.require::<crate::manifest::FileRow>(&file).unwrap();
    let path = layout::sealed(&root(), &file.digest, file.unique, 2);
    drop(snapshot);
    store.close().unwrap();
    world.unlink(&path).unwrap();
    let salvaged = salvaged(&world);
    let told = salvaged.lost.iter().any(|lost| lost.what.contains("5 rows"));
    assert!(told, "{salvaged:#?}");
    assert_eq!(rows(&reopened(&world, new())), 4);
}

/// Do rows of stages go along with backup, pack, unpack and compaction?
#[test]
fn g22_a_stage_goes_along_with_backup_pack_and_compaction() {
    let (world, store, intake) = filled(5);
    furnish(&store);
    batches(&store, intake, b"c", 8..10);
    let before = described(&store);
    let to = PathBuf::from("/data/copy.stone");
    store.backup(&to).unwrap();
    assert_eq!(described(&reopened(&world, to)), before);
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(described(&store), before);
    store.close().unwrap();
    let disk = world.process(50);
    let one = PathBuf::from("/data/one.stone");
    let many = PathBuf::from("/data/many.stone");
    let on = &mut |_| ControlFlow::Continue(());
    options(&disk, WriteAccess::Single).compact(root()).unwrap();
    assert_eq!(described(&reopened(&world, root())), before);
    options(&disk, WriteAccess::Single).pack(root(), &one, on).unwrap();
    assert_eq!(described(&reopened(&world, one.clone())), before);
    options(&disk, WriteAccess::Single).unpack(&one, &many, on).unwrap();
    assert_eq!(described(&reopened(&world, many.clone())), before);
    looked(&world);
}
