//! Do records leave a stream for rows exactly once, whatever comes between?
#![cfg(feature = "sim")]

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    Append, Budget, Content, Options, SealedSet, Store, Taken, WriteAccess, create_intake,
    retire_intake,
};
use crate::Limits;
use crate::check::{CheckOptions, check};
use crate::digest::Digest;
use crate::error::{ErrorKind, Result};
use crate::ids::{GroupId, ObjectId, OwnerId, PartId, Sequence, StageId, StreamId};
use crate::journal::{Level, Payload};
use crate::manifest::{
    ClaimKind, FileRow, FileState, GroupRow, GroupState, JournalRow, LeaseRow, ObjectRow, OwnerEnd,
    OwnerRow, PartRow, Reading, ResourceKey, Snapshot, StageRow, StreamRow, Table, Write,
};
use crate::protection::{Protection, switch_off};
use crate::vfs::sim::{Fault, FaultKind, SimDisk, SyncFailure};
use crate::vfs::{Disk, Operation, Step};

const NAME: &str = "nginx";

fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

fn options(disk: &SimDisk, access: WriteAccess) -> Options {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.background = false;
    limits.ballast_bytes = 0;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.payload_inline_bytes_max = 1000;
    limits.object_inline_bytes_max = 64;
    limits.manifest_cache_bytes = 1 << 20;
    Store::options().limits(limits).disk(Arc::new(disk.clone())).access(access)
}

/// A store with a stage of one intake.
fn begun(seed: u64, access: WriteAccess) -> (SimDisk, Store, StreamId) {
    let world = SimDisk::new(seed);
    world.mkdir(Path::new("/data")).unwrap();
    let store = options(&world.process(1), access).create(root()).unwrap();
    let intake = new_intake(&store);
    (world, store, intake)
}

