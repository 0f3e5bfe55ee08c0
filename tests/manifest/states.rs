//! A file that is not what it seems: each has its own error, and is left as it is.

use redb::{ReadableDatabase, TableDefinition};
use std::path::Path;
use std::sync::Arc;

use sealstone::codec;
use sealstone::error::{Error, ErrorKind};
use sealstone::format::{layout, row};
use sealstone::ids::{CommitSeq, ObjectId};
use sealstone::manifest::{
    ChunkRow, FORMAT, Key, Manifest, MetaRow, ObjectRow, Open, OwnerRow, Reading, StoreKey, Table,
    Witness, read_head, write_head,
};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, Step, read_whole, write_all_at};

use crate::support::{World, birth, chunk_key, folders, owner, publish, store};

const STEP: Step = Step::PublishCommit;

fn bytes_of(world: &World) -> Vec<u8> {
    let file = world.disk.open(&layout::manifest(&world.root), Access::Read).unwrap();
    read_whole(&*file, 1 << 30).unwrap()
}

/// Puts other bytes where the manifest is.
fn replace(world: &World, bytes: &[u8]) {
    let file = world.disk.open(&layout::manifest(&world.root), Access::ReadWrite).unwrap();
    file.set_len(0).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    write_all_at(&*file, bytes, 0).unwrap();
    file.sync_all().unwrap();
}

/// A closed store with a few rows.
fn closed(world: &World) -> Vec<u8> {
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 30)).unwrap();
    manifest.close().unwrap();
    bytes_of(world)
}

/// Both ways to open err alike, and not a byte changes.
fn refused(world: &World, open: &Open) -> Error {
    let before = bytes_of(world);
    let writing = Manifest::open(&world.disk, &world.root, open).unwrap_err();
    let reading = Manifest::open_read_only(&world.disk, &world.root, open).unwrap_err();
    assert_eq!(writing.kind(), reading.kind(), "{writing:?} / {reading:?}");
    assert!(bytes_of(world) == before, "a refused file was changed: {writing}");
    writing
}

/// What the rows of a manifest of these bytes say.
fn rows_of(world: &World, bytes: &[u8]) -> Vec<(ObjectId, ObjectRow)> {
    replace(world, bytes);
    let manifest = world.open_read_only().unwrap();
    manifest.read().unwrap().list::<ObjectRow>(.., usize::MAX).unwrap()
}

/// G21: empty, truncated, zeroed, garbage, half another file: is each told, and which it is?
#[test]
fn g21_a_spoilt_file_is_damage_and_says_how() {
    let (world, _) = World::sim(1);
    let whole = closed(&world);
    let told = |bytes: &[u8], word: &str| {
        replace(&world, bytes);
        let error = refused(&world, &Open::default());
        assert_eq!(error.kind(), ErrorKind::Damage, "{word}: {error:?}");
        assert!(error.chain().contains(word), "{word}: {}", error.chain());
    };
    told(&[], "empty");
    told(&whole[..100], "truncated");
    told(&vec![0; whole.len()], "zeroed");
    told(&[0xa5; 20_000], "garbage");
    told(b"name,value\n1,2\n", "truncated");
    told(&whole[..whole.len() / 2 / 4096 * 4096], "runcated");
    for len in (512..whole.len()).step_by(512) {
        told(&whole[..len], "");
    }
    // Pages that no row needs may say anything: those that rows need are told.
    let (mut needed, rows) = (0, rows_of(&world, &whole));
    for at in (4096..whole.len()).step_by(4096).filter(|at| whole[*at..at + 64] != [0; 64]) {
        let mut page = whole.clone();
        page[at..at + 4096].fill(0);
        replace(&world, &page);
        match Manifest::open_read_only(&world.disk, &world.root, &Open::default()) {
            Ok(opened) => {
                drop(opened);
                assert_eq!(rows_of(&world, &page), rows, "page at {at}");
            }
            Err(_) => {
                told(&page, "");
                needed += 1;
            }
        }
    }
    assert!(needed > 10, "{needed} pages are needed");
    let mut slots = whole.clone();
    slots[64..320].fill(0xff);
    told(&slots, "");
    replace(&world, &whole);
    world.open().unwrap();
}

