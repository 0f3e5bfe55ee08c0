//! Starting a recording.

use std::time::Duration;

use sealstone::ErrorKind;
use sealstone::recording::{
    Every, Field, FieldType, NewRecording, Parameter, RecordingStatus, Schema, StreamOptions,
    TimeAxis, Value,
};

use crate::support::{draft, home, iterations, schema};

const X: [Value<'_>; 1] = [Value::F64(1.5)];

/// Is a name that exists refused, running, complete or failed, and what has it left as it was?
#[test]
fn rec1_a_name_that_exists_is_refused_and_the_mutant_is_caught() {
    let home = home();
    let store = &home.store;
    let run = draft(store).stream("s", ["x"]).metadata("who", "first").start().unwrap();
    run.append(0, 7, &X).unwrap();
    let again = || draft(store).stream("t", ["y"]).start().map(drop).unwrap_err();
    let refused = again();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    let pid = std::process::id().to_string();
    assert!(refused.to_string().contains(&pid), "the holder is named: {refused}");
    assert_eq!(iterations(store, "s"), [7]);
    run.append(0, 8, &X).unwrap();
    drop(run);
    assert_eq!(again().kind(), ErrorKind::Exists, "it is running, and nobody writes it");
    assert_eq!(iterations(store, "s"), [7, 8]);
    let recording = store.recording("run").unwrap();
    assert_eq!(recording.status(), &RecordingStatus::Running);
    assert_eq!(recording.metadata(), [("who".to_owned(), "first".to_owned())]);
    assert_eq!(recording.stream_count(), 1);

    let done = store.record("done", &schema()).stream("s", ["x"]).start().unwrap();
    done.complete().unwrap();
    let again = store.record("done", &schema()).stream("s", ["x"]).start().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
    assert_eq!(store.recording("done").unwrap().status(), &RecordingStatus::Complete);
    let empty = store.record("failed", &schema()).stream("s", ["x"]).start().unwrap();
    empty.fail("on purpose").unwrap();
    let again = store.record("failed", &schema()).stream("s", ["x"]).start_bulk().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);

    #[cfg(feature = "sim")]
    {
        use sealstone::protection::{Protection, switch_off};
        let _first = store.record("two", &schema()).stream("s", ["x"]).start().unwrap();
        let _off = switch_off(Protection::RecordingClaim);
        let robbed = store.record("two", &schema()).stream("t", ["x"]).start();
        assert!(robbed.is_ok(), "without the claim, what is being written gives way");
    }
}

/// What a draft is refused with; nothing may have been written.
fn refused(store: &sealstone::Store, new: NewRecording) -> String {
    let before = store.stats().unwrap().commit;
    let error = new.start().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(store.stats().unwrap().commit, before, "something was written: {error}");
    error.to_string()
}

