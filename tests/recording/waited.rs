//! A group that waited for room comes behind those that went ahead, or is refused: it is never lost
//! in silence, and what is journaled can always be sealed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;

use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{Every, NewRecord, Recorder, Value};
use sealstone::{ErrorKind, Result, Store};

use crate::gate::Call;
use crate::rig::{gated, iterations, limits, returned, schema};

/// The outcome of `waits`, ahead of which `ahead` went while it waited for room; then the end of the
/// recording, which seals everything.
fn overtaken(
    timed: bool,
    waits: impl FnOnce(&Recorder) -> Result<()> + Send + 'static,
    ahead: impl FnOnce(&Recorder),
) -> (Result<()>, Store) {
    let mut limits = limits();
    limits.queue_bytes = 4096;
    let (gate, store) = gated(limits);
    let all = if timed { schema().timed() } else { schema() };
    let odd = Every::when(|iteration, _| iteration % 2 == 1);
    let new = store.record("run", &all).stream_every("a", ["x"], Every::iterations(10));
    let run = Arc::new(new.stream_every("b", ["y"], odd).start().unwrap());
    record(&run, 0, 0, timed.then_some(0.0), 1).unwrap();
    run.barrier().unwrap();
    gate.hold(Call::Write);
    record(&run, 0, 1, timed.then_some(0.0), 3200).unwrap();
    let (done, is_done) = channel();
    let blocked = Arc::clone(&run);
    std::thread::spawn(move || {
        let told = waits(&blocked);
        drop(blocked);
        done.send(told)
    });
    gate.until_somebody_stands();
    ahead(&run);
    gate.let_go();
    let told = returned(&is_done);
    Arc::into_inner(run).unwrap().complete().unwrap();
    (told, store)
}

fn record(run: &Recorder, stream: usize, at: i64, time: Option<f64>, len: usize) -> Result<()> {
    let values = [Value::Bytes(&vec![7; len])];
    run.append_all(&[NewRecord { stream, iteration: at, time, values: &values }]).map(drop)
}

fn observe(run: &Recorder, iteration: i64, len: usize) -> Result<()> {
    let bytes = vec![7; len];
    let map = ["x", "y"].map(|name| (name, Value::Bytes(&bytes)));
    run.observe_map(iteration, None, &BTreeMap::from(map)).map(drop)
}

/// Is a record that was appended twice at one iteration refused, and not left out with a ticket?
#[test]
fn rec14_an_append_of_an_iteration_that_came_meanwhile_is_refused() {
    let (told, store) = overtaken(
        false,
        |run| record(run, 0, 10, None, 1000),
        |run| record(run, 0, 10, None, 5).unwrap(),
    );
    let refused = told.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("iteration 10 does not follow 10"), "{refused}");
    assert_eq!(iterations(&store, "a"), [0, 1, 10]);
    // Observed twice it says the same, and is there once.
    let (told, store) =
        overtaken(false, |run| observe(run, 10, 1000), |run| observe(run, 10, 5).unwrap());
    told.unwrap();
    assert_eq!(iterations(&store, "a"), [0, 1, 10]);
}

/// Is a record whose time lies before one that went ahead refused, so that every chunk can be made?
#[test]
fn rec9_a_time_before_one_that_came_meanwhile_is_refused() {
    let (told, store) = overtaken(
        true,
        |run| record(run, 0, 10, Some(5.0), 1000),
        |run| record(run, 0, 9, Some(6.0), 5).unwrap(),
    );
    let refused = told.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("time 5 does not follow 6"), "{refused}");
    assert_eq!(iterations(&store, "a"), [0, 1, 9]);
}

/// What an observation is told that waited, in one stream, while a later one was taken, in another.
fn told_across_streams() -> (Result<()>, Vec<i64>) {
    let (told, store) =
        overtaken(false, |run| observe(run, 10, 1000), |run| observe(run, 11, 5).unwrap());
    assert_eq!(iterations(&store, "b"), [11]);
    (told, iterations(&store, "a"))
}

/// Is an observation below one that was accepted while it waited refused, whatever streams they are of?
#[test]
fn rec15_an_observation_below_one_that_came_meanwhile_is_refused() {
    let (told, kept) = told_across_streams();
    let refused = told.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("iteration 10 lies before 11"), "{refused}");
    assert_eq!(kept, [0, 1]);
}

/// Would it be noticed if observations were not compared with those before them?
#[test]
fn rec15_mutant_observed_order_is_caught() {
    let (gate, store) = gated(limits());
    let run = store.record("run", &schema()).stream_every("a", ["x"], Every::iterations(10));
    let run = run.start().unwrap();
    observe(&run, 11, 5).unwrap();
    assert_eq!(observe(&run, 10, 5).unwrap_err().kind(), ErrorKind::Invalid);
    let _off = switch_off(Protection::ObservedOrder);
    observe(&run, 10, 5).unwrap();
    drop(gate);
}
