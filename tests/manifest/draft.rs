//! A new manifest made of rows: is it all of them, exactly, whatever the disk does meanwhile?

use std::path::Path;
use std::sync::Arc;

use sealstone::error::{ErrorKind, Result};
use sealstone::format::layout;
use sealstone::ids::{ObjectId, OwnerId};
use sealstone::manifest::{
    Draft, Drafted, InlineRow, Key, Manifest, MetaRow, Open, OwnerRow, Pass, Reading, Table,
    row_value,
};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Profile, Rng, SimDisk};
use sealstone::vfs::{Disk, RealDisk, Step};

use crate::meddle::{Fault, Meddled};
use crate::support::{World, contents, folders, owner, owner_row, publish};

const STEP: Step = Step::PublishCommit;

/// Where a copy goes: a place that becomes a store by it.
const OTHER: &str = "/copy.stone";

fn target(root: &Path) -> std::path::PathBuf {
    layout::manifest(root)
}

fn open(disk: &Arc<dyn Disk>, root: &Path) -> Result<Manifest> {
    Manifest::open(disk, root, &Open::default())
}

fn same(_: &mut MetaRow) -> Result<()> {
    Ok(())
}

/// Does a copy hold all rows of the snapshot, and none of later commits, on the same disk and on
/// another?
#[test]
fn a_copy_is_the_snapshot_and_nothing_else() {
    for world in [World::sim(1).0, World::real()] {
        let manifest = world.open_as(1);
        manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 30)).unwrap();
        let snapshot = manifest.read().unwrap();
        let before = contents(&snapshot).unwrap();
        manifest.write(Some(owner(1)), STEP, |w| publish(w, 100, 5)).unwrap();
        let elsewhere: Arc<dyn Disk> = Arc::new(SimDisk::new(9));
        let beside = world.root.with_file_name("copy.stone");
        for (disk, root) in [(&world.disk, beside.as_path()), (&elsewhere, Path::new(OTHER))] {
            folders(&**disk, root);
            let drafted = snapshot.copy_to(disk, &target(root), &[], &mut same).unwrap();
            let copy = open(disk, root).unwrap();
            let read = copy.read().unwrap();
            assert_eq!(contents(&read).unwrap(), before);
            assert_eq!(copy.meta(), manifest.meta());
            for (table, rows) in drafted.by_table {
                assert_eq!(read.count(table).unwrap(), rows, "{table:?}");
                assert_eq!(snapshot.count(table).unwrap(), rows, "{table:?}");
            }
            // It is a manifest like any other.
            drop(read);
            copy.write(Some(owner(1)), STEP, |w| publish(w, 200, 1)).unwrap();
            copy.close().unwrap();
        }
    }
}

/// Do tables stay out, and rows change, as asked? The tables themselves must be there.
#[test]
fn a_copy_leaves_out_and_changes_what_was_asked() {
    let (world, _) = World::sim(2);
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 3)).unwrap();
    let snapshot = manifest.read().unwrap();
    folders(&*world.disk, Path::new(OTHER));
    let path = target(Path::new(OTHER));
    let mut halve = |meta: &mut MetaRow| {
        meta.sealed_folders = 2;
        Ok(())
    };
    let drafted = snapshot.copy_to(&world.disk, &path, &[Table::Chunks], &mut halve).unwrap();
    let copy = open(&world.disk, Path::new(OTHER)).unwrap();
    assert_eq!(copy.meta().sealed_folders, 2);
    assert_eq!(copy.meta().store, manifest.meta().store);
    assert_eq!(copy.read().unwrap().count(Table::Chunks).unwrap(), 0);
    let all: u64 = Table::ALL.iter().map(|table| snapshot.count(*table).unwrap()).sum();
    assert_eq!(drafted.rows, all - 3);
    copy.close().unwrap();

    world.disk.unlink(&path).unwrap();
    let mut draft = Draft::create(&world.disk, &path).unwrap();
    let row = OwnerRow { host: "elsewhere".to_owned(), ..owner_row(1) };
    draft
        .copy(&snapshot, &mut |table, key, _| match table {
            Table::Owners => {
                let key = OwnerId::from_bytes(key)?;
                Ok(Pass::Changed(row_value(&key, &row)?))
            }
            Table::Objects => Ok(Pass::Left),
            _ => Ok(Pass::Same),
        })
        .unwrap();
    let (key, more) = (ObjectId(77), InlineRow { bytes: vec![1, 2, 3] });
    draft
        .put(
            Table::Inline,
            &key.to_bytes(),
            row_value(&key, &InlineRow { bytes: vec![0] }).unwrap(),
        )
        .unwrap();
    draft.put(Table::Inline, &key.to_bytes(), row_value(&key, &more).unwrap()).unwrap();
    draft.finish().unwrap();
    let copy = open(&world.disk, Path::new(OTHER)).unwrap();
    let read = copy.read().unwrap();
    assert_eq!(read.get::<OwnerRow>(&owner(1)).unwrap(), Some(row));
    assert_eq!(read.count(Table::Objects).unwrap(), 0);
    assert_eq!(read.get::<InlineRow>(&key).unwrap(), Some(more));
}

