//! Are bytes given back that nothing refers to, and no others, whatever the disk does meanwhile?

use std::path::Path;

use sealstone::engine::{Budget, Layout, Store};
use sealstone::manifest::{FileRow, FileState, Reading, Table};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};
use sealstone::vfs::{Access, Disk, Operation, write_all_at};

use super::support::*;

fn files(store: &Store) -> Vec<FileRow> {
    let rows = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
    rows.into_iter().map(|(_, row)| row).collect()
}

fn names_in(disk: &SimDisk, folder: &Path) -> Vec<String> {
    disk.list(folder).unwrap().into_iter().map(|entry| entry.name).collect()
}

/// Sealed files on the disk.
fn sealed(disk: &SimDisk) -> usize {
    let root = root();
    ["00", "01"].iter().map(|f| names_in(disk, &root.join("sealed").join(f)).len()).sum()
}

/// Is nothing unlinked before a commit says so, and does a failed commit unlink nothing?
#[test]
fn obj21_a_failed_commit_unlinks_nothing() {
    let disk = sim(1);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    family(&store);
    store.objects().retire(&all_of_it(), "all").unwrap();
    let there = sealed(&disk);
    assert!(there > 2);
    // Every sync of the manifest fails from here on.
    disk.inject(Fault::new(disk.operations(), FaultKind::Eio).forever().on("manifest"));
    assert!(store.reclaim(Budget::default()).is_err());
    assert_eq!(sealed(&disk), there);
    disk.clear_faults();
    drop(store);
    disk.kill();
    let disk = disk.process(2);
    let store = on(&disk, Layout::Directory).open(root()).unwrap();
    store.reclaim(Budget::default()).unwrap();
    let of_rows = count(&store, Table::Snapshots) as usize;
    assert_eq!((sealed(&disk), files(&store).len()), (of_rows, of_rows));
    store.close().unwrap();
    checked(&disk);
}

/// Would a file that went before its commit be missed by what still refers to it?
#[test]
fn obj21_an_unlink_before_its_commit_is_noticed() {
    let lost = |is_off: bool| {
        let disk = sim(2);
        let store = on(&disk, Layout::Directory).create(root()).unwrap();
        family(&store);
        store.objects().retire(&all_of_it(), "all").unwrap();
        let there = sealed(&disk);
        let _off = is_off.then(|| switch_off(Protection::CommitBeforeUnlink));
        disk.inject(Fault::new(disk.operations(), FaultKind::Eio).forever().on("manifest"));
        assert!(store.reclaim(Budget::default()).is_err());
        there - sealed(&disk)
    };
    assert_eq!(lost(false), 0);
    assert!(lost(true) > 0);
}

/// Does a file that the disk does not let go of stop no other, and go with a later pass?
#[test]
fn obj21_a_failed_unlink_is_tried_again() {
    let disk = sim(3);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    family(&store);
    let stays = recipe(&store, "files/stays", &[1, 2, 70, 80]);
    store.objects().retire(&all_of_it(), "all").unwrap();
    let plan = store.reclaim_plan(Budget::default()).unwrap();
    assert!(plan.files > 1);
    disk.inject(Fault::new(disk.operations(), FaultKind::Eio).only(Operation::Unlink));
    let done = store.reclaim(Budget::default()).unwrap();
    assert_eq!((done.not_unlinked, done.is_more_left), (1, true));
    assert!(done.files >= plan.files - 1, "all others went, and those that were rewritten");
    assert!(!store.health().warnings.is_empty());
    bytes_of(&store, stays);
    assert!(store.accounts().unwrap().are_closed());
    // The second look of the same reclaim took it.
    let done = store.reclaim(Budget::default()).unwrap();
    assert_eq!((done.files, done.not_unlinked, done.is_more_left), (0, 0, false));
    // One that never goes: later reclaims still run.
    store.objects().retire(&[gone("files/stays")], "too").unwrap();
    disk.inject(Fault::new(disk.operations(), FaultKind::Eio).forever().only(Operation::Unlink));
    for _ in 0..3 {
        let done = store.reclaim(Budget::default()).unwrap();
        assert!(done.not_unlinked > 0 && done.files == 0);
    }
    assert!(files(&store).iter().any(|file| file.state == FileState::Unlinking));
    disk.clear_faults();
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(files(&store).len() as u64, count(&store, Table::Snapshots));
    store.close().unwrap();
    checked(&disk);
}

/// Does a sweep take every orphan once, and nothing that is named, leased, claimed or not ours?
#[test]
fn obj22_the_sweep_takes_orphans_and_nothing_else() {
    let disk = sim(4);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    family(&store);
    let (lease, leased) = put(&store, &[90, 91]);
    let prep = store.objects().prepare("pending").unwrap();
    let kept = prep.put(&content(92)).unwrap();
    prep.flush().unwrap();
    let folder = root().join("sealed").join("00");
    let make = |name: &str| {
        let file = disk.open(&folder.join(name), Access::CreateNew).unwrap();
        write_all_at(&*file, b"something", 0).unwrap();
    };
    let strays = ["notes.txt", "0123-not-ours", ".hidden"];
    strays.iter().for_each(|name| make(name));
    // An orphan: a name as ours are, and no row.
    let named = names_in(&disk, &folder).into_iter().find(|n| !strays.contains(&n.as_str()));
    let orphan = named.map(|name| {
        let (digest, unique) = name.rsplit_once('-').unwrap();
        let swapped: String = unique.chars().rev().collect();
        let swapped = format!("0{}", &swapped[1..]);
        format!("{digest}-{swapped}")
    });
    let orphan = orphan.unwrap();
    make(&orphan);
    let before = shown(&store);
    let plan = store.reclaim_plan(Budget::default()).unwrap();
    assert_eq!((plan.orphans, plan.orphan_bytes), (1, 9));
    assert!(names_in(&disk, &folder).contains(&orphan), "a plan changes nothing");
    let done = store.reclaim(Budget::default()).unwrap();
    assert_eq!((done.orphans, done.orphan_bytes, done.files), (1, 9, 0));
    for _ in 0..2 {
        let again = store.reclaim(Budget::default()).unwrap();
        assert_eq!((again.orphans, again.files, again.compacted), (0, 0, 0));
    }
    assert_eq!(shown(&store), before);
    leased.iter().for_each(|object| drop(bytes_of(&store, *object)));
    assert!(!store.snapshot().unwrap().object_of(&kept).unwrap().is_empty());
    let left = names_in(&disk, &folder);
    strays.iter().for_each(|name| assert!(left.iter().any(|n| n == name), "{name}"));
    drop((prep, lease));
    store.close().unwrap();
}

