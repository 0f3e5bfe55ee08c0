//! What every disk must do, on the real one and on the simulated one.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sealstone::vfs::{
    Access, AlignedBuffer, Disk, EntryKind, LockRange, RealDisk, Sharing, read_whole, sim::SimDisk,
    write_all_at,
};

/// Runs `test` on both disks, each with an empty directory.
fn on_both(test: impl Fn(Arc<dyn Disk>, &Path)) {
    let real = tempfile::tempdir().unwrap();
    test(RealDisk::new(), real.path());
    let sim = SimDisk::new(1);
    sim.mkdir(Path::new("/place")).unwrap();
    test(Arc::new(sim), Path::new("/place"));
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, Access::CreateNew).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
}

fn get(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    read_whole(&*disk.open(path, Access::Read).unwrap(), 1 << 20).unwrap()
}

/// Could any way of opening cut a file that is there?
#[test]
fn opening_never_truncates() {
    on_both(|disk, root| {
        let path = root.join("a");
        put(&*disk, &path, b"kept");
        for access in [Access::Read, Access::ReadWrite] {
            drop(disk.open(&path, access).unwrap());
            assert_eq!(get(&*disk, &path), b"kept");
        }
        for access in [Access::CreateNew, Access::CreateNewDirect] {
            let refused = disk.open(&path, access).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(get(&*disk, &path), b"kept");
        }
    });
}

