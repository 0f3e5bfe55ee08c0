//! Observing a state: what is asked of it, what is refused, and what a refusal leaves.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::error::Error as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sealstone::recording::{
    Cell, Every, Field, FieldType, Level, NdArray, Observable, Opaque, Recorder, Schema, TimeAxis,
    Value,
};
use sealstone::{ErrorKind, Result};

use crate::support::{draft, home, iterations};

/// A state that cannot be cloned, and tells what it was asked.
struct State {
    iteration: i64,
    x: f64,
    note: Option<String>,
    asked: RefCell<Vec<String>>,
}

impl State {
    fn at(iteration: i64) -> Self {
        let note = (iteration % 2 == 0).then(|| format!("note {iteration}"));
        Self { iteration, x: iteration as f64, note, asked: RefCell::default() }
    }
}

impl Observable for State {
    fn iteration(&self) -> i64 {
        self.iteration
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> Result<()> {
        self.asked.borrow_mut().push(name.to_owned());
        match name {
            "x" => to.put(self.x),
            "y" => to.put(-self.x),
            // Borrowed until `put` returns, and never cloned.
            "note" => to.put(self.note.as_deref()),
            _ => Ok(()),
        }
    }
}

/// Streams of every observation, and of every third.
fn recorder(store: &sealstone::Store) -> Recorder {
    let new = draft(store).stream("all", ["x", "note"]);
    new.stream_every("third", ["y"], Every::iterations(3)).start().unwrap()
}

/// Does a due stream with a missing value name stream, iteration and field, and queue nothing?
#[test]
fn rec12_a_missing_value_is_named_and_nothing_is_queued() {
    let home = home();
    let run = recorder(&home.store);
    run.observe(&State::at(0)).unwrap();
    let queued = home.store.stats().unwrap().queued_bytes;
    let refused = run.observe_with(3, None, |name, to| match name {
        "y" => Ok(()),
        _ => State::at(3).field(name, to),
    });
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let text = "observe stream \"third\" iteration 3 field \"y\": its value is missing";
    assert_eq!(refused.to_string(), text);
    assert_eq!(home.store.stats().unwrap().queued_bytes, queued);
    assert_eq!(
        (iterations(&home.store, "all"), iterations(&home.store, "third")),
        (vec![0], vec![0])
    );
    // Where nothing is due, nothing is missing; a field that may be missing is.
    run.observe_with(1, None, |name, to| if name == "x" { to.put(1.0) } else { Ok(()) }).unwrap();
    run.observe(&State::at(3)).unwrap();
    assert_eq!(iterations(&home.store, "all"), [0, 1, 3]);
    assert_eq!(iterations(&home.store, "third"), [0, 3]);
    let wrong = run.observe_with(6, None, |_, to| to.put(7i64)).unwrap_err().to_string();
    assert!(wrong.contains("stream \"all\" iteration 6 field \"x\": it holds f64"), "{wrong}");
    let twice = |_: &str, to: &mut Cell<'_>| to.put(1.0).and_then(|()| to.put(1.0));
    assert!(run.observe_with(6, None, twice).unwrap_err().to_string().contains("second value"));
}

/// A serde type that is never encoded.
struct Stubborn;

impl serde::Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it is stubborn"))
    }
}

/// Does a failing serializer, or a failing state, stay the source of an error that names the field?
#[test]
fn rec13_a_serializer_failure_keeps_its_source_and_names_the_field() {
    let home = home();
    let schema = Schema::new(vec![
        Field::opaque::<(u32, String)>("parts").unwrap(),
        Field::new("bytes", FieldType::Bytes),
    ])
    .unwrap();
    let new = home.store.record("run", &schema).stream("s", ["parts", "bytes"]);
    let run = new.start().unwrap();
    let parts = (7u32, "seven".to_owned());
    let refused = run.observe_with(1, None, |name, to| match name {
        "parts" => to.serde(&parts),
        _ => to.serde(&Stubborn),
    });
    let refused = refused.unwrap_err();
    let place = "observe stream \"s\" iteration 1 field \"bytes\": it cannot be encoded";
    assert_eq!(refused.to_string(), place);
    assert!(refused.chain().contains("it is stubborn"), "{}", refused.chain());
    let refused = run.observe_with(1, None, |_, to| {
        Err(to.refuse(std::io::Error::other("the probe is unplugged")))
    });
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("field \"parts\""), "{refused}");
    assert_eq!(refused.source().unwrap().to_string(), "the probe is unplugged");
    assert!(refused.source().unwrap().is::<std::io::Error>());
    run.observe_with(1, None, |name, to| match name {
        "parts" => to.serde(&parts),
        _ => to.put(Value::Bytes(b"b")),
    })
    .unwrap();
    run.complete().unwrap();
    let stream = home.store.recording("run").unwrap().stream("s").unwrap();
    let read = stream.field("parts").unwrap().to_vec::<Opaque<(u32, String)>>().unwrap();
    assert_eq!(read[0].0, parts);
}

