//! Does salvage bring back all that is there, list what is not, and leave the old store alone? (G25)

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::check::{CheckOptions, Lost, SalvageOptions, Salvaged, Unconfirmed, check, salvage};
use sealstone::engine::{Append, Budget, ChunkBuild, Reclaimed, Store, Thing};
use sealstone::ids::{LeaseId, Sequence};
use sealstone::manifest::{LeaseRow, Reading, ReceiptRow, RecordingRow};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng, SimDisk};
use sealstone::vfs::{Disk, RealDisk};
use sealstone::{ErrorKind, Limits};

use crate::describe::describe;
use crate::support::{bytes_of, files, fill, filled, flip, on, replace, root, sim};

fn new() -> PathBuf {
    PathBuf::from("/data/new.stone")
}

fn salvaged(disk: &SimDisk) -> Salvaged {
    let before: Vec<_> = files(disk).into_iter().map(|(p, _)| (bytes_of(disk, &p), p)).collect();
    let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    let salvaged = salvage(root(), new(), &options).unwrap();
    let after: Vec<_> = files(disk).into_iter().map(|(p, _)| (bytes_of(disk, &p), p)).collect();
    assert!(before == after, "G25: the source was changed");
    salvaged
}

fn lose_manifest(disk: &SimDisk) {
    disk.unlink(&root().join("manifest.redb")).unwrap();
}

/// Everything that a public reader can see.
fn seen(store: &Store) -> String {
    let mut text = describe(store).unwrap();
    let snapshot = store.snapshot().unwrap();
    for (id, row) in snapshot.list::<ReceiptRow>(.., usize::MAX).unwrap() {
        text += &format!("receipt {id} {row:?}\n");
    }
    for (id, row) in snapshot.list::<RecordingRow>(.., usize::MAX).unwrap() {
        text += &format!("recording {id} {row:?}\n");
    }
    let info = store.info().unwrap();
    text + &format!("{:?} {} {:?}\n", info.created, info.sealed_folders, info.layout)
}

fn seen_at(disk: &SimDisk, path: &Path) -> String {
    let store = on(Arc::new(disk.clone())).open_read_only(path).unwrap();
    seen(&store)
}

/// Is the salvage of a closed store that lost its manifest the same store, whatever it holds, and
/// does it say so?
#[test]
fn g25_a_closed_store_without_its_manifest_comes_back_whole() {
    for seed in [1, 2, 3] {
        let disk = filled(seed);
        for round in 0..3 {
            // A delta, a compaction, and an opening that changes nothing.
            let store = on(Arc::new(disk.clone())).open(root()).unwrap();
            if round == 1 {
                store.reclaim(Budget::default()).unwrap();
                store.retire(&[Thing::Lease(LeaseId(1))], "it is enough").unwrap();
            }
            store.close().unwrap();
        }
        let before = seen_at(&disk, &root());
        lose_manifest(&disk);
        let salvaged = salvaged(&disk);
        assert!(salvaged.is_whole(), "{salvaged:#?}");
        assert!(salvaged.is_complete && salvaged.chain > 1, "{salvaged:?}");
        assert_eq!(seen_at(&disk, &new()), before);
        // It is a store like any other: it opens, takes more, and is salvaged again.
        let store = on(Arc::new(disk.clone())).open(new()).unwrap();
        store.create_stream("more").unwrap();
        store.close().unwrap();
    }
}

/// The same for a real directory with an imported recording, on the real disk.
#[cfg(feature = "interop")]
#[test]
fn g25_an_imported_recording_comes_back_value_by_value() {
    use sealstone::interop::Format;
    use sealstone::recording::ImportOptions;

    let input = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nyc-weather-2013.csv");
    let input = std::fs::read(input).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("run.stone"), dir.path().join("new.stone"));
    let mut limits = Limits::default();
    limits.sealed_folders = 4;
    let store = Store::options().limits(limits).create(&path).unwrap();
    let options = ImportOptions::new("weather", Format::Csv, "nyc-weather-2013.csv");
    let options = options.stream_by("origin");
    store.import(&input[..], &options, &mut |_| ControlFlow::Continue(())).unwrap();
    fill(&store, 5);
    store.state().put("config/current", &"a value".to_owned()).unwrap();
    let before = seen(&store);
    let large: u64 = store.accounts().unwrap().live;
    store.close().unwrap();
    std::fs::remove_file(path.join("manifest.redb")).unwrap();
    let salvaged = salvage(&path, &copy, &SalvageOptions::default()).unwrap();
    assert!(salvaged.is_whole(), "{:#?} {:#?}", salvaged.lost, salvaged.unconfirmed);
    let store = Store::open_read_only(&copy).unwrap();
    assert_eq!(seen(&store), before);
    let value = store.state().get::<String>("config/current").unwrap();
    assert_eq!(value, "a value");
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.live <= large + (64 << 10), "{accounts:?} {large}");
    // Nothing is overwritten, and a manifest that is there is not looked at.
    let again = salvage(&path, &copy, &SalvageOptions::default()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
    std::fs::write(path.join("manifest.redb"), b"no manifest at all").unwrap();
    let other = dir.path().join("other.stone");
    assert!(salvage(&path, &other, &SalvageOptions::default()).unwrap().is_whole());
    assert_eq!(seen(&Store::open_read_only(&other).unwrap()), before);
}

