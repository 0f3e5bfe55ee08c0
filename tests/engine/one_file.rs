//! The single-file layout under what others do to it: hostile rows, a full disk, another process at
//! any moment of its birth.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{append, on, read, root, sim, small};
use sealstone::engine::{Append, Budget, Options, Store, Thing};
use sealstone::format::layout;
use sealstone::manifest::{BodyDisk, BodyRow, Manifest, Newborn, Open, Reading};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng, SimDisk, SyncFailure};
use sealstone::vfs::{Access, Disk, RealDisk, Step, TraceDisk, write_all_at};
use sealstone::{ErrorKind, Layout};

fn single(disk: &SimDisk) -> Options {
    on(disk).layout(Layout::SingleFile)
}

fn names(disk: &SimDisk) -> Vec<String> {
    disk.list(Path::new("/data")).unwrap().into_iter().map(|entry| entry.name).collect()
}

/// Does a row that promises a file without end, behind a checksum that fits, cost more than an
/// error? Its length has no page behind it. (P9)
#[test]
fn p9_a_row_that_promises_a_file_without_end_is_damage_and_no_more() {
    let unique = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let digest = "a".repeat(64);
    let (mut opened, mut refused) = (0, 0);
    for (seed, len) in [(20, 1u64 << 60), (21, (1 << 60) - 1), (22, 200_000)] {
        let probe = sim(seed);
        let store = single(&probe).create(root()).unwrap();
        let stream = store.create_stream("s").unwrap();
        let lease = store.lease("l", "test", None, &[]).unwrap();
        store.put_objects(lease, vec![vec![7; 70_000]]).unwrap();
        append(&store, stream, &[1; 300]);
        store.barrier().unwrap();
        let rows = store.snapshot().unwrap().list::<BodyRow>(.., usize::MAX).unwrap();
        probe.kill();
        drop(store);
        let made = [
            format!("tmp/{unique}-{unique}"),
            format!("sealed/00/{digest}-{unique}"),
            format!("sealed/01/{digest}-{unique}"),
            format!("journal/{unique}-3.journal"),
        ];
        for name in rows.into_iter().map(|(name, _)| name).chain(made) {
            let disk = probe.process(2);
            let copy = Path::new("/data/hostile.stone");
            let _ = disk.unlink(copy);
            let whole = disk.open(&root(), Access::Read).unwrap();
            let bytes = sealstone::vfs::read_whole(&*whole, 1 << 30).unwrap();
            write_all_at(&*disk.open(copy, Access::CreateNew).unwrap(), &bytes, 0).unwrap();
            let world: Arc<dyn Disk> = Arc::new(disk.clone());
            let how = Open { single_file: true, ..Open::default() };
            let manifest = Manifest::open(&world, copy, &how).unwrap();
            let put = manifest.write(None, Step::BodyCommit, |w| w.put(&name, &BodyRow { len }));
            put.unwrap();
            manifest.close().unwrap();
            drop(manifest);
            let since = Instant::now();
            let look = |store: &Store| {
                let _ = store.view(stream).map(|view| view.tail.len());
                let _ = store.accounts();
                let _ = store.snapshot().unwrap().list::<BodyRow>(.., usize::MAX);
            };
            if let Ok(store) = single(&disk).open_read_only(copy) {
                look(&store);
            }
            match single(&disk).open(copy) {
                Ok(store) => {
                    look(&store);
                    let _ = store.reclaim(Budget::default());
                    opened += 1;
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Damage, "{name}: {e:?}");
                    refused += 1;
                }
            }
            assert!(since.elapsed() < Duration::from_secs(20), "{name}");
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 5 && refused > 0, "{opened}, {refused}");
}

/// Is a store born when an opening beside it takes the maker's temporary name away, in the moment
/// in which both names are the store's?
#[test]
fn g17_an_opening_that_clears_the_makers_name_does_not_fail_the_maker() {
    let disk = sim(31);
    let traced = TraceDisk::counting(Arc::new(disk.clone()));
    let other: Arc<dyn Disk> = Arc::new(disk.process(9));
    traced.on_mark(move |step| {
        if step == Step::BirthParent {
            Newborn::clear(&other, &root()).unwrap();
        }
    });
    let limits = small();
    let how = Store::options().limits(limits).disk(Arc::new(traced)).layout(Layout::SingleFile);
    how.create(root()).unwrap().close().unwrap();
    assert_eq!(names(&disk), ["run.stone"]);
}

/// Is a store whose name may not be durable told as one, and not as a store that was not born?
#[test]
fn p8_a_birth_whose_directory_did_not_sync_is_unknown() {
    let disk = sim(32);
    let traced = TraceDisk::counting(Arc::new(disk.clone()));
    let world = disk.clone();
    traced.on_mark(move |step| {
        if step == Step::BirthParent {
            let kind = FaultKind::SyncFails(SyncFailure::NothingKept);
            world.inject(Fault::new(world.operations(), kind).on("data"));
        }
    });
    let how = Store::options().limits(small()).disk(Arc::new(traced)).layout(Layout::SingleFile);
    let told = how.create(root()).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::OutcomeUnknown, "{told:?}");
    single(&disk).open(root()).unwrap();
    assert_eq!(names(&disk), ["run.stone"]);
}

