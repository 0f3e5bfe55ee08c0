//! REC50: following a recording that is being written, interleaved with its writer step by step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::engine::Options;
use sealstone::journal::Level;
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{Follow, FollowLevel, Followed, RecordingStatus};
use sealstone::vfs::sim::{Rng, SimDisk};
use sealstone::vfs::{Access, Disk, TraceDisk};
use sealstone::{ErrorKind, Layout, Limits, Store, WriteAccess};

use crate::followed_run::{NAME, Run, Seen};

pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 64 << 10;
    limits.object_inline_bytes_max = 64;
    limits.background = false;
    limits
}

pub fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk
}

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

pub fn on(disk: &SimDisk) -> Options {
    Store::options().limits(limits()).disk(Arc::new(disk.clone()))
}

/// A store of another process, for reading.
pub fn reader(disk: &SimDisk) -> Store {
    on(&disk.process(2)).open_read_only(root()).unwrap()
}

/// Everything that is there by now.
pub fn drain(follow: &mut Follow, seen: &mut Seen) -> Vec<Followed> {
    let mut told = Vec::new();
    while let Some(one) = follow.poll().unwrap() {
        seen.take(&one).unwrap();
        told.push(one);
    }
    told
}

pub fn names(told: &[Followed]) -> Vec<String> {
    let name = |one: &Followed| match one {
        Followed::Appended { stream, record } => format!("{stream} {}", record.iteration()),
        Followed::Sealed { stream, upto } => format!("{stream} sealed {upto}"),
        Followed::Rewound { stream, to } => format!("{stream} back to {to}"),
        Followed::Ended(status) => format!("{status:?}"),
        other => format!("{other:?}"),
    };
    told.iter().map(name).collect()
}

/// Does a follower in another process see each record once and in order, and then that it was
/// sealed, moved back and ended?
#[test]
fn rec50_records_once_and_in_order_with_what_became_of_them() {
    let disk = sim(1);
    let mut run = Run::create(&on(&disk), &root());
    let store = reader(&disk);
    let (mut follow, mut seen) = (store.follow(NAME).unwrap(), Seen::default());
    assert!(drain(&mut follow, &mut seen).is_empty());
    let ticket = run.put(&[0, 1]);
    assert!(drain(&mut follow, &mut seen).is_empty(), "accepted is not written");
    run.store.wait(&ticket, Level::Written).unwrap();
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine 0", "coarse 0"]);
    run.put(&[0]);
    let ticket = run.put(&[0, 1]);
    run.store.wait(&ticket, Level::Durable).unwrap();
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine 1", "fine 2", "coarse 2"]);
    run.seal(0, 2);
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine sealed 2"]);
    // Told and moved back; and moved back below what was sealed.
    run.rewind(1);
    let back = ["fine back to 1", "coarse back to 1"];
    assert_eq!(names(&drain(&mut follow, &mut seen)), back);
    run.put(&[0, 1]);
    run.store.barrier().unwrap();
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine 1", "coarse 1"]);
    // Sealed before it was told.
    run.put(&[0]);
    run.seal(0, 2);
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine 2", "fine sealed 3"]);
    assert_eq!(seen.records.to_vec(), run.model);
}