/// Is what a killed writer did after the newest snapshot there, and listed as unconfirmed?
#[test]
fn g25_what_is_newer_than_the_snapshot_is_listed() {
    let disk = filled(4);
    let writer = disk.process(9);
    let store = on(Arc::new(writer.clone())).open(root()).unwrap();
    let stream = store.create_stream("new").unwrap();
    store.append(vec![Append { stream, payload: vec![5; 700_000] }]).unwrap();
    store.append(vec![Append { stream, payload: b"second".to_vec() }]).unwrap();
    store.barrier().unwrap();
    let lease = store.lease("late", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![9; 5000]]).unwrap();
    writer.kill();
    std::mem::forget(store);
    lose_manifest(&disk);
    let salvaged = salvaged(&disk);
    assert!(salvaged.lost.is_empty() && !salvaged.is_complete, "{:#?}", salvaged.lost);
    let is = |wanted: &dyn Fn(&Unconfirmed) -> bool| salvaged.unconfirmed.iter().any(wanted);
    assert!(is(&|one| matches!(one, Unconfirmed::Commits { after, upto } if upto > after)));
    assert!(is(&|one| matches!(one, Unconfirmed::Stream { stream: s, .. } if *s == stream)));
    assert!(is(&|one| matches!(
        one,
        Unconfirmed::Records { stream: s, records: 2, .. } if *s == stream
    )));
    assert!(is(&|one| matches!(one, Unconfirmed::Object { len: 5000, .. })));
    let store = on(Arc::new(disk.clone())).open_read_only(new()).unwrap();
    let view = store.view(stream).unwrap();
    assert_eq!(store.payload_bytes(&view.tail[0].1).unwrap(), vec![5; 700_000]);
}

/// Are a damaged chunk, a missing file and a damaged snapshot listed, and everything else there?
#[test]
fn g25_what_does_not_verify_is_lost_by_name_and_stops_nothing() {
    let disk = filled(6);
    let before = seen_at(&disk, &root());
    lose_manifest(&disk);
    let mut told = 0;
    let sealed: Vec<PathBuf> = files(&disk)
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.to_string_lossy().contains("/sealed/"))
        .collect();
    for (at, path) in sealed.iter().enumerate() {
        let whole = bytes_of(&disk, path);
        flip(&disk, path, 40);
        let target = PathBuf::from(format!("/data/new-{at}.stone"));
        let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
        let salvaged = salvage(root(), &target, &options).unwrap();
        if salvaged.is_whole() {
            // The flip hit bytes that nothing refers to.
            assert_eq!(seen_at(&disk, &target), before);
            replace(&disk, path, &whole);
            continue;
        }
        told += 1;
        let is_snapshot = salvaged.covers.is_none();
        for Lost { what, why, .. } in &salvaged.lost {
            assert!(!what.is_empty() && !why.is_empty(), "{what}: {why}");
        }
        assert!(!salvaged.lost.is_empty() || is_snapshot, "{path:?}: {salvaged:#?}");
        let checking = CheckOptions { disk: options.disk, ..CheckOptions::default() };
        let report = check(&target, &checking, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(report.is_good(), "{:?}", report.findings);
        replace(&disk, path, &whole);
    }
    assert!(told >= 8, "{told} of {}", sealed.len());
}

/// Without any snapshot, do labels and journals alone give the records back?
#[test]
fn g25_labels_and_journals_alone_give_records_back() {
    let disk = sim(8);
    let writer = disk.process(3);
    let store = on(Arc::new(writer.clone())).create(root()).unwrap();
    fill(&store, 8);
    writer.kill();
    std::mem::forget(store);
    lose_manifest(&disk);
    let salvaged = salvaged(&disk);
    assert_eq!(salvaged.covers, None);
    assert!(salvaged.chunks >= 6 && salvaged.records > 0, "{salvaged:#?}");
    let names = seen_at(&disk, &new());
    for name in ["\"a\"", "\"b\"", "\"c\""] {
        assert!(names.contains(name), "{names}");
    }
}

