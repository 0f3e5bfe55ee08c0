//! The single-file layout: what a directory gives by itself must be given by rows.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{append, chunk, on, read, root, sim, small};
use sealstone::engine::{Append, Budget, Options, Store, Thing};
use sealstone::format::layout;
use sealstone::ids::StreamId;
use sealstone::journal::Level;
use sealstone::manifest::{BodyRow, Reading};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Image, Profile, Rng, SimDisk};
use sealstone::vfs::{Access, Disk, Step, read_whole, write_all_at};
use sealstone::{ErrorKind, Layout, Limits};

fn single(disk: &SimDisk) -> Options {
    on(disk).layout(Layout::SingleFile)
}

/// A disk whose directory is durable.
fn world(seed: u64) -> SimDisk {
    let disk = sim(seed);
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn names(disk: &SimDisk) -> Vec<String> {
    let mut names: Vec<String> =
        disk.list(Path::new("/data")).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

/// A store's life, with everything that would make or take a file in a directory.
fn a_life(disk: &SimDisk) -> Vec<Vec<u8>> {
    let store = single(disk).create(root()).unwrap();
    disk.note([1]);
    let stream = store.create_stream("s").unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![7; 70_000], vec![8; 900]]).unwrap();
    for n in 0..8 {
        append(&store, stream, &[n; 300]);
        store.barrier().unwrap();
    }
    store.publish_chunks(vec![chunk(&store, stream, 5)]).unwrap();
    store.retire(&[Thing::Lease(lease)], "test").unwrap();
    store.reclaim(Budget::default()).unwrap();
    store.close().unwrap();
    let store = single(disk).open(root()).unwrap();
    append(&store, stream, b"last");
    store.barrier().unwrap();
    let all = read(&store, stream);
    store.close().unwrap();
    all
}

/// Calls `look` with everything that a crash under `profile` may leave of what `disk` went through,
/// and the last note before it.
fn each_image(disk: &SimDisk, profile: Profile, budget: usize, mut look: impl FnMut(&Image, u8)) {
    let mut cursor = disk.events().cursor(profile);
    let mut rng = Rng::new(3);
    loop {
        for image in cursor.images(&mut rng, budget) {
            look(&image, cursor.notes().last().map_or(0, |note| note[0]));
        }
        if cursor.advance().is_none() {
            return;
        }
    }
}

/// Is there ever a second name beside the store, at any disk operation after its creation? Whoever
/// copies a directory with it in would copy half a store.
#[test]
fn it_is_one_file_at_every_disk_operation_after_its_creation() {
    let disk = sim(1);
    a_life(&disk);
    let mut looked = 0;
    each_image(&disk, Profile::ProcessKill, 1, |image, note| {
        if note > 0 {
            assert_eq!(names(&image.disk()), ["run.stone"], "{}", image.outcomes());
            looked += 1;
        }
    });
    assert!(looked > 300, "{looked}");
}

/// What a copy of the file at this moment is: another path, the same bytes.
fn copied(disk: &SimDisk, to: &Path) {
    let from = disk.open(&root(), Access::Read).unwrap();
    let bytes = read_whole(&*from, 1 << 30).unwrap();
    let copy = disk.open(to, Access::CreateNew).unwrap();
    write_all_at(&*copy, &bytes, 0).unwrap();
}

