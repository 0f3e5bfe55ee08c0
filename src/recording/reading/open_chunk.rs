//! A chunk that is open for reading. P6: what it gives passed the checksums inside the chunk. Only
//! the bytes that are wanted are read; where they do not fit, they are read once more with the
//! file's own checksums, which know the file and the place to name.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::diff::schemas;
use super::stream::{Bound, Stream};
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Chunk, Column, ColumnId};
use crate::ids::ObjectId;
use crate::manifest::{ChunkRow, ObjectRow, Reading};

/// Footers that a stream keeps, and the most blocks in them together: some 8 MiB of memory.
const FOOTERS_MAX: usize = 256;
const FOOTER_BLOCKS_MAX: usize = 1 << 16;

/// Footers that were read, the most recently used last.
pub(super) type Footers = Arc<Mutex<VecDeque<(ObjectId, Arc<Chunk>)>>>;

/// A chunk that is open for reading.
#[derive(Debug)]
pub(super) struct OpenChunk<'s> {
    store: &'s Store,
    object: ObjectId,
    /// Its whole content, where most of it is wanted.
    content: Option<Vec<u8>>,
    pub(super) chunk: Arc<Chunk>,
    /// Its records that count, in the stream.
    pub(super) records: Range<u64>,
}

impl Stream {
    /// Opens the chunk at position `at`.
    pub(super) fn open_chunk(&self, at: u64) -> Result<OpenChunk<'_>> {
        self.open_row(at, &self.chunks.get(at)?)
    }

    /// Opens the chunk at position `at`, whose row is `row`.
    pub(super) fn open_row(&self, at: u64, row: &ChunkRow) -> Result<OpenChunk<'_>> {
        let chunk = self.footer(at, row)?;
        let records = row.first.0..row.first.0.saturating_add(row.records);
        Ok(OpenChunk { store: &self.store, object: row.object, content: None, chunk, records })
    }

    fn footer(&self, at: u64, row: &ChunkRow) -> Result<Arc<Chunk>> {
        let known = |footers: &mut VecDeque<(ObjectId, Arc<Chunk>)>| {
            let at = footers.iter().position(|(object, _)| *object == row.object)?;
            let found = footers.remove(at)?;
            footers.push_back(found.clone());
            Some(found.1)
        };
        let mut footers = self.footers.lock();
        let chunk = match known(&mut footers) {
            Some(chunk) => chunk,
            None => {
                drop(footers);
                let read = Arc::new(self.read_footer(at, row)?);
                footers = self.footers.lock();
                let mut blocks = read.block_count();
                blocks += footers.iter().map(|(_, chunk)| chunk.block_count()).sum::<usize>();
                while footers.len() >= FOOTERS_MAX || blocks > FOOTER_BLOCKS_MAX {
                    let Some((_, gone)) = footers.pop_front() else { break };
                    blocks -= gone.block_count();
                }
                footers.push_back((row.object, Arc::clone(&read)));
                read
            }
        };
        // Equal chunks are one object: whose row it is, is seen each time.
        let fits = row
            .iterations
            .is_none_or(|said| said == chunk.iterations() || row.records < row.records_written);
        if let Some(what) = schemas(self.schema(), chunk.schema()) {
            let cause = format!("the stream's schema and the chunk's differ: {what}");
            return Err(Error::damage("read", self.chunk_place(at), cause));
        }
        if chunk.record_count() != row.records_written || !fits {
            let cause =
                "how many records it has or their iterations differ from what the manifest says";
            return Err(Error::damage("read", self.chunk_place(at), cause));
        }
        Ok(chunk)
    }

    fn read_footer(&self, at: u64, row: &ChunkRow) -> Result<Chunk> {
        let len = self.store.snapshot()?.require::<ObjectRow>(&row.object)?.len;
        // The ends of a stream's chunks are about as long as each other.
        let known = self.footers.lock().back().map(|(_, chunk)| chunk.end_len());
        read_twice(&self.store, row.object, &mut |read| match known {
            Some(end_len) => Chunk::open_with(self.chunk_place(at), len, end_len, read),
            None => Chunk::open(self.chunk_place(at), len, read),
        })
    }

    pub(super) fn chunk_place(&self, at: u64) -> String {
        format!("stream {:?} chunk {at}", self.name())
    }
}

/// Reads parts of an object.
type Read<'r> = dyn FnMut(u64, u64) -> Result<Vec<u8>> + 'r;

/// Does something with the bytes of an object that checks them itself. Where they are damaged they
/// are read again, verified by their file.
fn read_twice<T>(
    store: &Store,
    object: ObjectId,
    work: &mut dyn FnMut(&mut Read<'_>) -> Result<T>,
) -> Result<T> {
    let range = |at: u64, len: u64| at..at.saturating_add(len);
    let first = work(&mut |at, len| store.fetch_self_checked(object, range(at, len)));
    match first {
        Err(e) if e.kind() == ErrorKind::Damage => {
            work(&mut |at, len| store.fetch_range(object, range(at, len)))
        }
        first => first,
    }
}

impl OpenChunk<'_> {
    /// Fetches the whole content at once, for a reader of most of it.
    pub(super) fn fetch_whole(&mut self) -> Result<()> {
        self.content = Some(self.store.fetch(self.object)?);
        Ok(())
    }

    fn with_bytes<T>(&self, work: &mut dyn FnMut(&mut Read<'_>) -> Result<T>) -> Result<T> {
        let Some(content) = &self.content else {
            return read_twice(self.store, self.object, work);
        };
        work(&mut |offset, len| {
            let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
            let bytes = range.and_then(|(at, len)| content.get(at..)?.get(..len));
            bytes.map(<[u8]>::to_vec).ok_or_else(|| {
                let place = format!("object {}", self.object);
                Error::damage("read", place, "it is shorter than it says")
            })
        })
    }

    /// Decodes records of the stream that lie in this chunk.
    pub(super) fn column(&self, column: ColumnId, records: Range<u64>) -> Result<Column> {
        let records = records.start.max(self.records.start)..records.end.min(self.records.end);
        let within =
            records.start - self.records.start..records.end.max(records.start) - self.records.start;
        self.with_bytes(&mut |read| self.chunk.column(read, column, within.clone()))
    }

    /// The first of its records that is not below `bound`, counted from its first.
    pub(super) fn first_row_from(&self, bound: Bound) -> Result<u64> {
        self.with_bytes(&mut |read| {
            Ok(match bound {
                Bound::Iteration(bound) => self.chunk.records_of(read, bound..i64::MAX)?.start,
                Bound::Time(bound) => {
                    self.chunk.records_between_times(read, bound..f64::INFINITY)?.start
                }
            })
        })
    }
}
