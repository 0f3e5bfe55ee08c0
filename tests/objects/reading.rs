//! Are the bytes of an object given as they were stored, or not at all?

use std::io::{BufRead, Read, Seek, SeekFrom};

use sealstone::engine::{Budget, Store, Thing};
use sealstone::manifest::{ObjectRow, Reading};
use sealstone::objects::{Digest, IN_MEMORY_BYTES_MAX, Object, READ_AHEAD_BYTES};
use sealstone::vfs::Step;
use sealstone::{Error, ErrorKind};

use crate::made::*;

/// Everything that reading offers gives these bytes.
pub fn assert_gives(object: &Object, bytes: &[u8]) {
    assert_eq!((object.len(), object.digest()), (bytes.len() as u64, Digest::of(bytes)));
    assert_eq!(object.bytes().unwrap(), bytes);
    let len = bytes.len() as u64;
    for (from, to) in [(0, 0), (0, 1.min(len)), (len / 3, len / 2), (len - 1, len), (len, len)] {
        assert_eq!(object.range(from..to).unwrap(), bytes[from as usize..to as usize]);
    }
    let mut streamed = Vec::new();
    object.reader().read_to_end(&mut streamed).unwrap();
    assert_eq!(streamed, bytes);
    let mut written = Vec::new();
    assert_eq!(object.write_to(&mut written).unwrap(), len);
    assert_eq!(written, bytes);
    object.verify().unwrap();
}

/// Does reading give what was stored, in every layout, of objects in every place, also to a reader
/// that opened the store for reading?
#[test]
fn obj2_whole_ranges_and_streams_are_what_was_stored() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run.stone");
        let store = options(kind).create(&root).unwrap();
        let made = one_of_each(&store);
        let look = |store: &Store| {
            for (name, bytes) in &made {
                let digest = Digest::of(bytes);
                assert!(store.objects().contains(&digest).unwrap());
                assert_gives(&store.objects().get(&digest).unwrap(), bytes);
                assert_gives(&store.objects().open(name).unwrap(), bytes);
            }
            let unknown = Digest::of(b"unknown");
            assert!(!store.objects().contains(&unknown).unwrap());
            let errors = [
                store.objects().get(&unknown).unwrap_err(),
                store.objects().open(&named("t/unknown")).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            }
        };
        look(&store);
        store.close().unwrap();
        look(&options(kind).open_read_only(&root).unwrap());
    }
}

/// Does a stream go to any place, and on from there, in pieces of any length?
#[test]
fn obj2_a_stream_goes_where_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let store = options(KINDS[0]).create(folder.path().join("run.stone")).unwrap();
    let long = noise(1, 2 * READ_AHEAD_BYTES as usize + 12_345);
    plain(&store, &named("t/long"), &long);
    let pieces: Vec<_> = long.chunks(70_001).map(<[u8]>::to_vec).collect();
    recipe(&store, &named("t/pieces"), &pieces, 9);
    for name in ["t/long", "t/pieces"] {
        let object = store.objects().open(&named(name)).unwrap();
        let mut reader = object.reader();
        assert_eq!(reader.object().len(), long.len() as u64);
        let mut random = noise(7, 8 * 200)
            .chunks(8)
            .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
            .collect::<Vec<_>>();
        random.extend([0, READ_AHEAD_BYTES - 1, READ_AHEAD_BYTES, long.len() as u64 - 1]);
        for at in random {
            let at = at % long.len() as u64;
            let to = match at % 3 {
                0 => SeekFrom::Start(at),
                1 => SeekFrom::End(at as i64 - long.len() as i64),
                _ => SeekFrom::Current(at as i64 - reader.stream_position().unwrap() as i64),
            };
            assert_eq!(reader.seek(to).unwrap(), at);
            let mut some = vec![0; (at % 5000) as usize];
            let rest = &long[at as usize..];
            let len = some.len().min(rest.len());
            reader.read_exact(&mut some[..len]).unwrap();
            assert_eq!(some[..len], rest[..len], "{name} at {at}");
        }
        assert_eq!(reader.seek(SeekFrom::Start(u64::MAX)).unwrap(), u64::MAX);
        assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
        assert!(reader.fill_buf().unwrap().is_empty());
        for nowhere in [SeekFrom::End(-(long.len() as i64) - 1), SeekFrom::Current(i64::MAX)] {
            assert_eq!(reader.seek(nowhere).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
        }
        reader.rewind().unwrap();
        assert!(reader.fill_buf().unwrap().len() as u64 <= READ_AHEAD_BYTES);
    }
}