/// Is every wrong description refused before anything is written, each with a message of its own?
#[test]
fn rec2_rec3_each_error_is_found_before_anything_is_written() {
    let home = home();
    let store = &home.store;
    let new = || draft(store).stream("s", ["x"]);
    let as_one = |options: StreamOptions| draft(store).stream_as(options);
    let options = || StreamOptions::new("s", ["x"]);
    let name = |name| store.record(name, &schema()).stream("s", ["x"]);
    let axis = |axis| new().time_axis(axis);
    let named = || TimeAxis::named("step", "");
    let cases: Vec<(NewRecording, &str)> = vec![
        (draft(store), "\"run\": it has no stream"),
        (new().stream("s", ["y"]), "stream \"s\": the name is used twice"),
        (new().stream("t", ["x", "x"]), "stream \"t\": field \"x\" is listed twice"),
        (new().stream("t", ["z"]), "there is no field \"z\""),
        (new().stream("t", [""]), "there is no field \"\""),
        (new().stream("t", Vec::<String>::new()), "it has no field"),
        (name(""), "recording \"\": its name is blank"),
        (name(" \t"), "recording \" \\t\": its name is blank"),
        (name("a\u{7}b"), "its name has a control character"),
        (name(&"n".repeat(1025)), "its name has more than 1024 bytes"),
        (new().stream("", ["x"]), "stream \"\": its name is blank"),
        (new().metadata(" ", "text"), "the metadata key \" \" is blank"),
        (new().metadata("k", "1").metadata("k", "2"), "the metadata \"k\" is given twice"),
        (new().parameter("seed", u64::MAX), "the parameter \"seed\": "),
        (new().parameters(&Seed { seed: u64::MAX - 1 }), "\"seed\" is 18446744073709551614, which"),
        (new().parameter(" ", 1.0), "parameter \" \": its name is blank"),
        (new().parameter("dt", 1.0).parameter("dt", 2.0), "the parameter \"dt\" is given twice"),
        (new().parameters(&7), "parameters are not typed values under names"),
        (axis(TimeAxis::named("", "")), "the name of its iterations is blank"),
        (axis(named().time("", "s")), "the unit \"s\" is of a physical time without a name"),
        (axis(named().time(" ", "")), "the name of its physical time is blank"),
        (axis(named().time("t", " ")), "the unit of \"t\" is blank"),
        (new().chunk_bytes(None), "its limits are missing: give chunk_bytes or chunk_records"),
        (new().chunk_bytes(0), "chunk_bytes is zero"),
        (new().chunk_records(0), "chunk_records is zero"),
        (new().chunk_span(1.0), "chunk_span is of physical time, and the records have none"),
        (axis(named().time("t", "s")).chunk_span(0.0), "chunk_span 0 is not above zero"),
        (as_one(options().chunk_bytes(0)), "stream \"s\": chunk_bytes is zero"),
        (as_one(options().chunk_records(0)), "stream \"s\": chunk_records is zero"),
        (as_one(options().chunk_bytes(None)), "stream \"s\": its limits are missing"),
        (as_one(options().every(Every::iterations(0))), "stream \"s\": its interval is zero"),
        (as_one(options().every(Every::wall(Duration::ZERO))), "its interval is zero"),
        (as_one(options().every(Every::time(1.0))), "it goes by physical time, and the records"),
        (as_one(options().every(Every::change_of("z"))), "it watches the field \"z\""),
    ];
    for (new, expected) in cases {
        let text = refused(store, new);
        assert!(text.contains(expected), "{text:?} instead of {expected:?}");
    }
    for interval in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let new = axis(named().time("t", "s")).stream_every("e", ["y"], Every::time(interval));
        assert!(refused(store, new).contains("is not above zero and finite"));
    }
    let label = |label: &str| Field::new("x", FieldType::F64).label(label, "m");
    for (fields, expected) in [
        (vec![label("")], "a label is blank"),
        (vec![label(" ")], "a label is blank"),
        (vec![Field::new("x", FieldType::F64); 2], "field \"x\": the name is used twice"),
        (vec![Field::new("", FieldType::F64)], "its name is blank"),
    ] {
        let text = Schema::new(fields).unwrap_err().to_string();
        assert!(text.contains(expected), "{text:?} instead of {expected:?}");
    }
    assert_eq!(store.recordings(9).unwrap().len(), 0);
    new().start().unwrap();
}

/// Do limits of a stream take the place of the recording's, and those the rest?
#[test]
fn rec4_limits_of_a_stream_override_those_of_the_recording() {
    let home = home();
    let of = |name: &str| StreamOptions::new(name, ["x"]);
    let axis = TimeAxis::named("step", "").time("t", "s");
    let new = draft(&home.store).chunk_records(4).time_axis(axis).stream("wide", ["x"]);
    let new = new.stream_as(of("short").chunk_records(2));
    let new = new.stream_as(of("bytes").chunk_records(None).chunk_bytes(1));
    let new = new.stream_as(of("span").chunk_records(None).chunk_span(3.0));
    let run = new.start().unwrap();
    for iteration in 0..12 {
        run.observe_with(iteration, Some(iteration as f64), |_, to| to.put(1.0)).unwrap();
    }
    run.complete().unwrap();
    let recording = home.store.recording("run").unwrap();
    let chunks = |name| recording.stream(name).unwrap().chunk_count();
    assert_eq!(["wide", "short", "bytes", "span"].map(chunks), [3, 6, 12, 4]);
}

