//! Two owners in one simulated world, step by step.

use sealstone::ErrorKind;
use sealstone::engine::{Append, Budget, Store};
use sealstone::journal::Level;
use sealstone::manifest::{JournalRow, LeaseRow, OwnerEnd, OwnerRow, Reading, ResourceKey};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind};
use sealstone::vfs::{Disk, EntryKind};

use crate::support::{append, build, durable, publish, root, shared, single, texts, world};

fn journals(store: &Store) -> usize {
    store.snapshot().unwrap().list::<JournalRow>(.., usize::MAX).unwrap().len()
}

/// Do two openings write side by side, each its own stream, and see each other's records?
#[test]
fn g1_two_owners_write_into_one_store() {
    let (world, _, one) = world(1);
    let two = shared(&world.process(2)).unwrap();
    let a = one.create_stream("a").unwrap();
    let b = two.create_stream("b").unwrap();
    append(&one, a, &["a0", "a1"]);
    append(&two, b, &["b0"]);
    one.barrier().unwrap();
    durable(&two, b, "b1").unwrap();
    assert_eq!(texts(&one, b), ["b0", "b1"], "what the other wrote");
    assert_eq!(texts(&two, a), ["a0", "a1"]);
    publish(&one, a).unwrap();
    assert_eq!(texts(&two, a), ["a0", "a1"]);
    let views = two.views(&[b, a]).unwrap();
    assert_eq!((views[0].stream, views[1].stream), (b, a), "in the order asked for");
    one.close().unwrap();
    two.close().unwrap();
    let alone = single(&world.process(3)).unwrap();
    assert_eq!(texts(&alone, a), ["a0", "a1"]);
    assert_eq!(texts(&alone, b), ["b0", "b1"]);
}

/// Is a stream that another owner holds refused with the holder's name, and nothing of it changed?
#[test]
fn p5_a_stream_is_written_by_its_holder_alone() {
    let (world, _, one) = world(2);
    let two = shared(&world.process(2)).unwrap();
    let (a, b) = (one.create_stream("a").unwrap(), one.create_stream("b").unwrap());
    durable(&one, a, "a0").unwrap();
    let refused = durable(&two, a, "mine").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("process 1 "), "{refused}");
    let publication = two.publish_chunks(vec![build(&one, a)]).unwrap_err();
    assert_eq!(publication.kind(), ErrorKind::Conflict);
    assert_eq!(
        two.retire(&[sealstone::engine::Thing::Stream(a)], "no").unwrap_err().kind(),
        ErrorKind::Conflict
    );
    let both = two.hold_streams(&[b, a]).unwrap_err();
    assert_eq!(both.kind(), ErrorKind::Conflict);
    // All or none: `b` was not claimed on the way.
    durable(&one, b, "b0").unwrap();
    durable(&one, a, "a1").unwrap();
    assert_eq!(texts(&two, a), ["a0", "a1"]);
    let named = two.claim(&ResourceKey::of_stream(a), sealstone::manifest::ClaimKind::Stream);
    assert_eq!(named.unwrap_err().kind(), ErrorKind::Invalid);
}

/// Is the check of claims what keeps two owners off one stream? (mutant)
#[test]
fn p5_without_claims_two_owners_write_one_stream() {
    let (world, _, one) = world(3);
    let two = shared(&world.process(2)).unwrap();
    let a = one.create_stream("a").unwrap();
    durable(&one, a, "a0").unwrap();
    let _off = switch_off(Protection::StreamClaim);
    durable(&two, a, "mine").unwrap();
    one.close().unwrap();
    two.close().unwrap();
    let alone = single(&world.process(3)).unwrap();
    assert_eq!(texts(&alone, a).len(), 1, "one of two acknowledged records is lost");
}

