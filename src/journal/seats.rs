//! Futures that wait for a frame: who is told, beside the queue, when it comes further.
//!
//! ```text
//!   taken --- its frame came so far, or cannot [ring] ---> rung --- [wake], no lock held ---> woken
//! ```
//! A waker is a caller's code: it may call back into the store, or drop the last handle of it.
//! Whatever finds that somebody can be told may hold locks, so it only says so.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use parking_lot::MutexGuard;

use super::append::Journal;
use super::commit::State;
use super::queue::Standing;
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
    /// Those who can be told something and were not woken yet.
    rung: BTreeMap<u64, Waker>,
}

/// Whom to tell that somebody can be woken.
pub(super) struct Bell(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
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

    /// Returns what held the seat, for the caller to drop outside of the lock.
    fn leave(&mut self, seat: &mut Seat) -> Option<(Option<Taken>, Option<Waker>)> {
        let number = seat.number.take()?;
        Some((self.taken.remove(&number), self.rung.remove(&number)))
    }

    fn is_wanted(&self, level: Level) -> bool {
        self.taken.values().any(|taken| taken.level == level)
    }
}

impl Journal {
    /// As [`wait`](Self::wait), for a future: where it cannot be told yet, `waker` is woken once it
    /// can. Nobody writes for it, and nobody wakes it: somebody has to, see [`serve`](Self::serve) and
    /// [`wake`](Self::wake).
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
        let (waker, level) = (waker.clone(), self.raised(level));
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

    /// Whether a future waits for just this level.
    pub fn is_wanted(&self, level: Level) -> bool {
        self.state.lock().seats.is_wanted(level)
    }

    /// Writes, and syncs where `level` is *Durable*, once for every future that waits for it: each
    /// of them can be told something afterwards.
    ///
    /// # Errors
    /// What has stopped the journal. Any other failure is told to each future that it is about.
    pub fn serve(&self, level: Level) -> Result<()> {
        let mut state = self.state.lock();
        while state.poison.is_none() && state.seats.is_wanted(level) {
            let Some(writer) = state.writer.take() else {
                self.changed.wait(&mut state);
                continue;
            };
            state = self.lead(state, writer, None, level);
            break;
        }
        state.poison.as_ref().map_or(Ok(()), |root| Err(root.clone()))
    }

    /// Lets `bell` be called whenever there is somebody to [`wake`](Self::wake). It may be called
    /// under any lock, and must neither wake nor wait itself.
    pub fn on_ring(&self, bell: impl Fn() + Send + Sync + 'static) {
        let _ = self.bell.set(Bell(Box::new(bell)));
    }

    /// Wakes the futures that can be told something. The caller holds no lock: wakers are a
    /// caller's code. A panic in one of them is nobody else's.
    pub fn wake(&self) {
        let rung = std::mem::take(&mut self.state.lock().seats.rung);
        for waker in rung.into_values() {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// How many futures wait.
    pub fn seats_taken(&self) -> usize {
        self.state.lock().seats.taken.len()
    }

    /// Tells everybody who can be told something now; futures by way of the bell.
    pub(super) fn ring(&self, state: &mut MutexGuard<'_, State>) {
        self.changed.notify_all();
        let (calls, is_rung) = (state.take_calls(), state.ring_seats());
        if !calls.is_empty() || is_rung {
            MutexGuard::unlocked(state, || {
                calls.make();
                if let Some(bell) = self.bell.get().filter(|_| is_rung) {
                    bell.0();
                }
            });
        }
    }
}

impl State {
    /// Empties the seats of those who can be told something; whether there were any.
    fn ring_seats(&mut self) -> bool {
        if self.seats.taken.is_empty() {
            return false;
        }
        let told = |taken: &Taken| self.outcome(taken.position, taken.level, taken.failures);
        let seats = self.seats.taken.iter();
        let ready = seats.filter(|(_, taken)| told(taken).is_some()).map(|(seat, _)| *seat);
        let ready: Vec<u64> = ready.collect();
        for seat in &ready {
            let rung = self.seats.taken.remove(seat).map(|taken| (*seat, taken.waker));
            self.seats.rung.extend(rung);
        }
        !ready.is_empty()
    }

    /// Whether a sync is all that a future waits for.
    pub fn is_sync_wanted(&self) -> bool {
        let waits = |taken: &Taken| {
            taken.level == Level::Durable
                && self.queue.standing(taken.position) == Standing::Written
        };
        self.seats.taken.values().any(waits)
    }
}
