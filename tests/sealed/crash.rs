//! Crashes while files are built and placed: a name never appears before its bytes, and never goes
//! once it was reported durable. Switched off, each protection is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{FOLDERS, Rng, World, label};
use sealstone::format::layout;
use sealstone::protection::{Protection, switch_off};
use sealstone::sealed::{Built, Expect, Reader, SLICE_BYTES, place};
use sealstone::vfs::sim::{self, Event, EventLog, Profile, SimDisk};
use sealstone::vfs::{Disk, Step};

const SEED: u64 = 21;

fn root() -> PathBuf {
    "/run.stone".into()
}

/// Longer than a slice: written by more than one call.
const LONG: usize = SLICE_BYTES + 3000;

/// Two files, one with an extent of `len` bytes, built and placed together; noted once durable.
fn run(seed: u64, len: usize) -> (EventLog, Vec<Built>) {
    let sim = SimDisk::new(seed);
    let world = World::born(Arc::new(sim.clone()), root(), None);
    let mut rng = Rng(seed);
    let small = world.build(1, 512, &[rng.bytes(700), rng.bytes(90)]);
    let large = world.build(2, 4096, &[rng.bytes(len)]);
    let built = vec![small, large];
    place(&world.disk, &world.root, &built, FOLDERS).unwrap();
    sim.note("durable");
    (sim.events(), built)
}

/// What is wrong in an image; nothing, for a right one.
fn wrong(disk: &Arc<dyn Disk>, built: &[Built], durable: bool) -> Option<String> {
    let mut seen = 0;
    for folder in 0..FOLDERS {
        let folder = layout::sealed_folder(&root(), folder);
        for entry in disk.list(&folder).unwrap_or_default() {
            let Some((digest, unique)) = layout::parse_sealed(&entry.name) else {
                return Some(format!("{} is no name of ours", entry.name));
            };
            let len = built.iter().find(|built| built.unique == unique).map(|built| built.len);
            let expect = Expect { len, digest: Some(digest), store: Some(label().store) };
            let whole = Reader::open(disk, &folder.join(&entry.name), &expect)
                .and_then(|reader| reader.verify(&digest).and_then(|()| reader.label()));
            if let Err(e) = whole {
                return Some(format!("a name came before its bytes: {e}"));
            }
            seen += 1;
        }
    }
    if durable && seen < built.len() {
        return Some(format!("{seen} of {} files are there, all were durable", built.len()));
    }
    // What stands in tmp/ may be anything, and must not hurt who looks at it.
    for entry in disk.list(&layout::tmp_dir(&root())).unwrap_or_default() {
        let path = layout::tmp_dir(&root()).join(entry.name);
        if let Ok(reader) = Reader::open(disk, &path, &Expect::default()) {
            let _ = (reader.footer(), reader.label(), reader.verify(&built[0].digest));
        }
    }
    None
}

/// Images looked at, crashes in each step, and the first thing wrong.
struct Crashed {
    images: usize,
    steps: BTreeMap<&'static str, usize>,
    wrong: Option<String>,
}

fn crash(log: &EventLog, built: &[Built], profile: Profile) -> Crashed {
    let mut cursor = log.cursor(profile);
    let mut rng = sim::Rng::new(SEED);
    let mut crashed = Crashed { images: 0, steps: BTreeMap::new(), wrong: None };
    loop {
        let durable = !cursor.notes().is_empty();
        let step = cursor.step().map_or("birth", Step::name);
        let known = cursor.duplicates();
        let images = cursor.images(&mut rng, 100);
        // An image seen in an earlier step was a crash in this one all the same.
        let crashes = images.len() + (cursor.duplicates() - known) as usize;
        *crashed.steps.entry(step).or_default() += crashes;
        for image in images {
            crashed.images += 1;
            let disk: Arc<dyn Disk> = Arc::new(image.disk());
            if let Some(wrong) = wrong(&disk, built, durable) {
                let case = format!("seed {SEED}, {}: {wrong}", image.outcomes());
                crashed.wrong.get_or_insert(case);
            }
        }
        if cursor.advance().is_none() {
            return crashed;
        }
    }
}

