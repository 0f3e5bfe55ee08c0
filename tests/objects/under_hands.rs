//! Does a reader get the right bytes while others retire, reclaim and compact under its hands? Every step of
//! the one is a pause in which the other runs whole.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sealstone::engine::{Budget, Layout, Options, Store, Thing, WriteAccess};
use sealstone::objects::{Digest, Name, Object, ObjectReader};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, AroundDisk, AroundFile, Disk, File, Held, Step};
use sealstone::{Error, ErrorKind};

use crate::made::*;

type Act = Box<dyn FnOnce() + Send>;

/// Counts what its process does, and lets something else run before the one that was chosen.
#[derive(Clone)]
struct Pausing {
    disk: Arc<SimDisk>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    count: AtomicU64,
    chosen: AtomicU64,
    act: Mutex<Option<Act>>,
}

impl std::fmt::Debug for Pausing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.disk.fmt(f)
    }
}

impl Pausing {
    fn new(disk: SimDisk) -> Self {
        Self { disk: Arc::new(disk), state: Arc::default() }
    }

    /// Counts anew, and lets `act` run before call `chosen`.
    fn choose(&self, chosen: u64, act: Act) {
        *self.state.act.lock() = Some(act);
        self.state.chosen.store(chosen, Ordering::SeqCst);
        self.state.count.store(0, Ordering::SeqCst);
    }

    /// Whether it ran; from here on nothing does.
    fn ran(&self) -> bool {
        self.state.act.lock().take().is_none()
    }

    fn pause(&self) {
        let count = self.state.count.fetch_add(1, Ordering::SeqCst) + 1;
        if count == self.state.chosen.load(Ordering::SeqCst) {
            let act = self.state.act.lock().take();
            act.into_iter().for_each(|act| act());
        }
    }
}

impl AroundDisk for Pausing {
    fn inner(&self) -> &dyn Disk {
        &*self.disk
    }
    fn open(&self, path: &Path, access: Access) -> std::io::Result<Arc<dyn File>> {
        if !path.to_string_lossy().contains("/sealed/") {
            return self.disk.open(path, access);
        }
        self.pause();
        let file = self.disk.open(path, access)?;
        Ok(Arc::new(PausingFile { file, of: self.clone() }))
    }
    fn unlink(&self, path: &Path) -> std::io::Result<()> {
        self.pause();
        self.disk.unlink(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.pause();
        self.disk.rename(from, to)
    }
    fn sync_dir(&self, path: &Path) -> std::io::Result<()> {
        self.pause();
        self.disk.sync_dir(path)
    }
    fn lock_dir(
        &self,
        path: &Path,
        sharing: sealstone::vfs::Sharing,
    ) -> std::io::Result<Option<Box<dyn Held>>> {
        self.disk.lock_dir(path, sharing)
    }
    fn mark(&self, step: Step) {
        self.pause();
        self.disk.mark(step);
    }
}

#[derive(Debug)]
struct PausingFile {
    file: Arc<dyn File>,
    of: Pausing,
}

impl AroundFile for PausingFile {
    fn inner(&self) -> &dyn File {
        &*self.file
    }
    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.of.pause();
        self.file.read_at(into, offset)
    }
}

fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

fn on(disk: &Pausing, kind: (Layout, WriteAccess)) -> Options {
    options(kind).disk(Arc::new(disk.clone()))
}

type Made = Arc<Vec<(Name, Vec<u8>)>>;

/// A store whose objects lie in files that are partly dead: one object as a whole, one of a few pieces,
/// one of many rows of them, and one inline.
fn begun(kind: (Layout, WriteAccess)) -> (SimDisk, Pausing, Store, Made) {
    let world = SimDisk::new(5);
    world.stop_log();
    world.mkdir(Path::new("/data")).unwrap();
    let disk = Pausing::new(world.process(1));
    let store = on(&disk, kind).create(root()).unwrap();
    let large = noise(1, 20_000);
    let pieces: Vec<_> = (0..9).map(|s| noise(10 + s, 2_500 + 7 * s as usize)).collect();
    let inline = noise(3, 30);
    let lease = lease(&store);
    let mut contents = vec![noise(99, 9_000), large.clone()];
    contents.extend(pieces.iter().cloned());
    contents.push(inline.clone());
    let ids = put(&store, lease, &contents);
    let of = |ids: &[sealstone::ids::ObjectId], pieces: &[Vec<u8>]| {
        ids.iter().copied().zip(pieces.iter().map(|p| p.len() as u64)).collect::<Vec<_>>()
    };
    let (few, many) = (&pieces[..8], &pieces[1..]);
    recipe_of(&store, &named("t/few"), Digest::of(&few.concat()), &of(&ids[2..10], few), 1024);
    recipe_of(&store, &named("t/many"), Digest::of(&many.concat()), &of(&ids[3..11], many), 3);
    name(&store, &named("t/large"), ids[1]);
    name(&store, &named("t/inline"), ids[11]);
    store.retire(&[Thing::Lease(lease)], "all but one have names").unwrap();
    let made = vec![
        (named("t/large"), large),
        (named("t/few"), few.concat()),
        (named("t/many"), many.concat()),
        (named("t/inline"), inline),
    ];
    (world, disk, store, Arc::new(made))
}

/// Compacts, then retires everything and gives it back.
fn compact_and_go(store: &Store, made: &Made) {
    store.reclaim(Budget::default()).unwrap();
    go(store, made);
}

/// Retires everything and gives it back.
fn go(store: &Store, made: &Made) {
    for (name, _) in made.iter() {
        unname(store, name);
    }
    for _ in 0..2 {
        store.reclaim(Budget::default()).unwrap();
    }
}

