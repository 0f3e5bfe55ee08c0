//! A disk that is full, one that cannot be written, descriptors that run out. What needs a mount is
//! shown where the machine lets the test mount, and said loudly to be left out elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use sealstone::engine::{Append, Budget, Store, Thing};
use sealstone::ids::LeaseId;
use sealstone::vfs::RealDisk;
use sealstone::{Error, ErrorKind};

use crate::child::Orders;
use crate::content::{encode, noise, options, record, verify};
use crate::loops::listing;

/// Something mounted; taken away when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(at: &Path, args: &[&str]) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let done = Command::new("mount").args(args).arg(at).output();
        match done {
            Ok(done) if done.status.success() => Some(Self(at.to_owned())),
            other => {
                println!("NOT SHOWN: this process may not mount ({args:?}): {other:?}");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn put(store: &Store, seed: u64) -> Result<LeaseId, Error> {
    let lease = store.lease("tiny", "test", None, &[])?;
    store.put_objects(lease, vec![noise(seed, 30_000)])?;
    Ok(lease)
}

/// Puts until the disk is full. Returns what was put, and the error.
fn fill(store: &Store, from: u64) -> (Vec<LeaseId>, Error) {
    let mut leases = Vec::new();
    for seed in from.. {
        match put(store, seed) {
            Ok(lease) => leases.push(lease),
            Err(e) => return (leases, e),
        }
    }
    unreachable!("a disk without an end")
}

/// On a full disk: is intake refused as such, is everything earlier intact, and do retiring,
/// reclaiming and reopening still work? (G16)
#[test]
fn g16_a_full_disk_refuses_intake_and_gives_space_back() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"];
    let Some(tiny) = Mounted::new(&dir.path().join("tiny"), &args) else { return };
    let root = tiny.0.join("run.stone");
    let opening = || {
        let mut limits = crate::content::limits();
        limits.ballast_bytes = 256 << 10;
        limits.low_water_bytes = 512 << 10;
        options(RealDisk::new()).limits(limits)
    };
    let mut store = opening().create(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    let append = |store: &Store, from: u64, to: u64| {
        let group = (from..to).map(|n| Append { stream, payload: record(stream, n) });
        store.append(group.collect()).and_then(|_| store.barrier())
    };
    append(&store, 0, 20).unwrap();
    for round in 0..4 {
        let mut leases: Vec<LeaseId> = Vec::new();
        if round % 2 == 0 {
            // The store itself fills the disk, down to the low-water mark.
            let (put, full) = fill(&store, round * 1000);
            assert_eq!(full.kind(), ErrorKind::DiskFull, "round {round}: {full:?}");
            leases.extend(put);
        } else {
            // Another fills it, to the last byte, while the ballast is held.
            leases.extend((0..10).map(|n| put(&store, round * 1000 + n).unwrap()));
            assert!(store.health().is_ballast_held);
            let filled = std::fs::write(tiny.0.join("hog"), vec![7; 16 << 20]);
            assert!(filled.is_err(), "the disk was not full");
        }
        let refused = put(&store, 1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DiskFull, "round {round}: {refused:?}");
        let refused = append(&store, 20, 21).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DiskFull, "round {round}: {refused:?}");
        assert!(store.health().halted.is_none(), "round {round}: {:?}", store.health());
        if round >= 2 {
            drop(store);
            store = opening().open(&root).unwrap();
        }
        assert_eq!(verify(&store, &store.view(stream).unwrap()), Ok(20), "round {round}");
        assert!(leases.len() > 5, "round {round}: only {} fitted", leases.len());
        let gone: Vec<_> = leases.drain(..).map(Thing::Lease).collect();
        store.retire(&gone, "the disk is full").unwrap();
        let back = store.reclaim(Budget::default()).unwrap();
        assert!(back.files > 5, "round {round}: {back:?}");
        let _ = std::fs::remove_file(tiny.0.join("hog"));
        // Now there is room again.
        let lease = put(&store, 7).unwrap();
        store.retire(&[Thing::Lease(lease)], "test").unwrap();
    }
    append(&store, 20, 40).unwrap();
    store.close().unwrap();
    let store = opening().open(&root).unwrap();
    assert_eq!(verify(&store, &store.view(stream).unwrap()), Ok(40));
    assert!(store.accounts().unwrap().are_closed());
}

/// The same in one file, without a free byte: another process has taken the last one. (G16)
#[test]
fn g16_a_single_file_on_a_full_disk_gives_space_back() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs"];
    let Some(tiny) = Mounted::new(&dir.path().join("tiny"), &args) else { return };
    let (root, hog) = (tiny.0.join("run.stone"), tiny.0.join("hog"));
    let opening = || {
        let mut limits = crate::content::limits();
        limits.ballast_bytes = 128 << 10;
        limits.low_water_bytes = 512 << 10;
        options(RealDisk::new()).limits(limits).layout(sealstone::Layout::SingleFile)
    };
    let mut store = opening().create(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    let append = |store: &Store, from: u64, to: u64| {
        let group = (from..to).map(|n| Append { stream, payload: record(stream, n) });
        store.append(group.collect()).and_then(|_| store.barrier())
    };
    append(&store, 0, 20).unwrap();
    for round in 0..6 {
        let (mut leases, full) = fill(&store, round * 1000);
        assert_eq!(full.kind(), ErrorKind::DiskFull, "round {round}: {full:?}");
        assert!(leases.len() > 60, "round {round}: only {} fitted", leases.len());
        let mut others = std::fs::OpenOptions::new().create(true).append(true).open(&hog).unwrap();
        while std::io::Write::write(&mut others, &[7; 4096]).is_ok_and(|took| took > 0) {}
        let free = sealstone::vfs::Disk::space(&*RealDisk::new(), &root).unwrap().free;
        assert_eq!(free, 0, "round {round}");
        let refused = append(&store, 20, 21).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DiskFull, "round {round}: {refused:?}");
        if round % 3 == 1 {
            store.close().unwrap();
            while std::io::Write::write(&mut others, &[7; 4096]).is_ok_and(|took| took > 0) {}
            store = opening().open(&root).unwrap();
        }
        let gone: Vec<_> = leases.drain(..).map(Thing::Lease).collect();
        store.retire(&gone, "the disk is full").unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert!(store.health().halted.is_none(), "round {round}: {:?}", store.health());
        // The hog stays: what is inside the file is room.
        append(&store, 20 + round, 21 + round).unwrap();
    }
    let _ = std::fs::remove_file(hog);
    store.close().unwrap();
    let store = opening().open(&root).unwrap();
    assert_eq!(verify(&store, &store.view(stream).unwrap()), Ok(26));
    assert!(store.accounts().unwrap().are_closed());
}