/// The rule of the trace: a file gets its name under sealed/ with nothing unsynced, and is never
/// written again. The first breach.
fn breach(log: &EventLog) -> Option<String> {
    let (mut dirty, mut sealed) = (BTreeSet::new(), BTreeSet::new());
    for (at, event) in log.events().iter().enumerate() {
        match event {
            Event::Write { inode, .. } | Event::SetLen { inode, .. } => {
                if sealed.contains(inode) {
                    return Some(format!("a sealed file is written: {}", log.describe(at)));
                }
                dirty.insert(*inode);
            }
            Event::SyncFile { inode, failed: None, .. } => {
                dirty.remove(inode);
            }
            Event::Rename { inode, replaced, .. } => {
                if dirty.contains(inode) || replaced.is_some() {
                    return Some(format!("a name too early, or twice: {}", log.describe(at)));
                }
                sealed.insert(*inode);
            }
            _ => {}
        }
    }
    None
}

/// Cut at every event, under every profile: is a name ever there without its bytes, or gone after it
/// was durable? (G7, P3)
#[test]
fn g7_a_name_appears_only_after_content_and_directory_are_synced() {
    let mut steps = BTreeMap::<_, usize>::new();
    for (seed, len) in (SEED..).zip([LONG, 1, 600, 5000, 20_000]) {
        let (log, built) = run(seed, len);
        assert_eq!(breach(&log), None);
        for profile in Profile::ALL {
            let crashed = crash(&log, &built, profile);
            println!("{}: {} images, seed {seed}", profile.name(), crashed.images);
            assert_eq!(crashed.wrong, None, "{}", profile.name());
            for (step, images) in crashed.steps {
                *steps.entry(step).or_default() += images;
            }
        }
    }
    println!("{steps:?}");
    for step in [Step::SealBuild, Step::SealSync, Step::SealRename, Step::SealSyncDir] {
        assert!(steps[step.name()] > 0, "{} was not cut", step.name());
    }
}

/// Would a missing sync of the payload be noticed, by images of a power failure and by the trace?
#[test]
fn mutant_payload_sync_before_commit_is_caught() {
    let _off = switch_off(Protection::PayloadSyncBeforeCommit);
    let (log, built) = run(SEED, 5000);
    assert!(breach(&log).is_some_and(|breach| breach.contains("too early")));
    for profile in [Profile::PosixHarshest, Profile::Ext4Ordered] {
        let wrong = crash(&log, &built, profile).wrong.unwrap_or_default();
        assert!(wrong.contains("a name came before its bytes"), "{}: {wrong}", profile.name());
    }
}

/// Would a missing sync of the directory be noticed?
#[test]
fn mutant_sealed_directory_sync_is_caught() {
    let _off = switch_off(Protection::SealedDirectorySync);
    let (log, built) = run(SEED, 5000);
    for profile in [Profile::PosixHarshest, Profile::Ext4Ordered] {
        let wrong = crash(&log, &built, profile).wrong.unwrap_or_default();
        assert!(wrong.contains("all were durable"), "{}: {wrong}", profile.name());
    }
}

/// Equal seeds, equal traces: is a failing case found again?
#[test]
fn equal_seeds_give_equal_traces() {
    let trace = |seed| run(seed, 5000).0.trace_hash();
    assert_eq!(trace(SEED), trace(SEED));
    assert_ne!(trace(SEED), trace(SEED + 1));
}

/// A process is killed in the middle of a build, and its builder dropped: does that reach the disk?
#[test]
fn a_killed_process_takes_nothing_with_it() {
    let sim = SimDisk::new(SEED);
    let world = World::born(Arc::new(sim.clone()), root(), None);
    let process = sim.process(77);
    let of_it = World { disk: Arc::new(process.clone()), root: root(), _dir: None };
    let mut builder = of_it.builder(1, 64);
    builder.add(&crate::support::extent(b"abc"), b"abc").unwrap();
    process.kill();
    drop(builder);
    assert_eq!(world.disk.list(&layout::tmp_dir(&root())).unwrap().len(), 1);
}