/// Nothing is at the path, or nothing any more: is a store that was lost taken for none?
#[test]
fn g21_a_lost_manifest_is_not_an_empty_place() {
    let kind = |world: &World, witnesses: Vec<Witness>| {
        let open = Open { witnesses, ..Open::default() };
        let writing = Manifest::open(&world.disk, &world.root, &open).unwrap_err();
        let reading = Manifest::open_read_only(&world.disk, &world.root, &open).unwrap_err();
        assert_eq!(writing.kind(), reading.kind());
        writing.kind()
    };
    let (world, sim) = World::sim(2);
    sim.unlink(&layout::manifest(&world.root)).unwrap();
    assert_eq!(kind(&world, vec![]), ErrorKind::NoStore);
    let journal = Witness { place: "journal".to_owned(), store: store(1), commit: CommitSeq(1) };
    assert_eq!(kind(&world, vec![journal]), ErrorKind::ManifestLost);
    for path in [
        layout::head(&world.root),
        layout::journal(&world.root, owner(1), 3),
        layout::owner_lock(&world.root, owner(1)),
    ] {
        sim.open(&path, Access::CreateNew).unwrap();
        assert_eq!(kind(&world, vec![]), ErrorKind::ManifestLost, "{}", path.display());
        sim.unlink(&path).unwrap();
    }
    sim.open(&layout::journal_dir(&world.root).join("notes.txt"), Access::CreateNew).unwrap();
    assert_eq!(kind(&world, vec![]), ErrorKind::NoStore);
    sim.mkdir(&layout::manifest(&world.root)).unwrap();
    assert_eq!(kind(&world, vec![]), ErrorKind::Damage);
}

/// A manifest from another store, whole in itself.
#[test]
fn g21_another_stores_manifest_is_foreign() {
    let (world, _) = World::sim(3);
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(4));
    folders(&*disk, Path::new("/other"));
    Manifest::create(&disk, Path::new("/other"), &birth(2), "birth").unwrap();
    let file = disk.open(Path::new("/other/manifest.redb"), Access::Read).unwrap();
    write_head(&world.disk, &world.root, store(1), CommitSeq(1)).unwrap();
    replace(&world, &read_whole(&*file, 1 << 30).unwrap());
    let witnesses = read_head(&world.disk, &world.root).into_iter().collect();
    let error = refused(&world, &Open { witnesses, ..Open::default() });
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert!(error.cause().contains("HEAD"), "{error}");
}

/// G13: an older copy of the manifest, whole in itself, is put back: is it taken for the truth?
#[test]
fn g13_an_older_manifest_is_rolled_back_and_its_mutant_is_caught() {
    let (world, _) = World::sim(5);
    let older = closed(&world);
    let manifest = world.open().unwrap();
    manifest.write(None, STEP, |_| Ok(())).unwrap();
    write_head(&world.disk, &world.root, store(1), manifest.commit_seq()).unwrap();
    manifest.close().unwrap();
    let open = Open {
        witnesses: read_head(&world.disk, &world.root).into_iter().collect(),
        ..Open::default()
    };
    assert_eq!(open.witnesses[0].commit, CommitSeq(4));
    Manifest::open(&world.disk, &world.root, &open).unwrap().close().unwrap();
    replace(&world, &older);
    let error = refused(&world, &open);
    assert_eq!(error.kind(), ErrorKind::RolledBack);
    assert!(error.cause().contains("HEAD knows 4"), "{error}");
    let _off = switch_off(Protection::RefuseRolledBack);
    assert_eq!(Manifest::open(&world.disk, &world.root, &open).unwrap().commit_seq().0, 3);
}

const META: TableDefinition<&[u8], &[u8]> = TableDefinition::new("meta");

/// Changes a value behind the manifest's back, on the real disk.
fn meddle(world: &World, table: &'static str, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
    let mut builder = redb::Builder::new();
    builder.set_concurrency_mode(redb::ConcurrencyMode::SingleWriter);
    let db = builder.open(layout::manifest(&world.root)).unwrap();
    let definition = TableDefinition::<&[u8], &[u8]>::new(table);
    let read = db.begin_read().unwrap().open_table(definition).unwrap();
    let mut value = read.get(key).unwrap().unwrap().value().to_vec();
    change(&mut value);
    let mut txn = db.begin_write().unwrap();
    txn.set_quick_repair(true);
    txn.open_table(definition).unwrap().insert(key, &value[..]).unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
}

