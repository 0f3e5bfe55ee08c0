//! Reading: any status, only what is wanted, as any type, in order.

use std::path::Path;
use std::sync::Arc;

use sealstone::format::column::{Chunk, ColumnId};
use sealstone::recording::{
    Array, Decoders, Field, FieldType, NdArray, Opaque, RecordingStatus, Schema, Value,
};
use sealstone::vfs::{Operation, RealDisk, TraceDisk};
use sealstone::{ErrorKind, Store};

#[cfg(feature = "sim")]
use crate::gate::GateDisk;
use crate::made::{self, bulk};
use crate::support::{draft, home, iterations};

/// Bytes read from sealed files since the trace was last asked.
fn sealed_bytes(disk: &TraceDisk) -> u64 {
    let of_sealed = |path: &Path| path.iter().any(|part| part == "sealed");
    let calls = disk.take_calls();
    let reads = calls.iter().filter(|c| c.operation == Operation::Read && of_sealed(&c.path));
    reads.map(|call| call.len).sum()
}

/// A recording of `fields` fields of noise, timed a tenth of the iteration.
fn wide(store: &Store, fields: usize, records: i64, chunk_bytes: u64) {
    let names: Vec<String> = (0..fields).map(|n| format!("f{n}")).collect();
    let all = names.iter().map(|name| Field::new(name, FieldType::F64)).collect();
    let schema = Schema::new(all).unwrap().timed();
    let new = store.record("wide", &schema).chunk_bytes(chunk_bytes).stream("s", names);
    let mut bulk = new.start_bulk().unwrap();
    for n in 0..records {
        let noise = |k: usize| Value::F64(made::noise(n as u64 * 1_000 + k as u64));
        let values: Vec<Value<'_>> = (0..fields).map(noise).collect();
        bulk.push_at(0, n, Some(n as f64 / 10.0), &values).unwrap();
    }
    bulk.complete(&[]).unwrap();
}

/// Does one scalar over 1 % of the time of a wide recording cost no more than 1.2 times its stored
/// bytes, but for footers?
#[test]
fn rec44_only_the_wanted_blocks_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let disk = TraceDisk::new(RealDisk::new());
    let store = Store::options().disk(Arc::new(disk.clone())).create(dir.path().join("s")).unwrap();
    // Chunks as long as by default, and of which many lie in a hundredth of the time.
    for (chunk_bytes, records) in [(1 << 20, 60_000i64), (10 << 10, 60_000)] {
        wide(&store, 16, records, chunk_bytes);
        let recording = store.recording("wide").unwrap();
        let stream = recording.stream("s").unwrap();
        let (from, upto) = (records * 3 / 10, records * 3 / 10 + records / 100);
        let range = stream.records_of(from..upto).unwrap();
        assert_eq!(range, from as u64..upto as u64);
        // What lies in the range: blocks of the field, and the footers of their chunks.
        let (mut wanted, mut footers) = (0, 0);
        let view = store.view(stream.id()).unwrap();
        for (_, row) in &view.chunks {
            let records = row.first.0..row.first.0 + row.records;
            if records.start < range.end && range.start < records.end {
                let bytes = store.fetch(row.object).unwrap();
                let len = bytes.len() as u64;
                let part = |at: u64, n: u64| Ok(bytes[at as usize..(at + n) as usize].to_vec());
                let chunk = Chunk::open("here", len, &mut { part }).unwrap();
                let stored =
                    |column| chunk.blocks(column).iter().map(|b| b.stored_len).sum::<u64>();
                wanted += stored(ColumnId::Field(5));
                let columns = (0..16).map(ColumnId::Field);
                let all = columns.chain([ColumnId::Iteration, ColumnId::Time]).map(stored);
                footers += len - all.sum::<u64>();
            }
        }
        // The files are open; nothing of the chunks is known.
        let stream = recording.stream("s").unwrap();
        sealed_bytes(&disk);
        let times = from as f64 / 10.0..upto as f64 / 10.0;
        let values: Vec<f64> = stream.field("f5").unwrap().times(times).to_vec().unwrap();
        let read = sealed_bytes(&disk);
        assert_eq!(values.len(), records as usize / 100);
        // How long footers are is known after the first.
        let footers = footers + 4096;
        let at_most = wanted * 6 / 5 + footers;
        assert!(read <= at_most, "{read} of {wanted} and {footers} of footers");
        if chunk_bytes == 10 << 10 {
            // Of noise nothing can be saved: the values themselves are the measure.
            let values = values.len() as u64 * 8;
            assert!(read <= values * 6 / 5 + footers, "{read} for {values} and {footers}");
        }
        println!("chunks of {chunk_bytes}: {read} read for {wanted} and {footers} of footers");
        store.retire_recording("wide", "test").unwrap();
    }
}

