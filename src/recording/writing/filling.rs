//! The open end of one stream that is filled in bulk: records since its last chunk, column by column.
//!
//! A chunk ends where the next record would pass `chunk_bytes`, never at a barrier or by timing, so
//! equal runs give equal chunks. Ending a recording, a flush and a lack of memory end one earlier.

use super::about_chunk::AboutChunk;
use crate::engine::ChunkBuild;
use crate::error::{Error, Result};
use crate::format::column::{ChunkBuilder, EncodedChunk, Schema, Value};
use crate::ids::{Sequence, StreamId};

/// One stream's end.
#[derive(Debug)]
pub(super) struct Filling {
    /// Absent until its row is written.
    pub id: Option<StreamId>,
    pub name: String,
    builder: ChunkBuilder,
    /// The sequence of the builder's first record.
    first: u64,
    last_iteration: Option<i64>,
    last_time: Option<f64>,
}

impl Filling {
    pub fn new(id: Option<StreamId>, name: String, schema: Schema) -> Self {
        let builder = ChunkBuilder::new(schema);
        Self { id, name, builder, first: 0, last_iteration: None, last_time: None }
    }

    pub fn schema(&self) -> &Schema {
        self.builder.schema()
    }

    pub fn record_count(&self) -> u64 {
        self.first + self.builder.record_count()
    }

    /// Memory that its records take, without what every open stream takes.
    pub fn held_len(&self) -> u64 {
        self.builder.cells_len()
    }

    /// Whether a record can come next.
    pub fn check(&self, iteration: i64, time: Option<f64>, values: &[Value<'_>]) -> Result<()> {
        self.schema().check_row(values).map_err(|e| self.named(&e))?;
        self.check_iteration(iteration, self.last_iteration)?;
        self.check_time(time, self.last_time)
    }

    /// Whether `time` can come after `last`.
    pub fn check_time(&self, time: Option<f64>, last: Option<f64>) -> Result<()> {
        self.schema().check_time(last, time).map_err(|e| self.named(&e))
    }

    fn named(&self, e: &Error) -> Error {
        let cause = format!("{}: {}", e.place(), e.cause());
        Error::new(e.kind(), "append", format!("stream {:?}", self.name), cause)
    }

    /// Whether `iteration` comes after `last`.
    pub fn check_iteration(&self, iteration: i64, last: Option<i64>) -> Result<()> {
        match last {
            Some(last) if iteration <= last => {
                let cause = format!("iteration {iteration} does not follow {last}");
                Err(Error::invalid("append", format!("stream {:?}", self.name), cause))
            }
            _ => Ok(()),
        }
    }

    /// Adds a record; returns the chunk that it would have overfilled, if there is one.
    pub fn push(
        &mut self,
        iteration: i64,
        time: Option<f64>,
        values: &[Value<'_>],
        chunk_bytes: u64,
    ) -> Result<Option<Sealed>> {
        self.check(iteration, time, values)?;
        let is_full = self.builder.is_full_for(values, chunk_bytes);
        let full = if is_full { self.seal()? } else { None };
        self.builder.push(iteration, time, values)?;
        self.last_iteration = Some(iteration);
        self.last_time = time;
        Ok(full)
    }

    /// Encodes the records at hand; `None` when there is none.
    pub fn seal(&mut self) -> Result<Option<Sealed>> {
        if self.builder.record_count() == 0 {
            return Ok(None);
        }
        let chunk = self.builder.finish()?;
        let first = self.first;
        self.first += chunk.records;
        Ok(Some(Sealed { first, chunk }))
    }
}

/// An encoded chunk and its place in its stream.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    first: u64,
    chunk: EncodedChunk,
}

impl Sealed {
    pub fn content_len(&self) -> u64 {
        self.chunk.content.len() as u64
    }

    /// What the engine is given.
    pub fn build(self, stream: StreamId, name: &str) -> Result<ChunkBuild> {
        let about = AboutChunk::new(name, self.first, &self.chunk).to_bytes()?;
        Ok(ChunkBuild {
            stream,
            first: Sequence(self.first),
            records: self.chunk.records,
            about,
            raw_len: self.chunk.raw_len,
            iterations: Some(self.chunk.iterations),
            times: self.chunk.times,
            payloads: Vec::new(),
            content: self.chunk.content,
        })
    }
}
