//! Inside the transaction: what a batch holds is leased, and whole lists of pieces become recipes.

use std::cell::RefCell;
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

/// Of objects that have the digest of a list: the row as it was looked at, and whether it reads and gives the
/// bytes of its digest.
pub(super) type Verdicts = BTreeMap<ObjectId, (ObjectRow, bool)>;

/// Why a transaction was given up, to be tried again.
#[derive(Debug)]
pub(super) enum Ask {
    /// Objects of the digests of lists have to be read before it is known whether those are stored already.
    Read(Vec<(ObjectId, ObjectRow)>),
    /// What was known to be stored went.
    Again,
}

/// What stands of a list.
enum Found {
    Stored(ObjectId),
    /// Nothing that reads, but perhaps something that does not.
    Damaged(Option<(ObjectId, ObjectRow)>),
    /// One that has to be read first.
    Unread(ObjectId, ObjectRow),
}

impl Preparation {
    /// Writes the rows of a batch whose contents are `objects`; `ask` gets what has to be done first.
    pub(super) fn refer(
        &self,
        w: &mut Write,
        batch: &Batch,
        objects: &[ObjectId],
        verdicts: &Verdicts,
        ask: &RefCell<Option<Ask>>,
    ) -> Result<Published> {
        let lease = self.lease();
        check_lease(w, lease, &self.name)?;
        for (taken, object) in batch.contents.iter().zip(objects) {
            if taken.content.is_whole {
                keep(w, lease, *object)?;
            }
            if taken.is_open {
                keep_piece(w, lease, *object)?;
            }
        }
        let (mut unneeded, mut free) = (Vec::new(), BTreeSet::new());
        let mut ours: BTreeSet<ObjectId> = objects.iter().copied().collect();
        let mut unread = Vec::new();
        for listed in &batch.lists {
            if let Some((object, row)) = &listed.known {
                if w.get::<ObjectRow>(object)?.as_ref() != Some(row) || w.is_retiring(*object)? {
                    return self.ask(ask, Ask::Again);
                }
                keep(w, lease, *object)?;
                continue;
            }
            let pieces = pieces_of(batch, listed, objects)?;
            let object = match stored(w, listed, &pieces, &ours, verdicts)? {
                Found::Unread(object, row) => {
                    unread.push((object, row));
                    continue;
                }
                _ if !unread.is_empty() => continue,
                Found::Stored(object) => {
                    for piece in &pieces {
                        if !w.has_edges(piece.object)? {
                            keep_piece(w, lease, piece.object)?;
                            unneeded.push(piece.object);
                        }
                    }
                    object
                }
                Found::Damaged(damaged) => write_recipe(w, listed, &pieces, damaged)?,
            };
            keep(w, lease, object)?;
            ours.insert(object);
            free.extend(pieces.iter().map(|piece| piece.object));
        }
        if !unread.is_empty() {
            return self.ask(ask, Ask::Read(unread));
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
            keep_no_piece(w, lease, object)?;
        }
        Ok(Published { objects: objects.to_vec(), unneeded })
    }

    fn ask<T>(&self, to: &RefCell<Option<Ask>>, ask: Ask) -> Result<T> {
        *to.borrow_mut() = Some(ask);
        Err(Error::new(ErrorKind::Conflict, "put", place(&self.name), "looked at again"))
    }
}

/// The object that is what `listed` says, if one stands; `ours` are those of the batch, which were written
/// just now, or read and compared.
fn stored(
    w: &Write,
    listed: &Listed,
    pieces: &[Piece],
    ours: &BTreeSet<ObjectId>,
    verdicts: &Verdicts,
) -> Result<Found> {
    let mut damaged = None;
    for (object, row) in w.object_of(&listed.digest)? {
        // Of the same pieces, each of which was read and compared.
        if row.place == Place::Recipe && is_recipe_of(w, object, pieces)? {
            return Ok(Found::Stored(object));
        }
        match verdicts.get(&object) {
            _ if ours.contains(&object) => return Ok(Found::Stored(object)),
            Some((seen, true)) if *seen == row => return Ok(Found::Stored(object)),
            Some((seen, false)) if *seen == row => damaged = damaged.or(Some((object, row))),
            _ => return Ok(Found::Unread(object, row)),
        }
    }
    Ok(Found::Damaged(damaged))
}

/// The preparation stands.
pub(super) fn check_lease(w: &Write, lease: LeaseId, name: &str) -> Result<()> {
    match w.get::<LeaseRow>(&lease)? {
        Some(_) => Ok(()),
        None => {
            let cause = "it was taken away meanwhile";
            Err(Error::new(ErrorKind::NotFound, "put", place(name), cause))
        }
    }
}

/// Leases an object.
pub(super) fn keep(w: &mut Write, lease: LeaseId, object: ObjectId) -> Result<()> {
    let key = (lease, object);
    let is_piece = w.get::<LeasedRow>(&key)?.is_some_and(|leased| leased.is_piece);
    w.put(&key, &LeasedRow { object, is_whole: true, is_piece })
}

/// Leases an object as a piece of something that is not whole yet.
fn keep_piece(w: &mut Write, lease: LeaseId, object: ObjectId) -> Result<()> {
    let key = (lease, object);
    let is_whole = w.get::<LeasedRow>(&key)?.is_some_and(|leased| leased.is_whole);
    w.put(&key, &LeasedRow { object, is_whole, is_piece: true })
}

/// An object is no piece any more of anything that is not whole.
fn keep_no_piece(w: &mut Write, lease: LeaseId, object: ObjectId) -> Result<()> {
    let key = (lease, object);
    match w.get::<LeasedRow>(&key)? {
        Some(leased) if leased.is_piece && leased.is_whole => {
            w.put(&key, &LeasedRow { is_piece: false, ..leased })
        }
        Some(leased) if leased.is_piece => w.remove::<LeasedRow>(&key).map(drop),
        _ => Ok(()),
    }
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

/// Writes a recipe whole; its object. One of the same content that does not read becomes it, so that all that
/// refers to that reads again.
fn write_recipe(
    w: &mut Write,
    listed: &Listed,
    pieces: &[Piece],
    damaged: Option<(ObjectId, ObjectRow)>,
) -> Result<ObjectId> {
    let (digest, len) = (listed.digest, listed.len);
    let row = ObjectRow { digest, len, stored_len: 0, codec: 0, place: Place::Recipe };
    let object = match damaged {
        Some((object, damaged)) if w.heal_object(object, &damaged, &row)? => object,
        _ => {
            let object = w.next_object_id()?;
            w.put(&object, &row)?;
            object
        }
    };
    let mut at = 0u64;
    for pieces in pieces.chunks(PIECES_PER_ROW_MAX) {
        w.put(&(object, at), &RecipeRow { pieces: pieces.to_vec() })?;
        at = pieces.iter().fold(at, |at, piece| at.saturating_add(piece.len));
    }
    Ok(object)
}
