//! What streams do when the queue is full, each as it was told, and together.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use proptest::prelude::*;
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Level, NewRecord, NewRecording, Overflow, Recorder, RecordingStatus, ResumeFrom, StreamOptions,
    Value,
};
use sealstone::vfs::sim::{Profile, Rng};
use sealstone::{ErrorKind, Limits, Result, Store, WriteAccess};

use crate::gate::{Call, GateDisk};
use crate::rig::{append, disk, gated, iterations, limits, options, returned, root, schema};

/// A recording of `a` and `b`, which do so when the queue is full.
fn start(store: &Store, a: Overflow, b: Overflow) -> Recorder {
    described(store, a, b).start().unwrap()
}

fn described(store: &Store, a: Overflow, b: Overflow) -> NewRecording {
    store
        .record("run", &schema())
        .stream_as(StreamOptions::new("a", ["x"]).overflow(a))
        .stream_as(StreamOptions::new("b", ["y"]).overflow(b))
}

fn small_queue() -> Limits {
    let mut limits = limits();
    limits.queue_bytes = 4096;
    limits
}

/// A store without a thread of its own: nothing leaves the queue unless somebody waits.
fn quiet(a: Overflow, b: Overflow) -> (GateDisk, Store, Recorder) {
    let (gate, store) = gated(small_queue());
    let run = start(&store, a, b);
    append(&run, 1, 0, 1).unwrap();
    run.barrier().unwrap();
    (gate, store, run)
}

/// Both streams observe `iteration`, with so many bytes each.
fn observe(run: &Recorder, iteration: i64, a: usize, b: usize) -> Result<()> {
    let (x, y) = (vec![1; a], vec![2; b]);
    let map = [("x", Value::Bytes(&x)), ("y", Value::Bytes(&y))];
    run.observe_map(iteration, None, &std::collections::BTreeMap::from(map)).map(drop)
}

fn dropped(store: &Store, stream: &str) -> u64 {
    store.recording("run").unwrap().stream(stream).unwrap().dropped().unwrap()
}

/// Does a stream that fails say so at once, with nothing accepted, though nobody will ever write; and
/// is the same record taken later?
#[test]
fn rec20_fail_tells_at_once_and_accepts_nothing() {
    let (gate, store, run) = quiet(Overflow::Fail, Overflow::Fail);
    gate.hold(Call::Write);
    append(&run, 0, 1, 3500).unwrap();
    let refused = append(&run, 0, 2, 1000).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::QueueFull);
    assert!(refused.to_string().contains("\"a\""), "{refused}");
    append(&run, 0, 2, 10).unwrap();
    assert_eq!(append(&run, 0, 3, 1000).unwrap_err().kind(), ErrorKind::QueueFull);
    gate.let_go();
    run.barrier().unwrap();
    append(&run, 0, 3, 1000).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&store, "a"), [1, 2, 3]);
    assert_eq!(dropped(&store, "a"), 0);
}

/// Does a stream with a little patience wait for it, and get in when bytes leave in time?
#[test]
fn rec20_block_for_ends_with_its_own_error_or_with_room() {
    let mut limits = small_queue();
    // The thread writes: whoever waits with a deadline cannot.
    (limits.background, limits.linger_millis) = (true, 3_600_000);
    let (gate, store) = gated(limits);
    let run = start(&store, Overflow::BlockFor(Duration::from_millis(5)), Overflow::default());
    append(&run, 0, 0, 1).unwrap();
    run.barrier().unwrap();
    gate.hold(Call::Write);
    append(&run, 0, 1, 3500).unwrap();
    let late = append(&run, 0, 2, 1000).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut, "{late:?}");
    gate.let_go();
    drop(run);
    assert_eq!(iterations(&store, "a"), [0, 1]);

    let patient = Overflow::BlockFor(Duration::from_secs(3600));
    let (gate, store) = gated(store.limits().clone());
    let run = Arc::new(start(&store, patient, patient));
    append(&run, 0, 0, 1).unwrap();
    run.barrier().unwrap();
    gate.hold(Call::Write);
    append(&run, 0, 1, 3500).unwrap();
    let (done, is_done) = channel();
    let blocked = Arc::clone(&run);
    std::thread::spawn(move || done.send(append(&blocked, 1, 1, 1000).map(drop)));
    // Whoever stands at the gate is the store's own thread, asked by the one that waits.
    gate.until_somebody_stands();
    gate.let_go();
    returned(&is_done).unwrap();
    run.barrier().unwrap();
    assert_eq!((iterations(&store, "a"), iterations(&store, "b")), (vec![0, 1], vec![1]));
}