/// Are ranges of records, iterations and times what they say, sealed and unsealed, for each field?
#[test]
fn rec44_ranges_are_what_they_say() {
    let home = home();
    let schema = Schema::new(vec![Field::new("x", FieldType::I32)]).unwrap().timed();
    let new = home.store.record("run", &schema).stream("s", ["x"]).chunk_bytes(500);
    let recorder = new.start().unwrap();
    for n in 0..200i64 {
        // Several records of one time.
        let time = Some((n / 4) as f64);
        let record = sealstone::recording::NewRecord {
            stream: 0,
            iteration: n * 3,
            time,
            values: &[Value::I32(n as i32)],
        };
        recorder.append_all(&[record]).unwrap();
    }
    let stream = home.store.recording("run").unwrap().stream("s").unwrap();
    assert!(stream.chunk_count() > 3 && stream.sealed_record_count() < 200);
    let x = || stream.field("x").unwrap();
    let numbers = |range: std::ops::Range<i32>| range.collect::<Vec<_>>();
    for (from, upto) in [(0, 1), (7, 7), (13, 160), (150, 199), (195, 200), (0, 200)] {
        let (a, b) = (i64::from(from), i64::from(upto));
        assert_eq!(x().records(a as u64..b as u64).to_vec::<i32>().unwrap(), numbers(from..upto));
        let of = x().iterations(3 * a - 2..3 * b - 2).to_vec::<i32>().unwrap();
        assert_eq!(of, numbers(from..upto));
    }
    for (from, upto) in [(0.0, 0.5), (3.0, 17.0), (2.5, 2.6), (48.5, 1e9), (f64::NEG_INFINITY, 3.0)]
    {
        let wanted: Vec<i32> =
            (0..200).filter(|n| (from..upto).contains(&f64::from(n / 4))).collect();
        assert_eq!(x().times(from..upto).to_vec::<i32>().unwrap(), wanted, "{from}..{upto}");
    }
    let both = x().times(3.0..17.0).iterations(60..90).to_vec::<i32>().unwrap();
    assert_eq!(both, numbers(20..30));
    let refused = x().times(f64::NAN..1.0).to_vec::<i32>().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let plain = draft(&home.store);
    drop(home.store.record("plain", &crate::support::schema()).stream("s", ["x"]).start().unwrap());
    drop(plain);
    let plain = home.store.recording("plain").unwrap().stream("s").unwrap();
    let refused = plain.field("x").unwrap().times(0.0..1.0).to_vec::<f64>().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
}

