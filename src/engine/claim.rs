//! Claims and leases. A claim gives one owner the exclusive right to work on a named thing; a
//! lease forbids reclaim, and many may hold one.
//!
//! ```text
//!   free --- [Store::claim] ---> held --- guard dropped, [Claim::release_in] ---> free
//!                                  \---- its owner died, [take_over] -----------> free
//! ```

use std::cell::Cell;

use super::owner::the_living;
use super::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, LeaseId, ObjectId, OwnerId};
use crate::manifest::{
    ClaimKind, ClaimRow, LeaseRow, OwnerRow, PREPARATION_HOLDER, Reading, ResourceKey, Write,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// The exclusive right to work on one thing. Releases exactly itself, on drop and on panic.
#[derive(Debug)]
pub struct Claim {
    store: Store,
    resource: ResourceKey,
    taken: CommitSeq,
    is_held: bool,
}

/// A claim as listed.
#[derive(Debug, Clone)]
pub struct ClaimHeld {
    /// What it is on.
    pub resource: ResourceKey,
    /// The row.
    pub row: ClaimRow,
    /// Who holds it, where its row is still there: host and process.
    pub holder: Option<OwnerRow>,
}

impl Claim {
    /// The guard of a claim whose row was committed.
    pub(super) fn held(store: &Store, resource: ResourceKey, taken: CommitSeq) -> Self {
        Self { store: store.clone(), resource, taken, is_held: true }
    }

    /// What it is on.
    pub fn resource(&self) -> &ResourceKey {
        &self.resource
    }

    /// Releases inside a transaction, so that a right and what it protected end together.
    ///
    /// # Errors
    /// `Fenced` when the claim is not ours any more.
    pub fn release_in(&self, w: &mut Write) -> Result<()> {
        let me = self.store.core().check_write("release")?;
        match w.get::<ClaimRow>(&self.resource)? {
            Some(row) if row.owner == me.owner && row.taken == self.taken => {
                w.remove::<ClaimRow>(&self.resource)?;
                Ok(())
            }
            _ => Err(Error::new(ErrorKind::Fenced, "release", &self.resource, "it is not ours")),
        }
    }

    /// Leaves the claim to this opening: it stands until its row is taken away, or the opening ends.
    pub(crate) fn left_to_opening(mut self) {
        self.is_held = false;
    }

    /// Tells the guard that a transaction with [`Claim::release_in`] committed.
    pub fn released(mut self) {
        self.is_held = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_held || !self.store.core().condition.is_working() {
            return;
        }
        let released = self.store.transact(Step::ClaimCommit, |w| self.release_in(w));
        // Fenced: what it was on is gone, and it with it.
        if let Err(e) = released
            && e.kind() != ErrorKind::Fenced
        {
            self.store.core().unreleased.remember(&self.resource, self.taken);
            self.store.core().condition.warn(e);
        }
    }
}

/// Why `resource` is not ours: who holds it.
pub(super) fn held_by(
    w: &impl Reading,
    operation: &'static str,
    resource: &ResourceKey,
    held: &ClaimRow,
) -> Result<Error> {
    let holder = match w.get::<OwnerRow>(&held.owner)? {
        Some(o) => format!("held by process {} on {} (owner {})", o.pid, o.host, held.owner),
        None => format!("held by owner {}", held.owner),
    };
    Ok(Error::new(ErrorKind::Conflict, operation, resource, holder))
}

impl Store {
    /// Claims `resource`, or fails at once naming who holds it.
    ///
    /// # Errors
    /// `Conflict` with the holder; `Invalid` for the name of a stream's claim, which
    /// [`Store::claim_stream`] takes.
    ///
    /// # Durability
    /// *Durable*: it ends when released, or when its owner's process is gone.
    pub fn claim(&self, resource: &ResourceKey, kind: ClaimKind) -> Result<Claim> {
        if resource.is_of_stream() {
            return Err(Error::invalid("claim", resource, "streams are claimed with claim_stream"));
        }
        let me = self.core().check_write("claim")?;
        self.release_left()?;
        let since = self.core().disk.wall_nanos();
        let committed = self.transact(Step::ClaimCommit, |w| {
            let taken = w.commit_seq();
            let row = ClaimRow { owner: me.owner, epoch: me.epoch, kind, since, taken };
            let Some(held) = w.get::<ClaimRow>(resource)? else { return w.put(resource, &row) };
            Err(held_by(w, "claim", resource, &held)?)
        })?;
        Ok(Claim::held(self, resource.clone(), committed.commit))
    }

    /// Claims `resource` in the transaction that makes `change`: both stand, or neither does. A
    /// holder that died is ended first.
    ///
    /// # Errors
    /// `Conflict` with the holder; what `change` returns.
    ///
    /// # Durability
    /// *Durable* when it returns, claim and change.
    pub(crate) fn claim_with<T>(
        &self,
        resource: &ResourceKey,
        kind: ClaimKind,
        step: Step,
        change: impl Fn(&mut Write) -> Result<T>,
    ) -> Result<(T, Claim)> {
        let me = self.core().check_write("claim")?;
        self.release_left()?;
        let since = self.core().disk.wall_nanos();
        let mut asked: Vec<OwnerId> = Vec::new();
        loop {
            let holder = Cell::new(None);
            let tried = self.transact(step, |w| {
                let taken = w.commit_seq();
                if let Some(held) = w.get::<ClaimRow>(resource)?
                    && Protection::RecordingClaim.is_on()
                {
                    holder.set(Some(held.owner));
                    return Err(held_by(w, "claim", resource, &held)?);
                }
                let (owner, epoch) = (me.owner, me.epoch);
                w.put(resource, &ClaimRow { owner, epoch, kind, since, taken })?;
                change(w)
            });
            match (tried, holder.get()) {
                (Ok(committed), _) => {
                    let claim = Claim::held(self, resource.clone(), committed.commit);
                    return Ok((committed.value, claim));
                }
                (Err(e), Some(owner)) if owner != me.owner && !asked.contains(&owner) => {
                    asked.push(owner);
                    if !self.take_over_of(owner)? {
                        return Err(e);
                    }
                }
                (Err(e), _) => return Err(e),
            }
        }
    }

    /// Ends the claim on `resource` that nobody holds any more: one whose release failed, or whose owner died.
    ///
    /// # Errors
    /// As [`Store::transact`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub(crate) fn end_dead_claim(&self, resource: &ResourceKey) -> Result<()> {
        let me = self.core().check_write("claim")?;
        self.release_left()?;
        match self.snapshot()?.get::<ClaimRow>(resource)? {
            Some(held) if held.owner != me.owner => self.take_over_of(held.owner).map(drop),
            _ => Ok(()),
        }
    }

    /// Who holds `resource` and lives, in words.
    ///
    /// # Errors
    /// `Damage` for a row that does not read; `Io`.
    pub(crate) fn holder_of(&self, resource: &ResourceKey) -> Result<Option<String>> {
        let snapshot = self.snapshot()?;
        let Some(held) = snapshot.get::<ClaimRow>(resource)? else { return Ok(None) };
        let is_alive = match self.owner() {
            Some((me, _)) if held.owner == me => !self.core().unreleased.has(resource, held.taken),
            // Where one process writes, what another one held is free.
            Some(_) if !self.core().is_shared() => false,
            _ => the_living(self.core())?.contains(&held.owner),
        };
        match is_alive {
            true => {
                held_by(&snapshot, "claim", resource, &held).map(|e| Some(e.cause().to_owned()))
            }
            false => Ok(None),
        }
    }

    /// Every claim that stands, at most `at_most`.
    ///
    /// # Errors
    /// `Damage` for a row that does not read.
    pub fn claims(&self, at_most: usize) -> Result<Vec<ClaimHeld>> {
        let snapshot = self.snapshot()?;
        let rows = snapshot.list::<ClaimRow>(.., at_most)?;
        rows.into_iter()
            .map(|(resource, row)| {
                let holder = snapshot.get::<OwnerRow>(&row.owner)?;
                Ok(ClaimHeld { resource, row, holder })
            })
            .collect()
    }

    /// Opens a lease: what it names is not reclaimed while it stands. It may outlive the process.
    /// `deadline` (wall-clock nanoseconds since 1970) is only reported as passed, never acted on.
    ///
    /// # Errors
    /// `Invalid` for a blank holder and for `journal` and `preparation`, which the store has for its own;
    /// `NotFound` for an object that does not stand.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn lease(
        &self,
        holder: &str,
        purpose: &str,
        deadline: Option<i64>,
        objects: &[ObjectId],
    ) -> Result<LeaseId> {
        if holder.trim().is_empty() || holder == super::append::JOURNAL_HOLDER {
            return Err(Error::invalid("lease", "holder", "it is blank, or the journal's own"));
        }
        if holder == PREPARATION_HOLDER {
            let cause = "it is that of preparations, which Objects::prepare begins; take another";
            return Err(Error::invalid("lease", "holder", cause));
        }
        let row = LeaseRow {
            holder: holder.to_owned(),
            purpose: purpose.to_owned(),
            deadline,
            objects: objects.to_vec(),
        };
        let committed = self.transact(Step::LeaseCommit, |w| {
            let lease = w.next_lease_id()?;
            w.put(&lease, &row)?;
            Ok(lease)
        })?;
        Ok(committed.value)
    }
}