/// On a file system that cannot be written: does a reader read, and is a writer refused? (G20)
#[test]
fn g20_a_store_on_a_read_only_mount_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let store = options(RealDisk::new()).create(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    store.append(vec![Append { stream, payload: record(stream, 0) }]).unwrap();
    store.close().unwrap();
    let at = dir.path().join("view");
    let source = dir.path().display().to_string();
    let Some(view) = Mounted::new(&at, &["--bind", &source]) else { return };
    let remounted =
        Command::new("mount").args(["-o", "remount,ro,bind"]).arg(&view.0).status().unwrap();
    assert!(remounted.success());
    let seen = view.0.join("run.stone");
    let before = listing(&root);
    let store = options(RealDisk::new()).open_read_only(&seen).unwrap();
    assert_eq!(verify(&store, &store.view(stream).unwrap()), Ok(1));
    let refused = options(RealDisk::new()).open(&seen).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io, "{refused:?}");
    assert_eq!(listing(&root), before);
    options(RealDisk::new()).open(&root).unwrap();
}

/// What a child with few descriptors does. It leaves how far it came.
pub fn narrow(root: &Path, out: &Path) {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let said = match work(root) {
        Ok(()) => "all".to_owned(),
        Err(e) => format!("{}: {e}", e.kind().name()),
    };
    // Whatever failed, nothing is left open once the store's thread saw that it is over.
    for _ in 0..200 {
        if open() == before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::write(out.join("narrow"), format!("{} {said}", open() - before)).unwrap();
}

fn work(root: &Path) -> Result<(), Error> {
    let store = options(RealDisk::new()).open(root)?;
    let stream = sealstone::ids::StreamId(1);
    let first = store.view(stream)?.record_count();
    for n in first..first + 5 {
        store.append(vec![Append { stream, payload: record(stream, n) }])?;
    }
    store.barrier()?;
    let content = encode(stream, first..first + 5);
    let build = sealstone::engine::ChunkBuild {
        stream,
        first: sealstone::ids::Sequence(first),
        records: 5,
        raw_len: content.len() as u64,
        content: [content, noise(first, 2000)].concat(),
        about: Vec::new(),
        iterations: None,
        times: None,
        payloads: Vec::new(),
    };
    let unsealed = store.view(stream)?.row.sealed_upto.0;
    if unsealed == first {
        store.publish_chunks(vec![build])?;
    }
    let torn = |wrong| Error::new(ErrorKind::Io, "verify", "stream 1", format!("{wrong:?}"));
    verify(&store, &store.view(stream)?).map_err(torn)?;
    store.reclaim(Budget::default())?;
    store.close()
}

/// With ever fewer descriptors: is there a typed error, nothing left open, and nothing half done?
/// (G19)
#[test]
fn g19_running_out_of_descriptors_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let store = options(RealDisk::new()).create(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    store.close().unwrap();
    let (mut enough, mut failed) = (None, 0);
    for descriptors in (4..40).rev() {
        let before =
            options(RealDisk::new()).open(&root).unwrap().view(stream).unwrap().record_count();
        let mut orders = Orders::new("narrow", &root, dir.path(), 0);
        orders.descriptors = Some(descriptors);
        let _ = std::fs::remove_file(dir.path().join("narrow"));
        let ended = orders.start().ended();
        let Ok(said) = std::fs::read_to_string(dir.path().join("narrow")) else {
            // Too few for a process to begin with; a panic or an abort would have said so.
            assert!(descriptors < 10 && !ended.contains("panicked"), "{descriptors}: {ended}");
            continue;
        };
        let (open, said) = said.split_once(' ').unwrap();
        assert_eq!(open, "0", "{descriptors}: descriptors were left open after {said:?}");
        if said == "all" {
            enough = Some(descriptors);
        } else {
            assert!(said.starts_with("io: ") || said.starts_with("halted: "), "{said}");
            failed += 1;
        }
        let store = options(RealDisk::new()).open(&root).unwrap();
        let records = verify(&store, &store.view(stream).unwrap()).unwrap();
        assert!(
            records >= before && (records - before).is_multiple_of(5) || said != "all",
            "{records}"
        );
    }
    println!("with {enough:?} descriptors everything works; {failed} smaller numbers gave errors");
    assert!(enough.is_some() && failed > 3);
}
