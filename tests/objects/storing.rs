//! Is what is put stored once, leased, and there for whoever goes on?

use std::io::Read;

use sealstone::ErrorKind;
use sealstone::digest::Digest;
use sealstone::engine::{Budget, Layout, Store};
use sealstone::manifest::{ObjectRow, Place, Reading};
use sealstone::objects::{Pieces, PutOptions};

use crate::made::{self, noise, sealed_files};
use crate::support::store;

const LAYOUTS: [Layout; 2] = [Layout::Directory, Layout::SingleFile];

fn store_of(layout: Layout) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.stone");
    let store = Store::options().layout(layout).create(path).unwrap();
    (folder, store)
}

/// Is a content there for whoever goes on with its preparation, and gone once that is given up?
#[test]
fn obj6_what_is_flushed_is_there_for_whoever_goes_on() {
    let (_folder, store) = store();
    let objects = store.objects();
    let prep = objects.prepare("import").unwrap();
    let digest = prep.put(b"some content").unwrap();
    assert_eq!(digest, Digest::of(b"some content"));
    prep.flush().unwrap();
    let lost = prep.put(b"never flushed").unwrap();
    assert_eq!(objects.prepare("import").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(objects.abandon("import", "no").unwrap_err().kind(), ErrorKind::Conflict);
    drop(prep);
    let views = objects.preparations().unwrap();
    assert_eq!((views[0].objects, views[0].bytes, views[0].pieces), (1, 12, 0));
    assert!(views[0].open_by.is_none());
    let prep = objects.prepare("import").unwrap();
    let rows = |digest| store.snapshot().unwrap().object_of(&digest).unwrap();
    assert_eq!((rows(digest).len(), rows(lost).len()), (1, 0));
    let gone = prep.abandon("not needed").unwrap();
    assert_eq!((gone.things, gone.objects, gone.bytes), (1, 1, 12));
    assert!(objects.preparations().unwrap().is_empty());
    assert_eq!(objects.abandon("import", "no").unwrap_err().kind(), ErrorKind::NotFound);
    store.reclaim(Budget::default()).unwrap();
    assert!(store.accounts().unwrap().are_closed());
    assert!(store.claims(9).unwrap().is_empty());
}

/// Is a batch accepted whole, or refused?
#[test]
fn obj5_a_batch_is_accepted_whole() {
    let (_folder, store) = store();
    let prep = store.objects().prepare("batch").unwrap();
    let digests = prep.put_batch(&[b"a", b"b", b"a"], &PutOptions::default()).unwrap();
    assert_eq!(digests, [Digest::of(b"a"), Digest::of(b"b"), Digest::of(b"a")]);
    prep.flush().unwrap();
    assert_eq!(store.objects().preparations().unwrap()[0].objects, 2);
}

/// The object of a content, and all of its bytes.
fn fetch(store: &Store, digest: &Digest) -> (ObjectRow, Vec<u8>) {
    let found = store.snapshot().unwrap().object_of(digest).unwrap();
    assert_eq!(found.len(), 1, "stored once");
    let (object, row) = found.into_iter().next().unwrap();
    (row, store.fetch(object).unwrap())
}

/// Does a file of any length, in pieces or not, read back as it was, whatever the reader gives at a time?
#[test]
fn obj1_content_of_any_length_reads_back() {
    for layout in LAYOUTS {
        let (_folder, store) = store_of(layout);
        let prep = store.objects().prepare("any").unwrap();
        for len in [0, 1, 4096, 4097, 65_536, 1 << 20, (1 << 20) + 1, 3_000_001] {
            let small = Pieces::Of { min: 512, avg: 1024, max: 4096 };
            for (n, pieces) in (0..).zip([Pieces::Auto, Pieces::Never, small]) {
                if pieces == small && len > 1 << 20 {
                    continue;
                }
                let content = noise(len as u64 * 3 + n, len);
                let options = PutOptions { pieces, ..PutOptions::default() };
                let put = prep.put_reader(Dribble(&content, 1), &options).unwrap();
                assert_eq!((put.digest, put.len), (Digest::of(&content), len as u64));
                prep.flush().unwrap();
                let (row, bytes) = fetch(&store, &put.digest);
                assert!(bytes == content, "{len} {pieces:?}");
                assert_eq!(row.place == Place::Recipe, put.pieces > 0);
                let again = prep.put_with(&content, &options).unwrap();
                assert_eq!(again, put.digest);
                prep.flush().unwrap();
                fetch(&store, &put.digest);
            }
        }
        let view = &store.objects().preparations().unwrap()[0];
        assert_eq!(view.pieces, 0, "no piece is leased once its recipe is");
        let gone = prep.abandon("done").unwrap();
        assert!(gone.objects >= view.objects);
        store.reclaim(Budget::default()).unwrap();
        let accounts = store.accounts().unwrap();
        assert!(
            accounts.are_closed() && accounts.live == 0 && accounts.orphan == 0,
            "{accounts:?}"
        );
    }
}

/// Gives a byte more each time.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 * 2 % 70_001 + 1;
        let len = self.1.min(into.len());
        self.0.read(&mut into[..len])
    }
}