/// Does a follower see the end once, and nothing behind it?
#[test]
fn rec50_the_end_is_told_once() {
    let disk = sim(2);
    let store = on(&disk).create(root()).unwrap();
    let schema = crate::followed_run::schema();
    let run = store.record(NAME, &schema).stream("fine", ["x"]).start().unwrap();
    let beside = reader(&disk);
    let (mut follow, mut seen) = (beside.follow(NAME).unwrap(), Seen::default());
    run.append(0, 7, &[sealstone::recording::Value::F64(0.5)]).unwrap();
    run.complete().unwrap();
    let told = drain(&mut follow, &mut seen);
    assert_eq!(names(&told), ["fine 7", "fine sealed 1", "Complete"]);
    assert!(matches!(told[2], Followed::Ended(RecordingStatus::Complete)));
    assert!(follow.poll().unwrap().is_none());
    assert!(follow.next().is_none(), "the iterator ends");
    let all: Result<Vec<_>, _> = store.follow(NAME).unwrap().collect();
    assert_eq!(names(&all.unwrap()), ["fine 7", "fine sealed 1", "Complete"], "afterwards as well");
    let gone = store.follow("another").unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

/// Is a record shown only once it is as safe as was asked?
#[test]
fn rec50_at_a_chosen_level() {
    let disk = sim(3);
    let mut run = Run::create(&on(&disk), &root());
    let store = reader(&disk);
    let levels = [FollowLevel::Written, FollowLevel::Durable, FollowLevel::Sealed];
    let mut follows = levels.map(|level| store.follow_at(NAME, level).unwrap());
    let mut seen = [(); 3].map(|()| Seen::default());
    let mut counts = || {
        let pairs = follows.iter_mut().zip(&mut seen);
        pairs
            .map(|(follow, seen)| {
                drain(follow, seen);
                seen.records[0].len()
            })
            .collect()
    };
    let all = |counts: Vec<usize>, expected: [usize; 3]| assert_eq!(counts, expected);
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Written).unwrap();
    all(counts(), [1, 0, 0]);
    run.store.wait(&ticket, Level::Durable).unwrap();
    all(counts(), [1, 1, 0]);
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Written).unwrap();
    all(counts(), [2, 1, 0]);
    run.seal(0, 1);
    all(counts(), [2, 1, 1]);
    run.seal(0, 1);
    all(counts(), [2, 2, 2]);
}

/// Is half a frame *not yet*, and the record told once the rest is there?
#[test]
fn rec50_an_incomplete_last_frame_means_not_yet() {
    let disk = sim(4);
    let mut run = Run::create(&on(&disk), &root());
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Durable).unwrap();
    let store = reader(&disk);
    let (mut follow, mut seen) = (store.follow(NAME).unwrap(), Seen::default());
    assert_eq!(drain(&mut follow, &mut seen).len(), 1);
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Written).unwrap();
    // The frame as the kernel has it, cut at each of its bytes and put together again.
    let dir = root().join("journal");
    let name = disk.list(&dir).unwrap().remove(0).name;
    let file = disk.open(&dir.join(name), Access::ReadWrite).unwrap();
    let mut whole = vec![0; 4096];
    file.read_at(&mut whole, 0).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let begin = end - 40;
    for cut in begin..=end {
        let mut torn = whole.clone();
        torn[cut..].fill(0);
        file.write_at(&torn, 0).unwrap();
        assert_eq!(names(&drain(&mut follow, &mut seen)), [""; 0], "cut at {cut}");
    }
    file.write_at(&whole, 0).unwrap();
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine 1"]);
}

/// Is a journal that is gone a reason to look again, and one whose row stands damage?
#[test]
fn rec50_a_missing_file_is_damage_only_if_its_row_is_unchanged() {
    let disk = sim(5);
    let mut run = Run::create(&on(&disk), &root());
    let store = reader(&disk);
    let (mut follow, mut seen) = (store.follow(NAME).unwrap(), Seen::default());
    run.put(&[0]);
    run.store.barrier().unwrap();
    drain(&mut follow, &mut seen);
    // The run goes on in another opening; the first one's journal goes with its last record.
    run.put(&[0, 1]);
    run.store.barrier().unwrap();
    run.store.clone().close().unwrap();
    let next = on(&disk.process(3)).open(root()).unwrap();
    run = run.on(next);
    let (fine, coarse) = (run.unsealed(0), run.unsealed(1));
    run.seal(0, fine);
    run.seal(1, coarse);
    run.put(&[1]);
    run.store.barrier().unwrap();
    drain(&mut follow, &mut seen);
    assert_eq!(seen.records.to_vec(), run.model);
    // Now one goes that nobody forgot.
    let dir = root().join("journal");
    for entry in disk.list(&dir).unwrap() {
        disk.unlink(&dir.join(entry.name)).unwrap();
    }
    let damage = follow.poll().unwrap_err();
    assert_eq!(damage.kind(), ErrorKind::Damage, "{damage}");
    assert!(damage.to_string().contains("missing"), "{damage}");
}

