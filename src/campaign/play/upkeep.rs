//! What is done to a whole store: its manifest is made small, a copy of it is made.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Go, Player, copy_root, options, root};
use crate::campaign::finding::Rule;
use crate::campaign::model::Survivors;
use crate::engine::{BackupOptions, Budget, Layout, Thing};
use crate::error::Result;
use crate::ids::LeaseId;

impl Player {
    /// Closes the store, compacts its manifest, opens it: nothing that it shows changes.
    pub(super) fn compact(&mut self) -> Go {
        self.close()?;
        self.begin();
        if let Err(e) = options(&self.history, &self.disk).compact(root()) {
            return self.stop(Rule::Acted, "compact", &e);
        }
        self.open(Survivors::OfPower)?;
        self.end();
        Ok(())
    }

    /// Backs up; with `beside`, a lease and what it keeps go in the middle of it.
    pub(super) fn back_up(&mut self, beside: bool) -> Go {
        if self.history.limited.layout() == Layout::SingleFile {
            // A copy of the file after this is one.
            return self.barrier();
        }
        let leases: Vec<u64> = match beside {
            true => self.model.leases.keys().copied().collect(),
            false => Vec::new(),
        };
        let retired = self.pick(leases.into_iter());
        self.step(
            "back up",
            |store| {
                let (mut meanwhile, mut left) = (Ok(()), retired);
                let mut progress = |_| {
                    if let Some(lease) = left.take() {
                        let thing = Thing::Lease(LeaseId(lease));
                        meanwhile = store
                            .retire(&[thing], "a play")
                            .and_then(|_| store.reclaim(Budget::default()))
                            .map(|_| ());
                    }
                    ControlFlow::Continue(())
                };
                let options = BackupOptions::default();
                let backup = store.backup_with(copy_root(), &options, &mut progress);
                backup.and(meanwhile) as Result<()>
            },
            |model, ()| {
                model.settle_all();
                let backup = super::Model { backup: None, ..model.clone() };
                model.backup = Some(Arc::new(backup));
                if let Some(lease) = retired {
                    model.leases.remove(&lease);
                }
            },
        )
    }
}
