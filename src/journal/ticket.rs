//! What a caller holds of a frame that it handed over, and how sure it may ask to be.

use crate::ids::OwnerId;

/// How sure a caller is of what it handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// It is in memory. Promises nothing.
    Accepted,
    /// The kernel has it: it survives the death of this process.
    Written,
    /// It survives power loss.
    Durable,
}

/// One frame of one [`Journal`](super::Journal), by its place in the order of acceptance. A ticket of
/// another opening is refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    pub(super) owner: OwnerId,
    pub(super) position: u64,
}

impl Ticket {
    /// A ticket of no frame: whoever waits for it need not.
    pub(crate) fn of_nothing(owner: OwnerId) -> Self {
        Self { owner, position: 0 }
    }

    /// Its position, from 1.
    pub fn position(&self) -> u64 {
        self.position
    }
}
