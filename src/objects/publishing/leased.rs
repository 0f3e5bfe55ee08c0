//! What a lease keeps, by digest: only that may be named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::digest::Digest;
use crate::engine::{JOURNAL_HOLDER, remove_leased};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LeaseId, ObjectId};
use crate::manifest::{
    LeaseRow, LeasedRow, ObjectRow, Place, Reading, RecipeRow, Write, recipe_of,
};
use crate::protection::Protection;

/// A lease, as rows have it.
#[derive(Debug)]
struct Leased {
    operation: &'static str,
    lease: LeaseId,
    /// What its own row names.
    objects: BTreeSet<ObjectId>,
}

/// An object that may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keepable {
    pub(super) object: ObjectId,
    pub(super) len: u64,
    /// Whether it consists of others.
    is_recipe: bool,
}

impl Leased {
    /// The lease `lease` in `rows`.
    ///
    /// # Errors
    /// `NotFound` where it does not stand; `Invalid` for one of the journal.
    pub(super) fn of(operation: &'static str, rows: &impl Reading, lease: LeaseId) -> Result<Self> {
        let place = format!("lease {lease}");
        let Some(row) = rows.get::<LeaseRow>(&lease)? else {
            if !Protection::PublishedKept.is_on() {
                return Ok(Self { operation, lease, objects: BTreeSet::new() });
            }
            let cause = "it does not stand: it was abandoned or retired, or never there";
            return Err(Error::new(ErrorKind::NotFound, operation, place, cause));
        };
        if row.holder == JOURNAL_HOLDER {
            return Err(Error::invalid(operation, place, "it keeps what a journal names"));
        }
        Ok(Self { operation, lease, objects: row.objects.into_iter().collect() })
    }

    /// The object of this digest that the lease keeps, and not as a piece of what is not complete.
    ///
    /// # Errors
    /// `NotFound` where it keeps none; `Invalid` where it keeps a piece.
    fn find(&self, rows: &impl Reading, digest: &Digest) -> Result<Keepable> {
        let mut is_piece = false;
        // The newest first: an older one of the same digest may be damaged.
        for (object, row) in rows.object_of(digest)?.into_iter().rev() {
            let leased = rows.get::<LeasedRow>(&(self.lease, object))?;
            let is_kept = self.objects.contains(&object)
                || leased.as_ref().is_some_and(|leased| leased.is_whole);
            // OBJ8
            if is_kept || !Protection::PublishedKept.is_on() {
                let is_recipe = row.place == Place::Recipe;
                return Ok(Keepable { object, len: row.len, is_recipe });
            }
            is_piece |= leased.is_some();
        }
        let place = format!("digest {digest}");
        Err(match is_piece {
            true => {
                let cause = "it is kept as a piece of something that is not complete yet";
                Error::invalid(self.operation, place, cause)
            }
            false => {
                let cause = format!("lease {} keeps nothing of it; put it first", self.lease);
                Error::new(ErrorKind::NotFound, self.operation, place, cause)
            }
        })
    }
}

/// Objects whose pieces were looked at, before the transaction.
pub(super) type LookedAt = BTreeSet<ObjectId>;

/// Refuses what `lease` does not keep, before a transaction begins; that decides. Recipes are looked at here,
/// where nobody waits for it.
pub(super) fn look_early(
    operation: &'static str,
    rows: &impl Reading,
    lease: LeaseId,
    digests: impl Iterator<Item = Digest>,
) -> Result<LookedAt> {
    let nothing = LookedAt::new();
    let mut lookup = Lookup::of(operation, rows, lease, &nothing)?;
    for digest in digests {
        lookup.find(rows, &digest)?;
    }
    Ok(lookup.objects().collect())
}

/// What digests are under a lease, each looked up once in one transaction.
#[derive(Debug)]
pub(super) struct Lookup<'l> {
    leased: Leased,
    looked_at: &'l LookedAt,
    found: BTreeMap<Digest, Keepable>,
}

impl<'l> Lookup<'l> {
    /// # Errors
    /// As [`Leased::of`].
    pub(super) fn of(
        operation: &'static str,
        rows: &impl Reading,
        lease: LeaseId,
        looked_at: &'l LookedAt,
    ) -> Result<Self> {
        let leased = Leased::of(operation, rows, lease)?;
        Ok(Self { leased, looked_at, found: BTreeMap::new() })
    }

    /// As [`Leased::find`]; of a recipe every piece is there.
    pub(super) fn find(&mut self, rows: &impl Reading, digest: &Digest) -> Result<Keepable> {
        if let Some(kept) = self.found.get(digest) {
            return Ok(*kept);
        }
        let kept = self.leased.find(rows, digest)?;
        if kept.is_recipe && !self.looked_at.contains(&kept.object) {
            check_complete(self.leased.operation, rows, kept.object)?;
        }
        self.found.insert(*digest, kept);
        Ok(kept)
    }

    /// All that was found.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.found.values().map(|kept| kept.object)
    }

    /// Ends the lease's hold on all that was found.
    pub(super) fn let_go(&self, w: &mut Write<'_>) -> Result<()> {
        remove_leased(w, self.leased.lease, self.objects())
    }
}

/// OBJ8: the pieces of a recipe follow each other without a gap, up to its end. What it consists of never
/// changes while something refers to it, so one look is enough.
///
/// # Errors
/// `Damage` where they do not.
fn check_complete(operation: &'static str, rows: &impl Reading, object: ObjectId) -> Result<()> {
    let row = rows.require::<ObjectRow>(&object)?;
    let (mut end, mut is_dense) = (0u64, true);
    rows.scan::<RecipeRow>(recipe_of(object), &mut |(_, begins), recipe| {
        is_dense = begins == end && !recipe.pieces.is_empty();
        end = end.saturating_add(recipe.bytes().unwrap_or(u64::MAX));
        Ok(if is_dense { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    match is_dense && end == row.len {
        true => Ok(()),
        false => {
            let place = format!("digest {}", row.digest);
            Err(Error::damage(
                operation,
                place,
                format!("byte {end} of it is in none of its pieces"),
            ))
        }
    }
}
