//! A store with a stage of one intake, and parts made of its records: what tests of the engine share.
#![cfg(feature = "sim")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Append, Content, Options, SealedSet, Store, Taken, WriteAccess, create_intake};
use crate::Limits;
use crate::check::{CheckOptions, check};
use crate::error::Result;
use crate::ids::{ObjectId, PartId, Sequence, StreamId};
use crate::manifest::{GroupRow, GroupState, PartRow, Reading, Snapshot, StageRow, Write};
use crate::vfs::sim::SimDisk;
use crate::vfs::{Disk, Step};

pub(super) const NAME: &str = "nginx";

pub(super) fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

pub(super) fn options(disk: &SimDisk, access: WriteAccess) -> Options {
    let limits = Limits {
        sealed_folders: 2,
        background: false,
        ballast_bytes: 0,
        journal_prewrite_bytes: 4 << 10,
        payload_inline_bytes_max: 1000,
        object_inline_bytes_max: 64,
        manifest_cache_bytes: 1 << 20,
        ..Limits::default()
    };
    Store::options().limits(limits).disk(Arc::new(disk.clone())).access(access)
}

/// A store with a stage of one intake.
pub(super) fn begun(seed: u64, access: WriteAccess) -> (SimDisk, Store, StreamId) {
    let world = SimDisk::new(seed);
    world.mkdir(Path::new("/data")).unwrap();
    let store = options(&world.process(1), access).create(root()).unwrap();
    let intake = new_intake(&store);
    (world, store, intake)
}

pub(super) fn new_intake(store: &Store) -> StreamId {
    let made = store.transact(Step::PublishCommit, |w| {
        let intake = create_intake(w, NAME)?;
        let name = NAME.to_owned();
        let row = match w.get::<StageRow>(&name)? {
            Some(row) => row,
            None => StageRow {
                stage: w.next_stage_id()?,
                created: None,
                intakes: Vec::new(),
                schema: Vec::new(),
                about: Vec::new(),
            },
        };
        let intakes = [row.intakes.clone(), vec![intake]].concat();
        w.put(&name, &StageRow { intakes, ..row })?;
        Ok(intake)
    });
    made.unwrap().value
}

pub(super) fn append(store: &Store, intake: StreamId, texts: &[&str]) {
    for text in texts {
        store.append(vec![Append { stream: intake, payload: text.as_bytes().to_vec() }]).unwrap();
    }
}

/// A part of the whole tail, its bytes longer than what the manifest holds.
pub(super) fn sealed(store: &Store, intake: StreamId) -> (SealedSet, Taken) {
    let (first, tail) = store.unsealed(intake).unwrap();
    let bytes: Vec<_> = tail.iter().map(|(_, p)| store.payload_bytes(p).unwrap()).collect();
    let bytes = [bytes.join(&b'\n'), vec![b'#'; 100]].concat();
    let set = store.seal_contents(vec![Content::new(bytes, None)]).unwrap();
    let upto = Sequence(first.0 + tail.len() as u64);
    (set, Taken { stream: intake, first, upto })
}

pub(super) fn refer(
    w: &mut Write,
    taken: Taken,
    object: ObjectId,
    payloads: Vec<ObjectId>,
) -> Result<PartId> {
    let stage = w.require::<StageRow>(&NAME.to_owned())?.stage;
    let group = w.next_group_id()?;
    let part = w.next_part_id()?;
    let rows = taken.upto.0 - taken.first.0;
    let (key, state) = (Vec::from(group.0.to_be_bytes()), GroupState::Open);
    let row = GroupRow {
        key,
        state,
        rows,
        batches: rows,
        len: 1,
        first_at: None,
        last_at: None,
        failures: 0,
        failure: None,
    };
    w.put(&(stage, group), &row)?;
    let (intake, first, upto) = (taken.stream, taken.first, taken.upto);
    let row =
        PartRow { object, payloads, rows, batches: rows, skip: 0, len: 1, intake, first, upto };
    w.put(&(group, part), &row)?;
    Ok(part)
}

pub(super) fn take(store: &Store, set: SealedSet, taken: Taken) -> Result<PartId> {
    let step = Step::PublishCommit;
    store.publish_taking(set, step, &[taken], |w, objects| refer(w, taken, objects[0], Vec::new()))
}

pub(super) fn seal(store: &Store, intake: StreamId) {
    let (set, taken) = sealed(store, intake);
    take(store, set, taken).unwrap();
}

pub(super) fn intakes(snapshot: &Snapshot) -> Result<Vec<StreamId>> {
    let row = snapshot.get::<StageRow>(&NAME.to_owned())?;
    Ok(row.map(|row| row.intakes).unwrap_or_default())
}

pub(super) fn in_parts(snapshot: &Snapshot) -> Result<u64> {
    Ok(snapshot.list::<PartRow>(.., usize::MAX)?.iter().map(|(_, row)| row.rows).sum())
}

/// Rows in parts and in tails, as a reader counts them.
pub(super) fn counted(store: &Store) -> u64 {
    let (views, parts) = store.views_with(intakes, in_parts).unwrap();
    parts + views.iter().map(|view| view.tail.len() as u64).sum::<u64>()
}

pub(super) fn looked(world: &SimDisk) {
    let options =
        CheckOptions { disk: Some(Arc::new(world.process(77))), ..CheckOptions::default() };
    let report = check(root(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
}