fn small(min: u32) -> PutOptions {
    let pieces = Pieces::Of { min, avg: 4 * min, max: 16 * min };
    PutOptions { pieces, ..PutOptions::default() }
}

/// Bytes that objects take in sealed files and in the manifest.
fn stored_bytes(store: &Store) -> u64 {
    let rows = store.snapshot().unwrap().list::<ObjectRow>(.., usize::MAX).unwrap();
    rows.iter().map(|(_, row)| row.stored_len).sum()
}

/// Is one payload that 64 threads put 200 times each, under preparations of their own and the same one, stored
/// once, and does each of them succeed?
#[test]
fn obj1_64_threads_put_one_payload() {
    let (_folder, store) = store();
    let objects = store.objects();
    let payload = noise(1, 20_000);
    let in_pieces = noise(2, 30_000);
    let preps: Vec<_> = (0..4).map(|n| objects.prepare(&format!("{n}")).unwrap()).collect();
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let (prep, payload, in_pieces) = (&preps[thread % 4], &payload, &in_pieces);
            scope.spawn(move || {
                for n in 0..200 {
                    assert_eq!(prep.put(payload).unwrap(), Digest::of(payload));
                    if n % 50 == thread % 50 {
                        let put = prep.put_reader(&in_pieces[..], &small(1024)).unwrap();
                        assert_eq!(put.digest, Digest::of(in_pieces));
                    }
                }
                prep.flush().unwrap();
            });
        }
    });
    assert_eq!(fetch(&store, &Digest::of(&payload)).1, payload);
    assert_eq!(fetch(&store, &Digest::of(&in_pieces)).1, in_pieces);
    assert_eq!(stored_bytes(&store), 50_000);
    assert!(store.accounts().unwrap().are_closed());
    for view in objects.preparations().unwrap() {
        assert_eq!((view.objects, view.pieces), (2, 0));
    }
}

/// Is a content stored again whose copy on disk is damaged, so that whoever referred to it reads again: one
/// object, one piece of a recipe, compressed or not, in whatever way it is put again?
#[test]
fn obj1_a_damaged_target_fails_closed_and_heals() {
    for (n, is_text) in [(0u8, false), (1, true)] {
        let (folder, store) = store();
        let objects = store.objects();
        let content = |seed: u64| match is_text {
            false => noise(seed, 50_000),
            true => format!("{seed} some words, ").repeat(4000).into_bytes(),
        };
        let prep = objects.prepare("first").unwrap();
        let (one, other) = (content(1), content(2));
        let digest = prep.put(&one).unwrap();
        let listed = prep.put_reader(&other[..], &small(1024)).unwrap();
        assert!(listed.pieces > 1);
        prep.flush().unwrap();
        let name: sealstone::objects::Name = "n/one".parse().unwrap();
        let object = store.snapshot().unwrap().object_of(&digest).unwrap()[0].0;
        made::name(&store, &name, object);
        for file in sealed_files(&folder.path().join("run.stone")) {
            let mut bytes = std::fs::read(&file).unwrap();
            // Past the header.
            (64..bytes.len() * 3 / 4).step_by(20).for_each(|at| bytes[at] ^= 1);
            std::fs::write(&file, bytes).unwrap();
        }
        for digest in [digest, listed.digest] {
            let told = objects.get(&digest).and_then(|object| object.verify()).unwrap_err();
            assert_eq!(told.kind(), ErrorKind::Damage);
        }
        let again = objects.prepare(&format!("again {n}")).unwrap();
        // Compressed and raw take other lengths.
        let raw = sealstone::objects::Compress::Never;
        again.put_with(&one, &PutOptions { compress: raw, ..PutOptions::default() }).unwrap();
        again.put_reader(&other[..], &small(1024)).unwrap();
        again.flush().unwrap();
        assert_eq!(objects.open(&name).unwrap().bytes().unwrap(), one, "whoever referred to it");
        assert_eq!(fetch(&store, &digest).1, one);
        assert_eq!(fetch(&store, &listed.digest).1, other);
        assert!(store.accounts().unwrap().are_closed());
    }
}

