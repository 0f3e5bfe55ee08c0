//! A recipe that a pin keeps: its pieces one by one where they are few, and its rows where they are many.
//!
//! ```text
//!   one row of pieces:  kept with their files or bytes [keep] ---------------> read, whoever retires it
//!   more of them:       the recipe is pinned [keep] --- [Run::load] a run of pieces, kept --- next run
//! ```
//! Of a long recipe nothing is in memory but the run of pieces that is being read. No transaction of this
//! process takes the rows of a pinned recipe away; where another process does, that is a typed error.

use std::ops::Range;
use std::sync::Arc;

use super::pin::{Pin, given_back, is_alone};
use super::store::Store;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;
use crate::manifest::{
    ObjectRow, PIECES_PER_ROW_MAX, Reading, RecipePin, RecipeRow, RetiringRow, Snapshot, recipe_of,
};

/// Pieces that are kept at a time of a recipe with many.
const RUN_PIECES_MAX: usize = 256;

/// What is kept of a recipe.
#[derive(Debug)]
pub(super) struct KeptRecipe {
    /// All of its pieces, where one row names them.
    all: Run,
    _pin: Option<RecipePin>,
}

/// Pieces of a recipe that follow each other, kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run(Option<Arc<Pieces>>);

#[derive(Debug)]
struct Pieces {
    object: ObjectId,
    begins: u64,
    /// Where each ends, and which it is.
    pieces: Vec<(u64, ObjectId)>,
    pin: Pin,
}

impl KeptRecipe {
    /// Keeps the recipe of `object`, as `snapshot` has it.
    pub(super) fn keep(
        store: &Store,
        snapshot: &Snapshot,
        object: ObjectId,
        row: &ObjectRow,
    ) -> Result<Self> {
        if snapshot.list::<RecipeRow>(recipe_of(object), 2)?.len() < 2 {
            let all = match row.len {
                0 => Run::default(),
                _ => Run::load(store, snapshot, object, 0, PIECES_PER_ROW_MAX)?,
            };
            return Ok(Self { all, _pin: None });
        }
        let pin = store.core().manifest.pin_recipe(object)?;
        // Pinned first, looked at second: what stands now stays.
        let now = store.snapshot()?;
        let stands = now.get::<ObjectRow>(&object)?.as_ref() == Some(row);
        if stands && now.get::<RetiringRow>(&object)?.is_none() {
            return Ok(Self { all: Run::default(), _pin: Some(pin) });
        }
        let cause = "it was retired meanwhile; look again";
        Err(Error::new(ErrorKind::Conflict, "read", format!("object {object}"), cause))
    }

    /// The run that holds byte `at`.
    fn run_at<'r>(
        &'r self,
        store: &Store,
        object: ObjectId,
        at: u64,
        run: &'r mut Run,
    ) -> Result<&'r Run> {
        if self.all.holds(object, at) {
            return Ok(&self.all);
        }
        if !run.holds(object, at) {
            run.go_on(store, object, at)?;
        }
        Ok(run)
    }

    /// The piece that begins at byte `at`.
    pub(super) fn piece_at(
        &self,
        store: &Store,
        object: ObjectId,
        at: u64,
        run: &mut Run,
    ) -> Result<Option<PieceTold>> {
        Ok(self.run_at(store, object, at, run)?.0.as_ref().and_then(|pieces| pieces.tell(at)))
    }

    /// Bytes `range`, which is one of the object, and not longer than the caller has memory for.
    pub(super) fn read(
        &self,
        store: &Store,
        object: ObjectId,
        range: &Range<u64>,
        run: &mut Run,
    ) -> Result<Vec<u8>> {
        let (mut at, mut bytes) = (range.start, Vec::new());
        while at < range.end {
            let read = self.run_at(store, object, at, run)?.read(at..range.end)?;
            if read.is_empty() {
                return Err(gap(object, at));
            }
            at = at.saturating_add(read.len() as u64);
            match bytes.is_empty() {
                true => bytes = read,
                false => bytes.extend_from_slice(&read),
            }
        }
        Ok(bytes)
    }
}

/// A piece of a recipe, as its reader is told of it.
#[derive(Debug)]
pub(crate) struct PieceTold {
    pub(crate) len: u64,
    pub(crate) digest: Digest,
    pub(crate) place: String,
}

