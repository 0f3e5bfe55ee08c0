//! What is put, on a disk that is cut, killed, full, and in stores without a protection.

use std::path::Path;
use std::sync::Arc;

use sealstone::digest::Digest;
use sealstone::engine::{Budget, Layout, Options, Store};
use sealstone::manifest::{
    LeasedRow, ObjectRow, Piece, Place, PreparationRow, Reading, RecipeRow, Table,
};
use sealstone::objects::{Pieces, Preparation, PutOptions};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng, SimDisk};
use sealstone::vfs::{Access, Disk, Step, read_whole, write_all_at};
use sealstone::{ErrorKind, Result};

use crate::made::{self, noise};

const PATH: &str = "/data/run.stone";
const SOURCE: &str = "/data/source";

fn source() -> Vec<u8> {
    noise(77, 60_000)
}

fn options(layout: Layout, disk: &SimDisk) -> Options {
    let mut limits = made::small();
    limits.sealed_folders = 1;
    limits.sealed_file_bytes = 16 << 10;
    Store::options().limits(limits).layout(layout).disk(Arc::new(disk.clone()))
}

fn world(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    let file = disk.open(Path::new(SOURCE), Access::CreateNew).unwrap();
    write_all_at(&*file, &source(), 0).unwrap();
    file.sync_all().unwrap();
    disk.sync_dir(Path::new("/data")).unwrap();
    disk
}

fn in_pieces() -> PutOptions {
    let pieces = Pieces::Of { min: 256, avg: 1024, max: 4096 };
    PutOptions { pieces, ..PutOptions::default() }
}

/// Contents as they are put, but for the source: in the manifest, in a file, in pieces.
fn contents() -> [(Vec<u8>, PutOptions); 3] {
    let whole = PutOptions::default();
    [(noise(1, 40), whole), (noise(2, 5000), whole), (noise(3, 9000), in_pieces())]
}

fn put_all(prep: &Preparation) -> Result<()> {
    for (content, options) in contents() {
        prep.put_with(&content, &options)?;
    }
    prep.put_file(SOURCE, &in_pieces())?;
    prep.flush()
}

/// What a run does: note 1 comes once everything is flushed, 2 before it is abandoned.
fn run(disk: &SimDisk, store: &Store) -> Result<()> {
    let prep = store.objects().prepare("import")?;
    put_all(&prep)?;
    disk.note([1]);
    drop(prep);
    let prep = store.objects().prepare("import")?;
    disk.note([2]);
    prep.abandon("enough")?;
    store.reclaim(Budget::default())?;
    Ok(())
}

