//! Room in the queue, and how far one stream got.
//!
//! ```text
//!   full --- bytes leave: written, or sealed ---> room
//!     \----- a write failed, or the journal stopped ---> told, with its cause
//!     \----- the deadline passed ---> timed out
//! ```
//! Whoever may not lead (its patience has an end, a write has none) relies on somebody who does.

use std::time::Duration;

use super::append::Journal;
use super::ticket::Level;
use crate::clock::monotonic_nanos;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Sequence, StreamId};

/// The error of a queue that has no room now.
pub(super) fn full(queued: u64, bytes: u64, limit: u64) -> Error {
    let cause = format!("{queued} of {limit} bytes wait, {bytes} more have no room now");
    Error::new(ErrorKind::QueueFull, "append", "queue_bytes", cause)
}

impl Journal {
    /// Fails with `QueueFull` unless a frame of `bytes` would be taken in now.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<()> {
        let (queue, limit) = (&self.state.lock().queue, self.config.limits.queue_bytes);
        match queue.has_room(bytes, limit) {
            true => Ok(()),
            false => Err(full(queue.bytes(), bytes, limit)),
        }
    }

    /// Returns when there is room for a frame of `bytes`, which another caller may take first.
    ///
    /// Without a deadline (of this process's own clock) the caller writes itself, if nobody does. With
    /// one it asks somebody else to write, by `ask`, which is called under a lock of the journal; it
    /// writes itself where that says no.
    ///
    /// # Errors
    /// `TimedOut`; `DiskFull` or `Io` when a write failed meanwhile; `Halted` with the root cause;
    /// `Closed`.
    pub(crate) fn wait_for_room(
        &self,
        bytes: u64,
        deadline_nanos: Option<u64>,
        ask: &dyn Fn() -> bool,
    ) -> Result<()> {
        self.check_process()?;
        let (limit, level) = (self.config.limits.queue_bytes, self.raised(Level::Written));
        let mut state = self.state.lock();
        let failures = state.failures();
        loop {
            state.check_intake()?;
            if state.queue.has_room(bytes, limit) {
                return Ok(());
            }
            if let Some(error) = state.failure_since(failures) {
                return Err(error);
            }
            let left = deadline_nanos.map(|deadline| deadline.saturating_sub(monotonic_nanos()));
            if left == Some(0) {
                let cause = format!("no room for {bytes} bytes came in time");
                return Err(Error::new(ErrorKind::TimedOut, "append", "queue_bytes", cause));
            }
            let may_lead = left.is_none() || !ask();
            match state.writer.take_if(|_| may_lead) {
                Some(writer) => {
                    let last = state.queue.last_unwritten();
                    state = self.lead(state, writer, last, level);
                }
                None => match left {
                    Some(nanos) => {
                        self.changed.wait_for(&mut state, Duration::from_nanos(nanos));
                    }
                    None => self.changed.wait(&mut state),
                },
            }
        }
    }

    /// Whether something that was taken in is not durable yet.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().queue.last_open().is_some()
    }

    /// Returns when all of `stream` that was enqueued before is durable, and whatever was before it.
    /// Where nothing of it is new no I/O is done.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn barrier_of(&self, stream: StreamId) -> Result<()> {
        self.up_to(|queue| queue.last_open_of(stream), Level::Durable)
    }

    /// The first record of `stream` that is not known to be durable, of those that were enqueued here;
    /// `None` when all are. After a failed sync it stays where it was.
    pub fn first_open_of(&self, stream: StreamId) -> Option<Sequence> {
        self.state.lock().queue.first_open_of(stream)
    }

    /// The most bytes that were ever accepted and not yet written.
    pub fn queued_bytes_peak(&self) -> u64 {
        self.state.lock().queue.peak()
    }
}
