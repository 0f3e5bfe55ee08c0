//! From birth to the last byte.

use std::sync::Arc;

use crate::support::{append, chunk, on, read, root, sim, small};
use sealstone::engine::{Budget, Store, Thing};
use sealstone::ids::Sequence;
use sealstone::manifest::{FileRow, Reading};
use sealstone::vfs::{Disk, RealDisk};
use sealstone::{ErrorKind, Layout};

fn records(n: usize, len: usize) -> Vec<Vec<u8>> {
    (0..n).map(|i| (0..len).map(|j| (i * 31 + j * 7) as u8).collect()).collect()
}

/// Does everything that was acknowledged come back, sealed or not, and do the books close?
fn whole_life(disk: Arc<dyn Disk>, root: &std::path::Path, layout: Layout) {
    let options = || Store::options().limits(small()).disk(Arc::clone(&disk)).layout(layout);
    let store = options().create(root).unwrap();
    let stream = store.create_stream("s").unwrap();
    let all = records(20, 50);
    for record in &all[..10] {
        append(&store, stream, record);
    }
    store.barrier().unwrap();
    store.publish_chunks(vec![chunk(&store, stream, 6)]).unwrap();
    assert_eq!(read(&store, stream), all[..10]);
    store.close().unwrap();

    let store = options().open(root).unwrap();
    assert_eq!(read(&store, stream), all[..10]);
    for record in &all[10..] {
        append(&store, stream, record);
    }
    let rest = chunk(&store, stream, 14);
    store.publish_chunks(vec![rest]).unwrap();
    assert_eq!(read(&store, stream), all);
    assert!(store.accounts().unwrap().are_closed(), "{:?}", store.accounts());

    let reader = options().open_read_only(root).unwrap();
    assert_eq!(read(&reader, stream), all);
    drop(reader);

    let retired = store.retire(&[Thing::Stream(stream)], "test").unwrap();
    assert_eq!((retired.things, retired.objects), (1, 2));
    assert_eq!(store.view(stream).unwrap_err().kind(), ErrorKind::NotFound);
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert_eq!(reclaimed.files, 2);
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed(), "{accounts:?}");
    // What is left is the snapshot of the rows that the first close wrote, to the byte.
    let files = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    let left: u64 = files.iter().map(|(_, row)| row.len).sum();
    assert_eq!(files.len() as u64, store.info().unwrap().snapshot.map_or(0, |age| age.chain));
    assert_eq!(
        (accounts.live, accounts.dead, accounts.condemned, accounts.orphan),
        (left, 0, 0, 0)
    );
    store.close().unwrap();
}

#[test]
fn p2_p10_a_whole_life_on_the_simulated_disk() {
    whole_life(Arc::new(sim(1)), &root(), Layout::Directory);
}

#[test]
fn p2_p10_a_whole_life_on_the_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    whole_life(RealDisk::new(), &dir.path().join("run.stone"), Layout::Directory);
}

#[test]
fn p2_p10_a_whole_life_in_one_file_on_the_simulated_disk() {
    whole_life(Arc::new(sim(1)), &root(), Layout::SingleFile);
}

#[test]
fn p2_p10_a_whole_life_in_one_file_on_the_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    whole_life(RealDisk::new(), &dir.path().join("run.stone"), Layout::SingleFile);
}

/// Do checkpoint and rewind give back exactly the state and the records of that moment?
#[test]
fn rewind_gives_back_the_checkpoint_and_nothing_twice() {
    let disk = sim(2);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let all = records(12, 40);
    for record in &all[..6] {
        append(&store, stream, record);
    }
    store.checkpoint(7, &[stream], b"state at six").unwrap();
    for record in &all[6..] {
        append(&store, stream, record);
    }
    store.publish_chunks(vec![chunk(&store, stream, 9)]).unwrap();
    drop(store);

    let store = on(&disk).open(root()).unwrap();
    let checkpoint = store.latest_checkpoint(7).unwrap();
    assert_eq!(checkpoint.state, b"state at six");
    store.rewind(&checkpoint.cursors).unwrap();
    assert_eq!(read(&store, stream), all[..6]);
    assert_eq!(append(&store, stream, b"again"), Sequence(6));
    store.barrier().unwrap();
    drop(store);

    let store = on(&disk).open(root()).unwrap();
    let mut expected = all[..6].to_vec();
    expected.push(b"again".to_vec());
    assert_eq!(read(&store, stream), expected);
}

