//! Backups: is the copy the store, as it stood, whoever writes meanwhile; and is nothing else ever
//! taken for one?

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{BackupOptions, BackupProgress, Budget, Options, Store, Thing};
use sealstone::error::{ErrorKind, Result};
use sealstone::format::layout;
use sealstone::ids::{LeaseId, StreamId};
use sealstone::journal::Level;
use sealstone::manifest::{ClaimKind, FileRow, Reading, ResourceKey, Table};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, read_whole, write_all_at};

use crate::support::{append, chunk, on, root, sim, small};

pub fn to() -> PathBuf {
    PathBuf::from("/data/copy.stone")
}

/// A store with chunks, unsealed records, large payloads, a lease and a claim.
fn busy(disk: &SimDisk) -> (Store, StreamId, LeaseId) {
    busy_in(on(disk))
}

/// The same, however it is opened.
pub fn busy_in(options: Options) -> (Store, StreamId, LeaseId) {
    let store = options.create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let lease = store.lease("test", "kept", None, &[]).unwrap();
    let contents = (0..6u8).map(|n| vec![n; 3_000 + usize::from(n)]).collect();
    store.put_objects(lease, contents).unwrap();
    for n in 0..6 {
        append(&store, stream, &[n; 200]);
    }
    store.publish_chunks(vec![chunk(&store, stream, 3)]).unwrap();
    (store, stream, lease)
}

/// Everything in a stream, and the bytes of every leased object.
pub fn shown(store: &Store, stream: StreamId) -> (u64, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let view = store.view(stream).unwrap();
    let tail = view.tail.iter().map(|(_, p)| store.payload_bytes(p).unwrap()).collect();
    let snapshot = store.snapshot().unwrap();
    let leases = snapshot.list::<sealstone::manifest::LeaseRow>(.., usize::MAX).unwrap();
    let objects = leases.iter().filter(|(_, row)| row.holder == "test").flat_map(|(_, row)| {
        row.objects.iter().map(|object| store.fetch(*object).unwrap()).collect::<Vec<_>>()
    });
    (view.record_count(), tail, objects.collect())
}