/// Does a look cost what is new, however long the recording is?
#[test]
fn rec50_a_poll_costs_what_is_new() {
    let disk = sim(6);
    let mut run = Run::create(&on(&disk), &root());
    let trace = Arc::new(TraceDisk::new(Arc::new(disk.process(2))));
    let options = Store::options().limits(limits()).disk(trace.clone());
    let store = options.open_read_only(root()).unwrap();
    let (mut follow, mut seen) = (store.follow(NAME).unwrap(), Seen::default());
    let mut costs = Vec::new();
    for round in 0..60 {
        for _ in 0..50 {
            run.put(&[0, 1]);
        }
        run.store.barrier().unwrap();
        // The long history is in chunks, and in a long journal beside: one stream seals nothing.
        if round % 2 == 1 {
            run.seal(0, 100);
        }
        drain(&mut follow, &mut seen);
        let before = trace.counts();
        run.put(&[0]);
        run.store.barrier().unwrap();
        assert!(!drain(&mut follow, &mut seen).is_empty());
        run.rewind(run.model[0].last().unwrap().0);
        drain(&mut follow, &mut seen);
        costs.push(trace.counts().since(&before).bytes_read);
    }
    assert_eq!(seen.records.to_vec(), run.model);
    let (first, last) = (costs[4..10].iter().max().unwrap(), costs[54..].iter().max().unwrap());
    println!("bytes read by a look: {first} early, {last} late: {costs:?}");
    // Rows of the manifest lie a level deeper at most; nothing else grows.
    assert!(*last <= first + (32 << 10), "{costs:?}");
}

/// Does the writer's own process follow as well, woken by what is written?
#[test]
fn rec50_follow_from_a_thread_of_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let options = Store::options().limits(limits());
    let mut run = Run::create(&options, &dir.path().join("run.stone"));
    let (store, records) = (run.store.clone(), 300);
    let follower = std::thread::spawn(move || {
        let mut seen = Seen::default();
        for told in store.follow(NAME).unwrap() {
            seen.take(&told.unwrap()).unwrap();
            if seen.records[0].len() == records {
                break;
            }
        }
        seen
    });
    for n in 0..records as u64 {
        let ticket = run.put(if n % 3 == 0 { &[0, 1] } else { &[0] });
        run.store.wait(&ticket, Level::Written).unwrap();
        if n % 50 == 49 {
            run.seal(0, 40);
        }
    }
    let seen = follower.join().unwrap();
    assert_eq!(seen.records[0], run.model[0]);
}

/// What a play of one seed did, for its message.
#[derive(Debug, Default)]
struct Play {
    kills: u64,
    rewinds: u64,
    seals: u64,
}

