//! Flush: what is staged is sealed, and the groups that are ready are detached.

use super::ready::Ready;
use super::stage::Stage;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::GroupId;

/// What a flush did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Rows that were sealed.
    pub rows: u64,
    /// Batches that were sealed.
    pub batches: u64,
    /// Parts that hold them.
    pub parts: u64,
    /// Groups that were detached, by number.
    pub detached: Vec<GroupId>,
}

impl Stage {
    /// Seals what is staged, and detaches the groups that are `ready`.
    ///
    /// # Errors
    /// `Conflict` while another process flushes or recovers the stage.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn flush(&self, ready: &Ready<'_>) -> Result<Flushed> {
        self.check("flush")?;
        ready.check(self.key_shape())?;
        Err(Error::new(ErrorKind::Unsupported, "flush", self.place(), "not yet"))
    }
}
