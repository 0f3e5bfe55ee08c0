//! What an opening keeps of a stage in memory, for all of its handles.

use parking_lot::{Mutex, ReentrantMutex, ReentrantMutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};

use super::due::Pause;
use super::slots::Slots;
use super::stage::place;
use crate::error::{Error, Result};
use crate::ids::{StageId, StreamId};
use crate::staging::describing::KeyShape;

/// What all handles of a stage in one opening share.
#[derive(Debug)]
pub(in crate::staging) struct Memory {
    pub(in crate::staging) id: StageId,
    pub(in crate::staging) name: String,
    pub(in crate::staging) shape: KeyShape,
    /// Held by who seals, recovers or removes: one at a time. It knows its thread, and is never held twice.
    sealing: ReentrantMutex<()>,
    /// Sealing failed, and is let be for a while.
    pub(super) pause: Mutex<Pause>,
    /// The intakes that are ours. Batches go to the first.
    pub(super) intakes: Mutex<Vec<StreamId>>,
    pub(super) slots: Mutex<Slots>,
    trouble: Mutex<Option<Error>>,
    is_removed: AtomicBool,
}

impl Memory {
    pub(super) fn new(id: StageId, name: &str, shape: KeyShape) -> Self {
        Self {
            id,
            name: name.to_owned(),
            shape,
            sealing: ReentrantMutex::default(),
            pause: Mutex::default(),
            intakes: Mutex::default(),
            slots: Mutex::default(),
            trouble: Mutex::default(),
            is_removed: AtomicBool::new(false),
        }
    }

    /// Waits until nobody seals, recovers or removes, and keeps others from it.
    ///
    /// # Errors
    /// `Invalid` inside a rule that a flush of this stage asks: it would wait for itself.
    pub(super) fn hold(&self, operation: &'static str) -> Result<ReentrantMutexGuard<'_, ()>> {
        self.check_not_held(operation)?;
        Ok(self.sealing.lock())
    }

    /// # Errors
    /// `Invalid` when this thread holds it.
    pub(super) fn check_not_held(&self, operation: &'static str) -> Result<()> {
        if self.sealing.is_owned_by_current_thread() {
            let cause = "called from its own ready rule; call it once flush has returned";
            return Err(Error::invalid(operation, place(&self.name), cause));
        }
        Ok(())
    }

    /// As [`Memory::hold`], if nobody holds it.
    pub(super) fn hold_if_free(&self) -> Option<ReentrantMutexGuard<'_, ()>> {
        if self.sealing.is_owned_by_current_thread() {
            return None;
        }
        self.sealing.try_lock()
    }

    /// One more intake is ours.
    pub(super) fn add_intake(&self, intake: StreamId) {
        let mut intakes = self.intakes.lock();
        if !intakes.contains(&intake) {
            intakes.push(intake);
        }
    }

    /// Keeps the first error that nobody was told.
    pub(in crate::staging) fn keep_trouble(&self, trouble: Error) {
        self.trouble.lock().get_or_insert(trouble);
    }

    pub(super) fn take_trouble(&self) -> Option<Error> {
        self.trouble.lock().take()
    }

    /// The stage was removed, by this opening.
    pub(super) fn removed(&self) {
        self.is_removed.store(true, Ordering::Release);
        self.intakes.lock().clear();
    }

    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }
}
