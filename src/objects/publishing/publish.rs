//! Publish: many names at once stand for what a lease keeps; and letting go of one.

use std::cell::Cell;

use super::change::{
    Expected, PUBLISH_NAMES_MAX, Publish, Published, check_expected, check_names, set_name,
};
use super::leased::{LookedAt, Lookup, look_early};
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
            let mut lookup = Lookup::of("publish", w, lease, &looked_at)?;
            let mut publishing = Publishing::default();
            for Publish { name, expected, digest } in changes {
                let old = check_expected("publish", w, name, *expected)?;
                let kept = lookup.find(w, digest)?;
                publishing.set(w, name, old.as_ref(), (kept.object, *digest, kept.len))?;
            }
            // P4: names, leases, and what goes with them change in one transaction.
            lookup.let_go(w)?;
            let replaced = publishing.replaced;
            let (objects, bytes) = match replaced {
                0 => (0, 0),
                names => {
                    let what = format!("what {names} names stood for");
                    self.store().write_receipt(w, &what, "published")?
                }
            };
            Ok(publishing.published(w, objects, bytes))
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

/// What cannot succeed is refused before a transaction begins; that decides.
pub(super) fn check_early(
    store: &Store,
    operation: &'static str,
    lease: LeaseId,
    changes: &[Publish],
) -> Result<LookedAt> {
    let snapshot = store.snapshot()?;
    for change in changes.iter().filter(|change| change.expected != Expected::Any) {
        check_expected(operation, &snapshot, &change.name, change.expected)?;
    }
    look_early(operation, &snapshot, lease, changes.iter().map(|change| change.digest))
}

/// What one transaction publishes.
#[derive(Debug, Default)]
pub(super) struct Publishing {
    names: Vec<NameView>,
    replaced: u64,
}

impl Publishing {
    /// Lets `name` stand for an object, by digest and length.
    pub(super) fn set(
        &mut self,
        w: &mut Write<'_>,
        name: &Name,
        old: Option<&NameRow>,
        to: (ObjectId, Digest, u64),
    ) -> Result<()> {
        self.replaced += u64::from(old.is_some_and(|old| old.object != to.0));
        self.names.push(set_name(w, name, old, to)?);
        Ok(())
    }

    /// What it did; `objects` went for it.
    pub(super) fn published(self, w: &Write<'_>, objects: u64, bytes: u64) -> Published {
        let Self { names, replaced } = self;
        Published { commit: w.commit_seq(), names, replaced, objects, bytes }
    }
}