#[track_caller]
pub fn assert_good(disk: &SimDisk, path: &Path) {
    let options = CheckOptions { disk: Some(Arc::new(disk.clone())), ..CheckOptions::default() };
    let report = check(path, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(report.is_good() && report.warnings == 0, "{findings:?}");
}

/// Is a copy the store as it stood, unsealed records and all, good to `check`, and can one go on
/// writing into it?
#[test]
fn p1_a_backup_beside_its_writer_is_the_store() {
    let disk = sim(1);
    let (store, stream, _) = busy(&disk);
    append(&store, stream, &[9; 20_000]);
    let claim = store.claim(&ResourceKey(b"thing".to_vec()), ClaimKind::Maintenance).unwrap();
    let before = shown(&store, stream);
    let commit = store.info().unwrap().commit;
    let backup = store.backup(to()).unwrap();
    assert_eq!(backup.commit, store.info().unwrap().commit);
    assert!(backup.commit >= commit && backup.onto.is_none());
    assert!(backup.files >= 2 && backup.files_copied == backup.files && backup.journals == 1);
    append(&store, stream, &[10; 30]);
    store.barrier().unwrap();
    assert_good(&disk, &to());

    let reader = on(&disk.process(3)).open_read_only(to()).unwrap();
    assert_eq!(reader.info().unwrap().commit, backup.commit);
    assert_eq!(reader.info().unwrap().witness, Some(backup.commit));
    assert_eq!(shown(&reader, stream), before);
    assert_eq!(reader.snapshot().unwrap().count(Table::Claims).unwrap(), 0);
    reader.close().unwrap();
    let copy = on(&disk.process(4)).open(to()).unwrap();
    assert_eq!(shown(&copy, stream), before);
    assert!(copy.recovery().ended.is_empty(), "it was left as closed");
    append(&copy, stream, &[11; 40]);
    copy.publish_chunks(vec![chunk(&copy, stream, 2)]).unwrap();
    copy.reclaim(Budget::default()).unwrap();
    assert!(copy.accounts().unwrap().are_closed());
    copy.close().unwrap();
    assert_good(&disk, &to());
    drop(claim);
    assert_eq!(store.view(stream).unwrap().record_count(), before.0 + 1);
}

/// Is only copied what is missing, and does what nothing names any more go?
#[test]
fn a_second_backup_copies_what_is_new_and_drops_what_went() {
    let disk = sim(2);
    let (store, stream, lease) = busy(&disk);
    let first = store.backup(to()).unwrap();
    let again = store.backup(to()).unwrap();
    assert_eq!((again.files_copied, again.bytes_copied, again.files_removed), (0, 0, 0));
    assert_eq!(again.onto, Some(first.commit));
    append(&store, stream, &[20; 90]);
    store.publish_chunks(vec![chunk(&store, stream, 4)]).unwrap();
    store.retire(&[Thing::Lease(lease)], "test").unwrap();
    store.reclaim(Budget::default()).unwrap();
    let last = store.backup(to()).unwrap();
    assert_eq!(last.onto, Some(again.commit));
    assert!(last.files_copied >= 1 && last.files_copied < last.files, "{last:?}");
    assert!(last.files_removed >= 1, "{last:?}");
    assert_good(&disk, &to());
    let reader = on(&disk.process(5)).open_read_only(to()).unwrap();
    assert_eq!(shown(&reader, stream), shown(&store, stream));
}

/// Beside a writer in another process, from a handle that may only read: is everything in it that
/// was acknowledged before, and did reading change nothing of the store?
#[test]
fn g20_a_reader_backs_up_beside_the_writer() {
    let disk = sim(3);
    let (store, stream, _) = busy(&disk);
    let accepted =
        store.append(vec![sealstone::engine::Append { stream, payload: vec![7; 70] }]).unwrap();
    store.wait(&accepted.ticket, Level::Durable).unwrap();
    let before = shown(&store, stream);
    let reader = on(&disk.process(6)).open_read_only(root()).unwrap();
    let files = |path: &Path| {
        let mut names: Vec<String> =
            disk.list(path).unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    };
    let folders = [root(), layout::tmp_dir(&root()), layout::journal_dir(&root())];
    let there: Vec<_> = folders.iter().map(|folder| files(folder)).collect();
    let backup = reader.backup(to()).unwrap();
    assert_eq!(folders.iter().map(|folder| files(folder)).collect::<Vec<_>>(), there);
    assert_eq!(backup.commit, store.info().unwrap().commit);
    let copy = on(&disk.process(7)).open(to()).unwrap();
    assert_eq!(shown(&copy, stream), before);
    copy.close().unwrap();
    // And of what a killed writer left.
    disk.kill();
    drop((store, reader));
    let after = disk.process(8);
    let reader = on(&after).open_read_only(root()).unwrap();
    reader.backup("/data/other.stone").unwrap();
    let copy = on(&after).open("/data/other.stone").unwrap();
    assert_eq!(shown(&copy, stream), before);
}

/// What is not an earlier backup of this store, and free: is it refused by its kind, and untouched?
#[test]
fn g17_a_target_that_is_something_else_is_refused() {
    let disk = sim(4);
    let (store, _, _) = busy(&disk);
    let kind = |path: &str| store.backup(path).unwrap_err().kind();
    assert_eq!(kind("/data/run.stone"), ErrorKind::Invalid);
    assert_eq!(kind("/data/run.stone/journal"), ErrorKind::Invalid);
    assert_eq!(kind("/data/run.stone/tmp/new"), ErrorKind::Invalid);
    assert_eq!(kind("/data/none/new"), ErrorKind::Io);
    assert_eq!(kind("/data"), ErrorKind::Exists);
    disk.open(Path::new("/data/file"), Access::CreateNew).unwrap();
    assert_eq!(kind("/data/file"), ErrorKind::Exists);

    on(&disk.process(2)).create("/data/foreign.stone").unwrap().close().unwrap();
    let listed = disk.list(Path::new("/data/foreign.stone")).unwrap().len();
    assert_eq!(kind("/data/foreign.stone"), ErrorKind::Foreign);
    assert_eq!(disk.list(Path::new("/data/foreign.stone")).unwrap().len(), listed);
    // The same without its manifest is no place for a backup either.
    let gone = layout::manifest(Path::new("/data/foreign.stone"));
    disk.rename(&gone, Path::new("/data/kept")).unwrap();
    assert_eq!(kind("/data/foreign.stone"), ErrorKind::Exists);

    store.backup(to()).unwrap();
    let reader = on(&disk.process(3)).open_read_only(to()).unwrap();
    assert_eq!(kind("/data/copy.stone"), ErrorKind::InUse);
    reader.close().unwrap();
    let writer = on(&disk.process(3)).open(to()).unwrap();
    assert_eq!(kind("/data/copy.stone"), ErrorKind::InUse);
    writer.close().unwrap();
    // It was written to: it is a store of its own now, and backs up to nowhere from here.
    assert_eq!(kind("/data/copy.stone"), ErrorKind::Conflict);
    let newer = on(&disk.process(3)).open(to()).unwrap();
    for name in ["a", "b", "c"] {
        newer.create_stream(name).unwrap();
    }
    let error = newer.backup(root()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    store.close().unwrap();
    let error = newer.backup(root()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
}

/// Is an older store refused as the source of a newer backup?
#[test]
fn g13_a_newer_backup_is_not_replaced_by_an_older_store() {
    let disk = sim(5);
    let (store, _, _) = busy(&disk);
    store.backup("/data/old.stone").unwrap();
    store.create_stream("later").unwrap();
    store.backup(to()).unwrap();
    let old = on(&disk.process(3)).open_read_only("/data/old.stone").unwrap();
    let error = old.backup(to()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.cause().contains("commit"), "{error}");
}

/// A backup during which everything is retired and reclaimed, from inside its own progress.
fn backup_under_reclaim(seed: u64) -> Result<sealstone::engine::Backup> {
    let disk = sim(seed);
    let (store, stream, lease) = busy(&disk);
    let other = store.clone();
    let mut is_done = false;
    let mut meanwhile = |at: BackupProgress| {
        if at.part == "copy" && !is_done {
            is_done = true;
            other.publish_chunks(vec![chunk(&other, stream, 1)]).unwrap();
            other.retire(&[Thing::Lease(lease), Thing::Stream(stream)], "test").unwrap();
            let reclaimed = other.reclaim(Budget::default()).unwrap();
            assert!(reclaimed.is_held != (reclaimed.files > 0), "{reclaimed:?}");
        }
        ControlFlow::Continue(())
    };
    let before = shown(&store, stream);
    let backup = store.backup_with(to(), &BackupOptions::default(), &mut meanwhile)?;
    let reader = on(&disk.process(2)).open_read_only(to()).unwrap();
    assert_eq!(shown(&reader, stream), before);
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert!(!reclaimed.is_held && reclaimed.files > 0, "{reclaimed:?}");
    Ok(backup)
}

/// Does nothing go that the copy still needs, whatever is retired meanwhile; and is it the hold
/// that keeps it?
#[test]
fn g8_reclaim_waits_for_the_copy_and_the_mutant_is_caught() {
    backup_under_reclaim(6).unwrap();
    let _off = switch_off(Protection::HoldWhileCopied);
    assert!(backup_under_reclaim(6).is_err());
}

/// A backup onto an earlier one in which a file went bad; whether the new one is good.
fn onto_a_damaged_one(seed: u64) -> bool {
    let disk = sim(seed);
    let (store, _, _) = busy(&disk);
    store.backup(to()).unwrap();
    let (_, row) = store.snapshot().unwrap().list::<FileRow>(.., 1).unwrap().remove(0);
    let path = layout::sealed(&to(), &row.digest, row.unique, small().sealed_folders);
    let file = disk.open(&path, Access::ReadWrite).unwrap();
    let mut bytes = read_whole(&*file, 1 << 20).unwrap();
    bytes[500] ^= 1;
    write_all_at(&*file, &bytes, 0).unwrap();
    file.sync_data().unwrap();
    let again = store.backup(to()).unwrap();
    assert_eq!(again.onto, Some(again.commit));
    let options = CheckOptions { disk: Some(Arc::new(disk.clone())), ..CheckOptions::default() };
    check(to(), &options, &mut |_| ControlFlow::Continue(())).unwrap().is_good()
}

/// P3: is every digest verified before the switch, and what the medium lost copied again?
#[test]
fn p3_what_does_not_read_back_is_copied_again_and_the_mutant_is_caught() {
    assert!(onto_a_damaged_one(7));
    let _off = switch_off(Protection::VerifyBeforeSwitch);
    assert!(!onto_a_damaged_one(7));
}

/// Ended by its caller at any moment: is the earlier backup whole, and does the next call finish?
#[test]
fn a_backup_that_is_cancelled_leaves_the_earlier_one() {
    let disk = sim(8);
    let (store, stream, _) = busy(&disk);
    let first = store.backup(to()).unwrap();
    for stop in 0.. {
        append(&store, stream, &[stop as u8; 50]);
        store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
        let mut left = stop;
        let mut until = |_: BackupProgress| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match store.backup_with(to(), &BackupOptions::default(), &mut until) {
            Ok(done) => {
                assert!(stop > 4 && done.commit > first.commit);
                break;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error:?}");
                assert_good(&disk, &to());
                let reader = on(&disk.process(9)).open_read_only(to()).unwrap();
                assert_eq!(reader.info().unwrap().commit, first.commit);
            }
        }
    }
    assert_good(&disk, &to());
}

/// A target that runs full: is the earlier backup whole, and the store not halted?
#[test]
fn g16_a_full_disk_under_the_target_changes_nothing() {
    let disk = sim(9);
    let (store, stream, _) = busy(&disk);
    let other = sim(10);
    let options = BackupOptions { disk: Some(Arc::new(other.clone())), ..BackupOptions::default() };
    let go_on = &mut |_: BackupProgress| ControlFlow::Continue(());
    let first = store.backup_with(to(), &options, go_on).unwrap();
    let lease = store.lease("test", "more", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![3; 60_000]]).unwrap();
    other.set_capacity(Some(other.used() + (20 << 10)));
    let error = store.backup_with(to(), &options, go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error:?}");
    append(&store, stream, &[1; 10]);
    store.barrier().unwrap();
    assert_good(&other, &to());
    other.set_capacity(None);
    assert!(store.backup_with(to(), &options, go_on).unwrap().commit > first.commit);
    assert_good(&other, &to());
}

/// The same on a real disk, beside threads that write, seal, retire and reclaim.
#[test]
fn p1_a_backup_beside_busy_threads_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("run.stone"), dir.path().join("copy.stone"));
    let store = Store::options().limits(small()).create(&path).unwrap();
    let stream = store.create_stream("s").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let busy = |round: u8| -> Result<()> {
        append(&store, stream, &[round; 120]);
        store.barrier()?;
        let lease = store.lease("test", "busy", None, &[])?;
        store.put_objects(lease, vec![vec![round; 9_000]])?;
        store.publish_chunks(vec![chunk(&store, stream, 1)])?;
        store.retire(&[Thing::Lease(lease)], "test")?;
        store.reclaim(Budget::default()).map(|_| ())
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0u8;
            while !is_over.load(std::sync::atomic::Ordering::Acquire) {
                round = round.wrapping_add(1);
                busy(round).unwrap();
            }
        });
        let reader = Store::options().limits(small()).open_read_only(&path).unwrap();
        for source in [&store, &reader, &store] {
            let acknowledged = source.view(stream).unwrap().record_count();
            source.backup(&to).unwrap();
            let copy = Store::options().limits(small()).open_read_only(&to).unwrap();
            assert!(copy.view(stream).unwrap().record_count() >= acknowledged);
            copy.close().unwrap();
            let report =
                check(&to, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(report.is_good() && report.warnings == 0, "{:?}", report.findings);
        }
        is_over.store(true, std::sync::atomic::Ordering::Release);
        writer.join().unwrap();
    });
}