/// Does an observer that has no patience wait behind one that has?
#[test]
fn rec20_one_that_waits_holds_up_nobody_else() {
    let (gate, _store, run) = quiet(Overflow::Block, Overflow::Fail);
    let run = Arc::new(run);
    gate.hold(Call::Write);
    append(&run, 0, 1, 3500).unwrap();
    let (done, is_done) = channel();
    let blocked = Arc::clone(&run);
    std::thread::spawn(move || done.send(append(&blocked, 0, 2, 1000).map(drop)));
    gate.until_somebody_stands();
    assert_eq!(append(&run, 1, 2, 1000).unwrap_err().kind(), ErrorKind::QueueFull);
    append(&run, 1, 2, 10).unwrap();
    gate.let_go();
    returned(&is_done).unwrap();
}

/// Is the thread that writes, when it dies, silent to those whose patience has no near end?
#[test]
fn rec21_a_dead_thread_is_told_to_those_who_wait_for_it() {
    let mut limits = small_queue();
    (limits.background, limits.linger_millis) = (true, 3_600_000);
    let (gate, store) = gated(limits);
    let patient = Overflow::BlockFor(Duration::from_secs(3600));
    let run = Arc::new(start(&store, patient, patient));
    append(&run, 0, 0, 1).unwrap();
    run.barrier().unwrap();
    gate.hold(Call::Write);
    append(&run, 0, 1, 3500).unwrap();
    let (done, is_done) = channel();
    for stream in 0..2 {
        let (blocked, done) = (Arc::clone(&run), done.clone());
        std::thread::spawn(move || done.send(append(&blocked, stream, 2, 1000).map(drop)));
    }
    gate.until_somebody_stands();
    gate.panic_at(Call::Write);
    let told = [returned(&is_done).unwrap_err(), returned(&is_done).unwrap_err()];
    gate.let_go();
    let cause = crate::rig::root_cause(&told[0]);
    assert!(cause.contains("panic"), "{cause}");
    let later = append(&run, 0, 5, 1).unwrap_err();
    for error in told.iter().chain([&later, &store.health().halted.unwrap()]) {
        assert_eq!(crate::rig::root_cause(error), cause, "{error:?}");
    }
}

/// Is a group of several streams taken only when each takes its own?
fn a_group_of_which_one_fails() -> (bool, Vec<i64>, Vec<i64>) {
    let (_gate, store, run) = quiet(Overflow::Block, Overflow::Fail);
    append(&run, 0, 1, 3000).unwrap();
    // There is room for the one, and none for the other.
    let told = observe(&run, 2, 10, 2000);
    let is_refused = told.is_err_and(|e| e.kind() == ErrorKind::QueueFull);
    run.barrier().unwrap();
    (is_refused, iterations(&store, "a"), iterations(&store, "b"))
}

#[test]
fn rec20_a_group_is_admitted_only_when_every_due_stream_admits_it() {
    assert_eq!(a_group_of_which_one_fails(), (true, vec![1], vec![0]));
    let (_gate, store, run) = quiet(Overflow::Block, Overflow::Fail);
    observe(&run, 2, 10, 2000).unwrap();
    assert_eq!(observe(&run, 3, 2000, 10).unwrap_err().kind(), ErrorKind::QueueFull);
    run.barrier().unwrap();
    // It was not observed, so it can be observed again.
    observe(&run, 3, 2000, 10).unwrap();
    run.complete().unwrap();
    assert_eq!((iterations(&store, "a"), iterations(&store, "b")), (vec![2, 3], vec![0, 2, 3]));
}