/// Is a name that is taken left alone, a row that was damaged told, a store without its row
/// refused?
#[test]
fn what_cannot_be_a_manifest_is_refused() {
    let (world, _) = World::sim(3);
    let manifest = world.open_as(1);
    let snapshot = manifest.read().unwrap();
    let taken = snapshot.copy_to(&world.disk, &target(&world.root), &[], &mut same).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Exists, "{taken:?}");
    assert_eq!(contents(&manifest.read().unwrap()).unwrap(), contents(&snapshot).unwrap());

    let path = world.root.join("one");
    let mut draft = Draft::create(&world.disk, &path).unwrap();
    let (key, row) = (ObjectId(1), InlineRow { bytes: vec![5; 9] });
    let value = row_value(&key, &row).unwrap();
    let elsewhere = draft.put(Table::Inline, &ObjectId(2).to_bytes(), value.clone()).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::Damage);
    for bit in 0..value.len() * 8 {
        let mut flipped = value.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(draft.put(Table::Inline, &key.to_bytes(), flipped).is_err());
    }
    assert!(draft.put(Table::Inline, &key.to_bytes(), Vec::new()).is_err());
    draft.put(Table::Inline, &key.to_bytes(), value).unwrap();
    let unnamed = draft.finish().unwrap_err();
    assert_eq!(unnamed.kind(), ErrorKind::Invalid);
}

/// More rows than are held in memory at once: is each of them there, and is the file about as
/// large as they are? (A manifest that grew is copied to make it small.)
#[test]
fn many_rows_are_copied_in_pieces_and_packed() {
    let world = World::real();
    let disk: Arc<dyn Disk> = RealDisk::new();
    let source = world.root.with_file_name("many.stone");
    folders(&*disk, &source);
    let mut draft = Draft::create(&disk, &target(&source)).unwrap();
    let manifest = world.open_as(1);
    draft.copy(&manifest.read().unwrap(), &mut |_, _, _| Ok(Pass::Same)).unwrap();
    let rows = 40_000u64;
    let mut live = 0;
    for n in (0..rows).map(|n| n.wrapping_mul(7_919) % rows) {
        let key = ObjectId(n);
        let row = InlineRow { bytes: vec![n as u8; 100 + n as usize % 400] };
        let value = row_value(&key, &row).unwrap();
        live += 8 + value.len() as u64;
        draft.put(Table::Inline, &key.to_bytes(), value).unwrap();
    }
    let drafted = draft.finish().unwrap();
    let first = open(&disk, &source).unwrap();
    let copy = world.root.with_file_name("packed.stone");
    folders(&*disk, &copy);
    let snapshot = first.read().unwrap();
    let packed = snapshot.copy_to(&disk, &target(&copy), &[], &mut same).unwrap();
    println!("{live} bytes of rows: {} in no order, {} in order", drafted.bytes, packed.bytes);
    assert_eq!(packed.rows, drafted.rows);
    assert!(packed.bytes < 3 * live, "{} for {live}", packed.bytes);
    let again = open(&disk, &copy).unwrap();
    assert_eq!(again.read().unwrap().count(Table::Inline).unwrap(), rows);
}

fn drafted(disk: &Arc<dyn Disk>, from: &Manifest) -> Result<Drafted> {
    from.read()?.copy_to(disk, &target(Path::new(OTHER)), &[], &mut same)
}