/// Is a sound store opened, whatever lies in the name under which one is made, and a name that is
/// too long to be made told as that?
#[test]
fn leftovers_are_in_no_sound_stores_way() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::options().limits(small()).layout(Layout::SingleFile);
    let long = dir.path().join("n".repeat(255));
    let refused = open().create(&long).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused:?}");
    let short = dir.path().join("run.stone");
    open().create(&short).unwrap().close().unwrap();
    std::fs::rename(&short, &long).unwrap();
    let store = open().open(&long).unwrap();
    assert!(!store.health().warnings.is_empty());
    store.close().unwrap();
    std::fs::rename(&long, &short).unwrap();
    std::fs::create_dir(layout::newborn(&short)).unwrap();
    open().open(&short).unwrap().close().unwrap();
    // What the disk does not let us look at.
    let disk = sim(33);
    single(&disk).create(root()).unwrap().close().unwrap();
    drop(disk.open(&layout::newborn(&root()), Access::CreateNew).unwrap());
    disk.inject(Fault::new(0, FaultKind::Eio).on(".stone.").forever());
    let store = single(&disk).open(root()).unwrap();
    assert!(!store.health().warnings.is_empty());
}

/// Who is said to hold a store that a reader recovered in memory? Not the process that died.
#[test]
fn g17_a_dead_process_is_not_said_to_hold_the_store() {
    let disk = sim(34);
    let store = single(&disk).create(root()).unwrap();
    disk.kill();
    drop(store);
    let reader = single(&disk.process(8)).open_read_only(root()).unwrap();
    let refused = single(&disk.process(9)).open(root()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    assert!(refused.to_string().contains("reader"), "{refused}");
    drop(reader);
    single(&disk.process(9)).open(root()).unwrap();
}

/// Does a creation where locks do not work leave its file for ever?
#[test]
fn a_creation_without_locks_leaves_nothing() {
    let disk = sim(35);
    disk.inject(Fault::new(0, FaultKind::LockUnsupported).forever());
    let refused = single(&disk).create(root()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(names(&disk), Vec::<String>::new());
}

/// Does a creation wait for another one that is under way, where it was asked to?
#[test]
fn a_creation_waits_for_another_one() {
    let disk = sim(36);
    let begun = disk.process(5);
    let other: Arc<dyn Disk> = Arc::new(begun.clone());
    let newborn = Newborn::begin(&other, &root()).unwrap();
    let gone = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        begun.kill();
        drop(newborn);
    });
    single(&disk).wait_millis(10_000).open_or_create(root()).unwrap().close().unwrap();
    gone.join().unwrap();
}

/// Does a disk that is full, with live data at the end of the file, take something again once other
/// data was given up? Nothing of that returns to the file system. (G16)
#[test]
fn g16_room_inside_the_file_is_room() {
    let disk = sim(37);
    let mut limits = small();
    limits.ballast_bytes = 64 << 10;
    limits.low_water_bytes = 1 << 20;
    let open = || single(&disk).limits(limits.clone());
    disk.set_capacity(Some(24 << 20));
    let store = open().create(root()).unwrap();
    let goes = store.lease("goes", "test", None, &[]).unwrap();
    let stays = store.lease("stays", "test", None, &[]).unwrap();
    let stream = store.create_stream("s").unwrap();
    let mut n = 0u32;
    let mut content = || {
        n += 1;
        n.to_le_bytes().repeat(15_000)
    };
    for _ in 0..150 {
        store.put_objects(goes, vec![content()]).unwrap();
    }
    let mut kept = Vec::new();
    let full = loop {
        match store.put_objects(stays, vec![content()]) {
            Ok(put) => kept.push(put[0].0),
            Err(e) => break e,
        }
        assert!(kept.len() < 400);
    };
    assert_eq!(full.kind(), ErrorKind::DiskFull, "{full:?}");
    store.close().unwrap();
    let store = open().open(root()).unwrap();
    let refused = store.put_objects(stays, vec![content()]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::DiskFull, "{refused:?}");
    store.retire(&[Thing::Lease(goes)], "room").unwrap();
    store.reclaim(Budget::default()).unwrap();
    let left = disk.space(&root()).unwrap().free;
    let lease = store.lease("more", "test", None, &[]).unwrap();
    let (mut more, mut records) = (0, 0);
    let again = loop {
        match store.put_objects(lease, vec![content()]) {
            Ok(_) => more += 60_000,
            Err(e) => break e,
        }
        let payload = vec![1; 300];
        match store.append(vec![Append { stream, payload }]).and_then(|_| store.barrier()) {
            Ok(()) => records += 1,
            Err(e) => break e,
        }
    };
    println!("{left} bytes were left, {more} were taken: {again}");
    assert_eq!(again.kind(), ErrorKind::DiskFull, "{again:?}");
    assert!(more > 2 * left, "{left}, {more}");
    assert!(store.health().halted.is_none());
    store.close().unwrap();
    let store = open().open(root()).unwrap();
    assert_eq!(read(&store, stream).len(), records);
    for object in kept {
        store.fetch(object).unwrap();
    }
    assert!(store.accounts().unwrap().are_closed());
}