fn new_intake(store: &Store) -> StreamId {
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

fn append(store: &Store, intake: StreamId, texts: &[&str]) {
    for text in texts {
        store.append(vec![Append { stream: intake, payload: text.as_bytes().to_vec() }]).unwrap();
    }
}

/// A part of the whole tail, its bytes longer than what the manifest holds.
fn sealed(store: &Store, intake: StreamId) -> (SealedSet, Taken) {
    let (first, tail) = store.unsealed(intake).unwrap();
    let bytes: Vec<_> = tail.iter().map(|(_, p)| store.payload_bytes(p).unwrap()).collect();
    let bytes = [bytes.join(&b'\n'), vec![b'#'; 100]].concat();
    let set = store.seal_contents(vec![Content::new(bytes, None)]).unwrap();
    let upto = Sequence(first.0 + tail.len() as u64);
    (set, Taken { stream: intake, first, upto })
}

fn refer(w: &mut Write, taken: Taken, object: ObjectId, payloads: Vec<ObjectId>) -> Result<PartId> {
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

fn take(store: &Store, set: SealedSet, taken: Taken) -> Result<PartId> {
    let step = Step::PublishCommit;
    store.publish_taking(set, step, &[taken], |w, objects| refer(w, taken, objects[0], Vec::new()))
}

fn seal(store: &Store, intake: StreamId) {
    let (set, taken) = sealed(store, intake);
    take(store, set, taken).unwrap();
}

fn intakes(snapshot: &Snapshot) -> Result<Vec<StreamId>> {
    let row = snapshot.get::<StageRow>(&NAME.to_owned())?;
    Ok(row.map(|row| row.intakes).unwrap_or_default())
}

fn in_parts(snapshot: &Snapshot) -> Result<u64> {
    Ok(snapshot.list::<PartRow>(.., usize::MAX)?.iter().map(|(_, row)| row.rows).sum())
}

/// Rows in parts and in tails, as a reader counts them.
fn counted(store: &Store) -> u64 {
    let (views, parts) = store.views_with(intakes, in_parts).unwrap();
    parts + views.iter().map(|view| view.tail.len() as u64).sum::<u64>()
}

fn looked(world: &SimDisk) {
    let options =
        CheckOptions { disk: Some(Arc::new(world.process(77))), ..CheckOptions::default() };
    let report = check(root(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good(), "{:#?}", report.findings);
}

/// Is what was taken in rows alone, durable without its journal, and is it so after a reopening?
#[test]
fn stg8_taken_records_are_in_the_rows_and_nowhere_else() {
    for access in [WriteAccess::Single, WriteAccess::Shared] {
        let (world, store, intake) = begun(1, access);
        let payload = b"a batch".to_vec();
        let accepted = store.append(vec![Append { stream: intake, payload }]).unwrap();
        append(&store, intake, &["b", "c"]);
        assert_eq!(counted(&store), 3);
        seal(&store, intake);
        accepted.ticket.wait(Level::Durable).unwrap();
        let journals = store.snapshot().unwrap().list::<JournalRow>(.., 9).unwrap();
        assert_eq!(journals, [], "durable without its journal");
        append(&store, intake, &["d"]);
        assert_eq!(counted(&store), 4);
        assert_eq!(store.unsealed(intake).unwrap().0, Sequence(3));
        let row = store.snapshot().unwrap().get::<StreamRow>(&intake).unwrap().unwrap();
        assert_eq!((row.taken_upto, row.sealed_upto), (Sequence(3), Sequence(3)));
        store.barrier().unwrap();
        world.process(1).kill();
        drop(store);
        let reader = options(&world.process(2), access).open_read_only(root()).unwrap();
        assert_eq!(counted(&reader), 4);
        drop(reader);
        let store = options(&world.process(3), access).open(root()).unwrap();
        assert_eq!(counted(&store), 4);
        store.claim_stream(intake).unwrap();
        seal(&store, intake);
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(counted(&store), 4);
        store.close().unwrap();
        looked(&world);
    }
}

/// Are records that two seals read taken by one of them? (mutant)
#[test]
fn stg3_records_that_two_seals_read_are_taken_once() {
    for mutant in [false, true] {
        let (world, store, intake) = begun(2, WriteAccess::Single);
        append(&store, intake, &["a", "b"]);
        let one = sealed(&store, intake);
        append(&store, intake, &["c"]);
        let two = sealed(&store, intake);
        take(&store, one.0, one.1).unwrap();
        let _off = mutant.then(|| switch_off(Protection::TakenOnce));
        let second = take(&store, two.0, two.1);
        if mutant {
            second.unwrap();
            assert_eq!(counted(&store), 5, "two rows are there twice");
            continue;
        }
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(counted(&store), 3);
        seal(&store, intake);
        assert_eq!(counted(&store), 3);
        let before = Taken { stream: intake, first: Sequence(3), upto: Sequence(9) };
        let set = store.seal_contents(Vec::new()).unwrap();
        let refused = store.publish_taking(set, Step::PublishCommit, &[before], |_, _| Ok(()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
        store.close().unwrap();
        looked(&world);
    }
}

/// Does a large payload stay as long as a row names it, and go otherwise?
#[test]
fn g6_a_large_payload_goes_with_its_lease_unless_a_row_names_it() {
    for named in [false, true] {
        let (world, store, intake) = begun(3, WriteAccess::Single);
        let large = vec![7; 5000];
        store.append(vec![Append { stream: intake, payload: large.clone() }]).unwrap();
        let (first, tail) = store.unsealed(intake).unwrap();
        let Payload::Object { digest, .. } = &tail[0].1 else { panic!("it lies in an object") };
        let taken = Taken { stream: intake, first, upto: Sequence(1) };
        let set = store.seal_contents(vec![Content::new(vec![1; 100], None)]).unwrap();
        let taking = store.publish_taking(set, Step::PublishCommit, &[taken], |w, objects| {
            let payloads: Vec<ObjectId> = match named {
                true => w.object_of(digest)?.into_iter().map(|(object, _)| object).collect(),
                false => Vec::new(),
            };
            refer(w, taken, objects[0], payloads)
        });
        taking.unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.count(Table::Leases).unwrap(), 0);
        assert_eq!(!snapshot.object_of(digest).unwrap().is_empty(), named);
        drop(snapshot);
        store.close().unwrap();
        looked(&world);
    }
}

/// What comes between the two looks of a reader is seen once; with two snapshots it is not. (mutant)
#[test]
fn stg8_a_seal_between_the_looks_of_a_reader_loses_no_row() {
    let (world, store, intake) = begun(4, WriteAccess::Shared);
    append(&store, intake, &["a", "b", "c"]);
    store.barrier().unwrap();
    let other = options(&world.process(2), WriteAccess::Shared).open(root()).unwrap();
    let reader = options(&world.process(3), WriteAccess::Single).open_read_only(root()).unwrap();
    let mut accepted = 3;
    for mutant in [false, true] {
        for (who, of) in [("its owner", &store), ("another owner", &other), ("a reader", &reader)] {
            append(&store, intake, &["more"]);
            store.barrier().unwrap();
            accepted += 1;
            let _off = mutant.then(|| switch_off(Protection::ViewOneSnapshot));
            let is_first = Cell::new(true);
            let streams = |snapshot: &Snapshot| {
                if is_first.replace(false) {
                    seal(&store, intake);
                }
                intakes(snapshot)
            };
            let (views, parts) = of.views_with(streams, in_parts).unwrap();
            let seen = parts + views.iter().map(|view| view.tail.len() as u64).sum::<u64>();
            assert_eq!(seen == accepted, !mutant, "{who} sees {seen} of {accepted}");
        }
    }
}

/// Is a list of streams that grew and shrank meanwhile that of the snapshot?
#[test]
fn stg8_intakes_that_come_and_go_are_seen_once() {
    let (world, store, intake) = begun(5, WriteAccess::Shared);
    append(&store, intake, &["a", "b"]);
    store.barrier().unwrap();
    store.release_stream(intake).unwrap();
    let other = options(&world.process(2), WriteAccess::Shared).open(root()).unwrap();
    let reader = options(&world.process(3), WriteAccess::Single).open_read_only(root()).unwrap();
    let looks = Cell::new(0);
    let streams = |snapshot: &Snapshot| {
        looks.set(looks.get() + 1);
        if looks.get() == 1 {
            // Another owner takes over what is there, and begins an intake of its own.
            let (set, taken) = sealed(&other, intake);
            let adopted = other.publish_taking(set, Step::PublishCommit, &[taken], |w, objects| {
                let name = NAME.to_owned();
                let mut row = w.require::<StageRow>(&name)?;
                row.intakes.retain(|stream| *stream != intake);
                w.put(&name, &row)?;
                refer(w, taken, objects[0], Vec::new())?;
                retire_intake(w, intake)
            });
            adopted.unwrap();
            let new = new_intake(&other);
            append(&other, new, &["c"]);
            other.barrier().unwrap();
        }
        intakes(snapshot)
    };
    let (views, parts) = reader.views_with(streams, in_parts).unwrap();
    assert_eq!((views.len(), views[0].tail.len(), parts), (1, 1, 2));
    assert!(other.unsealed(intake).is_err_and(|e| e.kind() == ErrorKind::NotFound));
    assert_eq!((counted(&store), counted(&other), counted(&reader)), (3, 3, 3));
    drop(reader);
    store.close().unwrap();
    other.close().unwrap();
    looked(&world);
}

/// Does a stream go with its unsealed records and their payloads, and is nothing appended to it?
#[test]
fn stg30_a_retired_intake_is_gone_with_all_that_was_unsealed() {
    for access in [WriteAccess::Single, WriteAccess::Shared] {
        let (world, store, intake) = begun(6, access);
        append(&store, intake, &["a", &"b".repeat(3000)]);
        store.barrier().unwrap();
        let name = NAME.to_owned();
        let refused: Result<()> = store.transact_retiring(Step::RetireCommit, &[intake], |_| {
            Err(crate::Error::invalid("remove", "stage", "no"))
        });
        assert!(refused.is_err() && counted(&store) == 2);
        let gone = store.transact_retiring(Step::RetireCommit, &[intake], |w| {
            w.remove::<StageRow>(&name).map(|row| row.is_some())
        });
        assert!(gone.unwrap());
        let late = store.append(vec![Append { stream: intake, payload: vec![1] }]);
        assert_eq!(late.unwrap_err().kind(), ErrorKind::NotFound);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.list::<LeaseRow>(.., 9).unwrap(), []);
        assert_eq!(snapshot.list::<ObjectRow>(.., 9).unwrap(), []);
        drop(snapshot);
        store.close().unwrap();
        let store = options(&world.process(3), access).open(root()).unwrap();
        assert_eq!(store.snapshot().unwrap().count(Table::Claims).unwrap(), 0);
        assert_eq!(store.snapshot().unwrap().list::<JournalRow>(.., 9).unwrap(), []);
        store.close().unwrap();
        looked(&world);
    }
}

/// Is an owner that was ended refused, with nothing taken? (P5)
#[test]
fn p5_a_fenced_owner_takes_nothing() {
    let (world, store, intake) = begun(7, WriteAccess::Shared);
    append(&store, intake, &["a"]);
    store.barrier().unwrap();
    let (set, taken) = sealed(&store, intake);
    let other = options(&world.process(2), WriteAccess::Shared).open(root()).unwrap();
    let (me, by) = (store.owner().unwrap().0, other.owner().unwrap().0);
    let ended = other.transact(Step::OpenTakeOver, |w| {
        let row = w.require::<OwnerRow>(&me)?;
        w.put(&me, &OwnerRow { ended: Some(OwnerEnd::TakenOver { by }), ..row })
    });
    ended.unwrap();
    assert_eq!(take(&store, set, taken).unwrap_err().kind(), ErrorKind::Fenced);
    let claims = store.claim_free(&["x".into()], ClaimKind::Group, 1, &|_, _| Ok(true));
    assert_eq!(claims.unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(in_parts(&other.snapshot().unwrap()).unwrap(), 0);
}

/// Does a sync that fails stop the store, and does a commit of unknown outcome delete nothing? (P8)
#[test]
fn p8_a_failed_sync_halts_and_an_unknown_outcome_deletes_nothing() {
    let (world, store, intake) = begun(8, WriteAccess::Single);
    append(&store, intake, &["a"]);
    let kind = FaultKind::SyncFails(SyncFailure::NothingKept);
    world.inject(Fault::new(world.operations(), kind).on("tmp"));
    let content = Content::new(vec![1; 500], None);
    assert_eq!(store.seal_contents(vec![content]).unwrap_err().kind(), ErrorKind::Io);
    assert!(store.health().halted.is_some());
    assert_eq!(store.unsealed(intake).unwrap_err().kind(), ErrorKind::Halted);
    let (world, store, intake) = begun(9, WriteAccess::Single);
    append(&store, intake, &["a"]);
    store.barrier().unwrap();
    let (set, taken) = sealed(&store, intake);
    let file = set.path_of(0).unwrap();
    world.inject(Fault::new(world.operations(), kind).on("manifest").forever());
    let failed = take(&store, set, taken).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutcomeUnknown, "{failed}");
    assert!(store.health().halted.is_some());
    assert!(world.meta(&file).unwrap().is_some(), "a row may name it");
    world.clear_faults();
    world.process(1).kill();
    drop(store);
    let store = options(&world.process(2), WriteAccess::Single).open(root()).unwrap();
    assert_eq!(counted(&store), 1);
    store.close().unwrap();
    looked(&world);
}

/// Is what was sealed read from its file, checked, before any row names it?
#[test]
fn p6_what_was_sealed_is_read_back_from_its_place() {
    let (world, store, _) = begun(10, WriteAccess::Single);
    let large: Vec<u8> = (0..9000u32).map(|n| n as u8).collect();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![3; 400]]).unwrap();
    let contents = [large.clone(), vec![3; 400], vec![4; 10], large.clone()];
    let new = |bytes: &Vec<u8>| Content::new(bytes.clone(), None);
    let mut set = store.seal_contents(contents.iter().map(new).collect()).unwrap();
    let written = store
        .seal_written(Content::new(Vec::new(), None), |push| large.chunks(700).try_for_each(push));
    set.join(written.unwrap());
    assert_eq!(set.lens(), [9000, 400, 10, 9000, 9000]);
    assert_eq!(set.digests()[4], Digest::of(&large));
    for (index, bytes) in contents.iter().chain([&large]).enumerate() {
        let len = bytes.len() as u64;
        assert_eq!(set.read_back(index, 0..len).unwrap(), *bytes);
        assert_eq!(set.read_back(index, 3..len - 2).unwrap(), bytes[3..bytes.len() - 2]);
        let beyond = set.read_back(index, 0..len + 1).unwrap_err();
        assert_eq!(beyond.kind(), ErrorKind::Invalid);
    }
    let path = set.path_of(0).unwrap();
    let file = world.open(&path, crate::vfs::Access::ReadWrite).unwrap();
    file.write_at(&[0xee], 5000).unwrap();
    let damaged = set.read_back(0, 0..9000).unwrap_err();
    assert_eq!(damaged.kind(), ErrorKind::Damage, "{damaged}");
    drop(set);
    assert!(world.meta(&path).unwrap().is_none(), "no row named it");
    // What `write` returns ends it, and leaves nothing.
    let refused = store.seal_written(Content::new(Vec::new(), None), |push| {
        push(&[1; 100])?;
        Err(crate::Error::invalid("convert", "here", "no"))
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(world.list(&crate::format::layout::tmp_dir(&root())).unwrap(), []);
}

fn condemned(store: &Store) -> BTreeSet<u64> {
    let rows = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    let is = |(_, row): &(_, FileRow)| row.state == FileState::Condemned;
    rows.into_iter().filter(is).map(|(file, _)| file.0).collect()
}

fn consume(store: &Store) {
    let consumed = store.transact(Step::PublishCommit, |w| {
        for (key, _) in w.list::<PartRow>(.., usize::MAX)? {
            w.remove::<PartRow>(&key)?;
        }
        for (key, _) in w.list::<GroupRow>(.., usize::MAX)? {
            w.remove::<GroupRow>(&key)?;
        }
        Ok(())
    });
    consumed.unwrap();
}

/// Does what a view reads stay as long as the view, and no longer? (mutant)
#[test]
fn stg8_what_a_view_reads_is_not_given_back_under_it() {
    for mutant in [false, true] {
        let (world, store, intake) = begun(11, WriteAccess::Single);
        append(&store, intake, &["a", "b"]);
        seal(&store, intake);
        let large = vec![9; 4000];
        store.append(vec![Append { stream: intake, payload: large.clone() }]).unwrap();
        let _off = mutant.then(|| switch_off(Protection::PinHolds));
        let pin = store.pin();
        let snapshot = store.snapshot().unwrap();
        let (_, part) = snapshot.list::<PartRow>(.., 1).unwrap().remove(0);
        pin.keep(&snapshot, [part.object, part.object]).unwrap();
        pin.keep_payloads(&snapshot, &[intake]).unwrap();
        drop(snapshot);
        let (_, tail) = store.unsealed(intake).unwrap();
        let bytes = store.fetch(part.object).unwrap();
        consume(&store);
        let retired = store.transact_retiring(Step::RetireCommit, &[intake], |w| {
            w.remove::<StageRow>(&NAME.to_owned()).map(drop)
        });
        retired.unwrap();
        let wide = store.reclaim(Budget::default()).unwrap();
        if mutant {
            assert_eq!(wide.files, 2);
            assert!(pin.fetch(part.object).is_err(), "it was given back under the view");
            continue;
        }
        assert_eq!((wide.files, wide.is_held), (0, true));
        pin.narrow();
        assert_eq!(store.reclaim(Budget::default()).unwrap().files, 0);
        assert_eq!(condemned(&store).len(), 2);
        assert_eq!(pin.fetch(part.object).unwrap(), bytes);
        assert_eq!(pin.fetch_range(part.object, 1..3).unwrap(), bytes[1..3]);
        assert_eq!(pin.payload_bytes(&tail[0].1).unwrap(), large);
        assert_eq!(store.fetch(part.object).unwrap_err().kind(), ErrorKind::NotFound);
        drop(pin);
        let given = store.reclaim(Budget::default()).unwrap();
        assert_eq!((given.files, given.is_held), (2, false));
        store.close().unwrap();
        looked(&world);
    }
}

/// Does a narrow pin hold its own files alone, also those that compaction empties?
#[test]
fn stg8_a_pin_holds_what_it_keeps_and_nothing_else() {
    let (_, store, _) = begun(12, WriteAccess::Single);
    let lease = |bytes: Vec<Vec<u8>>| {
        let lease = store.lease("l", "test", None, &[]).unwrap();
        (lease, store.put_objects(lease, bytes).unwrap()[0].0)
    };
    let (_, mixed) = lease(vec![vec![1; 2000]]);
    let (other, _) = lease(vec![vec![2; 2000]]);
    let pin = store.pin();
    pin.keep(&store.snapshot().unwrap(), [mixed]).unwrap();
    pin.narrow();
    store.retire(&[super::Thing::Lease(other)], "test").unwrap();
    assert_eq!(store.reclaim(Budget::default()).unwrap().files, 1);
    assert_eq!(pin.fetch(mixed).unwrap(), vec![1; 2000]);
    // Inline bytes are kept with their row.
    let (small, inline) = lease(vec![vec![3; 20]]);
    let pin = store.pin();
    pin.keep(&store.snapshot().unwrap(), [inline]).unwrap();
    store.retire(&[super::Thing::Lease(small)], "test").unwrap();
    assert_eq!(pin.fetch(inline).unwrap(), vec![3; 20]);
    let gone = pin.keep(&store.snapshot().unwrap(), [ObjectId(999)]).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

/// Is a reader told to look again when a writer gave back what it was about to read?
#[test]
fn stg8_another_process_is_told_to_take_a_fresh_view() {
    let (world, store, intake) = begun(13, WriteAccess::Single);
    append(&store, intake, &["a", "b"]);
    seal(&store, intake);
    let reader = options(&world.process(3), WriteAccess::Single).open_read_only(root()).unwrap();
    let pin = reader.pin();
    let snapshot = reader.snapshot().unwrap();
    let (_, part) = snapshot.list::<PartRow>(.., 1).unwrap().remove(0);
    pin.keep(&snapshot, [part.object]).unwrap();
    drop(snapshot);
    consume(&store);
    assert_eq!(store.reclaim(Budget::default()).unwrap().files, 1);
    let told = pin.fetch(part.object).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Conflict, "{told}");
    assert!(told.to_string().contains("fresh view"), "{told}");
}

fn keys(names: &[&str]) -> Vec<ResourceKey> {
    names.iter().map(|name| ResourceKey::from(*name)).collect()
}

fn named(claims: &[super::Claim]) -> Vec<ResourceKey> {
    claims.iter().map(|claim| claim.resource().clone()).collect()
}

/// Are claims taken of what is free alone, and of what the dead held? (mutant)
#[test]
fn stg12_what_a_living_owner_claims_is_passed_over() {
    let (world, one, _) = begun(14, WriteAccess::Shared);
    let two = options(&world.process(2), WriteAccess::Shared).open(root()).unwrap();
    let wanted = keys(&["a", "b", "c", "d"]);
    let yes = |_: &Write<'_>, _: &ResourceKey| Ok(true);
    let first = one.claim_free(&wanted, ClaimKind::Group, 2, &yes).unwrap();
    assert_eq!(named(&first), wanted[..2]);
    let not_c = |_: &Write<'_>, resource: &ResourceKey| Ok(*resource != wanted[2]);
    let second = two.claim_free(&wanted, ClaimKind::Group, 9, &not_c).unwrap();
    assert_eq!(named(&second), wanted[3..]);
    // What we hold ourselves is passed over as well.
    let rest = one.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap();
    assert_eq!(named(&rest), wanted[2..3]);
    let commit = one.info().unwrap().commit;
    assert!(one.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap().is_empty());
    assert_eq!(one.info().unwrap().commit, commit, "nothing is free: nothing is committed");
    {
        let _off = switch_off(Protection::ClaimExclusive);
        let stolen = two.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap();
        assert_eq!(stolen.len(), 4, "both work on them");
        std::mem::forget(stolen);
    }
    world.process(2).kill();
    std::mem::forget(second);
    std::mem::forget((first, rest));
    let freed = one.claim_free(&wanted, ClaimKind::Group, 9, &yes).unwrap();
    assert_eq!(named(&freed), wanted, "their holder is dead");
    one.release_claims(freed).unwrap();
    assert!(one.claims(9).unwrap().is_empty());
    std::mem::forget(two);
}

/// Is nothing claimed when the rows say no, or cannot be read?
#[test]
fn stg17_a_refusal_claims_nothing() {
    let (_, store, _) = begun(15, WriteAccess::Single);
    let wanted = keys(&["a", "b"]);
    let fails = |_: &Write<'_>, resource: &ResourceKey| match *resource == wanted[1] {
        true => Err(crate::Error::invalid("claim", "b", "no")),
        false => Ok(true),
    };
    let refused = store.claim_free(&wanted, ClaimKind::Group, 9, &fails);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(store.claims(9).unwrap().is_empty());
    let claims = store.claim_free(&wanted, ClaimKind::Group, 1, &|_, _| Ok(true)).unwrap();
    assert_eq!(named(&claims), wanted[..1]);
    drop(claims);
    assert!(store.claims(9).unwrap().is_empty());
}

/// Is a stream whose records were taken moved back below them?
#[test]
fn stg16_what_was_taken_is_not_taken_back() {
    let (_, store, intake) = begun(16, WriteAccess::Single);
    append(&store, intake, &["a", "b"]);
    seal(&store, intake);
    append(&store, intake, &["c"]);
    let cursor = |end| crate::manifest::Cursor {
        stream: intake,
        generation: crate::ids::Generation(0),
        end: Sequence(end),
    };
    assert_eq!(store.rewind(&[cursor(1)]).unwrap_err().kind(), ErrorKind::Conflict);
    store.rewind(&[cursor(2)]).unwrap();
    assert_eq!(counted(&store), 2);
}
