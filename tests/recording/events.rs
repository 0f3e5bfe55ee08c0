//! REC52: events and notes while a recording runs, and what becomes of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::check::{SalvageOptions, salvage};
use sealstone::engine::Options;
use sealstone::ids::Sequence;
use sealstone::manifest::{Cursor, Reading, StreamRow};
use sealstone::recording::{
    Cell, EVENT_BYTES_MAX, Event, EventId, EventValue, Field, FieldType, Followed, NOTE,
    Observable, Recorder, ResumeFrom, Schema, Value,
};
use sealstone::vfs::sim::{Profile, Rng, SimDisk};
use sealstone::vfs::{Access, Disk};
use sealstone::{ErrorKind, Limits, Store};

fn options(disk: &SimDisk) -> Options {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.background = false;
    Store::options().limits(limits).disk(Arc::new(disk.clone()))
}

fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

fn schema() -> Schema {
    Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap()
}

fn start(store: &Store) -> Recorder {
    store.record("run", &schema()).stream("s", ["x"]).start().unwrap()
}

fn put(run: &Recorder, iterations: std::ops::Range<i64>) {
    for n in iterations {
        run.append(0, n, &[Value::F64(n as f64)]).unwrap();
    }
}

fn events(store: &Store, name: &str) -> Vec<Event> {
    store.recording(name).unwrap().events(EventId(0), usize::MAX).unwrap()
}

/// Kind and whether its history stands.
fn told(store: &Store, name: &str) -> Vec<(String, bool)> {
    events(store, name).iter().map(|e| (e.kind().to_owned(), e.stands())).collect()
}

