//! Two openings of one store in one test: processes of one simulated world.

use std::path::PathBuf;
use std::sync::Arc;

use sealstone::engine::{Append, ChunkBuild, Options, Store, WriteAccess};
use sealstone::ids::{Sequence, StreamId};
use sealstone::journal::{Level, Payload};
use sealstone::manifest::CheckIntegrity;
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;
use sealstone::{Limits, Result};

pub fn root() -> PathBuf {
    PathBuf::from("/run.stone")
}

pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.background = false;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.payload_inline_bytes_max = 1000;
    limits.object_inline_bytes_max = 64;
    limits.manifest_cache_bytes = 1 << 20;
    limits.ballast_bytes = 0;
    limits
}

pub fn options(disk: Arc<dyn Disk>, access: WriteAccess) -> Options {
    Store::options()
        .limits(limits())
        .disk(disk)
        .access(access)
        .check_integrity(CheckIntegrity::Always)
}

pub fn shared(disk: &SimDisk) -> Result<Store> {
    options(Arc::new(disk.clone()), WriteAccess::Shared).open_or_create(root())
}

pub fn single(disk: &SimDisk) -> Result<Store> {
    options(Arc::new(disk.clone()), WriteAccess::Single).open(root())
}

/// A world and its process `pid`, with a store opened in shared access.
pub fn world(seed: u64) -> (SimDisk, SimDisk, Store) {
    let world = SimDisk::new(seed);
    let disk = world.process(1);
    let store = shared(&disk).unwrap();
    (world, disk, store)
}

pub fn append(store: &Store, stream: StreamId, texts: &[&str]) {
    for text in texts {
        store.append(vec![Append { stream, payload: text.as_bytes().to_vec() }]).unwrap();
    }
}

pub fn durable(store: &Store, stream: StreamId, text: &str) -> Result<()> {
    let payload = text.as_bytes().to_vec();
    let accepted = store.append(vec![Append { stream, payload }])?;
    store.wait(&accepted.ticket, Level::Durable)
}

/// Every record of a stream as text: those of chunks, separated by newlines there, then the tail.
pub fn texts(store: &Store, stream: StreamId) -> Vec<String> {
    let view = store.view(stream).unwrap();
    let mut texts = Vec::new();
    for (_, chunk) in &view.chunks {
        let content = String::from_utf8(store.fetch(chunk.object).unwrap()).unwrap();
        texts.extend(content.lines().take(chunk.records as usize).map(str::to_owned));
    }
    for (_, payload) in &view.tail {
        let bytes = match payload {
            Payload::Inline(bytes) => bytes.to_vec(),
            other => store.payload_bytes(other).unwrap(),
        };
        texts.push(String::from_utf8(bytes).unwrap());
    }
    texts
}

/// Seals and publishes the whole tail of a stream.
pub fn publish(store: &Store, stream: StreamId) -> Result<()> {
    store.publish_chunks(vec![build(store, stream)]).map(drop)
}

pub fn build(store: &Store, stream: StreamId) -> ChunkBuild {
    let view = store.view(stream).unwrap();
    let first = view.row.sealed_upto;
    let tail: Vec<String> = texts(store, stream).split_off(first.0 as usize);
    let content = tail.join("\n").into_bytes();
    ChunkBuild {
        stream,
        first: Sequence(first.0),
        records: tail.len() as u64,
        raw_len: content.len() as u64,
        content,
        about: Vec::new(),
        iterations: None,
        times: None,
        payloads: Vec::new(),
    }
}