/// Would it be noticed if each stream were asked by itself?
#[test]
fn rec20_mutant_group_admission_is_caught() {
    let _off = switch_off(Protection::GroupAdmission);
    assert_ne!(a_group_of_which_one_fails(), (true, vec![1], vec![0]));
}

/// Is what a stream drops left out of it alone, and counted?
#[test]
fn rec20_a_stream_that_drops_counts_as_not_due() {
    let (_gate, store, run) = quiet(Overflow::Fail, Overflow::Drop);
    append(&run, 0, 1, 3000).unwrap();
    observe(&run, 2, 10, 2000).unwrap();
    observe(&run, 3, 10, 2000).unwrap();
    assert_eq!(observe(&run, 4, 2000, 10).unwrap_err().kind(), ErrorKind::QueueFull);
    // Alone it is dropped as well, and what was accepted last is what its ticket is of.
    let ticket = append(&run, 1, 4, 2000).unwrap();
    ticket.wait(Level::Durable).unwrap();
    observe(&run, 5, 10, 2000).unwrap();
    run.barrier().unwrap();
    assert_eq!((iterations(&store, "a"), iterations(&store, "b")), (vec![1, 2, 3, 5], vec![0, 5]));
    assert_eq!((dropped(&store, "a"), dropped(&store, "b")), (0, 3));
    append(&run, 0, 6, 3000).unwrap();
    append(&run, 1, 6, 2000).unwrap();
    run.complete().unwrap();
    assert_eq!((dropped(&store, "a"), dropped(&store, "b")), (0, 4), "behind the last record too");
}

/// Records of a stream that drops, some of them dropped; the drops before each record that is kept.
fn with_drops(run: &Recorder, from: i64, records: i64) -> Vec<(i64, u64)> {
    let (mut all, mut kept) = (0, Vec::new());
    for at in from..from + records {
        append(run, 0, at, 3500).unwrap();
        for n in 0..(at as u64 * 7 % 4) {
            append(run, 1, at * 10 + n as i64, 2000).unwrap();
            all += 1;
        }
        run.barrier().unwrap();
        append(run, 1, at * 10 + 9, 30).unwrap();
        kept.push((at * 10 + 9, all));
    }
    kept
}