/// Are new names private, and do links never replace?
#[test]
fn new_names_are_private_and_links_replace_nothing() {
    on_both(|disk, root| {
        let (a, b, d) = (root.join("a"), root.join("b"), root.join("d"));
        put(&*disk, &a, b"one");
        put(&*disk, &b, b"two");
        disk.mkdir(&d).unwrap();
        assert_eq!(disk.meta(&a).unwrap().unwrap().mode, 0o600);
        assert_eq!(disk.meta(&d).unwrap().unwrap().mode, 0o700);
        assert_eq!(disk.meta(&d).unwrap().unwrap().kind, EntryKind::Directory);
        assert_eq!(disk.link(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(get(&*disk, &b), b"two");
        disk.rename(&a, &b).unwrap();
        assert_eq!(get(&*disk, &b), b"one");
        assert!(disk.meta(&a).unwrap().is_none());
    });
}

/// Do locks near the end of the range of offsets, where redb keeps its own, work as others do?
#[test]
fn distant_ranges_lock() {
    on_both(|disk, root| {
        let path = root.join("a");
        put(&*disk, &path, b"");
        let one = disk.open(&path, Access::ReadWrite).unwrap();
        let two = disk.open(&path, Access::ReadWrite).unwrap();
        let far = |from: u64, to| LockRange { start: (1 << 62) + from, end: to };
        assert!(one.try_lock(far(0, Some((1 << 62) + 1)), Sharing::Exclusive).unwrap());
        assert!(!two.try_lock(far(0, None), Sharing::Shared).unwrap());
        assert!(two.try_lock(far(1, None), Sharing::Exclusive).unwrap());
        assert!(one.is_locked(far(5, Some((1 << 62) + 6))).unwrap());
        assert!(!one.is_locked(far(0, Some((1 << 62) + 1))).unwrap());
        for range in [
            LockRange { start: 5, end: Some(5) },
            LockRange { start: 6, end: Some(5) },
            LockRange { start: 1 << 63, end: None },
            LockRange { start: 0, end: Some((1 << 63) + 1) },
        ] {
            let refused = one.try_lock(range, Sharing::Exclusive).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{range:?}");
        }
        assert!(one.try_lock(LockRange { start: 0, end: Some(1 << 62) }, Sharing::Shared).unwrap());
        drop(one);
        assert!(two.try_lock(LockRange::WHOLE, Sharing::Exclusive).unwrap());
    });
}

/// Does a blocked thread get its lock when the other's handle goes, and not before?
#[test]
fn a_waiting_lock_is_woken() {
    on_both(|disk, root| {
        let path = root.join("a");
        put(&*disk, &path, b"");
        let held = disk.open(&path, Access::ReadWrite).unwrap();
        held.lock(LockRange::WHOLE, Sharing::Exclusive).unwrap();
        let (tell, told) = mpsc::channel();
        let waiter = disk.open(&path, Access::ReadWrite).unwrap();
        let thread = thread::spawn(move || {
            waiter.lock(LockRange { start: 3, end: Some(4) }, Sharing::Shared).unwrap();
            tell.send(()).unwrap();
        });
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
        drop(held);
        told.recv_timeout(Duration::from_secs(20)).unwrap();
        thread.join().unwrap();
    });
}

/// Does a directory's lock exclude other handles, and end when it is dropped?
#[test]
fn a_directory_lock_excludes_and_ends() {
    on_both(|disk, root| {
        let one = disk.lock_dir(root, Sharing::Exclusive).unwrap();
        assert!(one.is_some());
        assert!(disk.lock_dir(root, Sharing::Shared).unwrap().is_none());
        drop(one);
        let shared = disk.lock_dir(root, Sharing::Shared).unwrap();
        assert!(shared.is_some());
        assert!(disk.lock_dir(root, Sharing::Shared).unwrap().is_some());
        assert!(disk.lock_dir(root, Sharing::Exclusive).unwrap().is_none());
        assert!(disk.lock_dir(&root.join("none"), Sharing::Shared).is_err());
    });
}

/// Do direct and buffered writes of one file mix into the right content, whatever was aligned?
#[test]
fn aligned_and_other_writes_mix() {
    on_both(|disk, root| {
        let path = root.join("a");
        let file = disk.open(&path, Access::CreateNewDirect).unwrap();
        let mut buffer = AlignedBuffer::with_capacity(8192);
        let mut model = Vec::new();
        for turn in 0..4u8 {
            buffer.fill(&[turn; 8192]);
            write_all_at(&*file, buffer.as_slice(), model.len() as u64).unwrap();
            model.extend_from_slice(buffer.as_slice());
            buffer.clear();
        }
        write_all_at(&*file, b"label", model.len() as u64).unwrap();
        model.extend_from_slice(b"label");
        write_all_at(&*file, b"in the middle", 5000).unwrap();
        model[5000..5013].copy_from_slice(b"in the middle");
        buffer.fill(&[9; 4096]);
        write_all_at(&*file, buffer.as_slice(), 4096).unwrap();
        model[4096..8192].fill(9);
        file.sync_data().unwrap();
        file.evict().unwrap();
        assert_eq!(get(&*disk, &path), model);
        assert_eq!(read_whole(&*file, 1 << 20).unwrap(), model, "through the handle that wrote");
        // Asking leaves nothing behind.
        let _ = disk.direct_io(root);
        assert_eq!(disk.list(root).unwrap().len(), 1);
    });
}

/// Could opening hang or read something that is no file: a pipe, a directory, a missing one?
#[test]
fn only_regular_files_open() {
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo makes the pipe of this test");
    let disk = RealDisk::new();
    assert_eq!(disk.meta(&pipe).unwrap().unwrap().kind, EntryKind::Other);
    for access in [Access::Read, Access::ReadWrite] {
        assert_eq!(disk.open(&pipe, access).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let refused = disk.open(root.path(), access).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
    }
    std::os::unix::fs::symlink("nowhere", root.path().join("link")).unwrap();
    let link = disk.meta(&root.path().join("link")).unwrap().unwrap();
    assert_eq!(link.kind, EntryKind::Other, "a link is not what it points to");
}

/// Does a lock bind other processes and not only other handles, and end with its process?
#[test]
fn locks_bind_other_processes() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    let disk = RealDisk::new();
    put(&*disk, &path, b"");
    // flock(1) takes what lock_dir takes, from another process.
    let held = disk.lock_dir(root.path(), Sharing::Exclusive).unwrap();
    assert!(held.is_some());
    let elsewhere = || {
        let mut other = std::process::Command::new("flock");
        other.arg("--nonblock").arg("--shared").arg(root.path()).arg("true").status()
    };
    assert!(elsewhere().is_ok_and(|status| !status.success()), "locked out");
    drop(held);
    assert!(elsewhere().is_ok_and(|status| status.success()), "let in");
}

/// Does the world around it say something sensible?
#[test]
fn the_world_around_answers() {
    on_both(|disk, root| {
        let (first, second) = (disk.monotonic_nanos(), disk.monotonic_nanos());
        assert!(second >= first);
        assert!(disk.wall_nanos().is_some_and(|now| now > 1_600_000_000_000_000_000));
        assert!(!disk.boot_id().is_empty() && !disk.host().is_empty() && disk.pid() > 0);
        assert_eq!(disk.boot_id(), disk.boot_id());
        let mut chance = [[0; 32]; 2];
        for bytes in &mut chance {
            disk.entropy(bytes).unwrap();
        }
        assert_ne!(chance[0], chance[1]);
        let space = disk.space(root).unwrap();
        assert!(space.free > 0 && space.free <= space.total);
        assert!(disk.space(&root.join("none")).is_err());
    });
}
