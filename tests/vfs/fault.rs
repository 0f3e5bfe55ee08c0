//! Does each fault do what it says, once and for ever, and nothing else?

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sealstone::vfs::sim::{Fault, FaultKind, Outcomes, Profile, SimDisk, SyncFailure};
use sealstone::vfs::{
    Access, Disk, File, LockRange, Operation, Sharing, read_exact_at, read_whole, write_all_at,
};

const PATH: &str = "/a";

/// A disk with one durable file of 12,000 bytes, old content 1, newer content 2.
fn disk() -> (SimDisk, Arc<dyn File>) {
    let disk = SimDisk::new(9);
    let file = disk.open(Path::new(PATH), Access::CreateNew).unwrap();
    for byte in [1, 2] {
        write_all_at(&*file, &[byte; 12_000], 0).unwrap();
        file.sync_data().unwrap();
    }
    disk.sync_dir(Path::new("/")).unwrap();
    (disk, file)
}

fn next(disk: &SimDisk, kind: FaultKind) -> Fault {
    Fault::new(disk.operations() + 1, kind)
}

fn read(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 12_000];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// What a power failure leaves of the file now, if nothing pending survives.
fn durable(disk: &SimDisk) -> Vec<u8> {
    let log = disk.events();
    let outcomes = Outcomes { profile: Profile::PosixHarshest, cut: log.len(), pending: vec![] };
    let image = log.image(&outcomes).disk();
    read_whole(&*image.open(Path::new(PATH), Access::Read).unwrap(), 1 << 20).unwrap()
}

/// Do the plain refusals fail one operation with the kernel's own error, change nothing, and pass?
#[test]
fn plain_faults_refuse_once() {
    type Attempt = fn(&SimDisk, &dyn File) -> io::Result<()>;
    let write: Attempt = |_, file| file.write_at(b"x", 0).map(drop);
    let open: Attempt = |disk, _| disk.open(Path::new(PATH), Access::Read).map(drop);
    let lock: Attempt = |_, file| file.try_lock(LockRange::WHOLE, Sharing::Shared).map(drop);
    for (kind, attempt, expected) in [
        (FaultKind::Eio, write, "Input/output error"),
        (FaultKind::Enospc, write, "No space left on device"),
        (FaultKind::Eintr, write, "Interrupted system call"),
        (FaultKind::Emfile, open, "Too many open files"),
        (FaultKind::LockUnsupported, lock, "Operation not supported"),
    ] {
        let (disk, file) = disk();
        let before = disk.counts();
        disk.inject(next(&disk, kind));
        let refused = attempt(&disk, &*file).unwrap_err().to_string();
        assert!(refused.contains(expected), "{kind:?}: {refused}");
        assert_eq!(read(&*file).unwrap(), [2; 12_000], "{kind:?}");
        assert_eq!(disk.counts().open_handles, before.open_handles, "{kind:?}");
        let fired = disk.fired();
        assert_eq!((fired.len(), fired[0].kind), (1, kind));
        attempt(&disk, &*file).unwrap();
    }
}

/// Does a fault for ever stay, wait for its path and operation, and go when it is cleared?
#[test]
fn a_fault_for_ever_stays_where_it_belongs() {
    let (disk, file) = disk();
    let other = disk.open(Path::new("/b"), Access::CreateNew).unwrap();
    let fault = next(&disk, FaultKind::Eio).on("/a").only(Operation::Write).forever();
    disk.inject(fault);
    for _ in 0..3 {
        assert!(file.write_at(b"x", 0).is_err());
        file.sync_data().unwrap();
        other.write_at(b"x", 0).unwrap();
    }
    assert_eq!(disk.fired().len(), 3);
    disk.clear_faults();
    file.write_at(b"x", 0).unwrap();
}

/// Are interruptions for ever survivable for a caller that tries again, as real ones are?
#[test]
fn interruptions_for_ever_let_a_patient_caller_through() {
    let (disk, file) = disk();
    disk.inject(next(&disk, FaultKind::Eintr).forever());
    write_all_at(&*file, &[3; 100], 0).unwrap();
    let mut bytes = [0; 100];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    assert_eq!(bytes, [3; 100]);
    assert!(disk.fired().len() >= 2);
}