/// Does the count survive a crash as far as the record behind it does, in the journal and in chunks?
fn counts_after_crashes() -> u64 {
    let disk = disk(41);
    let store = options(disk.clone(), small_queue()).create(root()).unwrap();
    let b = StreamOptions::new("b", ["y"]).overflow(Overflow::Drop).chunk_bytes(200);
    let run = store.record("run", &schema()).stream("a", ["x"]).stream_as(b).start().unwrap();
    append(&run, 1, 0, 1).unwrap();
    run.barrier().unwrap();
    disk.restart_log();
    let mut kept = vec![(0, 0)];
    kept.extend(with_drops(&run, 1, 6));
    let total = kept.last().unwrap().1;
    run.complete().unwrap();
    disk.note(b"complete");
    let (log, mut rng) = (disk.events(), Rng::new(3));
    let mut wrong = 0;
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            let is_complete = !cursor.notes().is_empty();
            for image in cursor.images(&mut rng, 1) {
                let disk = image.disk();
                let store = options(disk.clone(), small_queue()).open(root()).unwrap();
                let last = *iterations(&store, "b").last().unwrap();
                let known = kept.iter().find(|(iteration, _)| *iteration == last).unwrap().1;
                let counted = dropped(&store, "b");
                wrong += u64::from(counted != known || (is_complete && counted != total));
                let status = store.recording("run").unwrap().status().clone();
                assert!(!is_complete || status == RecordingStatus::Complete);
                disk.kill();
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    assert!(total > 5);
    wrong
}

#[test]
fn rec20_the_count_of_dropped_records_is_durable() {
    assert_eq!(counts_after_crashes(), 0);
}

/// Would it be noticed if drops were not counted?
#[test]
fn rec20_mutant_drop_counted_is_caught() {
    let _off = switch_off(Protection::DropCounted);
    assert!(counts_after_crashes() > 0);
}

/// Do drops behind the last record survive the end of the recorder, without an end of the recording?
#[test]
fn rec20_drops_behind_the_last_record_are_counted_at_the_end() {
    for close in [true, false] {
        let disk = disk(42);
        let store = options(disk.clone(), small_queue()).create(root()).unwrap();
        let run = start(&store, Overflow::Block, Overflow::Drop);
        append(&run, 0, 1, 3500).unwrap();
        append(&run, 1, 1, 2000).unwrap();
        append(&run, 1, 2, 2000).unwrap();
        if close {
            run.close().unwrap()
        } else {
            drop(run)
        }
        let (left, next) = (store, disk.process(7));
        disk.kill();
        drop(left);
        let store = options(next, small_queue()).open(root()).unwrap();
        assert_eq!((iterations(&store, "b"), dropped(&store, "b")), (vec![], 2));
        assert!(store.claims(10).unwrap().is_empty());
    }
}

/// Does a ring keep the newest of a stream, off the queue, until it is triggered, in order, and count
/// what fell out?
#[test]
fn rec20_a_ring_keeps_the_newest_and_is_recorded_on_trigger() {
    let ring = Overflow::Ring { records: 3, bytes: 1 << 20 };
    let (gate, store, run) = quiet(ring, Overflow::Block);
    gate.hold(Call::Write);
    let queued = store.stats().unwrap().queued_bytes;
    for iteration in 0..10 {
        append(&run, 0, iteration, 2000).unwrap();
    }
    assert_eq!(store.stats().unwrap().queued_bytes, queued, "nothing of it is queued");
    gate.let_go();
    assert_eq!(append(&run, 0, 9, 1).unwrap_err().kind(), ErrorKind::Invalid, "it has that one");
    run.barrier().unwrap();
    assert_eq!(iterations(&store, "a"), [0; 0]);
    run.trigger(0).unwrap().wait(Level::Durable).unwrap();
    assert_eq!((iterations(&store, "a"), dropped(&store, "a")), (vec![7, 8, 9], 7));
    // Nothing is kept now: that is no error, and does nothing.
    run.trigger(0).unwrap().wait(Level::Durable).unwrap();
    assert_eq!(run.trigger(9).unwrap_err().kind(), ErrorKind::Invalid);
    run.trigger(1).unwrap();
    // An observation of both: only one of them goes to the queue.
    observe(&run, 10, 10, 10).unwrap();
    observe(&run, 10, 10, 10).unwrap();
    run.barrier().unwrap();
    assert_eq!((iterations(&store, "a").len(), iterations(&store, "b")), (3, vec![0, 10]));
    run.trigger(0).unwrap();
    observe(&run, 11, 10, 10).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&store, "a"), [7, 8, 9, 10]);
    assert_eq!(dropped(&store, "a"), 8, "what was kept at the end and not triggered counts too");
}

/// Is a ring bounded by bytes, and larger than the queue, recorded whole?
#[test]
fn rec20_a_ring_larger_than_the_queue_is_recorded_whole() {
    let ring = Overflow::Ring { records: u64::MAX, bytes: 20_000 };
    let (_gate, store, run) = quiet(ring, Overflow::Block);
    for iteration in 0..100 {
        append(&run, 0, iteration, 500).unwrap();
    }
    run.trigger(0).unwrap();
    assert!(store.stats().unwrap().queued_bytes_peak <= 4096);
    run.complete().unwrap();
    let kept = iterations(&store, "a");
    assert!((35..40).contains(&kept.len()), "{kept:?}");
    assert_eq!(kept, (100 - kept.len() as i64..100).collect::<Vec<_>>());
    assert_eq!(dropped(&store, "a"), 100 - kept.len() as u64);
}

