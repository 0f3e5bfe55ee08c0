//! Set aside: a detached group goes to quarantine as it is, because its owner says so.

use super::quarantine::{Quarantined, put_aside};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, PartId};
use crate::manifest::{
    ClaimKind, GroupRow, GroupState, PartRow, QuarantineRow, Reading, ResourceKey,
};
use crate::staging::Stage;
use crate::staging::describing::shortened;
use crate::vfs::Step;

impl Stage {
    /// Puts a detached group into quarantine, part by part, with `why`: for one whose conversion fails
    /// each time, so that it is planned no more. Nothing of it is lost: its rows are in every view, its bytes can be
    /// exported, and [`Stage::retry`] gives each part back. Returns what is in quarantine now.
    ///
    /// # Errors
    /// `NotFound` for a group that is not there; `Invalid` for one that is not detached yet, and for a
    /// blank `why`; `Conflict` while somebody converts it. Each leaves it as it was.
    ///
    /// # Durability
    /// *Durable* when it returns: ONE transaction.
    pub fn set_aside(&self, group: GroupId, why: &str) -> Result<Vec<Quarantined>> {
        self.check("set aside")?;
        let place = || format!("group {group} of {}", self.place());
        if why.trim().is_empty() {
            return Err(Error::invalid("set aside", place(), "say why"));
        }
        let key = (self.id(), group);
        let resource = ResourceKey::of_group(self.id(), group);
        let (kind, step) = (ClaimKind::Group, Step::ClaimCommit);
        let (_, claim) = self.store.claim_with(&resource, kind, step, |w| {
            self.row(w)?;
            match w.get::<GroupRow>(&key)? {
                Some(row) if row.state != GroupState::Open => Ok(()),
                Some(_) => Err(Error::invalid("set aside", place(), "it is open; flush it first")),
                None => {
                    let cause = "it is not there; it may have been converted";
                    Err(Error::new(ErrorKind::NotFound, "set aside", place(), cause))
                }
            }
        })?;
        let at = self.store.wall_nanos();
        let committed = self.store.transact(Step::QuarantineCommit, |w| {
            claim.release_in(w)?;
            let row = w.require::<GroupRow>(&key)?;
            let mut quarantined = Vec::new();
            let parts = (group, PartId(0))..=(group, PartId(u64::MAX));
            for (part, part_row) in w.list::<PartRow>(parts, usize::MAX)? {
                w.remove::<PartRow>(&part)?;
                let aside = QuarantineRow {
                    group,
                    key: row.key.clone(),
                    reason: shortened(why.to_owned()),
                    objects: vec![part_row.object],
                    part: part_row,
                    at,
                };
                let id = w.next_quarantine_id()?;
                put_aside(w, self, id, &aside)?;
                quarantined.push(Quarantined::of(self.key_shape(), id, &aside)?);
            }
            w.remove::<GroupRow>(&key)?;
            Ok(quarantined)
        })?;
        claim.released();
        Ok(committed.value)
    }
}
