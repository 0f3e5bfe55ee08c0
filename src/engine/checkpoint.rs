//! Checkpoint and rewind: a whole state with the cursor of every stream, and the way back to it.
//!
//! ```text
//!   checkpoint: barrier over all streams, then state and cursors in one transaction
//!   rewind:     one transaction moves each end back, raises its generation, stores the cut
//! ```
//! No bytes are rewritten: frames of an older generation beyond the cut are dropped wherever they
//! still lie, and a chunk that reaches beyond it shows fewer rows.

use super::hold::check_held;
use super::store::Store;
use super::streams::unknown;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CheckpointId, LeaseId, ObjectId, Ordinal, Sequence, StreamId};
use crate::manifest::{
    CheckpointRow, ChunkRow, Cursor, Cut, Key, LeaseRow, Reading, Snapshot, StateBytes, StreamRow,
    Table, Write, to_value,
};
use crate::vfs::Step;

/// A checkpoint, as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its number; higher is newer.
    pub id: CheckpointId,
    /// The end of each stream when it was made.
    pub cursors: Vec<Cursor>,
    /// The state handed in.
    pub state: Vec<u8>,
}

/// State up to this length lies in the row itself.
const STATE_INLINE_BYTES_MAX: usize = 64 << 10;

impl Store {
    /// Makes everything accepted durable, then stores `state` with the end of each of `streams`.
    /// `scope` is whatever the checkpoints belong to, a recording's number for instance.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream, as [`Store::barrier`] and [`Store::transact`] otherwise.
    ///
    /// # Durability
    /// *Durable* when it returns: the state, the cursors and every record below them.
    pub fn checkpoint(
        &self,
        scope: u64,
        streams: &[StreamId],
        state: &[u8],
    ) -> Result<CheckpointId> {
        let writer = self.writer("checkpoint")?;
        self.core().check_intake("checkpoint")?;
        let cursors = {
            let mut ends = writer.streams.lock();
            let mut cursors = Vec::with_capacity(streams.len());
            self.load_all(&mut ends, streams)?;
            for &stream in streams {
                let end = ends.known("checkpoint", stream)?;
                cursors.push(Cursor { stream, generation: end.generation, end: end.next() });
            }
            cursors
        };
        self.barrier()?;
        let at = self.core().disk.wall_nanos();
        let write = |w: &mut Write, state: StateBytes| {
            for cursor in &cursors {
                let row = w.get::<StreamRow>(&cursor.stream)?;
                let row = row.ok_or_else(|| unknown("checkpoint", cursor.stream))?;
                check_cursor("checkpoint", cursor, &row)?;
            }
            let id = w.next_checkpoint_id()?;
            w.put(&(scope, id), &CheckpointRow { cursors: cursors.clone(), state, at })?;
            Ok(id)
        };
        if state.len() <= STATE_INLINE_BYTES_MAX {
            let row = StateBytes::Inline(state.to_vec());
            return Ok(self.transact(Step::CheckpointCommit, |w| write(w, row))?.value);
        }
        let row =
            CheckpointRow { cursors: cursors.clone(), state: StateBytes::Object(ObjectId(0)), at };
        // Its number is given by its transaction.
        let key = (scope, CheckpointId(0)).to_bytes();
        let value = to_value(&key, &row)?;
        let set = self.seal_one(state.to_vec(), (Table::Checkpoints.number(), key, value))?;
        let committed = set.publish(self.files(), Step::CheckpointCommit, |w, objects| {
            write(w, StateBytes::Object(objects[0]))
        })?;
        Ok(committed.value)
    }

    /// The newest checkpoint of `scope`, by commit order, that is part of the history as it stands:
    /// one made after a moment that a rewind went back beyond is passed over.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Damage` when its state does not read.
    pub fn latest_checkpoint(&self, scope: u64) -> Result<Checkpoint> {
        let Some((id, row)) = newest_valid(&self.snapshot()?, scope)? else {
            let cause = "no checkpoint stands";
            return Err(Error::new(ErrorKind::NotFound, "resume", format!("scope {scope}"), cause));
        };
        let state = match row.state {
            StateBytes::Inline(bytes) => bytes,
            StateBytes::Object(object) => self.fetch(object)?,
        };
        Ok(Checkpoint { id, cursors: row.cursors, state })
    }

