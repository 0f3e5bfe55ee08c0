//! Futures that wait for a frame: who is told, beside the queue, when it comes further.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use parking_lot::MutexGuard;

use super::append::Journal;
use super::commit::State;
use super::ticket::{Level, Ticket};
use crate::error::Result;

/// The seat of a future among those that wait. Given back with [`Journal::leave`].
#[derive(Debug, Default)]
pub struct Seat {
    /// Absent while nobody would be told.
    number: Option<u64>,
    /// How many steps had failed when it began to wait.
    failures: Option<u64>,
}

/// Who waits, by seat.
#[derive(Debug, Default)]
pub(super) struct Seats {
    last: u64,
    taken: BTreeMap<u64, Taken>,
}

#[derive(Debug)]
struct Taken {
    position: u64,
    level: Level,
    failures: u64,
    waker: Waker,
}

impl Seats {
    /// Takes a seat; returns who sat there, for the caller to drop outside of the lock.
    fn take(&mut self, seat: &mut Seat, taken: Taken) -> Option<Taken> {
        let number = *seat.number.get_or_insert_with(|| {
            self.last += 1;
            self.last
        });
        self.taken.insert(number, taken)
    }

    fn leave(&mut self, seat: &mut Seat) -> Option<Taken> {
        seat.number.take().and_then(|number| self.taken.remove(&number))
    }
}

impl Journal {
    /// As [`wait`](Self::wait), for a future: where it cannot be told yet, `waker` is woken once it
    /// can. Nobody writes for it: somebody has to, see [`wanted`](Self::wanted).
    pub fn poll(
        &self,
        ticket: &Ticket,
        level: Level,
        seat: &mut Seat,
        waker: &Waker,
    ) -> Poll<Result<()>> {
        if let Err(e) = self.check_ticket(ticket) {
            return Poll::Ready(Err(e));
        }
        // Cloned and dropped outside of the lock: a waker is a caller's code.
        let waker = waker.clone();
        let mut state = self.state.lock();
        let failures = *seat.failures.get_or_insert(state.failures());
        let position = ticket.position;
        match state.outcome(position, level, failures) {
            Some(outcome) => {
                let gone = state.seats.leave(seat);
                drop(state);
                drop(gone);
                Poll::Ready(outcome)
            }
            None => {
                let before = state.seats.take(seat, Taken { position, level, failures, waker });
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }

    /// Nobody waits on this seat any more.
    pub fn leave(&self, seat: &mut Seat) {
        if seat.number.is_some() {
            let gone = self.state.lock().seats.leave(seat);
            drop(gone);
        }
    }

    /// The highest level that a future waits for.
    pub fn wanted(&self) -> Option<Level> {
        self.state.lock().seats.taken.values().map(|taken| taken.level).max()
    }

    /// How many futures wait.
    pub fn seats_taken(&self) -> usize {
        self.state.lock().seats.taken.len()
    }

    /// Tells everybody who can be told something now. The lock is open while wakers run: they are
    /// a caller's code, and a panic in one of them is nobody else's.
    pub(super) fn ring(&self, state: &mut MutexGuard<'_, State>) {
        self.changed.notify_all();
        let (calls, ready) = (state.take_calls(), state.take_ready());
        if !calls.is_empty() || !ready.is_empty() {
            MutexGuard::unlocked(state, || {
                calls.make();
                for waker in ready {
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
            });
        }
    }
}

impl State {
    /// Empties the seats of those who can be told something.
    fn take_ready(&mut self) -> Vec<Waker> {
        if self.seats.taken.is_empty() {
            return Vec::new();
        }
        let told = |taken: &Taken| self.outcome(taken.position, taken.level, taken.failures);
        let seats = self.seats.taken.iter();
        let ready = seats.filter(|(_, taken)| told(taken).is_some()).map(|(seat, _)| *seat);
        let ready: Vec<u64> = ready.collect();
        ready.iter().filter_map(|seat| self.seats.taken.remove(seat)).map(|t| t.waker).collect()
    }
}
