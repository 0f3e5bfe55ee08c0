//! A store in which every kind of file and row stands, and ways to look at it and to damage it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::Limits;
use sealstone::check::{CheckOptions, Report, Severity, check};
use sealstone::engine::{Append, Budget, ChunkBuild, Options, Store, Thing};
use sealstone::error::Result;
use sealstone::ids::StreamId;
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::vfs::sim::{Rng, SimDisk};
use sealstone::vfs::{Access, Disk, EntryKind, read_whole};

pub fn small() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.background = false;
    limits
}

pub fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk
}

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

pub fn on(disk: Arc<dyn Disk>) -> Options {
    Store::options().limits(small()).disk(disk)
}

fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

fn append(store: &Store, stream: StreamId, rng: &mut Rng, records: usize) {
    for _ in 0..records {
        let payload = noise(rng, 60);
        store.append(vec![Append { stream, payload }]).unwrap();
    }
    store.barrier().unwrap();
}

fn seal(store: &Store, stream: StreamId, records: usize) {
    let view = store.view(stream).unwrap();
    let mut content = Vec::new();
    for (_, payload) in &view.tail[..records] {
        content.extend(store.payload_bytes(payload).unwrap());
    }
    let build = ChunkBuild {
        stream,
        first: view.row.sealed_upto,
        records: records as u64,
        raw_len: content.len() as u64,
        content,
        about: b"test".to_vec(),
        iterations: None,
        times: None,
        payloads: Vec::new(),
    };
    store.publish_chunks(vec![build]).unwrap();
}

/// Fills a store with everything: sealed files whole, partly dead and condemned, inline objects, a
/// rewound stream, checkpoints, leases, a claim, an unsealed tail.
pub fn fill(store: &Store, seed: u64) {
    let rng = &mut Rng::new(seed);
    let streams: Vec<_> =
        ["a", "b", "c"].iter().map(|name| store.create_stream(name).unwrap()).collect();
    for &stream in &streams {
        append(store, stream, rng, 30);
        seal(store, stream, 10);
        seal(store, stream, 5);
    }
    store.checkpoint(1, &streams, b"a small state").unwrap();
    append(store, streams[0], rng, 12);
    seal(store, streams[0], 20);
    let state = noise(rng, 100 << 10);
    store.checkpoint(1, &streams, &state).unwrap();
    append(store, streams[0], rng, 9);
    let back = store.latest_checkpoint(1).unwrap();
    store.rewind(&back.cursors[..1]).unwrap();
    append(store, streams[0], rng, 3);
    let keep = store.lease("keeper", "test", None, &[]).unwrap();
    let go = store.lease("leaver", "test", None, &[]).unwrap();
    store.put_objects(keep, vec![noise(rng, 40), noise(rng, 3000), noise(rng, 9000)]).unwrap();
    let dead = noise(rng, 5000);
    let shared = vec![noise(rng, 6000), dead.clone()];
    store.put_objects(go, shared).unwrap();
    store.put_objects(keep, vec![dead]).unwrap();
    store.retire(&[Thing::Lease(go)], "test").unwrap();
    let gone = store.lease("gone", "test", None, &[]).unwrap();
    store.put_objects(gone, vec![noise(rng, 2000)]).unwrap();
    store.retire(&[Thing::Lease(gone)], "test").unwrap();
}

/// As [`fill`], in a store of its own, closed.
pub fn filled(seed: u64) -> SimDisk {
    let disk = sim(seed);
    let store = on(Arc::new(disk.clone())).create(root()).unwrap();
    fill(&store, seed);
    store.close().unwrap();
    disk
}

/// As [`filled`], killed while a claim stands.
pub fn killed(seed: u64) -> SimDisk {
    let disk = sim(seed);
    let writer = disk.process(7);
    let store = on(Arc::new(writer.clone())).create(root()).unwrap();
    store.reclaim(Budget::default()).unwrap();
    fill(&store, seed);
    let claim = store.claim(&ResourceKey::from("work"), ClaimKind::Maintenance).unwrap();
    writer.kill();
    std::mem::forget((claim, store));
    disk
}

/// Checks a store; whatever comes of it, nothing on disk may have been changed (G20).
pub fn look_at(disk: &SimDisk, path: &Path, fast: bool) -> Result<Report> {
    let options =
        CheckOptions { fast, disk: Some(Arc::new(disk.clone())), ..CheckOptions::default() };
    let before = disk.counts();
    let report = check(path, &options, &mut |_| ControlFlow::Continue(()));
    let after = disk.counts();
    assert_eq!(after.mutations(), before.mutations(), "G20: a check changed something");
    assert_eq!(after.open_handles, before.open_handles, "a check left files open");
    report
}

pub fn look(disk: &SimDisk) -> Report {
    look_at(disk, &root(), false).unwrap()
}

/// Everything that a report says, for messages.
pub fn text(report: &Report) -> String {
    report.findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// Whether a finding that is more than a note names `place`.
pub fn names(report: &Report, place: &str) -> bool {
    let amiss = |f: &&sealstone::check::Finding| f.severity > Severity::Note;
    report.findings.iter().filter(amiss).any(|finding| finding.place.contains(place))
}

/// Every file below the root whose bytes matter, with its length.
pub fn files(disk: &SimDisk) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut dirs = vec![root()];
    while let Some(dir) = dirs.pop() {
        for entry in disk.list(&dir).unwrap() {
            let path = dir.join(&entry.name);
            match entry.kind {
                EntryKind::Directory => dirs.push(path),
                _ => found.push((path.clone(), disk.meta(&path).unwrap().unwrap().len)),
            }
        }
    }
    // Ballast and lock files say nothing: no byte of theirs is read.
    found.retain(|(path, _)| {
        !path.ends_with("ballast") && path.extension() != Some("lock".as_ref())
    });
    found.sort();
    found
}

pub fn bytes_of(disk: &SimDisk, path: &Path) -> Vec<u8> {
    read_whole(&*disk.open(path, Access::Read).unwrap(), u64::MAX).unwrap()
}

pub fn flip(disk: &SimDisk, path: &Path, at: u64) {
    let file = disk.open(path, Access::ReadWrite).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at).unwrap();
    file.write_at(&[byte[0] ^ 0x40], at).unwrap();
}

pub fn replace(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    disk.unlink(path).unwrap();
    let file = disk.open(path, Access::CreateNew).unwrap();
    sealstone::vfs::write_all_at(&*file, bytes, 0).unwrap();
}

pub fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}