/// The source is whole, what was flushed is leased and reads, and another run from here leaves nothing.
fn judge(layout: Layout, disk: &SimDisk, noted: u8) -> Result<(), String> {
    let said = |what: &'static str| move |e: sealstone::Error| format!("{what}: {e:?}");
    let file = disk.open(Path::new(SOURCE), Access::Read).map_err(|e| e.to_string())?;
    if read_whole(&*file, 1 << 20).map_err(|e| e.to_string())? != source() {
        return Err("OBJ4: the source changed".to_owned());
    }
    let store = options(layout, disk).open(PATH).map_err(said("open"))?;
    let objects = store.objects();
    if !store.claims(9).map_err(said("claims"))?.is_empty() {
        return Err("a dead process holds a claim".to_owned());
    }
    let digests: Vec<_> =
        contents().iter().map(|(c, _)| Digest::of(c)).chain([Digest::of(&source())]).collect();
    let stands = !objects.preparations().map_err(said("list"))?.is_empty();
    if noted == 1 && !stands {
        return Err("OBJ6: the preparation is gone".to_owned());
    }
    for digest in &digests {
        let is_there = objects.contains(digest).map_err(said("contains"))?;
        if noted == 1 && !is_there {
            return Err("OBJ6: what was flushed is gone".to_owned());
        }
        if is_there {
            objects.get(digest).and_then(|object| object.verify()).map_err(said("verify"))?;
        }
    }
    let prep = objects.prepare("import").map_err(said("go on"))?;
    put_all(&prep).map_err(said("put again"))?;
    for (digest, content) in
        digests.iter().zip(contents().map(|(content, _)| content).into_iter().chain([source()]))
    {
        let bytes = objects.get(digest).and_then(|object| object.bytes()).map_err(said("get"))?;
        if bytes != content {
            return Err("other bytes".to_owned());
        }
    }
    let view = objects.preparations().map_err(said("list"))?.remove(0);
    if (view.objects, view.pieces) != (4, 0) {
        return Err(format!("{view:?}"));
    }
    prep.abandon("enough").map_err(said("abandon"))?;
    store.reclaim(Budget::default()).map_err(said("reclaim"))?;
    let accounts = store.accounts().map_err(said("accounts"))?;
    if !accounts.are_closed() || accounts.orphan + accounts.condemned + accounts.live != 0 {
        return Err(format!("left over: {accounts:?}"));
    }
    let snapshot = store.snapshot().map_err(said("snapshot"))?;
    let tables = [
        Table::Objects,
        Table::Inline,
        Table::Digests,
        Table::Edges,
        Table::Files,
        Table::Recipes,
        Table::Leases,
        Table::Leased,
        Table::Preparations,
        Table::Retiring,
        Table::Claims,
    ];
    for table in tables {
        let rows = snapshot.count(table).map_err(said("count"))?;
        if rows > 0 {
            return Err(format!("left over: {rows} rows of {table:?}"));
        }
    }
    Ok(())
}

/// How much of it: everything where `SEALSTONE_MATRIX` is set.
fn stride(short: u64) -> u64 {
    if std::env::var("SEALSTONE_MATRIX").is_ok() { 1 } else { short }
}

