//! Acknowledgement: how sure what a recorder accepted is.

use super::recorder::Recorder;
use crate::engine::Waiting;
use crate::error::{Error, Result};
use crate::ids::StreamId;
use crate::journal::{Level, Ticket};
use crate::protection::Protection;

impl Recorder {
    /// Waits until the records behind `ticket` reached `level`. [`Ticket::wait`] does so without the
    /// recorder.
    ///
    /// # Errors
    /// `Io`, `DiskFull`; `OutcomeUnknown` when a sync failed: the store has halted.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut.
    pub fn wait(&self, ticket: &Ticket, level: Level) -> Result<()> {
        self.store.wait(ticket, level)
    }

    /// As [`Recorder::wait`], as a future for any executor.
    ///
    /// # Errors
    /// Its output is what [`Recorder::wait`] returns.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut: when the future is ready.
    pub fn when(&self, ticket: &Ticket, level: Level) -> Waiting {
        self.store.when(ticket, level)
    }

    /// Returns when everything accepted before it is durable. Seals nothing, and does no I/O where
    /// nothing is new. What a ring keeps was not accepted.
    ///
    /// # Errors
    /// As [`Recorder::wait`].
    ///
    /// # Durability
    /// *Durable*, with one data sync for any number of streams.
    pub fn barrier(&self) -> Result<()> {
        if !Protection::BarrierSealsNothing.is_on() {
            self.seal()?;
        }
        self.store.barrier()
    }

    /// As [`Recorder::barrier`], for what was accepted of one stream, by its position, and whatever
    /// was accepted before that.
    ///
    /// # Errors
    /// `Invalid` for an unknown stream; as [`Recorder::wait`].
    ///
    /// # Durability
    /// As there.
    pub fn barrier_of(&self, stream: usize) -> Result<()> {
        self.store.barrier_of(self.id_of("barrier", stream)?)
    }

    /// How many records of a stream, by its position, are durable: each before the one of this
    /// number, counted from 0. Answers also once the store has halted.
    ///
    /// # Errors
    /// `Invalid` for an unknown stream; `Closed`.
    pub fn durable_upto(&self, stream: usize) -> Result<u64> {
        self.store.durable_upto(self.id_of("look at", stream)?).map(|sequence| sequence.0)
    }

    fn id_of(&self, operation: &'static str, stream: usize) -> Result<StreamId> {
        self.locked(operation, |state| match state.streams.get(stream) {
            Some(open) => Ok(open.id),
            None => {
                let cause = format!("there is no stream number {stream}");
                Err(Error::invalid(operation, format!("{:?}", self.name), cause))
            }
        })
    }
}