/// Does a recording that goes on do what it did when the queue was full, described again or not, and
/// something else only where that is asked for?
#[test]
fn rec33_what_a_stream_does_when_the_queue_is_full_stays_when_it_goes_on() {
    let ring = Overflow::Ring { records: 3, bytes: 1 << 20 };
    let policies = [Overflow::Drop, Overflow::Fail, ring, Overflow::Block];
    for access in [WriteAccess::Single, WriteAccess::Shared] {
        for policy in policies {
            for is_expected in [false, true] {
                let options = options(disk(44), small_queue()).access(access);
                let store = options.create(root()).unwrap();
                drop(start(&store, Overflow::Block, policy));
                let resume = store.resume("run").from(ResumeFrom::Tail);
                let resume = match is_expected {
                    true => resume.expect(&described(&store, Overflow::Block, policy)),
                    false => resume,
                };
                let run = resume.start().unwrap().recorder;
                drop(run);
                // What the row says is what the next one does, who describes nothing.
                let resume = store.resume("run").from(ResumeFrom::Tail);
                let run = resume.start().unwrap().recorder;
                let at = format!("{access:?} {policy:?} expected {is_expected}");
                assert_eq!(done_when_full(&store, &run), policy, "{at}");
            }
        }
    }
}

/// What stream `b` of a recording does when the queue is full.
fn done_when_full(store: &Store, run: &Recorder) -> Overflow {
    append(run, 0, 1, 3500).unwrap();
    let queued = store.stats().unwrap().queued_bytes;
    match append(run, 1, 1, 1000) {
        Err(e) if e.kind() == ErrorKind::QueueFull => Overflow::Fail,
        Err(e) => panic!("{e}"),
        Ok(_) if store.stats().unwrap().queued_bytes < queued => Overflow::Block,
        Ok(_) => {
            run.trigger(1).unwrap();
            run.barrier().unwrap();
            match iterations(store, "b").as_slice() {
                [] => Overflow::Drop,
                _ => Overflow::Ring { records: 3, bytes: 1 << 20 },
            }
        }
    }
}

/// Is what cannot be meant refused before anything is written?
#[test]
fn rec4_an_overflow_that_keeps_or_waits_for_nothing_cannot_be_started() {
    let (_gate, store) = gated(limits());
    for wrong in [
        Overflow::BlockFor(Duration::ZERO),
        Overflow::Ring { records: 0, bytes: 1 },
        Overflow::Ring { records: 1, bytes: 0 },
    ] {
        let a = StreamOptions::new("a", ["x"]).overflow(wrong);
        let refused = store.record("run", &schema()).stream_as(a).start().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{wrong:?}");
        assert!(refused.to_string().contains("\"a\""), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever the policies and lengths: is every record either in its stream or counted as dropped
    /// or told as refused, and is the budget never passed?
    #[test]
    fn rec20_each_record_is_recorded_counted_or_refused(
        policies in prop::collection::vec(0usize..4, 2),
        steps in prop::collection::vec((0usize..3000, 0usize..3000, 0u8..6), 1..40),
    ) {
        let policy = |at: usize| [
            Overflow::Block,
            Overflow::Fail,
            Overflow::Drop,
            Overflow::Ring { records: 4, bytes: 5000 },
        ][policies[at]];
        let store = options(disk(43), small_queue()).create(root()).unwrap();
        let run = start(&store, policy(0), policy(1));
        let mut taken = 0;
        for (iteration, (a, b, then)) in steps.iter().enumerate() {
            let iteration = iteration as i64;
            let (x, y) = (vec![1; *a], vec![2; *b]);
            let records = [(0, Value::Bytes(&x)), (1, Value::Bytes(&y))];
            let records = records.each_ref().map(|(stream, value)| NewRecord {
                stream: *stream,
                iteration,
                time: None,
                values: std::slice::from_ref(value),
            });
            match run.append_all(&records) {
                Ok(_) => taken += 1,
                Err(e) => prop_assert!(
                    matches!(e.kind(), ErrorKind::QueueFull | ErrorKind::LimitExceeded), "{e:?}"
                ),
            }
            match then {
                0 => run.barrier().unwrap(),
                1 => drop(run.trigger(0).unwrap()),
                2 => drop(run.trigger(1).unwrap()),
                _ => {}
            }
        }
        run.complete().unwrap();
        let stats = store.stats().unwrap();
        prop_assert!(stats.queued_bytes_peak <= 4096);
        for stream in ["a", "b"] {
            let recorded = iterations(&store, stream);
            prop_assert!(recorded.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(recorded.len() as u64 + dropped(&store, stream), taken);
        }
    }
}
