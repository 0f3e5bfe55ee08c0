//! How a recording ends: what is there afterwards, whatever the disk does meanwhile.

use std::io;

use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Cell, EventId, Level, Observable, Recorder, RecordingStatus, ResumeFrom, Value,
};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng, SimDisk, SyncFailure};
use sealstone::{Error, ErrorKind, Result, Store};

use crate::gate::Call;
use crate::rig::{append, disk, gated, iterations, limits, options, root, root_cause, start};

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Complete,
    CompleteWith,
    Fail,
    Close,
    Drop,
}

impl How {
    const ALL: [Self; 5] =
        [Self::Complete, Self::CompleteWith, Self::Fail, Self::Close, Self::Drop];

    fn end(self, run: Recorder) -> Result<()> {
        match self {
            Self::Complete => run.complete(),
            Self::CompleteWith => run.complete_with(&Final(LAST)),
            Self::Fail => run.fail("the solver diverged"),
            Self::Close => run.close(),
            Self::Drop => {
                drop(run);
                Ok(())
            }
        }
    }

    /// What the recording is then.
    fn status(self) -> RecordingStatus {
        match self {
            Self::Complete | Self::CompleteWith => RecordingStatus::Complete,
            Self::Fail => RecordingStatus::Failed { reason: "the solver diverged".to_owned() },
            Self::Close | Self::Drop => RecordingStatus::Running,
        }
    }

    /// The iterations that both streams have then.
    fn iterations(self) -> Vec<i64> {
        let last = if self == Self::CompleteWith { LAST } else { LAST - 1 };
        (0..=last).collect()
    }
}

const LAST: i64 = 12;

/// The state at the end, at this iteration.
struct Final(i64);

impl Observable for Final {
    fn iteration(&self) -> i64 {
        self.0
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> Result<()> {
        to.put(Value::Bytes(if name == "x" { b"x at the end" } else { b"y at the end" }))
    }
}

/// A recording whose first half is durable, and the second only accepted.
fn prepared(disk: &SimDisk) -> (Store, Recorder) {
    let store = options(disk.clone(), limits()).create(root()).unwrap();
    let run = start(&store);
    for iteration in 0..LAST {
        for stream in 0..2 {
            append(&run, stream, iteration, 30).unwrap();
        }
        if iteration == LAST / 2 {
            run.barrier().unwrap();
        }
    }
    (store, run)
}

/// What a store that is opened again says: the status, and the iterations of both streams.
fn seen(store: &Store) -> (RecordingStatus, Vec<i64>, Vec<i64>) {
    let status = store.recording("run").unwrap().status().clone();
    (status, iterations(store, "a"), iterations(store, "b"))
}

/// Is everything there, sealed and durable, when the end returned; and is it *complete* at no moment
/// before, wherever the power goes?
#[test]
fn rec27_complete_drains_seals_then_commits() {
    for how in How::ALL {
        let disk = disk(31);
        let (store, run) = prepared(&disk);
        disk.restart_log();
        how.end(run).unwrap();
        disk.note(b"returned");
        drop(store);
        let log = disk.events();
        let (mut rng, mut ended) = (Rng::new(5), 0);
        // Their steps are the same: the one of them that has them all is cut in all ways.
        let profiles =
            if how == How::CompleteWith { &Profile::ALL[..] } else { &[Profile::PosixHarshest] };
        for profile in profiles.iter().copied() {
            let mut cursor = log.cursor(profile);
            loop {
                let returned = !cursor.notes().is_empty();
                for image in cursor.images(&mut rng, 1) {
                    let at = format!("{how:?} {} returned {returned}", image.outcomes());
                    let disk = image.disk();
                    let store = options(disk, limits()).open(root()).unwrap();
                    let (status, a, b) = seen(&store);
                    let is_ended = status != RecordingStatus::Running;
                    if is_ended {
                        assert_eq!(status, how.status(), "{at}");
                        let recording = store.recording("run").unwrap();
                        for stream in recording.streams().unwrap() {
                            assert_eq!(stream.sealed_record_count(), stream.record_count(), "{at}");
                        }
                        ended += 1;
                    }
                    if returned || is_ended {
                        assert_eq!(status, how.status(), "{at}");
                        assert_eq!((a, b), (how.iterations(), how.iterations()), "{at}");
                    } else {
                        assert!(a.len() as i64 > LAST / 2 && b.len() as i64 > LAST / 2, "{at}");
                        assert!(how.iterations().starts_with(&a), "{at}: {a:?}");
                        assert!(how.iterations().starts_with(&b), "{at}: {b:?}");
                    }
                }
                if cursor.advance().is_none() {
                    break;
                }
            }
        }
        assert_eq!(ended > 0, how.status() != RecordingStatus::Running, "{how:?}");
    }
}

/// Does a recording that has ended take nothing, from whoever held it, and from whoever comes?
#[test]
fn rec25_a_finished_recording_accepts_nothing() {
    for how in [How::Complete, How::Fail] {
        let disk = disk(36);
        let (store, run) = prepared(&disk);
        // A second handle, which the claim would not let anybody have; the first is the late one.
        let other = run;
        let run = {
            let _off = switch_off(Protection::RecordingClaim);
            store.resume("run").from(ResumeFrom::Tail).start().unwrap().recorder
        };
        how.end(run).unwrap();
        let before = (seen(&store), store.recording("run").unwrap().events(EventId(0), 9).unwrap());
        let refusals = [
            other.event("late", "").map(drop),
            other.note("late").map(drop),
            other.checkpoint(&Final(LAST)).map(drop),
            store.resume("run").from(ResumeFrom::Tail).start().map(drop),
            store.resume("run").start().map(drop),
        ];
        for (at, refused) in refusals.into_iter().enumerate() {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict, "{how:?} {at}");
        }
        let again = store.record("run", &crate::rig::schema()).stream("a", ["x"]).start();
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Exists);
        let after = (seen(&store), store.recording("run").unwrap().events(EventId(0), 9).unwrap());
        assert_eq!(before, after);
        for stream in store.recording("run").unwrap().streams().unwrap() {
            assert_eq!(stream.sealed_record_count(), stream.record_count());
        }
        assert!(store.checkpoints(store.recording("run").unwrap().id().0).unwrap().is_empty());
    }
}

