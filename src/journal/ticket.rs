//! What a caller holds of a frame that it handed over, and how sure it may ask to be.

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

/// One frame of one [`Journal`](super::Journal), by its place in the order of acceptance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Its position, from 1.
    pub position: u64,
}
