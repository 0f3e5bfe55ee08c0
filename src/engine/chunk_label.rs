//! What the label of a sealed file says of a chunk: the row that is to refer to it, and the rows of
//! its stream and recording, so that a chunk newer than the newest snapshot can be salvaged.

use std::collections::BTreeMap;

use super::publish::ChunkBuild;
use super::seal::RowText;
use crate::error::Result;
use crate::ids::{Generation, ObjectId, Ordinal, StreamId};
use crate::manifest::{ChunkRow, Key, Raw, Reading, Snapshot, StreamRow, Table, to_value};

/// The labels of the chunks of one publication.
pub(super) struct ChunkLabels {
    snapshot: Snapshot,
    /// Each stream: the ordinal of its next chunk, and what is told of it.
    streams: BTreeMap<StreamId, (Ordinal, Vec<RowText>)>,
}

impl ChunkLabels {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, streams: BTreeMap::new() }
    }

    /// The row of `build` as it will be, but for its object, and the rows of its stream. The
    /// transaction that writes the row fails unless the stream is still as it is now.
    pub(super) fn of(
        &mut self,
        build: &ChunkBuild,
        generation: Generation,
    ) -> Result<(RowText, Vec<RowText>)> {
        let (ordinal, context) = match self.streams.remove(&build.stream) {
            Some(known) => known,
            None => self.look_up(build.stream)?,
        };
        let row = ChunkRow {
            object: ObjectId(0),
            generation,
            first: build.first,
            records: build.records,
            records_written: build.records,
            iterations: build.iterations,
            times: build.time_bits(),
            raw_len: build.raw_len,
            payloads: build.payloads.clone(),
        };
        let key = (build.stream, ordinal).to_bytes();
        let value = to_value(&key, &row)?;
        let next = (ordinal.next().unwrap_or(ordinal), context.clone());
        self.streams.insert(build.stream, next);
        Ok(((Table::Chunks.number(), key, value), context))
    }

    fn look_up(&self, stream: StreamId) -> Result<(Ordinal, Vec<RowText>)> {
        let Some(row) = self.snapshot.get::<StreamRow>(&stream)? else {
            return Ok((Ordinal(0), Vec::new()));
        };
        let recording = row.recording.map(|recording| (Table::Recordings, recording.to_bytes()));
        let mut context = Vec::new();
        for (table, key) in [(Table::Streams, stream.to_bytes())].into_iter().chain(recording) {
            if let Some(value) = self.snapshot.raw_get(table, &key)? {
                context.push((table.number(), key, value));
            }
        }
        Ok((row.next_ordinal, context))
    }
}