/// Does a released stream go on at its end in another process, while its records still lie in the
/// journal of one that lives?
#[test]
fn p2_a_released_stream_goes_on_at_its_tail() {
    let (world, disk, one) = world(4);
    let two = shared(&world.process(2)).unwrap();
    let (a, b) = (one.create_stream("a").unwrap(), one.create_stream("b").unwrap());
    let large = "x".repeat(2000);
    append(&one, a, &["a0", "a1", &large]);
    append(&one, b, &["b0"]);
    one.release_stream(a).unwrap();
    durable(&two, a, "a3").unwrap();
    durable(&one, b, "b1").unwrap();
    let all = ["a0", "a1", &large, "a3"];
    assert_eq!(texts(&one, a), all);
    assert_eq!(texts(&two, a), all);
    assert_eq!(durable(&one, a, "no").unwrap_err().kind(), ErrorKind::Conflict);
    // The journal of the first stays until the second sealed what lies in it.
    publish(&one, b).unwrap();
    one.reclaim(Budget::default()).unwrap();
    assert_eq!(texts(&two, a), all);
    publish(&two, a).unwrap();
    let leases = two.snapshot().unwrap().list::<LeaseRow>(.., 10).unwrap();
    assert!(leases.is_empty(), "{leases:?}");
    one.reclaim(Budget::default()).unwrap();
    two.release_stream(a).unwrap();
    durable(&one, a, "a4").unwrap();
    assert_eq!(texts(&two, a), ["a0", "a1", &large, "a3", "a4"]);
    disk.kill();
    drop(one);
    durable(&two, a, "a5").unwrap();
    two.close().unwrap();
    let alone = single(&world.process(3)).unwrap();
    assert_eq!(texts(&alone, a), ["a0", "a1", &large, "a3", "a4", "a5"]);
    assert_eq!(texts(&alone, b), ["b0", "b1"]);
}

/// Does a living owner take over a dead one when it meets its claim, and do the dead one's streams
/// go on exactly at their tails, each in another process?
#[test]
fn g9_a_dead_owners_tails_go_on_where_they_ended() {
    let (world, disk, one) = world(5);
    let two = shared(&world.process(2)).unwrap();
    let three = shared(&world.process(3)).unwrap();
    let (a, b) = (one.create_stream("a").unwrap(), one.create_stream("b").unwrap());
    append(&one, a, &["a0", "a1"]);
    durable(&one, b, "b0").unwrap();
    let (dead, _) = one.owner().unwrap();
    disk.kill();
    drop(one);
    durable(&two, a, "a2").unwrap();
    let row = two.snapshot().unwrap().get::<OwnerRow>(&dead).unwrap().unwrap();
    assert_eq!(row.ended, Some(OwnerEnd::TakenOver { by: two.owner().unwrap().0 }));
    durable(&three, b, "b1").unwrap();
    assert_eq!(texts(&three, a), ["a0", "a1", "a2"]);
    // The dead one's journal goes with the last stream that needs it, and not before.
    assert_eq!(journals(&two), 3);
    publish(&two, a).unwrap();
    assert_eq!(journals(&two), 3);
    publish(&three, b).unwrap();
    assert_eq!(journals(&two), 2);
    assert_eq!(texts(&two, b), ["b0", "b1"]);
    assert_eq!(texts(&three, a), ["a0", "a1", "a2"]);
    assert!(two.take_over().unwrap().is_empty());
}

/// Is what a closed owner left unsealed found by whoever claims it, and by an opening of its own?
#[test]
fn p2_a_closed_owner_leaves_its_tails() {
    let (world, _, one) = world(6);
    let a = one.create_stream("a").unwrap();
    append(&one, a, &["a0", "a1"]);
    one.close().unwrap();
    let two = shared(&world.process(2)).unwrap();
    append(&two, a, &["a2"]);
    two.close().unwrap();
    let alone = single(&world.process(3)).unwrap();
    append(&alone, a, &["a3"]);
    assert_eq!(texts(&alone, a), ["a0", "a1", "a2", "a3"]);
    alone.close().unwrap();
    let disk = world.process(4);
    let alone = single(&disk).unwrap();
    durable(&alone, a, "a4").unwrap();
    disk.kill();
    drop(alone);
    let three = shared(&world.process(5)).unwrap();
    durable(&three, a, "a5").unwrap();
    assert_eq!(texts(&three, a), ["a0", "a1", "a2", "a3", "a4", "a5"]);
    publish(&three, a).unwrap();
    assert_eq!(journals(&three), 1, "all but its own, which is open");
    three.close().unwrap();
    let last = shared(&world.process(6)).unwrap();
    assert_eq!((journals(&last), texts(&last, a).len()), (0, 6));
}

