//! Flush: what is staged is sealed, and the groups that are ready are detached.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::draft::Drafted;
use super::portion::Ends;
use super::ready::Ready;
use super::seal::Detach;
use super::stage::Stage;
use crate::engine::Claim;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::GroupId;
use crate::manifest::{ClaimKind, GroupRow, OpenGroupKey, OpenGroupRow, Reading, ResourceKey};
use crate::protection::Protection;
use crate::staging::describing::GroupView;
use crate::vfs::Step;

/// What a flush did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Rows that were sealed.
    pub rows: u64,
    /// Batches that were sealed.
    pub batches: u64,
    /// Parts that hold them.
    pub parts: u64,
    /// Groups that were detached, by number.
    pub detached: Vec<GroupId>,
}

impl Flushed {
    fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.batches += other.batches;
        self.parts += other.parts;
        self.detached.extend(other.detached);
    }
}

impl Stage {
    /// Seals what is staged here, and detaches the groups that are `ready`: what comes later of their keys
    /// begins another group. A rule is asked about each open group before any is detached; what it says
    /// holds for the batches that were there then. It may look at the stage; there it is refused to
    /// flush, seal, open or remove it, and it may not wait for another thread that does. Where nothing is staged nothing is made.
    ///
    /// What other processes have staged, they seal; what dead ones left is sealed here.
    ///
    /// # Errors
    /// `Conflict` while another process flushes, recovers or removes the stage; `Invalid` for a minute that
    /// its keys do not have, and from its own rule; `CallerPanicked` for a rule that did; `NotFound` once it was removed;
    /// `DiskFull`.
    ///
    /// # Durability
    /// *Durable* when it returns: ONE transaction for what it sealed and detached. Of what is more than twice
    /// `stage_unsealed_bytes`, or than 4,096 parts, the first of it is sealed by transactions before that.
    pub fn flush(&self, ready: &Ready<'_>) -> Result<Flushed> {
        self.check("flush")?;
        ready.check("flush", self.key_shape())?;
        let _one = self.memory.hold("flush")?;
        self.store.release_left()?;
        let claim = match self.has_others()? {
            true => {
                let claim = self.claim_for_flush()?;
                self.adopt()?;
                claim
            }
            false => None,
        };
        let (drafted, mut flushed) = self.seal_portions()?;
        let detach = self.asked(ready, &drafted)?;
        // STG6
        if drafted.is_empty() && detach.ready.is_empty() {
            return Ok(flushed);
        }
        let claim = match claim {
            None => self.claim_for_flush()?,
            claim => claim,
        };
        flushed.add(self.seal_drafted(drafted, &detach, claim)?);
        Ok(flushed)
    }

    /// Seals what is staged here, and detaches nothing. Appending does so by itself past the limit
    /// `stage_unsealed_bytes`.
    ///
    /// # Errors
    /// `NotFound` once the stage was removed; `DiskFull`.
    ///
    /// # Durability
    /// *Durable* when it returns: ONE transaction for each 4,096 parts, and for each twice
    /// `stage_unsealed_bytes`.
    pub fn seal(&self) -> Result<Flushed> {
        self.check("seal")?;
        let _one = self.memory.hold("seal")?;
        self.seal_now()
    }

    /// As [`Stage::seal`]; the caller holds `sealing`.
    pub(super) fn seal_now(&self) -> Result<Flushed> {
        let (drafted, mut flushed) = self.seal_portions()?;
        if !drafted.is_empty() {
            flushed.add(self.seal_drafted(drafted, &Detach::default(), None)?);
        }
        Ok(flushed)
    }

    /// Seals what is more than one publication takes, and drafts the rest.
    fn seal_portions(&self) -> Result<(Drafted, Flushed)> {
        let (mut ends, mut flushed) = (Ends::new(), Flushed::default());
        loop {
            let drafted = self.draft(&mut ends)?;
            if !drafted.is_cut {
                return Ok((drafted, flushed));
            }
            flushed.add(self.seal_drafted(drafted, &Detach::default(), None)?);
        }
    }

    /// STG13: who flushes holds the stage.
    fn claim_for_flush(&self) -> Result<Option<Claim>> {
        match Protection::StageClaim.is_on() {
            true => self.claim_itself().map(Some),
            false => Ok(None),
        }
    }

    /// The claim on recovering, flushing or removing the stage.
    pub(super) fn claim_itself(&self) -> Result<Claim> {
        let resource = ResourceKey::of_stage(self.id());
        let (kind, step) = (ClaimKind::Stage, Step::ClaimCommit);
        Ok(self.store.claim_with(&resource, kind, step, |w| self.row(w).map(drop))?.1)
    }

    /// Asks the rule about every open group, with what is drafted in it.
    fn asked(&self, ready: &Ready<'_>, drafted: &Drafted) -> Result<Detach> {
        let mut groups = self.open_groups()?;
        for (key, draft) in &drafted.groups {
            if !groups.contains_key(key) {
                groups.insert(key.clone(), GroupView::empty(self.key_shape().key_of(key)?));
            }
            if let Some(group) = groups.get_mut(key) {
                group.add_unsealed(
                    draft.rows,
                    draft.batches,
                    draft.len,
                    draft.first_at,
                    draft.last_at,
                );
            }
        }
        let is_forced = matches!(ready, Ready::All);
        let mut detach = Detach { ready: BTreeMap::new(), is_forced };
        for (key, group) in groups {
            let said = catch_unwind(AssertUnwindSafe(|| ready.says(&group))).map_err(|_| {
                let cause = "the rule of what is ready panicked; nothing was changed";
                Error::new(ErrorKind::CallerPanicked, "flush", self.place(), cause)
            })?;
            if said {
                detach.ready.insert(key, group.id);
            }
        }
        Ok(detach)
    }

    /// The open groups, by key.
    fn open_groups(&self) -> Result<BTreeMap<Vec<u8>, GroupView>> {
        let snapshot = self.store.snapshot()?;
        let at = |key: &[u8], group| OpenGroupKey { stage: self.id(), key: key.to_vec(), group };
        let mut groups = BTreeMap::new();
        // Keys sort by their length first: the last is as long as can be.
        let from = at(&[], GroupId(0));
        let rows = snapshot.list::<OpenGroupRow>(from.., usize::MAX)?;
        for (open, _) in rows.into_iter().take_while(|(open, _)| open.stage == self.id()) {
            let row = snapshot.require::<GroupRow>(&(self.id(), open.group))?;
            let group = GroupView::of(self.key_shape(), open.group, &row)?;
            groups.insert(open.key, group);
        }
        Ok(groups)
    }
}
