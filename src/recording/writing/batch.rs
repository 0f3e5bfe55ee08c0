//! Full chunks on their way: their records are in the journal and in memory, so that they can wait
//! and go together, many in one commit.

use super::about_chunk::AboutChunk;
use super::open_stream::OpenStream;
use super::tally::{Counted, Span, Tally};
use crate::engine::{ChunkBuild, Store, StreamView};
use crate::error::Result;
use crate::format::column::{ChunkBuilder, Schema, Value, row_payload, split_dropped};
use crate::ids::{Sequence, StreamId};
use crate::journal::Payload;
use crate::recording::describing::ChunkLimits;

/// A batch goes once it holds as many chunks as went before it, at most so many,
const CHUNKS: usize = 1000;
/// or so many bytes of records: all of it follows from records and limits alone.
const BYTES: u64 = 8 << 20;

/// Chunks that wait to be published, in the order in which they were full.
#[derive(Debug, Default)]
pub(in crate::recording) struct Batch {
    spans: Vec<(usize, Span)>,
    raw_len: u64,
    /// Chunks that went before.
    gone: usize,
}

impl Batch {
    /// A batch behind so many chunks.
    pub fn behind(gone: usize) -> Self {
        Self { gone, ..Self::default() }
    }

    /// Adds a chunk of the stream at `position`.
    pub fn push(&mut self, position: usize, span: Span) {
        self.raw_len = self.raw_len.saturating_add(span.raw_len);
        self.spans.push((position, span));
    }

    /// Whether it is to be published.
    pub fn is_due(&self) -> bool {
        self.spans.len() >= self.gone.clamp(1, CHUNKS) || self.raw_len >= BYTES
    }

    /// Publishes all of it, in one commit. After an error it is as it was.
    pub fn publish(&mut self, store: &Store, streams: &[OpenStream]) -> Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let mut builds = Vec::with_capacity(self.spans.len());
        let mut dropped = Vec::new();
        let mut builder: Option<(usize, ChunkBuilder)> = None;
        for (position, span) in &self.spans {
            let Some(stream) = streams.get(*position) else { continue };
            let mut at_hand = match builder.take() {
                Some((of, builder)) if of == *position => builder,
                _ => ChunkBuilder::new(stream.schema.clone()),
            };
            let (made, before) = build(store, stream, *span, &mut at_hand)?;
            builds.push(made);
            if before > 0 {
                dropped.push((stream.id, before));
            }
            builder = Some((*position, at_hand));
        }
        store.publish_counting(builds, dropped)?;
        self.gone = self.gone.saturating_add(self.spans.len());
        self.spans.clear();
        self.raw_len = 0;
        Ok(())
    }
}

/// Makes a chunk of the unsealed records `span`; with how many were dropped before them.
fn build(
    store: &Store,
    stream: &OpenStream,
    span: Span,
    builder: &mut ChunkBuilder,
) -> Result<(ChunkBuild, u64)> {
    let payloads = store.tail_payloads(stream.id, span.first..span.first + span.records)?;
    builder.clear();
    let dropped = fill(store, &stream.schema, payloads.iter(), builder)?;
    Ok((finish(stream.id, &stream.name, span.first, builder)?, dropped))
}

/// The unsealed records of a stream as it was seen, up to `end`, as the chunks that its own writer makes
/// of them.
pub(in crate::recording) fn chunks_of_view(
    store: &Store,
    view: &StreamView,
    schema: &Schema,
    limits: &ChunkLimits,
    end: Sequence,
) -> Result<Vec<ChunkBuild>> {
    let first = view.row.sealed_upto;
    let count = end.0.saturating_sub(first.0) as usize;
    let mut tally = Tally::new(first.0, None);
    let mut spans = Vec::new();
    for (_, payload) in view.tail.iter().take(count) {
        let mut fetched = Vec::new();
        let bytes = store.payload_slice(payload, &mut fetched)?;
        spans.extend(tally.add(limits, Counted::of(schema, bytes)?));
    }
    spans.extend(tally.cut());
    let mut builder = ChunkBuilder::new(schema.clone());
    let mut builds = Vec::with_capacity(spans.len());
    for span in spans {
        let from = (span.first - first.0) as usize;
        let payloads = view.tail.iter().skip(from).take(span.records as usize);
        builder.clear();
        fill(store, schema, payloads.map(|(_, payload)| payload), &mut builder)?;
        builds.push(finish(view.stream, &view.row.name, span.first, &mut builder)?);
    }
    Ok(builds)
}

/// Adds the records; returns how many were dropped before them.
fn fill<'p>(
    store: &Store,
    schema: &Schema,
    payloads: impl Iterator<Item = &'p Payload>,
    builder: &mut ChunkBuilder,
) -> Result<u64> {
    let mut dropped = 0u64;
    let mut values: Vec<Value<'p>> = Vec::with_capacity(schema.fields().len());
    for payload in payloads {
        if let Payload::Inline(bytes) = payload {
            let (iteration, time) = row_payload::decode(schema, bytes, &mut values)?;
            builder.push(iteration, time, &values)?;
            dropped = split_dropped(bytes)?.0.saturating_add(dropped);
            continue;
        }
        let bytes = store.payload_bytes(payload)?;
        let mut values: Vec<Value<'_>> = Vec::with_capacity(schema.fields().len());
        let (iteration, time) = row_payload::decode(schema, &bytes, &mut values)?;
        builder.push(iteration, time, &values)?;
        dropped = split_dropped(&bytes)?.0.saturating_add(dropped);
    }
    Ok(dropped)
}

fn finish(
    stream: StreamId,
    name: &str,
    first: u64,
    builder: &mut ChunkBuilder,
) -> Result<ChunkBuild> {
    let chunk = builder.finish()?;
    let about = AboutChunk::new(name, first, &chunk).to_bytes()?;
    Ok(ChunkBuild {
        stream,
        first: Sequence(first),
        records: chunk.records,
        about,
        raw_len: chunk.raw_len,
        iterations: Some(chunk.iterations),
        times: chunk.times,
        payloads: Vec::new(),
        content: chunk.content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do a million small chunks take a thousand commits, and few more?
    #[test]
    fn a_million_chunks_take_about_a_thousand_commits() {
        let (mut batch, mut commits) = (Batch::behind(0), 0);
        for first in 0..1_000_000 {
            batch.push(0, Span { first, records: 1, raw_len: 8 });
            if batch.is_due() {
                commits += 1;
                batch = Batch::behind(batch.gone + batch.spans.len());
            }
        }
        assert!((1000..1020).contains(&commits), "{commits}");
    }
}