/// Is a whole recipe healed by content that is cut otherwise, or not at all?
#[test]
fn obj1_a_damaged_recipe_heals_however_it_is_put() {
    let never = PutOptions { pieces: Pieces::Never, ..PutOptions::default() };
    for options in [small(256), never] {
        let (folder, store) = store();
        let prep = store.objects().prepare("first").unwrap();
        let content = noise(7, 60_000);
        let listed = prep.put_reader(&content[..], &small(1024)).unwrap();
        prep.flush().unwrap();
        for file in sealed_files(&folder.path().join("run.stone")) {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[20_000] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
        assert!(store.objects().get(&listed.digest).unwrap().bytes().is_err());
        prep.put_with(&content, &options).unwrap();
        prep.flush().unwrap();
        assert_eq!(fetch(&store, &listed.digest).1, content);
        assert!(store.accounts().unwrap().are_closed());
        assert_eq!(store.objects().preparations().unwrap()[0].pieces, 0);
    }
}

/// Is a content that is stored, in whatever way, only leased when it is put again?
#[test]
fn obj1_what_is_stored_already_adds_a_lease_alone() {
    let (_folder, store) = store();
    let never = PutOptions { pieces: Pieces::Never, ..PutOptions::default() };
    let content = noise(3, 200_000);
    let first = store.objects().prepare("first").unwrap();
    first.put_with(&content, &never).unwrap();
    first.flush().unwrap();
    let before = store.snapshot().unwrap().list::<ObjectRow>(.., 99).unwrap();
    let second = store.objects().prepare("second").unwrap();
    let put = second.put_reader(&content[..], &small(1024)).unwrap();
    assert!(!put.is_new && put.pieces > 1);
    second.flush().unwrap();
    assert_eq!(store.snapshot().unwrap().list::<ObjectRow>(.., 99).unwrap(), before);
    first.abandon("the other keeps it").unwrap();
    assert_eq!(fetch(&store, &put.digest).1, content);
}

/// Is a piece that two files have, or one has twice, stored once, and is each file what it was?
#[test]
fn obj3_what_files_share_is_stored_once() {
    let (_folder, store) = store();
    let prep = store.objects().prepare("shared").unwrap();
    let mut content = noise(5, 300_000);
    let first = prep.put_with(&content, &small(1024)).unwrap();
    prep.flush().unwrap();
    let before = stored_bytes(&store);
    assert_eq!(before, 300_000);
    content.splice(100_000..100_000, noise(6, 1000));
    let second = prep.put_with(&content, &small(1024)).unwrap();
    let twice = [&content[..], &content[..]].concat();
    let third = prep.put_with(&twice, &small(1024)).unwrap();
    prep.flush().unwrap();
    assert!(stored_bytes(&store) < before + 80_000, "{}", stored_bytes(&store));
    assert_eq!(fetch(&store, &second).1, content);
    assert_eq!(fetch(&store, &third).1, twice);
    content.drain(100_000..101_000);
    assert_eq!(fetch(&store, &first).1, content);
}

/// Does an edit of 1 % of a large file, in place or by inserting, store about 1 % of it?
#[test]
fn obj3_an_edit_of_one_percent_stores_about_one_percent() {
    let (_folder, store) = store();
    let prep = store.objects().prepare("edits").unwrap();
    let mut content = noise(8, 16 << 20);
    let len = content.len() as u64;
    assert_eq!(prep.put_reader(&content[..], &PutOptions::default()).unwrap().new_bytes, len);
    prep.flush().unwrap();
    let edit = noise(9, content.len() / 100);
    for (at, inserts) in [(5 << 20, false), (9_000_001, true)] {
        let before = stored_bytes(&store);
        let upto = if inserts { at } else { at + edit.len() };
        content.splice(at..upto, edit.iter().map(|byte| byte ^ u8::from(inserts)));
        let put = prep.put_reader(&content[..], &PutOptions::default()).unwrap();
        prep.flush().unwrap();
        let added = stored_bytes(&store) - before;
        println!("{added} bytes of {len} are new, {} per mille", added * 1000 / len);
        assert_eq!(put.new_bytes, added);
        assert!(added >= edit.len() as u64 && added * 1000 / len < 25);
    }
    assert_eq!(fetch(&store, &Digest::of(&content)).1, content);
}

/// Is a file left as it was, and one that may only be read taken in?
#[test]
fn obj4_a_source_is_left_as_it_was() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    for layout in LAYOUTS {
        let (folder, store) = store_of(layout);
        let path = folder.path().join("source");
        let content = noise(4, 2_000_000);
        std::fs::write(&path, &content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
        let look = || {
            let meta = std::fs::metadata(&path).unwrap();
            (meta.ino(), meta.mode(), meta.len(), meta.mtime_nsec(), meta.ctime_nsec())
        };
        let before = look();
        let prep = store.objects().prepare("file").unwrap();
        let never = PutOptions { pieces: Pieces::Never, ..PutOptions::default() };
        for options in [PutOptions::default(), small(16 << 10), never] {
            let put = prep.put_file(&path, &options).unwrap();
            assert_eq!((put.digest, put.len), (Digest::of(&content), 2_000_000));
        }
        prep.flush().unwrap();
        prep.abandon("taken in, and given up").unwrap();
        assert_eq!(look(), before);
        assert_eq!(std::fs::read(&path).unwrap(), content);
        let prep = store.objects().prepare("none").unwrap();
        let none = prep.put_file(folder.path().join("none"), &PutOptions::default());
        assert_eq!(none.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(prep.put_file(folder.path(), &PutOptions::default()).is_err());
    }
}

/// Is a batch above the hard cap refused with nothing written?
#[test]
fn obj5_a_batch_above_the_hard_cap_is_refused() {
    use sealstone::objects::{PUT_BYTES_MAX, PUT_OBJECTS_MAX};
    let (_folder, store) = store();
    let prep = store.objects().prepare("batch").unwrap();
    let before = store.snapshot().unwrap().counters().unwrap().commit_seq;
    let many = vec![&b"a"[..]; PUT_OBJECTS_MAX + 1];
    let mib = vec![0u8; 1 << 20];
    let long = vec![&mib[..]; (PUT_BYTES_MAX >> 20) as usize + 1];
    for batch in [many, long] {
        let told = prep.put_batch(&batch, &PutOptions::default()).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::LimitExceeded);
    }
    prep.flush().unwrap();
    assert_eq!(store.snapshot().unwrap().counters().unwrap().commit_seq, before);
}

/// Does what waits seal by itself once it is as much as a file holds, and do readers from before read on?
#[test]
fn obj5_the_soft_cap_seals_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = made::small();
    limits.sealed_file_bytes = 100_000;
    let store = Store::options().limits(limits).create(folder.path().join("run.stone")).unwrap();
    let prep = store.objects().prepare("soft").unwrap();
    let first = prep.put(&noise(0, 30_000)).unwrap();
    prep.flush().unwrap();
    let mut reader = store.objects().get(&first).unwrap().reader();
    let mut begun = vec![0; 10_000];
    reader.read_exact(&mut begun).unwrap();
    for n in 1..8 {
        prep.put(&noise(n, 30_000)).unwrap();
    }
    let stored = |n| store.objects().contains(&Digest::of(&noise(n, 30_000))).unwrap();
    assert!((0..5).all(stored), "sealed by itself");
    assert!(!stored(7), "not before it is due");
    reader.read_to_end(&mut begun).unwrap();
    assert_eq!(begun, noise(0, 30_000));
    prep.flush().unwrap();
    assert!((0..8).all(stored));
}

