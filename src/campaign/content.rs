//! Everything a store shows, read through its public face.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::model::Bytes;
use crate::digest::{Digest, Hasher};
use crate::engine::Store;
use crate::error::{Error, Result};
use crate::ids::StreamId;
use crate::journal::Payload;
use crate::manifest::{
    CheckpointRow, ChunkRow, ClaimRow, LeaseRow, Reading, Snapshot, StateBytes, StreamRow,
};

/// A checkpoint: cursors as (stream, end), and the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// Streams and their ends.
    pub cursors: Vec<(u64, u64)>,
    /// The state.
    pub state: Bytes,
}

/// What a store shows. Payloads that a journal keeps are seen through their records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Streams: name and records.
    pub streams: BTreeMap<u64, (String, Vec<Bytes>)>,
    /// Leases: objects under each.
    pub leases: BTreeMap<u64, Vec<Bytes>>,
    /// Checkpoints by scope and number.
    pub checkpoints: BTreeMap<(u64, u64), SavedState>,
    /// Values of names, newest first, with their generations.
    pub names: BTreeMap<String, Vec<(u64, Bytes)>>,
    /// Claims that stand.
    pub claims: Vec<Vec<u8>>,
    /// Records whose payload is an object that the journal keeps.
    pub large: u64,
    /// Leases by which it keeps them.
    pub large_leases: u64,
}

/// The holder of leases that the journal makes for itself.
const JOURNAL_HOLDER: &str = "journal";

impl Content {
    /// Reads all of it.
    ///
    /// # Errors
    /// The first that reading met.
    pub fn read(store: &Store) -> Result<Self> {
        let snapshot = store.snapshot()?;
        let mut content = Self::default();
        let rows = snapshot.list::<StreamRow>(.., usize::MAX)?;
        let ids: Vec<StreamId> = rows.iter().map(|(id, _)| *id).collect();
        for (view, (id, row)) in store.views(&ids)?.into_iter().zip(rows) {
            let mut records = Vec::new();
            for (_, chunk) in &view.chunks {
                decode_chunk(store, &snapshot, chunk, &mut records)?;
            }
            for (_, payload) in &view.tail {
                content.large += u64::from(matches!(payload, Payload::Object { .. }));
                records.push(Arc::from(store.payload_bytes(payload)?));
            }
            content.streams.insert(id.0, (row.name, records));
        }
        for (id, row) in snapshot.list::<LeaseRow>(.., usize::MAX)? {
            if row.holder == JOURNAL_HOLDER {
                content.large_leases += 1;
                continue;
            }
            let objects = row.objects.iter().map(|object| Ok(Arc::from(store.fetch(*object)?)));
            content.leases.insert(id.0, objects.collect::<Result<_>>()?);
        }
        for ((scope, id), row) in snapshot.list::<CheckpointRow>(.., usize::MAX)? {
            let state = match row.state {
                StateBytes::Inline(bytes) => bytes,
                StateBytes::Object(object) => store.fetch(object)?,
            };
            let cursors = row.cursors.iter().map(|c| (c.stream.0, c.end.0)).collect();
            let saved = SavedState { cursors, state: Arc::from(state) };
            content.checkpoints.insert((scope, id.0), saved);
        }
        let state = store.state();
        for entry in state.list("") {
            let name = entry?.name;
            let values = state.versions(&name)?.into_iter().map(|entry| {
                let bytes = state.get_bytes_at(&name, entry.generation)?;
                Ok((entry.generation.0, Arc::from(bytes)))
            });
            let values = values.collect::<Result<_>>()?;
            content.names.insert(name, values);
        }
        for (resource, _) in snapshot.list::<ClaimRow>(.., usize::MAX)? {
            content.claims.push(resource.0);
        }
        Ok(content)
    }

    /// Names what is shown, claims aside: those go with their owner.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        let mut put = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (id, (name, records)) in &self.streams {
            put(&id.to_le_bytes());
            put(name.as_bytes());
            records.iter().for_each(|record| put(record));
        }
        for (id, objects) in &self.leases {
            put(&id.to_le_bytes());
            objects.iter().for_each(|object| put(object));
        }
        for ((scope, id), saved) in &self.checkpoints {
            put(&scope.to_le_bytes());
            put(&id.to_le_bytes());
            put(&saved.state);
        }
        for (name, values) in &self.names {
            put(name.as_bytes());
            for (generation, bytes) in values {
                put(&generation.to_le_bytes());
                put(bytes);
            }
        }
        hasher.finish()
    }
}

/// Stands for a record whose bytes are an object named by the digest that follows.
const BY_DIGEST: u32 = u32::MAX;

/// Appends one record to the content of a chunk.
pub fn encode_record(record: &Payload, into: &mut Vec<u8>) {
    match record {
        Payload::Inline(bytes) => {
            into.extend((bytes.len() as u32).to_le_bytes());
            into.extend(&bytes[..]);
        }
        Payload::Object { digest, .. } => {
            into.extend(BY_DIGEST.to_le_bytes());
            into.extend(digest.0);
        }
    }
}

fn decode_chunk(
    store: &Store,
    snapshot: &Snapshot,
    chunk: &ChunkRow,
    records: &mut Vec<Bytes>,
) -> Result<()> {
    let bytes = store.fetch(chunk.object)?;
    let short = || Error::damage("read", "chunk", "it ends inside a record");
    let mut rest = &bytes[..];
    for _ in 0..chunk.records {
        let (len, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let len = u32::from_le_bytes(*len);
        if len == BY_DIGEST {
            let (digest, after) = after.split_first_chunk::<32>().ok_or_else(short)?;
            let digest = Digest(*digest);
            let objects = snapshot.object_of(&digest)?;
            let Some((object, _)) = objects.first() else {
                return Err(Error::damage("read", digest, "no object has the digest in a chunk"));
            };
            records.push(Arc::from(store.fetch(*object)?));
            rest = after;
        } else {
            let (record, after) = after.split_at_checked(len as usize).ok_or_else(short)?;
            records.push(Arc::from(record));
            rest = after;
        }
    }
    Ok(())
}
