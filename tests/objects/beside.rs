//! Is a content stored whatever else is put, published and released beside it, and whatever it shares with that?

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use sealstone::engine::{Budget, Options, Store};
use sealstone::manifest::{ObjectRow, Reading};
use sealstone::objects::{Digest, Expected, Pieces, Publish, PutOptions};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};
use sealstone::vfs::{AroundDisk, Disk, Held, Operation, Sharing, Step};

use crate::made::*;

/// Pieces of one length.
fn cut(len: u32) -> PutOptions {
    let pieces = Pieces::Of { min: len, avg: len, max: len };
    PutOptions { pieces, ..PutOptions::default() }
}

/// Gives its bytes, acts once, and ends.
struct Acts<'a>(&'a [u8], Option<Box<dyn FnOnce() + 'a>>);

impl Read for Acts<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(into)? {
            0 => self.1.take().into_iter().for_each(|act| act()),
            len => return Ok(len),
        }
        Ok(0)
    }
}

type Disks = Arc<dyn Disk>;

fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

/// A new store whose sealed files are short.
fn begun(disk: Disks) -> Store {
    let mut limits = small();
    limits.sealed_file_bytes = 100_000;
    on(disk).limits(limits).create(root()).unwrap()
}

fn on(disk: Disks) -> Options {
    options(KINDS[0]).disk(disk)
}

fn sim() -> SimDisk {
    let world = SimDisk::new(6);
    world.stop_log();
    world.mkdir(Path::new("/data")).unwrap();
    world.process(1)
}

fn gives(store: &Store, bytes: &[u8]) -> bool {
    store.objects().get(&Digest::of(bytes)).unwrap().bytes().unwrap() == bytes
}

fn stored_bytes(store: &Store) -> u64 {
    let rows = store.snapshot().unwrap().list::<ObjectRow>(.., usize::MAX).unwrap();
    rows.iter().map(|(_, row)| row.stored_len).sum()
}

/// Is a piece kept for the file that is being put, where the same bytes are put, published and released by
/// somebody else meanwhile, before or behind it, at once or together with something outside?
#[test]
fn obj7_a_piece_of_what_is_being_put_outlives_a_publication_of_the_same_bytes() {
    for (is_first, is_outside) in [(true, false), (false, false), (true, true), (false, true)] {
        let store = begun(Arc::new(sim()));
        let objects = store.objects();
        let prep = objects.prepare("both").unwrap();
        let content = noise(1, 5 << 20);
        let piece = &content[..16 << 10];
        if is_first {
            prep.put_with(piece, &PutOptions::default()).unwrap();
            prep.flush().unwrap();
        }
        let act = || {
            let digest = prep.put(piece).unwrap();
            prep.flush().unwrap();
            let changes = [Publish::new(named("n/p"), Expected::Nothing, digest)];
            match is_outside {
                false => drop(prep.publish(&changes).unwrap()),
                true => {
                    let handoff = prep.hand_off(&changes, "outside", b"").unwrap();
                    let evidence = handoff.evidence(b"done");
                    objects.complete(handoff.id, &evidence).unwrap();
                }
            }
            assert!(objects.release(&named("n/p"), &digest).unwrap());
            store.reclaim(Budget::default()).unwrap();
        };
        let reader = Acts(&content, Some(Box::new(act)));
        prep.put_reader(reader, &cut(16 << 10)).unwrap();
        prep.flush().unwrap();
        assert!(gives(&store, &content));
        let view = objects.preparations().unwrap().remove(0);
        assert_eq!((view.objects, view.pieces), (1, 0), "{is_first} {is_outside}");
        let again = [Publish::new(named("n/q"), Expected::Nothing, Digest::of(piece))];
        let told = prep.publish(&again).unwrap_err();
        assert_eq!(told.kind(), sealstone::ErrorKind::NotFound, "a piece is nobody's to publish");
        prep.abandon("done").unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(stored_bytes(&store), 0);
        assert!(store.accounts().unwrap().are_closed());
    }
}

