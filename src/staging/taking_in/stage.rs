//! The handle of a stage.

use std::sync::Arc;

use super::memory::Memory;
use crate::engine::{Store, Waiting};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::StageId;
use crate::journal::{Level, Ticket};
use crate::manifest::{Reading, StageRow};
use crate::staging::describing::KeyShape;

/// A stage: it takes batches under keys. Cheap to clone, usable from any thread; it keeps the store open.
#[derive(Debug, Clone)]
pub struct Stage {
    pub(in crate::staging) store: Store,
    pub(in crate::staging) memory: Arc<Memory>,
}

impl Stage {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.memory.name
    }

    /// Its number: a stage that is made again under the same name has another.
    pub fn id(&self) -> StageId {
        self.memory.id
    }

    /// Which parts its keys have.
    pub fn key_shape(&self) -> &KeyShape {
        &self.memory.shape
    }

    /// Waits until the batch behind `ticket` reached `level`. [`Ticket::wait`] does so without the stage.
    ///
    /// # Errors
    /// `Io`, `DiskFull`; `OutcomeUnknown` when a sync failed: the store has halted; `Fenced` when another
    /// process took over what this one had. What went wrong before and was told nobody.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut.
    pub fn wait(&self, ticket: &Ticket, level: Level) -> Result<()> {
        self.check("wait")?;
        self.store.wait(ticket, level)
    }

    /// As [`Stage::wait`], as a future for any executor.
    ///
    /// # Errors
    /// Its output is what [`Stage::wait`] returns.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut: when the future is ready.
    pub fn when(&self, ticket: &Ticket, level: Level) -> Waiting {
        self.store.when(ticket, level)
    }

    /// Returns when everything accepted before it is durable. Seals nothing, and does no I/O where nothing
    /// is new.
    ///
    /// # Errors
    /// As [`Stage::wait`].
    ///
    /// # Durability
    /// *Durable*, with one data sync for any number of batches.
    pub fn barrier(&self) -> Result<()> {
        self.check("barrier")?;
        self.store.barrier()
    }

    /// STG11: tells what went wrong where nobody waited, once; then whether the store works.
    pub(in crate::staging) fn check(&self, operation: &'static str) -> Result<()> {
        if let Some(trouble) = self.memory.take_trouble() {
            return Err(trouble);
        }
        self.store.check_open(operation)?;
        if self.memory.is_removed() { Err(self.removed()) } else { Ok(()) }
    }

    /// Its row.
    ///
    /// # Errors
    /// `NotFound` once it was removed, whatever stands under its name by now (STG30).
    pub(in crate::staging) fn row(&self, rows: &impl Reading) -> Result<StageRow> {
        match rows.get::<StageRow>(&self.memory.name)? {
            Some(row) if row.stage == self.memory.id => Ok(row),
            _ => Err(self.removed()),
        }
    }

    pub(super) fn removed(&self) -> Error {
        Error::new(ErrorKind::NotFound, "open", self.place(), "it was removed")
    }

    /// As errors name it.
    pub(in crate::staging) fn place(&self) -> String {
        place(&self.memory.name)
    }
}

/// As errors name the stage called `name`.
pub(in crate::staging) fn place(name: &str) -> String {
    format!("stage {name:?}")
}
