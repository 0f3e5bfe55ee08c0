//! What was left out, counted across resumes and forks; and what a ring keeps, which no checkpoint has.

use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Cell, Observable, Overflow, Recorder, ResumeFrom, StreamOptions, Value,
};
use sealstone::{ErrorKind, Limits, Store};

use crate::rig::{append, disk, iterations, limits, options, root, schema};

struct State(i64);

impl Observable for State {
    fn iteration(&self) -> i64 {
        self.0
    }
    fn field(&self, _name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        to.put(Value::Bytes(&[7]))
    }
}

fn small_queue() -> Limits {
    let mut limits = limits();
    limits.queue_bytes = 4096;
    limits
}

fn dropped(store: &Store, recording: &str, stream: &str) -> u64 {
    store.recording(recording).unwrap().stream(stream).unwrap().dropped().unwrap()
}

/// At `at` stream `a` fills the queue, so that `b` is left out; then there is room again.
fn leave_out(run: &Recorder, at: i64) {
    append(run, 0, at, 3500).unwrap();
    append(run, 1, at, 2000).unwrap();
    run.barrier().unwrap();
}

/// One left out, one recorded that tells of it, one left out.
fn part(run: &Recorder, from: i64) {
    leave_out(run, from);
    append(run, 1, from + 1, 9).unwrap();
    run.barrier().unwrap();
    leave_out(run, from + 2);
}

/// Runs to a checkpoint and beyond, ends, goes back and does it again: the counts of the fork, of the
/// recording gone back, of it at its end, and of a fork of its end.
fn counts(chunk_bytes: u64, is_killed: bool) -> [u64; 4] {
    let disk = disk(77);
    let store = options(disk.clone(), small_queue()).create(root()).unwrap();
    let b = StreamOptions::new("b", ["y"]).overflow(Overflow::Drop).chunk_bytes(chunk_bytes);
    let run = store.record("run", &schema()).stream("a", ["x"]).stream_as(b).start().unwrap();
    part(&run, 0);
    part(&run, 10);
    run.checkpoint(&State(12)).unwrap();
    part(&run, 20);
    part(&run, 30);
    part(&run, 40);
    let next = disk.process(7);
    match is_killed {
        true => disk.kill(),
        false => run.close().unwrap(),
    }
    drop(store);
    disk.kill();
    let store = options(next, small_queue()).open(root()).unwrap();
    store.fork("run", ResumeFrom::LatestCheckpoint, "fork").unwrap();
    let of_fork = dropped(&store, "fork", "b");
    let resumed = store.resume("run").start().unwrap();
    let gone_back = dropped(&store, "run", "b");
    part(&resumed.recorder, 20);
    part(&resumed.recorder, 30);
    part(&resumed.recorder, 40);
    resumed.recorder.complete().unwrap();
    let at_end = dropped(&store, "run", "b");
    store.fork("run", ResumeFrom::Tail, "tail").unwrap();
    [of_fork, gone_back, at_end, dropped(&store, "tail", "b")]
}

/// Is what was left out before a checkpoint counted by a run that goes back to it, and by a fork, and what
/// came behind it once, however often it is done again; sealed or not, ended or killed?
#[test]
fn rec39_what_was_left_out_is_counted_once_by_a_run_that_goes_back_and_by_a_fork() {
    for chunk_bytes in [1, 1 << 20] {
        for is_killed in [false, true] {
            assert_eq!(counts(chunk_bytes, is_killed), [4, 4, 10, 10], "{chunk_bytes} {is_killed}");
        }
    }
}

/// Would it be noticed if it were not? (mutant)
#[test]
fn rec39_without_the_count_of_the_checkpoint_it_drifts() {
    let _off = switch_off(Protection::DroppedAtCursor);
    assert_ne!(counts(1, false), [4, 4, 10, 10]);
    assert_ne!(counts(1 << 20, true), [4, 4, 10, 10]);
}

/// Does a fork of a running recording's end count what its unsealed records tell of?
#[test]
fn rec41_a_fork_of_an_end_counts_what_unsealed_records_tell_of() {
    let store = options(disk(78), small_queue()).create(root()).unwrap();
    let b = StreamOptions::new("b", ["y"]).overflow(Overflow::Drop);
    let run = store.record("run", &schema()).stream("a", ["x"]).stream_as(b).start().unwrap();
    part(&run, 0);
    let made = store.fork("run", ResumeFrom::Tail, "fork").unwrap();
    assert_eq!((made.checkpoint, made.iteration, made.passed_over.len()), (None, None, 0));
    assert_eq!((dropped(&store, "fork", "b"), dropped(&store, "run", "b")), (1, 1));
    run.complete().unwrap();
    assert_eq!((dropped(&store, "fork", "b"), dropped(&store, "run", "b")), (1, 2));
}

