//! Could a value change, or be lost, on the road from a file into a store and back?
#![cfg(feature = "interop")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sealstone::interop::Format;
use sealstone::manifest::{Reading, ReceiptRow};
use sealstone::recording::{
    ExportOptions, Field, FieldType, ImportOptions, Level, NewRecord, RecordingStatus, Schema,
    Value,
};
use sealstone::{ErrorKind, Limits, Store};

const WEATHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nyc-weather-2013.csv");

struct Home {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

/// A store that writes no snapshots of its rows, so that what is live is what recordings hold.
fn without_snapshots(path: &Path) -> Store {
    let mut limits = Limits::default();
    limits.snapshot_chain_max = 0;
    Store::options().limits(limits).create(path).unwrap()
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    Home { _dir: dir, path }
}

fn go(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn csv(name: &str) -> ImportOptions {
    ImportOptions::new(name, Format::Csv, "input.csv")
}

fn export(store: &Store, name: &str, format: Format) -> Vec<u8> {
    let recording = store.recording(name).unwrap();
    let (_, bytes) = recording.export(Vec::new(), &ExportOptions::new(format), &mut go).unwrap();
    bytes
}

/// Asserts that two CSV files hold the same values: as numbers where both are, as text elsewhere.
fn assert_same_values(a: &[u8], b: &[u8]) -> (u64, u64) {
    let mut a = csv::Reader::from_reader(a);
    let mut b = csv::Reader::from_reader(b);
    assert_eq!(a.headers().unwrap(), b.headers().unwrap());
    let (mut values, mut missing) = (0, 0);
    let mut theirs = b.records();
    for (row, record) in a.records().enumerate() {
        let (mine, theirs) = (record.unwrap(), theirs.next().expect("fewer rows").unwrap());
        assert_eq!(mine.len(), theirs.len(), "row {row}");
        for (x, y) in mine.iter().zip(theirs.iter()) {
            let same = match (x.parse::<f64>(), y.parse::<f64>()) {
                (Ok(x), Ok(y)) => x == y || x.is_nan() && y.is_nan(),
                _ => x == y,
            };
            assert!(same, "row {row}: {x:?} became {y:?}");
            values += 1;
            missing += u64::from(x == "NA");
        }
    }
    assert!(theirs.next().is_none(), "more rows");
    (values, missing)
}

/// Does real weather come back value for value, gaps and row order included, typed and by field?
#[test]
fn the_weather_comes_back_value_for_value() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let input = std::fs::read(WEATHER).unwrap();
    let options = csv("weather").stream_by("origin");
    let imported = store.import(&input[..], &options, &mut go).unwrap();
    assert_eq!(imported.rows, 26_115);
    let streams: Vec<_> = imported.streams.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(streams, ["EWR", "JFK", "LGA"]);
    store.close().unwrap();

    let store = Store::open_read_only(&home.path).unwrap();
    let output = export(&store, "weather", Format::Csv);
    let (values, missing) = assert_same_values(&input, &output);
    assert_eq!((values, missing), (imported.values, imported.missing));
    assert_eq!(missing, 1 + 1 + 1 + 460 + 4 + 20_778 + 2_729);
    // The same numbers, and all but one of them in the same digits.
    let respelled = String::from_utf8(input).unwrap().replace(",1e3,", ",1000,");
    assert!(respelled.as_bytes() == output, "the bytes differ although the values do not");

    let recording = store.recording("weather").unwrap();
    assert_eq!(recording.status(), &RecordingStatus::Complete);
    let ewr = recording.stream("EWR").unwrap();
    assert_eq!(ewr.record_count(), 8_703);
    let temp: Vec<Option<f64>> = ewr.field("temp").unwrap().records(0..3).to_vec().unwrap();
    assert_eq!(temp, [Some(39.02), Some(39.02), Some(39.02)]);
    let speed: Vec<f64> = ewr.field("wind_speed").unwrap().records(3..4).to_vec().unwrap();
    assert_eq!(speed, [12.658579999999999]);
    let gust: Vec<Option<f64>> = ewr.field("wind_gust").unwrap().to_vec().unwrap();
    assert_eq!(gust.len(), 8_703);
    let jfk = recording.stream("JFK").unwrap();
    assert_eq!(jfk.iterations().unwrap(), Some((8_703, 8_703 + 8_706 - 1)));
    let hours: Vec<i64> = jfk.field("hour").unwrap().iterations(8_703..8_706).to_vec().unwrap();
    let expected: Vec<i64> = jfk.field("hour").unwrap().records(0..3).to_vec().unwrap();
    assert_eq!(hours, expected);
    let wrong = ewr.field("temp").unwrap().to_vec::<i64>().unwrap_err();
    assert!(wrong.to_string().contains("record 0 is f64, not i64"), "{wrong}");
    let absent = ewr.field("pressure").unwrap().to_vec::<f64>().unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::Invalid);
}