/// Does a copy taken after a barrier, beside the living writer, hold what the store holds?
#[test]
fn a_copy_after_a_barrier_is_an_equal_store() {
    let disk = sim(2);
    let store = single(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    for n in 0..30u8 {
        append(&store, stream, &[n; 700]);
        if n == 12 {
            store.publish_chunks(vec![chunk(&store, stream, 9)]).unwrap();
        }
    }
    store.barrier().unwrap();
    let copy = PathBuf::from("/data/copy.stone");
    copied(&disk, &copy);
    append(&store, stream, b"after the copy");
    store.barrier().unwrap();
    let reader = single(&disk).open_read_only(&copy).unwrap();
    let all: Vec<Vec<u8>> = (0..30u8).map(|n| vec![n; 700]).collect();
    assert_eq!(read(&reader, stream), all);
    drop(reader);
    let writer = single(&disk).open(&copy).unwrap();
    assert_eq!(writer.id(), store.id());
    assert_eq!(read(&writer, stream), all);
    assert!(writer.accounts().unwrap().are_closed());
    assert_eq!(read(&store, stream).len(), 31);
}

/// Is the second writer told who holds the store, although no lock file lies beside it?
#[test]
fn g17_a_second_writer_is_told_by_the_file_itself_who_holds_it() {
    let disk = sim(3);
    let store = single(&disk).create(root()).unwrap();
    let other = || Store::options().limits(small()).disk(Arc::new(disk.process(4711)));
    let refused = other().open(root()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    let owner = store.owner().unwrap().0.to_string();
    assert!(refused.to_string().contains(&owner), "{refused}");
    let reader = other().open_read_only(root()).unwrap();
    assert_eq!(reader.id(), store.id());
    store.close().unwrap();
    drop(reader);
    other().open(root()).unwrap();
}

/// Does a reader in another process see what is durable, while it is written and after the writer
/// was killed, and change nothing?
#[test]
fn g20_a_reader_sees_journal_and_chunks_and_changes_nothing() {
    let disk = sim(4);
    let store = single(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let view = |events: usize| {
        let reader = single(&disk.process(9)).open_read_only(root()).unwrap();
        let seen = read(&reader, stream);
        assert!(reader.accounts().unwrap().are_closed());
        drop(reader);
        assert_eq!(disk.events().disk_operations(), events);
        seen
    };
    append(&store, stream, &[1; 100]);
    store.barrier().unwrap();
    assert_eq!(view(disk.events().disk_operations()), [vec![1; 100]]);
    append(&store, stream, &[2; 9000]);
    store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
    store.barrier().unwrap();
    assert_eq!(view(disk.events().disk_operations()), [vec![1; 100], vec![2; 9000]]);
    disk.kill();
    drop(store);
    assert_eq!(view(disk.events().disk_operations()), [vec![1; 100], vec![2; 9000]]);
}

/// Every byte that a row names, read and verified.
fn is_whole(disk: &SimDisk, stream: StreamId) -> Result<usize, String> {
    let store = single(disk).open(root()).map_err(|e| format!("open: {e:?}"))?;
    let view = store.view(stream).map_err(|e| format!("view: {e:?}"))?;
    for (_, chunk) in &view.chunks {
        store.fetch(chunk.object).map_err(|e| format!("fetch: {e:?}"))?;
    }
    let accounts = store.accounts().map_err(|e| format!("accounts: {e:?}"))?;
    if !accounts.are_closed() {
        return Err(format!("{accounts:?}"));
    }
    Ok(view.chunks.len() + view.tail.len())
}

/// A publication, cut everywhere.
fn cut_publication() -> Vec<String> {
    let disk = world(5);
    let store = single(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, &[1; 5000]);
    append(&store, stream, &[2; 100]);
    store.barrier().unwrap();
    disk.restart_log();
    store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
    append(&store, stream, &[3; 200]);
    store.barrier().unwrap();
    let mut wrong = Vec::new();
    each_image(&disk, Profile::PosixHarshest, 4, |image, _| {
        match is_whole(&image.disk(), stream) {
            Ok(2 | 3) => {}
            Ok(other) => wrong.push(format!("{other} pieces: {}", image.outcomes())),
            Err(why) => wrong.push(format!("{why}: {}", image.outcomes())),
        }
    });
    wrong
}

/// Do a row and the bytes that it names survive together, wherever power fails? And is it noticed
/// when the bytes follow in a transaction of their own?
#[test]
fn p3_rows_and_their_bytes_are_durable_together_and_the_mutant_is_caught() {
    assert_eq!(cut_publication(), Vec::<String>::new());
    let _off = switch_off(Protection::BytesWithTheirRows);
    assert!(!cut_publication().is_empty());
}

/// Is a birth cut anywhere a store or none, and does the next creation or opening leave one name?
#[test]
fn a_birth_cut_anywhere_is_whole_or_nothing_and_leaves_no_name() {
    let disk = world(6);
    disk.restart_log();
    single(&disk).create(root()).unwrap().close().unwrap();
    let (mut born, mut unborn) = (0, 0);
    for profile in Profile::ALL {
        each_image(&disk, profile, 2, |image, _| {
            let disk = image.disk();
            match single(&disk).open(root()) {
                Ok(_) => born += 1,
                Err(e) if e.kind() == ErrorKind::NoStore => {
                    unborn += 1;
                    single(&disk).create(root()).unwrap();
                }
                Err(e) => panic!("{e:?}: {}", image.outcomes()),
            }
            assert_eq!(names(&disk), ["run.stone"], "{}", image.outcomes());
        });
    }
    assert!(born > 20 && unborn > 20, "{born}, {unborn}");
}

/// Does a file that is not ours stay, although it has the name under which a store is made? And one
/// that another process is making?
#[test]
fn p7_a_strangers_file_in_the_way_stays() {
    let disk = sim(7);
    let tmp = layout::newborn(&root());
    let strange = disk.open(&tmp, Access::CreateNew).unwrap();
    write_all_at(&*strange, b"notes of mine", 0).unwrap();
    let refused = single(&disk).create(root()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    assert_eq!(read_whole(&*strange, 100).unwrap(), b"notes of mine");
    disk.unlink(&tmp).unwrap();
    let begun = disk.process(5);
    let other: Arc<dyn Disk> = Arc::new(begun.clone());
    let newborn = sealstone::manifest::Newborn::begin(&other, &root()).unwrap();
    assert_eq!(single(&disk).create(root()).unwrap_err().kind(), ErrorKind::InUse);
    begun.kill();
    single(&disk).create(root()).unwrap().close().unwrap();
    drop(newborn);
    assert_eq!(names(&disk), ["run.stone"]);
}

/// Is a manifest of one layout never taken for a store of the other?
#[test]
fn a_manifest_in_the_other_layouts_place_is_refused() {
    let disk = sim(8);
    on(&disk).create(root()).unwrap().close().unwrap();
    let inner = layout::manifest(&root());
    let refused = single(&disk).open(&inner).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let file = PathBuf::from("/data/one.stone");
    single(&disk).create(&file).unwrap().close().unwrap();
    disk.rename(&file, &inner).unwrap();
    for opened in [on(&disk).open(root()), on(&disk).open_read_only(root())] {
        let refused = opened.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Invalid | ErrorKind::Foreign), "{refused}");
    }
    assert_eq!(single(&disk).create(root()).unwrap_err().kind(), ErrorKind::Exists);
    let again = single(&disk).create(&inner).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
}

/// Do more bytes than may wait in memory reach the file, and does a crash leave none of them for
/// good when nothing names them?
#[test]
fn g8_bytes_past_the_bound_are_committed_and_swept_when_nothing_names_them() {
    let disk = sim(9);
    let store = single(&disk).create(root()).unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    let large: Vec<u8> = (0..20 << 20).map(|i: u32| (i / 3) as u8).collect();
    disk.restart_log();
    let object = store.put_objects(lease, vec![large.clone()]).unwrap()[0].0;
    assert_eq!(store.fetch(object).unwrap(), large);
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.live > large.len() as u64, "{accounts:?}");
    let log = disk.events();
    let built = (0..log.len()).find(|cut| log.step_at(*cut) == Some(Step::SealSync)).unwrap();
    let commits = (0..built).filter(|cut| log.step_at(*cut) == Some(Step::BodyCommit)).count();
    assert!(commits > 0);
    let mut cursor = log.cursor(Profile::ProcessKill);
    cursor.advance_to(built);
    let image = cursor.images(&mut Rng::new(1), 1).remove(0);
    let disk = image.disk();
    let left = single(&disk).open_read_only(root()).unwrap().accounts().unwrap();
    assert!(left.are_closed() && left.orphan > 8 << 20, "{left:?}");
    let store = single(&disk).open(root()).unwrap();
    let rows = store.snapshot().unwrap().list::<BodyRow>(.., usize::MAX).unwrap();
    assert!(rows.iter().all(|(name, _)| name == "ballast"), "{rows:?}");
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0, "{accounts:?}");
}

