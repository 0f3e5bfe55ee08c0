//! The one place that starts a thread: it writes what lingered in the queue.

use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::store::{Inner, Store};
use crate::error::{Error, Result};

/// Stops its thread when dropped.
#[derive(Debug)]
pub(super) struct Linger {
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Signal {
    is_over: Mutex<bool>,
    changed: Condvar,
}

/// Enough for a journal write; the default is four times as much.
const STACK_BYTES: usize = 512 << 10;

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
}

impl Drop for Linger {
    fn drop(&mut self) {
        *self.signal.is_over.lock() = true;
        self.signal.changed.notify_all();
    }
}

fn run(signal: &Signal, weak: &Weak<Inner>, period: Duration) {
    let mut is_over = signal.is_over.lock();
    while !*is_over {
        signal.changed.wait_for(&mut is_over, period);
        if *is_over {
            return;
        }
        let Some(inner) = weak.upgrade() else { return };
        // Unlocked: the end of the store waits for nothing here.
        parking_lot::MutexGuard::unlocked(&mut is_over, || linger(&Store::within(&inner)));
    }
}

fn linger(store: &Store) {
    let Ok(writer) = store.writer("linger") else { return };
    if writer.journal.linger_due(store.core().disk.monotonic_nanos())
        && let Err(e) = writer.journal.flush()
    {
        store.note_journal_failure(&e);
        store.core().condition.warn(e);
    }
}