    /// Moves the end of each stream back to its cursor, in ONE transaction.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream; `Invalid` for a cursor beyond the stream's end;
    /// `Conflict` when two cursors name one stream.
    ///
    /// # Durability
    /// *Durable* when it returns. Records beyond the cursors are gone for every reader.
    pub fn rewind(&self, cursors: &[Cursor]) -> Result<()> {
        let writer = self.writer("rewind")?;
        let mut streams = writer.streams.lock();
        let named: Vec<StreamId> = cursors.iter().map(|cursor| cursor.stream).collect();
        self.load_all(&mut streams, &named)?;
        let mut leases: Vec<LeaseId> = Vec::new();
        for (index, cursor) in cursors.iter().enumerate() {
            let place = || format!("stream {}", cursor.stream);
            if cursors[..index].iter().any(|earlier| earlier.stream == cursor.stream) {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "rewind",
                    place(),
                    "it is named twice",
                ));
            }
            let end = streams.known("rewind", cursor.stream)?;
            if cursor.end > end.next() {
                let cause = format!("its end {} lies before the cursor {}", end.next(), cursor.end);
                return Err(Error::invalid("rewind", place(), cause));
            }
            let kept = cursor.end.0.saturating_sub(end.sealed_upto.0) as usize;
            leases.extend(end.tail.iter().skip(kept).filter_map(|record| record.lease));
        }
        let committed = self.core().transact(Step::RewindCommit, |w| {
            for lease in &leases {
                w.remove::<LeaseRow>(lease)?;
            }
            cursors
                .iter()
                .map(|cursor| {
                    check_held(self.core(), w, "rewind", cursor.stream)?;
                    move_back(w, cursor)
                })
                .collect::<Result<Vec<_>>>()
        })?;
        for (cursor, row) in cursors.iter().zip(committed.value) {
            if let Some(end) = streams.get_mut(cursor.stream) {
                end.rewind(row.generation, cursor.end);
                // A publication may have committed and not reached memory before we did.
                end.sealed(row.sealed_upto);
            }
        }
        Ok(())
    }
}

/// A cursor means records only while no later cut lies before it.
fn is_valid(cursor: &Cursor, row: &StreamRow) -> bool {
    row.cuts.iter().all(|cut| cut.generation <= cursor.generation || cursor.end <= cut.at)
}

fn check_cursor(operation: &'static str, cursor: &Cursor, row: &StreamRow) -> Result<()> {
    if is_valid(cursor, row) {
        return Ok(());
    }
    let cause = format!(
        "the cursor {} of generation {} names records that a rewind took back",
        cursor.end, cursor.generation
    );
    let place = format!("stream {}", cursor.stream);
    Err(Error::new(ErrorKind::Conflict, operation, place, cause))
}

fn newest_valid(snapshot: &Snapshot, scope: u64) -> Result<Option<(CheckpointId, CheckpointRow)>> {
    let mut below = CheckpointId(u64::MAX);
    loop {
        let range = (scope, CheckpointId(0))..=(scope, below);
        let Some(((_, id), row)) = snapshot.last::<CheckpointRow>(range)? else { return Ok(None) };
        let mut valid = true;
        for cursor in &row.cursors {
            let stream = snapshot.get::<StreamRow>(&cursor.stream)?;
            valid &= stream.is_some_and(|stream| is_valid(cursor, &stream));
        }
        if valid {
            return Ok(Some((id, row)));
        }
        let Some(next) = id.0.checked_sub(1) else { return Ok(None) };
        below = CheckpointId(next);
    }
}

fn move_back(w: &mut Write, cursor: &Cursor) -> Result<StreamRow> {
    let stream = cursor.stream;
    let Some(mut row) = w.get::<StreamRow>(&stream)? else { return Err(unknown("rewind", stream)) };
    check_cursor("rewind", cursor, &row)?;
    let Some(generation) = row.generation.next() else {
        let cause = "no generation is left";
        let place = format!("stream {stream}");
        return Err(Error::new(ErrorKind::LimitExceeded, "rewind", place, cause));
    };
    row.generation = generation;
    // A later cut at or below an earlier one says all that the earlier one said.
    row.cuts.retain(|cut| cut.at < cursor.end);
    row.cuts.push(Cut { generation, at: cursor.end });
    if row.sealed_upto > cursor.end {
        row.sealed_upto = cursor.end;
        row.next_ordinal = cut_chunks(w, stream, cursor.end)?;
    }
    w.put(&stream, &row)?;
    Ok(row)
}

/// Chunks wholly at or beyond `end` go; one that reaches beyond it shows fewer rows. Returns the
/// ordinal behind those that stay: a run that is done again gives its chunks the same ones.
fn cut_chunks(w: &mut Write, stream: StreamId, end: Sequence) -> Result<Ordinal> {
    loop {
        let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
        let Some((key, mut chunk)) = w.last::<ChunkRow>(range)? else { return Ok(Ordinal(0)) };
        if chunk.first >= end {
            w.remove::<ChunkRow>(&key)?;
            continue;
        }
        if chunk.first.0.saturating_add(chunk.rows) > end.0 {
            chunk.rows = end.0 - chunk.first.0;
            w.put(&key, &chunk)?;
        }
        return Ok(key.1.next().unwrap_or(key.1));
    }
}
