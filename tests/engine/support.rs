//! What the engine's tests share: a small store, and chunks of opaque records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::Limits;
use sealstone::engine::{Append, ChunkBuild, Options, Store, StreamView};
use sealstone::ids::{Sequence, StreamId};
use sealstone::journal::Payload;
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

/// Bounds small enough that every path is taken soon.
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

pub fn on(disk: &SimDisk) -> Options {
    Store::options().limits(small()).disk(Arc::new(disk.clone()))
}

pub fn append(store: &Store, stream: StreamId, payload: &[u8]) -> Sequence {
    let group = vec![Append { stream, payload: payload.to_vec() }];
    store.append(group).unwrap().sequences[0]
}

/// A chunk of the tail's first `records` records, one length-prefixed payload after another.
pub fn chunk(store: &Store, stream: StreamId, records: usize) -> ChunkBuild {
    let view = store.view(stream).unwrap();
    let mut content = Vec::new();
    for (_, payload) in &view.tail[..records] {
        let bytes = store.payload_bytes(payload).unwrap();
        content.extend((bytes.len() as u32).to_le_bytes());
        content.extend(bytes);
    }
    ChunkBuild {
        stream,
        first: view.row.sealed_upto,
        records: records as u64,
        raw_len: content.len() as u64,
        content,
        about: b"test".to_vec(),
        iterations: None,
        times: None,
        payloads: Vec::new(),
    }
}

/// Every record of a stream, sealed and unsealed, in order.
pub fn read(store: &Store, stream: StreamId) -> Vec<Vec<u8>> {
    let view: StreamView = store.view(stream).unwrap();
    let mut records = Vec::new();
    for (_, row) in &view.chunks {
        let bytes = store.fetch(row.object).unwrap();
        let mut rest = &bytes[..];
        for _ in 0..row.records {
            let (len, tail) = rest.split_at(4);
            let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
            records.push(tail[..len].to_vec());
            rest = &tail[len..];
        }
    }
    for (_, payload) in &view.tail {
        match payload {
            Payload::Inline(bytes) => records.push(bytes.to_vec()),
            other => records.push(store.payload_bytes(other).unwrap()),
        }
    }
    records
}
