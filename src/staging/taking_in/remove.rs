//! Removing a stage: all of its rows in one transaction.

use super::stage::{Stage, place};
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, OutputId, PartId, QuarantineId, StreamId};
use crate::manifest::{
    ClaimRow, GroupRow, HandoffRow, HandoffState, OutputRow, OwnerRow, PartRow, ProducerKey,
    ProducerRow, QuarantineRow, Reading, ResourceKey, StageRow, Write,
};
use crate::vfs::Step;

/// What went with a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedStage {
    /// Groups that were not converted.
    pub groups: u64,
    /// Outputs.
    pub outputs: u64,
    /// Things in quarantine.
    pub quarantined: u64,
    /// Objects that nothing refers to any more.
    pub objects: u64,
    /// Their bytes, given back by reclaim.
    pub bytes: u64,
}

impl Store {
    /// Removes the stage called `name` with everything in it: what is staged, groups, outputs, what is in
    /// quarantine, what is known of its producers. `why` goes into the receipt. A stage that is made later
    /// under the same name sees nothing of it.
    ///
    /// # Errors
    /// Each leaves everything as it was: `NotFound`; `Invalid` inside a ready rule of the stage; `Conflict` while a group or an output of it is being
    /// worked on, or handed off, or another process appends to it; `Damage`.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`].
    pub fn remove_stage(&self, name: &str, why: &str) -> Result<RemovedStage> {
        self.remove_stage_if(name, why, false)
    }

    /// As [`Store::remove_stage`], but only where every row is in an output: looked at in the transaction
    /// that removes it, so that no row of anybody goes that was not converted.
    ///
    /// # Errors
    /// As [`Store::remove_stage`]; `Conflict` for rows that are not in any output.
    ///
    /// # Durability
    /// As [`Store::remove_stage`].
    pub fn remove_converted_stage(&self, name: &str, why: &str) -> Result<RemovedStage> {
        self.remove_stage_if(name, why, true)
    }

    fn remove_stage_if(&self, name: &str, why: &str, is_converted: bool) -> Result<RemovedStage> {
        let stage = self.stage(name)?;
        let _one = stage.memory.hold("remove")?;
        // What dead owners claimed is free.
        self.take_over()?;
        let claim = stage.claim_itself()?;
        if let Some(damage) = stage.adopt()? {
            return Err(damage);
        }
        let intakes: Vec<StreamId> = stage.row(&self.snapshot()?)?.intakes;
        for intake in &intakes {
            if !stage.memory.intakes.lock().contains(intake) {
                let holder = self.holder_of(&ResourceKey::of_stream(*intake))?;
                let cause = format!("it is appended to: {}", holder.unwrap_or_default());
                return Err(Error::new(ErrorKind::Conflict, "remove", place(name), cause));
            }
        }
        // Every intake is ours by now, and a new one is seen below.
        let tail_rows = if is_converted { stage.view()?.unsealed_rows() } else { 0 };
        let removed = self.transact_retiring(Step::StageCommit, &intakes, |w| {
            let row = stage.row(w)?;
            if row.intakes != intakes {
                let cause = "another process began to append to it; call again";
                return Err(Error::new(ErrorKind::Conflict, "remove", place(name), cause));
            }
            claim.release_in(w)?;
            stage.check_idle(w)?;
            if is_converted {
                stage.check_converted(w, tail_rows)?;
            }
            let mut removed = stage.remove_rows(w)?;
            w.remove::<StageRow>(&name.to_owned())?;
            (removed.objects, removed.bytes) = self.write_receipt(w, &place(name), why)?;
            Ok(removed)
        })?;
        claim.released();
        stage.memory.removed();
        self.forget_kept(stage.id());
        Ok(removed)
    }
}