fn cut(layout: Layout, seed: u64) {
    let disk = world(seed);
    let store = options(layout, &disk).create(PATH).unwrap();
    disk.restart_log();
    run(&disk, &store).unwrap();
    let log = disk.events();
    let (mut images, mut steps) = (0, std::collections::BTreeSet::new());
    for profile in Profile::ALL {
        let (mut cursor, mut rng, mut at) = (log.cursor(profile), Rng::new(seed), 0u64);
        loop {
            let noted = cursor.notes().last().map_or(0, |note| note[0]);
            let step = cursor.step();
            at += 1;
            let is_new = step.is_some_and(|step| steps.insert((profile.name(), step)));
            if is_new || at % stride(13) == seed % stride(13) {
                for image in cursor.images(&mut rng, 1) {
                    images += 1;
                    if let Err(why) = judge(layout, &image.disk(), noted) {
                        panic!("{why}\n  {profile:?}, {step:?}, {}", image.outcomes());
                    }
                }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    println!("{layout:?}: {images} images");
    for step in [Step::PrepareCommit, Step::PutCommit] {
        assert!(steps.iter().any(|(_, seen)| *seen == step), "{step:?} was never cut");
    }
}

/// Is what was flushed there after a cut at any event, the source whole, and nothing left once the same was
/// put again and given up?
#[test]
fn obj4_obj6_cut_at_any_event() {
    cut(Layout::Directory, 5);
}

/// And in a store that is one file?
#[test]
fn obj4_obj6_cut_at_any_event_in_one_file() {
    cut(Layout::SingleFile, 6);
}

/// Is everything accepted stored after all, where the disk was full, or failed, at any operation?
#[test]
fn obj6_a_full_disk_loses_nothing_that_was_accepted() {
    for layout in [Layout::Directory, Layout::SingleFile] {
        for kind in [FaultKind::Enospc, FaultKind::Eio] {
            let (mut at, mut struck) = (0, 0);
            loop {
                let disk = world(9);
                let store = options(layout, &disk).create(PATH).unwrap();
                let prep = store.objects().prepare("import").unwrap();
                disk.inject(Fault::new(disk.operations() + at, kind));
                let first = put_all(&prep);
                let fired = disk.fired();
                disk.clear_faults();
                if fired.is_empty() {
                    break;
                }
                struck += 1;
                let noted = match first {
                    Ok(()) => 1,
                    Err(_) if store.health().halted.is_some() => 0,
                    Err(e) => {
                        assert_ne!(e.kind(), ErrorKind::Damage, "{e:?} {fired:?}");
                        put_all(&prep).unwrap_or_else(|e| panic!("again: {e:?} {fired:?}"));
                        1
                    }
                };
                disk.kill();
                drop((prep, store));
                let judged = judge(layout, &disk.process(78), noted);
                judged.unwrap_or_else(|why| panic!("{why}\n  {kind:?} {fired:?}"));
                at += stride(11);
            }
            println!("{layout:?} {kind:?}: {struck} faults");
            assert!(struck > 3);
        }
    }
}

/// Are pieces of what is being put kept by leases until their recipe stands, and would they be missed?
#[test]
fn obj3_pieces_are_leased_until_their_recipe_stands() {
    let content = source();
    let put = || {
        let disk = world(3);
        let store = options(Layout::Directory, &disk).create(PATH).unwrap();
        let prep = store.objects().prepare("import").unwrap();
        let put = prep.put_reader(&content[..], &in_pieces())?;
        prep.flush()?;
        store.objects().get(&put.digest)?.bytes()
    };
    assert_eq!(put().unwrap(), content);
    let _off = switch_off(Protection::PieceLeases);
    assert!(put().is_err());
}

/// Is a recipe with a gap refused when it is written, and told by whoever reads one? (Without the check of
/// writing there is one to read.)
#[test]
fn obj3_a_gap_is_an_error_on_write_and_on_read() {
    let disk = world(3);
    let store = options(Layout::Directory, &disk).create(PATH).unwrap();
    let prep = store.objects().prepare("import").unwrap();
    let contents = [noise(1, 300), noise(2, 300)];
    let digests = contents.each_ref().map(|content| prep.put(content).unwrap());
    prep.flush().unwrap();
    let digest = Digest::of(&contents.concat());
    let write = || {
        store.transact(Step::PutCommit, |w| {
            let first = w.object_of(&digests[0])?[0].0;
            let object = w.next_object_id()?;
            let place = Place::Recipe;
            w.put(&object, &ObjectRow { digest, len: 600, stored_len: 0, codec: 0, place })?;
            w.put(&(object, 0), &RecipeRow { pieces: vec![Piece { object: first, len: 300 }] })?;
            let lease = w.require::<PreparationRow>(&"import".to_owned())?.lease;
            w.put(&(lease, object), &LeasedRow { object, is_whole: true, is_piece: false })
        })
    };
    assert_eq!(write().unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!store.objects().contains(&digest).unwrap());
    let off = switch_off(Protection::RecipeWhole);
    write().unwrap();
    drop(off);
    let told = store.objects().get(&digest).and_then(|object| object.bytes()).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Damage, "{told}");
    // Put again, it is whole.
    let options = PutOptions { pieces: in_pieces().pieces, ..PutOptions::default() };
    prep.put_with(&contents.concat(), &options).unwrap();
    prep.flush().unwrap();
    assert_eq!(store.objects().get(&digest).unwrap().bytes().unwrap(), contents.concat());
}

/// Is "stored already" believed only of bytes that were read? Without that, what is damaged stays so.
#[test]
fn obj1_dedupe_reads_what_it_trusts() {
    let put = || {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run.stone");
        let store = made::options(made::KINDS[0]).create(&root).unwrap();
        let prep = store.objects().prepare("import").unwrap();
        let content = noise(1, 30_000);
        let digest = prep.put(&content).unwrap();
        prep.flush().unwrap();
        for file in made::sealed_files(&root) {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[9000] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
        prep.put(&content).unwrap();
        prep.flush().unwrap();
        store.objects().get(&digest).and_then(|object| object.bytes())
    };
    assert!(put().is_ok());
    let _off = switch_off(Protection::DedupeVerified);
    assert_eq!(put().unwrap_err().kind(), ErrorKind::Damage);
}