/// A store with some rows, and a place for its copy.
fn ready(seed: u64) -> (World, SimDisk, Manifest) {
    let (world, sim) = World::sim(seed);
    let manifest = world.open_as(1);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 12)).unwrap();
    folders(&sim, Path::new(OTHER));
    (world, sim, manifest)
}

/// G1: the power fails at any event of a copy. Once it was finished and its name synced, is it
/// there and whole? Before that, is it never a part of itself that passes for the whole?
#[test]
fn a_copy_cut_short_is_no_manifest_or_all_of_it() {
    let (world, sim, manifest) = ready(4);
    let expected = contents(&manifest.read().unwrap()).unwrap();
    sim.restart_log();
    drafted(&world.disk, &manifest).unwrap();
    sim.sync_dir(Path::new(OTHER)).unwrap();
    sim.note("made");
    for profile in Profile::ALL {
        let mut cursor = sim.events().cursor(profile);
        let mut rng = Rng::new(5);
        let (mut whole, mut none) = (0, 0);
        loop {
            for image in cursor.images(&mut rng, 10) {
                let is_made = !cursor.notes().is_empty();
                let disk: Arc<dyn Disk> = Arc::new(image.disk());
                match open(&disk, Path::new(OTHER)) {
                    Ok(copy) => {
                        let found = contents(&copy.read().unwrap()).unwrap();
                        assert_eq!(found, expected, "{}", image.outcomes());
                        whole += 1;
                    }
                    Err(error) => {
                        assert!(!is_made, "{}: {error:?}", image.outcomes());
                        none += 1;
                    }
                }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
        println!("{profile:?}: {whole} images with the copy, {none} without");
        assert!(whole > 2 && none > 20, "{profile:?}: {whole}, {none}");
    }
}

/// Each operation of a copy fails once: is that told, and does the source stand as it was?
#[test]
fn a_disk_that_fails_leaves_the_source_alone() {
    let (_world, sim, manifest) = ready(6);
    let expected = contents(&manifest.read().unwrap()).unwrap();
    for kind in [Fault::Change, Fault::Sync, Fault::Read] {
        for after in 0.. {
            let meddled = Meddled::new(sim.clone());
            meddled.fail(kind, after);
            let disk: Arc<dyn Disk> = meddled.clone();
            let done = drafted(&disk, &manifest);
            meddled.mend();
            assert_eq!(contents(&manifest.read().unwrap()).unwrap(), expected);
            sim.unlink(&target(Path::new(OTHER))).unwrap();
            match done {
                Ok(_) => {
                    assert!(after > 2, "{kind:?} fails nothing");
                    break;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{kind:?} {after}: {error:?}")
                }
            }
        }
    }
}

/// Copies on a disk that loses write number `n`, for every `n`; how many copies passed for good
/// and were not.
fn lost_writes() -> (u64, u64) {
    let (_world, sim, manifest) = ready(7);
    let expected = contents(&manifest.read().unwrap()).unwrap();
    let (mut noticed, mut missed) = (0, 0);
    for after in 0.. {
        let meddled = Meddled::new(sim.clone());
        meddled.fail(Fault::LostWrite, after);
        let disk: Arc<dyn Disk> = meddled.clone();
        let done = drafted(&disk, &manifest);
        let plain: Arc<dyn Disk> = Arc::new(sim.clone());
        let is_same = || contents(&open(&plain, Path::new(OTHER))?.read()?);
        match done {
            Err(_) => noticed += 1,
            Ok(_) if is_same().is_ok_and(|found| found == expected) => {}
            Ok(_) => missed += 1,
        }
        sim.unlink(&target(Path::new(OTHER))).unwrap();
        if meddled.is_armed() {
            return (noticed, missed);
        }
    }
    unreachable!()
}

/// A write that the disk acknowledged is not there: does reading back notice each such copy, and
/// is the switch that reads back the one that does?
#[test]
fn a_lost_write_is_noticed_and_the_mutant_is_caught() {
    let (noticed, missed) = lost_writes();
    println!("{noticed} copies refused");
    assert!(noticed > 3, "{noticed}");
    assert_eq!(missed, 0);
    let _off = switch_off(Protection::DraftReadBack);
    assert!(lost_writes().1 > 0);
}
