//! Claims that nobody holds any more and whose release failed: the next that claims something lets go
//! of them first, so that no restart is needed once the disk is well again.

use parking_lot::Mutex;

use super::store::Store;
use crate::error::Result;
use crate::ids::CommitSeq;
use crate::manifest::{ClaimRow, Reading, ResourceKey};
use crate::vfs::Step;

/// Claims of this opening whose guard is gone, each with the commit that took it.
#[derive(Debug, Default)]
pub(super) struct Unreleased(Mutex<Vec<(ResourceKey, CommitSeq)>>);

impl Unreleased {
    /// One more.
    pub(super) fn remember(&self, resource: &ResourceKey, taken: CommitSeq) {
        self.0.lock().push((resource.clone(), taken));
    }

    /// Whether this claim is one of them.
    pub(super) fn has(&self, resource: &ResourceKey, taken: CommitSeq) -> bool {
        self.0.lock().iter().any(|(left, at)| left == resource && *at == taken)
    }
}

impl Store {
    /// Lets go of the claims whose release failed before, in one transaction; none is the common case and
    /// costs nothing.
    ///
    /// # Errors
    /// As [`Store::transact`]: they are still remembered then.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub(crate) fn release_left(&self) -> Result<()> {
        // Held meanwhile: who finds none here finds none in the rows either.
        let mut left = self.core().unreleased.0.lock();
        if left.is_empty() {
            return Ok(());
        }
        let me = self.core().check_write("release")?;
        self.core().transact(Step::ClaimCommit, |w| {
            for (resource, taken) in left.iter() {
                let held = w.get::<ClaimRow>(resource)?;
                if held.is_some_and(|row| row.owner == me.owner && row.taken == *taken) {
                    w.remove::<ClaimRow>(resource)?;
                }
            }
            Ok(())
        })?;
        left.clear();
        Ok(())
    }
}