/// Does an owner that was taken over although it lives acknowledge nothing any more? (P1, P5)
#[test]
fn p5_an_owner_whose_lock_was_lost_acknowledges_nothing() {
    for durable_first in [false, true] {
        let (world, disk, one) = world(7);
        let two = shared(&world.process(2)).unwrap();
        let a = one.create_stream("a").unwrap();
        durable(&one, a, "a0").unwrap();
        let (owner, _) = one.owner().unwrap();
        // Somebody cleans up what is not theirs.
        disk.unlink(&root().join(format!("owners/{owner}.lock"))).unwrap();
        assert_eq!(two.take_over().unwrap(), [owner]);
        if durable_first {
            assert_eq!(durable(&one, a, "lost").unwrap_err().kind(), ErrorKind::Fenced);
        } else {
            append(&one, a, &["lost"]);
            assert_eq!(publish(&one, a).unwrap_err().kind(), ErrorKind::Fenced);
            assert_eq!(one.barrier().unwrap_err().kind(), ErrorKind::Fenced);
        }
        assert!(one.health().halted.is_some());
        durable(&two, a, "a1").unwrap();
        assert_eq!(texts(&two, a), ["a0", "a1"]);
    }
}

/// Is an owner that was taken over told so however it asks, also where what it asks for was synced
/// already, and there is nothing new to make durable? (P1, P5)
#[test]
fn p5_a_barrier_with_nothing_new_tells_who_was_taken_over() {
    for ask in 0..6 {
        let (world, disk, one) = world(12);
        let two = shared(&world.process(2)).unwrap();
        let (a, b) = (one.create_stream("a").unwrap(), one.create_stream("b").unwrap());
        let part = |stream, text: &str| Append { stream, payload: text.as_bytes().to_vec() };
        let ticket = one.append(vec![part(a, "a0"), part(b, "b0")]).unwrap().ticket;
        let (owner, _) = one.owner().unwrap();
        let chunk = build(&one, a);
        disk.unlink(&root().join(format!("owners/{owner}.lock"))).unwrap();
        assert_eq!(two.take_over().unwrap(), [owner]);
        // The frame is synced before the chunk, which no row comes to name.
        assert_eq!(one.publish_chunks(vec![chunk]).unwrap_err().kind(), ErrorKind::Fenced);
        let told = match ask {
            0 => one.barrier(),
            1 => one.barrier_of(b),
            2 => one.wait(&ticket, Level::Durable),
            3 => one.wait(&ticket, Level::Written),
            4 => one.durable_upto(b).map(drop),
            _ => one.release_stream(b),
        };
        assert_eq!(told.unwrap_err().kind(), ErrorKind::Fenced, "asked {ask}");
        assert!(texts(&two, a).is_empty() && texts(&two, b).is_empty());
    }
}

