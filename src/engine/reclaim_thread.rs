//! Reclaim in the background: off until it is asked for.

use super::reclaim::Budget;
use super::store::Store;
use super::worker::Reclaimer;
use crate::error::{Error, Result};

impl Store {
    /// From here on a thread of this opening, named `sealstone-reclaim`, reclaims whenever a transaction left a
    /// file without a live byte: at most `budget` at once, again as long as that gives something back, and never because time passed. It
    /// ends with the opening, with [`Store::stop_reclaiming`], and when the store halts; what goes wrong is
    /// told by `health`. Called again, it goes on with another budget.
    ///
    /// # Errors
    /// `ReadOnly`; `Halted`; `Invalid` where the limits let no thread run (`background`); `Io` when no
    /// thread can be started.
    ///
    /// # Durability
    /// As [`Store::reclaim`].
    pub fn reclaim_in_background(&self, budget: Budget) -> Result<()> {
        let writer = self.writer("reclaim")?;
        self.core().check_write("reclaim")?;
        if !self.core().limits.background {
            let cause = "its limits let no thread run; call reclaim instead";
            return Err(Error::invalid("reclaim", "background", cause));
        }
        self.stop_reclaiming();
        let started = Reclaimer::start(&self.inner, budget)?;
        let before = writer.reclaimer.lock().replace(started);
        drop(before);
        Ok(())
    }

    /// Ends the thread that reclaims, where there is one, after what it is doing.
    pub fn stop_reclaiming(&self) {
        if let Some(writer) = &self.inner.writer {
            let stopped = writer.reclaimer.lock().take();
            // Waits for the thread, and no lock is held meanwhile.
            drop(stopped);
        }
    }

    /// Tells the thread that reclaims that something may have become free.
    pub(crate) fn ask_to_reclaim(&self) {
        if let Some(writer) = &self.inner.writer
            && let Some(reclaimer) = writer.reclaimer.lock().as_ref()
        {
            reclaimer.ask();
        }
    }
}

/// One bounded step; whether the thread goes on, and whether at once.
pub(super) fn reclaim_once(store: &Store, budget: Budget) -> (bool, bool) {
    match store.reclaim(budget) {
        Ok(done) => {
            let did = done.files + done.compacted + done.orphans + done.recipes + done.references;
            (true, done.is_more_left && did > 0)
        }
        Err(e) => {
            let is_working = store.core().check_write("reclaim").is_ok();
            store.core().note_untidy(Err(e));
            (is_working, false)
        }
    }
}