/// Is each status readable and data, and does the strict call take only what is complete?
#[test]
fn rec43_any_status_is_readable_and_strict_takes_only_complete() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let store = Store::create(&root).unwrap();
    let one_field = Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap();
    let run = |name: &str| {
        let recorder = store.record(name, &one_field).stream("s", ["x"]);
        let recorder = recorder.start().unwrap();
        for n in 0..10 {
            recorder.append(0, n, &[Value::F64(n as f64)]).unwrap();
        }
        recorder.barrier().unwrap();
        recorder
    };
    run("complete").complete().unwrap();
    run("failed").fail("it diverged").unwrap();
    let running = run("running");
    let check = |store: &Store| {
        for name in ["complete", "failed", "running"] {
            let recording = store.recording(name).unwrap();
            let x: Vec<f64> = recording.stream("s").unwrap().field("x").unwrap().to_vec().unwrap();
            assert_eq!(x.len(), 10, "{name}");
            let strict = recording.strict().map(|recording| recording.name().to_owned());
            match recording.status() {
                RecordingStatus::Complete => assert_eq!(strict.unwrap(), "complete"),
                RecordingStatus::Failed { reason } => {
                    assert_eq!((name, reason.as_str()), ("failed", "it diverged"));
                    let refused = strict.unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::Conflict);
                    assert!(refused.to_string().contains("it failed: it diverged"), "{refused}");
                }
                RecordingStatus::Running => {
                    assert_eq!(name, "running");
                    let refused = strict.unwrap_err().to_string();
                    assert!(refused.contains("it is running, not complete"), "{refused}");
                }
            }
        }
    };
    check(&store);
    // Beside the writer, changing nothing; and by another process.
    let disk = TraceDisk::counting(RealDisk::new());
    let reader = Store::options().disk(Arc::new(disk.clone())).open_read_only(&root).unwrap();
    check(&reader);
    assert_eq!(disk.counts().mutations(), 0);
    #[cfg(feature = "cli")]
    {
        let tool = std::process::Command::new(env!("CARGO_BIN_EXE_sealstone"))
            .args(["cat", root.to_str().unwrap(), "running"])
            .output()
            .unwrap();
        assert!(tool.status.success(), "{tool:?}");
        assert!(String::from_utf8_lossy(&tool.stdout).lines().count() >= 10, "{tool:?}");
    }
    // A writer that was killed: its files as they are at this instant, on media that take no write.
    let crashed = dir.path().join("crashed.stone");
    let copied = std::process::Command::new("cp").arg("-r").args([&root, &crashed]).status();
    assert!(copied.unwrap().success());
    drop((reader, running, store));
    let disk = TraceDisk::counting(RealDisk::new());
    let reader = Store::options().disk(Arc::new(disk.clone())).open_read_only(&crashed).unwrap();
    check(&reader);
    assert_eq!(disk.counts().mutations(), 0);
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
enum Phase {
    Warm,
    Run { step: u32 },
}

/// Do arrays, text, bytes, JSON and values of serde types come back typed, sealed or not, one by one
/// and as whole series?
#[test]
fn rec45_every_type_comes_back_typed() {
    let home = home();
    let fields = vec![
        Field::new("u", FieldType::F64).array([2, 3]),
        Field::new("ids", FieldType::U16).ragged(1),
        Field::new("note", FieldType::String).nullable(),
        Field::new("raw", FieldType::Bytes),
        Field::new("json", FieldType::Json),
        Field::opaque::<Phase>("phase").unwrap(),
    ];
    let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
    let schema = Schema::new(fields).unwrap();
    let new = home.store.record("run", &schema).chunk_bytes(4 << 10).stream("s", names);
    let recorder = new.start().unwrap();
    let phase = |n: u16| if n < 50 { Phase::Warm } else { Phase::Run { step: u32::from(n) } };
    let grid = |n: u16| (0..6).map(|k| f64::from(n) + f64::from(k) / 8.0).collect::<Vec<_>>();
    for n in 0..100u16 {
        let (u, ids, raw) = (grid(n), (0..n % 5).collect::<Vec<u16>>(), n.to_le_bytes());
        let (json, phase) = (format!("{{\"n\":{n}}}"), Opaque::encode(&phase(n)).unwrap());
        let values = [
            Array::new(&[2, 3], &u).into(),
            Array::new(&[ids.len()], &ids).into(),
            if n % 2 == 0 { Value::String("even") } else { Value::Missing },
            Value::Bytes(&raw),
            Value::Json(&json),
            Value::Opaque(&phase),
        ];
        recorder.append(0, i64::from(n), &values).unwrap();
    }
    let stream = home.store.recording("run").unwrap().stream("s").unwrap();
    assert!(stream.chunk_count() > 0 && stream.sealed_record_count() < 100);
    let field = |name: &str| stream.field(name).unwrap();
    let u: Vec<NdArray<f64>> = field("u").to_vec().unwrap();
    for (n, u) in (0..).zip(&u) {
        assert_eq!((u.axes(), u.elements()), (&[2, 3][..], &grid(n)[..]));
    }
    // The whole series as one run of elements.
    let series = field("u").to_column().unwrap();
    let all: Vec<f64> = (0..100).flat_map(grid).collect();
    assert_eq!(series.elements::<f64>(), Some(&all[..]));
    let ids: Vec<Vec<u16>> = field("ids").to_vec().unwrap();
    assert!(ids.iter().zip(0..).all(|(ids, n)| *ids == (0..n % 5).collect::<Vec<u16>>()));
    let notes: Vec<Option<String>> = field("note").to_vec().unwrap();
    assert_eq!(notes.iter().flatten().count(), 50);
    let raw: Vec<Vec<u8>> = field("raw").to_vec().unwrap();
    assert_eq!(raw[99], 99u16.to_le_bytes());
    let json: Vec<String> = field("json").to_vec().unwrap();
    assert_eq!(json[7], "{\"n\":7}");
    let phases: Vec<Opaque<Phase>> = field("phase").to_vec().unwrap();
    assert!(phases.iter().zip(0..).all(|(found, n)| found.0 == phase(n)));
    let wrong = field("phase").to_vec::<Opaque<u64>>().unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::TypeMismatch);
    assert_eq!(field("u").to_vec::<f64>().unwrap_err().kind(), ErrorKind::Invalid);
    // And one by one.
    let decoders = Decoders::new()
        .field("phase", |state: &mut Option<Phase>, phase: Opaque<Phase>| *state = Some(phase.0))
        .unwrap();
    let missing = stream.states(&decoders, || None).unwrap_err();
    assert!(missing.to_string().contains("\"json\""), "{missing}");
}