/// Gives so many bytes, looks, and then fails or panics.
struct Fails<'a>(&'a [u8], bool, &'a dyn Fn());

impl Read for Fails<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(into)? {
            0 => {
                (self.2)();
                assert!(!self.1, "a panic on purpose");
                Err(std::io::Error::other("a failure on purpose"))
            }
            len => Ok(len),
        }
    }
}

/// Is nothing of a content half there whose reader failed or panicked midway, and all that was accepted
/// before and behind it?
#[test]
fn obj6_a_reader_that_fails_leaves_nothing() {
    for layout in LAYOUTS {
        let folder = tempfile::tempdir().unwrap();
        let mut limits = made::small();
        limits.sealed_file_bytes = 100_000;
        let options = Store::options().limits(limits).layout(layout);
        let store = options.create(folder.path().join("run.stone")).unwrap();
        let prep = store.objects().prepare("fails").unwrap();
        let before = prep.put(b"before").unwrap();
        let content = noise(1, 2_500_000);
        let never = PutOptions { pieces: Pieces::Never, ..PutOptions::default() };
        let view = || store.objects().preparations().unwrap().remove(0);
        for (panics, options) in [(true, small(4096)), (false, small(4096)), (true, never)] {
            let look = || assert!(options == never || view().pieces > 10, "pieces are leased");
            let told = prep.put_reader(Fails(&content, panics, &look), &options).unwrap_err();
            let kind = if panics { ErrorKind::CallerPanicked } else { ErrorKind::Io };
            assert_eq!(told.kind(), kind);
            prep.flush().unwrap();
            assert_eq!((view().objects, view().pieces), (1, 0));
        }
        let behind = prep.put(b"behind").unwrap();
        prep.flush().unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(fetch(&store, &before).1, b"before");
        assert_eq!(fetch(&store, &behind).1, b"behind");
        assert_eq!(stored_bytes(&store), 12);
        let accounts = store.accounts().unwrap();
        assert!(accounts.are_closed() && accounts.orphan == 0, "{accounts:?}");
    }
}