/// Do events come back in the order in which they were made, with iteration, time, kind and value,
/// and does a follower get each one behind the records before it?
#[test]
fn rec52_events_are_read_back_with_their_time() {
    let disk = sim(1);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    disk.set_wall_clock(Some(1_000));
    run.note("begun").unwrap();
    put(&run, 0..3);
    disk.set_wall_clock(Some(5_000_000_000));
    run.event("nan guard", &[0u8, 255][..]).unwrap();
    put(&run, 3..4);
    // A clock that steps back changes no order.
    disk.set_wall_clock(Some(2_000_000_000));
    run.event("tuned", EventValue::Json("{\"dt\":0.5}".to_owned())).unwrap();
    put(&run, 4..5);
    run.barrier().unwrap();
    let found = events(&store, "run");
    let at: Vec<_> = found.iter().map(|e| (e.kind(), e.iteration(), e.value().clone())).collect();
    let expected = [
        (NOTE, None, EventValue::Text("begun".to_owned())),
        ("nan guard", Some(2), EventValue::Bytes(vec![0, 255])),
        ("tuned", Some(3), EventValue::Json("{\"dt\":0.5}".to_owned())),
    ];
    assert_eq!(at, expected);
    let times: Vec<i64> = found.iter().map(|e| e.at().unwrap()).collect();
    for (time, began) in times.iter().zip([1_000, 5_000_000_000, 2_000_000_000]) {
        assert!((began..began + 1_000_000_000).contains(time), "{times:?}");
    }
    assert_eq!(store.recording("run").unwrap().events(EventId(1), 1).unwrap(), found[1..2]);
    let mut follow =
        options(&disk.process(2)).open_read_only(root()).unwrap().follow("run").unwrap();
    let mut order = Vec::new();
    while let Some(one) = follow.poll().unwrap() {
        order.push(match one {
            Followed::Appended { record, .. } => record.iteration().to_string(),
            Followed::Event(event) => event.kind().to_owned(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(order, ["note", "0", "1", "2", "nan guard", "3", "tuned", "4"]);
    run.note("more").unwrap();
    let next = follow.poll().unwrap();
    assert!(matches!(&next, Some(Followed::Event(e)) if e.id() == EventId(3)), "{next:?}");
}

/// Is what cannot be an event refused, and an event of a recording that has ended?
#[test]
fn rec52_what_is_no_event_is_refused() {
    let disk = sim(2);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    assert_eq!(run.event(" ", "x").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(run.event(&"k".repeat(257), "x").unwrap_err().kind(), ErrorKind::Invalid);
    let long = run.event("k", vec![0u8; EVENT_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::LimitExceeded);
    assert!(events(&store, "run").is_empty());
    // A run of which there is nothing but a note is no abandoned start.
    run.note("only this").unwrap();
    drop(run);
    let taken = store.record("run", &schema()).stream("s", ["x"]).start().unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Exists);
}

/// Is an event durable when the call returned, whatever a power cut takes, and is it there after a
/// kill?
#[test]
fn rec52_events_survive_a_crash() {
    let disk = sim(3);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    put(&run, 0..3);
    run.barrier().unwrap();
    run.note("still there").unwrap();
    let log = disk.events();
    let mut rng = Rng::new(3);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        cursor.advance_to(log.len());
        for image in cursor.images(&mut rng, 12) {
            let store = options(&image.disk()).open(root()).unwrap();
            assert_eq!(told(&store, "run"), [(NOTE.to_owned(), true)], "{profile:?}");
        }
    }
}

/// Is the iteration that an event names there wherever the event is, after any power cut, so that a run
/// that goes on otherwise cannot put another one under it?
#[test]
fn rec52_no_crash_takes_back_the_iteration_that_an_event_names() {
    let disk = sim(7);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    put(&run, 0..3);
    run.barrier().unwrap();
    put(&run, 3..6);
    disk.restart_log();
    run.event("nan", "").unwrap();
    put(&run, 6..9);
    let log = disk.events();
    let (mut rng, mut found) = (Rng::new(7), 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            for image in cursor.images(&mut rng, 2) {
                let store = options(&image.disk()).open(root()).unwrap();
                let stream = store.recording("run").unwrap().stream("s").unwrap();
                let last = stream.iterations().unwrap().map(|(_, last)| last);
                for event in events(&store, "run") {
                    found += 1;
                    assert_eq!(event.iteration(), Some(5));
                    assert!(event.stands() && last >= Some(5), "{}", image.outcomes());
                }
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    assert!(found > 0);
}

/// Do the events of a history that was taken back stay, and say so?
#[test]
fn rec52_a_rewind_takes_back_records_and_not_what_was_said() {
    let disk = sim(4);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    run.event("first", "").unwrap();
    put(&run, 0..5);
    run.event("early", "").unwrap();
    put(&run, 5..9);
    run.event("late", "").unwrap();
    drop(run);
    let id = store.recording("run").unwrap().stream("s").unwrap().id();
    let generation = store.snapshot().unwrap().require::<StreamRow>(&id).unwrap().generation;
    store.rewind(&[Cursor { stream: id, generation, end: Sequence(5) }]).unwrap();
    let stands = [("first", true), ("early", true), ("late", false)];
    let stands = stands.map(|(kind, stands)| (kind.to_owned(), stands));
    assert_eq!(told(&store, "run"), stands);
}

/// A whole state.
struct State(i64);

impl Observable for State {
    fn iteration(&self) -> i64 {
        self.0
    }

    fn field(&self, _: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        to.put(Value::F64(self.0 as f64))
    }
}

/// Does a fork have the events below its checkpoint, as its own?
#[test]
fn rec52_a_fork_has_the_events_below_the_cut() {
    let disk = sim(5);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    run.event("first", "").unwrap();
    put(&run, 0..5);
    run.event("early", "").unwrap();
    let checkpoint = run.checkpoint(&State(4)).unwrap();
    put(&run, 5..9);
    run.event("late", "").unwrap();
    store.fork("run", ResumeFrom::Checkpoint(checkpoint), "branch").unwrap();
    let below = [("first".to_owned(), true), ("early".to_owned(), true)];
    assert_eq!(told(&store, "branch"), below);
    store.retire_recording("branch", "a test").unwrap();
    assert_eq!(events(&store, "run").len(), 3);
}

/// Does salvage without the manifest bring them back?
#[test]
fn rec52_events_survive_salvage() {
    let disk = sim(6);
    let store = options(&disk).create(root()).unwrap();
    let run = start(&store);
    put(&run, 0..5);
    run.event("early", "text").unwrap();
    run.complete().unwrap();
    let before = events(&store, "run");
    store.close().unwrap();
    disk.unlink(&root().join("manifest.redb")).unwrap();
    let how = SalvageOptions { disk: Some(Arc::new(disk.clone())) };
    let target = PathBuf::from("/data/new.stone");
    salvage(root(), &target, &how).unwrap();
    let store = options(&disk).open_read_only(&target).unwrap();
    assert_eq!(events(&store, "run"), before);
    let file = disk.open(&target.join("manifest.redb"), Access::Read).unwrap();
    assert!(file.len().unwrap() > 0);
}
