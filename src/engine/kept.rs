//! Kept: what a face knows of a thing as long as the opening lives, for all of its handles.

use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::store::Store;
use crate::error::{Error, Result};
use crate::ids::StageId;

/// What faces keep, by the stage that it is about. None of it holds the store.
#[derive(Debug, Default)]
pub(super) struct Kept {
    of_stages: Mutex<BTreeMap<StageId, Arc<dyn Any + Send + Sync>>>,
}

impl Store {
    /// What is kept of `stage` in this opening: what `make` gave the first time.
    pub(crate) fn kept<T: Any + Send + Sync>(
        &self,
        stage: StageId,
        make: impl Fn() -> T,
    ) -> Arc<T> {
        let mut kept = self.inner.kept.of_stages.lock();
        let found = kept.get(&stage).and_then(|one| Arc::clone(one).downcast::<T>().ok());
        found.unwrap_or_else(|| {
            let made = Arc::new(make());
            kept.insert(stage, Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
            made
        })
    }

    /// Lets go of what is kept of `stage`.
    pub(crate) fn forget_kept(&self, stage: StageId) {
        self.inner.kept.of_stages.lock().remove(&stage);
    }

    /// Tells `health` what went wrong where no caller waited.
    pub(crate) fn tell_health(&self, e: Error) {
        self.core().note_untidy(Err(e));
    }

    /// Fails unless reads may go on.
    pub(crate) fn check_open(&self, operation: &'static str) -> Result<()> {
        self.core().check_read(operation)
    }

    /// Wall-clock nanoseconds since 1970, for people and not for decisions.
    pub(crate) fn wall_nanos(&self) -> Option<i64> {
        self.core().disk.wall_nanos()
    }
}
