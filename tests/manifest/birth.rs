//! A store is born whole or not at all, whoever races and wherever the power fails.

use std::path::Path;
use std::sync::Arc;

use sealstone::error::{Error, ErrorKind, Result};
use sealstone::format::layout;
use sealstone::manifest::{Manifest, Open, Reading, Table};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::{Image, Profile, Rng, SimDisk};

use crate::meddle::Meddled;
use crate::support::{World, birth, contents, folders, store};

const ROOT: &str = "/run.stone";

fn dynamic(disk: &SimDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

fn open(disk: &Arc<dyn Disk>) -> Result<Manifest> {
    Manifest::open(disk, Path::new(ROOT), &Open::default())
}

/// Is there already a store, of another birth or of the same? It is left as it is.
#[test]
fn a_second_birth_is_refused_and_changes_nothing() {
    let (world, _) = World::sim(1);
    let before = contents(&world.open().unwrap().read().unwrap()).unwrap();
    let error = Manifest::create(&world.disk, &world.root, &birth(2), "other").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let manifest = world.open().unwrap();
    assert_eq!(manifest.meta().store, store(1));
    assert_eq!(contents(&manifest.read().unwrap()).unwrap(), before);
    assert_eq!(world.disk.list(&layout::tmp_dir(&world.root)).unwrap(), []);
}

/// Two creators pass the first look together; the second link must not replace the first store.
#[test]
fn of_two_racing_births_one_wins_and_stands() {
    let sim = SimDisk::new(2);
    folders(&sim, Path::new(ROOT));
    let slow = Meddled::new(sim.process(2));
    let fast = dynamic(&sim);
    slow.before_link(move || {
        Manifest::create(&fast, Path::new(ROOT), &birth(1), "fast").unwrap();
    });
    let slow: Arc<dyn Disk> = slow;
    let error = Manifest::create(&slow, Path::new(ROOT), &birth(2), "slow").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    let disk = dynamic(&sim);
    assert_eq!(open(&disk).unwrap().meta().store, store(1));
    assert_eq!(disk.list(&layout::tmp_dir(Path::new(ROOT))).unwrap(), []);
}

/// A birth, recorded: what the disk looked like at each of its events.
fn recorded() -> SimDisk {
    let sim = SimDisk::new(3);
    folders(&sim, Path::new(ROOT));
    sim.restart_log();
    Manifest::create(&dynamic(&sim), Path::new(ROOT), &birth(1), "birth").unwrap();
    sim.note("born");
    sim
}

/// Crashes the recorded birth everywhere under `profile`; returns how many images held a store,
/// how many none, and the first that held something else.
fn crash(sim: &SimDisk, profile: Profile) -> (usize, usize, Option<String>) {
    let mut cursor = sim.events().cursor(profile);
    let mut rng = Rng::new(4);
    let (mut stores, mut none, mut bad) = (0, 0, None);
    loop {
        for image in cursor.images(&mut rng, 40) {
            match judge(&image, !cursor.notes().is_empty()) {
                Ok(true) => stores += 1,
                Ok(false) => none += 1,
                Err(why) => {
                    bad.get_or_insert_with(|| format!("{}: {why}", image.outcomes()));
                }
            }
        }
        if cursor.advance().is_none() {
            return (stores, none, bad);
        }
    }
}

/// Whether an image holds the store; an error when it holds neither it nor none.
fn judge(image: &Image, born: bool) -> Result<bool> {
    let disk = dynamic(&image.disk());
    let stood = match open(&disk) {
        Err(error) if error.kind() == ErrorKind::NoStore && !born => {
            Manifest::create(&disk, Path::new(ROOT), &birth(1), "again")?;
            false
        }
        opened => opened.and_then(|manifest| manifest.close()).map(|()| true)?,
    };
    let manifest = open(&disk)?;
    let snapshot = manifest.read()?;
    if snapshot.counters()?.commit_seq.0 != 1 || snapshot.count(Table::Owners)? != 0 {
        return Err(Error::damage("test", "image", "not a new store"));
    }
    Ok(stood)
}

/// Power fails at any event of a birth: is there a whole store, or none and room for one?
#[test]
fn a_birth_cut_short_leaves_a_whole_store_or_none() {
    let sim = recorded();
    for profile in Profile::ALL {
        let (stores, none, bad) = crash(&sim, profile);
        println!("{profile:?}: {stores} images with the store, {none} without");
        assert_eq!(bad, None, "{profile:?}");
        assert!(stores > 1 && none > 20, "{profile:?}: {stores} stores, {none} none");
    }
}

/// Mutant: born under its own name. Some crash must leave a file that never opens.
#[test]
fn mutant_birth_by_link_is_caught() {
    let sim = {
        let _off = switch_off(Protection::BirthByLink);
        recorded()
    };
    let (_, _, bad) = crash(&sim, Profile::PosixHarshest);
    assert!(bad.is_some());
}