/// Is a final state written once to every stream that lacks its iteration, and to no other?
#[test]
fn rec18_the_final_state_is_in_every_stream_once() {
    let disk = disk(32);
    let (store, run) = prepared(&disk);
    append(&run, 0, LAST, 5).unwrap();
    run.complete_with(&Final(LAST)).unwrap();
    let all: Vec<i64> = (0..=LAST).collect();
    assert_eq!(seen(&store), (RecordingStatus::Complete, all.clone(), all));
    let recording = store.recording("run").unwrap();
    let last = |stream: &str, field: &str| {
        let stream = recording.stream(stream).unwrap();
        let values: Vec<Vec<u8>> = stream.field(field).unwrap().to_vec().unwrap();
        values.last().unwrap().clone()
    };
    assert_eq!(last("a", "x"), [LAST as u8; 5], "what it had stays");
    assert_eq!(last("b", "y"), b"y at the end");
}

/// Is a blank reason refused, and is everything kept that was accepted before a failure?
#[test]
fn rec28_fail_needs_a_reason_and_keeps_what_was_accepted() {
    for blank in ["", " \t\n"] {
        let disk = disk(33);
        let (store, run) = prepared(&disk);
        let refused = run.fail(blank).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("blank"), "{refused}");
        assert_eq!(seen(&store).0, RecordingStatus::Running);
        assert_eq!(seen(&store).1, How::Fail.iterations());
    }
    let disk = disk(34);
    let (store, run) = prepared(&disk);
    run.fail("the solver diverged").unwrap();
    let all = How::Fail.iterations();
    assert_eq!(seen(&store), (How::Fail.status(), all.clone(), all));
}

