//! What a stream does with a record for which the queue has no room.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a stream does with a record for which the queue has no room. A group of records is accepted
/// only when each of its streams takes its own; of several the least patient decides.
///
/// In a store without threads of its own ([`Limits::background`](crate::Limits) off) nobody writes
/// what is queued but who waits: there `Fail` and `Drop` meet a full queue until the next wait, barrier
/// or checkpoint, or a stream that blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Overflow {
    /// The observer waits for room as long as it takes.
    #[default]
    Block,
    /// The observer waits so long, and is then told `TimedOut`, with nothing accepted.
    BlockFor(Duration),
    /// The observer is told `QueueFull` at once, with nothing accepted.
    Fail,
    /// The record is left out, as if its stream were not due, and counted: see
    /// [`Stream::dropped`](crate::recording::Stream::dropped).
    Drop,
    /// No record goes to the queue by itself. The newest are kept in memory, at most so many and at
    /// most so many bytes of them, until [`Recorder::trigger`](crate::recording::Recorder::trigger) records what
    /// is kept. Those that fall out are counted like dropped ones.
    Ring {
        /// The most records.
        records: u64,
        /// The most bytes of records.
        bytes: u64,
    },
}

impl Overflow {
    /// What is wrong with it, if anything is.
    pub(in crate::recording) fn fault(&self) -> Option<String> {
        match self {
            Self::BlockFor(Duration::ZERO) => {
                Some("it waits for no time at all: let it fail".into())
            }
            Self::Ring { records: 0, .. } | Self::Ring { bytes: 0, .. } => {
                Some("its ring keeps nothing".into())
            }
            _ => None,
        }
    }
}
