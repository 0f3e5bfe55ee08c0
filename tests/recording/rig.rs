//! What the tests of the queue and of ends share: a store on a simulated disk, with a gate before its
//! journal where asked, and a recording of byte strings in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use sealstone::recording::{Field, FieldType, Recorder, Schema, Value};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;
use sealstone::{Error, Limits, Options, Store};

use super::gate::GateDisk;

pub fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

/// Small bounds, so that every path is taken soon; every step happens inside a call.
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.background = false;
    limits
}

pub fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

pub fn options(disk: impl Disk + 'static, limits: Limits) -> Options {
    Store::options().limits(limits).disk(Arc::new(disk))
}

/// A new store behind a gate that is open.
pub fn gated(limits: Limits) -> (GateDisk, Store) {
    let gate = GateDisk::new(Arc::new(disk(11)));
    let store = options(gate.clone(), limits).create(root()).unwrap();
    (gate, store)
}

pub fn schema() -> Schema {
    Schema::new(vec![Field::new("x", FieldType::Bytes), Field::new("y", FieldType::Bytes)]).unwrap()
}

/// A running recording called `run` of the streams `a` and `b`.
pub fn start(store: &Store) -> Recorder {
    let run = store.record("run", &schema()).stream("a", ["x"]).stream("b", ["y"]);
    run.start().unwrap()
}

/// Appends `len` bytes to `stream`.
pub fn append(
    run: &Recorder,
    stream: usize,
    iteration: i64,
    len: usize,
) -> sealstone::Result<sealstone::recording::Ticket> {
    run.append(stream, iteration, &[Value::Bytes(&vec![iteration as u8; len])])
}

/// The iterations that a stream of `run` shows.
pub fn iterations(store: &Store, stream: &str) -> Vec<i64> {
    let stream = store.recording("run").unwrap().stream(stream).unwrap();
    stream.iteration().to_vec().unwrap()
}

/// What a thread sends, or a failed test where it never does.
pub fn returned<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(Duration::from_secs(60)).expect("it never returned")
}

/// What was first said of it, by the disk.
pub fn root_cause(error: &Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