/// Do records and schema have schema order, whatever the order in which a caller lists fields?
#[test]
fn rec5_the_order_of_listed_fields_does_not_matter() {
    let home = home();
    let new = draft(&home.store).stream("one", ["x", "y", "note"]);
    let run = new.stream("other", ["note", "y", "x"]).start().unwrap();
    let values = [Value::F64(1.0), Value::F64(2.0), Value::String("three")];
    run.append(0, 0, &values).unwrap();
    run.append(1, 0, &values).unwrap();
    run.observe_with(1, None, |name, to| match name {
        "note" => to.put("three"),
        name => to.put(if name == "x" { 1.0 } else { 2.0 }),
    })
    .unwrap();
    run.complete().unwrap();
    let recording = home.store.recording("run").unwrap();
    for name in ["one", "other"] {
        let stream = recording.stream(name).unwrap();
        let names: Vec<_> = stream.schema().fields().iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["x", "y", "note"]);
        assert_eq!(stream.field("x").unwrap().to_vec::<f64>().unwrap(), [1.0, 1.0]);
        assert_eq!(stream.field("y").unwrap().to_vec::<f64>().unwrap(), [2.0, 2.0]);
        let notes = stream.field("note").unwrap().to_vec::<Option<String>>().unwrap();
        assert_eq!(notes, [Some("three".to_owned()), Some("three".to_owned())]);
    }
}

/// A point of a sweep.
#[derive(serde::Serialize)]
struct Task {
    task_index: u32,
    dt: f64,
    solver: Solver,
    seed: u64,
    tags: Vec<&'static str>,
    skipped: Option<bool>,
}

#[derive(serde::Serialize)]
struct Solver {
    name: &'static str,
    adaptive: bool,
}

