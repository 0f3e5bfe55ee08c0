//! The queue in front of a slow disk, and what is known of what was accepted.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use proptest::prelude::*;
use sealstone::ids::Sequence;
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{Level, Value};
use sealstone::vfs::TraceDisk;
use sealstone::vfs::sim::{Profile, Rng};
use sealstone::{ErrorKind, Limits, Store};

use crate::gate::Call;
use crate::rig::{
    append, disk, gated, iterations, limits, options, returned, root, root_cause, schema, start,
};

fn with_queue(bytes: u64) -> Limits {
    let mut limits = limits();
    limits.queue_bytes = bytes;
    limits
}

/// How many more records of `len` bytes the queue of `store` takes now.
fn room(store: &Store, len: u64) -> u64 {
    let stats = store.stats().unwrap();
    let frame = (len + 200).next_multiple_of(8);
    (store.limits().queue_bytes - stats.queued_bytes) / frame
}

/// Is a record that no queue can hold refused at once, wherever the disk is, and are smaller ones
/// taken afterwards?
#[test]
fn rec19_a_record_above_the_budget_is_refused_at_once() {
    let (gate, store) = gated(with_queue(4096));
    let run = start(&store);
    append(&run, 0, 0, 1).unwrap();
    run.barrier().unwrap();
    for call in [Call::Write, Call::Sync] {
        // Whoever waits for the disk now waits for ever.
        gate.hold(call);
        for len in [4097, 300_000] {
            let refused = append(&run, 0, 1, len).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
            assert!(refused.to_string().contains("4096"), "{refused}");
        }
        gate.let_go();
    }
    // Just above: it would fit without its frame.
    assert_eq!(append(&run, 0, 1, 4090).unwrap_err().kind(), ErrorKind::LimitExceeded);
    append(&run, 0, 1, 3900).unwrap();
    append(&run, 0, 2, 1).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&store, "a"), [0, 1, 2]);
}

/// Does an observer that found the queue full go on when bytes left it, though the disk is not done
/// with its sync?
#[test]
fn rec20_a_blocked_observer_resumes_when_bytes_leave() {
    let (gate, store) = gated(with_queue(4096));
    let run = Arc::new(start(&store));
    append(&run, 0, 0, 1).unwrap();
    run.barrier().unwrap();
    gate.hold(Call::Write);
    let ticket = append(&run, 0, 1, 1000).unwrap();
    let leader = std::thread::spawn(move || ticket.wait(Level::Durable));
    gate.until_somebody_stands();
    let mut iteration = 2;
    while room(&store, 400) > 0 {
        append(&run, 1, iteration, 400).unwrap();
        iteration += 1;
    }
    let (done, is_done) = channel();
    let blocked = Arc::clone(&run);
    std::thread::spawn(move || done.send(append(&blocked, 0, 100, 900)));
    // The leader's bytes leave, and nothing else: it stands at its sync then.
    gate.hold(Call::Sync);
    returned(&is_done).unwrap();
    assert!(store.stats().unwrap().queued_bytes <= 4096);
    gate.let_go();
    leader.join().unwrap().unwrap();
    run.barrier().unwrap();
    assert_eq!(iterations(&store, "a"), [0, 1, 100]);
}