fn assert_refused(object: &Object, at: u64, what: &str) {
    let whole = object.bytes().unwrap_err();
    let stream = object.reader().read_to_end(&mut Vec::new()).unwrap_err();
    let stream = stream.get_ref().and_then(|e| e.downcast_ref::<Error>()).unwrap().clone();
    let written = object.write_to(&mut Vec::new()).unwrap_err();
    let range = object.range(at..at + 1).unwrap_err();
    let verified = object.verify().unwrap_err();
    for error in [whole, stream, written, range, verified] {
        assert_eq!(error.kind(), ErrorKind::Damage, "{what}: {error}");
        assert!(error.place().contains("sealed/") && error.place().contains(" at "), "{error}");
    }
}

/// Is every byte that changed on disk refused, with file and offset, and nothing else?
#[test]
fn obj2_a_byte_that_changed_is_refused_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    let store = options(KINDS[0]).create(&root).unwrap();
    let made: Vec<_> = one_of_each(&store).split_off(1);
    store.close().unwrap();
    let mut hits = 0;
    for file in sealed_files(&root) {
        let sound = std::fs::read(&file).unwrap();
        for at in (64..sound.len()).step_by(1999) {
            let mut bytes = sound.clone();
            bytes[at] ^= 4;
            std::fs::write(&file, &bytes).unwrap();
            let store = options(KINDS[0]).open_read_only(&root).unwrap();
            for (name, sound) in &made {
                let object = store.objects().open(name).unwrap();
                let mut read = Vec::new();
                match object.reader().read_to_end(&mut read) {
                    Ok(_) => assert_gives(&object, sound),
                    Err(_) => {
                        hits += 1;
                        assert_eq!(read, sound[..read.len()], "a wrong byte before the damage");
                        let mut some = (0..object.len()).step_by(50);
                        let first = some.find(|at| object.range(*at..*at + 1).is_err());
                        assert_refused(&object, first.unwrap(), &format!("{name}, byte {at}"));
                        // What lies in other blocks reads.
                        let reads = |at: &u64| object.range(*at..*at + 1).is_ok();
                        let others = (0..object.len()).step_by(50).filter(reads).count();
                        assert!(others > 0, "{name}: nothing of it reads");
                    }
                }
            }
        }
        std::fs::write(&file, &sound).unwrap();
    }
    assert!(hits > 10, "{hits} objects were hit");
}

/// Is a digest that does not fit told, with the file and the piece, where every checksum fits?
#[test]
fn obj2_verify_compares_the_whole_digest() {
    let folder = tempfile::tempdir().unwrap();
    let store = options(KINDS[0]).create(folder.path().join("run.stone")).unwrap();
    let lease = lease(&store);
    let pieces = [noise(1, 900), noise(2, 800), noise(3, 40)];
    let ids = put(&store, lease, &pieces);
    let wrong = |object: sealstone::ids::ObjectId| {
        store
            .transact(Step::StateCommit, |w| {
                let row = w.require::<ObjectRow>(&object)?;
                w.put(&object, &ObjectRow { digest: Digest::of(b"another"), ..row })
            })
            .unwrap();
    };
    let all: Vec<_> = ids.iter().copied().zip([900, 800, 40]).collect();
    recipe_of(&store, &named("t/r"), Digest::of(&pieces.concat()), &all, 2);
    let object = store.objects().open(&named("t/r")).unwrap();
    object.verify().unwrap();
    drop(object);
    // A piece that is another, and a recipe that calls itself another.
    recipe_of(&store, &named("t/s"), Digest::of(b"else"), &all, 2);
    let told = store.objects().open(&named("t/s")).unwrap().verify().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Damage);
    assert!(told.place().starts_with("object "), "{told}");
    wrong(ids[1]);
    name(&store, &named("t/p"), ids[1]);
    for of in ["t/s", "t/p"] {
        let told = store.objects().open(&named(of)).unwrap().verify().unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Damage);
        let place = told.place();
        assert!(place.contains("sealed/") && place.contains(" at "), "{of}: {told}");
    }
}

