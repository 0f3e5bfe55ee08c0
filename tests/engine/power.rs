//! What the power, the disk and other threads may do between two steps.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{append, chunk, on, read, root, sim, small};
use sealstone::engine::{Append, Budget, Store, Thing};
use sealstone::format::layout;
use sealstone::ids::StreamId;
use sealstone::journal::Level;
use sealstone::manifest::{ClaimKind, JournalRow, LeaseRow, Reading, Table};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};
use sealstone::vfs::{Access, Disk, Operation};
use sealstone::{ErrorKind, Limits};

fn open_as(disk: &SimDisk, limits: &Limits) -> sealstone::Options {
    Store::options().limits(limits.clone()).disk(std::sync::Arc::new(disk.clone()))
}

/// Ends the process of `disk` as SIGKILL does, and gives another one of the same world.
fn killed(disk: &SimDisk, store: Store, pid: u32) -> SimDisk {
    disk.kill();
    drop(store);
    disk.process(pid)
}

fn append_durably(store: &Store, stream: StreamId, payload: &[u8]) {
    let group = vec![Append { stream, payload: payload.to_vec() }];
    let accepted = store.append(group).unwrap();
    store.wait(&accepted.ticket, Level::Durable).unwrap();
}

fn journals(disk: &SimDisk) -> Vec<std::path::PathBuf> {
    let dir = layout::journal_dir(&root());
    let mut names: Vec<String> =
        disk.list(&dir).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names.iter().map(|name| dir.join(name)).collect()
}

fn flip(disk: &SimDisk, path: &Path, offset: u64) {
    let file = disk.open(path, Access::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, offset).unwrap();
    file.write_at(&[byte[0] ^ 0x20], offset).unwrap();
    file.sync_data().unwrap();
}

/// Offset of `needle` in a file.
fn find(disk: &SimDisk, path: &Path, needle: &[u8]) -> u64 {
    let file = disk.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes.windows(needle.len()).position(|window| window == needle).unwrap() as u64
}

/// Does a queue full of small records ever make `append` wait for nobody?
///
/// A group was measured by its payloads and the queue by its frames: between the two bounds the
/// call went round without writing anything.
#[test]
fn append_writes_the_queue_itself_when_nobody_else_does() {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let disk = sim(21);
        let mut limits = small();
        limits.queue_bytes = 4096;
        let store = open_as(&disk, &limits).create(root()).unwrap();
        let stream = store.create_stream("s").unwrap();
        (0..200u8).for_each(|n| _ = append(&store, stream, &[n]));
        done.send(read(&store, stream).len()).unwrap();
    });
    assert_eq!(wait.recv_timeout(Duration::from_secs(60)), Ok(200), "append never returned");
}

/// Is a checkpoint of a future that a rewind took back ever given again?
#[test]
fn a_checkpoint_beyond_a_rewind_is_passed_over() {
    let disk = sim(22);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    (0..5u8).for_each(|n| _ = append(&store, stream, &[n]));
    let early = store.checkpoint(1, &[stream], b"five").unwrap();
    (5..9u8).for_each(|n| _ = append(&store, stream, &[n]));
    store.checkpoint(1, &[stream], b"nine").unwrap();
    let late = store.latest_checkpoint(1).unwrap();
    store.rewind(&late.cursors).unwrap();
    store.rewind(&late.cursors).unwrap();
    assert_eq!(store.latest_checkpoint(1).unwrap().state, b"nine");

    store.retire(&[Thing::Checkpoint(1, late.id)], "to go back further").unwrap();
    let first = store.latest_checkpoint(1).unwrap();
    assert_eq!((first.id, &first.state[..]), (early, &b"five"[..]));
    let late = store.checkpoint(1, &[stream], b"nine again").unwrap();
    store.rewind(&first.cursors).unwrap();
    (5..12u8).for_each(|n| _ = append(&store, stream, &[n + 100]));
    assert_eq!(store.latest_checkpoint(1).unwrap().id, early, "not {late}");
    let cursors = late_cursors(&store, late.0, stream);
    assert_eq!(store.rewind(&cursors).unwrap_err().kind(), ErrorKind::Conflict);
}

