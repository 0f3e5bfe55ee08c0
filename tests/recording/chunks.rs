//! Where chunks end, how many go together, and that their number costs no memory.

use std::sync::Arc;

use sealstone::engine::{Append, ChunkBuild};
use sealstone::ids::Sequence;
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{Field, FieldType, ResumeFrom, Schema, StreamOptions, Value};
use sealstone::vfs::TraceDisk;
use sealstone::{ErrorKind, Limits, Store};

use crate::rig::disk;
use crate::support::{draft, home, iterations};

fn bytes_schema() -> Schema {
    Schema::new(vec![Field::new("b", FieldType::Bytes)]).unwrap()
}

/// First record and number of records of each chunk of stream `s`, with its ordinal.
fn chunks(store: &Store) -> Vec<(u64, u64, u64)> {
    let id = store.recording("run").unwrap().stream("s").unwrap().id();
    let view = store.view(id).unwrap();
    view.chunks.iter().map(|(ordinal, row)| (ordinal.0, row.first.0, row.records)).collect()
}

/// Are records whole in one chunk each, and one above the target alone, small or in an object?
#[test]
fn rec24_records_are_never_split_and_a_large_one_sits_alone() {
    let home = home();
    let store = &home.store;
    let new = store.record("run", &bytes_schema()).stream("s", ["b"]).chunk_bytes(1000);
    let run = new.start().unwrap();
    // 13 bytes a record besides its value; the fourth and the seventh pass the target, the seventh
    // also what the journal holds itself.
    let lens = [300, 300, 300, 5000, 300, 300, 400_000, 10, 987, 988];
    for (at, len) in lens.iter().enumerate() {
        run.append(0, at as i64, &[Value::Bytes(&vec![at as u8; *len])]).unwrap();
    }
    run.complete().unwrap();
    let expected = [(0, 0, 3), (1, 3, 1), (2, 4, 2), (3, 6, 1), (4, 7, 1), (5, 8, 1), (6, 9, 1)];
    assert_eq!(chunks(store), expected);
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    let values = stream.field("b").unwrap().to_vec::<Vec<u8>>().unwrap();
    for (at, (value, len)) in values.iter().zip(lens).enumerate() {
        assert!(*value == vec![at as u8; len], "record {at}");
    }
}

/// Are ordinals dense over barriers and batches, and does a finished recording accept nothing?
#[test]
fn rec25_ordinals_are_dense_and_an_end_is_final() {
    let home = home();
    let store = &home.store;
    let run = draft(store).stream("s", ["x"]).chunk_records(3).start().unwrap();
    for iteration in 0..100 {
        run.append(0, iteration, &[Value::F64(1.0)]).unwrap();
        if iteration % 7 == 0 {
            run.barrier().unwrap();
        }
    }
    run.complete().unwrap();
    let expected = (0..34).map(|n| (n, 3 * n, if n == 33 { 1 } else { 3 }));
    assert!(chunks(store).into_iter().eq(expected));
    let refused = draft(store).stream("s", ["x"]).start().map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    assert_eq!(store.claims(9).unwrap().len(), 0);
    assert_eq!(iterations(store, "s"), (0..100).collect::<Vec<_>>());
}

/// Do many small chunks take few commits, and is the memory they wait in bounded? (Short form of
/// `examples/many_chunks.rs`.)
#[test]
fn rec26_many_chunks_go_together_and_leave_memory() {
    let home = home();
    let store = &home.store;
    let options = StreamOptions::new("s", ["b"]).chunk_records(1);
    let run = store.record("run", &bytes_schema()).stream_as(options).start().unwrap();
    let before = store.stats().unwrap().commit.0;
    let value = |at: i64| at.to_le_bytes().repeat(4);
    let mut most = 0;
    for at in 0..5000i64 {
        run.append(0, at, &[Value::Bytes(&value(at))]).unwrap();
        if at % 500 == 0 {
            let id = store.recording("run").unwrap().stream("s").unwrap().id();
            most = most.max(store.view(id).unwrap().tail.len());
        }
    }
    run.complete().unwrap();
    let commits = store.stats().unwrap().commit.0 - before;
    assert!(commits < 40, "{commits} commits for 5000 chunks");
    assert!(most <= 1025, "{most} records waited");
    assert_eq!(chunks(store).len(), 5000);
    let stream = store.recording("run").unwrap().stream("s").unwrap();
    let last = stream.field("b").unwrap().records(4999..5000).to_vec::<Vec<u8>>().unwrap();
    assert_eq!(last, [value(4999)]);
}

