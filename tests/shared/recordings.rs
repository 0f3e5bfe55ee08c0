//! Recordings of two owners in one simulated world: is what one has ended, or never began, free for the
//! other while the first stays open?

use sealstone::engine::Store;
use sealstone::manifest::{ClaimKind, ClaimRow, Reading, ResourceKey};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Field, FieldType, NewRecording, Recorder, RecordingStatus, ResumeFrom, Resumed, Schema, Value,
};
use sealstone::{ErrorKind, Result};

use crate::support::{shared, world};

fn draft(store: &Store) -> NewRecording {
    let schema = Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap();
    store.record("run", &schema).stream("a", ["x"]).stream("b", ["x"])
}

fn append(run: &Recorder, iterations: std::ops::Range<i64>) {
    for n in iterations {
        run.append(0, n, &[Value::F64(n as f64)]).unwrap();
        run.append(1, n, &[Value::F64(n as f64)]).unwrap();
    }
}

/// A running recording with three records in each stream.
fn begun(store: &Store) -> Recorder {
    let run = draft(store).start().unwrap();
    append(&run, 0..3);
    run
}

fn resume(store: &Store) -> Result<Resumed> {
    store.resume("run").from(ResumeFrom::Tail).reopen().start()
}

fn iterations(store: &Store) -> [Vec<i64>; 2] {
    let run = store.recording("run").unwrap();
    ["a", "b"].map(|stream| run.stream(stream).unwrap().iteration().to_vec().unwrap())
}

/// No stream is held by anybody.
fn all_free(store: &Store) -> bool {
    let claims = store.snapshot().unwrap().list::<ClaimRow>(.., usize::MAX).unwrap();
    claims.iter().all(|(resource, _)| !resource.is_of_stream())
}

/// What becomes of a recorder.
type End = fn(Recorder) -> Result<()>;

const ENDS: [(&str, End); 4] = [
    ("dropped", |run| {
        drop(run);
        Ok(())
    }),
    ("closed", Recorder::close),
    ("complete", Recorder::complete),
    ("failed", |run| run.fail("it was enough")),
];

/// Does another process go on with a recording, and then retire it, once its recorder has ended, while
/// the process of that recorder stays open; and the other way round after that?
#[test]
fn p5_a_recording_that_ended_is_free_for_others() {
    for (seed, (how, end)) in (20..).zip(ENDS) {
        let (world, _, one) = world(seed);
        let two = shared(&world.process(2)).unwrap();
        let run = begun(&one);
        assert_eq!(resume(&two).unwrap_err().kind(), ErrorKind::Conflict, "{how}");
        assert_eq!(two.retire_recording("run", "no").unwrap_err().kind(), ErrorKind::Conflict);
        end(run).unwrap();
        assert!(all_free(&one), "{how}");
        let on = resume(&two).unwrap();
        append(&on.recorder, 3..5);
        on.recorder.complete().unwrap();
        let whole = [vec![0, 1, 2, 3, 4], vec![0, 1, 2, 3, 4]];
        assert_eq!((iterations(&one), iterations(&two)), (whole.clone(), whole), "{how}");
        let again = resume(&one).unwrap();
        append(&again.recorder, 5..6);
        again.recorder.close().unwrap();
        assert_eq!(iterations(&two)[1], [0, 1, 2, 3, 4, 5], "{how}");
        two.retire_recording("run", "it was looked at").unwrap();
        assert_eq!(one.recording("run").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(all_free(&two), "{how}");
        begun(&one).complete().unwrap();
        two.retire_recording("run", "again").unwrap();
    }
}

/// Is a recording free for others that was filled in bulk, complete or given up?
#[test]
fn p5_a_recording_in_bulk_that_ended_is_free_for_others() {
    for (seed, is_complete) in [(30, true), (31, false)] {
        let (world, _, one) = world(seed);
        let two = shared(&world.process(2)).unwrap();
        let mut bulk = draft(&one).start_bulk().unwrap();
        for n in 0..3 {
            bulk.push(0, n, &[Value::F64(1.0)]).unwrap();
            bulk.push(1, n, &[Value::F64(1.0)]).unwrap();
        }
        bulk.flush().unwrap();
        if is_complete {
            bulk.complete(&[]).unwrap();
        } else {
            drop(bulk);
        }
        assert!(all_free(&one));
        let on = resume(&two).unwrap();
        append(&on.recorder, 3..4);
        on.recorder.complete().unwrap();
        assert_eq!(iterations(&one), [vec![0, 1, 2, 3], vec![0, 1, 2, 3]]);
        one.retire_recording("run", "done").unwrap();
    }
}

/// Does a start, a going on or a removal that is refused leave the recording free for another process;
/// and does one beside a recorder of the same process take nothing from it?
#[test]
fn p5_what_was_refused_holds_no_stream() {
    type Act = fn(&Store) -> ErrorKind;
    let refused: [(&str, Act, ErrorKind); 3] = [
        ("start", |store| draft(store).start().unwrap_err().kind(), ErrorKind::Exists),
        (
            "resume",
            |store| store.resume("run").start().unwrap_err().kind(),
            ErrorKind::NoCheckpoint,
        ),
        (
            "retire",
            |store| store.retire_recording("run", "no").unwrap_err().kind(),
            ErrorKind::Conflict,
        ),
    ];
    for (seed, (what, refused, kind)) in (40..).zip(refused) {
        let (world, _, one) = world(seed);
        let two = shared(&world.process(2)).unwrap();
        drop(begun(&two));
        let key = ResourceKey::of_recording("run");
        let held = (what == "retire").then(|| two.claim(&key, ClaimKind::Recording).unwrap());
        assert_eq!(refused(&one), kind, "{what}");
        drop(held);
        assert!(all_free(&one), "{what}");
        let on = resume(&two).unwrap();
        assert!(draft(&two).start().is_err() && resume(&two).is_err(), "{what}");
        assert!(two.retire_recording("run", "no").is_err(), "{what}");
        assert!(!all_free(&two), "its own recorder has them");
        append(&on.recorder, 3..4);
        on.recorder.complete().unwrap();
        assert_eq!(iterations(&one), [vec![0, 1, 2, 3], vec![0, 1, 2, 3]], "{what}");
        let status = one.recording("run").unwrap().status().clone();
        assert_eq!(status, RecordingStatus::Complete, "{what}");
    }
}

/// Is it the release at the end that makes a recording free for others? (mutant)
#[test]
fn p5_without_the_release_a_recording_that_ended_stays_taken() {
    let (world, _, one) = world(50);
    let two = shared(&world.process(2)).unwrap();
    let run = begun(&one);
    let _off = switch_off(Protection::StreamsLetGo);
    run.complete().unwrap();
    assert_eq!(resume(&two).unwrap_err().kind(), ErrorKind::Conflict);
    one.close().unwrap();
    resume(&two).unwrap();
}
