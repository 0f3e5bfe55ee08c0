//! Compacting the manifest: is it smaller, and is the store the same, whoever else has it open?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sealstone::Layout;
use sealstone::engine::{Budget, Store, Thing};
use sealstone::error::ErrorKind;
use sealstone::format::layout;
use sealstone::manifest::{CheckIntegrity, Raw, Reading, Table};
use sealstone::vfs::{Disk, RealDisk, Step, TraceDisk};

use crate::support::{append, chunk, on, root, sim, small};

/// Every row of every table, as bytes.
fn rows(store: &Store) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
    use std::ops::{Bound, ControlFlow};
    let snapshot = store.snapshot().unwrap();
    let mut rows = Vec::new();
    for table in Table::ALL {
        let all = (Bound::Unbounded, Bound::Unbounded);
        snapshot
            .raw_scan(*table, all, false, &mut |key, value| {
                rows.push((*table, key.to_vec(), value.to_vec()));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
    }
    rows
}

/// Is a manifest that many seals and retirements left about as large as its rows again, with every
/// row, the counters and the commit number as they were?
#[test]
fn a_bloated_manifest_shrinks_to_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let mut limits = small();
    limits.object_inline_bytes_max = 64 << 10;
    let options = || Store::options().limits(limits.clone());
    let store = options().create(&path).unwrap();
    let stream = store.create_stream("kept").unwrap();
    append(&store, stream, &[1; 300]);
    store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
    let kept = store.lease("test", "kept", None, &[]).unwrap();
    let contents = (0..400u64).map(|n| (1 << 40 | n).to_le_bytes().repeat(40)).collect();
    store.put_objects(kept, contents).unwrap();
    for round in 0..30u64 {
        let lease = store.lease("test", "bloat", None, &[]).unwrap();
        let contents = (0..100u64).map(|n| (round * 100 + n).to_le_bytes().repeat(300)).collect();
        store.put_objects(lease, contents).unwrap();
        let pinned = store.snapshot().unwrap();
        store.retire(&[Thing::Lease(lease)], "test").unwrap();
        store.reclaim(Budget::default()).unwrap();
        drop(pinned);
    }
    store.close().unwrap();

    let before = options().open_read_only(&path).unwrap();
    let (known, counters) = (rows(&before), before.snapshot().unwrap().counters().unwrap());
    before.close().unwrap();
    let estimate = options().compact_estimate(&path).unwrap();
    let done = options().compact(&path).unwrap();
    println!(
        "{} bytes, now {}, rows {}",
        done.bytes_before, done.bytes_after, estimate.bytes_after
    );
    assert_eq!(done.commit, counters.commit_seq);
    assert_eq!((done.rows, estimate.rows), (known.len() as u64, known.len() as u64));
    assert!(done.bytes_before > 2 * done.bytes_after, "{done:?}");
    assert!(done.bytes_after < 3 * estimate.bytes_after, "{done:?} {estimate:?}");

    let after = options().open_read_only(&path).unwrap();
    assert!(rows(&after) == known);
    after.close().unwrap();
    let store = options().open(&path).unwrap();
    assert_eq!(store.view(stream).unwrap().record_count(), 1);
    assert!(store.accounts().unwrap().are_closed());
    store.close().unwrap();
    let disk = RealDisk::new();
    assert_eq!(disk.list(&layout::tmp_dir(&path)).unwrap(), []);
}

/// Does a killed writer's store keep its journals, and whatever is not recovered yet?
#[test]
fn what_a_killed_writer_left_is_recovered_after_it() {
    let disk = sim(1);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    for n in 0..5 {
        append(&store, stream, &[n; 40]);
    }
    store.barrier().unwrap();
    disk.kill();
    drop(store);
    let next = disk.process(77);
    on(&next).compact(root()).unwrap();
    let store = on(&next).open(root()).unwrap();
    assert_eq!(store.view(stream).unwrap().record_count(), 5);
    assert_eq!(store.recovery().ended.len(), 1);
}

/// Is it refused beside a writer, beside a reader (which would read the old file for ever), and
/// where no store is? Nothing may change then.
#[test]
fn g17_it_is_refused_while_anybody_has_the_store_open() {
    let disk = sim(2);
    let (other, third) = (disk.process(8), disk.process(9));
    let kind = |disk| on(disk).compact(root()).unwrap_err().kind();
    assert_eq!(kind(&other), ErrorKind::NoStore);
    let store = on(&disk).create(root()).unwrap();
    store.create_stream("s").unwrap();
    assert_eq!(kind(&other), ErrorKind::InUse);
    store.close().unwrap();
    let reader = on(&third).open_read_only(root()).unwrap();
    let manifest = disk.meta(&layout::manifest(&root())).unwrap().unwrap();
    let tmp = layout::tmp_dir(&root());
    assert_eq!(kind(&other), ErrorKind::InUse);
    assert_eq!(disk.meta(&layout::manifest(&root())).unwrap().unwrap().identity, manifest.identity);
    assert_eq!(disk.list(&tmp).unwrap(), []);
    reader.close().unwrap();
    on(&other).compact(root()).unwrap();
    assert_ne!(disk.meta(&layout::manifest(&root())).unwrap().unwrap().identity, manifest.identity);
}

/// A full disk, or damage: is the store as it was, and nothing left over?
#[test]
fn g16_without_room_for_the_copy_nothing_changes() {
    let disk = sim(3);
    let store = on(&disk).create(root()).unwrap();
    store.create_stream("s").unwrap();
    store.close().unwrap();
    let used = disk.used();
    disk.set_capacity(Some(used + (16 << 10)));
    let error = on(&disk).compact(root()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
    assert_eq!(disk.list(&layout::tmp_dir(&root())).unwrap(), []);
    disk.set_capacity(None);
    let store = on(&disk).check_integrity(CheckIntegrity::Always).open(root()).unwrap();
    assert_eq!(store.snapshot().unwrap().count(Table::Streams).unwrap(), 1);
}

/// Two processes that compact one store at once, in either layout: is one refused, whenever it comes,
/// and is the store the same after both?
#[test]
fn g17_two_compactions_at_once_exclude_each_other() {
    for layout in [Layout::Directory, Layout::SingleFile] {
        let disk = sim(85);
        let limits = small();
        let store = on(&disk).layout(layout).create(root()).unwrap();
        let stream = store.create_stream("s").unwrap();
        for n in 0..20 {
            append(&store, stream, &[n; 300]);
            store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
        }
        store.close().unwrap();
        let before = rows(&on(&disk).open_read_only(root()).unwrap());
        let traced = TraceDisk::counting(Arc::new(disk.clone()));
        let (other, refused) = (disk.process(9), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&refused);
        traced.on_mark(move |step| {
            use Step::{ManifestCopy, ManifestSwitch, ManifestSyncDir};
            if matches!(step, ManifestCopy | ManifestSwitch | ManifestSyncDir) {
                let told = on(&other).compact(root()).unwrap_err();
                assert_eq!(told.kind(), ErrorKind::InUse, "{step:?}: {told:?}");
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Store::options().limits(limits).disk(Arc::new(traced)).compact(root()).unwrap();
        assert_eq!(refused.load(Ordering::Relaxed), 3, "{layout:?}");
        on(&disk.process(9)).compact(root()).unwrap();
        assert!(rows(&on(&disk).open_read_only(root()).unwrap()) == before, "{layout:?}");
        let left = disk.list(std::path::Path::new("/data")).unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
