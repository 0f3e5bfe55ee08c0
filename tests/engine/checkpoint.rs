//! Checkpoints: which one is the newest, and which stay.

use crate::support::{append, on, root, sim};
use sealstone::ErrorKind;
use sealstone::ids::Sequence;
use sealstone::manifest::{FileRow, Reading};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk};

/// Flips a byte in the middle of the newest sealed file.
fn damage_newest(disk: &SimDisk, store: &sealstone::engine::Store) {
    let files = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    let row = &files.last().unwrap().1;
    let path = sealstone::format::layout::sealed(&root(), &row.digest, row.unique, 2);
    let file = disk.open(&path, Access::ReadWrite).unwrap();
    let mut byte = [0];
    sealstone::vfs::read_exact_at(&*file, &mut byte, row.len / 2).unwrap();
    sealstone::vfs::write_all_at(&*file, &[byte[0] ^ 1], row.len / 2).unwrap();
}

/// Is the newest by commits whatever the clock says, and does a damaged one fall back and say so?
#[test]
fn the_newest_checkpoint_is_by_commit_and_a_damaged_one_is_passed_over() {
    let disk = sim(21);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let mut ids = Vec::new();
    for n in 0..3u8 {
        append(&store, stream, &[n; 20]);
        ids.push(store.checkpoint(5, &[stream], &vec![n; 70 << 10]).unwrap());
        disk.step_wall_clock(-3_600_000_000_000);
    }
    let newest = store.latest_checkpoint(5).unwrap();
    assert_eq!((newest.id, newest.state[0]), (ids[2], 2));
    assert!(newest.passed_over.is_empty());
    let off = switch_off(Protection::CheckpointOrder);
    let by_time = store.latest_checkpoint(5).unwrap();
    assert_eq!(by_time.id, ids[0], "(mutant) by time it would be another one");
    drop(off);
    store.close().unwrap();

    let store = on(&disk).open(root()).unwrap();
    let of_state: Vec<_> = store.checkpoints(5).unwrap().iter().map(|note| note.id).collect();
    assert_eq!(of_state, [ids[2], ids[1], ids[0]]);
    // The file of the newest state; that of the rows is of the close before.
    let files = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    let of_newest = &files[2].1;
    let path = sealstone::format::layout::sealed(&root(), &of_newest.digest, of_newest.unique, 2);
    let file = disk.open(&path, Access::ReadWrite).unwrap();
    let mut byte = [0];
    sealstone::vfs::read_exact_at(&*file, &mut byte, of_newest.len / 2).unwrap();
    sealstone::vfs::write_all_at(&*file, &[byte[0] ^ 1], of_newest.len / 2).unwrap();
    let fallen_back = store.latest_checkpoint(5).unwrap();
    assert_eq!((fallen_back.id, fallen_back.state[0]), (ids[1], 1));
    assert_eq!(fallen_back.passed_over.len(), 1);
    assert_eq!(fallen_back.passed_over[0].0, ids[2]);
    assert!(fallen_back.passed_over[0].1.contains("sealed"), "{:?}", fallen_back.passed_over);
}

/// Is it told when no checkpoint reads, and apart from that there is none?
#[test]
fn no_checkpoint_and_none_that_reads_are_told_apart() {
    let disk = sim(22);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    assert_eq!(store.latest_checkpoint(5).unwrap_err().kind(), ErrorKind::NoCheckpoint);
    store.checkpoint(5, &[stream], &vec![1; 70 << 10]).unwrap();
    damage_newest(&disk, &store);
    let refused = store.latest_checkpoint(5).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
    assert!(refused.to_string().contains("no checkpoint of it reads"), "{refused}");
}

/// Do the newest stay, and those go first that a rewind made useless?
#[test]
fn the_newest_checkpoints_stay() {
    let disk = sim(23);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let mut ids = Vec::new();
    for n in 0..4u8 {
        append(&store, stream, &[n]);
        ids.push(store.checkpoint_keeping(5, &[stream], &[n], 2).unwrap());
    }
    let left = |store: &sealstone::engine::Store| -> Vec<_> {
        store.checkpoints(5).unwrap().iter().map(|note| (note.id, note.stands)).collect()
    };
    assert_eq!(left(&store), [(ids[3], true), (ids[2], true)]);
    store.rewind(&store.checkpoint_of(5, ids[2]).unwrap().cursors).unwrap();
    assert_eq!(left(&store), [(ids[3], false), (ids[2], true)]);
    append(&store, stream, b"again");
    let newest = store.checkpoint_keeping(5, &[stream], b"new", 2).unwrap();
    assert_eq!(left(&store), [(newest, true), (ids[2], true)]);
    assert_eq!(store.latest_checkpoint(5).unwrap().cursors[0].end, Sequence(4));
    assert_eq!(store.checkpoint_of(5, ids[0]).unwrap_err().kind(), ErrorKind::NotFound);
}
