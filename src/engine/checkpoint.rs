//! Checkpoint: a whole state with the cursor of every stream, and the way to find it again.
//!
//! ```text
//!   checkpoint: barrier over all streams, then state and cursors in one transaction
//!   latest:     by number, which follows the order of commits; one whose bytes do not read is passed
//!               over, and told of
//! ```
//! A checkpoint stands as long as no rewind went back beyond one of its cursors.

use std::ops::{Bound, ControlFlow};

use super::rewind::{check_cursor, is_valid};
use super::store::Store;
use super::streams::unknown;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CheckpointId, ObjectId, StreamId};
use crate::manifest::{
    CheckpointRow, Cursor, Key, Raw, Reading, StateBytes, StreamRow, Table, Write, from_value,
    to_value,
};
use crate::protection::Protection;
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
    /// Newer ones that were passed over since their bytes do not read, the newest first.
    pub passed_over: Vec<(CheckpointId, String)>,
}

/// What is known of a checkpoint without its state.
#[derive(Debug, Clone)]
pub struct CheckpointNote {
    /// Its number; higher is newer.
    pub id: CheckpointId,
    /// The end of each stream when it was made; none where the row does not read.
    pub cursors: Vec<Cursor>,
    /// Wall-clock nanoseconds since 1970 when it was made.
    pub at: Option<i64>,
    /// Whether its records are all part of the history as it stands.
    pub stands: bool,
    /// Why its row does not read.
    pub damage: Option<Error>,
}

/// State up to this length lies in the row itself.
pub(crate) const STATE_INLINE_BYTES_MAX: usize = 64 << 10;
/// How often checkpoints are looked for that go while they are read.
const TRIES_MAX: usize = 64;

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
        self.checkpoint_keeping(scope, streams, state, usize::MAX)
    }

    /// As [`Store::checkpoint`]; of the checkpoints of `scope` the newest `keep` stay, this one
    /// counted, and the others go in the same transaction.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub fn checkpoint_keeping(
        &self,
        scope: u64,
        streams: &[StreamId],
        state: &[u8],
        keep: usize,
    ) -> Result<CheckpointId> {
        self.core().check_intake("checkpoint")?;
        let cursors = self.cursors(streams)?;
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
            forget_old(w, scope, keep)?;
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

    /// The end of each of `streams`, as this process holds them.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream; `Conflict` with the process that holds one.
    pub fn cursors(&self, streams: &[StreamId]) -> Result<Vec<Cursor>> {
        let mut ends = self.writer("checkpoint")?.streams.lock();
        self.load_all(&mut ends, streams)?;
        let cursor = |stream: &StreamId| {
            let end = ends.known("checkpoint", *stream)?;
            Ok(Cursor { stream: *stream, generation: end.generation, end: end.next() })
        };
        streams.iter().map(cursor).collect()
    }

    /// The newest checkpoint of `scope`, by commit order, that is part of the history as it stands
    /// and reads: one made after a moment that a rewind went back beyond is passed over.
    ///
    /// # Errors
    /// `NoCheckpoint` when there is none; `Damage` when there are some, and none of them reads.
    pub fn latest_checkpoint(&self, scope: u64) -> Result<Checkpoint> {
        self.latest_checkpoint_that(scope, &mut |_| Ok(()))
    }

    /// As [`Store::latest_checkpoint`], for whoever knows what a state must be: one that `reads` finds
    /// to be damaged is passed over as well.
    ///
    /// # Errors
    /// As there, and what `reads` returns, if that is not `Damage`.
    pub fn latest_checkpoint_that(
        &self,
        scope: u64,
        reads: &mut dyn FnMut(&Checkpoint) -> Result<()>,
    ) -> Result<Checkpoint> {
        for _ in 1..TRIES_MAX {
            match self.newest_that(scope, reads, true)? {
                Some(checkpoint) => return Ok(checkpoint),
                // Let go of since the look, as newer ones came: look again.
                None => continue,
            }
        }
        let found = self.newest_that(scope, reads, false)?;
        found.ok_or_else(|| none_stands(scope))
    }

    /// The newest one that reads; none when one went meanwhile, if that is to be told.
    fn newest_that(
        &self,
        scope: u64,
        reads: &mut dyn FnMut(&Checkpoint) -> Result<()>,
        tells_gone: bool,
    ) -> Result<Option<Checkpoint>> {
        let mut passed_over: Vec<(CheckpointId, Error)> = Vec::new();
        for note in self.checkpoints(scope)?.iter().filter(|note| note.stands) {
            let read = match &note.damage {
                Some(damage) => Err(damage.clone()),
                None => self.checkpoint_of(scope, note.id),
            };
            if read.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound) {
                if tells_gone {
                    return Ok(None);
                }
                continue;
            }
            let read = read.and_then(|checkpoint| reads(&checkpoint).map(|()| checkpoint));
            match read {
                Ok(mut checkpoint) => {
                    let told = passed_over.into_iter().map(|(id, e)| (id, e.to_string()));
                    checkpoint.passed_over = told.collect();
                    return Ok(Some(checkpoint));
                }
                Err(e)
                    if e.kind() == ErrorKind::Damage && Protection::CheckpointFallBack.is_on() =>
                {
                    passed_over.push((note.id, e));
                }
                Err(e) => return Err(e),
            }
        }
        let place = place_of_scope(scope);
        match passed_over.into_iter().next() {
            None => Err(none_stands(scope)),
            Some((id, e)) => {
                let cause = format!("no checkpoint of it reads; the newest is {id}");
                Err(Error::damage("resume", place, cause).with_source(e))
            }
        }
    }

    /// One checkpoint, with its state, whether or not it stands.
    ///
    /// # Errors
    /// `NotFound`; `Damage` when its state does not read.
    pub fn checkpoint_of(&self, scope: u64, id: CheckpointId) -> Result<Checkpoint> {
        let Some(row) = self.snapshot()?.get::<CheckpointRow>(&(scope, id))? else {
            let (place, cause) = (place_of_scope(scope), format!("there is no checkpoint {id}"));
            return Err(Error::new(ErrorKind::NotFound, "resume", place, cause));
        };
        let state = match row.state {
            StateBytes::Inline(bytes) => bytes,
            StateBytes::Object(object) => self.fetch(object)?,
        };
        Ok(Checkpoint { id, cursors: row.cursors, state, passed_over: Vec::new() })
    }

    /// The checkpoints of `scope`, the newest first. One whose row does not read is told of.
    ///
    /// # Errors
    /// `Damage` for a stream's row that does not read.
    pub fn checkpoints(&self, scope: u64) -> Result<Vec<CheckpointNote>> {
        let snapshot = self.snapshot()?;
        let mut notes = notes(&snapshot, scope)?;
        for note in &mut notes {
            note.stands = stands(&snapshot, &note.cursors)?;
        }
        // REC37: numbers are given by the transactions, so their order is that of the commits.
        match Protection::CheckpointOrder.is_on() {
            true => notes.sort_by_key(|note| std::cmp::Reverse(note.id)),
            false => notes.sort_by_key(|note| std::cmp::Reverse(note.at)),
        }
        Ok(notes)
    }
}

