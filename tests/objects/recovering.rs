//! What opens, and what does not: files that are missing or short, stores of others and of later releases.

use std::ops::ControlFlow;
use std::path::Path;

use sealstone::ErrorKind;
use sealstone::check::{CheckOptions, check};
use sealstone::engine::Store;
use sealstone::format::row;
use sealstone::manifest::{Key, ObjectRow, Reading, StoreKey, Table};
use sealstone::objects::{Digest, Name};
use sealstone::vfs::Step;

use crate::made::*;

/// Everything on disk below a path.
fn listing(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    match path.is_dir() {
        true => {
            for entry in std::fs::read_dir(path).unwrap() {
                all.extend(listing(&entry.unwrap().path()));
            }
        }
        false => all.push((path.to_owned(), std::fs::read(path).unwrap())),
    }
    all.sort();
    all
}

/// Objects of several files, each under its name; what pieces share lies in the first.
fn begun(root: &Path) -> Vec<(Name, Vec<u8>)> {
    let store = options(KINDS[0]).create(root).unwrap();
    let mut made = one_of_each(&store);
    for seed in 0..3 {
        let (name, bytes) = (named(&format!("t/{seed}")), noise(70 + seed, 3000));
        plain(&store, &name, &bytes);
        made.push((name, bytes));
    }
    store.close().unwrap();
    made
}

/// How many read; those that do not are damage, which names the file.
fn how_many_read(store: &Store, made: &[(Name, Vec<u8>)], file: &Path) -> usize {
    let mut reading = 0;
    for (name, bytes) in made {
        let object = store.objects().open(name).unwrap();
        let by_digest = store.objects().get(&Digest::of(bytes)).unwrap();
        match (object.bytes(), by_digest.bytes()) {
            (Ok(read), Ok(again)) => {
                assert!(read == *bytes && again == *bytes, "{name}: other bytes");
                reading += 1;
            }
            (Err(e), Err(again)) => {
                let file = file.file_name().unwrap().to_str().unwrap();
                for e in [e, again, object.verify().unwrap_err()] {
                    assert_eq!(e.kind(), ErrorKind::Damage, "{name}: {e}");
                    assert!(e.place().contains(file), "{name}: {e}");
                }
            }
            (one, other) => panic!("{name}: {one:?}, {other:?}"),
        }
    }
    reading
}

/// Where a sealed file is missing or short, are the objects in it damage, does the store open for reading
/// and for writing, and does everything else read?
#[test]
fn obj28_a_file_that_is_missing_or_short_is_damage_to_its_objects_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run.stone");
    let made = begun(&root);
    let files = sealed_files(&root);
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let sound = std::fs::read(&file).unwrap();
        let mut lost = std::collections::BTreeSet::new();
        for left in [None, Some(0), Some(sound.len() / 2), Some(sound.len() - 1)] {
            match left {
                None => std::fs::remove_file(&file).unwrap(),
                Some(len) => std::fs::write(&file, &sound[..len]).unwrap(),
            }
            let reader = options(KINDS[0]).open_read_only(&root).unwrap();
            let reading = how_many_read(&reader, &made, &file);
            drop(reader);
            let store = options(KINDS[0]).open(&root).unwrap();
            assert_eq!(how_many_read(&store, &made, &file), reading);
            // It takes in and gives out what is new.
            plain(&store, &named("t/new"), &noise(500, 2000));
            assert_eq!(
                store.objects().open(&named("t/new")).unwrap().bytes().unwrap(),
                noise(500, 2000)
            );
            unname(&store, &named("t/new"));
            store.close().unwrap();
            let report =
                check(&root, &CheckOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(!report.findings.is_empty(), "check says nothing of {}", file.display());
            lost.insert(made.len() - reading);
            std::fs::write(&file, &sound).unwrap();
        }
        assert_eq!(lost.len(), 1, "a missing file and a short one lose the same");
        assert!(!lost.contains(&made.len()), "everything was lost with one file");
    }
    let store = options(KINDS[0]).open(&root).unwrap();
    assert_eq!(how_many_read(&store, &made, &root), made.len());
}