/// Is equal content stored once, and kept until its last reference went?
#[test]
fn equal_content_is_stored_once_and_goes_with_its_last_reference() {
    let disk = sim(3);
    let store = on(&disk).create(root()).unwrap();
    let body = vec![9u8; 5000];
    let a = store.lease("a", "test", None, &[]).unwrap();
    let b = store.lease("b", "test", None, &[]).unwrap();
    let first = store.put_objects(a, vec![body.clone(), body.clone()]).unwrap();
    let second = store.put_objects(b, vec![body.clone()]).unwrap();
    assert_eq!((first[0].0, first[1].0), (second[0].0, second[0].0));
    store.retire(&[Thing::Lease(a)], "one of two").unwrap();
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(store.fetch(second[0].0).unwrap(), body);
    let retired = store.retire(&[Thing::Lease(b), Thing::Lease(a)], "both").unwrap();
    assert_eq!((retired.objects, retired.unknown), (1, vec![Thing::Lease(a)]));
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(store.fetch(second[0].0).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(store.accounts().unwrap().are_closed());
}

/// Does compaction keep what is live and give back the rest?
#[test]
fn compaction_keeps_what_is_live() {
    let disk = sim(4);
    let store = on(&disk).create(root()).unwrap();
    let keep = store.lease("keep", "test", None, &[]).unwrap();
    let drop_it = store.lease("drop", "test", None, &[]).unwrap();
    // One file for both: a stream's two chunks, one of which a lease keeps when the stream goes.
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, &[1; 3000]);
    append(&store, stream, &[2; 500]);
    let mut one = chunk(&store, stream, 1);
    let mut two = chunk(&store, stream, 2);
    one.records = 1;
    two.first = Sequence(1);
    two.records = 1;
    two.content = two.content[one.content.len()..].to_vec();
    store.publish_chunks(vec![one, two.clone()]).unwrap();
    let kept = store.put_objects(keep, vec![two.content.clone()]).unwrap()[0].0;
    store.retire(&[Thing::Stream(stream), Thing::Lease(drop_it)], "test").unwrap();
    let before = store.accounts().unwrap();
    assert!(before.dead > 0 && before.are_closed(), "{before:?}");
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert_eq!((reclaimed.compacted, reclaimed.files), (1, 1));
    let after = store.accounts().unwrap();
    assert!(after.dead == 0 && after.are_closed(), "{after:?}");
    assert_eq!(store.fetch(kept).unwrap(), two.content);
}

/// Is a second writer refused with the holder's name, and a closed store free at once?
#[test]
fn g17_a_second_writer_is_refused_and_told_who_holds_it() {
    let disk = sim(5);
    let store = on(&disk).create(root()).unwrap();
    let refused = Store::options()
        .limits(small())
        .disk(Arc::new(disk.process(4711)))
        .open(root())
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    assert!(refused.to_string().contains("process"), "{refused}");
    store.close().unwrap();
    on(&disk).open(root()).unwrap();
}

/// Is a payload above the inline limit written once, and kept by the chunk that names it?
#[test]
fn a_large_payload_is_sealed_first_and_survives() {
    let disk = sim(6);
    let mut limits = small();
    limits.payload_inline_bytes_max = 1000;
    let open = |disk: &sealstone::vfs::sim::SimDisk| {
        Store::options().limits(limits.clone()).disk(Arc::new(disk.clone()))
    };
    let store = open(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let large = vec![5u8; 4000];
    append(&store, stream, &large);
    append(&store, stream, b"small");
    store.barrier().unwrap();
    drop(store);
    let store = open(&disk).open(root()).unwrap();
    assert_eq!(read(&store, stream), [large.clone(), b"small".to_vec()]);
    store.publish_chunks(vec![chunk(&store, stream, 2)]).unwrap();
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(read(&store, stream), [large, b"small".to_vec()]);
    assert!(store.accounts().unwrap().are_closed());
}

/// Does a copy that left out the empty folders open, and work?
#[test]
fn a_copy_without_its_empty_folders_opens() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut limits = small();
    // A snapshot of the rows, written on close, would lie in one of them.
    limits.snapshot_chain_max = 0;
    Store::options().limits(limits).create(&root).unwrap().close().unwrap();
    for name in ["tmp", "owners", "journal", "sealed/00", "sealed/01", "sealed"] {
        std::fs::remove_dir(root.join(name)).unwrap();
    }
    let store = Store::options().limits(small()).open(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, &[3; 500]);
    store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
    assert_eq!(read(&store, stream), [vec![3; 500]]);
}
