//! Append: a batch becomes one record of the intake.

use super::stage::Stage;
use crate::error::{Error, ErrorKind, Result};
use crate::journal::Ticket;
use crate::staging::describing::{Batch, Key, Produced};

/// What became of a batch.
#[derive(Debug, Clone)]
pub struct Appended {
    /// Ask it how far the batch got.
    pub ticket: Ticket,
    /// It was taken before: nothing was appended. The ticket is that of the first time.
    pub is_repeat: bool,
    /// Its rows.
    pub rows: u64,
}

impl Stage {
    /// Takes `batch` under `key`. With `produced`, a batch that comes again is taken once.
    ///
    /// # Errors
    /// `Invalid` for a key of another shape, or a batch without rows.
    ///
    /// # Durability
    /// None (*Accepted*). [`Ticket::wait`], or [`Stage::barrier`], gives more.
    pub fn append(
        &self,
        key: &Key,
        _batch: Batch,
        _produced: Option<&Produced>,
    ) -> Result<Appended> {
        self.check("append")?;
        self.key_shape().check(key)?;
        Err(Error::new(ErrorKind::Unsupported, "append", self.place(), "not yet"))
    }
}