/// Is a store of a later release refused, with what to do, by every way of opening it, and left as it is?
#[test]
fn obj31_a_newer_or_foreign_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let root = folder.path().join(format!("{:?}-{:?}.stone", kind.0, kind.1));
        let store = options(kind).create(&root).unwrap();
        plain(&store, &named("t/x"), &noise(1, 900));
        store.close().unwrap();
        let manifest = if root.is_dir() { root.join("manifest.redb") } else { root.clone() };
        let sound = std::fs::read(&manifest).unwrap();
        meddle(&manifest);
        let before = listing(&root);
        let refused = [
            options(kind).open(&root).unwrap_err(),
            options(kind).open_read_only(&root).unwrap_err(),
            options(kind).open_or_create(&root).unwrap_err(),
        ];
        for refused in refused {
            assert_eq!(refused.kind(), ErrorKind::NewerFormat, "{refused}");
            let text = refused.to_string();
            assert!(text.contains("release"), "it does not say what to do: {text}");
            assert!(!text.contains("corrupt") && !text.contains("damage"), "{text}");
        }
        assert_eq!(listing(&root), before, "{kind:?}");
        std::fs::write(&manifest, sound).unwrap();
        options(kind).open(&root).unwrap().close().unwrap();
    }
    // A file of something else, and a directory of something else.
    let other = folder.path().join("notes.txt");
    std::fs::write(&other, "what was there before\n".repeat(400)).unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(home.join("letter"), "dear").unwrap();
    let sqlite = folder.path().join("other.db");
    std::fs::write(&sqlite, [&b"SQLite format 3\0"[..], &noise(1, 9000)].concat()).unwrap();
    let theirs = folder.path().join("theirs.redb");
    let db = redb::Database::create(&theirs).unwrap();
    let txn = db.begin_write().unwrap();
    drop(txn.open_table(redb::TableDefinition::<u64, u64>::new("theirs")).unwrap());
    txn.commit().unwrap();
    drop(db);
    for path in [&other, &home, &sqlite, &theirs] {
        if path.is_file() {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
        }
        let before = listing(path);
        for refused in [options(KINDS[0]).open(path), options(KINDS[0]).open_read_only(path)] {
            let refused = refused.unwrap_err();
            let said = matches!(refused.kind(), ErrorKind::Foreign | ErrorKind::NoStore);
            assert!(said, "{}: {refused:?}", path.display());
            assert!(!refused.to_string().contains("corrupt"), "{refused}");
        }
        assert!(options(KINDS[0]).create(path).is_err());
        assert_eq!(listing(path), before);
    }
}

/// Makes the store one of a later format.
fn meddle(manifest: &Path) {
    let definition = redb::TableDefinition::<&[u8], &[u8]>::new("meta");
    let db = redb::Database::open(manifest).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut table = txn.open_table(definition).unwrap();
        let key = StoreKey.to_bytes();
        let value = row::seal(Table::Meta.number(), &key, 99, b"of a later release");
        table.insert(key.as_slice(), value.as_slice()).unwrap();
    }
    txn.commit().unwrap();
}

/// Is an object whose bytes a later release encoded called newer, and never damage, and do others read?
#[test]
fn obj31_bytes_of_a_later_codec_are_newer_and_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = options(KINDS[0]).create(folder.path().join("run.stone")).unwrap();
    let later = plain(&store, &named("t/later"), &noise(1, 900));
    plain(&store, &named("t/known"), &noise(2, 900));
    let changed = store.transact(Step::StateCommit, |w| {
        let row = w.require::<ObjectRow>(&later)?;
        w.put(&later, &ObjectRow { codec: 200, ..row })
    });
    changed.unwrap();
    let object = store.objects().open(&named("t/later")).unwrap();
    for refused in [object.bytes().unwrap_err(), object.verify().unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::NewerFormat, "{refused}");
    }
    assert_eq!(store.objects().open(&named("t/known")).unwrap().bytes().unwrap(), noise(2, 900));
}