/// Is a full disk told before a commit runs into it, and does what gives space back still work?
#[test]
fn g16_a_full_disk_is_told_and_reclaim_still_works() {
    let disk = sim(10);
    let mut limits: Limits = small();
    limits.ballast_bytes = 512 << 10;
    limits.low_water_bytes = 1 << 20;
    let open = || single(&disk).limits(limits.clone());
    disk.set_capacity(Some(12 << 20));
    let store = open().create(root()).unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    let mut stored = 0u8;
    let full = loop {
        match store.put_objects(lease, vec![vec![stored; 300_000]]) {
            Ok(_) => stored += 1,
            Err(e) => break e,
        }
        assert!(stored < 100);
    };
    assert_eq!(full.kind(), ErrorKind::DiskFull, "{full:?}");
    assert!(stored > 5, "{stored}");
    assert!(store.health().halted.is_none());
    store.retire(&[Thing::Lease(lease)], "room").unwrap();
    store.reclaim(Budget::default()).unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![1; 300_000]]).unwrap();
    assert!(store.accounts().unwrap().are_closed());
    store.close().unwrap();
}

/// Does *Written* survive a killed process here too, and what lingered? No kernel has the bytes
/// before a commit.
#[test]
fn p1_what_is_written_survives_a_killed_process_and_the_mutant_is_caught() {
    assert_eq!(written_before_a_kill(11), [vec![1; 100], vec![2; 100], vec![3; 100]]);
    let _off = switch_off(Protection::WrittenByCommit);
    assert!(written_before_a_kill(11).len() < 3);
}

