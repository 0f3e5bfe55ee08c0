//! Due: appending seals past a bound of what is unsealed, and waits past twice that.
//!
//! ```text
//!   unsealed:  0 ───────────── stage_unsealed_bytes ───────────── twice that
//!   append:    only appends    │ seals, unless somebody is at it  │ waits for the seal, or has its error
//! ```
//! A disk that refuses every seal is asked again after a while, not by every append.

use std::time::Duration;

use super::stage::Stage;
use crate::error::{Error, Result};

/// How long no append seals after the first failure; each further one doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What sealing failed with last, and until when appending lets it be.
#[derive(Debug, Default)]
pub(super) struct Pause {
    failed: Option<(Error, u64)>,
    length: Duration,
}

impl Pause {
    /// The error that stands, if it is too early to try again.
    fn stands(&self, now: u64) -> Option<&Error> {
        self.failed.as_ref().filter(|(_, until)| now < *until).map(|(error, _)| error)
    }

    fn begin(&mut self, error: Error, now: u64) {
        self.length = self.length.saturating_mul(2).clamp(PAUSE_MIN, PAUSE_MAX);
        let length = u64::try_from(self.length.as_nanos()).unwrap_or(u64::MAX);
        self.failed = Some((error, now.saturating_add(length)));
    }

    /// Something was sealed.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }
}

impl Stage {
    /// Before a batch is taken: past twice the bound it waits for whoever seals, or seals.
    ///
    /// # Errors
    /// What sealing failed with, now or a little while ago; `Invalid` from inside a rule of the stage.
    pub(super) fn make_room(&self) -> Result<()> {
        if !self.is_unsealed_past(2)? {
            return Ok(());
        }
        let _one = self.memory.hold("append")?;
        if !self.is_unsealed_past(2)? {
            return Ok(());
        }
        let standing = self.memory.pause.lock().stands(self.store.monotonic_nanos()).cloned();
        standing.map_or_else(|| self.seal_or_pause(), Err)
    }

    /// Behind a batch: seals past the bound, unless somebody is at it. STG11: what goes wrong is told by
    /// health and by the next call, for the batch was taken.
    pub(super) fn seal_when_due(&self) {
        if self.is_unsealed_past(1).is_ok_and(|is_past| !is_past) {
            return;
        }
        let Some(_one) = self.memory.hold_if_free() else { return };
        if self.memory.pause.lock().stands(self.store.monotonic_nanos()).is_some() {
            return;
        }
        if let Err(e) = self.seal_or_pause() {
            self.store.tell_health(e.clone());
            self.memory.keep_trouble(e);
        }
    }

    fn seal_or_pause(&self) -> Result<()> {
        let sealed = self.seal_now().map(drop);
        if let Err(e) = &sealed {
            self.memory.pause.lock().begin(e.clone(), self.store.monotonic_nanos());
        }
        sealed
    }

    /// Whether so many times the bound, or more, is unsealed in the intakes that are ours.
    fn is_unsealed_past(&self, times: u64) -> Result<bool> {
        let intakes = self.memory.intakes.lock().clone();
        let mut bytes = 0u64;
        for intake in &intakes {
            bytes = bytes.saturating_add(self.store.unsealed_bytes(*intake)?);
        }
        let bound = self.store.limits().stage_unsealed_bytes;
        Ok(bytes > 0 && bytes >= bound.saturating_mul(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does each failure make the pause longer, up to its bound, and does a seal end it?
    #[test]
    fn pauses_double_and_end() {
        let mut pause = Pause::default();
        let error = Error::invalid("seal", "test", "it fails");
        let mut lengths = Vec::new();
        for _ in 0..10 {
            pause.begin(error.clone(), 1000);
            let until = pause.failed.as_ref().map_or(0, |(_, until)| *until);
            assert!(pause.stands(until - 1).is_some() && pause.stands(until).is_none());
            lengths.push((until - 1000) / 1_000_000);
        }
        assert_eq!(lengths, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        pause.end();
        assert!(pause.stands(0).is_none());
    }
}
