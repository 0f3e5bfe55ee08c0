//! Owners and claims: epochs are used once, claims name owners that stand, and who lives is told by
//! the locks.

use std::collections::HashMap;
use std::io;

use super::look::{Look, place_of};
use super::report::Severity;
use super::rows::each_again;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{Epoch, OwnerId};
use crate::manifest::{ClaimRow, OwnerRow, Snapshot};
use crate::vfs::{Access, LockRange};

/// Looks at owners and claims. Returns the owners that live.
pub(super) fn check_owners(look: &mut Look, snapshot: &Snapshot) -> Result<Vec<OwnerId>> {
    let mut owners: HashMap<OwnerId, OwnerRow> = HashMap::new();
    let mut epochs: HashMap<Epoch, OwnerId> = HashMap::new();
    let mut living = Vec::new();
    each_again::<OwnerRow>(snapshot, &mut |owner, row| {
        let place = place_of::<OwnerRow>(owner);
        if let Some(other) = epochs.insert(row.epoch, *owner) {
            let what = format!("it has epoch {}, as owner {other} has", row.epoch);
            let means = "which of the two came first is not known";
            look.find(Severity::Damage, place.as_str(), what, means);
        }
        if row.ended.is_none() {
            match is_alive(look, *owner) {
                Ok(true) => living.push(*owner),
                Ok(false) => {
                    let what = format!("process {} ended without closing", row.pid);
                    let means = "the next opening for writing takes over what it had";
                    look.find(Severity::Note, place, what, means);
                }
                Err(e) => look.failed(&e, "whether the owner lives is not known"),
            }
        }
        owners.insert(*owner, row.clone());
        Ok(())
    })?;
    each_again::<ClaimRow>(snapshot, &mut |resource, row| {
        let what = match owners.get(&row.owner) {
            None => format!("owner {} holds it, who has no row", row.owner),
            Some(owner) if owner.ended.is_some() => {
                format!("owner {} holds it, who has ended", row.owner)
            }
            Some(owner) if owner.epoch != row.epoch => {
                format!("it has epoch {}, its owner {}", row.epoch, owner.epoch)
            }
            Some(_) => return Ok(()),
        };
        let means = "nobody can work on what is claimed";
        look.find(Severity::Damage, place_of::<ClaimRow>(resource), what, means);
        Ok(())
    })?;
    Ok(living)
}

/// Liveness is the lock on the owner's file. No file, no lock.
fn is_alive(look: &Look, owner: OwnerId) -> Result<bool> {
    let path = layout::owner_lock(&look.root, owner);
    let fail = |e| Error::io("look at", path.display(), e);
    match look.disk.open(&path, Access::Read) {
        Ok(file) => file.is_locked(LockRange::WHOLE).map_err(fail),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(fail(e)),
    }
}