/// Do two equal imports give equal chunks, so that the second takes no space?
#[test]
fn equal_imports_share_their_bytes() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let input = std::fs::read(WEATHER).unwrap();
    store.import(&input[..], &csv("a").stream_by("origin"), &mut go).unwrap();
    let once = store.accounts().unwrap().live;
    store.import(&input[..], &csv("b").stream_by("origin"), &mut go).unwrap();
    let twice = store.accounts().unwrap().live;
    assert!(twice < once + once / 10, "{once} bytes became {twice}");
    assert_eq!(export(&store, "a", Format::Csv), export(&store, "b", Format::Csv));
}

/// Does an import that fails leave nothing, and can the name be used at once?
#[test]
fn a_late_conflict_leaves_nothing() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let mut input = String::from("t,x\n");
    (0..50_000).for_each(|n| input.push_str(&format!("{n},{}\n", n % 7)));
    input.push_str("50000,warm\n");
    let mut options = csv("late");
    options.chunk_bytes = 64 << 10;
    let error = store.import(input.as_bytes(), &options, &mut go).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(
        error.to_string(),
        "import input.csv line 50002 (row 50000) column \"x\": \"warm\" is not i64, as the first \
         10000 rows were; to accept it: --type x=string"
    );
    assert_eq!(store.recording("late").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(store.recordings(10).unwrap().is_empty());
    options.read = options.read.column_type("x", FieldType::String);
    store.import(input.as_bytes(), &options, &mut go).unwrap();
    assert!(export(&store, "late", Format::Csv) == input.as_bytes());
}

