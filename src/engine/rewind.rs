//! Rewind: one transaction moves streams back to their cursors.
//!
//! No bytes are rewritten: frames of an older generation beyond the cut are dropped wherever they
//! still lie, and a chunk that reaches beyond it shows fewer records.

use super::hold::check_held;
use super::store::Store;
use super::streams::unknown;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LeaseId, Ordinal, Sequence, StreamId};
use crate::manifest::{ChunkRow, Cursor, Cut, LeaseRow, Reading, StreamRow, Write};
use crate::protection::Protection;
use crate::vfs::Step;

impl Store {
    /// Moves the end of each stream back to its cursor, in ONE transaction.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream; `Invalid` for a cursor beyond the stream's end;
    /// `Conflict` when two cursors name one stream.
    ///
    /// # Durability
    /// *Durable* when it returns. Records beyond the cursors are gone for every reader.
    pub fn rewind(&self, cursors: &[Cursor]) -> Result<()> {
        self.rewind_with(cursors, |_| Ok(()))
    }

    /// As [`Store::rewind`], with rows of the caller's own in the same transaction.
    ///
    /// # Errors
    /// As there, and what `also` returns: then nothing was moved.
    ///
    /// # Durability
    /// As there.
    pub fn rewind_with<T>(
        &self,
        cursors: &[Cursor],
        also: impl FnOnce(&mut Write) -> Result<T>,
    ) -> Result<T> {
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
            let moved = cursors.iter().map(|cursor| {
                check_held(self.core(), w, "rewind", cursor.stream)?;
                move_back(w, cursor)
            });
            let moved = moved.collect::<Result<Vec<_>>>()?;
            Ok((moved, also(w)?))
        })?;
        let (moved, value) = committed.value;
        for (cursor, row) in cursors.iter().zip(moved) {
            if let Some(end) = streams.get_mut(cursor.stream) {
                end.rewind(row.generation, cursor.end);
                // A publication may have committed and not reached memory before we did.
                end.sealed(row.sealed_upto);
            }
        }
        Ok(value)
    }
}

/// A cursor means records only while no later cut lies before it.
pub(super) fn is_valid(cursor: &Cursor, row: &StreamRow) -> bool {
    row.cuts.iter().all(|cut| cut.generation <= cursor.generation || cursor.end <= cut.at)
}

pub(super) fn check_cursor(
    operation: &'static str,
    cursor: &Cursor,
    row: &StreamRow,
) -> Result<()> {
    if is_valid(cursor, row) || !Protection::CursorCheck.is_on() {
        return Ok(());
    }
    let cause = format!(
        "the cursor {} of generation {} names records that a rewind took back",
        cursor.end, cursor.generation
    );
    let place = format!("stream {}", cursor.stream);
    Err(Error::new(ErrorKind::Conflict, operation, place, cause))
}

fn move_back(w: &mut Write, cursor: &Cursor) -> Result<StreamRow> {
    let stream = cursor.stream;
    let Some(mut row) = w.get::<StreamRow>(&stream)? else { return Err(unknown("rewind", stream)) };
    check_cursor("rewind", cursor, &row)?;
    if cursor.end < row.taken_upto {
        let cause =
            format!("its records below {} left it: they are not taken back", row.taken_upto);
        return Err(Error::new(ErrorKind::Conflict, "rewind", format!("stream {stream}"), cause));
    }
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

/// Chunks wholly at or beyond `end` go; one that reaches beyond it shows fewer records. Returns the
/// ordinal behind those that stay: a run that is done again gives its chunks the same ones.
fn cut_chunks(w: &mut Write, stream: StreamId, end: Sequence) -> Result<Ordinal> {
    loop {
        let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
        let Some((key, mut chunk)) = w.last::<ChunkRow>(range)? else { return Ok(Ordinal(0)) };
        if chunk.first >= end {
            w.remove::<ChunkRow>(&key)?;
            continue;
        }
        if chunk.first.0.saturating_add(chunk.records) > end.0 {
            chunk.records = end.0 - chunk.first.0;
            w.put(&key, &chunk)?;
        }
        return Ok(key.1.next().unwrap_or(key.1));
    }
}