/// Are all streams given in the order in which they were declared, and records merged so?
#[test]
fn rec48_streams_keep_the_order_of_declaration() {
    let home = home();
    let names = ["zz", "a", "mm", "b"];
    let new = names.iter().fold(draft(&home.store), |new, name| new.stream(name, ["x"]));
    let recorder = new.start().unwrap();
    for (at, _) in names.iter().enumerate().rev() {
        recorder.append(at, 1, &[Value::F64(0.0)]).unwrap();
    }
    recorder.complete().unwrap();
    let streams = home.store.recording("run").unwrap().streams().unwrap();
    assert_eq!(streams.iter().map(|s| s.name()).collect::<Vec<_>>(), names);
    let fields = vec![vec![0]; 4];
    let mut merged = sealstone::recording::Merged::new(&streams, &fields).unwrap();
    for at in 0..4 {
        assert_eq!(merged.advance().unwrap(), Some(at));
    }
    assert_eq!(merged.advance().unwrap(), None);
}

/// Does a stream of many chunks show only what it is asked for, and tell when it was moved back?
#[test]
fn rec44_a_stream_of_many_chunks_looks_for_those_it_is_asked_for() {
    let home = home();
    let store = &home.store;
    bulk(store, "run", 1, 0..1_500, |n| [n as f64, 0.0]);
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    assert_eq!((stream.chunk_count(), stream.record_count()), (1_500, 1_500));
    let x = |range| stream.field("x").unwrap().iterations(range).to_vec::<f64>();
    assert_eq!(x(1_321..1_324).unwrap(), [1_321.0, 1_322.0, 1_323.0]);
    assert_eq!(x(0..1_500).unwrap().len(), 1_500);
    assert_eq!(iterations(store, "s").len(), 1_500);
    let mut cursors = store.cursors(&[stream.id()]).unwrap();
    cursors[0].end = sealstone::ids::Sequence(1_400);
    store.rewind(&cursors).unwrap();
    let moved = x(10..20).unwrap_err();
    assert_eq!(moved.kind(), ErrorKind::Conflict, "{moved}");
    assert_eq!(iterations(store, "s").len(), 1_400);
}

