//! What a caller holds of a frame that it handed over, and how sure it may ask to be.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use crate::error::{Error, ErrorKind, Result};
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

/// Whoever took a frame in, as far as its ticket knows.
pub(crate) trait Keeper: Send + Sync {
    /// Returns when the frame is as sure as `level` asks.
    fn wait(self: Arc<Self>, ticket: &Ticket, level: Level) -> Result<()>;
}

/// One frame of one [`Journal`](super::Journal), by its place in the order of acceptance. A ticket of
/// another opening is refused.
///
/// It may outlive the handle that gave it, and goes to any thread. It keeps no store open.
#[derive(Clone)]
pub struct Ticket {
    pub(super) owner: OwnerId,
    pub(super) position: u64,
    keeper: Option<Weak<dyn Keeper>>,
}

impl Ticket {
    pub(super) fn new(owner: OwnerId, position: u64) -> Self {
        Self { owner, position, keeper: None }
    }

    /// A ticket of no frame: whoever waits for it need not.
    pub(crate) fn of_nothing(owner: OwnerId) -> Self {
        Self::new(owner, 0)
    }

    /// The same, of a frame that `keeper` took in.
    pub(crate) fn kept_by(self, keeper: Weak<dyn Keeper>) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Its position, from 1.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns when the frame is as sure as `level` asks. The caller may be the one who writes and
    /// syncs, for itself and for all who wait.
    ///
    /// # Errors
    /// As [`Store::wait`](crate::Store::wait); `Closed` once the store was closed, which makes durable
    /// what it can: what came of the frame is known by reading. `Invalid` for a ticket of a journal
    /// without a store: ask [`Journal::wait`](super::Journal::wait).
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut.
    pub fn wait(&self, level: Level) -> Result<()> {
        let place = || format!("frame {}", self.position);
        let Some(keeper) = &self.keeper else {
            return Err(Error::invalid("wait for", place(), "no store took it in"));
        };
        match keeper.upgrade() {
            Some(keeper) => keeper.wait(self, level),
            None => {
                let cause = "the store was closed";
                Err(Error::new(ErrorKind::Closed, "wait for", place(), cause))
            }
        }
    }

    fn key(&self) -> (OwnerId, u64) {
        (self.owner, self.position)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("owner", &self.owner)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Ticket {}

impl PartialOrd for Ticket {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ticket {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Ticket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