/// What ending so says after the disk failed under the journal.
fn end_after_failure(end: impl FnOnce(Recorder) -> Result<()>) -> (Error, Error) {
    let (gate, store) = gated(limits());
    let run = start(&store);
    append(&run, 0, 0, 10).unwrap();
    run.barrier().unwrap();
    append(&run, 0, 1, 10).unwrap();
    gate.fail(Call::Sync, io::ErrorKind::StorageFull);
    let first = run.barrier().unwrap_err();
    gate.let_go();
    (first, end(run).unwrap_err())
}

/// Does what stopped the writer come before what the caller says, right or wrong?
#[test]
fn rec28_a_writer_error_takes_precedence() {
    for reason in ["the solver diverged", " "] {
        let (first, told) = end_after_failure(|run| run.fail(reason));
        assert_eq!(root_cause(&told), root_cause(&first), "{reason:?}: {told:?}");
        assert_ne!(told.kind(), ErrorKind::Invalid);
    }
    for end in [Recorder::complete, Recorder::close] {
        let (first, told) = end_after_failure(end);
        assert_eq!(root_cause(&told), root_cause(&first), "{told:?}");
    }
    let with = |run: Recorder| run.complete_with(&Final(2));
    let (first, told) = end_after_failure(with);
    assert_eq!(root_cause(&told), root_cause(&first), "{told:?}");
}

/// Would it be noticed if the caller's reason were looked at first?
#[test]
fn rec28_mutant_writer_error_first_is_caught() {
    let _off = switch_off(Protection::WriterErrorFirst);
    let (first, told) = end_after_failure(|run| run.fail(" "));
    assert_ne!(root_cause(&told), root_cause(&first));
}

/// Is everything that was accepted durable once its recorder is dropped, with the recording running
/// and free to be written by somebody else; and does `close` tell what drop keeps to itself?
#[test]
fn rec29_drop_drains_and_close_tells_why_not() {
    let disk = disk(35);
    let (store, run) = prepared(&disk);
    let ticket = append(&run, 0, LAST, 10).unwrap();
    drop(run);
    let before = disk.counts();
    ticket.wait(Level::Durable).unwrap();
    assert_eq!(disk.counts().since(&before).mutations(), 0, "drop made it durable");
    assert!(store.claims(10).unwrap().is_empty(), "nobody writes it any more");
    assert_eq!(seen(&store).0, RecordingStatus::Running);

    // What drop keeps to itself.
    let (first, told) = end_after_failure(|run| run.close());
    assert_eq!(root_cause(&told), root_cause(&first));
    let (gate, store) = gated(limits());
    let run = start(&store);
    append(&run, 0, 0, 10).unwrap();
    run.barrier().unwrap();
    append(&run, 0, 1, 10).unwrap();
    gate.fail(Call::Sync, io::ErrorKind::StorageFull);
    let told = run.close().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::OutcomeUnknown, "{told:?}");
    gate.let_go();
    assert!(store.health().halted.is_some());
}

/// The ways in which a step can fail.
const KINDS: [(FaultKind, bool); 8] = [
    (FaultKind::Eio, false),
    (FaultKind::Eio, true),
    (FaultKind::Enospc, false),
    (FaultKind::Enospc, true),
    (FaultKind::ShortWrite, false),
    (FaultKind::SyncFails(SyncFailure::NothingKept), false),
    (FaultKind::SyncFails(SyncFailure::RandomPart), false),
    (FaultKind::SyncFails(SyncFailure::CacheReverted), false),
];

/// Of each sort one: the ends have their steps in common.
const SOME: [(FaultKind, bool); 3] = [KINDS[0], KINDS[3], KINDS[6]];

/// What became of one end that met a fault.
#[derive(Debug, Default)]
struct Tally {
    struck: u64,
    told: u64,
    unknown: u64,
    /// Unknown, and it had taken place.
    committed: u64,
}

