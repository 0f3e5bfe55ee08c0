//! What the power and the disk may do to a start and to an observation of several streams.

use std::path::Path;
use std::sync::Arc;

use sealstone::engine::Options;
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Field, FieldType, Level, NewRecord, NewRecording, Recorder, RecordingStatus, Schema, Value,
};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng, SimDisk, SyncFailure};
use sealstone::{Limits, Store};

use crate::support::iterations;

const PATH: &str = "/data/run.stone";
const STREAMS: [&str; 3] = ["a", "b", "c"];

fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn on(disk: &SimDisk) -> Options {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.background = false;
    Store::options().limits(limits).disk(Arc::new(disk.clone()))
}

fn draft(store: &Store) -> NewRecording {
    let fields = STREAMS.map(|name| Field::new(name, FieldType::Bytes));
    let schema = Schema::new(fields.to_vec()).unwrap();
    let new = store.record("run", &schema).chunk_records(6);
    STREAMS.iter().fold(new, |new, name| new.stream(name, [*name]))
}

/// Observes three streams while their chunks are published, and looks at images of every moment:
/// how many there were, and how many showed a part of an observation, or lost a durable one.
fn cut_observations(seed: u64, draws: usize, until_broken: bool) -> (u64, u64) {
    let disk = sim(seed);
    let store = on(&disk).create(PATH).unwrap();
    let run = draft(&store).start().unwrap();
    disk.restart_log();
    disk.note([0]);
    let value = vec![7; 5000];
    for iteration in 0..7 {
        let put = |_: &str, to: &mut sealstone::recording::Cell<'_>| to.put(Value::Bytes(&value));
        let ticket = run.observe_with(iteration, None, put).unwrap();
        // In the file, in parts that no sync holds together.
        run.wait(&ticket, Level::Written).unwrap();
        if iteration % 4 == 3 {
            run.barrier().unwrap();
            disk.note([iteration as u8 + 1]);
        }
    }
    drop(run);
    let (mut images, mut broken, mut rng) = (0, 0, Rng::new(seed));
    let log = disk.events();
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            let durable = cursor.notes().last().map_or(0, |note| note[0] as usize);
            for image in cursor.images(&mut rng, draws) {
                if until_broken && broken > 0 {
                    return (images, broken);
                }
                images += 1;
                let disk = image.disk();
                let store = on(&disk).open(PATH).unwrap();
                let held = STREAMS.map(|name| iterations(&store, name));
                let is_whole = held[0] == held[1] && held[1] == held[2];
                let in_order = held[0].iter().copied().eq(0..held[0].len() as i64);
                broken += u64::from(!is_whole || !in_order || held[0].len() < durable);
                disk.kill();
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    (images, broken)
}

/// Do all streams of an observation hold its iteration, or none, wherever the power goes?
#[test]
fn rec17_an_observation_is_whole_after_a_crash_and_the_mutant_is_caught() {
    let (images, broken) = cut_observations(31, 1, false);
    println!("{images} images");
    assert!(images > 100 && broken == 0, "{broken} of {images} images");
    let _off = switch_off(Protection::ObservationWhole);
    let (_, broken) = cut_observations(31, 20, true);
    assert!(broken > 0, "observations in parts were not noticed");
}

/// What is accepted and waits for nobody when the chunk of stream "a" is full.
#[derive(Debug, Clone, Copy)]
enum Unwritten {
    /// The other half of an observation that is in that chunk.
    Half,
    /// An earlier observation, of another stream.
    Earlier,
}

impl Unwritten {
    fn accept(self, run: &Recorder) {
        let record = |stream, iteration| NewRecord {
            stream,
            iteration,
            time: None,
            values: &[Value::Bytes(b"one")],
        };
        match self {
            Self::Half => run.append_all(&[record(0, 0), record(1, 0)]).unwrap(),
            Self::Earlier => run.append_all(&[record(1, 0)]).unwrap(),
        };
        // The last one finds the chunk full.
        for iteration in 1..=3 {
            run.append_all(&[record(0, iteration)]).unwrap();
        }
    }

    /// Whether an image holds what no order of the records explains.
    fn is_broken(self, a: &[i64], b: &[i64]) -> bool {
        match self {
            Self::Half => a.contains(&0) != b.contains(&0),
            Self::Earlier => !a.is_empty() && b.is_empty(),
        }
    }
}

/// Fills a chunk of one stream while `unwritten` is only in memory, and looks at images of every
/// moment: how many showed the chunk, and how many it without what came before.
fn cut_full_chunk(unwritten: Unwritten) -> (u64, u64) {
    let disk = sim(34);
    let store = on(&disk).create(PATH).unwrap();
    let run = draft(&store).chunk_records(2).start().unwrap();
    disk.restart_log();
    unwritten.accept(&run);
    let (mut shown, mut broken, mut rng) = (0, 0, Rng::new(34));
    let log = disk.events();
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            for image in cursor.images(&mut rng, 2) {
                let disk = image.disk();
                let store = on(&disk).open(PATH).unwrap();
                let (a, b) = (iterations(&store, "a"), iterations(&store, "b"));
                shown += u64::from(a.len() >= 2);
                broken += u64::from(unwritten.is_broken(&a, &b));
                disk.kill();
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    (shown, broken)
}

/// G2: may the power leave a chunk that filled before anybody waited, without the other half of one
/// of its observations, or without an earlier one of another stream?
#[test]
fn g2_rec17_a_chunk_never_outlives_what_came_before_it_and_the_mutant_is_caught() {
    let both = [Unwritten::Half, Unwritten::Earlier].map(|one| (one, Protection::EarlierSettled));
    for (unwritten, protection) in
        both.into_iter().chain([(Unwritten::Earlier, Protection::EarlierFrames)])
    {
        let (shown, broken) = cut_full_chunk(unwritten);
        assert!(shown > 0 && broken == 0, "{unwritten:?}: {broken} broken, {shown} with the chunk");
        let _off = switch_off(protection);
        let (_, broken) = cut_full_chunk(unwritten);
        assert!(broken > 0, "{unwritten:?}: a chunk alone was not noticed");
    }
}

/// Is the running recording durable once a start has returned, and can a killed start be repeated
/// wherever it was?
#[test]
fn rec6_rec7_a_start_is_durable_or_can_be_repeated() {
    let disk = sim(32);
    let store = on(&disk).create(PATH).unwrap();
    disk.restart_log();
    let run = draft(&store).start().unwrap();
    disk.note([1]);
    run.append(0, 5, &[Value::Bytes(b"not asked for")]).unwrap();
    run.barrier().unwrap();
    let (mut rng, log) = (Rng::new(32), disk.events());
    let (mut started, mut repeated) = (0, 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            let has_started = cursor.notes().last().is_some();
            for image in cursor.images(&mut rng, 2) {
                let disk = image.disk();
                let store = on(&disk).open(PATH).unwrap();
                if has_started {
                    started += 1;
                    let recording = store.recording("run").unwrap();
                    assert_eq!(recording.status(), &RecordingStatus::Running);
                }
                let has_record =
                    store.recording("run").is_ok() && !iterations(&store, "a").is_empty();
                match draft(&store).start() {
                    Ok(run) => {
                        assert!(!has_record, "a recording with a record gave way");
                        repeated += 1;
                        run.append(0, 1, &[Value::Bytes(b"again")]).unwrap();
                        run.complete().unwrap();
                        assert_eq!(store.recordings(9).unwrap().len(), 1);
                        assert_eq!(iterations(&store, "a"), [1]);
                    }
                    Err(e) => assert!(has_record, "{}: {e}", image.outcomes()),
                }
                disk.kill();
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    println!("{started} images behind a start, {repeated} repeated");
    assert!(started > 20 && repeated > 20);
}

/// Can a start that the disk failed be repeated, at once or after the store was opened again?
#[test]
fn rec7_a_failed_start_leaves_the_name_free() {
    let (mut failed, mut reopened) = (0, 0);
    for kind in [FaultKind::Eio, FaultKind::Enospc, FaultKind::SyncFails(SyncFailure::RandomPart)] {
        for at in 0..40 {
            let disk = sim(33);
            let store = on(&disk).create(PATH).unwrap();
            disk.inject(Fault::new(disk.operations() + at, kind));
            let first = draft(&store).start();
            disk.clear_faults();
            let Err(e) = first else { continue };
            failed += 1;
            let again = match draft(&store).start() {
                Ok(run) => {
                    run.complete().unwrap();
                    continue;
                }
                Err(again) => again,
            };
            // A commit that may have happened halts the store.
            reopened += 1;
            assert_eq!(again.kind(), sealstone::ErrorKind::Halted, "{again} after {e}");
            disk.kill();
            let disk = disk.process(77);
            drop(store);
            let store = on(&disk).open(PATH).unwrap();
            draft(&store).start().unwrap().complete().unwrap();
        }
    }
    println!("{failed} starts failed, {reopened} of them halted the store");
    assert!(failed > 0 && reopened > 0);
}