/// Are ranges beyond the end refused, and bytes that are too many for memory?
#[test]
fn obj2_what_is_too_much_is_refused_and_streams_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = options(KINDS[0]).create(folder.path().join("run.stone")).unwrap();
    let lease = lease(&store);
    let mib = noise(1, 1 << 20);
    let piece = put(&store, lease, std::slice::from_ref(&mib))[0];
    let pieces = vec![(piece, 1 << 20); 1100];
    recipe_of(&store, &named("t/huge"), Digest::of(b"huge"), &pieces, 500);
    let object = store.objects().open(&named("t/huge")).unwrap();
    assert!(object.len() > IN_MEMORY_BYTES_MAX);
    for too_much in [object.bytes(), object.range(1..object.len())] {
        assert_eq!(too_much.unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is asked")]
    for range in [5..4, 0..object.len() + 1, object.len() + 1..object.len() + 1] {
        if range.end.saturating_sub(range.start) <= IN_MEMORY_BYTES_MAX {
            assert_eq!(object.range(range).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
    // The last bytes, over two pieces.
    let last = object.len() - (1 << 20) - 5..object.len();
    let expected = [&mib[mib.len() - 5..], &mib].concat();
    assert_eq!(object.range(last.clone()).unwrap(), expected);
    let mut reader = object.reader();
    reader.seek(SeekFrom::Start(last.start)).unwrap();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read, expected);
}

/// Where content was stored again because it did not read, is it got from where it reads, by its digest
/// and by names of the damaged one?
#[test]
fn obj2_of_two_objects_with_one_digest_the_one_that_reads_is_got() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    let store = options(KINDS[0]).create(&root).unwrap();
    let content = noise(9, 20_000);
    plain(&store, &named("t/file"), &content);
    let file = sealed_files(&root).into_iter().next().unwrap();
    // Beside it the same bytes in pieces, which lie elsewhere.
    let pieces: Vec<_> = content.chunks(6000).map(<[u8]>::to_vec).collect();
    recipe(&store, &named("t/pieces"), &pieces, 2);
    let spoil = |path: &std::path::Path, at: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let digest = Digest::of(&content);
    spoil(&file, 9000);
    for reader in [store.clone(), options(KINDS[0]).open_read_only(&root).unwrap()] {
        assert_gives(&reader.objects().get(&digest).unwrap(), &content);
        assert_gives(&reader.objects().open(&named("t/file")).unwrap(), &content);
    }
    spoil(&file, 9000);
    let other = sealed_files(&root).into_iter().find(|path| *path != file).unwrap();
    spoil(&other, 9000);
    assert_gives(&store.objects().get(&digest).unwrap(), &content);
    assert_gives(&store.objects().open(&named("t/pieces")).unwrap(), &content);
    // Where neither reads, nothing is given.
    spoil(&file, 9000);
    let object = store.objects().get(&digest).unwrap();
    assert_eq!(object.bytes().unwrap_err().kind(), ErrorKind::Damage);
}

/// Is an object that nothing refers to any more found by nobody, and read by whoever has it, however many
/// rows its recipe has, until it is let go?
#[test]
fn obj23_what_was_got_reads_on_after_it_was_retired_and_reclaimed() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let store = options(kind).create(folder.path().join("run.stone")).unwrap();
        let made = one_of_each(&store);
        let got: Vec<_> =
            made.iter().map(|(name, _)| store.objects().open(name).unwrap()).collect();
        for (name, _) in &made {
            unname(&store, name);
        }
        for _ in 0..2 {
            store.reclaim(Budget::default()).unwrap();
            for (object, (name, bytes)) in got.iter().zip(&made) {
                assert_gives(object, bytes);
                let digest = object.digest();
                assert!(!store.objects().contains(&digest).unwrap(), "{name} is found");
                assert_eq!(store.objects().get(&digest).unwrap_err().kind(), ErrorKind::NotFound);
            }
        }
        drop(got);
        // The next retirement or reclaim goes on.
        store.retire(&[Thing::Lease(lease(&store))], "test").unwrap();
        store.reclaim(Budget::default()).unwrap();
        store.reclaim(Budget::default()).unwrap();
        store.close().unwrap();
    }
}
