//! The disk fails, an owner is fenced, a process forks: what is told, and what is written after.

use std::sync::Arc;

use sealstone::error::ErrorKind;
use sealstone::ids::CommitCount;
use sealstone::manifest::{ChunkRow, Manifest, Open, OwnerEnd, OwnerRow, Reading, Table};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Disk, Step};

use crate::meddle::{Fault, Meddled};
use crate::support::{World, chunk_key, contents, owner, owner_row, publish};

const STEP: Step = Step::PublishCommit;

/// A store with one commit of owner 1, opened through a disk that will meddle.
fn meddled(seed: u64) -> (World, SimDisk, Arc<Meddled>, Manifest) {
    let (world, sim) = World::sim(seed);
    let disk = Meddled::new(sim.process(2));
    let dynamic: Arc<dyn Disk> = disk.clone();
    let manifest = Manifest::open(&dynamic, &world.root, &Open::default()).unwrap();
    manifest.write(None, STEP, |w| w.put(&owner(1), &owner_row(1))).unwrap();
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 40)).unwrap();
    (world, sim, disk, manifest)
}

/// P8, G14: the commit fails at each of its operations in turn. Is it told as unknown, with what
/// it takes to learn the outcome? Is not a byte written after? Does the count tell the truth?
#[test]
fn p8_a_failed_commit_is_unknown_until_the_owners_count_tells() {
    for kind in [Fault::Change, Fault::Sync] {
        let (mut early, mut unknown, mut happened) = (0, 0, 0);
        for after in 0.. {
            let (world, sim, disk, manifest) = meddled(after);
            let before = contents(&manifest.read().unwrap()).unwrap();
            disk.fail(kind, after as i64);
            let done = manifest.write(Some(owner(1)), STEP, |w| publish(w, 100, 200));
            disk.mend();
            let Err(error) = done else { break };
            let context = format!("{kind:?} {after}: {error:?}");
            assert!(error.chain().contains("pulled the cable"), "{context}");
            let certain = error.kind() == ErrorKind::Io;
            if certain {
                early += 1;
            } else {
                unknown += 1;
                assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{context}");
                assert!(error.cause().contains(&owner(1).to_string()), "{context}");
                assert!(error.cause().contains("counts 2 commits"), "{context}");
            }
            assert_eq!(manifest.halt_cause().unwrap().kind(), ErrorKind::Io, "{context}");
            let quiet = sim.counts();
            let again = manifest.write(Some(owner(1)), STEP, |w| publish(w, 900, 1)).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Halted, "{context}");
            assert!(again.chain().contains("pulled the cable"), "{context}: {}", again.chain());
            assert_eq!(manifest.read().unwrap_err().kind(), ErrorKind::Halted);
            assert_eq!(manifest.close().unwrap_err().kind(), ErrorKind::Halted);
            drop(manifest);
            assert_eq!(sim.counts().since(&quiet).mutations(), 0, "{context}");

            let manifest = world.open().unwrap();
            let snapshot = manifest.read().unwrap();
            let count = snapshot.require::<OwnerRow>(&owner(1)).unwrap().commits;
            let chunks = snapshot.count(Table::Chunks).unwrap();
            match count {
                CommitCount(1) => assert_eq!(contents(&snapshot).unwrap(), before, "{context}"),
                CommitCount(2) => assert_eq!(chunks, 240, "{context}"),
                other => panic!("{context}: {other} commits"),
            }
            assert!(!certain || count.0 == 1, "told as failed, and took place: {context}");
            happened += u64::from(count.0 == 2);
        }
        println!("{kind:?}: {early} failed before, {unknown} in the commit; {happened} took place");
        assert!(unknown >= 2, "{kind:?}");
    }
}

