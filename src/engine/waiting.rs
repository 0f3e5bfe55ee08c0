//! Waiting without blocking: a ticket as a future of the standard library, for any executor.
//!
//! ```text
//!   pending --- the frame comes so far, or cannot [Journal::ring] ---> woken --- polled ---> ready
//!      \---- asks the thread of the store to write and sync [Linger::ask]
//! ```
//! There is no runtime here. Where the store has no thread of its own, the poll itself writes.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::append::Accepted;
use super::store::{Inner, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{Level, Seat, Ticket};

/// Completes when what a ticket stands for is as sure as was asked, with what
/// [`Store::wait`] would return. Made by [`Store::when`].
///
/// All futures that wait are served by one data sync, like all threads that wait. Dropped, it
/// leaves nothing behind, and what was accepted goes its way. It keeps no store open: when the last
/// handle goes the store is closed, which makes everything durable.
///
/// Wakers are woken by the store's own thread, or at the end by whoever closes the store; no lock
/// is held then, so a waker may use the store and may drop the last handle of it. It should not take
/// long, for the others come after it, and must not wait for another future of the same store. In a
/// store without a thread (limit `background` off) polling writes and syncs itself: it blocks for as
/// long as [`Store::wait`] does.
#[must_use = "a future does nothing until it is polled"]
pub struct Waiting {
    /// Absent when the store was gone before this began.
    inner: Option<Arc<Inner>>,
    ticket: Ticket,
    level: Level,
    seat: Seat,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("ticket", &self.ticket)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// As [`Store::wait`], as a future.
    ///
    /// # Errors
    /// The future's output is what [`Store::wait`] returns.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut: when the future is ready.
    pub fn when(&self, ticket: &Ticket, level: Level) -> Waiting {
        let inner = Some(Arc::clone(&self.inner));
        let level = self.core().level(level);
        Waiting { inner, ticket: ticket.clone(), level, seat: Seat::default() }
    }
}

impl Accepted {
    /// A future that is ready when the group is durable.
    ///
    /// # Durability
    /// *Durable* when the future is ready.
    pub fn durable(&self) -> Waiting {
        let (inner, ticket) = (self.inner.upgrade(), self.ticket.clone());
        Waiting { inner, ticket, level: Level::Durable, seat: Seat::default() }
    }
}

impl IntoFuture for Accepted {
    type Output = Result<()>;
    type IntoFuture = Waiting;

    /// As [`Accepted::durable`].
    fn into_future(self) -> Waiting {
        self.durable()
    }
}

impl Future for Waiting {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        let Some(inner) = &this.inner else {
            let place = format!("frame {}", this.ticket.position());
            let e = Error::new(ErrorKind::Closed, "wait for", place, "the store was closed");
            return Poll::Ready(Err(e));
        };
        let store = Store::within(inner);
        let writer = match store.writer_even_halted() {
            Ok(writer) => writer,
            Err(e) => return Poll::Ready(Err(e)),
        };
        let (ticket, level) = (&this.ticket, this.level);
        let polled = writer.journal.poll(ticket, level, &mut this.seat, context.waker());
        if let Poll::Ready(outcome) = polled {
            let outcome = outcome.inspect_err(|e| store.note_journal_failure(e));
            return Poll::Ready(outcome.and_then(|()| match level {
                Level::Durable | Level::Written => store.core().check_not_taken_over(),
                Level::Accepted => Ok(()),
            }));
        }
        // Whoever stops the store wakes those who are seated; this one may have come too late.
        let stopped = store.core().check_write("wait").err();
        let is_asked = stopped.is_none() && writer.linger.lock().as_ref().is_some_and(|l| l.ask());
        if is_asked {
            return Poll::Pending;
        }
        writer.journal.leave(&mut this.seat);
        Poll::Ready(stopped.map_or_else(|| store.wait(ticket, level), Err))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(writer) = self.inner.as_ref().and_then(|inner| inner.writer.as_ref()) {
            writer.journal.leave(&mut self.seat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Append;
    use crate::limits::Limits;
    use std::sync::mpsc;
    use std::task::{Wake, Waker};
    use std::time::Duration;

    /// Takes a lock of the store and says so; then it panics.
    struct Meddle {
        inner: Arc<Inner>,
        tell: mpsc::Sender<()>,
    }

    impl Wake for Meddle {
        fn wake(self: Arc<Self>) {
            drop(self.inner.writer.as_ref().map(|writer| writer.streams.lock()));
            self.tell.send(()).unwrap();
            panic!("a waker's panic is its own");
        }
    }

    /// Does a store that halts for a cause outside of the journal wake everybody, at once, and not
    /// under the locks of whoever found the cause?
    #[test]
    fn p8_a_halt_elsewhere_wakes_every_future() {
        let dir = tempfile::tempdir().unwrap();
        // An hour: nothing but the halt wakes them.
        let limits = Limits { linger_millis: 3_600_000, ballast_bytes: 0, ..Limits::default() };
        let store = Store::options().limits(limits).create(dir.path().join("s")).unwrap();
        let stream = store.create_stream("s").unwrap();
        let ticket = store.append(vec![Append { stream, payload: vec![1] }]).unwrap().ticket;
        let (tell, told) = mpsc::channel();
        let waker = Waker::from(Arc::new(Meddle { inner: Arc::clone(&store.inner), tell }));
        let writer = store.inner.writer.as_ref().unwrap();
        let mut seats: Vec<Seat> = (0..50).map(|_| Seat::default()).collect();
        for seat in &mut seats {
            assert!(writer.journal.poll(&ticket, Level::Durable, seat, &waker).is_pending());
        }
        assert!(writer.journal.is_wanted(Level::Durable));
        let (halting, (over, is_over)) = (store.clone(), mpsc::channel());
        std::thread::spawn(move || {
            let _held = halting.writer("halt").unwrap().streams.lock();
            halting.core().halt(&Error::damage("sync", "manifest", "it failed"));
            over.send(()).unwrap();
        });
        is_over.recv_timeout(Duration::from_secs(60)).expect("the halt waits for itself");
        for _ in 0..50 {
            told.recv_timeout(Duration::from_secs(60)).expect("nobody woke it");
        }
        assert_eq!(writer.journal.seats_taken(), 0);
        for seat in &mut seats {
            let told = writer.journal.poll(&ticket, Level::Durable, seat, &waker);
            assert!(matches!(told, Poll::Ready(Err(e)) if e.kind() == ErrorKind::Halted));
        }
    }
}