/// Do footers say of each block what its values say, for every stored type, and without a value being
/// read?
#[test]
fn rec44_statistics_of_blocks_are_those_of_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let disk = TraceDisk::new(RealDisk::new());
    let store = Store::options().disk(Arc::new(disk.clone())).create(dir.path().join("s")).unwrap();
    let x = Field::new("x", FieldType::F64).nullable();
    let fields = vec![x, Field::new("n", FieldType::I16), Field::new("s", FieldType::String)];
    let schema = Schema::new(fields).unwrap().timed();
    let new = store.record("run", &schema).chunk_bytes(256 << 10).stream("s", ["x", "n", "s"]);
    let mut bulk = new.start_bulk().unwrap();
    for n in 0..60_000i64 {
        let x = match n % 7 {
            0 => Value::Missing,
            1 => Value::F64(f64::NAN),
            2 => Value::F64(-made::noise(n as u64)),
            _ => Value::F64(made::noise(n as u64)),
        };
        let number = Value::I16((n % 3000) as i16 - 1500);
        bulk.push_at(0, n * 2, Some(n as f64), &[x, number, Value::String("text")]).unwrap();
    }
    bulk.complete(&[]).unwrap();
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    let x: Vec<Option<f64>> = stream.field("x").unwrap().to_vec().unwrap();
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    sealed_bytes(&disk);
    let blocks = |name: &str| -> Vec<_> {
        stream.field(name).unwrap().blocks().unwrap().map(|block| block.unwrap()).collect()
    };
    let of_x = blocks("x");
    let read = sealed_bytes(&disk);
    assert!(read < stream.stored_bytes().unwrap() / 4, "{read}: footers alone");
    assert!(of_x.len() >= stream.chunk_count() && stream.chunk_count() > 3);
    let mut next = 0;
    for block in &of_x {
        assert_eq!(block.records.start, next);
        next = block.records.end;
        let (first, last) = (block.records.start as i64, next as i64 - 1);
        assert_eq!(block.iterations, (first * 2, last * 2));
        assert_eq!(block.times, Some((first as f64, last as f64)));
        let values = &x[block.records.start as usize..next as usize];
        let numbers = || values.iter().flatten().copied().filter(|value| !value.is_nan());
        assert_eq!(block.missing, values.iter().filter(|value| value.is_none()).count() as u64);
        let nan = values.iter().flatten().filter(|value| value.is_nan()).count();
        assert_eq!(block.nan, nan as u64);
        let bounds = (numbers().reduce(f64::min).unwrap(), numbers().reduce(f64::max).unwrap());
        assert_eq!(block.bounds, Some((Value::F64(bounds.0), Value::F64(bounds.1))));
        assert!(block.stored_bytes > 0 && block.raw_bytes > 0);
    }
    assert_eq!(next, 60_000);
    let of_n = blocks("n");
    let least = of_n.iter().filter_map(|block| block.bounds).map(|(least, _)| least);
    assert!(least.clone().any(|least| least == Value::I16(-1500)), "{of_n:?}");
    assert!(blocks("s").iter().all(|block| block.bounds.is_none()));
    // A range gives the blocks that hold some of it.
    let some = stream.field("x").unwrap().iterations(9_000..9_001).blocks().unwrap();
    let some: Vec<_> = some.map(|block| block.unwrap().records).collect();
    assert!(some.len() == 1 && some[0].contains(&4_500), "{some:?}");
}

/// Are chunks of one field decoded by several threads at once, and do their values come in order all the
/// same?
#[cfg(feature = "sim")]
#[test]
fn rec45_chunks_are_decoded_at_once_and_come_in_order() {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    if std::thread::available_parallelism().map_or(1, |n| n.get()) < 2 {
        println!("one processor: nothing to see");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let gate = GateDisk::new(RealDisk::new());
    let store = Store::options().disk(Arc::new(gate.clone())).create(dir.path().join("s")).unwrap();
    let schema = Schema::new(vec![Field::new("x", FieldType::F64)]).unwrap();
    // Batches of 1, 1, 2, 4, 8 chunks: each in a file of its own.
    let new = store.record("run", &schema).chunk_records(1000).stream("s", ["x"]);
    let run = new.start().unwrap();
    let values: Vec<f64> = (0..16_000).map(made::noise).collect();
    for (n, value) in values.iter().enumerate() {
        run.append(0, n as i64, &[Value::F64(*value)]).unwrap();
    }
    run.complete().unwrap();
    store.close().unwrap();
    let store = Store::options().disk(Arc::new(gate.clone())).open(dir.path().join("s")).unwrap();
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    // The first who opens a file waits for another one: in vain, were there one alone.
    let (told, is_told) = channel();
    let (met, has_met) = channel();
    let again = gate.clone();
    gate.at_sealed(move || {
        again.at_sealed(move || told.send(()).unwrap());
        met.send(is_told.recv_timeout(Duration::from_secs(30)).is_ok()).unwrap();
    });
    let read = stream.field("x").unwrap().to_vec::<f64>().unwrap();
    assert!(has_met.try_recv().unwrap(), "nobody else decoded meanwhile");
    assert!(read == values);
}
