//! Do records leave a stream for rows exactly once, whatever comes between?
#![cfg(feature = "sim")]

use std::cell::Cell;

use super::stage_support::*;
use super::{Append, Content, Taken, WriteAccess, retire_intake};
use crate::digest::Digest;
use crate::error::{ErrorKind, Result};
use crate::ids::{ObjectId, Sequence};
use crate::journal::{Level, Payload};
use crate::manifest::{
    ClaimKind, JournalRow, LeaseRow, ObjectRow, OwnerEnd, OwnerRow, Reading, Snapshot, StageRow,
    StreamRow, Table,
};
use crate::protection::{Protection, switch_off};
use crate::vfs::sim::{Fault, FaultKind, SyncFailure};
use crate::vfs::{Disk, Step};

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
        store.reclaim(super::Budget::default()).unwrap();
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
    // Each sync of the manifest in turn fails. redb syncs once more where its file grows: a failure there comes
    // before the commit began, so that it is known not to have taken place.
    let (mut known, mut unknown, mut skip) = (0, 0, 0);
    while let Some((kind, at)) = failed_taking(skip) {
        match kind {
            ErrorKind::Io => known += 1,
            ErrorKind::OutcomeUnknown => unknown += 1,
            other => panic!("operation {skip}: {other:?}"),
        }
        assert!(kind != ErrorKind::Io || unknown == 0, "what is known comes before the commit");
        skip = at + 1;
    }
    assert!(
        known <= 2 && unknown >= 2,
        "a commit has two phases: {known} known, {unknown} unknown"
    );
}

/// Takes with the first sync of the manifest from operation `skip` of the taking on failing, and all later
/// ones. What the error is and which operation it was; `None` when none failed.
fn failed_taking(skip: u64) -> Option<(ErrorKind, u64)> {
    let (world, store, intake) = begun(9, WriteAccess::Single);
    append(&store, intake, &["a"]);
    store.barrier().unwrap();
    let (set, taken) = sealed(&store, intake);
    let file = set.path_of(0).unwrap();
    let began = world.operations();
    let kind = FaultKind::SyncFails(SyncFailure::NothingKept);
    world.inject(Fault::new(began + skip, kind).on("manifest").forever());
    let failed = take(&store, set, taken).err();
    let at = world.fired().first().map(|fired| fired.operation - began);
    assert_eq!(failed.is_some(), at.is_some(), "{failed:?}");
    assert_eq!(store.health().halted.is_some(), failed.is_some());
    let stands = world.meta(&file).unwrap().is_some();
    assert!(stands, "a row may name it, and a halted store deletes nothing");
    world.clear_faults();
    world.process(1).kill();
    drop(store);
    let store = options(&world.process(2), WriteAccess::Single).open(root()).unwrap();
    assert_eq!(counted(&store), 1);
    let is_known = failed.as_ref().is_some_and(|failed| failed.kind() == ErrorKind::Io);
    assert!(!is_known || in_parts(&store.snapshot().unwrap()).unwrap() == 0, "{failed:?}");
    store.close().unwrap();
    looked(&world);
    Some((failed?.kind(), at?))
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
    let written = store.seal_written(Content::new(Vec::new(), None), |push, _| {
        large.chunks(700).try_for_each(push)
    });
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
    let refused = store.seal_written(Content::new(Vec::new(), None), |push, _| {
        push(&[1; 100])?;
        Err(crate::Error::invalid("convert", "here", "no"))
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(world.list(&crate::format::layout::tmp_dir(&root())).unwrap(), []);
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
