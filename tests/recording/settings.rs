//! REC33, setting by setting: what a run that goes on must have as before, and what it may change.

use std::time::Duration;

use sealstone::engine::Store;
use sealstone::manifest::{Reading, StreamRow};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Every, Field, FieldType, NewRecording, Overflow, ResumeFrom, Schema, StreamOptions, TimeAxis,
    Value,
};
use sealstone::{ErrorKind, Result};

use crate::resuming::{draft, iterations, observe, on, root, sim, whole};

/// Everything that a recording means, to be changed one by one.
struct Settings {
    axis: TimeAxis,
    fields: Vec<Field>,
    streams: Vec<(&'static str, Vec<&'static str>, Every)>,
}

mod here {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Point(pub u32, pub u32);
}

mod elsewhere {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Point(pub u32, pub u32);
}

impl Settings {
    fn first() -> Self {
        let fields = vec![
            Field::new("x", FieldType::F64).unit("m"),
            Field::new("a", FieldType::F64).array([3]),
            Field::opaque::<here::Point>("o").unwrap(),
            Field::new("m", FieldType::I64).nullable(),
            Field::new("name", FieldType::String),
        ];
        let streams = vec![
            ("all", vec!["x", "a", "o"], Every::observation()),
            ("few", vec!["m"], Every::iterations(3)),
            ("time", vec!["m"], Every::time(0.5)),
            ("wall", vec!["m"], Every::wall(Duration::from_secs(1))),
            ("change", vec!["m"], Every::change_of("name")),
        ];
        Self { axis: TimeAxis::named("step", "1").time("t", "s"), fields, streams }
    }

    fn draft(self, store: &Store) -> NewRecording {
        let schema = Schema::new(self.fields).unwrap().timed();
        let draft = store.record("run", &schema).time_axis(self.axis);
        self.streams
            .into_iter()
            .fold(draft, |draft, (name, fields, every)| draft.stream_every(name, fields, every))
    }
}

fn resume(store: &Store, change: fn(&mut Settings)) -> Result<()> {
    let mut settings = Settings::first();
    change(&mut settings);
    let draft = settings.draft(store);
    let planned = store.resume("run").from(ResumeFrom::Tail).expect(&draft).plan().map(drop);
    let started = store.resume("run").from(ResumeFrom::Tail).expect(&draft).start().map(drop);
    assert_eq!(planned.is_err(), started.is_err());
    started
}

type Change = fn(&mut Settings);

/// Each change of a meaning, and what is said of it.
const CHANGES: &[(&str, Change)] = &[
    ("the name of iterations is \"step\", not \"n\"", |s| {
        s.axis = TimeAxis::named("n", "1").time("t", "s");
    }),
    ("the unit of iterations is \"1\", not nothing", |s| {
        s.axis = TimeAxis::named("step", "").time("t", "s");
    }),
    ("the name of physical time is \"t\", not \"u\"", |s| {
        s.axis = TimeAxis::named("step", "1").time("u", "s");
    }),
    ("the unit of physical time is \"s\", not \"ms\"", |s| {
        s.axis = TimeAxis::named("step", "1").time("t", "ms");
    }),
    ("field \"x\" is f64 in \"m\", not f64 in \"km\"", |s| {
        s.fields[0] = Field::new("x", FieldType::F64).unit("km");
    }),
    ("field \"x\" is f64 in \"m\", not f64", |s| s.fields[0] = Field::new("x", FieldType::F64)),
    ("field \"m\" is i64 that may be missing, not i64", |s| {
        s.fields[3] = Field::new("m", FieldType::I64);
    }),
    ("field \"a\" is f64[3], not f64[4]", |s| {
        s.fields[1] = Field::new("a", FieldType::F64).array([4]);
    }),
    ("field \"a\" is f64[3], not f64[_]", |s| {
        s.fields[1] = Field::new("a", FieldType::F64).ragged(1);
    }),
    ("field \"o\" is ", |s| s.fields[2] = Field::opaque::<(u32, u32)>("o").unwrap()),
    ("its fields are in the order \"x\", \"a\", \"o\", \"m\", \"name\"", |s| s.fields.swap(3, 4)),
    ("it has no field \"more\"", |s| s.fields.push(Field::new("more", FieldType::Bool))),
    ("its streams are in the order \"all\", \"few\", \"time\"", |s| s.streams.swap(0, 1)),
    ("stream \"all\": field \"a\" is not asked for", |s| s.streams[0].1 = vec!["x", "o"]),
    ("stream \"few\": it records every 3 iterations, not every 4 iterations", |s| {
        s.streams[1].2 = Every::iterations(4);
    }),
    ("it records every 0.5 of physical time, not every 0.25 of physical time", |s| {
        s.streams[2].2 = Every::time(0.25);
    }),
    ("it records every 1s of wall-clock time, not every 2s of wall-clock time", |s| {
        s.streams[3].2 = Every::wall(Duration::from_secs(2));
    }),
    ("it records changes of \"name\", not changes of \"x\"", |s| {
        s.streams[4].2 = Every::change_of("x");
    }),
    ("it records changes of \"name\", not every observation", |s| {
        s.streams[4].2 = Every::observation();
    }),
];