/// Is a taken name refused with the recording of that name untouched? Does cancelling leave nothing?
#[test]
fn rec1_a_taken_name_is_refused() {
    let home = home();
    let store = without_snapshots(&home.path);
    store.import(&b"a\n1\n"[..], &csv("x"), &mut go).unwrap();
    let error = store.import(&b"a\n2\n"[..], &csv("x"), &mut go).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
    assert_eq!(export(&store, "x", Format::Csv), b"a\n1\n");
    let many: String =
        std::iter::once("a\n".to_owned()).chain((0..9000).map(|n| format!("{n}\n"))).collect();
    let mut stop = |_| ControlFlow::Break(());
    let error = store.import(many.as_bytes(), &csv("y"), &mut stop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(store.recording("y").is_err());
    store.retire_recording("x", "test").unwrap();
    assert!(store.recording("x").is_err());
    assert_eq!(store.accounts().unwrap().live, 0);
}

/// Does a replacement that fails late leave the old recording, and one that succeeds only the new?
#[test]
fn a_failed_replacement_loses_neither() {
    let home = home();
    let store = without_snapshots(&home.path);
    store.import(&b"a\nold\n"[..], &csv("x"), &mut go).unwrap();
    let mut options = csv("x").replacing();
    options.chunk_bytes = 4 << 10;
    options.read.infer_rows = 10;
    let rows: String = (0..5000).map(|n| format!("{n}\n")).collect();
    let mut seen = Vec::new();
    let late = format!("a\n{rows}warm\n");
    let mut look = |_| {
        seen.push(export(&store, "x", Format::Csv));
        ControlFlow::Continue(())
    };
    let error = store.import(late.as_bytes(), &options, &mut look).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert_eq!(seen, [b"a\nold\n"], "the old one stands while the new one is read");
    assert_eq!(export(&store, "x", Format::Csv), b"a\nold\n");
    assert_eq!(store.recordings(10).unwrap().len(), 1, "something of the new one stayed");

    // What a killed replacement left is in nobody's way.
    let schema = Schema::new(vec![Field::new("a", FieldType::I64)]).unwrap();
    let left = store.record("replacement of x", &schema).metadata("import.replaces", "x");
    drop(left.start_bulk().unwrap());
    let whole = format!("a\n{rows}");
    let imported = store.import(whole.as_bytes(), &options, &mut go).unwrap();
    assert_eq!(imported.rows, 5000);
    assert!(export(&store, "x", Format::Csv) == whole.as_bytes());
    let all = store.recordings(10).unwrap();
    let names: Vec<_> = all.iter().map(sealstone::recording::Recording::name).collect();
    assert_eq!(names, ["x"]);
    assert!(all[0].metadata().iter().all(|(key, _)| key != "import.replaces"));
    store.retire_recording("x", "test").unwrap();
    assert_eq!(store.accounts().unwrap().live, 0);
    // A name that is free is simply taken.
    store.import(&b"a\n1\n"[..], &options, &mut go).unwrap();
    assert_eq!(export(&store, "x", Format::Csv), b"a\n1\n");
}

/// Can chunks that met a full disk be published once there is space, without a record lost?
#[test]
#[cfg(feature = "sim")]
fn a_full_disk_loses_no_record_of_a_bulk() {
    use sealstone::vfs::sim::SimDisk;
    let disk = SimDisk::new(7);
    let made = Store::options().disk(std::sync::Arc::new(disk.clone()));
    let store = made.create("/bulk.stone").unwrap();
    let schema = Schema::new(vec![Field::new("x", FieldType::I64)]).unwrap();
    let draft = store.record("run", &schema).stream("s", ["x"]).chunk_bytes(2 << 10);
    let mut bulk = draft.start_bulk().unwrap();
    let mut refused = 0;
    let mut number = 0u64;
    let mut noise = move || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Value::I64(number as i64)
    };
    for at in 0..15_000 {
        let value = [noise()];
        disk.set_capacity((at > 1000).then(|| disk.used()));
        if let Err(e) = bulk.push(0, at, &value) {
            assert_eq!(e.kind(), ErrorKind::DiskFull, "{e}");
            disk.set_capacity(None);
            bulk.push(0, at, &value).unwrap();
            refused += 1;
        }
    }
    bulk.complete(&[]).unwrap();
    println!("{refused} records met a full disk");
    assert!(refused > 0);
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    let iterations: Vec<i64> = stream.iteration().to_vec().unwrap();
    assert!(iterations.iter().copied().eq(0..15_000), "{} records", iterations.len());
}

/// Do JSON lines come back, in their first order, from several streams?
#[test]
fn json_lines_come_back_from_several_streams() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let mut input = String::new();
    for n in 0..15_000 {
        let who = ["a", "b", "c"][n * n % 3];
        let extra = if n % 5 == 0 { ",\"tags\":[1, \"x\"]" } else { "" };
        input.push_str(&format!("{{\"who\":\"{who}\",\"v\":{}.5,\"n\":null{extra}}}\n", n));
    }
    let options = ImportOptions::new("j", Format::Jsonl, "input.jsonl").stream_by("who");
    let imported = store.import(input.as_bytes(), &options, &mut go).unwrap();
    assert_eq!(imported.streams.len(), 2);
    let output = export(&store, "j", Format::Jsonl);
    assert_eq!(String::from_utf8(output).unwrap(), input);
    let csv = String::from_utf8(export(&store, "j", Format::Csv)).unwrap();
    assert!(csv.starts_with("who,v,n,tags\na,0.5,,\"[1, \"\"x\"\"]\"\n"), "{}", &csv[..60]);
}

