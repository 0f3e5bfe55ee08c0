//! What is done to a whole store: its manifest is made small.

use super::{Go, Player, Stop, options, root};
use crate::campaign::finding::Rule;
use crate::campaign::model::Survivors;

impl Player {
    /// Closes the store, compacts its manifest, opens it: nothing that it shows changes.
    pub(super) fn compact(&mut self) -> Go {
        self.begin();
        let Some(store) = self.store.take() else { return Err(Stop) };
        if let Err(e) = store.close() {
            return self.stop(Rule::Acted, "close", &e);
        }
        self.claims.clear();
        self.model.settle_all();
        self.model.claims.clear();
        self.end();
        self.begin();
        if let Err(e) = options(&self.history, &self.disk).compact(root()) {
            return self.stop(Rule::Acted, "compact", &e);
        }
        self.open(Survivors::OfPower)?;
        self.end();
        Ok(())
    }
}
