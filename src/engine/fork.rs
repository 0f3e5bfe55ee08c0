//! Fork: new streams that begin as others were at a cursor.
//!
//! ```text
//!   Branch --- [Store::seal_fork] ---> Fork --- [Fork::publish] ---> rows: chunks below the cursor
//!                                                 are shared, what was unsealed is a chunk of its own
//! ```
//! The sources stay as they are, whoever writes them. P4: chunk rows, with their references, stream
//! rows and whatever the caller adds come in ONE transaction.

use super::publish::ChunkBuild;
use super::rewind::check_cursor;
use super::seal::{Content, SealedSet};
use super::store::Store;
use super::streams::unknown;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Generation, ObjectId, Ordinal, RecordingId, Sequence, StreamId};
use crate::manifest::{ChunkRow, Cursor, Reading, StreamRow, Table, Write};
use crate::vfs::Step;

/// One stream to begin as another one was.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The other one, and how much of it.
    pub cursor: Cursor,
    /// Records below this are in chunks, which are shared; those from here to the cursor are in
    /// `unsealed`.
    pub shared_upto: Sequence,
    /// The rest, one chunk behind the other, each with the stream that it comes from.
    pub unsealed: Vec<ChunkBuild>,
    /// Records that were left out before the cursor, those that unsealed ones tell of counted.
    pub dropped: u64,
}

/// What the new streams are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// A recording's number, not used yet.
    pub recording: RecordingId,
    /// The new streams, in the order of the branches.
    pub streams: Vec<StreamId>,
}

/// A fork whose own bytes are durable, and that no row names yet. Dropped, it never was.
#[derive(Debug)]
pub struct Fork {
    store: Store,
    set: SealedSet,
    branches: Vec<Branch>,
}

/// Chunk rows read at a time.
const ROWS_AT_ONCE: usize = 1024;

impl Store {
    /// Builds, syncs and places what the branches do not share.
    ///
    /// # Errors
    /// `Invalid` for chunks that do not lead to their cursor; `DiskFull`.
    ///
    /// # Durability
    /// The bytes are durable, and nothing refers to them.
    pub fn seal_fork(&self, mut branches: Vec<Branch>) -> Result<Fork> {
        let writer = self.writer("fork")?;
        self.core().check_intake("fork")?;
        let mut contents = Vec::new();
        for branch in &mut branches {
            let mut next = branch.shared_upto.min(branch.cursor.end);
            for build in &mut branch.unsealed {
                if build.first != next || build.records == 0 {
                    return Err(unfit(&branch.cursor, next));
                }
                next = Sequence(build.first.0.saturating_add(build.records));
                // Its row's key is given by its transaction.
                let referrer = Some((Table::Chunks.number(), Vec::new(), Vec::new()));
                let content = Content::new(std::mem::take(&mut build.content), referrer);
                contents.push(Content { about: build.about.clone(), ..content });
            }
            if next != branch.cursor.end {
                return Err(unfit(&branch.cursor, next));
            }
        }
        let set = SealedSet::seal(self.core(), self.files(), &writer.building, contents)?;
        Ok(Fork { store: self.clone(), set, branches })
    }
}

fn unfit(cursor: &Cursor, next: Sequence) -> Error {
    let cause = format!("its chunks lead to {next}, its cursor is {}", cursor.end);
    Error::invalid("fork", format!("stream {}", cursor.stream), cause)
}