/// Does an iteration column order the rows, and is a repeated or missing iteration named by row?
#[test]
fn an_iteration_column_must_grow() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let mut options = csv("i");
    options.iteration = Some("t".into());
    store.import(&b"t,x\n10,a\n20,b\n"[..], &options, &mut go).unwrap();
    let stream = store.recording("i").unwrap().stream("rows").unwrap();
    assert_eq!(stream.iterations().unwrap(), Some((10, 20)));
    options.name = "j".into();
    let error = store.import(&b"t,x\n10,a\n10,b\n"[..], &options, &mut go).unwrap_err();
    assert!(error.to_string().contains("line 3 (row 1)"), "{error}");
    assert!(error.to_string().contains("iteration 10 does not follow 10"), "{error}");
    let error = store.import(&b"t,x\n10,a\nNA,b\n"[..], &options, &mut go).unwrap_err();
    assert!(error.to_string().contains("iteration is missing"), "{error}");
    options.iteration = Some("x".into());
    let error = store.import(&b"t,x\n10,a\n"[..], &options, &mut go).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// Does a value of many megabytes survive among small ones?
#[test]
fn a_huge_field_survives() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let huge: String = (0..1_500_000u64).map(|n| (n * n % 1009).to_string()).collect();
    let input = format!("a,b\n1,x\n2,{huge}\n3,y\n");
    store.import(input.as_bytes(), &csv("huge"), &mut go).unwrap();
    assert!(export(&store, "huge", Format::Csv) == input.as_bytes());
}

fn two_streams(store: &Store) -> sealstone::recording::NewRecording {
    let schema = Schema::new(vec![
        Field::new("x", FieldType::F64),
        Field::new("v", FieldType::F64),
        Field::new("note", FieldType::String).nullable(),
    ]);
    store.record("run", &schema.unwrap()).stream("state", ["v", "x"]).stream("log", ["note"])
}

fn assert_run(path: &Path, count: u64) {
    let store = Store::open_read_only(path).unwrap();
    let recording = store.recording("run").unwrap();
    let state = recording.stream("state").unwrap();
    assert_eq!(state.record_count(), count);
    let x: Vec<f64> = state.field("x").unwrap().to_vec().unwrap();
    assert!(x.iter().enumerate().all(|(n, x)| *x == n as f64));
    let iterations: Vec<i64> = state.iteration().to_vec().unwrap();
    assert!(iterations.iter().enumerate().all(|(n, i)| *i == 10 * n as i64));
    for bound in [0, 1, 9, 10, 5_555, 10 * count as i64 - 10, 10 * count as i64] {
        let found = state.records_of(bound..i64::MAX).unwrap().start;
        assert_eq!(found, (bound as u64).div_ceil(10).min(count), "iteration {bound}");
    }
    let mut records = state.records(vec![1, 0], 3..count, 1000);
    for n in 3..count {
        assert!(records.advance().unwrap());
        assert_eq!(records.iteration(), 10 * n as i64);
        assert_eq!(records.get(1), Value::F64(n as f64));
        assert_eq!(records.get(0), Value::F64(-(n as f64)));
    }
    assert!(!records.advance().unwrap());
    assert!(!records.advance().unwrap());
}

/// Are chunks and the journal's tail one sequence to a reader, while the writer lives, after it
/// was dropped, and after the recording is complete?
#[test]
fn rec43_chunks_and_tail_are_one_sequence() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let run = two_streams(&store).chunk_bytes(10_000).start().unwrap();
    let mut ticket = None;
    for n in 0..2000u64 {
        let values = [Value::F64(n as f64), Value::F64(-(n as f64))];
        let state = NewRecord { stream: 0, iteration: 10 * n as i64, time: None, values: &values };
        let note = [if n % 2 == 0 { Value::String("even") } else { Value::Missing }];
        let log = NewRecord { stream: 1, iteration: 10 * n as i64, time: None, values: &note };
        ticket = Some(run.append_all(&[state, log]).unwrap());
    }
    run.wait(&ticket.unwrap(), Level::Durable).unwrap();
    assert_run(&home.path, 2000);
    let state = store.recording("run").unwrap().stream("state").unwrap();
    assert!(state.chunk_count() > 2 && state.sealed_record_count() < 2000);
    // A stream for reading keeps its store open.
    drop(state);
    drop(run);
    drop(store);
    assert_run(&home.path, 2000);
    let store = Store::open(&home.path).unwrap();
    assert_eq!(store.recording("run").unwrap().status(), &RecordingStatus::Running);
    store.close().unwrap();
    assert_run(&home.path, 2000);
}

