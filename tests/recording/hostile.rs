//! What a reader does behind an error, with questions that make no sense, and with rows that lie:
//! nothing that it shows is of another record or another field.

use sealstone::format::column::TRAILER_LEN;
use sealstone::recording::{Merged, Value};
use sealstone::{ErrorKind, Store};

use crate::made::{chunk, pair, publish};
use crate::support::home;

/// A recording of three chunks, the last block of the second of which does not read.
fn harmed(store: &Store, name: &str) {
    drop(store.record(name, &pair()).stream("s", ["x", "y"]).start().unwrap());
    let of = |from: i64| -> Vec<i64> { (from..from + 100).collect() };
    let mut second = chunk(&pair(), &of(100));
    let trailer = second.len() - TRAILER_LEN;
    let footer = u32::from_le_bytes(second[trailer..trailer + 4].try_into().unwrap()) as usize;
    second[trailer - footer - 1] ^= 1;
    publish(store, name, chunk(&pair(), &of(0)), &of(0));
    publish(store, name, second, &of(100));
    publish(store, name, chunk(&pair(), &of(200)), &of(200));
}

/// Is anything shown behind the first error: a record of before it, half of one, or a later one?
#[test]
fn nothing_is_at_hand_behind_an_error() {
    let home = home();
    harmed(&home.store, "run");
    let stream = home.store.recording("run").unwrap().stream("s").unwrap();
    let mut records = stream.records(vec![0, 1], 0..stream.record_count(), 1 << 20);
    for n in 0..100 {
        assert!(records.advance().unwrap());
        assert_eq!(records.iteration(), n);
    }
    assert_eq!(records.advance().unwrap_err().kind(), ErrorKind::Damage);
    for _ in 0..3 {
        assert!(records.values().is_empty() && records.get(0).is_missing());
        assert_eq!(records.iteration(), 0);
        assert!(!records.advance().unwrap(), "it goes on behind an error");
    }
}

/// Does a merged reader go on without the stream that failed?
#[test]
fn a_merged_reader_ends_with_the_stream_that_failed() {
    let home = home();
    harmed(&home.store, "run");
    let all: Vec<i64> = (0..300).collect();
    drop(home.store.record("well", &pair()).stream("s", ["x", "y"]).start().unwrap());
    publish(&home.store, "well", chunk(&pair(), &all), &all);
    let stream = |name: &str| home.store.recording(name).unwrap().stream("s").unwrap();
    let streams = [stream("run"), stream("well")];
    let mut merged = Merged::new(&streams, &[vec![0, 1], vec![0, 1]]).unwrap();
    let mut count = 0;
    let error = loop {
        match merged.advance() {
            Ok(Some(_)) => count += 1,
            Ok(None) => panic!("it ended as if it were whole"),
            Err(e) => break e,
        }
    };
    assert_eq!((error.kind(), count), (ErrorKind::Damage, 199));
    for _ in 0..3 {
        assert_eq!(merged.advance().unwrap(), None);
        assert!(merged.records(0).is_none() && merged.records(1).is_none());
    }
}

/// Is a field that does not exist told, in chunks and behind them, or are the values of others given
/// for it?
#[test]
fn a_field_that_does_not_exist_is_refused_everywhere() {
    let home = home();
    let store = &home.store;
    let recorder = store.record("run", &pair()).stream("s", ["x", "y"]).start().unwrap();
    recorder.append(0, 7, &[Value::F64(1.0), Value::F64(2.0)]).unwrap();
    recorder.barrier().unwrap();
    let sealed: Vec<i64> = (0..10).collect();
    drop(store.record("sealed", &pair()).stream("s", ["x", "y"]).start().unwrap());
    publish(store, "sealed", chunk(&pair(), &sealed), &sealed);
    for name in ["run", "sealed"] {
        let stream = store.recording(name).unwrap().stream("s").unwrap();
        for fields in [vec![99, 0], vec![0, 2], vec![usize::MAX]] {
            let mut records = stream.records(fields, 0..stream.record_count(), 1 << 20);
            let refused = records.advance().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{name}: {refused}");
            assert!(refused.chain().contains("no field number"), "{name}: {refused}");
            assert!(!records.advance().unwrap());
        }
        let mut records = stream.records(vec![1, 0, 1], 0..stream.record_count(), 1 << 20);
        assert!(records.advance().unwrap());
        let [first, _, last] = &records.values()[..] else { panic!("{name}") };
        assert!(first.same(last), "the same field twice");
    }
}

