//! Inside the transaction: what a batch holds is leased, and whole lists of pieces become recipes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::flush::Published;
use super::preparation::Preparation;
use super::prepare::place;
use super::queue::{At, Batch, Listed};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LeaseId, ObjectId};
use crate::manifest::{
    LeaseRow, LeasedRow, ObjectRow, PIECES_PER_ROW_MAX, Piece, Place, Reading, RecipeRow, Write,
    recipe_of,
};

/// Of objects that have the digest of a list: the row as it was looked at, where it reads and gives the bytes
/// of its digest.
pub(super) type Verdicts = BTreeMap<ObjectId, Option<ObjectRow>>;

impl Preparation {
    /// Writes the rows of a batch whose contents are `objects`. `ask` gets an object that has to be read
    /// before it is known whether a list is stored already.
    pub(super) fn refer(
        &self,
        w: &mut Write,
        batch: &Batch,
        objects: &[ObjectId],
        verdicts: &Verdicts,
        ask: &Cell<Option<ObjectId>>,
    ) -> Result<Published> {
        let lease = self.lease();
        if w.get::<LeaseRow>(&lease)?.is_none() {
            let cause = "it was taken away meanwhile";
            return Err(Error::new(ErrorKind::NotFound, "put", place(&self.name), cause));
        }
        for (taken, object) in batch.contents.iter().zip(objects) {
            if taken.content.is_whole {
                keep(w, lease, *object)?;
            } else if taken.is_open {
                keep_piece(w, lease, *object)?;
            }
        }
        let (mut unneeded, mut free) = (Vec::new(), BTreeSet::new());
        for listed in &batch.lists {
            let pieces = pieces_of(batch, listed, objects)?;
            let object = match self.stored(w, listed, &pieces, verdicts, ask)? {
                Some(object) => {
                    for piece in &pieces {
                        if !w.has_edges(piece.object)? {
                            keep_piece(w, lease, piece.object)?;
                            unneeded.push(piece.object);
                        }
                    }
                    object
                }
                None => write_recipe(w, listed, &pieces)?,
            };
            keep(w, lease, object)?;
            free.extend(pieces.iter().map(|piece| piece.object));
        }
        free.extend(&batch.released);
        // What is a piece of something that is not whole yet stays.
        let contents = batch.contents.iter().zip(objects);
        let open = contents.filter(|(taken, _)| taken.is_open).map(|(_, object)| object);
        open.chain(&unneeded).for_each(|object| {
            free.remove(object);
        });
        let queue = self.queue.lock();
        for object in free.into_iter().filter(|object| !queue.is_held(*object)) {
            let key = (lease, object);
            if w.get::<LeasedRow>(&key)?.is_some_and(|row| row.is_piece) {
                w.remove::<LeasedRow>(&key)?;
            }
        }
        Ok(Published { objects: objects.to_vec(), unneeded })
    }

    /// The object that is what `listed` says, if one stands.
    fn stored(
        &self,
        w: &Write,
        listed: &Listed,
        pieces: &[Piece],
        verdicts: &Verdicts,
        ask: &Cell<Option<ObjectId>>,
    ) -> Result<Option<ObjectId>> {
        for (object, row) in w.object_of(&listed.digest)? {
            // Of the same pieces, each of which was read and compared.
            if row.place == Place::Recipe && is_recipe_of(w, object, pieces)? {
                return Ok(Some(object));
            }
            match verdicts.get(&object) {
                Some(Some(seen)) if *seen == row => return Ok(Some(object)),
                Some(None) => {}
                _ => {
                    ask.set(Some(object));
                    let cause = "looked at again";
                    return Err(Error::new(ErrorKind::Conflict, "put", place(&self.name), cause));
                }
            }
        }
        Ok(None)
    }
}

/// Leases an object.
fn keep(w: &mut Write, lease: LeaseId, object: ObjectId) -> Result<()> {
    w.put(&(lease, object), &LeasedRow { object, is_piece: false })
}

/// Leases an object as a piece of something that is not whole yet.
fn keep_piece(w: &mut Write, lease: LeaseId, object: ObjectId) -> Result<()> {
    w.insert_absent(&(lease, object), &LeasedRow { object, is_piece: true }).map(drop)
}

fn pieces_of(batch: &Batch, listed: &Listed, objects: &[ObjectId]) -> Result<Vec<Piece>> {
    let piece = |named: &super::queue::Named| {
        let object = match named.at {
            At::Stored(object) => Some(object),
            At::Queued(number) => batch.object_of(number, objects),
        };
        let unknown = || Error::invalid("put", "piece", "it is in no object");
        Ok(Piece { object: object.ok_or_else(unknown)?, len: u64::from(named.len) })
    };
    listed.list.pieces.iter().map(piece).collect()
}

/// Whether the rows of a recipe name just `pieces`, in order.
fn is_recipe_of(w: &Write, object: ObjectId, pieces: &[Piece]) -> Result<bool> {
    let (mut left, mut is_same) = (pieces, true);
    let scanned = w.scan::<RecipeRow>(recipe_of(object), &mut |_, row| {
        is_same = is_same && left.starts_with(&row.pieces);
        left = left.get(row.pieces.len()..).unwrap_or_default();
        Ok(match is_same {
            true => std::ops::ControlFlow::Continue(()),
            false => std::ops::ControlFlow::Break(()),
        })
    });
    match scanned {
        Err(e) if e.kind() == ErrorKind::Damage => Ok(false),
        Err(e) => Err(e),
        Ok(()) => Ok(is_same && left.is_empty()),
    }
}

/// Writes a recipe whole; its object.
fn write_recipe(w: &mut Write, listed: &Listed, pieces: &[Piece]) -> Result<ObjectId> {
    let object = w.next_object_id()?;
    let mut at = 0u64;
    for pieces in pieces.chunks(PIECES_PER_ROW_MAX) {
        w.put(&(object, at), &RecipeRow { pieces: pieces.to_vec() })?;
        at = pieces.iter().fold(at, |at, piece| at.saturating_add(piece.len));
    }
    let (digest, len) = (listed.digest, listed.len);
    w.put(&object, &ObjectRow { digest, len, stored_len: 0, codec: 0, place: Place::Recipe })?;
    Ok(object)
}
