//! Backups of a store that is one file: another file, whole, at a stated commit.

use std::ops::ControlFlow;
use std::path::Path;

use sealstone::engine::{Append, BackupOptions, BackupProgress, Budget, Options, Thing};
use sealstone::manifest::{Reading, Table};
use sealstone::vfs::sim::{Profile, Rng, SimDisk};
use sealstone::vfs::{Access, Disk};
use sealstone::{ErrorKind, Layout};

use crate::backup::{assert_good, busy_in, shown, to};
use crate::support::{append, chunk, on, root, sim};

fn single(disk: &SimDisk) -> Options {
    on(disk).layout(Layout::SingleFile)
}

fn names(disk: &SimDisk) -> Vec<String> {
    let mut names: Vec<_> =
        disk.list(Path::new("/data")).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

/// Is a backup of one file the store as it stood, unsealed records and all, in one file, good to
/// `check`, and can one go on writing into it? And is a second one the newer store?
#[test]
fn p1_a_backup_of_one_file_is_the_store() {
    let disk = sim(70);
    let (store, stream, lease) = busy_in(single(&disk));
    append(&store, stream, &[9; 20_000]);
    let before = shown(&store, stream);
    let planned = store.backup_estimate(to(), &BackupOptions::default()).unwrap();
    assert_eq!(names(&disk), ["run.stone"]);
    let first = store.backup(to()).unwrap();
    assert_eq!(first.commit, store.info().unwrap().commit);
    assert!(first.onto.is_none() && first.journals == 1 && first.files >= 2, "{first:?}");
    assert_eq!((planned.files, planned.bytes_copied), (first.files, first.bytes_copied));
    assert_eq!(names(&disk), ["copy.stone", "run.stone"]);
    assert_good(&disk, &to());
    let reader = single(&disk.process(3)).open_read_only(to()).unwrap();
    assert_eq!(reader.info().unwrap().commit, first.commit);
    assert_eq!(shown(&reader, stream), before);
    assert_eq!(reader.snapshot().unwrap().count(Table::Claims).unwrap(), 0);
    reader.close().unwrap();
    store.retire(&[Thing::Lease(lease)], "test").unwrap();
    store.reclaim(Budget::default()).unwrap();
    append(&store, stream, &[10; 30]);
    let second = store.backup(to()).unwrap();
    assert_eq!(second.onto, Some(first.commit));
    assert_good(&disk, &to());
    let copy = single(&disk.process(4)).open(to()).unwrap();
    assert_eq!(shown(&copy, stream), shown(&store, stream));
    assert!(copy.recovery().ended.is_empty(), "it was left as closed");
    append(&copy, stream, &[11; 40]);
    copy.publish_chunks(vec![chunk(&copy, stream, 2)]).unwrap();
    assert!(copy.accounts().unwrap().are_closed());
    copy.close().unwrap();
    assert_good(&disk, &to());
}

/// Beside a writer that goes on appending, sealing and retiring: does each backup hold everything
/// that was acknowledged before it, and nothing half?
#[test]
fn g3_a_backup_of_one_file_beside_its_writer_is_one_commit() {
    let disk = sim(71);
    let (store, stream, _) = busy_in(single(&disk));
    for round in 0..6u8 {
        let other = store.clone();
        let before = shown(&store, stream);
        let mut at = 0u8;
        let mut meanwhile = |_: BackupProgress| {
            at += 1;
            append(&other, stream, &[round; 500]);
            if at % 2 == 1 {
                other.publish_chunks(vec![chunk(&other, stream, 1)]).unwrap();
                let lease = other.lease("gone", "test", None, &[]).unwrap();
                other.put_objects(lease, vec![vec![at; 9_000]]).unwrap();
                other.retire(&[Thing::Lease(lease)], "test").unwrap();
                other.reclaim(Budget::default()).unwrap();
            }
            ControlFlow::Continue(())
        };
        let made = store.backup_with(to(), &BackupOptions::default(), &mut meanwhile).unwrap();
        assert!(at > 0 && store.info().unwrap().commit > made.commit, "{at}");
        assert_good(&disk, &to());
        let reader = single(&disk.process(5)).open_read_only(to()).unwrap();
        assert_eq!(reader.info().unwrap().commit, made.commit);
        assert_eq!(shown(&reader, stream), before, "round {round}");
    }
}

/// From a handle that only reads, in another process, beside the writer and after it was killed: is
/// everything acknowledged in it, and did reading change nothing?
#[test]
fn g20_a_reader_backs_up_one_file() {
    let disk = sim(72);
    let (store, stream, _) = busy_in(single(&disk));
    append(&store, stream, &[7; 70]);
    store.barrier().unwrap();
    let before = shown(&store, stream);
    let reader = single(&disk.process(6)).open_read_only(root()).unwrap();
    let made = reader.backup(to()).unwrap();
    assert_eq!(made.commit, store.info().unwrap().commit);
    let copy = single(&disk.process(7)).open(to()).unwrap();
    assert_eq!(shown(&copy, stream), before);
    copy.close().unwrap();
    disk.kill();
    drop((store, reader));
    let after = disk.process(8);
    let reader = single(&after).open_read_only(root()).unwrap();
    reader.backup("/data/other.stone").unwrap();
    let copy = single(&after).open_read_only("/data/other.stone").unwrap();
    assert_eq!(shown(&copy, stream), before);
}

/// What is not an earlier backup of this file, and free: is it refused by its kind, and untouched?
#[test]
fn g17_a_file_that_is_something_else_is_no_target() {
    let disk = sim(73);
    let (store, ..) = busy_in(single(&disk));
    let kind = |path: &str| store.backup(path).unwrap_err().kind();
    assert_eq!(kind("/data/run.stone"), ErrorKind::Invalid);
    assert_eq!(kind("/data/none/new"), ErrorKind::Io);
    assert_eq!(kind("/data"), ErrorKind::Exists);
    on(&disk.process(2)).create("/data/folder.stone").unwrap().close().unwrap();
    assert_eq!(kind("/data/folder.stone"), ErrorKind::Exists);
    single(&disk.process(2)).create("/data/foreign.stone").unwrap().close().unwrap();
    assert_eq!(kind("/data/foreign.stone"), ErrorKind::Foreign);
    drop(disk.open(Path::new("/data/file"), Access::CreateNew).unwrap());
    assert_eq!(kind("/data/file"), ErrorKind::Damage);
    store.backup(to()).unwrap();
    let reader = single(&disk.process(3)).open_read_only(to()).unwrap();
    assert_eq!(kind("/data/copy.stone"), ErrorKind::InUse);
    reader.close().unwrap();
    let writer = single(&disk.process(3)).open(to()).unwrap();
    assert_eq!(kind("/data/copy.stone"), ErrorKind::InUse);
    writer.close().unwrap();
    assert_eq!(kind("/data/copy.stone"), ErrorKind::Conflict);
    // A newer backup is not replaced by an older store.
    store.backup("/data/old.stone").unwrap();
    store.create_stream("later").unwrap();
    store.backup("/data/new.stone").unwrap();
    let old = single(&disk.process(3)).open_read_only("/data/old.stone").unwrap();
    assert_eq!(old.backup("/data/new.stone").unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!names(&disk).iter().any(|name| name.contains("new.stone.")), "{:?}", names(&disk));
}

/// After a crash at any operation of a backup onto an earlier one: is the target the earlier one or
/// the newer one, whole, and does the next call finish?
#[test]
fn g3_a_crash_in_a_backup_of_one_file_leaves_one_or_the_other() {
    let disk = sim(74);
    disk.sync_dir(Path::new("/")).unwrap();
    let (store, stream, _) = busy_in(single(&disk));
    let first = store.backup(to()).unwrap().commit;
    append(&store, stream, &[1; 400]);
    store.publish_chunks(vec![chunk(&store, stream, 2)]).unwrap();
    store.barrier().unwrap();
    let begun = disk.events().len();
    let second = store.backup(to()).unwrap().commit;
    let expected = shown(&store, stream);
    drop(store);
    let (log, mut met) = (disk.events(), [0; 2]);
    for profile in [Profile::ProcessKill, Profile::PosixHarshest] {
        let mut cursor = log.cursor(profile);
        for cut in (begun..=log.len()).step_by(3) {
            cursor.advance_to(cut);
            // Every image that there is was seen already.
            let Some(image) = cursor.images(&mut Rng::new(cut as u64), 1).pop() else { continue };
            let image = image.disk();
            let reader = single(&image.process(4)).open_read_only(to()).unwrap();
            let commit = reader.info().unwrap().commit;
            assert!(commit == first || commit == second, "cut {cut}: {commit}");
            met[usize::from(commit == second)] += 1;
            reader.close().unwrap();
            assert_good(&image, &to());
            if cut % 5 == 0 {
                let store = single(&image.process(5)).open(root()).unwrap();
                assert!(store.backup(to()).unwrap().commit >= second, "cut {cut}");
                let copy = single(&image.process(6)).open_read_only(to()).unwrap();
                assert!(shown(&copy, stream) == expected, "cut {cut}");
                assert!(names(&image).len() == 2, "{:?}", names(&image));
            }
        }
    }
    println!("{met:?} images showed the earlier and the newer one");
    assert!(met[0] > 10 && met[1] > 0, "{met:?}");
}

/// Ended by its caller, and out of space: is the earlier backup whole, and nothing left beside it?
#[test]
fn a_backup_of_one_file_that_fails_leaves_the_earlier_one() {
    let disk = sim(75);
    let (store, stream, _) = busy_in(single(&disk));
    let other = sim(76);
    let options = BackupOptions {
        disk: Some(std::sync::Arc::new(other.clone())),
        ..BackupOptions::default()
    };
    let go_on = &mut |_: BackupProgress| ControlFlow::Continue(());
    let first = store.backup_with(to(), &options, go_on).unwrap();
    store.append(vec![Append { stream, payload: vec![3; 60_000] }]).unwrap();
    other.set_capacity(Some(other.used() + (20 << 10)));
    let error = store.backup_with(to(), &options, go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
    assert_eq!(names(&other), ["copy.stone"]);
    other.set_capacity(None);
    let stop = &mut |_: BackupProgress| ControlFlow::Break(());
    let error = store.backup_with(to(), &options, stop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error:?}");
    assert_eq!(names(&other), ["copy.stone"]);
    assert_good(&other, &to());
    assert!(store.backup_with(to(), &options, go_on).unwrap().commit > first.commit);
    assert_good(&other, &to());
    assert!(store.health().halted.is_none());
}