/// Does a short write write a true part, and the write after it fail?
#[test]
fn a_short_write_is_followed_by_an_error() {
    let (disk, file) = disk();
    disk.inject(next(&disk, FaultKind::ShortWrite));
    let written = file.write_at(&[3; 1000], 0).unwrap();
    assert!((1..1000).contains(&written));
    let bytes = read(&*file).unwrap();
    assert!(bytes[..written].iter().all(|b| *b == 3) && bytes[written..].iter().all(|b| *b == 2));
    assert!(file.write_at(&[3; 1000], 0).is_err());
    file.write_at(&[3; 1000], 0).unwrap();
}

/// Do false reads return something else, once, and leave the disk as it is?
#[test]
fn false_reads_lie_once() {
    for kind in [FaultKind::ShortRead, FaultKind::BitFlip, FaultKind::StaleRead] {
        let (disk, file) = disk();
        disk.inject(next(&disk, kind));
        let wrong = read(&*file).unwrap();
        match kind {
            FaultKind::ShortRead => {
                assert!(!wrong.is_empty() && wrong.len() < 12_000);
                assert!(wrong.iter().all(|byte| *byte == 2));
            }
            FaultKind::BitFlip => {
                let flipped =
                    |bytes: &[u8]| bytes.iter().map(|b| (b ^ 2).count_ones()).sum::<u32>();
                assert_eq!((wrong.len(), flipped(&wrong)), (12_000, 1));
            }
            _ => assert_eq!(wrong, [1; 12_000], "what was there before the last sync"),
        }
        assert_eq!(read(&*file).unwrap(), [2; 12_000], "{kind:?}");
    }
    let (disk, file) = disk();
    let other = disk.open(Path::new("/b"), Access::CreateNew).unwrap();
    write_all_at(&*other, &[7; 12_000], 0).unwrap();
    disk.inject(next(&disk, FaultKind::MisdirectedRead).on("/a"));
    // A read that would be misdirected to equal bytes does not count.
    let wrong = (0..100).map(|_| read(&*file).unwrap()).find(|bytes| *bytes != [2; 12_000]);
    assert!(wrong.is_some_and(|bytes| bytes[..512] == [7; 512]));
    assert_eq!(disk.fired().len(), 1);
    assert_eq!(read(&*file).unwrap(), [2; 12_000]);
}

/// A failed sync once let a second one succeed without a byte on the disk (fsync on Linux before
/// 4.16 and, seen by a writer that retries, to this day). What do the four failures leave in the
/// cache, after an eviction, and on the medium?
#[test]
fn a_failed_sync_leaves_what_its_kind_says() {
    for how in [
        SyncFailure::NothingKept,
        SyncFailure::RandomPart,
        SyncFailure::CacheReverted,
        SyncFailure::NeverAgain,
    ] {
        let (disk, file) = disk();
        file.write_at(&[3; 12_000], 0).unwrap();
        disk.inject(next(&disk, FaultKind::SyncFails(how)));
        file.sync_data().unwrap_err();
        let cached = read(&*file).unwrap();
        let reverted = how == SyncFailure::CacheReverted;
        assert_eq!(cached, [if reverted { 2 } else { 3 }; 12_000], "{how:?}");
        let retried = file.sync_data();
        assert_eq!(retried.is_err(), how == SyncFailure::NeverAgain, "{how:?}");
        let after = durable(&disk);
        match how {
            SyncFailure::RandomPart => assert!(after.iter().all(|byte| [2, 3].contains(byte))),
            _ => assert_eq!(after, [2; 12_000], "{how:?}: the second sync wrote nothing"),
        }
        file.evict().unwrap();
        assert_eq!(read(&*file).unwrap(), after, "{how:?}: an eviction shows the medium");
        // What is written later does sync, unless the file never syncs again.
        file.write_at(b"later", 0).unwrap();
        assert_eq!(file.sync_data().is_ok(), how != SyncFailure::NeverAgain, "{how:?}");
        let kept = &durable(&disk)[..5] == b"later";
        assert_eq!(kept, how != SyncFailure::NeverAgain, "{how:?}");
    }
}