fn meta_with(change: impl FnOnce(&mut MetaRow)) -> Vec<u8> {
    let mut meta = MetaRow {
        format: FORMAT,
        features_read: 0,
        features_write: 0,
        store: store(1),
        created: Some(7),
        sealed_folders: crate::support::FOLDERS,
        single_file: false,
    };
    change(&mut meta);
    let body = codec::encode("meta", &meta).unwrap();
    row::seal(Table::Meta.number(), &StoreKey.to_bytes(), 1, &body)
}

/// A newer release wrote the store: is it told apart from damage, whatever it changed?
#[test]
fn g21_a_newer_store_is_never_damage() {
    let world = World::real();
    let newer: [(&str, Vec<u8>); 4] = [
        ("format", meta_with(|meta| meta.format += 1)),
        ("a feature to read", meta_with(|meta| meta.features_read = 1 << 9)),
        ("a feature to write", meta_with(|meta| meta.features_write = 1 << 9)),
        ("the row itself", row::seal(Table::Meta.number(), &StoreKey.to_bytes(), 2, b"unknown")),
    ];
    let original = meta_with(|_| {});
    for (what, value) in newer {
        meddle(&world, "meta", b"store", |old| {
            assert_eq!(*old, original);
            *old = value;
        });
        let error = world.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NewerFormat, "{what}: {error:?}");
        match what {
            "a feature to write" => drop(world.open_read_only().unwrap()),
            _ => assert_eq!(world.open_read_only().unwrap_err().kind(), ErrorKind::NewerFormat),
        }
        meddle(&world, "meta", b"store", |old| *old = original.clone());
    }
    world.open().unwrap().close().unwrap();
    for version in [1, 2, 4] {
        let mut bytes = bytes_of(&world);
        let good = bytes.clone();
        bytes[64] = version;
        replace(&world, &bytes);
        assert_eq!(refused(&world, &Open::default()).kind(), ErrorKind::Damage, "one slot");
        bytes[192] = version;
        replace(&world, &bytes);
        assert_eq!(refused(&world, &Open::default()).kind(), ErrorKind::NewerFormat);
        replace(&world, &good);
    }
    world.open().unwrap();
}

/// P6, G12: one value is damaged: does its error name table and key, and is all else readable?
#[test]
fn g12_a_damaged_row_is_named_and_the_others_are_read() {
    let world = World::real();
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 5)).unwrap();
    manifest.close().unwrap();
    meddle(&world, "chunks", &chunk_key(2).to_bytes(), |value| value[9] ^= 4);
    let manifest = world.open().unwrap();
    let snapshot = manifest.read().unwrap();
    let error = snapshot.get::<ChunkRow>(&chunk_key(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damage);
    assert_eq!(error.place(), "chunks (StreamId(1), Ordinal(2))");
    let error = snapshot.list::<ChunkRow>(.., 9).unwrap_err();
    assert_eq!(error.place(), "chunks (StreamId(1), Ordinal(2))");
    for n in [0, 1, 3, 4] {
        assert!(snapshot.get::<ChunkRow>(&chunk_key(n)).unwrap().is_some());
    }
    assert_eq!(snapshot.list::<ObjectRow>(.., 9).unwrap().len(), 5);
    // Damage in a row is no failure of the disk: the store goes on, and the row is not touched.
    let change =
        |n| move |w: &mut sealstone::manifest::Write<'_>| w.remove::<ChunkRow>(&chunk_key(n));
    assert_eq!(manifest.write(None, STEP, change(2)).unwrap_err().kind(), ErrorKind::Damage);
    manifest.write(None, STEP, change(3)).unwrap();
    assert!(manifest.halt_cause().is_none());
}

