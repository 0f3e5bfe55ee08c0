//! Which observations a stream records, and that one that is not due costs nothing.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sealstone::recording::{Cell, Every, Recorder, TimeAxis, Value};

use crate::support::{draft, home, iterations};

/// Observes, and tells which fields were asked for.
fn asked(run: &Recorder, iteration: i64, time: Option<f64>, x: f64) -> Vec<String> {
    let asked = RefCell::new(Vec::new());
    let give = |name: &str, to: &mut Cell<'_>| {
        asked.borrow_mut().push(name.to_owned());
        to.put(if name == "note" { Value::String("text") } else { Value::F64(x) })
    };
    run.observe_with(iteration, time, give).unwrap();
    asked.into_inner()
}

/// Are exactly 0, k, 2k taken, and is nothing asked, queued or missed where a stream is not due?
#[test]
fn rec10_an_interval_takes_its_multiples_and_costs_nothing_else() {
    let home = home();
    let new = draft(&home.store).stream_every("s", ["x"], Every::iterations(4));
    let run = new.stream_every("t", ["note"], Every::iterations(6)).start().unwrap();
    for iteration in 0..=24 {
        let before = home.store.stats().unwrap().queued_bytes;
        let seen = asked(&run, iteration, None, 1.0);
        let mut expected: Vec<&str> = Vec::new();
        expected.extend((iteration % 4 == 0).then_some("x"));
        expected.extend((iteration % 6 == 0).then_some("note"));
        assert_eq!(seen, expected, "iteration {iteration}");
        let queued = home.store.stats().unwrap().queued_bytes;
        assert!(queued == before || !expected.is_empty() || queued == 0, "something was queued");
    }
    // A value that would be missing is none where nothing is due.
    run.observe_with(25, None, |_, _| Ok(())).unwrap();
    run.observe_with(26, None, |_, _| panic!("nothing is due")).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "s"), [0, 4, 8, 12, 16, 20, 24]);
    assert_eq!(iterations(&home.store, "t"), [0, 6, 12, 18, 24]);
}

/// Does physical time take the first observation in each interval, however steps fall?
#[test]
fn rec11_every_interval_of_physical_time_is_taken_once() {
    let home = home();
    let axis = TimeAxis::named("step", "").time("t", "s");
    let new = draft(&home.store).time_axis(axis).stream_every("s", ["x"], Every::time(0.5));
    let run = new.start().unwrap();
    let times = [0.1, 0.2, 0.5, 0.6, 0.99, 1.7, 1.9, 2.0, 2.4999999999, 2.6, 9.0];
    for (iteration, time) in times.iter().enumerate() {
        asked(&run, iteration as i64, Some(*time), 1.0);
    }
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "s"), [0, 2, 5, 7, 8, 10]);
}

/// Is a predicate told iteration and time alone, and followed?
#[test]
fn rec11_a_predicate_of_the_caller_decides() {
    let home = home();
    let told = Arc::new(AtomicI64::new(-1));
    let to_tell = Arc::clone(&told);
    let predicate = move |iteration: i64, time: Option<f64>| {
        to_tell.store(iteration, Ordering::Relaxed);
        assert_eq!(time, None);
        iteration % 5 == 1
    };
    let run = draft(&home.store).stream_every("s", ["x"], Every::when(predicate)).start().unwrap();
    for iteration in 0..12 {
        let seen = asked(&run, iteration, None, 1.0);
        assert_eq!(told.load(Ordering::Relaxed), iteration);
        assert_eq!(seen.is_empty(), iteration % 5 != 1, "nothing is borrowed before it is due");
    }
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "s"), [1, 6, 11]);
}

/// Is a change seen bit for bit, with the watched field alone borrowed before the stream is due?
#[test]
fn rec11_a_change_borrows_only_the_watched_field() {
    let home = home();
    let new = draft(&home.store).stream_every("s", ["y", "note"], Every::change_of("x"));
    let run = new.start().unwrap();
    let nan = f64::from_bits(0x7ff8_0000_0000_0001);
    let values = [0.0, 0.0, -0.0, f64::NAN, f64::NAN, nan, nan, 1.0, 0.0];
    for (iteration, x) in values.iter().enumerate() {
        let seen = asked(&run, iteration as i64, None, *x);
        let is_new = iteration == 0 || values[iteration - 1].to_bits() != x.to_bits();
        let expected: &[&str] = if is_new { &["x", "y", "note"] } else { &["x"] };
        assert_eq!(seen, expected, "iteration {iteration}");
    }
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "s"), [0, 2, 3, 5, 7, 8]);
}

/// Does wall-clock time take the first observation behind each interval? (On the simulated disk,
/// whose clock the test moves.)
#[test]
#[cfg(feature = "sim")]
fn rec11_every_interval_of_wall_clock_time_is_taken_once() {
    use sealstone::vfs::sim::SimDisk;
    use std::time::Duration;
    let disk = SimDisk::new(5);
    let mut limits = sealstone::Limits::default();
    limits.background = false;
    let options = sealstone::Store::options().limits(limits).disk(Arc::new(disk.clone()));
    let store = options.create("/run.stone").unwrap();
    let every = Every::wall(Duration::from_secs(3600));
    let run = draft(&store).stream_every("s", ["x"], every).start().unwrap();
    let mut expected = Vec::new();
    for iteration in 0..10 {
        let seen = asked(&run, iteration, None, 1.0);
        if iteration % 4 == 0 {
            expected.push(iteration);
        }
        assert_eq!(seen.is_empty(), iteration % 4 != 0, "iteration {iteration}");
        disk.pass_time(901_000_000_000);
    }
    assert_eq!(iterations(&store, "s"), expected);
}

/// Is a time that is none told, whether or not a stream is due, and one that goes back where a stream
/// goes by it?
#[test]
fn rec11_a_time_that_is_none_is_told_and_not_taken_for_not_due() {
    let home = home();
    let axis = TimeAxis::named("step", "").time("t", "s");
    let new = draft(&home.store).time_axis(axis).stream_every("s", ["x"], Every::time(0.5));
    let run = new.stream_every("rare", ["y"], Every::iterations(100)).start().unwrap();
    asked(&run, 0, Some(1.0), 1.0);
    let times = [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, 0.9].map(Some);
    for time in times.into_iter().chain([None]) {
        let give = |_: &str, _: &mut Cell<'_>| panic!("nothing is asked for");
        let refused = run.observe_with(1, time, give).unwrap_err();
        assert_eq!(refused.kind(), sealstone::ErrorKind::Invalid, "{time:?}");
        assert!(refused.to_string().contains("stream \"s\" iteration 1"), "{refused}");
    }
    asked(&run, 1, Some(1.0), 1.0);
    asked(&run, 2, Some(1.5), 1.0);
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "s"), [0, 2]);
}