/// Ends it while the first operation from `at` on fails that can; returns which that was.
fn strike(how: How, at: u64, kind: (FaultKind, bool), tally: &mut Tally) -> Option<u64> {
    let disk = disk(36);
    let (store, run) = prepared(&disk);
    let fault = Fault::new(at, kind.0);
    disk.inject(if kind.1 { fault.forever() } else { fault });
    let told = how.end(run);
    let first = disk.fired().first().map(|fired| fired.operation);
    let struck = first.is_some();
    disk.clear_faults();
    // Whoever comes later in this opening changes nothing of it.
    let refused = store.record("run", &crate::rig::schema()).stream("a", ["x"]).start();
    assert_ne!(refused.map(drop).map_err(|e| e.kind()), Ok(()));
    drop(store);
    let at = format!("{how:?} {kind:?} at {at}: {told:?}");
    let store =
        options(disk.clone(), limits()).open(root()).unwrap_or_else(|e| panic!("{at} {e:?}"));
    let (status, a, b) = seen(&store);
    let is_ended = status != RecordingStatus::Running;
    tally.struck += u64::from(struck);
    match &told {
        Ok(()) => {
            assert_eq!(status, how.status(), "{at}");
            if how != How::Drop {
                assert_eq!((&a, &b), (&how.iterations(), &how.iterations()), "{at}");
            }
        }
        Err(e) => {
            assert!(struck, "{at}");
            tally.told += 1;
            // The first cause is the disk's own.
            assert!(root_cause(e).contains("os error"), "{at}");
            assert!(!is_ended || e.kind() == ErrorKind::OutcomeUnknown, "{at}: {status:?}");
            tally.unknown += u64::from(e.kind() == ErrorKind::OutcomeUnknown);
        }
    }
    assert!(a.len() as i64 > LAST / 2 && b.len() as i64 > LAST / 2, "{at}: {a:?} {b:?}");
    assert!(how.iterations().starts_with(&a) && how.iterations().starts_with(&b), "{at}");
    if is_ended {
        tally.committed += u64::from(told.is_err());
        assert_eq!((status.clone(), &a, &b), (how.status(), &a, &a), "{at}");
        assert_eq!(a, how.iterations(), "{at}");
        // Its row stands, whatever is tried now.
        let again = store.record("run", &crate::rig::schema()).stream("a", ["x"]).start();
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Exists, "{at}");
        assert_eq!(seen(&store), (status, a.clone(), b), "{at}");
    }
    store.close().unwrap_or_else(|e| panic!("{at} {e:?}"));
    disk.kill();
    first
}

fn sweep(how: How, kinds: &[(FaultKind, bool)]) -> Tally {
    let disk = disk(36);
    let (store, run) = prepared(&disk);
    let from = disk.operations();
    how.end(run).unwrap();
    let upto = disk.operations();
    drop(store);
    let mut tally = Tally::default();
    for kind in kinds.iter().copied() {
        let mut at = from + 1;
        while at <= upto {
            match strike(how, at, kind, &mut tally) {
                Some(struck) => at = struck + 1,
                None => break,
            }
        }
    }
    println!("{how:?}: {} operations, {tally:?}", upto - from);
    assert!(tally.struck > 20, "{tally:?}");
    tally
}

/// Whatever step of completing fails: is the first error told, is nothing lost that was durable, and
/// does a store that is opened again say *complete* only where everything is there?
#[test]
fn rec30_each_step_of_completing_may_fail() {
    let tally = sweep(How::Complete, &KINDS);
    assert!(tally.told > 20 && tally.unknown > 0, "{tally:?}");
    assert!(tally.committed > 0, "an end that was unknown and had taken place was met: {tally:?}");
}

/// The same with a final state.
#[test]
fn rec30_each_step_of_completing_with_a_state_may_fail() {
    let tally = sweep(How::CompleteWith, &SOME);
    assert!(tally.told > 20 && tally.unknown > 0, "{tally:?}");
}

/// The same of a failure.
#[test]
fn rec30_each_step_of_failing_may_fail() {
    let tally = sweep(How::Fail, &SOME);
    assert!(tally.told > 20 && tally.unknown > 0, "{tally:?}");
}

/// Does `close` return without an error only where everything is durable?
#[test]
fn rec29_each_step_of_closing_may_fail() {
    assert!(sweep(How::Close, &KINDS).told > 5);
    sweep(How::Drop, &SOME);
}