/// Publishes a chunk that no journal ever held, after the last snapshot, and loses the manifest; how many
/// chunks come back.
fn salvaged_direct_chunks() -> u64 {
    let disk = sim(9);
    let writer = disk.process(3);
    let store = on(Arc::new(writer.clone())).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let direct = ChunkBuild {
        stream,
        first: Sequence(0),
        records: 5,
        content: vec![7; 20_000],
        about: b"test".to_vec(),
        raw_len: 20_000,
        iterations: None,
        times: None,
        payloads: Vec::new(),
    };
    store.publish_chunks(vec![direct]).unwrap();
    writer.kill();
    std::mem::forget(store);
    lose_manifest(&disk);
    salvaged(&disk).chunks
}

/// Does a sealed file say enough of itself for its chunk to come back?
#[test]
fn g25_a_chunk_that_only_its_label_knows_comes_back_and_the_mutant_is_caught() {
    assert_eq!(salvaged_direct_chunks(), 1);
    let _off = switch_off(Protection::LabelReferrers);
    assert_eq!(salvaged_direct_chunks(), 0, "who brought it back?");
}

/// Is an empty directory no store, and one that is in use left alone?
#[test]
fn g25_salvage_refuses_what_it_cannot_do() {
    let disk = sim(9);
    disk.mkdir(&root()).unwrap();
    let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    let nothing = salvage(root(), new(), &options).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NoStore);
    let disk = filled(9);
    let store = on(Arc::new(disk.process(4))).open(root()).unwrap();
    let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    assert_eq!(salvage(root(), new(), &options).unwrap_err().kind(), ErrorKind::InUse);
    drop(store);
    let _: Arc<dyn Disk> = RealDisk::new();
}

/// What does a close with something new cost, and one with nothing new?
#[test]
fn a_close_with_nothing_new_writes_no_snapshot() {
    let disk = sim(10);
    let store = on(Arc::new(disk.clone())).create(root()).unwrap();
    fill(&store, 10);
    store.close().unwrap();
    let mut took = Vec::new();
    for round in 0..4 {
        let store = on(Arc::new(disk.clone())).open(root()).unwrap();
        if round % 2 == 0 {
            store.create_stream("one more").unwrap();
        }
        let before = disk.counts();
        let age = store.info().unwrap().snapshot.unwrap();
        assert_eq!(age.is_complete, round % 2 == 1, "{age:?}");
        store.close().unwrap();
        let counts = disk.counts().since(&before);
        println!(
            "close, {}: {} syncs, {} writes, {} bytes, {} files",
            ["with a change", "without"][round % 2],
            counts.syncs(),
            counts.writes,
            counts.bytes_written,
            counts.creates
        );
        took.push((counts.creates, counts.syncs()));
    }
    assert_eq!(took[0].0, took[1].0 + 1, "one file more: {took:?}");
    assert_eq!(took[1], took[3]);
}

/// Do chains stay short, and do old snapshots go with the next reclaim?
#[test]
fn p10_chains_of_snapshots_stay_short_and_old_ones_go() {
    let disk = sim(11);
    let mut limits = crate::support::small();
    limits.snapshot_chain_max = 4;
    limits.snapshot_publications = 2;
    let options = || Store::options().limits(limits.clone()).disk(Arc::new(disk.clone()));
    let store = options().create(root()).unwrap();
    let lease = store.lease("many", "test", None, &[]).unwrap();
    let mut ages = Vec::new();
    for n in 0..40u8 {
        store.put_objects(lease, vec![vec![n; 500]]).unwrap();
        ages.extend(store.info().unwrap().snapshot.map(|age| (age.chain, age.commits)));
    }
    assert!(ages.iter().all(|(chain, commits)| *chain <= 4 && *commits <= 8), "{ages:?}");
    assert!(ages.iter().any(|(chain, _)| *chain > 1), "{ages:?}");
    assert!(store.accounts().unwrap().condemned > 0);
    store.reclaim(Budget::default()).unwrap();
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.condemned == 0, "{accounts:?}");
    store.close().unwrap();
    limits.snapshot_chain_max = 0;
    let store = Store::options().limits(limits).disk(Arc::new(disk.clone())).open(root()).unwrap();
    store.create_stream("not covered").unwrap();
    assert_eq!(store.write_snapshot().unwrap(), None);
    store.close().unwrap();
}

/// Does a snapshot that is too long to be held in memory, and is encoded on its way into its file, tell
/// every row?
#[test]
fn g25_a_long_snapshot_is_written_as_it_is_encoded() {
    let disk = sim(12);
    let mut limits = crate::support::small();
    limits.object_inline_bytes_max = 1 << 20;
    let options = Store::options().limits(limits).disk(Arc::new(disk.clone()));
    let store = options.create(root()).unwrap();
    let mut rng = Rng::new(3);
    for n in 0..12 {
        let lease = store.lease("keeper", &format!("{n}"), None, &[]).unwrap();
        let mut bytes = vec![0; 1 << 20];
        rng.fill(&mut bytes);
        store.put_objects(lease, vec![bytes]).unwrap();
    }
    store.close().unwrap();
    let before = seen_at(&disk, &root());
    lose_manifest(&disk);
    let salvaged = salvaged(&disk);
    assert!(salvaged.is_whole() && salvaged.is_complete && salvaged.chain == 1, "{salvaged:?}");
    assert_eq!(seen_at(&disk, &new()), before);
}