impl Stage {
    /// Inside the transaction: nobody works on anything in it.
    fn check_idle(&self, w: &mut Write) -> Result<()> {
        let busy = |what: String| {
            let cause = format!("{what}; wait for it, or end it");
            Err(Error::new(ErrorKind::Conflict, "remove", self.place(), cause))
        };
        let prefix = format!("{}/", ResourceKey::of_stage(self.id()));
        let ours = format!("{prefix}producer/");
        for (resource, held) in w.list::<ClaimRow>(.., usize::MAX)? {
            let name = resource.to_string();
            if !name.starts_with(&prefix) {
                continue;
            }
            if name.starts_with(&ours) && Some(held.owner) == w.owner() {
                w.remove::<ClaimRow>(&resource)?;
                continue;
            }
            let process = w.get::<OwnerRow>(&held.owner)?.map(|owner| owner.pid);
            let process = process.map_or_else(String::new, |pid| format!(" by process {pid}"));
            return busy(format!("{name} is claimed{process}"));
        }
        for (id, row) in w.list::<HandoffRow>(.., usize::MAX)? {
            if row.stage == self.id() && row.state == HandoffState::Prepared {
                return busy(format!("hand-off {id} of output {} is not decided", row.output));
            }
        }
        Ok(())
    }

    /// Inside the transaction: no row is outside of outputs.
    fn check_converted(&self, w: &Write, tail_rows: u64) -> Result<()> {
        let stage = self.id();
        let mut rows = tail_rows;
        let groups = (stage, GroupId(0))..=(stage, GroupId(u64::MAX));
        for (key, _) in w.list::<GroupRow>(groups, usize::MAX)? {
            let parts = (key.1, PartId(0))..=(key.1, PartId(u64::MAX));
            let parts = w.list::<PartRow>(parts, usize::MAX)?;
            rows = parts.iter().fold(rows, |sum, (_, part)| sum.saturating_add(part.rows));
        }
        let aside = (stage, QuarantineId(0))..=(stage, QuarantineId(u64::MAX));
        for (_, row) in w.list::<QuarantineRow>(aside, usize::MAX)? {
            rows = rows.saturating_add(row.part.rows);
        }
        if rows == 0 {
            return Ok(());
        }
        let cause =
            format!("{rows} rows are not in any output yet; convert them, or remove them too");
        Err(Error::new(ErrorKind::Conflict, "remove", self.place(), cause))
    }

    fn remove_rows(&self, w: &mut Write) -> Result<RemovedStage> {
        let stage = self.id();
        let mut removed = RemovedStage::default();
        let groups = (stage, GroupId(0))..=(stage, GroupId(u64::MAX));
        for (key, _) in w.list::<GroupRow>(groups, usize::MAX)? {
            let parts = (key.1, PartId(0))..=(key.1, PartId(u64::MAX));
            for (part, _) in w.list::<PartRow>(parts, usize::MAX)? {
                w.remove::<PartRow>(&part)?;
            }
            w.remove::<GroupRow>(&key)?;
            removed.groups += 1;
        }
        let outputs = (stage, OutputId(0))..=(stage, OutputId(u64::MAX));
        for (key, _) in w.list::<OutputRow>(outputs, usize::MAX)? {
            w.remove::<OutputRow>(&key)?;
            removed.outputs += 1;
        }
        let quarantined = (stage, QuarantineId(0))..=(stage, QuarantineId(u64::MAX));
        for (key, _) in w.list::<QuarantineRow>(quarantined, usize::MAX)? {
            w.remove::<QuarantineRow>(&key)?;
            removed.quarantined += 1;
        }
        let from = ProducerKey { stage, name: String::new() };
        let producers = w.list::<ProducerRow>(from.., usize::MAX)?.into_iter();
        for (key, _) in producers.take_while(|(key, _)| key.stage == stage) {
            w.remove::<ProducerRow>(&key)?;
        }
        for (id, row) in w.list::<HandoffRow>(.., usize::MAX)? {
            if row.stage == stage {
                w.remove::<HandoffRow>(&id)?;
            }
        }
        Ok(removed)
    }
}