fn late_cursors(
    store: &Store,
    checkpoint: u64,
    stream: StreamId,
) -> Vec<sealstone::manifest::Cursor> {
    let key = (1, sealstone::ids::CheckpointId(checkpoint));
    let row = store.snapshot().unwrap().get::<sealstone::manifest::CheckpointRow>(&key).unwrap();
    row.unwrap().cursors.into_iter().filter(|cursor| cursor.stream == stream).collect()
}

/// Does forgetting a dead owner's journal leave our own of the same number in the books?
#[test]
fn a_dead_owners_journal_goes_and_ours_of_the_same_number_stays() {
    let disk = sim(23);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    append_durably(&store, stream, b"from the dead");
    let disk = killed(&disk, store, 2);
    let mut limits = small();
    limits.journal_file_bytes = 512;
    let store = open_as(&disk, &limits).open(root()).unwrap();
    append_durably(&store, stream, b"ours");
    store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
    (0..10u8).for_each(|n| append_durably(&store, stream, &[n; 100]));
    store.publish_chunks(vec![chunk(&store, stream, 11)]).unwrap();
    assert_eq!(store.snapshot().unwrap().count(Table::Journals).unwrap(), 1);
    assert_eq!(journals(&disk).len(), 1);
}

/// Does a group that is refused leave the large payloads behind that were stored for it?
#[test]
fn a_refused_group_leaves_nothing_behind() {
    let disk = sim(24);
    let mut limits = small();
    limits.payload_inline_bytes_max = 1000;
    limits.frame_bytes_max = 4096;
    let store = open_as(&disk, &limits).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    let mut group = vec![Append { stream, payload: vec![1; 3000] }];
    group.extend((0..9).map(|_| Append { stream, payload: vec![2; 900] }));
    let before = store.accounts().unwrap();
    assert_eq!(store.append(group).unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(store.snapshot().unwrap().count(Table::Leases).unwrap(), 0);
    assert_eq!(store.accounts().unwrap().live, before.live);
}

/// Does a reader tell damage in a journal from its end?
#[test]
fn g12_a_reader_tells_damage_in_a_journal() {
    let disk = sim(25);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    append_durably(&store, stream, b"first record");
    append_durably(&store, stream, b"second record");
    let path = journals(&disk)[0].clone();
    let reader = on(&disk.process(9)).open_read_only(root()).unwrap();
    assert_eq!(reader.view(stream).unwrap().record_count(), 2);
    flip(&disk, &path, find(&disk, &path, b"first record"));
    assert_eq!(reader.view(stream).unwrap_err().kind(), ErrorKind::Damage);
}

/// Does the guard of a claim ever release one that somebody took after it?
#[test]
fn p5_a_guard_releases_its_own_claim_and_no_later_one() {
    let disk = sim(26);
    let store = on(&disk).create(root()).unwrap();
    let first = store.claim(&"r".into(), ClaimKind::Build).unwrap();
    store.transact(sealstone::vfs::Step::ClaimCommit, |w| first.release_in(w)).unwrap();
    let second = store.claim(&"r".into(), ClaimKind::Build).unwrap();
    drop(first);
    assert_eq!(store.claims(9).unwrap().len(), 1);
    drop(second);
    assert_eq!(store.claims(9).unwrap().len(), 0);
}

/// What lies behind damage that was set aside: is it kept, and are its numbers not given again?
///
/// Journals behind the damage were removed as unneeded, payloads that they name were reclaimed, and
/// records appended after it lost against older ones once the damaged bytes read again.
#[test]
fn p7_what_lies_behind_set_aside_damage_is_kept() {
    let disk = sim(27);
    let mut limits = small();
    limits.payload_inline_bytes_max = 1000;
    let store = open_as(&disk, &limits).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    for n in 0..6 {
        append_durably(&store, stream, format!("record {n}").as_bytes());
    }
    let disk = killed(&disk, store, 2);
    let store = open_as(&disk, &limits).open(root()).unwrap();
    let large = vec![7u8; 5000];
    append_durably(&store, stream, &large);
    let disk = killed(&disk, store, 3);
    let damaged = journals(&disk)
        .into_iter()
        .find(|path| {
            let file = disk.open(path, Access::Read).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            bytes.windows(8).any(|window| window == b"record 3")
        })
        .unwrap();
    let offset = find(&disk, &damaged, b"record 3");
    flip(&disk, &damaged, offset);

    let refused = open_as(&disk, &limits).open(root()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
    assert!(refused.to_string().contains("set_aside_damage"), "{refused}");
    let store = open_as(&disk, &limits).set_aside_damage(true).open(root()).unwrap();
    assert!(!store.health().is_good());
    assert_eq!(read(&store, stream).len(), 3);
    append_durably(&store, stream, b"after");
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(store.snapshot().unwrap().count(Table::Leases).unwrap(), 1, "the payload is kept");
    let disk = killed(&disk, store, 4);
    assert_eq!(journals(&disk).len(), 3, "every journal is kept");
    flip(&disk, &damaged, offset);
    let store = open_as(&disk, &limits).open(root()).unwrap();
    let records = read(&store, stream);
    assert_eq!(records.last().map(Vec::as_slice), Some(&b"after"[..]), "{records:?}");
    assert_eq!(records.len(), 4);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.list::<LeaseRow>(.., 9).unwrap().len(), 1);
    assert!(snapshot.list::<JournalRow>(.., 9).unwrap().len() >= 3);
}
/// Can a store on a full disk be opened, and give back what is retired?
#[test]
fn g16_a_full_disk_opens_retires_and_reclaims() {
    let disk = sim(28);
    let mut limits = small();
    limits.ballast_bytes = 256 << 10;
    limits.low_water_bytes = 128 << 10;
    let store = open_as(&disk, &limits).create(root()).unwrap();
    let lease = store.lease("filler", "test", None, &[]).unwrap();
    store.put_objects(lease, (0..9u8).map(|n| vec![n; 200_000]).collect()).unwrap();
    assert!(store.health().is_ballast_held);
    // Others fill the disk while we are dead.
    let disk = killed(&disk, store, 2);
    disk.set_capacity(Some(disk.used()));
    let store = open_as(&disk, &limits).open(root()).unwrap();
    assert!(!store.health().is_ballast_held);
    let refused = store.put_objects(lease, vec![vec![77; 200_000]]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::DiskFull);
    store.retire(&[Thing::Lease(lease)], "no room").unwrap();
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert!(reclaimed.bytes > 0, "{reclaimed:?}");
    let lease = store.lease("again", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![1; 200_000]]).unwrap();
    assert!(store.health().is_ballast_held);
    store.close().unwrap();
}

