//! The condition of an opened store: working, halted or closed, and what an operator should know.
//!
//! ```text
//!   working --- a sync, commit or manifest read failed [halt] ---> halted
//!      \------- close, or the last handle dropped [end] ---------> closed
//! ```
//! There is no way back: a halted store is reopened.

use parking_lot::Mutex;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitCount, OwnerId};

/// A commit whose outcome an owner did not learn. After reopening, ask
/// [`Store::outcome_of`](super::Store::outcome_of).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The owner that made it.
    pub owner: OwnerId,
    /// The count that its row has if it took place.
    pub count: CommitCount,
}

/// What became of an [`Attempt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It took place.
    Committed,
    /// It did not.
    NotCommitted,
    /// The owner's row is gone: too many openings lie between.
    Forgotten,
}

/// Who must learn at once that the store halted.
struct Alarm(Box<dyn Fn(&Error) + Send + Sync>);

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alarm")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Condition {
    halted: Mutex<Option<(Error, Option<Attempt>)>>,
    is_halted: AtomicBool,
    is_closed: AtomicBool,
    /// Called once, with the cause, when it halts.
    alarm: OnceLock<Alarm>,
    warnings: Mutex<Vec<Error>>,
}

/// Warnings kept; later ones are dropped.
const WARNINGS_MAX: usize = 64;

impl Condition {
    /// P8: stops everything; the first cause stays.
    pub(crate) fn halt(&self, cause: &Error, attempt: Option<Attempt>) {
        let mut halted = self.halted.lock();
        let is_first = halted.is_none();
        if is_first {
            *halted = Some((cause.clone(), attempt));
        }
        self.is_halted.store(true, Ordering::Release);
        drop(halted);
        if is_first && let Some(alarm) = self.alarm.get() {
            alarm.0(cause);
        }
    }

    /// Lets `alarm` be called when the store halts.
    pub(crate) fn on_halt(&self, alarm: impl Fn(&Error) + Send + Sync + 'static) {
        let _ = self.alarm.set(Alarm(Box::new(alarm)));
    }

    /// Marks the end; false when it had ended before.
    pub(crate) fn end(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_working(&self) -> bool {
        !self.is_halted.load(Ordering::Acquire) && !self.is_closed.load(Ordering::Acquire)
    }

    /// Fails unless the store is working.
    pub(crate) fn check(&self, operation: &'static str) -> Result<()> {
        if self.is_halted.load(Ordering::Acquire) {
            let (cause, _) = self.halted.lock().clone().unwrap_or_else(|| {
                (Error::new(ErrorKind::Halted, operation, "store", "no cause was kept"), None)
            });
            let text = format!("the store halted after \"{cause}\"; reopen it");
            return Err(Error::new(ErrorKind::Halted, operation, "store", text).with_source(cause));
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, operation, "store", "it was closed"));
        }
        Ok(())
    }

    pub(crate) fn halt_cause(&self) -> Option<Error> {
        self.halted.lock().as_ref().map(|(cause, _)| cause.clone())
    }

    pub(crate) fn attempt(&self) -> Option<Attempt> {
        self.halted.lock().as_ref().and_then(|(_, attempt)| *attempt)
    }

    /// Keeps something that went wrong where no caller could be told.
    pub(crate) fn warn(&self, warning: Error) {
        let mut warnings = self.warnings.lock();
        if warnings.len() < WARNINGS_MAX {
            warnings.push(warning);
        }
    }

    pub(crate) fn warnings(&self) -> Vec<Error> {
        self.warnings.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the first cause stay, and reach every later caller?
    #[test]
    fn the_first_cause_stays() {
        let condition = Condition::default();
        condition.check("append").unwrap();
        condition.halt(&Error::damage("sync", "a", "first"), None);
        condition.halt(&Error::damage("sync", "b", "second"), None);
        let told = condition.check("append").unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Halted);
        assert!(told.to_string().contains("first") && !told.to_string().contains("second"));
        assert!(!condition.is_working());
    }
}