/// Is a file stored of which a piece is stored in pieces itself, before it, in the same batch, or at once as a
/// whole and as a piece?
#[test]
fn obj3_a_piece_may_be_stored_in_pieces_itself() {
    let (short, tail) = (noise(1, 4096), noise(2, 30_000));
    let long = [&short[..], &tail].concat();
    let fine = cut(1024);
    for (flushes, is_whole) in [(true, false), (false, false), (true, true), (false, true)] {
        let store = begun(Arc::new(sim()));
        let prep = store.objects().prepare("p").unwrap();
        prep.put_with(&short, &fine).unwrap();
        if flushes {
            prep.flush().unwrap();
        }
        prep.put_with(&long, &cut(4096)).unwrap();
        if is_whole {
            prep.put(&short).unwrap();
        }
        prep.put(b"something else").unwrap();
        prep.flush().unwrap();
        prep.put_with(&long, &cut(4096)).unwrap();
        prep.flush().unwrap();
        assert!(gives(&store, &long) && gives(&store, &short) && gives(&store, b"something else"));
        let names = [&long, &short].map(|bytes| Digest::of(bytes));
        let publish = |(n, digest)| Publish::new(named(&format!("n/{n}")), Expected::Any, digest);
        let changes: Vec<_> = (0..).zip(names).map(publish).collect();
        prep.publish(&changes).unwrap();
        let view = store.objects().preparations().unwrap().remove(0);
        assert_eq!((view.objects, view.pieces), (1, 0), "{flushes} {is_whole}");
        assert!(store.accounts().unwrap().are_closed());
    }
}

/// Is a piece that waits for its file left a piece, where its bytes are damaged and somebody else puts them in
/// pieces of their own?
#[test]
fn obj3_a_damaged_piece_that_waits_stays_a_piece() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.stone");
    let mut limits = small();
    limits.sealed_file_bytes = 100_000;
    let store = Store::options().limits(limits).create(&path).unwrap();
    let (prep, other) =
        (store.objects().prepare("p").unwrap(), store.objects().prepare("q").unwrap());
    let content = noise(1, 5 << 20);
    let piece = &content[..16 << 10];
    let act = || {
        for file in sealed_files(&path) {
            let mut bytes = std::fs::read(&file).unwrap();
            let at = bytes.windows(64).position(|window| window == &piece[..64]);
            let Some(at) = at else { continue };
            bytes[at + 100] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
        other.put_with(piece, &cut(1024)).unwrap();
        other.flush().unwrap();
        assert!(gives(&store, piece));
    };
    let reader = Acts(&content, Some(Box::new(act)));
    prep.put_reader(reader, &cut(16 << 10)).unwrap();
    prep.flush().unwrap();
    assert!(store.objects().contains(&Digest::of(&content)).unwrap());
}

type Act = Box<dyn FnMut() + Send>;

/// Lets something else run before names of sealed files are synced.
#[derive(Clone)]
struct Hooked {
    disk: SimDisk,
    act: Arc<Mutex<Option<Act>>>,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.disk.fmt(f)
    }
}

impl AroundDisk for Hooked {
    fn inner(&self) -> &dyn Disk {
        &self.disk
    }
    fn sync_dir(&self, path: &Path) -> std::io::Result<()> {
        if path.to_string_lossy().contains("sealed") {
            // Taken out while it runs: what it does syncs as well.
            let act = self.act.lock().take();
            if let Some(mut act) = act {
                act();
                self.act.lock().get_or_insert(act);
            }
        }
        self.disk.sync_dir(path)
    }
    fn lock_dir(&self, path: &Path, sharing: Sharing) -> std::io::Result<Option<Box<dyn Held>>> {
        self.disk.lock_dir(path, sharing)
    }
    fn mark(&self, step: Step) {
        self.disk.mark(step);
    }
}

fn hooked() -> Hooked {
    Hooked { disk: sim(), act: Arc::default() }
}

/// Do two that store the same many contents at the same time both succeed, and is each stored once?
#[test]
fn obj1_who_comes_second_with_many_contents_succeeds() {
    let disk = hooked();
    let mut limits = small();
    limits.sealed_file_bytes = 64 << 20;
    let store = on(Arc::new(disk.clone())).limits(limits).create(root()).unwrap();
    let preps = ["a", "b"].map(|name| Arc::new(store.objects().prepare(name).unwrap()));
    let contents: Vec<_> = (0..200).map(|n| noise(n + 1, 5000)).collect();
    for prep in &preps {
        for content in &contents {
            prep.put(content).unwrap();
        }
    }
    let first = Arc::clone(&preps[0]);
    *disk.act.lock() = Some(Box::new(move || first.flush().unwrap()));
    preps[1].flush().unwrap();
    disk.act.lock().take();
    assert_eq!(stored_bytes(&store), 1_000_000);
    assert!(contents.iter().all(|content| gives(&store, content)));
    let views = store.objects().preparations().unwrap();
    assert!(views.iter().all(|view| (view.objects, view.pieces) == (200, 0)), "{views:?}");
}

