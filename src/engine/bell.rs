//! The bell: whoever follows a store in the process that writes it is woken when something moved.
//!
//! A ring may come for nothing, and may be missed by whoever does not listen: those who wait look
//! again after a while in any case.

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    /// Wakes all who wait.
    pub(crate) fn ring(&self) {
        *self.rings.lock() += 1;
        self.rung.notify_all();
    }

    /// How often it rang so far: asked before one looks.
    pub(crate) fn rings(&self) -> u64 {
        *self.rings.lock()
    }

    /// Waits until it has rung more than `heard` times, `most` at most.
    pub(crate) fn wait(&self, heard: u64, most: Duration) {
        let mut rings = self.rings.lock();
        if *rings == heard {
            self.rung.wait_for(&mut rings, most);
        }
    }
}

/// Waits for `most`: for whoever holds no store, and lets others in.
pub(crate) fn pause(most: Duration) {
    Bell::default().wait(0, most);
}
