//! Commits cut short: a store holds commit k or k + 1, and what a reader was shown stays.

use std::path::Path;
use std::sync::Arc;

use sealstone::error::Result;
use sealstone::manifest::{ChunkRow, Manifest, Open};
use sealstone::vfs::sim::{Profile, Rng, SimDisk};
use sealstone::vfs::{Disk, Step};

use crate::support::{World, chunk_key, contents, owner, publish};

const STEP: Step = Step::PublishCommit;

/// A store in which commits are made and unmade; what it says after each, by commit number.
fn recorded() -> (SimDisk, Vec<Vec<String>>) {
    let (world, sim) = World::sim(5);
    let manifest = world.open_as(1);
    sim.restart_log();
    let mut states = vec![contents(&manifest.read().unwrap()).unwrap()];
    let mut acknowledge = |n: usize| {
        states.push(contents(&manifest.read().unwrap()).unwrap());
        sim.note([n as u8]);
    };
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 0, 40)).unwrap();
    acknowledge(1);
    let gone = |w: &mut sealstone::manifest::Write<'_>| {
        (0..20).try_for_each(|n| w.remove::<ChunkRow>(&chunk_key(n)).map(|_| ()))
    };
    manifest.write(Some(owner(1)), STEP, gone).unwrap();
    acknowledge(2);
    manifest.write(Some(owner(1)), STEP, |w| publish(w, 100, 3)).unwrap();
    acknowledge(3);
    manifest.close().unwrap();
    (sim, states)
}

fn state(disk: &SimDisk, read_only: bool) -> Result<Vec<String>> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let (root, open) = (Path::new("/run.stone"), Open::default());
    let manifest = match read_only {
        true => Manifest::open_read_only(&disk, root, &open)?,
        false => Manifest::open(&disk, root, &open)?,
    };
    let snapshot = manifest.read()?;
    contents(&snapshot)
}

/// G3, G13: at every event, whatever survives: exactly what was acknowledged, or one commit more,
/// for a writer and for a reader, who changes nothing.
#[test]
fn g3_a_commit_is_there_whole_or_not_at_all() {
    let (sim, states) = recorded();
    let mut images = 0;
    for profile in Profile::ALL {
        let mut cursor = sim.events().cursor(profile);
        let mut rng = Rng::new(6);
        let (mut old, mut new) = (0, 0);
        loop {
            for image in cursor.images(&mut rng, 12) {
                images += 1;
                let known = cursor.notes().last().map_or(0, |note| usize::from(note[0]));
                let disk = image.disk();
                let before = disk.counts();
                let read = state(&disk, true);
                let quiet = disk.counts().since(&before).mutations();
                assert_eq!(quiet, 0, "a reader wrote: {}", image.outcomes());
                let written = state(&disk, false);
                let number = |state: &Result<Vec<String>>| match state {
                    Ok(state) => states.iter().position(|s| s == state),
                    Err(error) => panic!("{}: {error:?}", image.outcomes()),
                };
                let (read, written) = (number(&read), number(&written));
                for found in [read, written] {
                    let found = found.unwrap_or_else(|| panic!("torn: {}", image.outcomes()));
                    assert!((known..=known + 1).contains(&found), "{}", image.outcomes());
                }
                assert!(read <= written, "taken back: {}", image.outcomes());
                if written == Some(known) { old += 1 } else { new += 1 }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
        println!("{profile:?}: {old} images at the last acknowledged commit, {new} one further");
        assert!(old > 20 && new > 2, "{profile:?}: {old}, {new}");
    }
    println!("{images} images");
}

/// G10: a writer is killed, a reader looks, then the power fails: is what the reader was shown
/// still there?
#[test]
fn g10_what_a_reader_was_shown_survives_the_power_failure_after() {
    let (sim, states) = recorded();
    let mut cursor = sim.events().cursor(Profile::ProcessKill);
    let mut rng = Rng::new(7);
    let (mut images, mut withheld) = (0, 0);
    loop {
        for image in cursor.images(&mut rng, 2) {
            let number = |state: Result<Vec<String>>| {
                let state = state.unwrap_or_else(|e| panic!("{}: {e:?}", image.outcomes()));
                states.iter().position(|s| *s == state).unwrap()
            };
            let disk = image.disk();
            let shown = number(state(&disk, true));
            let mut after = disk.events().cursor(Profile::PosixHarshest);
            after.advance_to(usize::MAX);
            let mut lowest = usize::MAX;
            for later in after.images(&mut rng, 6) {
                images += 1;
                let left = number(state(&later.disk(), false));
                assert!(left >= shown, "{} then {}", image.outcomes(), later.outcomes());
                lowest = lowest.min(left);
            }
            withheld += usize::from(number(state(&disk, false)) > shown);
        }
        if cursor.advance().is_none() {
            break;
        }
    }
    println!("{images} power failures after a kill; {withheld} times a commit was withheld");
    assert!(images > 100 && withheld > 0, "{images} {withheld}");
}