impl Run {
    fn holds(&self, object: ObjectId, at: u64) -> bool {
        self.0.as_ref().is_some_and(|pieces| pieces.object == object && pieces.holds(at))
    }

    /// The bytes of the piece in which `range` begins, as far as that reaches.
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        self.0.as_ref().map_or(Ok(Vec::new()), |pieces| pieces.read(range))
    }

    /// The run of pieces that begins with the one that holds byte `at`, as the store is now.
    fn go_on(&mut self, store: &Store, object: ObjectId, at: u64) -> Result<()> {
        // What it held may go from here on.
        self.0 = None;
        let pin = store.pin();
        let snapshot = store.snapshot()?;
        if !is_alone(store) && snapshot.get::<ObjectRow>(&object)?.is_none() {
            return Err(given_back(object));
        }
        *self = match Self::load(store, &snapshot, object, at, RUN_PIECES_MAX) {
            // Another process takes it apart.
            Err(e) if !is_alone(store) && snapshot.get::<RetiringRow>(&object)?.is_some() => {
                return Err(given_back(object).with_source(e));
            }
            loaded => loaded?,
        };
        drop(pin);
        Ok(())
    }

    fn load(
        store: &Store,
        snapshot: &Snapshot,
        object: ObjectId,
        at: u64,
        pieces_max: usize,
    ) -> Result<Self> {
        let found = snapshot.last::<RecipeRow>((object, 0)..=(object, at))?;
        let Some(((_, mut begins), row)) = found else { return Err(gap(object, at)) };
        let mut pieces = Vec::new();
        let mut end = begins;
        for piece in &row.pieces {
            let next = end.checked_add(piece.len).ok_or_else(|| gap(object, end))?;
            if next <= at {
                begins = next;
            } else if pieces.len() < pieces_max {
                pieces.push((next, piece.object));
            } else {
                break;
            }
            end = next;
        }
        let pin = store.pin();
        pin.keep_pieces(snapshot, object, begins, &pieces)?;
        pin.narrow();
        Ok(Self(Some(Arc::new(Pieces { object, begins, pieces, pin }))))
    }
}

impl Pieces {
    fn holds(&self, at: u64) -> bool {
        self.begins <= at && self.pieces.last().is_some_and(|(end, _)| at < *end)
    }

    /// The piece that holds byte `at`, and which bytes it is.
    fn find(&self, at: u64) -> Option<(Range<u64>, ObjectId)> {
        let which = self.pieces.partition_point(|(end, _)| *end <= at);
        let (end, piece) = self.pieces.get(which)?;
        let before = which.checked_sub(1).and_then(|before| self.pieces.get(before));
        Some((before.map_or(self.begins, |(end, _)| *end)..*end, *piece))
    }

    fn tell(&self, at: u64) -> Option<PieceTold> {
        let (held, piece) = self.find(at)?;
        let (digest, place) = (self.pin.digest_of(piece)?, self.pin.place_of(piece));
        (held.start == at).then_some(PieceTold { len: held.end - at, digest, place })
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let Some((held, piece)) = self.find(range.start) else { return Ok(Vec::new()) };
        let (begins, end) = (held.start, held.end);
        let within = range.start.saturating_sub(begins)..range.end.min(end).saturating_sub(begins);
        self.pin.fetch_range(piece, within)
    }
}

impl Pin {
    /// Keeps pieces, each of which must be as long as its recipe says, and have bytes of its own.
    fn keep_pieces(
        &self,
        snapshot: &Snapshot,
        recipe: ObjectId,
        begins: u64,
        pieces: &[(u64, ObjectId)],
    ) -> Result<()> {
        let mut at = begins;
        for (end, piece) in pieces {
            let row = snapshot.require::<ObjectRow>(piece)?;
            if row.place == crate::manifest::Place::Recipe || at.saturating_add(row.len) != *end {
                let (place, cause) = (format!("object {recipe}"), "is no piece of it");
                return Err(Error::damage("read", place, format!("object {piece} {cause}")));
            }
            self.keep(snapshot, [*piece])?;
            at = *end;
        }
        Ok(())
    }
}

fn gap(object: ObjectId, at: u64) -> Error {
    let cause = format!("byte {at} of it is in none of its pieces");
    Error::damage("read", format!("object {object}"), cause)
}