/// Is a file that another process has placed and not named yet left alone by reclaim, and taken once
/// that process is dead?
#[test]
fn g8_reclaim_leaves_what_a_living_owner_is_about_to_name() {
    let (world, disk, one) = world(8);
    let two = shared(&world.process(2)).unwrap();
    let a = one.create_stream("a").unwrap();
    let long: Vec<String> = (0..40).map(|n| format!("record {n}")).collect();
    append(&one, a, &long.iter().map(String::as_str).collect::<Vec<_>>());
    let sealing = one.seal_chunks(vec![build(&one, a)]).unwrap();
    assert_eq!(two.reclaim(Budget::default()).unwrap().orphans, 0);
    sealing.publish().unwrap();
    assert_eq!(texts(&two, a), long);
    let more: Vec<String> = (40..80).map(|n| format!("record {n}")).collect();
    append(&one, a, &more.iter().map(String::as_str).collect::<Vec<_>>());
    let sealing = one.seal_chunks(vec![build(&one, a)]).unwrap();
    {
        let _off = switch_off(Protection::SweepTag);
        assert_eq!(two.reclaim(Budget::default()).unwrap().orphans, 1, "the mutant takes it");
    }
    drop(sealing);
    let sealing = one.seal_chunks(vec![build(&one, a)]).unwrap();
    one.barrier().unwrap();
    disk.kill();
    drop((sealing, one));
    assert_eq!(two.reclaim(Budget::default()).unwrap().orphans, 1);
    assert_eq!(texts(&two, a).len(), 80);
}

/// Are single and shared access kept apart, each with an error that names who holds the store?
#[test]
fn g17_single_and_shared_access_exclude_each_other() {
    let (world, _, one) = world(9);
    let refused = single(&world.process(2)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    assert!(refused.to_string().contains("process 1 on "), "{refused}");
    assert!(refused.to_string().contains("shared access"), "{refused}");
    assert_eq!(one.info().unwrap().access, "shared");
    one.close().unwrap();
    let alone = single(&world.process(2)).unwrap();
    let refused = shared(&world.process(3)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    assert!(refused.to_string().contains("process 2 on "), "{refused}");
    assert!(refused.to_string().contains("single access"), "{refused}");
    drop(alone);
    shared(&world.process(3)).unwrap();
}

/// Where locks do not work, is shared access refused with the way out, whichever lock it is that
/// tells? One that stops working in the middle of a commit leaves its outcome unknown.
#[test]
fn g17_without_locks_shared_access_is_refused() {
    let (world, _, one) = world(10);
    one.close().unwrap();
    let (mut refused, mut unknown) = (0, 0);
    for at in 0..400 {
        let disk = world.process(20 + at as u32);
        disk.inject(Fault::new(disk.operations() + at, FaultKind::LockUnsupported).forever());
        let opened = shared(&disk);
        disk.clear_faults();
        match opened {
            Err(e) if at > 0 && e.kind() == ErrorKind::OutcomeUnknown => unknown += 1,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Unsupported, "{at}: {e}");
                assert!(e.chain().contains("local"), "{}", e.chain());
                refused += 1;
            }
            Ok(store) => drop(store),
        }
        disk.kill();
    }
    assert!(refused > 10 && unknown < refused, "{refused} refused, {unknown} unknown");
    shared(&world.process(2)).unwrap();
}

/// Does nothing stay behind when owners come and go: no lock file, nothing in tmp/, no journal?
#[test]
fn g8_owners_that_come_and_go_leave_nothing() {
    let (world, _, one) = world(11);
    let a = one.create_stream("a").unwrap();
    one.release_stream(a).unwrap();
    for round in 0..6u32 {
        let disk = world.process(10 + round);
        let store = shared(&disk).unwrap();
        durable(&store, a, "x").unwrap();
        if round % 2 == 0 {
            publish(&store, a).unwrap();
        }
        if round % 3 == 0 {
            disk.kill();
            drop(store);
            one.take_over().unwrap();
        } else {
            store.close().unwrap();
        }
    }
    publish(&one, a).unwrap();
    one.reclaim(Budget::default()).unwrap();
    let listed = |dir: &str| {
        let entries = world.list(&root().join(dir)).unwrap();
        entries.iter().filter(|entry| entry.kind == EntryKind::File).count()
    };
    assert_eq!((listed("owners"), listed("tmp"), listed("journal")), (1, 0, 0));
    assert_eq!(texts(&one, a).len(), 6);
    let accounts = one.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0, "{accounts:?}");
}
