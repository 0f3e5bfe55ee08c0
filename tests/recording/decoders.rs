//! Decoders: records as values of the caller's own type.

use std::error::Error as StdError;
use std::num::TryFromIntError;

use sealstone::recording::{Decoders, Field, FieldType, Schema, Value};
use sealstone::{Error, ErrorKind, Store};

#[derive(Debug, Default, Clone, PartialEq)]
struct State {
    count: u8,
    speed: f64,
    note: Option<String>,
}

fn schema() -> Schema {
    let fields = vec![
        Field::new("count", FieldType::I64),
        Field::new("speed", FieldType::F64),
        Field::new("note", FieldType::String).nullable(),
    ];
    Schema::new(fields).unwrap()
}

fn without_note() -> Decoders<State> {
    let count = |state: &mut State, value: Value<'_>| -> Result<(), TryFromIntError> {
        if let Value::I64(count) = value {
            state.count = u8::try_from(count)?;
        }
        Ok(())
    };
    let decoders = Decoders::new().field_with("count", count).unwrap();
    decoders.field("speed", |state: &mut State, speed: f64| state.speed = speed).unwrap()
}

fn decoders() -> Decoders<State> {
    let note = |state: &mut State, note: Option<String>| state.note = note;
    without_note().field("note", note).unwrap()
}

/// A store with a recording `run`, whose stream `state` has `records` records, some sealed.
fn store(records: i64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("run.stone")).unwrap();
    let new = store.record("run", &schema()).stream("state", ["count", "speed", "note"]);
    let recorder = new.chunk_bytes(200).start().unwrap();
    for n in 0..records {
        let note = if n % 2 == 0 { Value::String("even") } else { Value::Missing };
        recorder.append(0, n * 10, &[Value::I64(n), Value::F64(n as f64), note]).unwrap();
    }
    recorder.barrier().unwrap();
    drop(recorder);
    (dir, store)
}

/// Is an empty key refused, and one that is registered already?
#[test]
fn rec47_an_empty_or_repeated_key_is_refused() {
    for name in ["", "  "] {
        let refused = Decoders::<State>::new().field(name, |_, _: f64| {}).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("empty"), "{refused}");
    }
    let refused = decoders().field("speed", |_, _: f64| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("field \"speed\": it has a decoder already"), "{refused}");
}

/// Do decoders make each record a state, sealed or not, and may they know more fields than there are?
#[test]
fn rec47_records_are_decoded_and_extra_keys_are_allowed() {
    let (_dir, store) = store(50);
    let stream = store.recording("run").unwrap().stream_for("state", &decoders()).unwrap();
    assert!(stream.chunk_count() > 1 && stream.sealed_record_count() < 50);
    let decoders = decoders().field("elsewhere", |_, _: bool| panic!("no such field")).unwrap();
    let all = stream.states(&decoders, State::default).unwrap();
    let all = all.collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(all.len(), 50);
    for (n, decoded) in all.iter().enumerate() {
        assert_eq!(decoded.iteration, 10 * n as i64);
        let note = (n % 2 == 0).then(|| "even".to_owned());
        assert_eq!(decoded.state, State { count: n as u8, speed: n as f64, note });
    }
    let some = stream.states(&decoders, State::default).unwrap().iterations(95..140).unwrap();
    let some: Vec<u8> = some.map(|decoded| decoded.unwrap().state.count).collect();
    assert_eq!(some, [10, 11, 12, 13]);
}

/// Shows what was found of a field without a decoder; the stream's files are gone, so that whoever
/// opens one first finds that instead.
fn missing_decoder() -> Result<(), Error> {
    let (dir, writer) = store(50);
    writer.close().unwrap();
    let store = Store::open_read_only(dir.path().join("run.stone")).unwrap();
    let recording = store.recording("run").unwrap();
    std::fs::remove_dir_all(dir.path().join("run.stone/journal")).unwrap();
    std::fs::remove_dir_all(dir.path().join("run.stone/sealed")).unwrap();
    recording.stream_for("state", &without_note()).map(drop)
}

/// Is a field without a decoder found before any file is opened?
#[test]
fn rec47_a_missing_decoder_is_found_before_any_file_is_opened() {
    let refused = missing_decoder().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("no decoder is registered for \"note\""), "{refused}");
    // And by whoever has opened the stream already, before a record is read.
    let (_dir, store) = store(5);
    let stream = store.recording("run").unwrap().stream("state").unwrap();
    assert!(stream.states(&without_note(), State::default).is_err());
    assert!(without_note().check(&schema()).is_err());
    decoders().check(&schema()).unwrap();
}

/// Would it be noticed if nobody looked whether all decoders are there?
#[cfg(feature = "sim")]
#[test]
fn rec47_without_the_check_a_missing_decoder_is_found_too_late() {
    use sealstone::protection::{Protection, switch_off};
    let _off = switch_off(Protection::DecodersComplete);
    let found = missing_decoder();
    assert!(!found.is_err_and(|e| e.kind() == ErrorKind::Invalid));
}

/// Does what a decoder refuses keep its source, and name record and field?
#[test]
fn rec47_a_conversion_failure_keeps_its_source_and_names_record_and_field() {
    let (_dir, store) = store(300);
    let stream = store.recording("run").unwrap().stream("state").unwrap();
    let decoders = decoders();
    let mut states = stream.states(&decoders, State::default).unwrap();
    let good: Vec<_> = states.by_ref().take(256).map(|decoded| decoded.unwrap()).collect();
    assert_eq!(good[255].state.count, 255);
    let refused = states.next().unwrap().unwrap_err();
    assert_eq!(refused.place(), "stream \"state\" iteration 2560 field \"count\"");
    assert!(refused.source().is_some_and(|e| e.is::<TryFromIntError>()), "{refused:?}");
    assert!(states.next().is_none(), "the first error ends it");
    let wrong = without_note().field("note", |_: &mut State, _: bool| {}).unwrap();
    let refused = stream.states(&wrong, State::default).unwrap().next().unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    assert!(refused.to_string().contains("field \"note\": it is string, not bool"), "{refused}");
}