/// Is a second observation of an iteration left out by the streams that have it, and only by those?
#[test]
fn rec14_a_second_observation_changes_nothing_where_it_is_there() {
    let home = home();
    let run = recorder(&home.store);
    run.append(0, 3, &[Value::F64(7.0), Value::Missing]).unwrap();
    let state = State::at(3);
    run.observe(&state).unwrap();
    assert_eq!(*state.asked.borrow(), ["y"], "the first stream has it already");
    let first = run.observe(&State::at(6)).unwrap();
    let again = State::at(6);
    let ticket = run.observe(&again).unwrap();
    assert_eq!(*again.asked.borrow(), Vec::<String>::new());
    assert_eq!(ticket, first, "as sure as what is there");
    run.wait(&ticket, Level::Durable).unwrap();
    assert_eq!(iterations(&home.store, "all"), [3, 6]);
    assert_eq!(iterations(&home.store, "third"), [3, 6]);
    let stream = home.store.recording("run").unwrap().stream("all").unwrap();
    assert_eq!(stream.field("x").unwrap().to_vec::<f64>().unwrap(), [7.0, 6.0]);
}

/// Is a lower iteration rejected with both numbers, whether or not a stream is due, and forgotten?
#[test]
fn rec15_a_lower_iteration_is_rejected_with_both_numbers() {
    let home = home();
    let run = recorder(&home.store);
    run.observe(&State::at(9)).unwrap();
    for lower in [8, 6, -1] {
        let state = State::at(lower);
        let refused = run.observe(&state).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        let cause = format!("iteration {lower} lies before 9");
        assert!(refused.to_string().contains(&cause), "{refused}");
        assert_eq!(*state.asked.borrow(), Vec::<String>::new());
    }
    run.append(0, 20, &[Value::F64(1.0), Value::Missing]).unwrap();
    let refused = run.observe(&State::at(12)).unwrap_err();
    assert!(refused.to_string().contains("iteration 12 does not follow 20"), "{refused}");
    assert_eq!(iterations(&home.store, "all"), [9, 20]);
    assert_eq!(iterations(&home.store, "third"), [9], "none of its streams took it");
    run.observe(&State::at(21)).unwrap();
    assert_eq!(iterations(&home.store, "all"), [9, 20, 21]);
}

/// Are values taken from a state that nobody can clone, which is free again at once?
#[test]
fn rec16_values_are_borrowed_for_the_call_alone() {
    let home = home();
    let run = recorder(&home.store);
    let mut state = State::at(0);
    run.observe(&state).unwrap();
    // The state is changed in place, and moved, while its record is on its way.
    state.note = Some("another".to_owned());
    state.iteration = 1;
    run.observe(&state).unwrap();
    drop(state);
    run.barrier().unwrap();
    let stream = home.store.recording("run").unwrap().stream("all").unwrap();
    let notes = stream.field("note").unwrap().to_vec::<Option<String>>().unwrap();
    assert_eq!(notes, [Some("note 0".to_owned()), Some("another".to_owned())]);
}