/// What is left of three records that were *Written* when the process was killed.
fn written_before_a_kill(seed: u64) -> Vec<Vec<u8>> {
    let disk = world(seed);
    let store = single(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let accepted = |n: u8| {
        let payload = vec![n; 100];
        store.append(vec![Append { stream, payload }]).unwrap()
    };
    store.wait(&accepted(1).ticket, Level::Written).unwrap();
    let second = accepted(2);
    let waited = std::pin::pin!(store.when(&second.ticket, Level::Written));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(waited.poll(&mut context), std::task::Poll::Ready(Ok(()))));
    store.wait(&accepted(3).ticket, Level::Written).unwrap();
    disk.kill();
    drop(store);
    let mut cursor = disk.events().cursor(Profile::ProcessKill);
    while cursor.advance().is_some() {}
    let image = cursor.images(&mut Rng::new(1), 1).remove(0);
    let store = single(&image.disk()).open(root()).unwrap();
    read(&store, stream)
}

/// Is a file that others may write refused, one that they may read opened, and a link told as one?
#[test]
fn a_file_that_others_may_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let open = || Store::options().limits(small()).layout(Layout::SingleFile);
    open().create(&path).unwrap().close().unwrap();
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
    mode(0o644).unwrap();
    open().open(&path).unwrap().close().unwrap();
    mode(0o666).unwrap();
    assert_eq!(open().open(&path).unwrap_err().kind(), ErrorKind::Invalid);
    open().allow_shared_root(true).open(&path).unwrap().close().unwrap();
    let link = dir.path().join("link.stone");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(open().open(&link).unwrap_err().kind(), ErrorKind::Invalid);
    std::fs::hard_link(&path, dir.path().join("hard.stone")).unwrap();
    mode(0o600).unwrap();
    let store = open().open(&path).unwrap();
    let refused = open().open(dir.path().join("hard.stone")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    drop(store);
    let left: io::Result<Vec<_>> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.unwrap().len(), 3);
}
