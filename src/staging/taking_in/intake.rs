//! Intakes: the streams that a stage's batches are accepted in, one for each owner that appends.
//!
//! ```text
//!   created [own_intake] ──▶ ours ──(our opening ends)──▶ free ──[adopt]──▶ ours, its tail read
//!                              ╰──[seal: all but the one that is appended to]──▶ retired
//! ```
//! STG12: what a living owner holds is passed over. STG16: what is ours is not adopted again.

use super::stage::Stage;
use crate::engine::create_intake;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::StreamId;
use crate::manifest::{ClaimKind, ClaimRow, ResourceKey};
use crate::protection::Protection;
use crate::vfs::Step;

impl Stage {
    /// The intake that this opening appends to, made where there is none.
    pub(super) fn own_intake(&self) -> Result<StreamId> {
        let mut intakes = self.memory.intakes.lock();
        if let Some(intake) = intakes.first() {
            return Ok(*intake);
        }
        let since = self.store.wall_nanos();
        let (owner, epoch) = self.store.owner().unzip();
        let committed = self.store.transact(Step::StageCommit, |w| {
            let mut row = self.row(w)?;
            let intake = create_intake(w, &format!("intake of stage {}", self.id()))?;
            row.intakes.push(intake);
            w.put(&self.memory.name, &row)?;
            // STG12: it is ours before anybody can see it.
            if let (Some(owner), Some(epoch), true) = (owner, epoch, self.store.is_shared()) {
                let (kind, taken) = (ClaimKind::Stream, w.commit_seq());
                let claim = ClaimRow { owner, epoch, kind, since, taken };
                w.put(&ResourceKey::of_stream(intake), &claim)?;
            }
            Ok(intake)
        })?;
        // An adoption may have seen it, and that it is ours.
        intakes.retain(|intake| *intake != committed.value);
        intakes.insert(0, committed.value);
        Ok(committed.value)
    }

    /// Makes the intakes ours that no living owner holds. The caller holds the claim on the stage, or
    /// where one process writes the store. P6: an intake of which the journals do not read stays whose it
    /// was, health tells it, and all others go on; of several the first is returned.
    pub(super) fn adopt(&self) -> Result<Option<Error>> {
        let mut passed = None;
        for intake in self.row(&self.store.snapshot()?)?.intakes {
            if self.memory.intakes.lock().contains(&intake) {
                continue;
            }
            if self.store.is_shared() && Protection::StageAdoption.is_on() {
                match self.store.claim_stream(intake) {
                    // Its owner lives, or took it out itself meanwhile.
                    Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::NotFound) => {
                        continue;
                    }
                    Err(e) if e.kind() == ErrorKind::Damage => {
                        self.store.tell_health(e.clone());
                        passed.get_or_insert(e);
                        continue;
                    }
                    claimed => claimed?,
                }
            }
            self.memory.add_intake(intake);
        }
        Ok(passed)
    }

    /// Whether there are intakes that may be free.
    pub(super) fn has_others(&self) -> Result<bool> {
        let row = self.row(&self.store.snapshot()?)?;
        let others: Vec<StreamId> = {
            let intakes = self.memory.intakes.lock();
            row.intakes.into_iter().filter(|intake| !intakes.contains(intake)).collect()
        };
        for intake in others {
            if self.store.holder_of(&ResourceKey::of_stream(intake))?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// At opening: makes ours what nobody holds, unless another process is at it.
    pub(super) fn recover(&self) -> Result<()> {
        if self.store.owner().is_none() {
            return Ok(());
        }
        self.memory.check_not_held("open")?;
        if !self.has_others()? {
            return Ok(());
        }
        let _one = self.memory.hold("open")?;
        if !self.store.is_shared() || !Protection::StageClaim.is_on() {
            return self.adopt().map(drop);
        }
        // STG13: recovery and flush exclude one another.
        match self.claim_itself() {
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
            Err(e) => Err(e),
            Ok(_claim) => self.adopt().map(drop),
        }
    }
}