/// What a reader has in its hands: streams that are half through.
fn half_read(store: &Store, made: &Made) -> Vec<ObjectReader> {
    let open = |(name, bytes): &(Name, Vec<u8>)| {
        let mut reader = store.objects().open(name).unwrap().reader_with(3_000);
        let mut half = vec![0; bytes.len() / 2];
        reader.read_exact(&mut half).unwrap();
        assert_eq!(half, bytes[..half.len()]);
        reader
    };
    made.iter().map(open).collect()
}

fn told(error: &std::io::Error) -> Error {
    error.get_ref().and_then(|e| e.downcast_ref::<Error>()).unwrap().clone()
}

/// What a reader found wrong.
fn read_on(readers: &mut [ObjectReader], made: &Made) -> Result<(), Error> {
    for (reader, (name, bytes)) in readers.iter_mut().zip(made.iter()) {
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).map_err(|e| told(&e))?;
        assert!(rest == bytes[bytes.len() / 2..], "{name}: other bytes");
    }
    Ok(())
}

/// Gets everything anew: what is there is whole, and what is not was retired.
fn get_all(store: &Store, made: &Made) -> Result<Vec<Object>, Error> {
    let mut got = Vec::new();
    for (name, bytes) in made.iter() {
        for found in [store.objects().open(name), store.objects().get(&Digest::of(bytes))] {
            match found {
                Ok(object) => {
                    assert!(object.bytes()? == *bytes, "{name}: other bytes");
                    got.push(object);
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(got)
}

type Writer = fn(&Store, &Made);
type Found = Arc<Mutex<Vec<Error>>>;

/// The writer is paused before its n-th call, for every n, and a reader of the same process runs whole;
/// returns how often, and what it found.
fn pause_the_writer(kind: (Layout, WriteAccess), write: Writer) -> (u64, Vec<Error>) {
    let found: Found = Arc::default();
    let mut at = 0;
    loop {
        at += 1;
        let (_world, disk, store, made) = begun(kind);
        let mut readers = half_read(&store, &made);
        let got: Arc<Mutex<Vec<Object>>> = Arc::default();
        let (inner, seen, kept, all) = (store.clone(), found.clone(), got.clone(), made.clone());
        disk.choose(
            at,
            Box::new(move || {
                let read = read_on(&mut readers, &all).and_then(|()| get_all(&inner, &all));
                match read {
                    Ok(objects) => *kept.lock() = objects,
                    Err(e) => seen.lock().push(e),
                }
            }),
        );
        write(&store, &made);
        if !disk.ran() {
            return (at - 1, std::mem::take(&mut found.lock()));
        }
        // What it got in the pause reads on after the writer's work.
        for object in got.lock().drain(..) {
            match object.bytes() {
                Ok(bytes) => assert_eq!(Digest::of(&bytes), object.digest()),
                Err(e) => found.lock().push(e),
            }
        }
    }
}

/// The reader is paused before its n-th call, for every n, and the writer runs whole. The reader is of
/// the same process, or of another one.
fn pause_the_reader(
    kind: (Layout, WriteAccess),
    write: Writer,
    elsewhere: bool,
) -> (u64, Vec<Error>) {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        at += 1;
        let (world, own, store, made) = begun(kind);
        let (disk, reading) = match elsewhere {
            false => (own, store.clone()),
            true => {
                let disk = Pausing::new(world.process(2));
                let reading = on(&disk, kind).open_read_only(root()).unwrap();
                (disk, reading)
            }
        };
        let mut readers = half_read(&reading, &made);
        let (inner, all) = (store.clone(), made.clone());
        disk.choose(at, Box::new(move || write(&inner, &all)));
        // First those that are half through, then everything anew.
        let read = read_on(&mut readers, &made);
        let anew = get_all(&reading, &made);
        if !disk.ran() {
            return (at - 1, found);
        }
        found.extend(read.err());
        found.extend(anew.err());
    }
}

/// Is every byte right that a reader of the same process reads, wherever the writer is paused?
#[test]
fn obj23_a_reader_in_any_pause_of_the_writer_reads_right_bytes() {
    for kind in KINDS {
        let (pauses, found) = pause_the_writer(kind, compact_and_go);
        println!("{kind:?}: {pauses} pauses");
        assert!(pauses > 20, "{pauses}");
        assert!(found.is_empty(), "{kind:?}: {found:?}");
    }
}

/// And wherever the reader is paused?
#[test]
fn obj23_the_writer_in_any_pause_of_a_reader_leaves_it_right_bytes() {
    for kind in &KINDS[..2] {
        for write in [go as Writer, compact_and_go] {
            let (pauses, found) = pause_the_reader(*kind, write, false);
            println!("{kind:?}: {pauses} pauses");
            assert!(pauses > 20, "{pauses}");
            assert!(found.is_empty(), "{kind:?}: {found:?}");
        }
    }
}

/// Does a reader in another process read right bytes, or is it told that they were given back?
#[test]
fn obj23_a_reader_in_another_process_is_told_what_was_given_back() {
    let mut gone = 0;
    for write in [go as Writer, compact_and_go] {
        let (pauses, found) = pause_the_reader(KINDS[0], write, true);
        println!("{pauses} pauses, {} were told", found.len());
        assert!(pauses > 20, "{pauses}");
        for error in &found {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
            assert!(error.cause().contains("fresh"), "{error}");
        }
        gone += found.len();
    }
    assert!(gone > 0, "nothing was ever given back under it");
}

/// Would these tests see it, were nothing pinned? (mutant)
#[test]
fn obj23_without_pins_a_reader_loses_its_bytes() {
    let _off = switch_off(Protection::PinHolds);
    let (_, found) = pause_the_reader(KINDS[0], go, false);
    assert!(!found.is_empty());
}
