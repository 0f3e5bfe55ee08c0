//! Threads that wait for a leader, each with a bell of its own: one bell for all would wake every
//! waiter, one after the other through one lock, whenever one of them has got what it wants.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::ticket::Level;

/// What a waiter is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Its frame is as sure as it asked.
    Reached,
    /// Something changed: look again, and lead if nobody does.
    Look,
}

/// One thread that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    position: u64,
    level: Level,
    /// How many steps had failed when it began to wait.
    failures: u64,
    told: Mutex<Option<Told>>,
    bell: Condvar,
}

impl Waiter {
    /// Waits until it is told something.
    pub fn wait(&self) -> Told {
        let mut told = self.told.lock();
        loop {
            match *told {
                Some(told) => return told,
                None => self.bell.wait(&mut told),
            }
        }
    }

    fn tell(&self, what: Told) {
        *self.told.lock() = Some(what);
        self.bell.notify_one();
    }
}

/// All that wait, the longest first. Whoever makes the writer free while somebody waits tells one of
/// them to look; that one leads, or finds its answer because of somebody who told the next.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    all: VecDeque<Arc<Waiter>>,
}

impl Waiters {
    pub fn enter(&mut self, position: u64, level: Level, failures: u64) -> Arc<Waiter> {
        let (told, bell) = (Mutex::default(), Condvar::new());
        let waiter = Arc::new(Waiter { position, level, failures, told, bell });
        self.all.push_back(Arc::clone(&waiter));
        waiter
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes those who can be told something.
    pub fn take_told(&mut self, told: impl Fn(u64, Level, u64) -> Option<Told>) -> Calls {
        let mut calls = Calls::default();
        self.all.retain(|waiter| {
            let told = told(waiter.position, waiter.level, waiter.failures);
            calls.to.extend(told.map(|what| (Arc::clone(waiter), what)));
            told.is_none()
        });
        calls
    }

    /// Takes the one that has waited longest, to lead. It is called first: the disk is idle.
    pub fn take_next(&mut self, calls: &mut Calls) {
        if let Some(waiter) = self.all.pop_front() {
            calls.to.push((waiter, Told::Look));
        }
    }
}

/// Whom to tell what, once no lock is held.
#[must_use]
#[derive(Debug, Default)]
pub(super) struct Calls {
    to: Vec<(Arc<Waiter>, Told)>,
}

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.to.is_empty()
    }

    /// Rings, whoever was taken last first.
    pub fn make(self) {
        self.to.iter().rev().for_each(|(waiter, what)| waiter.tell(*what));
    }
}
