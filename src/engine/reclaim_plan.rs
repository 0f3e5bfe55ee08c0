//! What a reclaim would do, and nothing done (OBJ26).

use super::reclaim::{Budget, files_in};
use super::store::Store;
use crate::error::Result;
use crate::manifest::{FileState, Reading, Table};

/// What a reclaim with the same budget would give back now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReclaimPlan {
    /// Condemned files that would be unlinked.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Partly live files that would be rewritten.
    pub compacted: u64,
    /// Live bytes that would be moved by that.
    pub moved_bytes: u64,
    /// Dead bytes that would be given back by that.
    pub dead_bytes: u64,
    /// Files of ours that no row names, which would be removed.
    pub orphans: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
    /// Retired recipes that would be taken apart, as far as the budget goes; what their pieces free is
    /// known when they are.
    pub recipes: u64,
    /// Condemned files that would be left, because a view of this process reads them.
    pub held: u64,
    /// Nothing would be given back: a salvaged store was not released yet.
    pub is_held_by_salvage: bool,
    /// Whether the budget would end before the work.
    pub is_more_left: bool,
}

impl Store {
    /// What [`Store::reclaim`] with `budget` would give back, as the rows and the disk are now. Changes
    /// nothing, and may be asked of a store that is open for reading, beside its writer.
    ///
    /// # Errors
    /// `Damage` when a row does not read; `Io`, `Halted`, `Closed`.
    pub fn reclaim_plan(&self, budget: Budget) -> Result<ReclaimPlan> {
        let core = self.core();
        let building = self.inner.writer.as_ref().map(|writer| &writer.building);
        let mut plan = ReclaimPlan::default();
        if !self.salvage_holds()?.is_empty() {
            (plan.is_held_by_salvage, plan.is_more_left) = (true, true);
            return Ok(plan);
        }
        for (_, len) in super::sweep::orphans(core, building)? {
            plan.orphans += 1;
            plan.orphan_bytes += len;
        }
        plan.recipes = self.snapshot()?.count(Table::Retiring)?;
        let mut files = files_in(core, FileState::Condemned, budget.files.saturating_add(1))?;
        if files.len() as u64 > budget.files {
            plan.is_more_left = true;
            files.pop();
        }
        files.extend(files_in(core, FileState::Unlinking, u64::MAX)?);
        for (id, row) in files {
            if core.pins.allow(id) {
                plan.files += 1;
                plan.bytes += row.len;
            } else {
                plan.held += 1;
            }
        }
        let mut left = budget.copy_bytes;
        for (_, row) in self.worth_compacting(budget.dead_percent)? {
            if left == 0 {
                plan.is_more_left = true;
                break;
            }
            left = left.saturating_sub(row.live);
            plan.compacted += 1;
            plan.moved_bytes += row.live;
            plan.dead_bytes += row.dead;
        }
        Ok(plan)
    }
}