/// Is a preparation one process's alone while it is open, also where several write, and taken over from one
/// that is gone?
#[test]
fn obj6_a_preparation_is_open_once() {
    for kind in made::KINDS {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run.stone");
        let store = made::options(kind).create(&root).unwrap();
        let prep = store.objects().prepare("one").unwrap();
        let digest = prep.put(&noise(1, 5000)).unwrap();
        prep.flush().unwrap();
        let told = store.objects().prepare("one").unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Conflict);
        assert!(told.to_string().contains(&std::process::id().to_string()), "{told}");
        assert!(store.objects().preparations().unwrap()[0].open_by.is_some());
        drop(prep);
        store.close().unwrap();
        let store = made::options(kind).open(&root).unwrap();
        let prep = store.objects().prepare("one").unwrap();
        assert_eq!(store.objects().get(&digest).unwrap().bytes().unwrap(), noise(1, 5000));
        prep.abandon("done").unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert!(!store.objects().contains(&digest).unwrap());
        assert!(store.accounts().unwrap().are_closed());
    }
}

/// Are names of preparations checked, and purpose and deadline told?
#[test]
fn obj6_preparations_are_told() {
    use sealstone::objects::{PREPARATION_NAME_BYTES_MAX, PrepareOptions};
    let (_folder, store) = store();
    let objects = store.objects();
    assert_eq!(objects.prepare(" ").unwrap_err().kind(), ErrorKind::Invalid);
    let long = "x".repeat(PREPARATION_NAME_BYTES_MAX + 1);
    assert_eq!(objects.prepare(&long).unwrap_err().kind(), ErrorKind::LimitExceeded);
    let options = PrepareOptions { purpose: "import of may".to_owned(), deadline: Some(7) };
    drop(objects.prepare_with("a", &options).unwrap());
    drop(objects.prepare("a").unwrap());
    let view = &objects.preparations().unwrap()[0];
    assert_eq!((&*view.purpose, view.deadline), ("import of may", Some(7)));
    let odd = Pieces::Of { min: 65, avg: 256, max: 1024 };
    let prep = objects.prepare("b").unwrap();
    let options = PutOptions { pieces: odd, ..PutOptions::default() };
    assert_eq!(prep.put_with(b"x", &options).unwrap_err().kind(), ErrorKind::Invalid);
}