/// A table is gone, or the store's own row: an empty one must not be made in its place.
#[test]
fn a_missing_table_or_meta_row_is_damage() {
    let world = World::real();
    let open = || redb::Database::open(layout::manifest(&world.root)).unwrap();
    let edit = |edit: &dyn Fn(&redb::WriteTransaction)| {
        let db = open();
        let mut txn = db.begin_write().unwrap();
        txn.set_quick_repair(true);
        edit(&txn);
        txn.commit().unwrap();
    };
    let kind = || {
        let error = refused(&world, &Open::default());
        (error.kind(), error.chain())
    };
    let receipts = TableDefinition::<&[u8], &[u8]>::new("receipts");
    edit(&|txn| assert!(txn.delete_table(receipts).unwrap()));
    assert_eq!(kind().0, ErrorKind::Damage);
    assert!(kind().1.contains("receipts"), "{}", kind().1);
    edit(&|txn| drop(txn.open_table(TableDefinition::<u64, u64>::new("receipts")).unwrap()));
    assert_eq!(kind().0, ErrorKind::Damage);
    edit(&|txn| {
        txn.delete_table(TableDefinition::<u64, u64>::new("receipts")).unwrap();
        drop(txn.open_table(receipts).unwrap());
    });
    world.open().unwrap().close().unwrap();
    edit(&|txn| drop(txn.open_table(META).unwrap().remove(&b"counters"[..]).unwrap()));
    assert_eq!(kind().0, ErrorKind::Damage);
    edit(&|txn| drop(txn.open_table(META).unwrap().remove(&b"store"[..]).unwrap()));
    assert_eq!(kind().0, ErrorKind::Damage);
    // A database that never was a manifest.
    std::fs::remove_file(layout::manifest(&world.root)).unwrap();
    redb::Database::create(layout::manifest(&world.root)).unwrap();
    assert_eq!(kind().0, ErrorKind::Damage);
}

/// G17: a second writer is refused, in this process and another, and says so; a kill frees it.
#[test]
fn g17_a_second_writer_is_refused_until_the_first_dies() {
    let (world, sim) = World::sim(6);
    let manifest = Manifest::open(&world.disk, &world.root, &Open::default()).unwrap();
    let other: Arc<dyn Disk> = Arc::new(sim.process(2));
    for disk in [&world.disk, &other] {
        let error = Manifest::open(disk, &world.root, &Open::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse);
    }
    manifest.write(None, STEP, |w| w.put(&owner(1), &crate::support::owner_row(1))).unwrap();
    sim.kill();
    let after = Manifest::open(&other, &world.root, &Open::default()).unwrap();
    assert!(after.read().unwrap().get::<OwnerRow>(&owner(1)).unwrap().is_some());
    drop(manifest);
    after.write(None, STEP, |_| Ok(())).unwrap();
    // The same under a real kernel, where the locks belong to the open file.
    let world = World::real();
    let manifest = world.open_as(1);
    assert_eq!(world.open().unwrap_err().kind(), ErrorKind::InUse);
    world.open_read_only().unwrap();
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 1)).unwrap();
    drop(manifest);
    world.open().unwrap();
}

/// G24: the manifest loses its name under a live store: may a commit go into the nameless file?
#[test]
fn g24_a_manifest_that_was_moved_away_takes_no_commit() {
    for replaced in [false, true] {
        let (world, sim) = World::sim(7);
        let manifest = world.open_as(1);
        let path = layout::manifest(&world.root);
        sim.rename(&path, Path::new("/elsewhere")).unwrap();
        if replaced {
            sim.open(&path, Access::CreateNew).unwrap();
        }
        let error = manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ManifestLost);
        let again = manifest.write(Some(owner(1)), STEP, |_| Ok(())).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Halted);
        drop(manifest);
        if replaced {
            sim.unlink(&path).unwrap();
        }
        sim.rename(Path::new("/elsewhere"), &path).unwrap();
        let manifest = world.open().unwrap();
        let snapshot = manifest.read().unwrap();
        assert_eq!(snapshot.get::<ObjectRow>(&ObjectId(1)).unwrap(), None);
    }
}

/// HEAD is replaced whole, whatever lies in its way, and unreadable means no witness.
#[test]
fn head_is_replaced_and_an_unreadable_one_is_no_witness() {
    let (world, sim) = World::sim(8);
    assert_eq!(read_head(&world.disk, &world.root), None);
    for commit in [1, 2] {
        let next = sim.open(&layout::head_next(&world.root), Access::CreateNew).unwrap();
        write_all_at(&*next, &[9; 60], 0).unwrap();
        write_head(&world.disk, &world.root, store(1), CommitSeq(commit)).unwrap();
        let witness = read_head(&world.disk, &world.root).unwrap();
        assert_eq!((witness.store, witness.commit.0), (store(1), commit));
    }
    let head = sim.open(&layout::head(&world.root), Access::ReadWrite).unwrap();
    for (at, byte) in [(12, 1u8), (0, 0)] {
        write_all_at(&*head, &[byte], at).unwrap();
        assert_eq!(read_head(&world.disk, &world.root), None);
    }
}