/// Does an eviction keep what is dirty, as the kernel's does?
#[test]
fn an_eviction_keeps_dirty_pages() {
    let (disk, file) = disk();
    file.write_at(&[3; 6000], 0).unwrap();
    disk.inject(next(&disk, FaultKind::SyncFails(SyncFailure::NothingKept)));
    file.sync_data().unwrap_err();
    file.write_at(&[4; 100], 0).unwrap();
    file.evict().unwrap();
    let bytes = read(&*file).unwrap();
    assert!(bytes[..100].iter().all(|byte| *byte == 4));
    assert!(bytes[100..].iter().all(|byte| *byte == 2));
}

/// Does a directory's failed sync leave its names undecided?
#[test]
fn a_failed_directory_sync_leaves_names_pending() {
    let (disk, _file) = disk();
    disk.rename(Path::new(PATH), Path::new("/b")).unwrap();
    disk.inject(next(&disk, FaultKind::SyncFails(SyncFailure::NothingKept)));
    disk.sync_dir(Path::new("/")).unwrap_err();
    let mut cursor = disk.events().cursor(Profile::PosixHarshest);
    cursor.advance_to(usize::MAX);
    assert_eq!(cursor.pending_len(), 1);
}

/// Does a full disk take what fits, refuse new space, allow overwrites, and recover once something
/// is freed?
#[test]
fn a_full_disk_recovers_when_something_is_freed() {
    let (disk, file) = disk();
    disk.set_capacity(Some(5 * 4096));
    let ballast = disk.open(Path::new("/ballast"), Access::CreateNew).unwrap();
    assert_eq!(disk.space(Path::new("/")).unwrap().free, 2 * 4096);
    assert_eq!(ballast.write_at(&[1; 20_000], 100).unwrap(), 2 * 4096 - 100, "what fits");
    let full = |result: io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    };
    full(ballast.write_at(&[1], 8192).map(drop));
    full(disk.open(Path::new("/b"), Access::CreateNew).map(drop));
    full(disk.mkdir(Path::new("/d")));
    file.write_at(&[9; 12_000], 0).unwrap();
    disk.unlink(Path::new("/ballast")).unwrap();
    full(disk.mkdir(Path::new("/d")));
    drop(ballast);
    disk.mkdir(Path::new("/d")).unwrap();
    assert_eq!(disk.used(), 3 * 4096);
    file.set_len(1).unwrap();
    assert_eq!(disk.used(), 4096);
}

/// The same as a fault: does it last exactly until something is freed?
#[test]
fn an_injected_full_disk_lasts_until_something_is_freed() {
    let (disk, file) = disk();
    disk.inject(next(&disk, FaultKind::EnospcUntilFreed));
    for _ in 0..3 {
        let refused = file.write_at(&[1; 10], 20_000).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        file.write_at(&[1; 10], 0).unwrap();
    }
    file.set_len(4096).unwrap();
    file.write_at(&[1; 10], 20_000).unwrap();
    disk.mkdir(Path::new("/d")).unwrap();
}

/// Does the count of handles bind each process on its own?
#[test]
fn handles_run_out_and_come_back() {
    let (disk, file) = disk();
    disk.set_handles_max(Some(2));
    let second = disk.open(Path::new(PATH), Access::Read).unwrap();
    let refused = disk.open(Path::new(PATH), Access::Read).unwrap_err();
    assert_eq!(refused.to_string(), io::Error::from_raw_os_error(24).to_string());
    assert!(disk.list(Path::new("/")).is_err());
    assert!(disk.process(2).open(Path::new(PATH), Access::Read).is_ok());
    drop(second);
    disk.open(Path::new(PATH), Access::Read).unwrap();
    drop(file);
    assert_eq!(disk.counts().open_handles, 0);
}

