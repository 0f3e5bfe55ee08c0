//! The one place that starts threads: one that writes what lingered in the queue, and writes and
//! syncs for futures that wait; and crews that seal.

use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::store::{Inner, Store};
use crate::error::{Error, Result};
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
}

/// Enough for a barrier, copying forward included, and for a commit of the manifest.
const STACK_BYTES: usize = 2 << 20;

impl Linger {
    /// Starts the thread. It holds the store weakly: the last handle ends it.
    pub(super) fn start(inner: &Arc<Inner>, linger_millis: u64) -> Result<Self> {
        let signal = Arc::new(Signal::default());
        let (seen, weak) = (Arc::clone(&signal), Arc::downgrade(inner));
        let period = Duration::from_millis(linger_millis.max(1));
        thread::Builder::new()
            .name("sealstone-linger".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&seen, &weak, period))
            .map_err(|e| Error::io("open", "linger thread", e))?;
        Ok(Self { signal })
    }

    /// Lets the thread look for futures at once; false when it ends and will not.
    pub(super) fn ask(&self) -> bool {
        let mut told = self.signal.told.lock();
        told.is_asked = true;
        self.signal.changed.notify_all();
        !told.is_over
    }
}

impl Drop for Linger {
    fn drop(&mut self) {
        self.signal.told.lock().is_over = true;
        self.signal.changed.notify_all();
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

fn run(signal: &Signal, weak: &Weak<Inner>, period: Duration) {
    let mut told = signal.told.lock();
    while !told.is_over {
        if !told.is_asked {
            signal.changed.wait_for(&mut told, period);
        }
        if told.is_over {
            return;
        }
        told.is_asked = false;
        let Some(inner) = weak.upgrade() else { return };
        // Unlocked: the end of the store waits for nothing here.
        parking_lot::MutexGuard::unlocked(&mut told, || linger(&Store::within(&inner)));
    }
}

fn linger(store: &Store) {
    let Ok(writer) = store.writer("linger") else { return };
    // An error reaches each future that it is about; there is nobody else to tell.
    match writer.journal.wanted() {
        Some(Level::Durable) => drop(store.barrier()),
        Some(_) => {
            let _ = writer.journal.flush().inspect_err(|e| store.note_journal_failure(e));
        }
        None => {
            if !writer.journal.linger_due(store.core().disk.monotonic_nanos()) {
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
    }
}
