//! REC53: what goes when a recording is retired, and what stays.

use std::ops::ControlFlow;
use std::sync::Arc;

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Branch, Budget, Options};
use sealstone::manifest::{
    Cursor, Reading, RecordingNameRow, RecordingRow, RecordingStatus, Write,
};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::Value;
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Disk, EntryKind};
use sealstone::{ErrorKind, Store};

use crate::followed_run::schema;

fn options(disk: &SimDisk) -> Options {
    let mut limits = sealstone::Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.background = false;
    limits.snapshot_publications = 0;
    Store::options().limits(limits).disk(Arc::new(disk.clone()))
}

fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(std::path::Path::new("/data")).unwrap();
    disk
}

const ROOT: &str = "/data/run.stone";

/// A complete recording of `count` records, sealed in several chunks, none like another one's.
fn record(store: &Store, name: &str, count: i64, salt: f64) {
    let draft = store.record(name, &schema()).stream("s", ["x"]).chunk_bytes(4 << 10);
    let run = draft.start().unwrap();
    for n in 0..count {
        run.append(0, n, &[Value::F64((n as f64 + salt).sin())]).unwrap();
    }
    run.complete().unwrap();
}

fn values(store: &Store, name: &str) -> sealstone::Result<Vec<f64>> {
    store.recording(name)?.stream("s")?.field("x")?.to_vec()
}

/// A recording that begins as `from` was at its end, sharing its chunks.
fn fork(store: &Store, from: &str, name: &str) {
    let source = store.recording(from).unwrap();
    let stream = source.stream("s").unwrap();
    let row = store.view(stream.id()).unwrap().row;
    let (generation, end) = (row.generation, row.sealed_upto);
    let cursor = Cursor { stream: stream.id(), generation, end };
    let branch = Branch { cursor, shared_upto: end, unsealed: Vec::new() };
    let about = store.snapshot().unwrap().require::<RecordingRow>(&source.id()).unwrap().about;
    let named = |w: &mut Write, forked: &sealstone::engine::Forked| {
        let row = RecordingRow {
            name: name.to_owned(),
            status: RecordingStatus::Complete,
            streams: forked.streams.clone(),
            metadata: Vec::new(),
            created: None,
            schema: schema().to_bytes()?,
            about: about.clone(),
        };
        w.put(&forked.recording, &row)?;
        w.put(&name.to_owned(), &RecordingNameRow { recording: forked.recording })
    };
    store.seal_fork(vec![branch]).unwrap().publish(named).unwrap();
}

/// Bytes of all files under `sealed`.
fn sealed_bytes(disk: &SimDisk) -> u64 {
    let sealed = std::path::Path::new(ROOT).join("sealed");
    let mut bytes = 0;
    for folder in disk.list(&sealed).unwrap() {
        let folder = sealed.join(folder.name);
        for file in disk.list(&folder).unwrap() {
            if file.kind == EntryKind::File {
                bytes += disk.meta(&folder.join(file.name)).unwrap().unwrap().len;
            }
        }
    }
    bytes
}

/// Is a recording gone at once and whole, do forks keep what they share, and is the space given back?
#[test]
fn rec53_a_retired_recording_goes_and_its_fork_keeps_what_it_shares() {
    let disk = sim(1);
    let store = options(&disk).create(ROOT).unwrap();
    record(&store, "kept", 2000, 0.25);
    record(&store, "one", 2000, 0.5);
    let before = values(&store, "one").unwrap();
    let stored = store.recording("one").unwrap().stream("s").unwrap().stored_bytes().unwrap();
    fork(&store, "one", "branch");
    let both = sealed_bytes(&disk);
    let retired = store.retire_recording("one", "a test").unwrap();
    assert_eq!((retired.objects, retired.bytes), (0, 0), "all of it is shared");
    assert_eq!(store.recording("one").unwrap_err().kind(), ErrorKind::NotFound);
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(sealed_bytes(&disk), both);
    assert_eq!(values(&store, "branch").unwrap(), before);
    let retired = store.retire_recording("branch", "a test").unwrap();
    assert_eq!(retired.bytes, stored);
    assert_eq!(sealed_bytes(&disk), both, "given back by reclaim alone");
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    let left = sealed_bytes(&disk);
    assert_eq!(left, both - reclaimed.bytes);
    assert!(left <= both - stored, "{left} of {both} are left, {stored} were its chunks");
    assert_eq!(values(&store, "kept").unwrap().len(), 2000);
    let again = store.retire_recording("one", "a test").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    store.close().unwrap();
    let checked = CheckOptions { disk: Some(Arc::new(disk.clone())), ..Default::default() };
    let report = check(ROOT, &checked, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good() && report.findings.is_empty(), "{report:?}");
}

/// (mutant) Without a look at who else refers to a chunk, would a fork lose what it shares?
#[test]
fn rec53_without_edges_a_fork_loses_its_chunks() {
    let disk = sim(2);
    let store = options(&disk).create(ROOT).unwrap();
    record(&store, "one", 2000, 0.5);
    fork(&store, "one", "branch");
    let off = switch_off(Protection::RetireEdges);
    let retired = store.retire_recording("one", "a test");
    drop(off);
    let lost = retired.is_err() || values(&store, "branch").is_err() || {
        store.reclaim(Budget::default()).is_err() || values(&store, "branch").is_err()
    };
    assert!(lost, "the fork still reads");
}