/// Does the compacted manifest of a copied store keep its mode, without the folders that a copy
/// leaves out, and does a reader stop it before the copy is made?
#[test]
fn a_compacted_manifest_keeps_its_mode_and_needs_no_empty_folder() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let traced = Arc::new(TraceDisk::counting(RealDisk::new()));
    let copies = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&copies);
    traced.on_mark(move |step| {
        if step == Step::ManifestCopy {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let open = || Store::options().limits(small()).disk(traced.clone());
    open().create(&path).unwrap().close().unwrap();
    let manifest = layout::manifest(&path);
    let mode = |mode| std::fs::set_permissions(&manifest, PermissionsExt::from_mode(mode));
    mode(0o640).unwrap();
    std::fs::remove_dir(layout::tmp_dir(&path)).unwrap();
    let reader = open().open_read_only(&path).unwrap();
    assert_eq!(open().compact(&path).unwrap_err().kind(), ErrorKind::InUse);
    assert_eq!(copies.load(std::sync::atomic::Ordering::Relaxed), 0);
    drop(reader);
    open().compact(&path).unwrap();
    assert_eq!(std::fs::metadata(&manifest).unwrap().permissions().mode() & 0o777, 0o640);
    open().open(&path).unwrap().close().unwrap();
}

/// Is a length that no page is behind refused where a file is looked at, before anything is sized by
/// it, and is it that refusal which keeps it out? (P9)
#[test]
fn p9_a_length_without_pages_is_refused_and_the_mutant_is_caught() {
    let disk = sim(38);
    let store = single(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, &[1; 300]);
    store.close().unwrap();
    let world: Arc<dyn Disk> = Arc::new(disk.clone());
    let how = Open { single_file: true, ..Open::default() };
    let manifest = Arc::new(Manifest::open(&world, &root(), &how).unwrap());
    let name = "tmp/01ARZ3NDEKTSV4RRFFQ69G5FAV-01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned();
    let long = BodyRow { len: 1 << 40 };
    manifest.write(None, Step::BodyCommit, |w| w.put(&name, &long)).unwrap();
    let body = BodyDisk::new(world, &root(), manifest);
    assert!(body.meta(&root().join(&name)).is_err());
    let _off = switch_off(Protection::BodyLength);
    assert_eq!(body.meta(&root().join(&name)).unwrap().unwrap().len, 1 << 40);
}

/// A store of one file with `bytes` of objects, closed, and made longer; then images of the first headers that opening it
/// and closing it again write: how many, and how many that do not open.
fn torn_headers(seed: u64, bytes: usize, draws: usize) -> (u64, u64) {
    let disk = sim(seed);
    let store = single(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![seed as u8; bytes]]).unwrap();
    append(&store, stream, &[1; 300]);
    store.close().unwrap();
    let disk = disk.process(2);
    // Free room at its end, as a store leaves it: the number of its pages passes a multiple of 256.
    let file = disk.open(&root(), Access::ReadWrite).unwrap();
    let pages = (file.len().unwrap() / 4096 / 256 + 1) * 256;
    file.set_len((pages + 8) * 4096).unwrap();
    file.sync_all().unwrap();
    drop(file);
    disk.restart_log();
    single(&disk).open(root()).unwrap().close().unwrap();
    let log = disk.events();
    let (mut images, mut broken, mut rng) = (0, 0, Rng::new(seed));
    let mut cursor = log.cursor(Profile::Ext4Ordered);
    while cursor.advance().is_some() {
        let pending = cursor.describe_pending();
        if !pending.last().is_some_and(|last| last.contains(" bytes at 0 of ")) {
            continue;
        }
        for image in cursor.images(&mut rng, draws) {
            let disk = image.disk();
            images += 1;
            match single(&disk).open(root()) {
                Ok(store) => assert_eq!(read(&store, stream).len(), 1),
                Err(_) => broken += 1,
            }
            disk.kill();
        }
    }
    (images, broken)
}

/// Does the file open although a header was torn that told its new length: of redb's four bytes for
/// it some may be new and some old, and together say a length that it never had?
#[test]
fn g1_a_torn_header_of_another_length_opens_and_the_mutant_is_caught() {
    let mut images = 0;
    for (seed, bytes) in [(1, 0), (2, 600_000), (3, 900_000)] {
        let (looked_at, broken) = torn_headers(seed, bytes, 12);
        images += looked_at;
        assert_eq!(broken, 0, "of {looked_at} images, seed {seed}");
    }
    println!("{images} images");
    let _off = switch_off(Protection::FlagBeforeLayout);
    let broken = (4..8u64).any(|seed| torn_headers(seed, 300_000, 40).1 > 0);
    assert!(broken, "a header torn between two lengths was not noticed");
}