fn none_stands(scope: u64) -> Error {
    let cause = "there is no checkpoint of it that stands";
    Error::new(ErrorKind::NoCheckpoint, "resume", place_of_scope(scope), cause)
}

/// What errors call the owner of checkpoints, who knows a better name for it.
pub(crate) fn place_of_scope(scope: u64) -> String {
    format!("scope {scope}")
}

fn notes(rows: &impl Raw, scope: u64) -> Result<Vec<CheckpointNote>> {
    let mut found = Vec::new();
    let key = |id| (scope, CheckpointId(id)).to_bytes();
    let range = (Bound::Included(key(0)), Bound::Included(key(u64::MAX)));
    rows.raw_scan(Table::Checkpoints, range, true, &mut |key, value| {
        let (_, id) = <(u64, CheckpointId)>::from_bytes(key)?;
        let (cursors, at, damage) = match from_value::<CheckpointRow>(key, value) {
            Ok(row) => (row.cursors, row.at, None),
            Err(e) if e.kind() == ErrorKind::Damage => (Vec::new(), None, Some(e)),
            Err(e) => return Err(e),
        };
        found.push(CheckpointNote { id, cursors, at, stands: true, damage });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn stands(rows: &impl Reading, cursors: &[Cursor]) -> Result<bool> {
    for cursor in cursors {
        let row = rows.get::<StreamRow>(&cursor.stream)?;
        if !row.is_some_and(|row| is_valid(cursor, &row)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Those that stand beyond the newest `keep` go, and those that do not stand any more. What does not
/// read stays: it may be looked at.
fn forget_old(w: &mut Write, scope: u64, keep: usize) -> Result<()> {
    if keep == usize::MAX {
        return Ok(());
    }
    let mut standing = 0;
    for note in notes(w, scope)?.into_iter().filter(|note| note.damage.is_none()) {
        let stands = stands(w, &note.cursors)?;
        standing += usize::from(stands);
        if !stands || standing > keep.max(1) {
            w.remove::<CheckpointRow>(&(scope, note.id))?;
        }
    }
    Ok(())
}