/// Are many contents stored that were there when they were looked for, and were given back meanwhile?
#[test]
fn obj1_many_contents_that_go_meanwhile_are_stored_again() {
    let disk = hooked();
    let mut limits = small();
    limits.sealed_file_bytes = 64 << 20;
    let store = on(Arc::new(disk.clone())).limits(limits).create(root()).unwrap();
    let contents: Vec<_> = (0..200).map(|n| noise(n + 1, 1000)).collect();
    let prep = store.objects().prepare("a").unwrap();
    for content in &contents {
        prep.put(content).unwrap();
    }
    prep.flush().unwrap();
    drop(prep);
    let prep = store.objects().prepare("b").unwrap();
    for content in &contents {
        prep.put(content).unwrap();
    }
    prep.put(&noise(999, 1000)).unwrap();
    let (objects, mut again) = (store.clone(), false);
    *disk.act.lock() = Some(Box::new(move || {
        if !std::mem::replace(&mut again, true) {
            objects.objects().abandon("a", "not needed").unwrap();
        }
    }));
    prep.flush().unwrap();
    disk.act.lock().take();
    assert!(contents.iter().all(|content| gives(&store, content)));
    assert_eq!(stored_bytes(&store), 201_000);
}

/// Does a flush end, however much is put while it runs?
#[test]
fn obj5_a_flush_ends_while_others_put() {
    let disk = hooked();
    let store = begun(Arc::new(disk.clone()));
    let prep = Arc::new(store.objects().prepare("a").unwrap());
    let first = prep.put(&noise(1, 1000)).unwrap();
    let (putting, count) = (Arc::clone(&prep), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&count);
    *disk.act.lock() = Some(Box::new(move || {
        let mut count = counted.lock();
        *count += 1;
        if *count < 200 {
            putting.put(&noise(1000 + *count, 1000)).unwrap();
        }
    }));
    prep.flush().unwrap();
    disk.act.lock().take();
    let count = *count.lock();
    assert!((1..20).contains(&count), "{count}");
    assert!(store.objects().contains(&first).unwrap());
    prep.flush().unwrap();
    assert!(gives(&store, &noise(1000 + count, 1000)));
}

/// Is a content healed by being put again where the disk refuses to read what is stored of it, and whatever
/// waits beside it stored?
#[test]
fn obj1_content_that_the_disk_refuses_heals() {
    for in_pieces in [false, true] {
        let disk = sim();
        let store = begun(Arc::new(disk.clone()));
        let prep = store.objects().prepare("a").unwrap();
        let content = noise(1, 30_000);
        let put = |prep: &sealstone::objects::Preparation| match in_pieces {
            true => prep.put_with(&content, &cut(2048)).unwrap(),
            false => prep.put(&content).unwrap(),
        };
        let digest = put(&prep);
        prep.publish(&[Publish::new(named("n/a"), Expected::Nothing, digest)]).unwrap();
        let old = file_of(&store);
        // The medium gives nothing of that file back any more.
        let fault = Fault::new(disk.operations(), FaultKind::Eio).forever();
        disk.inject(fault.on(&old).only(Operation::Read));
        let told = store.objects().open(&named("n/a")).and_then(|object| object.bytes());
        assert_eq!(told.unwrap_err().kind(), sealstone::ErrorKind::Io);
        put(&prep);
        prep.put(&noise(2, 5000)).unwrap();
        prep.flush().unwrap();
        assert!(gives(&store, &content) && gives(&store, &noise(2, 5000)));
        assert_eq!(store.objects().open(&named("n/a")).unwrap().bytes().unwrap(), content);
        assert!(store.accounts().unwrap().are_closed());
    }
}

/// The end of the path of the one sealed file.
fn file_of(store: &Store) -> String {
    let rows = store.snapshot().unwrap();
    let files = rows.list::<sealstone::manifest::FileRow>(.., 9).unwrap();
    assert_eq!(files.len(), 1);
    files[0].1.unique.to_string()
}
