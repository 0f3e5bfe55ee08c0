//! The one place that starts threads: one that writes what lingered in the queue, and writes and
//! syncs for futures that wait, and wakes them; and crews that seal.
//!
//! Wakers run here and nowhere else, as long as the store is open: here no lock is held, whatever
//! the thread holds that found a frame to be durable.

use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::store::{Inner, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::Level;

/// Stops its thread when dropped.
#[derive(Debug)]
pub(super) struct Linger {
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Signal {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    is_over: bool,
    /// A future waits.
    is_asked: bool,
    /// A future can be woken.
    is_rung: bool,
}

/// Enough for a barrier, copying forward included, and for a commit of the manifest.
const STACK_BYTES: usize = 2 << 20;

impl Linger {
    /// Starts the thread. It holds the store weakly: the last handle ends it.
    pub(super) fn start(inner: &Arc<Inner>, linger_millis: u64) -> Result<Self> {
        let signal = Arc::new(Signal::default());
        let (seen, weak) = (Arc::clone(&signal), Arc::downgrade(inner));
        let period = Duration::from_millis(linger_millis.max(1));
        if let Some(writer) = &inner.writer {
            let rung = Arc::clone(&signal);
            writer.journal.on_ring(move || {
                rung.tell(|told| told.is_rung = true);
            });
        }
        thread::Builder::new()
            .name("sealstone-linger".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&seen, &weak, period))
            .map_err(|e| Error::io("open", "linger thread", e))?;
        Ok(Self { signal })
    }

    /// Lets the thread look for futures at once; false when it ends and will not.
    pub(super) fn ask(&self) -> bool {
        !self.signal.tell(|told| told.is_asked = true)
    }
}

impl Drop for Linger {
    fn drop(&mut self) {
        self.signal.tell(|told| told.is_over = true);
    }
}

/// Threads that do the same work.
#[derive(Debug)]
pub(super) struct Crew {
    threads: Vec<thread::JoinHandle<()>>,
}

impl Crew {
    /// Starts `count` threads that each run `work` once.
    pub(super) fn start(
        name: &str,
        count: usize,
        work: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self> {
        let start = |_| {
            let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
            builder.spawn(work.clone()).map_err(|e| Error::io("start", name, e))
        };
        Ok(Self { threads: (0..count).map(start).collect::<Result<_>>()? })
    }

    /// Returns when all have ended. A panic was told by whoever panicked.
    pub(super) fn join(self) {
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Signal {
    /// Tells the thread something; returns whether it is over.
    fn tell(&self, what: impl FnOnce(&mut Told)) -> bool {
        let mut told = self.told.lock();
        what(&mut told);
        self.changed.notify_all();
        told.is_over
    }

    /// Waits until something is to be done, `period` at most; false when it is over.
    fn wait(&self, period: Duration) -> bool {
        let mut told = self.told.lock();
        if !told.is_over && !told.is_asked && !told.is_rung {
            self.changed.wait_for(&mut told, period);
        }
        (told.is_asked, told.is_rung) = (false, false);
        !told.is_over
    }
}

/// Says that the thread is over, however it ends: then nobody relies on it.
struct Over<'a>(&'a Signal);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.tell(|told| told.is_over = true);
    }
}

/// Lets others go on.
pub(super) fn pause(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

fn run(signal: &Signal, weak: &Weak<Inner>, period: Duration) {
    let _over = Over(signal);
    while signal.wait(period) {
        let Some(inner) = weak.upgrade() else { return };
        survive(&Store::within(&inner), linger);
    }
}

/// Does a piece of work that may panic: nobody would do it again, so the store halts, which tells
/// everybody who waits.
fn survive(store: &Store, work: impl FnOnce(&Store)) {
    if catch_unwind(AssertUnwindSafe(|| work(store))).is_err() {
        let cause = "a panic interrupted it";
        store.core().halt(&Error::new(ErrorKind::Halted, "write", "linger thread", cause));
    }
}

fn linger(store: &Store) {
    let Some(writer) = &store.inner.writer else { return };
    writer.journal.wake();
    if store.core().check_write("linger").is_err() {
        // Closed, or halted: nobody waits any more.
        return writer.journal.wake();
    }
    let mut is_idle = true;
    // Whoever asked for less need not wait for the sync.
    for level in [Level::Written, Level::Durable] {
        if writer.journal.is_wanted(level) {
            is_idle = false;
            // A failure reaches each future that it is about; there is nobody else to tell.
            match writer.journal.serve(level).inspect_err(|e| store.note_journal_failure(e)) {
                Ok(()) if level == Level::Durable => {
                    let kept = store.core().check_not_taken_over();
                    store.core().note_untidy(kept.and_then(|()| store.keep_budget()));
                }
                _ => {}
            }
            writer.journal.wake();
        }
    }
    if !is_idle || !writer.journal.linger_due(store.core().disk.monotonic_nanos()) {
        return;
    }
    let written = match store.core().manifest.meta().single_file {
        // There only a commit takes a record out of memory.
        true => writer.journal.barrier(),
        false => writer.journal.flush(),
    };
    if let Err(e) = written {
        store.note_journal_failure(&e);
        store.core().condition.warn(e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Append;
    use crate::journal::Seat;
    use crate::limits::Limits;
    use std::task::{Poll, Waker};

    /// Is work that panics the end of whoever waits for it, or told to them?
    #[test]
    fn p8_a_panic_in_the_thread_halts_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { linger_millis: 3_600_000, ballast_bytes: 0, ..Limits::default() };
        let store = Store::options().limits(limits).create(dir.path().join("s")).unwrap();
        let stream = store.create_stream("s").unwrap();
        let ticket = store.append(vec![Append { stream, payload: vec![1] }]).unwrap().ticket;
        let journal = &store.inner.writer.as_ref().unwrap().journal;
        let (mut seat, waker) = (Seat::default(), Waker::noop());
        assert!(journal.poll(&ticket, Level::Durable, &mut seat, waker).is_pending());
        survive(&store, |_| panic!("in the thread"));
        let told = journal.poll(&ticket, Level::Durable, &mut seat, waker);
        assert!(matches!(told, Poll::Ready(Err(e)) if e.kind() == ErrorKind::Halted));
        assert!(store.health().halted.is_some());
    }

    /// Does a thread that ended go on promising that it will look?
    #[test]
    fn a_thread_that_ended_is_not_relied_on() {
        let signal = Arc::new(Signal::default());
        let linger = Linger { signal: Arc::clone(&signal) };
        assert!(linger.ask());
        run(&signal, &Weak::new(), Duration::from_millis(1));
        assert!(!linger.ask());
    }
}