/// Does compaction bring a store near its live bytes when that is asked for, and leave it alone when not?
#[test]
fn obj23_bytes_come_near_what_is_live_when_asked() {
    each(5, |disk, layout, store| {
        let numbers: Vec<u64> = (0..60).map(|n| 3 * n + 1).collect();
        recipe(&store, "files/most", &numbers);
        recipe(&store, "files/few", &numbers[..50]);
        store.objects().retire(&[gone("files/most")], "most").unwrap();
        let usage = store.du().unwrap();
        assert!(usage.accounts.dead > 0 && usage.accounts.dead < usage.accounts.live);
        let before = shown(&store);
        let lazy = store.reclaim(Budget::default()).unwrap();
        assert_eq!(lazy.compacted, 0, "less than half is dead");
        let eager = Budget { dead_percent: Some(5), ..Budget::default() };
        let plan = store.reclaim_plan(eager).unwrap();
        let done = store.reclaim(eager).unwrap();
        assert_eq!((done.compacted, done.moved_bytes), (plan.compacted, plan.moved_bytes));
        assert!(done.compacted > 0);
        let accounts = store.accounts().unwrap();
        assert!(accounts.are_closed());
        assert_eq!((accounts.dead, accounts.condemned), (0, 0));
        assert_eq!(shown(&store), before);
        store.close().unwrap();
        checked(disk);
        let _ = layout;
    });
}

/// Do retirement and reclaim work on a full disk, from what is kept for that?
#[test]
fn obj16_a_full_disk_lets_things_go() {
    for bounded in [false, true] {
        let disk = sim(6);
        let mut limits = small();
        limits.ballast_bytes = 2 << 20;
        limits.low_water_bytes = 1 << 20;
        let options = || on(&disk, Layout::Directory).limits(limits.clone());
        let store = options().create(root()).unwrap();
        for n in 0..20 {
            let numbers: Vec<u64> = (n * 40..n * 40 + 40).map(|n| 3 * n + 1).collect();
            recipe(&store, &format!("files/{n:02}"), &numbers);
        }
        disk.set_capacity(Some(disk.used()));
        assert!(store.put_objects(put_lease(&store), vec![vec![7; 5000]]).is_err());
        let things: Vec<_> = (0..20).map(|n| gone(&format!("files/{n:02}"))).collect();
        let done = match bounded {
            false => store.objects().retire(&things, "full"),
            true => store.objects().retire_bounded(&things, 100, "full"),
        };
        assert_eq!(done.unwrap().things, 20);
        let done = store.reclaim(Budget::default()).unwrap();
        assert!(done.files > 0 && done.bytes > 20 * 40 * 700);
        assert!(store.health().halted.is_none());
        disk.set_capacity(None);
        recipe(&store, "files/new", &[1, 2, 3]);
        store.close().unwrap();
        checked(&disk);
    }
}

fn put_lease(store: &Store) -> sealstone::ids::LeaseId {
    match store.lease("test", "full", None, &[]) {
        Ok(lease) => lease,
        Err(_) => sealstone::ids::LeaseId(u64::MAX),
    }
}

/// Does a thread reclaim after each retirement, where it is asked to, and end with the store?
#[test]
fn obj21_a_thread_reclaims_and_ends_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = small();
    let refused = Store::options().limits(limits.clone()).create(folder.path().join("none"));
    assert!(refused.unwrap().reclaim_in_background(Budget::default()).is_err());
    limits.background = true;
    let store = Store::options().limits(limits).create(folder.path().join("s")).unwrap();
    family(&store);
    store.objects().retire(&[gone("files/f")], "before").unwrap();
    assert!(count(&store, Table::Condemned) > 0, "off by default");
    let one = Budget { files: 1, ..Budget::default() };
    store.reclaim_in_background(one).unwrap();
    let is_clean = |store: &Store| {
        (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            count(store, Table::Condemned) == 0
        })
    };
    assert!(is_clean(&store));
    store.objects().retire(&all_of_it(), "all").unwrap();
    assert!(is_clean(&store));
    store.stop_reclaiming();
    file(&store, "files/x", 1);
    store.objects().retire(&[gone("files/x")], "later").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(count(&store, Table::Condemned) > 0, "it was told to end");
    store.reclaim_in_background(Budget::default()).unwrap();
    store.close().unwrap();
    let store = Store::open(folder.path().join("s")).unwrap();
    assert!(store.accounts().unwrap().are_closed());
    store.close().unwrap();
}