/// Do the streams of a recording that has ended stay as they are, whoever appends to them or publishes
/// a chunk of them, before and after reopening the store; and grow once it goes on? (REC25)
#[test]
fn rec25_a_recording_that_ended_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.stone");
    let grow = |store: &Store| {
        let stream = store.recording("run").unwrap().stream("a").unwrap().id();
        let payload = vec![1; 3000];
        let first = Sequence(iterations(store, "a").len() as u64);
        let appended = store.append(vec![Append { stream, payload: payload.clone() }]).map(drop);
        let chunk = ChunkBuild {
            stream,
            first,
            records: 1,
            raw_len: 3000,
            content: payload,
            about: Vec::new(),
            iterations: None,
            times: None,
            payloads: Vec::new(),
        };
        let published = store.publish_chunks(vec![chunk]).map(drop);
        [appended, published].map(|grown| grown.map_err(|e| e.kind()))
    };
    let refused = [Err(ErrorKind::Conflict), Err(ErrorKind::Conflict)];
    for is_complete in [true, false] {
        let store = Store::options().open_or_create(&path).unwrap();
        let run = draft(&store).stream("a", ["x"]).start().unwrap();
        run.append(0, 1, &[Value::F64(1.0)]).unwrap();
        match is_complete {
            true => run.complete().unwrap(),
            false => run.fail("enough").unwrap(),
        }
        assert_eq!(grow(&store), refused);
        store.close().unwrap();
        let store = Store::open(&path).unwrap();
        assert_eq!(grow(&store), refused);
        assert_eq!(iterations(&store, "a"), [1]);
        let on = store.resume("run").from(ResumeFrom::Tail).reopen().start().unwrap();
        on.recorder.append(0, 2, &[Value::F64(2.0)]).unwrap();
        on.recorder.barrier().unwrap();
        assert_eq!(iterations(&store, "a"), [1, 2]);
        on.recorder.complete().unwrap();
        assert_eq!(grow(&store), refused);
        {
            let _off = switch_off(Protection::EndedGrowsNot);
            assert_eq!(grow(&store)[0], Ok(()), "the mutant grows it");
        }
        store.retire_recording("run", "again").unwrap();
        store.close().unwrap();
    }
}

/// What a window of chunks cost: commits, calls that change the disk, bytes written.
fn costs_of_windows(windows: usize, chunks: u64) -> Vec<[u64; 3]> {
    let traced = TraceDisk::counting(Arc::new(disk(26)));
    let mut limits = Limits::default();
    (limits.sealed_folders, limits.ballast_bytes, limits.background) = (2, 0, false);
    let store = Store::options().limits(limits).disk(Arc::new(traced.clone()));
    let store = store.create("/data/run.stone").unwrap();
    let schema = Schema::new(vec![Field::new("v", FieldType::F64)]).unwrap();
    let new = store.record("many", &schema).stream("s", ["v"]).chunk_records(1);
    let run = new.start().unwrap();
    let commits = || store.stats().unwrap().commit.0;
    let (mut next, mut costs) = (0i64, Vec::new());
    for _ in 0..windows {
        let (before, began) = (traced.counts(), commits());
        for _ in 0..chunks {
            run.append(0, next, &[Value::F64(next as f64)]).unwrap();
            next += 1;
        }
        let cost = traced.counts().since(&before);
        costs.push([commits() - began, cost.mutations(), cost.bytes_written]);
    }
    run.complete().unwrap();
    let stream = store.recording("many").unwrap().stream("s").unwrap();
    assert_eq!(stream.chunk_count() as u64, windows as u64 * chunks);
    costs
}

/// Does a chunk cost what the chunks long before it cost, in commits, in calls of the disk, in bytes, but
/// for the one index whose order is that of no time?
#[test]
fn rec26_a_chunk_costs_no_more_for_those_before_it() {
    const CHUNKS: u64 = 2000;
    let costs = costs_of_windows(5, CHUNKS);
    println!("{costs:?}");
    // The first window also fills the batches up to a thousand chunks. A batch touches each page of the
    // index of digests, which holds 64 of them and more, until there are as many pages as chunks in it.
    let ([commits, early, early_bytes], [late_commits, late, late_bytes]) = (costs[1], costs[4]);
    let pages = late_commits * 3 * CHUNKS / 64 + 20;
    assert!(late_commits <= commits + 1, "{costs:?}");
    assert!(late <= early + pages, "{costs:?}");
    assert!(late_bytes <= early_bytes + pages * 4096, "{costs:?}");
}