/// Is the final state in every stream that lacks its iteration, once, aligned or not?
#[test]
fn rec18_the_final_state_is_written_once_to_every_stream() {
    for last in [6, 7] {
        let home = home();
        let new = draft(&home.store).stream("all", ["x", "note"]);
        let new = new.stream_every("third", ["y"], Every::iterations(3));
        let new = new.stream_every("never", ["x"], Every::when(|_, _| false));
        let run = new.stream_every("changed", ["y"], Every::change_of("note")).start().unwrap();
        for iteration in 0..=6 {
            run.observe(&State::at(iteration)).unwrap();
        }
        let state = State::at(last);
        run.complete_with(&state).unwrap();
        let third = if last == 6 { vec![0, 3, 6] } else { vec![0, 3, 6, 7] };
        assert_eq!(iterations(&home.store, "third"), third);
        assert_eq!(iterations(&home.store, "all"), (0..=last).collect::<Vec<_>>());
        assert_eq!(iterations(&home.store, "never"), [last]);
        assert_eq!(iterations(&home.store, "changed").last(), Some(&last));
    }
}

/// Do maps, arrays and a physical time come as they are given?
#[test]
fn rec9_maps_arrays_and_times_are_observed() {
    let home = home();
    let schema = Schema::new(vec![
        Field::new("grid", FieldType::F32).ragged(2),
        Field::new("x", FieldType::F64).nullable(),
    ])
    .unwrap();
    let axis = TimeAxis::named("step", "").time("t", "s");
    let new = home.store.record("run", &schema).time_axis(axis).stream("s", ["grid", "x"]);
    let run = new.start().unwrap();
    let grid = [1f32, 2.0, 3.0, 4.0, 5.0, f32::NAN];
    let put = |name: &str, to: &mut Cell<'_>| match name {
        "grid" => to.array(&[2, 3], &grid),
        _ => to.put(1.5),
    };
    run.observe_with(0, Some(0.25), put).unwrap();
    let array = NdArray::new(&[3, 2], grid.to_vec()).unwrap();
    let map = BTreeMap::from([("grid", Value::from(&array)), ("unknown", Value::Bool(true))]);
    run.observe_map(1, Some(0.5), &map).unwrap();
    let map: HashMap<String, Value<'_>> =
        map.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    run.observe_map(2, Some(0.75), &map).unwrap();
    run.complete().unwrap();
    let stream = home.store.recording("run").unwrap().stream("s").unwrap();
    let grids = stream.field("grid").unwrap().to_vec::<NdArray<f32>>().unwrap();
    assert_eq!(
        grids.iter().map(|g| g.axes().to_vec()).collect::<Vec<_>>(),
        [[2, 3], [3, 2], [3, 2]]
    );
    for read in &grids {
        let bits = |all: &[f32]| all.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(read.elements()), bits(&grid));
    }
    let x = stream.field("x").unwrap().to_vec::<Option<f64>>().unwrap();
    assert_eq!(x, [Some(1.5), None, None]);
}

/// Does a panic in a caller's code, or its use of the recorder, lose nothing and stop nothing?
#[test]
fn rec12_a_panic_of_a_caller_loses_nothing_accepted() {
    let home = home();
    let new = draft(&home.store).stream("all", ["x", "note"]);
    let predicate = |iteration, _| if iteration == 2 { panic!("a predicate") } else { true };
    let run = new.stream_every("when", ["y"], Every::when(predicate)).start().unwrap();
    run.observe(&State::at(0)).unwrap();
    let burst = |iteration, at: &'static str| {
        let observed = AssertUnwindSafe(|| {
            run.observe_with(iteration, None, |name, to| match name == at {
                true => panic!("a field"),
                false => State::at(iteration).field(name, to),
            })
        });
        assert!(catch_unwind(observed).is_err());
    };
    for at in ["x", "note", "y"] {
        burst(1, at);
    }
    burst(2, "none");
    assert_eq!(iterations(&home.store, "all"), [0]);
    let within = run.observe_with(1, None, |_, to| {
        run.append(1, 99, &[Value::F64(0.0)])?;
        to.put(0.0)
    });
    let refused = within.unwrap_err();
    assert!(refused.to_string().contains("from within an observation"), "{refused}");
    run.observe(&State::at(3)).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "all"), [0, 3]);
    assert_eq!(iterations(&home.store, "when"), [0, 3]);
}
