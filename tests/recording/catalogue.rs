//! The catalogue: recordings found by what they were made with.

use serde::Serialize;

use sealstone::recording::Parameter;
use sealstone::{ErrorKind, Store};

use crate::support::{draft, home, schema};

#[derive(Serialize)]
struct Task {
    dt: f64,
    solver: &'static str,
    steps: i64,
    adaptive: bool,
    task_index: u64,
}

/// A sweep of 200 recordings; of every tenth one the draft says another `task_index` than the task.
fn sweep(store: &Store) {
    for n in 0..200u32 {
        let solver = if n.is_multiple_of(2) { "rk4" } else { "euler" };
        let (dt, steps) = (f64::from(n) / 1000.0, i64::from(n) * 10);
        let adaptive = n.is_multiple_of(3);
        let task = Task { dt, solver, steps, adaptive, task_index: u64::from(n) };
        let new = store.record(&format!("sweep/{n:03}"), &schema()).stream("s", ["x"]);
        let recorder = match n.is_multiple_of(10) {
            true => new.parameter("task_index", -1).parameters(&task).start().unwrap(),
            false => new.parameters(&task).start().unwrap(),
        };
        match n {
            0..100 => recorder.complete().unwrap(),
            100 => recorder.fail("it diverged").unwrap(),
            _ => drop(recorder),
        }
    }
}

fn names(store: &Store, filter: &str) -> Vec<String> {
    let found = store.catalogue().filter(filter).unwrap();
    found.iter().map(|recording| recording.name().to_owned()).collect()
}

/// Are parameters of a task found by value, with the index where the filter allows it, and do they
/// go with their recording?
#[test]
fn rec8_parameters_are_found_by_value_and_go_with_their_recording() {
    let home = home();
    let store = &home.store;
    sweep(store);
    assert_eq!(names(store, "dt < 0.003 and solver = 'rk4'"), ["sweep/000", "sweep/002"]);
    assert_eq!(names(store, "steps >= 1970"), ["sweep/197", "sweep/198", "sweep/199"]);
    assert_eq!(names(store, "steps >= 1970.5 and adaptive = true"), ["sweep/198"]);
    assert_eq!(names(store, "task_index = 20 or task_index = 21"), ["sweep/020", "sweep/021"]);
    assert_eq!(names(store, "task_index = -1"), Vec::<String>::new());
    assert_eq!(
        names(store, "name like 'sweep/1_1' and not solver = 'rk4' and dt < 0.12"),
        ["sweep/101", "sweep/111"]
    );
    assert_eq!(names(store, "status = 'failed'"), ["sweep/100"]);
    assert_eq!(names(store, "status = 'complete' and created > '2020-01-01'").len(), 100);
    assert_eq!(names(store, "status != 'complete' or created < '2020-01-01'").len(), 100);
    // The index proposes few.
    for (filter, at_most) in [
        ("dt < 0.003", 4),
        ("solver = 'rk4' and dt <= 0.003", 100),
        ("dt < 0.001 or steps > 1980", 4),
        ("name = 'sweep/007'", 1),
        ("name like 'sweep/19%'", 10),
        ("task_index = 7 and not solver = 'rk4'", 1),
    ] {
        let selected = store.catalogue().select(filter).unwrap();
        assert!(selected.looked_at <= at_most, "{filter}: {}", selected.looked_at);
        assert!(!selected.recordings.is_empty(), "{filter}");
    }
    assert_eq!(store.catalogue().select("not dt < 0.1").unwrap().looked_at, 200);
    let recording = store.recording("sweep/020").unwrap();
    let parameters = recording.parameters().unwrap();
    assert!(parameters.contains(&("task_index".to_owned(), Parameter::I64(20))), "{parameters:?}");
    // They go with it, and another recording of the name has its own.
    store.retire_recording("sweep/000", "test").unwrap();
    assert_eq!(names(store, "dt < 0.003 and solver = 'rk4'"), ["sweep/002"]);
    assert_eq!(store.catalogue().select("dt < 0.0005").unwrap().looked_at, 0);
    let again = store.record("sweep/000", &schema()).stream("s", ["x"]).parameter("dt", 7);
    drop(again.start().unwrap());
    assert_eq!(names(store, "dt = 7.0"), ["sweep/000"]);
    let refused = store.catalogue().filter("dt <> 3 and").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.place().ends_with("at character 12"), "{refused}");
}

/// Are parameters where they were in a copy, and after the store was opened again?
#[test]
fn rec8_parameters_are_there_when_the_store_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let store = Store::create(&path).unwrap();
    let text = "x".repeat(1000);
    drop(draft(&store).stream("s", ["x"]).parameter("mesh", text.as_str()).start().unwrap());
    store.close().unwrap();
    let store = Store::open_read_only(&path).unwrap();
    assert_eq!(names(&store, &format!("mesh = '{text}'")), ["run"]);
    assert_eq!(names(&store, &format!("mesh < '{text}y'")), ["run"]);
    assert!(names(&store, &format!("mesh > '{text}'")).is_empty());
    assert!(names(&store, &format!("mesh = '{text}y'")).is_empty(), "the index has the beginning");
}