/// Is a lock that nobody holds refused when the fault says so, of files and of directories?
#[test]
fn a_refused_lock_is_refused_once() {
    let (disk, file) = disk();
    disk.inject(next(&disk, FaultKind::LockRefused));
    assert!(!file.try_lock(LockRange::WHOLE, Sharing::Exclusive).unwrap());
    assert!(file.try_lock(LockRange::WHOLE, Sharing::Exclusive).unwrap());
    disk.inject(next(&disk, FaultKind::LockRefused));
    assert!(disk.lock_dir(Path::new("/"), Sharing::Shared).unwrap().is_none());
    assert!(disk.lock_dir(Path::new("/"), Sharing::Shared).unwrap().is_some());
}

/// Does SIGKILL free a process's locks, wake who waits for them, keep what it wrote, and stop it?
#[test]
fn a_killed_process_loses_its_locks_and_nothing_else() {
    let (disk, _file) = disk();
    let (victim, heir) = (disk.process(7), disk.process(8));
    let root = Path::new("/");
    let own = victim.open(Path::new(PATH), Access::ReadWrite).unwrap();
    own.lock(LockRange::WHOLE, Sharing::Exclusive).unwrap();
    let held = victim.lock_dir(root, Sharing::Exclusive).unwrap();
    assert!(held.is_some());
    own.write_at(b"mine", 0).unwrap();
    let file = heir.open(Path::new(PATH), Access::ReadWrite).unwrap();
    assert!(!file.try_lock(LockRange::WHOLE, Sharing::Shared).unwrap());
    let waiter = thread::spawn(move || {
        file.lock(LockRange::WHOLE, Sharing::Shared).unwrap();
        let mut bytes = [0; 4];
        read_exact_at(&*file, &mut bytes, 0).unwrap();
        bytes
    });
    thread::sleep(Duration::from_millis(20));
    assert!(!waiter.is_finished());
    victim.kill();
    assert_eq!(&waiter.join().unwrap(), b"mine");
    assert!(heir.lock_dir(root, Sharing::Exclusive).unwrap().is_some());
    assert!(own.write_at(b"more", 0).is_err());
    assert!(victim.open(Path::new(PATH), Access::Read).is_err());
    drop((own, held));
    assert_eq!(heir.counts().locks_held, 0);
}

/// Does a full sweep end: does each kind strike at every operation it suits, and no later?
#[test]
fn a_sweep_strikes_each_suitable_operation_once() {
    let content: Vec<u8> = (0..3000u16).map(|at| (at / 512) as u8).collect();
    let run = |disk: &SimDisk| -> io::Result<()> {
        let root = Path::new("/");
        let file = disk.open(&root.join("new"), Access::CreateNew)?;
        write_all_at(&*file, &content, 0)?;
        file.sync_data()?;
        disk.rename(&root.join("new"), &root.join("named"))?;
        disk.link(&root.join("named"), &root.join("second"))?;
        disk.sync_dir(root)?;
        file.try_lock(LockRange::WHOLE, Sharing::Shared)?;
        let mut bytes = [0; 3000];
        read_exact_at(&*file, &mut bytes, 0)?;
        if bytes == content[..] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    };
    let mut struck = 0;
    for kind in FaultKind::ALL {
        let mut at = 0;
        loop {
            let disk = SimDisk::new(1);
            disk.inject(Fault::new(at, kind));
            let _ = run(&disk);
            let Some(fired) = disk.fired().first().cloned() else { break };
            assert!(kind.suits(fired.what) && fired.operation >= at, "{fired:?}");
            assert_eq!(disk.counts().open_handles, 0);
            struck += 1;
            at = fired.operation + 1;
        }
        let reads_back_the_same = matches!(kind, FaultKind::StaleRead);
        assert!(at > 0 || reads_back_the_same, "{kind:?} never struck");
    }
    assert!(struck > 20, "{struck}");
}