/// Writer steps and follower polls in an order that the seed decides, in up to three levels.
fn play(seed: u64, steps: usize) -> Result<Play, String> {
    let mut rng = Rng::new(seed);
    let disk = sim(seed);
    let mut pid = 10;
    let mut writer = disk.process(pid);
    let mut limits = limits();
    limits.journal_file_bytes = 1 << (12 + rng.below(4));
    limits.journal_budget_bytes = limits.journal_file_bytes * 4;
    limits.journal_prewrite_bytes = 1 << 10;
    if seed.is_multiple_of(4) {
        // Every payload is an object of its own.
        limits.payload_inline_bytes_max = 8;
    }
    // Every layout, and where several may write.
    let layout = [Layout::Directory, Layout::Directory, Layout::SingleFile][seed as usize % 3];
    let access = match seed % 3 {
        1 => WriteAccess::Shared,
        _ => WriteAccess::Single,
    };
    let options = |disk: &SimDisk| {
        let options = Store::options().limits(limits.clone()).disk(Arc::new(disk.clone()));
        options.layout(layout).access(access)
    };
    let mut run = Run::create(&options(&writer), &root());
    let mut played = Play::default();
    let levels = [FollowLevel::Written, FollowLevel::Durable, FollowLevel::Sealed];
    let store = reader(&disk);
    let mut follows: Vec<Option<Follow>> =
        levels.iter().map(|level| Some(store.follow_at(NAME, *level).unwrap())).collect();
    let mut seen = levels.map(|_| Seen::default());
    drop(store);
    for step in 0..steps {
        match rng.below(24) {
            0..9 => {
                let which: &[usize] = [&[0][..], &[1], &[0, 1]][rng.index(3)];
                let ticket = run.put(which);
                match rng.below(4) {
                    0 => run.store.wait(&ticket, Level::Durable).unwrap(),
                    1 | 2 => run.store.wait(&ticket, Level::Written).unwrap(),
                    _ => {}
                }
            }
            9..12 => {
                let at = rng.index(2);
                if run.unsealed(at) > 0 {
                    let records = 1 + rng.below(run.unsealed(at));
                    run.seal(at, records);
                    played.seals += 1;
                }
            }
            12 => {
                let last = run.model.iter().flatten().map(|record| record.0).max().unwrap_or(0);
                run.rewind(last - rng.below(8).min(last as u64) as i64);
                played.rewinds += 1;
            }
            13 => {
                // What was accepted and not written goes with its process: here nothing.
                run.store.barrier().unwrap();
                writer.kill();
                pid += 1;
                writer = disk.process(pid);
                // Readers of what the killed one left keep the next one out: they let go first.
                let next = options(&writer).open(root());
                run = run.on(next.map_err(|e| format!("step {step}: {e:?}"))?);
                played.kills += 1;
            }
            14 => drop(run.store.reclaim(Default::default()).unwrap()),
            15 => {
                let at = rng.index(levels.len());
                let store = reader(&disk);
                let follow = follows[at].take().unwrap();
                follows[at] = Some(follow.pause().over(&store).unwrap());
            }
            _ => {
                let at = rng.index(levels.len());
                for _ in 0..rng.below(12) {
                    let told = follows[at].as_mut().unwrap().poll();
                    let told = told.map_err(|e| format!("step {step}: {e:?}"))?;
                    let Some(told) = told else { break };
                    seen[at].take(&told).map_err(|e| format!("step {step}: {e}"))?;
                }
            }
        }
    }
    run.store.barrier().unwrap();
    for at in [0, 1] {
        let records = run.unsealed(at);
        if records > 0 {
            run.seal(at, records);
        }
    }
    for (at, follow) in follows.into_iter().enumerate() {
        let mut follow = follow.unwrap();
        loop {
            let told = follow.poll().map_err(|e| format!("at the end: {e:?}"))?;
            let Some(told) = told else { break };
            seen[at].take(&told).map_err(|e| format!("at the end: {e}"))?;
        }
        if seen[at].records.to_vec() != run.model {
            return Err(format!(
                "{:?} saw {:?}, not {:?}",
                levels[at], seen[at].records, run.model
            ));
        }
        let sealed: Vec<u64> = run.model.iter().map(|stream| stream.len() as u64).collect();
        if seen[at].sealed.to_vec() != sealed {
            return Err(format!("{:?} saw {:?} sealed", levels[at], seen[at].sealed));
        }
    }
    Ok(played)
}

/// Whatever the order of steps: does each follower end with exactly what the recording holds?
#[test]
fn rec50_any_interleaving_of_writer_and_followers() {
    let seeds = match std::env::var("SEALSTONE_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=24).collect(),
    };
    let mut all = Play::default();
    for seed in seeds {
        let played = play(seed, 300).unwrap_or_else(|e| panic!("SEALSTONE_SEED={seed}: {e}"));
        all.kills += played.kills;
        all.rewinds += played.rewinds;
        all.seals += played.seals;
    }
    println!("{all:?}");
}

/// (mutants) Is a rewind that is not told noticed, and a record of a history that was taken back?
#[test]
fn rec50_mutants_are_caught() {
    for protection in [Protection::RewindTold, Protection::FollowGeneration] {
        let _off = switch_off(protection);
        let caught = (1..=60).find_map(|seed| play(seed, 300).err().map(|e| (seed, e)));
        let (seed, e) = caught.unwrap_or_else(|| panic!("{} is not missed", protection.name()));
        println!("{}: seed {seed}: {e}", protection.name());
    }
}
