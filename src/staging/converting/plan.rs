//! Plan: groups that are ours to convert, until they are converted or the plan is dropped.
//!
//! ```text
//!   detached ──[Stage::plan]──▶ claimed ──[Plan::convert]──▶ published, the claim released with it
//!      ▲                            ├── an error, a panic, no rows: noted, claim released ──╮
//!      │                            ╰── plan dropped ──▶ claims released ─────────────────┤
//!      ╰──────────────────────────────── free for the next plan ◀─────────────────────────╯
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::options::PlanOptions;
use crate::engine::Claim;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, PartId};
use crate::manifest::{ClaimKind, GroupRow, GroupState, PartRow, Reading, ResourceKey};
use crate::staging::{GroupView, Ready, Stage};

/// Groups that nobody else converts as long as this stands. Dropped, it releases exactly its claims.
#[derive(Debug)]
pub struct Plan {
    pub(super) stage: Stage,
    pub(super) groups: Vec<Planned>,
    /// In the order of the groups.
    pub(super) claims: Vec<Claim>,
    /// The schema of the stage when it was made.
    pub(super) schema: Vec<u8>,
}

/// A claimed group, as it stands.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) id: GroupId,
    pub(super) row: GroupRow,
    pub(super) view: GroupView,
    pub(super) parts: Vec<(PartId, PartRow)>,
}

impl Stage {
    /// Claims detached groups that `options` want, those first whose conversion failed, or wrote no rows, least often, and of
    /// these the oldest. Groups that somebody else has are passed over: without any that is free the plan is
    /// empty. It may wait for as long as it likes. A group that failed, or that gave no rows, is free at once
    /// and planned again: whoever plans until nothing is left stops when a round made no output.
    ///
    /// # Errors
    /// `Invalid` for a key of another shape, and a minute that its keys do not have; `CallerPanicked` for a rule
    /// that did; `NotFound` once the stage was removed; `ReadOnly`, `Halted`, `Closed`, `Damage`.
    ///
    /// # Durability
    /// The claims are *Durable* when it returns; they end with the plan, or when its process is gone.
    pub fn plan(&self, options: &PlanOptions<'_>) -> Result<Plan> {
        self.check("plan")?;
        let mut wanted = self.wanted(options)?;
        wanted.sort_unstable();
        let resources: Vec<(ResourceKey, GroupId)> = wanted
            .into_iter()
            .map(|(_, group)| (ResourceKey::of_group(self.id(), group), group))
            .collect();
        let group_of: BTreeMap<_, _> = resources.iter().cloned().collect();
        let keys: Vec<ResourceKey> = resources.into_iter().map(|(resource, _)| resource).collect();
        let claims = self.store.claim_free(
            &keys,
            ClaimKind::Group,
            options.groups_max,
            &|w, resource| {
                let Some(group) = group_of.get(resource) else { return Ok(false) };
                let row = w.get::<GroupRow>(&(self.id(), *group))?;
                Ok(row.is_some_and(|row| row.state != GroupState::Open))
            },
        )?;
        self.planned(claims, &group_of)
    }

    /// The detached groups that `options` want, each behind how often it failed.
    fn wanted(&self, options: &PlanOptions<'_>) -> Result<Vec<(u32, GroupId)>> {
        options.ready.check("plan", self.key_shape())?;
        let keys = options.keys.map(|keys| {
            let bytes = keys.iter().map(|key| self.key_shape().check(key).map(|()| key.to_bytes()));
            bytes.collect::<Result<BTreeSet<Vec<u8>>>>()
        });
        let keys = keys.transpose()?;
        let mut wanted = Vec::new();
        let mut asked = Vec::new();
        {
            let snapshot = self.store.snapshot()?;
            self.row(&snapshot)?;
            let range = (self.id(), GroupId(0))..=(self.id(), GroupId(u64::MAX));
            snapshot.scan::<GroupRow>(range, &mut |(_, group), row| {
                let is_of_key = keys.as_ref().is_none_or(|keys| keys.contains(&row.key));
                if row.state != GroupState::Open && is_of_key {
                    match options.ready {
                        Ready::All => wanted.push((row.failures, group)),
                        _ => asked.push((group, GroupView::of(self.key_shape(), group, &row)?)),
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        // The caller's own code: no snapshot stands meanwhile.
        for (group, view) in asked {
            let said = catch_unwind(AssertUnwindSafe(|| options.ready.says(&view)));
            let said = said.map_err(|_| {
                let cause = "the rule of what is ready panicked; nothing was claimed";
                Error::new(ErrorKind::CallerPanicked, "plan", self.place(), cause)
            })?;
            if said {
                wanted.push((view.failures, group));
            }
        }
        Ok(wanted)
    }

    /// The plan of `claims`: what they are on stands still from now on.
    fn planned(
        &self,
        claims: Vec<Claim>,
        group_of: &BTreeMap<ResourceKey, GroupId>,
    ) -> Result<Plan> {
        let mut plan = Plan { stage: self.clone(), groups: Vec::new(), claims, schema: Vec::new() };
        if plan.claims.is_empty() {
            return Ok(plan);
        }
        let snapshot = self.store.snapshot()?;
        plan.schema = self.row(&snapshot)?.schema;
        for claim in &plan.claims {
            let Some(&id) = group_of.get(claim.resource()) else { continue };
            let row = snapshot.require::<GroupRow>(&(self.id(), id))?;
            let view = GroupView::of(self.key_shape(), id, &row)?;
            let range = (id, PartId(0))..=(id, PartId(u64::MAX));
            let parts = snapshot.list::<PartRow>(range, usize::MAX)?;
            let parts = parts.into_iter().map(|((_, part), row)| (part, row)).collect();
            plan.groups.push(Planned { id, row, view, parts });
        }
        Ok(plan)
    }
}

impl Plan {
    /// Its groups.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &GroupView> {
        self.groups.iter().map(|group| &group.view)
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether nothing was free.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let claims = std::mem::take(&mut self.claims);
        if let Err(e) = self.stage.store.release_claims(claims) {
            // STG11: nobody waits here; the next call tells it.
            self.stage.memory.keep_trouble(e);
        }
    }
}