/// A read fails: is even that the end, as redb may have lost its place?
#[test]
fn p8_a_failed_read_halts() {
    let (world, sim) = World::sim(2);
    let disk = Meddled::new(sim.process(2));
    let dynamic: Arc<dyn Disk> = disk.clone();
    let open = Open { cache_bytes: 0, ..Open::default() };
    let manifest = Manifest::open(&dynamic, &world.root, &open).unwrap();
    manifest.write(None, STEP, |w| publish(w, 0, 300)).unwrap();
    let snapshot = manifest.read().unwrap();
    disk.fail(Fault::Read, 3);
    let error = snapshot.list::<ChunkRow>(.., usize::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    disk.mend();
    let halted = snapshot.get::<ChunkRow>(&chunk_key(1)).unwrap_err();
    assert_eq!(halted.kind(), ErrorKind::Halted);
    let write = manifest.write(None, STEP, |_| Ok(())).unwrap_err();
    assert_eq!((write.kind(), write.cause()), (ErrorKind::Halted, error.cause()));
}

/// P5: an owner that another process ended, that closed, or that never was, changes nothing. Its
/// mutant is caught: without the check it does.
#[test]
fn p5_a_fenced_owner_changes_nothing_and_the_mutant_is_caught() {
    let (world, _) = World::sim(3);
    let manifest = world.open_as(1);
    let end = |n: u8, ended| {
        manifest.write(None, STEP, |w| w.put(&owner(n), &OwnerRow { ended, ..owner_row(n) }))
    };
    let by = owner(9);
    let mut ends = vec![(3, None)];
    for (n, ended) in [(1, OwnerEnd::TakenOver { by }), (2, OwnerEnd::Closed)] {
        end(n, Some(ended)).unwrap();
        ends.push((n, Some(ended)));
    }
    for (n, ended) in &ends {
        let before = contents(&manifest.read().unwrap()).unwrap();
        let write = || manifest.write(Some(owner(*n)), STEP, |w| publish(w, 10, 1));
        let error = write().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced, "{ended:?}");
        if let Some(OwnerEnd::TakenOver { by }) = ended {
            assert!(error.cause().contains(&by.to_string()), "{error}");
        }
        assert_eq!(contents(&manifest.read().unwrap()).unwrap(), before, "{ended:?}");
    }
    let before = manifest.read().unwrap().count(Table::Chunks).unwrap();
    let _off = switch_off(Protection::OwnerCheck);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 10, 1)).unwrap();
    assert_eq!(manifest.read().unwrap().count(Table::Chunks).unwrap(), before + 1);
}

/// An owner may end itself: that commit is its last, and is counted.
#[test]
fn an_owner_ends_itself_in_its_last_commit() {
    let (world, _) = World::sim(4);
    let manifest = world.open_as(1);
    manifest
        .write(Some(owner(1)), STEP, |w| {
            let row = w.require::<OwnerRow>(&owner(1))?;
            w.put(&owner(1), &OwnerRow { ended: Some(OwnerEnd::Closed), ..row })
        })
        .unwrap();
    let row = manifest.read().unwrap().require::<OwnerRow>(&owner(1)).unwrap();
    assert_eq!((row.commits, row.ended), (CommitCount(1), Some(OwnerEnd::Closed)));
}

/// G18: a handle carried into a forked child errs, and not even its drop touches the parent's file
/// or locks.
#[test]
fn g18_a_forked_child_changes_nothing() {
    let (world, sim, disk, manifest) = meddled(5);
    let snapshot = manifest.read().unwrap();
    let before = sim.counts();
    disk.fork(77);
    let error = manifest.write(Some(owner(1)), STEP, |w| publish(w, 900, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forked);
    assert_eq!(manifest.read().unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(snapshot.count(Table::Chunks).unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(manifest.close().unwrap_err().kind(), ErrorKind::Forked);
    disk.fork(2);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 100, 1)).unwrap();
    let between = sim.counts();
    assert!(between.since(&before).mutations() > 0);
    disk.fork(77);
    drop((snapshot, manifest));
    let child = sim.counts().since(&between);
    assert_eq!((child.mutations(), child.unlocks), (0, 0));
    let manifest = world.open().unwrap();
    assert_eq!(manifest.read().unwrap().count(Table::Chunks).unwrap(), 41);
}

/// What may be asked of a closed manifest, and does its close end its snapshots with an error?
#[test]
fn a_closed_manifest_says_so() {
    let (world, _) = World::sim(6);
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 300)).unwrap();
    manifest.close().unwrap();
    manifest.close().unwrap();
    assert_eq!(manifest.read().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(manifest.write(None, STEP, |_| Ok(())).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(manifest.commit_seq().0, 3);
}