/// Is what a ring keeps no part of a checkpoint, counted as left out by a run that goes on from there, and
/// still there in one that was not interrupted?
#[test]
fn rec37_what_a_ring_keeps_is_no_part_of_a_checkpoint() {
    for is_interrupted in [true, false] {
        let disk = disk(79);
        let store = options(disk.clone(), limits()).create(root()).unwrap();
        let ring = Overflow::Ring { records: 3, bytes: 1 << 20 };
        let a = StreamOptions::new("a", ["x"]).overflow(ring);
        let run = store.record("run", &schema()).stream_as(a).stream("b", ["y"]).start().unwrap();
        for at in 0..10 {
            append(&run, 0, at, 9).unwrap();
        }
        run.checkpoint(&State(9)).unwrap();
        if !is_interrupted {
            run.trigger(0).unwrap();
            run.complete().unwrap();
            assert_eq!(iterations(&store, "a"), [7, 8, 9]);
            assert_eq!(dropped(&store, "run", "a"), 7);
            continue;
        }
        let next = disk.process(7);
        disk.kill();
        drop((run, store));
        let store = options(next, limits()).open(root()).unwrap();
        let run = store.resume("run").start().unwrap().recorder;
        assert_eq!(iterations(&store, "a"), [0i64; 0]);
        assert_eq!(dropped(&store, "run", "a"), 10);
        // It took that one, and lost it.
        assert_eq!(append(&run, 0, 9, 9).unwrap_err().kind(), ErrorKind::Invalid);
        append(&run, 0, 10, 9).unwrap();
        append(&run, 0, 11, 9).unwrap();
        run.trigger(0).unwrap();
        run.complete().unwrap();
        assert_eq!((iterations(&store, "a"), dropped(&store, "run", "a")), (vec![10, 11], 10));
    }
}

/// How a recording ends that is then gone on with from its end.
#[derive(Debug, Clone, Copy)]
enum Ended {
    Forked,
    GoneBackAndKilled,
    Closed,
}

/// Takes 0..=9 of a ring of 3, of which 1, 2, 3 are recorded and all else is left out, and ends so. Goes on
/// from the end at `at`, up to 11, of which 9 (or `at`), 10 and 11 are recorded. What was left out where it
/// goes on and at the end, and how many records there are then.
fn goes_on_at(at: i64, ended: Ended) -> (u64, u64, usize) {
    let disk = disk(80);
    let store = options(disk.clone(), limits()).create(root()).unwrap();
    let ring = Overflow::Ring { records: 3, bytes: 1 << 20 };
    let a = StreamOptions::new("a", ["x"]).overflow(ring);
    let run = store.record("run", &schema()).stream_as(a).stream("b", ["y"]).start().unwrap();
    (0..4).for_each(|at| drop(append(&run, 0, at, 9).unwrap()));
    run.trigger(0).unwrap();
    (4..10).for_each(|at| drop(append(&run, 0, at, 9).unwrap()));
    run.checkpoint(&State(9)).unwrap();
    let mut name = "run";
    match ended {
        Ended::Forked => {
            store.fork("run", ResumeFrom::LatestCheckpoint, "fork").unwrap();
            name = "fork";
        }
        Ended::Closed => run.close().unwrap(),
        Ended::GoneBackAndKilled => {}
    }
    let next = disk.process(7);
    disk.kill();
    drop(store);
    let mut store = options(next.clone(), limits()).open(root()).unwrap();
    if matches!(ended, Ended::GoneBackAndKilled) {
        let resumed = store.resume("run").start().unwrap();
        let again = next.process(8);
        next.kill();
        drop((resumed, store));
        store = options(again, limits()).open(root()).unwrap();
    }
    let run = store.resume(name).from(ResumeFrom::Tail).start().unwrap().recorder;
    let where_it_goes_on = dropped(&store, name, "a");
    (at..12).for_each(|at| drop(append(&run, 0, at, 9).unwrap()));
    run.trigger(0).unwrap();
    run.complete().unwrap();
    let stream = store.recording(name).unwrap().stream("a").unwrap();
    (where_it_goes_on, dropped(&store, name, "a"), stream.record_count() as usize)
}

/// Does a run from the end keep the count of what was left out behind the last record; is everything then
/// recorded or left out once if it goes on behind that, and is what it does again counted again?
#[test]
fn rec37_a_run_from_the_end_keeps_the_count_of_what_was_left_out_behind_the_last_record() {
    for ended in [Ended::Forked, Ended::GoneBackAndKilled, Ended::Closed] {
        // 0..=11 once: 7 left out and 5 recorded.
        assert_eq!(goes_on_at(10, ended), (7, 7, 5), "{ended:?}");
        // 4..=9 twice: of them 4..=8 left out both times, 9 left out and recorded.
        assert_eq!(goes_on_at(4, ended), (7, 12, 6), "{ended:?}");
    }
}
