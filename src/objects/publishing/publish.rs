//! Publish: many names at once stand for what a lease keeps; and letting go of one.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::change::{
    Expected, PUBLISH_NAMES_MAX, Publish, Published, check_expected, check_names, set_name,
};
use super::leased::{Keepable, Leased, check_complete};
use crate::digest::Digest;
use crate::engine::{Store, remove_name};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LeaseId, ObjectId};
use crate::manifest::{NameRow, Write};
use crate::objects::describing::{Name, NameView, Objects};
use crate::vfs::Step;

impl Objects {
    /// Lets every name of `changes` stand for its digest, all or none, in ONE transaction. Each digest is of
    /// an object, whole, that `lease` keeps; its hold on it ends with that. What a name stood for before goes
    /// in the same transaction, unless something else refers to it: another name, a snapshot, or a
    /// publication that is still to come, which is what keeps it in a preparation, in another lease, or in
    /// a hand-off.
    ///
    /// # Errors
    /// Each leaves everything as it was: `Conflict` where something else stands than was expected
    /// ([`Present::of`](super::Present::of) says what); `NotFound` for a lease that does not stand and for a
    /// digest that it does not keep; `Invalid` for a piece of what is not complete, a name that is there
    /// twice, and for no name at all; `LimitExceeded` above [`PUBLISH_NAMES_MAX`]; `ReadOnly`. After
    /// `OutcomeUnknown` the store has halted, and everything or nothing took place.
    ///
    /// # Durability
    /// *Durable* when it returns. What can be read under a name was durable before the name is.
    pub fn publish(&self, lease: LeaseId, changes: &[Publish]) -> Result<Published> {
        check_names("publish", changes.iter().map(|change| &change.name), PUBLISH_NAMES_MAX)?;
        let looked_at = check_early(self.store(), "publish", lease, changes)?;
        let committed = self.store().transact(Step::NamesCommit, |w| {
            let leased = Leased::of("publish", w, lease)?;
            let mut publishing = Publishing::default();
            for Publish { name, expected, digest } in changes {
                let old = check_expected("publish", w, name, *expected)?;
                let kept = publishing.find(w, &leased, digest, &looked_at)?;
                publishing.set(w, name, old.as_ref(), *digest, kept)?;
            }
            // P4: names, leases, and what goes with them change in one transaction.
            leased.let_go(w, publishing.objects())?;
            publishing.end(self.store(), w, "published")
        })?;
        Ok(committed.value)
    }

    /// Lets go of `name` if it stands for `digest`; `false`, and nothing is changed, where something else or
    /// nothing stands there. What it stood for goes in the same transaction, unless something else refers to
    /// it.
    ///
    /// # Errors
    /// `ReadOnly`; after `OutcomeUnknown` the store has halted, and the name is there or not.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn release(&self, name: &Name, digest: &Digest) -> Result<bool> {
        let stands = |rows: &Write<'_>| Ok(NameView::find(rows, name)?.map(|view| view.digest));
        // What does not stand there now is told without a transaction.
        if self.name(name)?.map(|view| view.digest) != Some(*digest) {
            return Ok(false);
        }
        let is_other = Cell::new(false);
        let released = self.store().transact(Step::NamesCommit, |w| {
            // OBJ10
            if stands(w)? != Some(*digest) {
                is_other.set(true);
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "release",
                    name,
                    "something else stands",
                ));
            }
            remove_name(w, &name.key())?;
            self.store().write_receipt(w, &format!("name {name}"), "released").map(drop)
        });
        match released {
            Err(_) if is_other.get() => Ok(false),
            released => released.map(|_| true),
        }
    }
}

/// Objects whose pieces were looked at, before the transaction.
pub(super) type LookedAt = BTreeSet<ObjectId>;

/// What cannot succeed is refused before a transaction begins; that decides. Recipes are looked at here,
/// where nobody waits for it.
pub(super) fn check_early(
    store: &Store,
    operation: &'static str,
    lease: LeaseId,
    changes: &[Publish],
) -> Result<LookedAt> {
    let snapshot = store.snapshot()?;
    let leased = Leased::of(operation, &snapshot, lease)?;
    let mut looked_at = LookedAt::new();
    for change in changes {
        let kept = leased.find(&snapshot, &change.digest)?;
        if kept.is_recipe && looked_at.insert(kept.object) {
            check_complete(operation, &snapshot, kept.object)?;
        }
        if change.expected != Expected::Any {
            check_expected(operation, &snapshot, &change.name, change.expected)?;
        }
    }
    Ok(looked_at)
}

/// What one transaction publishes.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    found: BTreeMap<Digest, Keepable>,
    names: Vec<NameView>,
    replaced: u64,
}

impl Publishing {
    /// What `leased` keeps of `digest`, looked up once.
    pub(super) fn find(
        &mut self,
        w: &Write<'_>,
        leased: &Leased,
        digest: &Digest,
        looked_at: &LookedAt,
    ) -> Result<Keepable> {
        if let Some(kept) = self.found.get(digest) {
            return Ok(*kept);
        }
        let kept = leased.find(w, digest)?;
        if kept.is_recipe && !looked_at.contains(&kept.object) {
            check_complete("publish", w, kept.object)?;
        }
        self.found.insert(*digest, kept);
        Ok(kept)
    }

    /// Lets `name` stand for what was found.
    pub(super) fn set(
        &mut self,
        w: &mut Write<'_>,
        name: &Name,
        old: Option<&NameRow>,
        digest: Digest,
        kept: Keepable,
    ) -> Result<()> {
        self.replaced += u64::from(old.is_some_and(|old| old.object != kept.object));
        self.names.push(set_name(w, name, old, (kept.object, digest, kept.len))?);
        Ok(())
    }

    /// What names stand for by it.
    pub(super) fn objects(&self) -> Vec<ObjectId> {
        self.found.values().map(|kept| kept.object).collect()
    }

    /// What went for it is settled, with a receipt.
    pub(super) fn end(self, store: &Store, w: &mut Write<'_>, why: &str) -> Result<Published> {
        let Self { names, replaced, .. } = self;
        let (objects, bytes) = match replaced {
            0 => (0, 0),
            names => store.write_receipt(w, &format!("what {names} names stood for"), why)?,
        };
        Ok(Published { commit: w.commit_seq(), names, replaced, objects, bytes })
    }
}