/// Do the parameters of a task become typed, findable ones, and does its index replace another?
#[test]
fn rec8_parameters_of_a_task_are_typed_and_its_index_replaces_an_entry() {
    let home = home();
    let store = &home.store;
    let solver = Solver { name: "rk4", adaptive: true };
    let (tags, skipped) = (vec!["a", "b"], None);
    let task = Task { task_index: 7, dt: 0.01, solver, seed: 1 << 63, tags, skipped };
    let new =
        draft(store).stream("s", ["x"]).parameter("task_index", 1).metadata("task_index", "1");
    new.parameters(&task).parameter("grid", 64).metadata("who", "me").start().unwrap();
    let recording = store.recording("run").unwrap();
    let expected = [
        ("dt", Parameter::F64(0.01)),
        ("grid", Parameter::I64(64)),
        ("seed", Parameter::F64(2f64.powi(63))),
        ("solver.adaptive", Parameter::Bool(true)),
        ("solver.name", Parameter::from("rk4")),
        ("tags.0", Parameter::from("a")),
        ("tags.1", Parameter::from("b")),
        ("task_index", Parameter::I64(7)),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(recording.parameters().unwrap(), expected);
    assert_eq!(recording.metadata(), [("who".to_owned(), "me".to_owned())]);
    let map = std::collections::BTreeMap::from([("dt", 0.5)]);
    let other = store.record("other", &schema()).stream("s", ["x"]).parameters(&map);
    other.start().unwrap();
    let found = |filter| {
        let found = store.catalogue().filter(filter).unwrap();
        found.iter().map(|r| r.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("dt < 0.1 and solver.name = 'rk4'"), ["run"]);
    assert_eq!(found("dt > 0"), ["other", "run"]);
    assert_eq!(found("task_index = 1"), Vec::<String>::new());
}

#[derive(serde::Serialize)]
struct Seed {
    seed: u64,
}

/// Are numbers of 64 bits and of this machine's width taken where they fit, and is an empty key told
/// from none?
#[test]
fn rec8_whole_numbers_are_taken_exactly_and_an_empty_key_keeps_its_dot() {
    use std::collections::BTreeMap;
    let home = home();
    let inner = |value: u64| BTreeMap::from([("b", value)]);
    let nested = BTreeMap::from([("", inner(1)), ("a", inner(2))]);
    let new = draft(&home.store).stream("s", ["x"]).parameters(&nested).parameter("b", 3u64);
    new.parameter("n", 4usize).parameter("big", 3u64 << 62).start().unwrap();
    let found = home.store.recording("run").unwrap().parameters().unwrap();
    let expected = [
        (".b", Parameter::I64(1)),
        ("a.b", Parameter::I64(2)),
        ("b", Parameter::I64(3)),
        ("big", Parameter::F64(3.0 * 2f64.powi(62))),
        ("n", Parameter::I64(4)),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

/// Is a schema that no footer should hold refused before anything is written?
#[test]
fn rec2_a_schema_above_a_mebibyte_is_refused() {
    let home = home();
    let of = |len: usize| {
        let field = Field::new("x", FieldType::F64).describe("d".repeat(len));
        home.store.record("run", &Schema::new(vec![field]).unwrap()).stream("s", ["x"])
    };
    let refused = of(1 << 20).start().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{refused}");
    assert_eq!(of(1 << 20).start_bulk().unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(home.store.recordings(9).unwrap().len(), 0);
    let run = of((1 << 20) - 200).start().unwrap();
    run.append(0, 0, &X).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&home.store, "s"), [0]);
}

/// Are names and units of both axes said once, with or without a physical time?
#[test]
fn rec9_an_iteration_always_a_physical_time_if_wanted() {
    let home = home();
    let store = &home.store;
    let axis = TimeAxis::named("step", "steps").time("t", "s");
    let run = draft(store).stream("s", ["x"]).time_axis(axis.clone()).start().unwrap();
    let put = |_: &str, to: &mut sealstone::recording::Cell<'_>| to.put(0.0);
    run.observe_with(-5, Some(-0.5), put).unwrap();
    run.observe_with(7, Some(-0.5), put).unwrap();
    for (time, cause) in [
        (None, "it has no time"),
        (Some(f64::NAN), "is not finite"),
        (Some(-1.0), "time -1 does not follow -0.5"),
    ] {
        let refused = run.observe_with(8, time, put).unwrap_err();
        assert!(refused.to_string().contains(cause), "{refused}");
        assert!(refused.to_string().contains("stream \"s\" iteration 8"), "{refused}");
    }
    run.complete().unwrap();
    let recording = store.recording("run").unwrap();
    assert_eq!(recording.time_axis(), &axis);
    assert_eq!(axis.iteration_name(), "step");
    assert_eq!(axis.iteration_unit(), "steps");
    assert_eq!((axis.time_name(), axis.time_unit()), (Some("t"), Some("s")));
    assert!(recording.schema().is_timed());
    let untimed = store.record("untimed", &schema()).stream("s", ["x"]).start().unwrap();
    let refused = untimed.observe_with(0, Some(1.0), put).unwrap_err();
    assert!(refused.to_string().contains("not timed"), "{refused}");
    untimed.observe_with(0, None, put).unwrap();
    let recording = store.recording("untimed").unwrap();
    assert_eq!(recording.time_axis(), &TimeAxis::default());
    assert!(!recording.schema().is_timed());
}

/// Does a recording that was started, dropped and never written give way, and one with a record not?
#[test]
fn rec7_an_abandoned_start_gives_way() {
    let home = home();
    let store = &home.store;
    let first = draft(store).stream("old", ["x"]).parameter("dt", 1.0).start().unwrap();
    let held = draft(store).stream("s", ["x"]).start().map(drop).unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Exists, "its writer lives");
    drop(first);
    let run = draft(store).stream("s", ["x"]).start().unwrap();
    let recording = store.recording("run").unwrap();
    assert_eq!(recording.stream_count(), 1);
    assert_eq!(recording.parameters().unwrap(), []);
    assert_eq!(store.recordings(9).unwrap().len(), 1);
    assert_eq!(store.claims(99).unwrap().len(), 1);
    run.append(0, 1, &X).unwrap();
    drop(run);
    assert_eq!(store.claims(99).unwrap().len(), 0, "dropped, it holds nothing");
    let refused = draft(store).stream("s", ["x"]).start().map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists, "it has a record");
    assert_eq!(iterations(store, "s"), [1]);
    let noted = store.record("noted", &schema()).stream("s", ["x"]).start().unwrap();
    noted.note("about to begin").unwrap();
    drop(noted);
    let refused =
        store.record("noted", &schema()).stream("s", ["x"]).start().map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists, "it has an event");
}