/// A store whose newest records are newer than its snapshot, without its manifest.
fn half_told(seed: u64) -> SimDisk {
    let disk = filled(seed);
    let writer = disk.process(5);
    let store = on(Arc::new(writer.clone())).open(root()).unwrap();
    let stream = store.create_stream("late").unwrap();
    store.append(vec![Append { stream, payload: vec![5; 200] }]).unwrap();
    store.barrier().unwrap();
    writer.kill();
    drop(store);
    lose_manifest(&disk);
    disk
}

/// Retires everything under leases; what a reclaim then gives back.
fn reclaimed(store: &Store) -> Reclaimed {
    let leases = store.snapshot().unwrap().list::<LeaseRow>(.., usize::MAX).unwrap();
    let gone = leases.into_iter().filter(|(_, row)| row.holder == "keeper");
    let gone: Vec<_> = gone.map(|(lease, _)| Thing::Lease(lease)).collect();
    if !gone.is_empty() {
        store.retire(&gone, "test").unwrap();
    }
    store.reclaim(Budget::default()).unwrap()
}

/// Is nothing reclaimed in a store that did not come back whole, until somebody releases it; and is it
/// the hold that keeps it?
#[test]
fn g25_a_salvaged_store_is_reclaimed_after_it_was_released() {
    let disk = half_told(31);
    assert!(!salvaged(&disk).is_whole());
    let open = || on(Arc::new(disk.clone())).open(new()).unwrap();
    let store = open();
    let held = reclaimed(&store);
    assert!(held.is_held_by_salvage && held.is_more_left && held.files == 0, "{held:?}");
    store.close().unwrap();
    let store = open();
    assert!(reclaimed(&store).is_held_by_salvage);
    // What was salvaged twice is held twice.
    let rows = store.snapshot().unwrap().list::<LeaseRow>(.., usize::MAX).unwrap();
    let hold = rows.into_iter().map(|(_, row)| row).find(|row| row.purpose.contains("released"));
    let hold = hold.unwrap();
    store.lease(&hold.holder, &hold.purpose, None, &[]).unwrap();
    assert!(store.release_salvaged().unwrap());
    assert!(!store.release_salvaged().unwrap());
    let done = reclaimed(&store);
    assert!(!done.is_held_by_salvage && done.files + done.compacted > 0, "{done:?}");
    store.close().unwrap();
    let disk = half_told(31);
    salvaged(&disk);
    let _off = switch_off(Protection::SalvageHold);
    let done = reclaimed(&on(Arc::new(disk.clone())).open(new()).unwrap());
    assert!(done.files + done.compacted > 0, "{done:?}");
}

/// Does a salvage that failed leave no file beside NEW, and does the next one take its place, also
/// after a crash?
#[test]
fn g25_a_salvage_that_failed_leaves_nothing_behind() {
    let names = |disk: &SimDisk| {
        let entries = disk.list(Path::new("/data")).unwrap();
        entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    let disk = half_told(32);
    let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    let mut failed = 0;
    for at in (0..).step_by(23) {
        let fault = Fault::new(disk.operations() + at, FaultKind::Enospc);
        disk.inject(fault.on("new.stone").forever());
        let done = salvage(root(), new(), &options);
        disk.clear_faults();
        if done.is_ok() {
            break;
        }
        failed += 1;
        let left: Vec<_> =
            files(&disk).into_iter().filter(|(p, _)| !p.starts_with(root())).collect();
        assert!(left.is_empty(), "at {at}: {left:?}");
        assert!(names(&disk).len() <= 2, "at {at}: {:?}", names(&disk));
    }
    assert!(failed > 3, "{failed}");
    assert_eq!(names(&disk).len(), 2, "{:?}", names(&disk));
    // What a crash leaves: the next one empties it and makes it the new store.
    let disk = half_told(33);
    let options = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    let begun = disk.events().len();
    salvage(root(), new(), &options).unwrap();
    let log = disk.events();
    let mut cursor = log.cursor(Profile::ProcessKill);
    cursor.advance_to(begun + (log.len() - begun) * 2 / 3);
    let image = cursor.images(&mut Rng::new(1), 1).remove(0).disk();
    assert!(names(&image).iter().any(|name| name.contains(".salvage-")), "{:?}", names(&image));
    let options = SalvageOptions { disk: Some(Arc::new(image.process(6))) };
    salvage(root(), new(), &options).unwrap();
    assert_eq!(names(&image).len(), 2, "{:?}", names(&image));
}
