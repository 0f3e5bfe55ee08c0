//! An executor of twenty lines, and a waker that counts.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a parked thread, and counts how often.
pub struct Unpark {
    thread: Thread,
    pub wakes: AtomicU64,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::AcqRel);
        self.thread.unpark();
    }
}

pub fn unpark() -> (Arc<Unpark>, Waker) {
    let unpark = Arc::new(Unpark { thread: thread::current(), wakes: AtomicU64::new(0) });
    (Arc::clone(&unpark), Waker::from(unpark))
}

/// Longer than any future of a working store takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs one future to its end on this thread; returns how often it was polled.
pub fn block_on<F: Future>(future: F) -> (F::Output, u64) {
    let mut future = pin!(future);
    let (_, waker) = unpark();
    let began = Instant::now();
    for polls in 1.. {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, polls);
        }
        thread::park_timeout(PATIENCE);
        assert!(began.elapsed() < PATIENCE, "nobody woke it");
    }
    unreachable!("polled for ever")
}