impl Fork {
    /// Writes the rows, and those that `name` adds for them.
    ///
    /// # Errors
    /// `NotFound` for a stream that went; `Conflict` when one was moved back meanwhile; what `name`
    /// returns.
    ///
    /// # Durability
    /// *Durable* when it returns, or nothing of it is there.
    pub fn publish<T>(self, name: impl Fn(&mut Write, &Forked) -> Result<T>) -> Result<T> {
        let Self { store, set, branches } = self;
        store.core().check_intake("fork")?;
        let committed = set.publish(store.files(), Step::PublishCommit, |w, objects| {
            let recording = w.next_recording_id()?;
            let mut objects = objects.iter().copied();
            let mut streams = Vec::with_capacity(branches.len());
            for branch in &branches {
                let own: Vec<ObjectId> = objects.by_ref().take(branch.unsealed.len()).collect();
                streams.push(begin(w, recording, branch, &own)?);
            }
            name(w, &Forked { recording, streams })
        })?;
        store.count_publication();
        Ok(committed.value)
    }
}

/// The rows of one new stream.
fn begin(
    w: &mut Write,
    recording: RecordingId,
    branch: &Branch,
    own: &[ObjectId],
) -> Result<StreamId> {
    let cursor = &branch.cursor;
    let source = w.get::<StreamRow>(&cursor.stream)?;
    let source = source.ok_or_else(|| unknown("fork", cursor.stream))?;
    check_cursor("fork", cursor, &source)?;
    let stream = w.next_stream_id()?;
    if cursor.end < source.taken_upto {
        return Err(unfit(cursor, source.taken_upto));
    }
    let mut next_ordinal = share(w, branch, source.taken_upto, stream)?;
    for (build, object) in branch.unsealed.iter().zip(own) {
        let row = ChunkRow {
            object: *object,
            generation: Generation(0),
            first: build.first,
            records: build.records,
            records_written: build.records,
            iterations: build.iterations,
            times: build.time_bits(),
            raw_len: build.raw_len,
            payloads: build.payloads.clone(),
        };
        w.put(&(stream, next_ordinal), &row)?;
        next_ordinal = after(stream, next_ordinal)?;
    }
    let row = StreamRow {
        recording: Some(recording),
        generation: Generation(0),
        sealed_upto: cursor.end,
        next_ordinal,
        cuts: Vec::new(),
        dropped: branch.dropped,
        ..source
    };
    w.put(&stream, &row)?;
    Ok(stream)
}

/// Gives `stream` the chunks of its source below the cursor, the first of which begins at `first`;
/// returns the ordinal behind them.
fn share(w: &mut Write, branch: &Branch, first: Sequence, stream: StreamId) -> Result<Ordinal> {
    let upto = branch.shared_upto.min(branch.cursor.end);
    let source = branch.cursor.stream;
    let (mut ordinal, mut next) = (Ordinal(0), first);
    while next < upto {
        let range = (source, ordinal)..=(source, Ordinal(u64::MAX));
        let rows = w.list::<ChunkRow>(range, ROWS_AT_ONCE)?;
        for ((_, at), mut row) in rows.into_iter().take_while(|(_, row)| row.first < upto) {
            if at != ordinal || row.first != next || row.records == 0 {
                let cause = format!("its chunk {ordinal} does not begin at record {next}");
                return Err(Error::damage("fork", format!("stream {source}"), cause));
            }
            // One that reaches beyond the cursor shows fewer records.
            row.records = row.records.min(upto.0 - row.first.0);
            row.generation = Generation(0);
            next = Sequence(row.first.0 + row.records);
            // G6: put by the row's own rule, the reference comes with the row.
            w.put(&(stream, ordinal), &row)?;
            ordinal = after(source, ordinal)?;
        }
        let is_at_end = w.get::<ChunkRow>(&(source, ordinal))?.is_none_or(|row| row.first >= upto);
        if next < upto && is_at_end {
            let cause = format!("its chunks end at {next} and not at {upto}; look again");
            return Err(Error::new(ErrorKind::Conflict, "fork", format!("stream {source}"), cause));
        }
    }
    Ok(ordinal)
}

fn after(stream: StreamId, ordinal: Ordinal) -> Result<Ordinal> {
    ordinal.next().ok_or_else(|| {
        let place = format!("stream {stream}");
        Error::new(ErrorKind::LimitExceeded, "fork", place, "no ordinal is left")
    })
}