/// Does a lenient reader count to whatever the row of a stream says, and is a row of a chunk that is not
/// there a gap?
#[cfg(feature = "sim")]
#[test]
fn rec46_rows_that_lie_about_chunks_are_gaps() {
    use sealstone::ids::Ordinal;
    use sealstone::manifest::{ChunkRow, Manifest, Open, Reading, StreamRow};
    use sealstone::vfs::{Disk, RealDisk, Step};
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut limits = sealstone::Limits::default();
    limits.snapshot_chain_max = 0;
    let store = Store::options().limits(limits).create(&root).unwrap();
    drop(store.record("run", &pair()).stream("s", ["x", "y"]).start().unwrap());
    for from in [0, 100, 200] {
        let iterations: Vec<i64> = (from..from + 100).collect();
        publish(&store, "run", chunk(&pair(), &iterations), &iterations);
    }
    let id = store.recording("run").unwrap().stream("s").unwrap().id();
    store.close().unwrap();
    let disk: std::sync::Arc<dyn Disk> = RealDisk::new();
    let manifest = Manifest::open(&disk, &root, &Open::default()).unwrap();
    let lie = manifest.write(None, Step::OpenEpoch, |w| {
        let row = w.require::<StreamRow>(&id)?;
        w.put(&id, &StreamRow { next_ordinal: Ordinal(1 << 60), ..row })?;
        w.remove::<ChunkRow>(&(id, Ordinal(1))).map(drop)
    });
    lie.unwrap();
    drop(manifest);
    let store = Store::open_read_only(&root).unwrap();
    let recording = store.recording("run").unwrap();
    let mut shown = Vec::new();
    let gaps = recording.lenient(&mut |found| {
        shown.extend_from_slice(found.iterations.as_i64().unwrap());
        Ok(())
    });
    let gaps = gaps.unwrap();
    assert!(shown.into_iter().eq((0..100).chain(200..300)));
    assert!(gaps.iter().any(|gap| gap.records == (100..200)), "{gaps:?}");
    assert!(gaps.iter().all(|gap| gap.cause.kind() == ErrorKind::Damage), "{gaps:?}");
    assert!(gaps.len() <= 2, "{gaps:?}");
}