/// Is each wrong record refused with nothing accepted, and each end final?
#[test]
fn rec12_a_wrong_record_names_stream_and_field() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let run = two_streams(&store).start().unwrap();
    let x = [Value::F64(1.0), Value::F64(1.0)];
    run.append(0, 5, &x).unwrap();
    let text = |result: sealstone::Result<_>| {
        result.map(|_: sealstone::recording::Ticket| ()).unwrap_err().to_string()
    };
    assert!(text(run.append(0, 5, &x)).contains("stream \"state\": iteration 5 does not follow 5"));
    let wrong = text(run.append(0, 6, &[Value::I64(1), Value::F64(1.0)]));
    assert!(wrong.contains("field \"x\": it holds f64, and the value is i64"), "{wrong}");
    assert!(text(run.append(0, 6, &[Value::Missing, Value::F64(1.0)])).contains("missing"));
    assert!(text(run.append(7, 6, &x)).contains("no stream number 7"));
    let group = [
        NewRecord { stream: 1, iteration: 1, time: None, values: &[Value::Missing] },
        NewRecord { stream: 1, iteration: 1, time: None, values: &[Value::Missing] },
    ];
    assert!(text(run.append_all(&group)).contains("iteration 1 does not follow 1"));
    assert_eq!(run.stream("log"), Some(1));
    run.complete().unwrap();
    let recording = store.recording("run").unwrap();
    assert_eq!(recording.status(), &RecordingStatus::Complete);
    let streams = recording.streams().unwrap();
    let names: Vec<_> = streams.iter().map(|s| (s.name(), s.record_count())).collect();
    assert_eq!(names, [("state", 1), ("log", 0)], "REC48: declaration order");
}

/// Does a failed recording keep its records and its reason, and need one?
#[test]
fn rec28_fail_needs_a_reason_and_keeps_the_records() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let run = two_streams(&store).start().unwrap();
    run.append(0, 1, &[Value::F64(1.0), Value::F64(1.0)]).unwrap();
    run.fail("the solver diverged").unwrap();
    let recording = store.recording("run").unwrap();
    let reason = RecordingStatus::Failed { reason: "the solver diverged".into() };
    assert_eq!(recording.status(), &reason);
    assert_eq!(recording.stream("state").unwrap().record_count(), 1);
    store.retire_recording("run", "test").unwrap();
    let receipts = store.snapshot().unwrap().list::<ReceiptRow>(.., 9).unwrap();
    let (_, told) = receipts.last().unwrap();
    // What went is told as well, by the beginnings of the digests.
    assert!(told.what.starts_with("recording \"run\"; objects "), "{told:?}");
    assert_eq!((told.why.as_str(), told.objects), ("test", 1));
    let run = two_streams(&store).start().unwrap();
    assert_eq!(run.fail(" ").unwrap_err().kind(), ErrorKind::Invalid);
}

/// Is each wrong description refused with its own message before anything is written?
#[test]
fn rec3_a_wrong_description_writes_nothing() {
    let home = home();
    let store = Store::create(&home.path).unwrap();
    let before = store.stats().unwrap().commit;
    let schema = Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap();
    let draft = || store.record("run", &schema);
    let text = |draft: sealstone::recording::NewRecording| {
        let error = draft.start().map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    assert!(text(draft()).contains("no stream"));
    assert!(text(draft().stream("s", ["x"]).stream("s", ["x"])).contains("used twice"));
    assert!(text(draft().stream("s", ["y"])).contains("no field \"y\""));
    assert!(text(draft().stream("s", ["x", "x"])).contains("listed twice"));
    assert!(text(draft().stream("s", Vec::<String>::new())).contains("has no field"));
    assert!(text(draft().stream(" ", ["x"])).contains("blank"));
    assert!(text(draft().stream("s", ["x"]).metadata("", "v")).contains("blank"));
    assert!(text(draft().stream("s", ["x"]).chunk_bytes(0)).contains("zero"));
    assert!(text(store.record("", &schema).stream("s", ["x"])).contains("blank"));
    assert_eq!(store.stats().unwrap().commit, before, "something was written");
    draft().stream("s", ["x"]).start().unwrap();
}