/// Is each of them named, with nothing modified, and is a type that only moved no difference?
#[test]
fn rec33_each_difference_of_meaning_is_named() {
    let disk = sim(133);
    let store = on(&disk).create(root()).unwrap();
    drop(Settings::first().draft(&store).start().unwrap());
    let rows = || store.snapshot().unwrap().list::<StreamRow>(.., 99).unwrap();
    let before = rows();
    for (expected, change) in CHANGES {
        let refused = resume(&store, *change).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(refused.to_string().contains(expected), "{expected}: {refused}");
        assert_eq!(rows(), before);
    }
    resume(&store, |_| {}).unwrap();
    resume(&store, |s| s.fields[2] = Field::opaque::<elsewhere::Point>("o").unwrap()).unwrap();
}

/// Would it be noticed if settings were not compared? (mutant)
#[test]
fn rec33_without_the_comparison_other_settings_go_on() {
    let disk = sim(233);
    let store = on(&disk).create(root()).unwrap();
    drop(Settings::first().draft(&store).start().unwrap());
    let _off = switch_off(Protection::SettingsCompared);
    resume(&store, |s| s.streams[1].2 = Every::iterations(4)).unwrap();
}

/// May chunk limits, what happens when the queue is full, and metadata change, and do they count then?
#[test]
fn rec33_tunables_may_change_and_count() {
    let disk = sim(333);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").metadata("kept", "1").metadata("note", "old").start();
    let recorder = recorder.unwrap();
    observe(&recorder, 0, 10);
    drop(recorder);
    let tuned = |overflow| {
        let all = StreamOptions::new("all", ["x", "name"]).overflow(overflow).chunk_records(7u64);
        let few = StreamOptions::new("few", ["n"]).every(Every::iterations(3));
        let draft = store.record("run", &crate::resuming::schema()).stream_as(all).stream_as(few);
        draft.metadata("note", "another machine").metadata("more", "2")
    };
    let resume = |overflow| {
        let resume = store.resume("run").from(ResumeFrom::Tail);
        resume.expect(&tuned(overflow)).start().unwrap().recorder
    };
    let said = |key: &str| {
        let recording = store.recording("run").unwrap();
        let found = recording.metadata().iter().filter(|(of, _)| of == key);
        found.map(|(_, text)| text.clone()).collect::<Vec<_>>()
    };
    let recorder = resume(Overflow::Ring { records: 2, bytes: 1 << 20 });
    assert_eq!([said("kept"), said("note"), said("more")], [["1"], ["another machine"], ["2"]]);
    recorder.append(0, 10, &[Value::F64(1.0), Value::String("kept in memory")]).unwrap();
    recorder.barrier().unwrap();
    assert_eq!(iterations(&store, "run"), whole(10), "a ring records nothing by itself");
    drop(recorder);
    // As it is now, also for one who expects nothing.
    let recorder = store.resume("run").from(ResumeFrom::Tail).start().unwrap().recorder;
    recorder.append(0, 10, &[Value::F64(1.0), Value::String("kept in memory")]).unwrap();
    recorder.barrier().unwrap();
    assert_eq!(iterations(&store, "run"), whole(10));
    drop(recorder);
    let recorder = resume(Overflow::Block);
    observe(&recorder, 10, 60);
    recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(60));
    let chunks = store.recording("run").unwrap().stream("all").unwrap().chunk_count();
    assert!((8..=14).contains(&chunks), "seven records each: {chunks}");
    let commits = || store.snapshot().unwrap().counters().unwrap().commit_seq.0;
    let before = commits();
    drop(
        store.resume("run").from(ResumeFrom::Tail).reopen().expect(&tuned(Overflow::Block)).plan(),
    );
    assert_eq!(commits(), before, "a plan writes nothing");
}
