//! Do readers get what they ask for, at their first try, whoever writes, and whatever is claimed?

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sealstone::engine::{Budget, Layout, Store, WriteAccess};
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::objects::{Digest, Name};

use crate::child::start;
use crate::made::*;

const READERS: u64 = 32;
const ROUNDS: u64 = 3;

const SHARED: (Layout, WriteAccess) = (Layout::Directory, WriteAccess::Shared);

fn now() -> Name {
    named("t/now")
}

/// What stands under the name at its n-th value: its number, then noise. Every other one is a recipe.
fn value(n: u64) -> Vec<u8> {
    let mut bytes = n.to_le_bytes().to_vec();
    bytes.extend(noise(n, 9_000 + (n % 7) as usize * 100));
    bytes
}

fn advance(store: &Store, n: u64) {
    let bytes = value(n);
    match n % 2 {
        0 => drop(plain(store, &now(), &bytes)),
        _ => {
            let pieces: Vec<_> = bytes.chunks(1000).map(<[u8]>::to_vec).collect();
            recipe(store, &now(), &pieces, if n % 4 == 1 { 3 } else { 1024 });
        }
    }
}

/// Reads the name at the first try: which value it was. Every byte of it is right.
fn read_now(store: &Store) -> u64 {
    let object = store.objects().open(&now()).unwrap();
    let mut bytes = Vec::new();
    object.reader().read_to_end(&mut bytes).unwrap();
    let n = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == value(n), "other bytes than value {n}");
    assert_eq!(object.digest(), Digest::of(&bytes));
    assert_eq!(object.range(0..8).unwrap(), n.to_le_bytes());
    object.verify().unwrap();
    n
}

/// Do 32 readers in three rounds each get exactly what stands there, at their first try, beside a
/// writer that goes on and a claim that is held, and does the writer get on?
#[test]
fn obj14_threads_read_exactly_what_stands() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let store = options(kind).create(folder.path().join("run.stone")).unwrap();
        advance(&store, 0);
        let claim = store.claim(&ResourceKey::from("work"), ClaimKind::Maintenance).unwrap();
        let preparation = store.objects().prepare("held").unwrap();
        let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let begun = std::sync::Barrier::new(READERS as usize + 1);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS)
                .map(|_| {
                    scope.spawn(|| {
                        begun.wait();
                        for _ in 0..ROUNDS {
                            let before = written.load(Ordering::SeqCst);
                            let read = read_now(&store);
                            assert!(read >= before, "value {read}, and {before} stood before");
                        }
                    })
                })
                .collect();
            let writer = scope.spawn(|| {
                begun.wait();
                let mut n = 0;
                while !done.load(Ordering::SeqCst) || n < 6 {
                    n += 1;
                    advance(&store, n);
                    written.store(n, Ordering::SeqCst);
                    if n % 3 == 0 {
                        store.reclaim(Budget::default()).unwrap();
                    }
                }
                n
            });
            let read: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
            done.store(true, Ordering::SeqCst);
            let last = writer.join().unwrap();
            read.into_iter().for_each(|read| read.unwrap());
            assert!(last >= 6, "the writer got to {last}");
            assert_eq!(read_now(&store), last);
        });
        drop((claim, preparation));
        store.close().unwrap();
    }
}

/// A child that reads in three rounds, of a store that another process writes.
pub fn read(root: &Path, out: &Path) {
    let stands = || std::fs::read_to_string(out.join("stands")).unwrap().parse::<u64>().unwrap();
    for _ in 0..ROUNDS {
        let before = stands();
        let store = options(SHARED).open_read_only(root).unwrap();
        let read = read_now(&store);
        assert!(read >= before, "value {read}, and {before} stood before");
        let before = stands();
        assert!(read_now(&store) >= before, "it does not see what came after it was opened");
    }
}

fn tell(out: &Path, n: u64) {
    std::fs::write(out.join("stands.next"), n.to_string()).unwrap();
    std::fs::rename(out.join("stands.next"), out.join("stands")).unwrap();
}

/// And as processes?
#[test]
fn obj14_processes_read_exactly_what_stands() {
    for kind in [KINDS[0], SHARED] {
        let folder = tempfile::tempdir().unwrap();
        let (root, out) = (folder.path().join("run.stone"), folder.path());
        let store = options(kind).create(&root).unwrap();
        advance(&store, 0);
        tell(out, 0);
        let claim = store.claim(&ResourceKey::from("work"), ClaimKind::Maintenance).unwrap();
        let preparation = store.objects().prepare("held").unwrap();
        let mut readers: Vec<_> =
            (0..READERS).map(|n| start(&format!("reader-{n}"), &root, out, n)).collect();
        let mut n = 0;
        while !readers.is_empty() || n < 6 {
            // Recipes of many rows are read by number, which reaches no other process.
            n += 2;
            advance(&store, n);
            tell(out, n);
            readers.retain_mut(|reader| !reader.has_ended());
        }
        assert_eq!(read_now(&store), n);
        drop((claim, preparation));
        store.close().unwrap();
    }
}

/// A child that holds claims and a preparation.
pub fn hold(root: &Path, out: &Path) {
    let store = options(SHARED).open(root).unwrap();
    let claims = [ClaimKind::Preparation, ClaimKind::Snapshot, ClaimKind::Maintenance]
        .map(|kind| store.claim(&ResourceKey::from(kind.name()), kind).unwrap());
    let preparation = store.objects().prepare("held").unwrap();
    std::fs::write(out.join("holds"), "").unwrap();
    loop {
        std::thread::park();
        std::hint::black_box((&claims, &preparation));
    }
}

/// Is what is published there before, while and after somebody holds a claim, also one who was suspended
/// with it?
#[test]
fn obj13_what_is_published_is_there_whoever_holds_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    let (root, out) = (folder.path().join("run.stone"), folder.path());
    let store = options(SHARED).create(&root).unwrap();
    advance(&store, 1);
    let look = |n: u64| {
        assert_eq!(read_now(&store), n);
        assert_eq!(read_now(&options(SHARED).open_read_only(&root).unwrap()), n);
        assert!(store.objects().contains(&Digest::of(&value(n))).unwrap());
    };
    look(1);
    let mut holder = start("holder", &root, out, 0);
    holder.wait_for("holds");
    assert_eq!(store.claims(9).unwrap().len(), 4);
    look(1);
    advance(&store, 2);
    look(2);
    use nix::sys::signal::{Signal, kill};
    kill(nix::unistd::Pid::from_raw(holder.id() as i32), Signal::SIGSTOP).unwrap();
    look(2);
    advance(&store, 3);
    look(3);
    holder.kill();
    look(3);
    let again = store.objects().prepare("held").unwrap();
    look(3);
    drop(again);
    look(3);
}