/// Is an original given up before its copy is durable?
///
/// Over the journal budget, records were marked as copied forward when the copies were queued; the
/// write failed, the originals went with the next tidying, and a power cut took the copies.
#[test]
fn p3_copies_that_were_not_written_do_not_free_the_originals() {
    let disk = sim(29);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("slow").unwrap();
    for n in 0..8u8 {
        append_durably(&store, stream, &[n; 200]);
    }
    let disk = killed(&disk, store, 2);
    let mut limits = small();
    limits.journal_budget_bytes = 500;
    let store = open_as(&disk, &limits).open(root()).unwrap();
    let other = store.create_stream("other").unwrap();
    append(&store, other, b"x");
    let fault = Fault::new(disk.operations(), FaultKind::Enospc);
    disk.inject(fault.only(Operation::Write).on("journal").forever());
    let _ = store.barrier();
    assert!(!disk.fired().is_empty());
    let _ = store.reclaim(Budget::default());
    disk.clear_faults();
    let disk = killed(&disk, store, 3);
    let store = open_as(&disk, &limits).open(root()).unwrap();
    let expected: Vec<Vec<u8>> = (0..8u8).map(|n| vec![n; 200]).collect();
    assert_eq!(read(&store, stream), expected);
}

/// Is a publication that committed told as a failure because tidying up after it failed?
#[test]
fn p8_a_committed_publication_is_not_called_failed() {
    let disk = sim(30);
    let store = on(&disk).create(root()).unwrap();
    let stream = store.create_stream("s").unwrap();
    append_durably(&store, stream, b"one");
    let disk = killed(&disk, store, 2);
    let store = on(&disk).open(root()).unwrap();
    let fault = Fault::new(disk.operations(), FaultKind::Eio);
    disk.inject(fault.only(Operation::Unlink).on("journal").forever());
    store.publish_chunks(vec![chunk(&store, stream, 1)]).unwrap();
    assert!(!disk.fired().is_empty());
    assert!(!store.health().warnings.is_empty());
    disk.clear_faults();
    store.close().unwrap();
    let store = on(&disk).open(root()).unwrap();
    assert_eq!(read(&store, stream), [b"one".to_vec()]);
    assert!(store.accounts().unwrap().are_closed());
}