/// Does one file that the disk does not give end the reading of all others?
#[cfg(feature = "sim")]
#[test]
fn rec46_a_bad_sector_is_a_gap_of_its_chunk() {
    use crate::resuming::{on, root, sim};
    use sealstone::vfs::Disk;
    use sealstone::vfs::sim::{Fault, FaultKind};
    let disk = sim(46);
    let store = on(&disk).create(root()).unwrap();
    drop(store.record("run", &pair()).stream("s", ["x", "y"]).start().unwrap());
    let files = || {
        let mut found = Vec::new();
        for folder in ["00", "01"] {
            let path = root().join("sealed").join(folder);
            for entry in disk.list(&path).unwrap_or_default() {
                found.push(path.join(entry.name));
            }
        }
        found
    };
    let mut of_second = Vec::new();
    for from in [0, 100, 200] {
        let iterations: Vec<i64> = (from..from + 100).collect();
        let before = files();
        publish(&store, "run", chunk(&pair(), &iterations), &iterations);
        if from == 100 {
            of_second = files().into_iter().filter(|file| !before.contains(file)).collect();
        }
    }
    store.close().unwrap();
    let [file] = &of_second[..] else { panic!("{of_second:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    disk.inject(Fault::new(0, FaultKind::Eio).forever().on(name));
    let store = on(&disk).open_read_only(root()).unwrap();
    let recording = store.recording("run").unwrap();
    let mut shown = Vec::new();
    let gaps = recording.lenient(&mut |found| {
        shown.extend_from_slice(found.iterations.as_i64().unwrap());
        Ok(())
    });
    let gaps = gaps.unwrap();
    assert!(shown.into_iter().eq((0..100).chain(200..300)));
    let [gap] = &gaps[..] else { panic!("{gaps:?}") };
    assert_eq!((&gap.records, gap.iterations), (&(100..200), Some((100, 199))));
    assert_eq!(gap.cause.kind(), ErrorKind::Io, "{gap:?}");
}

/// What of reading, finding and comparing is not as it has to be.
#[cfg(feature = "sim")]
fn fault_of_reading() -> Option<&'static str> {
    use sealstone::recording::{Field, Opaque, Schema};
    let home = home();
    let store = &home.store;
    let schema = Schema::new(vec![Field::opaque::<(u8, u8)>("pair").unwrap()]).unwrap();
    let new = store.record("opaque", &schema).stream("s", ["pair"]).parameter("dt", 1);
    let recorder = new.start().unwrap();
    let bytes = Opaque::encode(&(1u8, 2u8)).unwrap();
    recorder.append(0, 1, &[Value::Opaque(&bytes)]).unwrap();
    recorder.complete().unwrap();
    let stream = store.recording("opaque").unwrap().stream("s").unwrap();
    let right = stream.field("pair").unwrap().to_vec::<Opaque<(u8, u8)>>();
    assert_eq!(right.unwrap(), [Opaque((1, 2))]);
    let other = stream.field("pair").unwrap().to_vec::<Opaque<u16>>();
    if other.err().map(|e| e.kind()) != Some(ErrorKind::TypeMismatch) {
        return Some("another type was read");
    }
    store.retire_recording("opaque", "test").unwrap();
    if store.catalogue().select("dt = 1").map_or(1, |selected| selected.looked_at) != 0 {
        return Some("parameters were left");
    }
    for (name, zero) in [("plus", 0.0), ("minus", -0.0)] {
        crate::made::bulk(store, name, 8 << 10, 0..10, |_| [zero, 1.0]);
    }
    if store.diff("plus", "minus").unwrap().is_empty() {
        return Some("-0 was taken for 0");
    }
    drop(store.record("back", &pair()).stream("s", ["x", "y"]).start().unwrap());
    for from in [0, 50] {
        let iterations: Vec<i64> = (from..from + 100).collect();
        publish(store, "back", chunk(&pair(), &iterations), &iterations);
    }
    let stream = store.recording("back").unwrap().stream("s").unwrap();
    let mut records = stream.records(vec![0], 0..stream.record_count(), 1 << 20);
    let mut walk = || -> sealstone::Result<()> {
        while records.advance()? {}
        Ok(())
    };
    match walk() {
        Ok(()) => Some("iterations went backwards"),
        Err(_) => None,
    }
}

/// (mutants) Is each protection of what is read, found and compared missed when it is gone?
#[cfg(feature = "sim")]
#[test]
fn mutants_of_reading_are_caught() {
    use sealstone::protection::{Protection, switch_off};
    assert_eq!(fault_of_reading(), None);
    for (protection, fault) in [
        (Protection::OpaqueShape, "another type was read"),
        (Protection::ParametersRemoved, "parameters were left"),
        (Protection::DiffBits, "-0 was taken for 0"),
        (Protection::IterationsGrow, "iterations went backwards"),
    ] {
        let _off = switch_off(protection);
        assert_eq!(fault_of_reading(), Some(fault));
    }
}
