//! Readers beside a writer, after a writer that closed, and after one that was killed.

use sealstone::error::ErrorKind;
use sealstone::manifest::{Manifest, Open, Reading, Table};
use sealstone::vfs::{Disk, Sharing, Step};
use std::sync::Arc;

use crate::support::{World, contents, owner, publish};

const STEP: Step = Step::PublishCommit;

/// G4: does a reader in another process see whole commits, and its snapshot never change?
#[test]
fn g4_a_reader_beside_a_writer_sees_whole_commits() {
    let (world, sim) = World::sim(1);
    let manifest = world.open_as(1);
    let reader_disk: Arc<dyn Disk> = Arc::new(sim.process(2));
    let reader = Manifest::open_read_only(&reader_disk, &world.root, &Open::default()).unwrap();
    assert!(!reader.is_recovered_copy());
    let mut snapshots = Vec::new();
    for n in 0..8 {
        manifest.write(Some(owner(1)), STEP, |w| publish(w, 3 * n, 3)).unwrap();
        let snapshot = reader.read().unwrap();
        assert_eq!(snapshot.count(Table::Chunks).unwrap(), 3 * (n + 1));
        let text = contents(&snapshot).unwrap();
        assert_eq!(text, contents(&manifest.read().unwrap()).unwrap());
        snapshots.push((snapshot, text));
    }
    for (snapshot, text) in snapshots {
        assert_eq!(contents(&snapshot).unwrap(), text);
    }
    let refused = reader.write(None, STEP, |_| Ok(())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}

/// G20: does a reader that comes when nobody writes leave every byte as it is, after a clean close
/// and after a kill? Does it see every commit, and are writers kept out only as long as it must?
#[test]
fn g20_readers_change_nothing() {
    for killed in [false, true] {
        let (world, sim) = World::sim(2);
        let writer: Arc<dyn Disk> = Arc::new(sim.process(5));
        let manifest = Manifest::open(&writer, &world.root, &Open::default()).unwrap();
        manifest.write(None, STEP, |w| w.put(&owner(1), &crate::support::owner_row(1))).unwrap();
        for n in 0..20 {
            manifest.write(Some(owner(1)), STEP, |w| publish(w, 3 * n, 3)).unwrap();
        }
        let expected = contents(&manifest.read().unwrap()).unwrap();
        if killed {
            sim.process(5).kill();
        } else {
            manifest.close().unwrap();
        }
        drop(manifest);
        let before = sim.counts();
        let reader = world.open_read_only().unwrap();
        assert_eq!(reader.is_recovered_copy(), killed);
        assert_eq!(contents(&reader.read().unwrap()).unwrap(), expected, "killed: {killed}");
        assert_eq!(reader.commit_seq().0, 22);
        let writers_wait = sim.lock_dir(&world.root, Sharing::Exclusive).unwrap().is_none();
        assert_eq!(writers_wait, killed);
        let again = world.open_read_only().unwrap();
        assert_eq!(contents(&again.read().unwrap()).unwrap(), expected);
        reader.close().unwrap();
        drop((reader, again));
        assert_eq!(sim.counts().since(&before).mutations(), 0, "killed: {killed}");
        assert!(sim.lock_dir(&world.root, Sharing::Exclusive).unwrap().is_some());
        let manifest = world.open().unwrap();
        assert_eq!(contents(&manifest.read().unwrap()).unwrap(), expected);
    }
}

/// On the real disk, readers poll while one thread writes: does any see part of a commit?
#[test]
fn g3_polling_readers_never_see_a_part_of_a_commit() {
    let world = World::real();
    let manifest = world.open_as(1);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                let reader = world.open_read_only().unwrap();
                let (mut looks, mut last) = (0, 0);
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let snapshot = reader.read().unwrap();
                    let chunks = snapshot.count(Table::Chunks).unwrap();
                    assert_eq!(chunks % 7, 0);
                    assert_eq!(snapshot.count(Table::Edges).unwrap(), chunks);
                    let counters = snapshot.counters().unwrap();
                    assert_eq!(counters.object.0, chunks);
                    assert!(counters.commit_seq.0 >= last);
                    last = counters.commit_seq.0;
                    looks += 1;
                }
                looks
            })
        });
        for n in 0..60 {
            manifest.write(Some(owner(1)), STEP, |w| publish(w, 7 * n, 7)).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            let looks: u32 = reader.join().unwrap();
            assert!(looks > 10, "{looks}");
        }
    });
}