/// Observers on several threads, of records of these lengths; the most that was ever queued.
fn peak_of(lens: &[u16], threads: usize, mutant: bool) -> u64 {
    let mut limits = with_queue(2048);
    limits.background = threads > 1;
    limits.linger_millis = 1;
    let store = options(disk(5), limits).create(root()).unwrap();
    let streams: Vec<String> = (0..threads).map(|n| format!("s{n}")).collect();
    let run = streams.iter().fold(store.record("run", &schema()), |run, s| run.stream(s, ["x"]));
    let run = run.start().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (run, store) = (&run, &store);
            scope.spawn(move || {
                let _off = mutant.then(|| switch_off(Protection::QueueBudget));
                for (iteration, len) in lens.iter().enumerate() {
                    let ticket = append(run, thread, iteration as i64, usize::from(*len)).unwrap();
                    assert!(mutant || store.stats().unwrap().queued_bytes <= 2048);
                    if len % 7 == 0 {
                        ticket.wait(Level::Durable).unwrap();
                    }
                }
            });
        }
    });
    run.complete().unwrap();
    for stream in &streams {
        assert_eq!(iterations(&store, stream).len(), lens.len());
    }
    store.stats().unwrap().queued_bytes_peak
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Do the queued bytes ever pass the budget, whatever many observers hand in at once?
    #[test]
    fn rec20_queued_bytes_never_pass_the_budget(
        lens in prop::collection::vec(0u16..1900, 1..40),
        threads in 1usize..5,
    ) {
        let peak = peak_of(&lens, threads, false);
        prop_assert!(peak <= 2048, "{peak}");
    }
}

/// Would it be noticed if the budget were not looked at?
#[test]
fn rec20_mutant_queue_budget_is_caught() {
    assert!(peak_of(&[1000; 9], 1, false) <= 2048);
    assert!(peak_of(&[1000; 9], 1, true) > 2048);
}

/// Observers and waiters, some of them blocked, while `strike` stops the journal; what each of them
/// was told, and what was told to those who came later.
fn told_after(strike: impl FnOnce(&crate::gate::GateDisk)) -> Vec<sealstone::Error> {
    let (gate, store) = gated(with_queue(4096));
    let run = Arc::new(start(&store));
    append(&run, 0, 0, 1).unwrap();
    run.barrier().unwrap();
    gate.hold(Call::Sync);
    let ticket = append(&run, 0, 1, 100).unwrap();
    let (done, is_done) = channel();
    let (tell, leading) = (done.clone(), ticket.clone());
    std::thread::spawn(move || {
        // A panic of the disk is one of the thread that met it; the others are told.
        let wait = std::panic::AssertUnwindSafe(|| leading.wait(Level::Durable));
        let _ = tell.send(std::panic::catch_unwind(wait).map(|told| told.unwrap_err()));
    });
    gate.until_somebody_stands();
    let mut iteration = 2;
    while room(&store, 400) > 0 {
        append(&run, 0, iteration, 400).unwrap();
        iteration += 1;
    }
    for stream in 0..2 {
        let (run, tell) = (Arc::clone(&run), done.clone());
        std::thread::spawn(move || {
            let _ = tell.send(Ok(append(&run, stream, 1000, 1500).unwrap_err()));
        });
    }
    let (waiting, tell) = (ticket.clone(), done.clone());
    std::thread::spawn(move || {
        let _ = tell.send(Ok(waiting.wait(Level::Durable).unwrap_err()));
    });
    strike(&gate);
    let mut told: Vec<_> = (0..4).filter_map(|_| returned(&is_done).ok()).collect();
    gate.let_go();
    told.push(append(&run, 0, 5000, 1).unwrap_err());
    told.push(run.barrier().unwrap_err());
    told.push(ticket.wait(Level::Durable).unwrap_err());
    told.push(store.health().halted.expect("the store halts"));
    told
}

/// Is everybody who waits, and everybody who comes later, told the same first cause?
#[test]
fn rec21_everybody_is_told_the_same_root_cause() {
    let told = told_after(|gate| gate.fail(Call::Sync, io::ErrorKind::StorageFull));
    assert_eq!(told.len(), 8);
    let cause = root_cause(&told[0]);
    for error in &told {
        assert_eq!(root_cause(error), cause, "{error:?}");
        let kinds = [ErrorKind::OutcomeUnknown, ErrorKind::Halted, ErrorKind::DiskFull];
        assert!(kinds.contains(&error.kind()), "{error:?}");
    }
}

