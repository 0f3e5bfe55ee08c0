//! Many claims at once: of those that are wanted, the ones that are free.

use std::collections::BTreeSet;

use super::claim::Claim;
use super::store::Store;
use crate::error::{ErrorKind, Result};
use crate::ids::OwnerId;
use crate::manifest::{ClaimKind, ClaimRow, Reading, ResourceKey, Write};
use crate::protection::Protection;
use crate::vfs::Step;

impl Store {
    /// Claims of `wanted`, in their order, those that nobody holds and that `may` agrees to, `at_most`
    /// so many, in ONE transaction. What a dead owner held is freed first; what a living one holds, or we
    /// ourselves, is passed over. `may` looks at the rows of that transaction. Where none is free nothing
    /// is committed.
    ///
    /// # Errors
    /// What `may` returns: then none is claimed.
    ///
    /// # Durability
    /// *Durable*: each ends when released, or when its owner's process is gone.
    pub(crate) fn claim_free(
        &self,
        wanted: &[ResourceKey],
        kind: ClaimKind,
        at_most: usize,
        may: &dyn Fn(&Write<'_>, &ResourceKey) -> Result<bool>,
    ) -> Result<Vec<Claim>> {
        let me = self.core().check_write("claim")?;
        self.release_left()?;
        if !self.may_be_free(wanted, me.owner)? || at_most == 0 {
            return Ok(Vec::new());
        }
        let since = self.core().disk.wall_nanos();
        let committed = self.transact(Step::ClaimCommit, |w| {
            let (mut claimed, taken) = (Vec::new(), w.commit_seq());
            for resource in wanted {
                if claimed.len() >= at_most {
                    break;
                }
                let is_held = w.get::<ClaimRow>(resource)?.is_some();
                if (is_held && Protection::ClaimExclusive.is_on()) || !may(w, resource)? {
                    continue;
                }
                let (owner, epoch) = (me.owner, me.epoch);
                w.put(resource, &ClaimRow { owner, epoch, kind, since, taken })?;
                claimed.push(resource.clone());
            }
            Ok(claimed)
        })?;
        let claim = |resource| Claim::held(self, resource, committed.commit);
        Ok(committed.value.into_iter().map(claim).collect())
    }

    /// Ends the dead among those that hold some of `wanted`; whether any of these may be free then.
    fn may_be_free(&self, wanted: &[ResourceKey], me: OwnerId) -> Result<bool> {
        let (mut holders, mut is_free) = (BTreeSet::new(), !Protection::ClaimExclusive.is_on());
        let snapshot = self.snapshot()?;
        for resource in wanted {
            match snapshot.get::<ClaimRow>(resource)? {
                Some(held) if held.owner == me => {}
                Some(held) => drop(holders.insert(held.owner)),
                None => is_free = true,
            }
        }
        drop(snapshot);
        for holder in holders {
            match self.take_over_of(holder) {
                Ok(has_ended) => is_free |= has_ended,
                // Its journals do not read: what it held stays as it is, and all others go on.
                Err(e) if e.kind() == ErrorKind::Damage => self.core().condition.warn(e),
                Err(e) => return Err(e),
            }
        }
        Ok(is_free)
    }

    /// Lets go of `claims` in one transaction.
    ///
    /// # Errors
    /// As [`Store::transact`]: what was not released then is by the next that claims something. A claim
    /// that is not ours any more is no error.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub(crate) fn release_claims(&self, claims: Vec<Claim>) -> Result<()> {
        if claims.is_empty() {
            return Ok(());
        }
        self.transact(Step::ClaimCommit, |w| {
            claims.iter().try_for_each(|claim| match claim.release_in(w) {
                Err(e) if e.kind() == ErrorKind::Fenced => Ok(()),
                released => released,
            })
        })?;
        claims.into_iter().for_each(Claim::released);
        Ok(())
    }
}