/// Does a failed build leave anything behind while the store goes on?
#[test]
fn g16_a_publication_that_found_no_room_leaves_nothing_in_tmp() {
    let disk = sim(31);
    let mut limits = small();
    limits.sealed_file_bytes = 1000;
    let store = open_as(&disk, &limits).create(root()).unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    let contents = || (0..3u8).map(|n| vec![n; 4000]).collect::<Vec<_>>();
    let mut skipped = 0;
    loop {
        let fault = Fault::new(disk.operations() + skipped, FaultKind::Enospc);
        disk.inject(fault.on("tmp"));
        let before = disk.fired().len();
        let put = store.put_objects(lease, contents());
        let struck = disk.fired().len() - before;
        disk.clear_faults();
        if put.is_ok() {
            assert_eq!(struck, 0, "a fault was swallowed");
            break;
        }
        assert_eq!(disk.list(&layout::tmp_dir(&root())).unwrap(), [], "after {skipped}");
        assert_eq!(store.reclaim(Budget::default()).unwrap().orphans, 0);
        skipped += 1;
    }
    assert!(skipped > 3, "{skipped} places were tried");
    assert!(store.accounts().unwrap().are_closed());
}

/// Does one damaged file keep all others from being compacted, or lose what still reads?
#[test]
fn p7_one_damaged_file_stops_no_other_compaction() {
    let disk = sim(32);
    let store = on(&disk).create(root()).unwrap();
    let keep = store.lease("keep", "test", None, &[]).unwrap();
    let streams: Vec<StreamId> =
        ["a", "b"].iter().map(|name| store.create_stream(name).unwrap()).collect();
    let mut kept = Vec::new();
    for (n, &stream) in streams.iter().enumerate() {
        append(&store, stream, &vec![10 + n as u8; 3000]);
        append(&store, stream, &vec![20 + n as u8; 500]);
        let mut one = chunk(&store, stream, 1);
        let mut two = chunk(&store, stream, 2);
        one.records = 1;
        two.first = sealstone::ids::Sequence(1);
        two.records = 1;
        two.content = two.content[one.content.len()..].to_vec();
        store.publish_chunks(vec![one, two.clone()]).unwrap();
        kept.push((store.put_objects(keep, vec![two.content.clone()]).unwrap()[0].0, two.content));
    }
    let victims = streams.iter().map(|stream| Thing::Stream(*stream)).collect::<Vec<_>>();
    store.retire(&victims, "test").unwrap();
    let damaged = store.fetch(kept[0].0).map(|_| damaged_file(&disk, &kept[0].1)).unwrap();
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    assert_eq!((reclaimed.compacted, reclaimed.unreadable), (1, 1), "{reclaimed:?}");
    assert_eq!(store.fetch(kept[1].0).unwrap(), kept[1].1);
    assert!(disk.meta(&damaged).unwrap().is_some(), "the damaged file is kept");
    assert!(store.accounts().unwrap().are_closed());
}

/// Flips a byte of `content` in the sealed file that holds it; returns that file.
fn damaged_file(disk: &SimDisk, content: &[u8]) -> std::path::PathBuf {
    for folder in 0..2 {
        let dir = layout::sealed_folder(&root(), folder);
        for entry in disk.list(&dir).unwrap() {
            let path = dir.join(&entry.name);
            let file = disk.open(&path, Access::Read).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            if bytes.windows(100).any(|window| window == &content[100..200]) {
                flip(disk, &path, find(disk, &path, &content[100..200]));
                return path;
            }
        }
    }
    panic!("no file holds it");
}

/// Do the books close when a crash came between an unlink and the commit that forgets the file?
#[test]
fn p10_a_file_that_is_gone_before_its_row_is_in_no_class() {
    let disk = sim(33);
    let store = on(&disk).create(root()).unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![4; 4000]]).unwrap();
    store.retire(&[Thing::Lease(lease)], "test").unwrap();
    let fault = Fault::new(disk.operations(), FaultKind::Eio);
    disk.inject(fault.only(Operation::SyncDir).on("sealed"));
    store.reclaim(Budget::default()).unwrap_err();
    let disk = killed(&disk, store, 2);
    let reader = on(&disk).open_read_only(root()).unwrap();
    let accounts = reader.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.condemned == 0, "{accounts:?}");
}