/// Is the death of the thread that writes ever silent?
#[test]
fn rec21_a_writer_that_panics_is_told_to_everybody() {
    let told = told_after(|gate| gate.panic_at(Call::Sync));
    assert_eq!(told.len(), 7, "all but the one that panicked");
    let cause = root_cause(&told[0]);
    assert!(cause.contains("panic"), "{cause}");
    for error in &told {
        assert_eq!(root_cause(error), cause, "{error:?}");
    }
}

/// Does a ticket say what is safe by itself, in another thread, when its recorder is gone, and when
/// the store is?
#[test]
fn rec22_a_ticket_waits_by_itself() {
    let disk = disk(3);
    let store = options(disk.clone(), limits()).create(root()).unwrap();
    let run = start(&store);
    let first = append(&run, 0, 1, 10).unwrap();
    let second = append(&run, 1, 1, 10).unwrap();
    first.wait(Level::Accepted).unwrap();
    let before = disk.counts();
    first.wait(Level::Written).unwrap();
    second.wait(Level::Written).unwrap();
    assert!(disk.counts().since(&before).mutations() > 0);
    let before = disk.counts();
    let waiter = std::thread::spawn(move || first.wait(Level::Durable).map(|()| first));
    let first = waiter.join().unwrap().unwrap();
    assert_eq!(disk.counts().since(&before).syncs(), 1);
    let before = disk.counts();
    second.wait(Level::Durable).unwrap();
    assert_eq!(disk.counts().since(&before).mutations(), 0, "one sync is for all");

    let third = append(&run, 0, 2, 10).unwrap();
    drop(run);
    third.wait(Level::Durable).unwrap();
    assert!(third > first && third == third.clone());
    let again = store.clone();
    store.close().unwrap();
    assert_eq!(third.wait(Level::Durable).unwrap_err().kind(), ErrorKind::Closed);
    drop(again);
    assert_eq!(third.wait(Level::Durable).unwrap_err().kind(), ErrorKind::Closed);
    let store = options(disk, limits()).open(root()).unwrap();
    assert_eq!(store.wait(&third, Level::Durable).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(iterations(&store, "a"), [1, 2]);
}

/// Is what is told to be durable of a stream exactly what was made so, also after a failure?
#[test]
fn rec22_durable_upto_says_what_is_safe() {
    let (gate, store) = gated(limits());
    let run = start(&store);
    let recording = store.recording("run").unwrap();
    let (a, b) = (recording.stream("a").unwrap().id(), recording.stream("b").unwrap().id());
    let durable = |stream| store.durable_upto(stream).unwrap();
    assert_eq!((durable(a), durable(b)), (Sequence(0), Sequence(0)));
    append(&run, 0, 1, 10).unwrap();
    let ticket = append(&run, 1, 1, 10).unwrap();
    assert_eq!((durable(a), durable(b)), (Sequence(0), Sequence(0)));
    ticket.wait(Level::Written).unwrap();
    assert_eq!((durable(a), durable(b)), (Sequence(0), Sequence(0)));
    store.barrier_of(a).unwrap();
    assert_eq!((durable(a), durable(b)), (Sequence(1), Sequence(1)), "one sync is for all");
    append(&run, 0, 2, 10).unwrap();
    assert_eq!((durable(a), durable(b)), (Sequence(1), Sequence(1)));
    gate.fail(Call::Sync, io::ErrorKind::Other);
    assert_eq!(run.barrier().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    gate.let_go();
    assert_eq!((durable(a), durable(b)), (Sequence(1), Sequence(1)), "of a halted store too");
    let unknown = store.durable_upto(sealstone::ids::StreamId(99)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Halted);
}

/// Does a barrier make durable what came before it and nothing else, seal nothing, and do nothing on
/// nothing new?
#[test]
fn rec23_a_barrier_makes_durable_and_seals_nothing() {
    let sim = disk(9);
    let trace = TraceDisk::counting(Arc::new(sim.clone()));
    let disk: Arc<dyn sealstone::vfs::Disk> = Arc::new(trace.clone());
    let options = Store::options().limits(limits()).disk(disk);
    let store = options.create(root()).unwrap();
    let run = start(&store);
    let quiet = |work: &dyn Fn()| {
        let before = trace.counts();
        work();
        assert_eq!(trace.counts().since(&before), before.since(&before), "no I/O");
    };
    quiet(&|| run.barrier().unwrap());
    append(&run, 0, 1, 10).unwrap();
    append(&run, 1, 1, 10).unwrap();
    run.barrier().unwrap();
    quiet(&|| run.barrier().unwrap());
    let recording = store.recording("run").unwrap();
    let (a, b) = (recording.stream("a").unwrap().id(), recording.stream("b").unwrap().id());
    append(&run, 0, 2, 10).unwrap();
    quiet(&|| store.barrier_of(b).unwrap());
    assert_eq!(store.durable_upto(a).unwrap(), Sequence(1));
    store.barrier_of(a).unwrap();
    quiet(&|| store.barrier_of(a).unwrap());
    let unknown = store.barrier_of(sealstone::ids::StreamId(99)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    let stream = || store.recording("run").unwrap().stream("a").unwrap();
    assert_eq!((stream().chunk_count(), stream().sealed_record_count()), (0, 0));
    // What a barrier returned for is there whatever the disk forgets.
    append(&run, 0, 3, 10).unwrap();
    let (log, mut rng) = (sim.events(), Rng::new(9));
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        cursor.advance_to(log.len());
        for image in cursor.images(&mut rng, 8) {
            let store = crate::rig::options(image.disk(), limits()).open(root()).unwrap();
            let (a, b) = (iterations(&store, "a"), iterations(&store, "b"));
            assert_eq!((a, b), (vec![1, 2], vec![1]), "{}", image.outcomes());
        }
    }
}

/// Chunks and records of a run, with a barrier behind each record or without any.
fn chunks_of_a_run(barriers: bool) -> usize {
    let (_gate, store) = gated(limits());
    let run = store.record("run", &schema()).stream("a", ["x"]).chunk_bytes(256);
    let run = run.start().unwrap();
    for iteration in 0..100 {
        run.append(0, iteration, &[Value::Bytes(&[7; 20])]).unwrap();
        if barriers {
            run.barrier().unwrap();
        }
    }
    run.complete().unwrap();
    store.recording("run").unwrap().stream("a").unwrap().chunk_count()
}

/// Does the number of chunks depend on records and bytes alone?
#[test]
fn rec23_barriers_do_not_change_the_chunks() {
    assert_eq!(chunks_of_a_run(true), chunks_of_a_run(false));
}

/// Would it be noticed if a barrier sealed what is at hand?
#[test]
fn rec23_mutant_barrier_seals_nothing_is_caught() {
    let _off = switch_off(Protection::BarrierSealsNothing);
    assert_ne!(chunks_of_a_run(true), chunks_of_a_run(false));
}

/// Do barrier and end of a stream by its position say and do what those of its number do?
#[test]
fn rec23_a_recorder_knows_its_streams_by_position() {
    let sim = disk(10);
    let store = options(sim.clone(), limits()).create(root()).unwrap();
    let run = start(&store);
    append(&run, 0, 1, 10).unwrap();
    append(&run, 1, 1, 10).unwrap();
    append(&run, 0, 2, 10).unwrap();
    let upto = |stream| run.durable_upto(stream).unwrap();
    assert_eq!((upto(0), upto(1)), (0, 0));
    run.barrier_of(0).unwrap();
    assert_eq!((upto(0), upto(1)), (2, 1), "one sync is for all before it");
    append(&run, 1, 2, 10).unwrap();
    let before = sim.counts();
    run.barrier_of(0).unwrap();
    assert_eq!(sim.counts().since(&before).mutations(), 0, "nothing of it is new");
    assert_eq!((upto(0), upto(1)), (2, 1));
    for refused in [run.barrier_of(2).unwrap_err(), run.durable_upto(2).map(drop).unwrap_err()] {
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("stream number 2"), "{refused}");
    }
}
