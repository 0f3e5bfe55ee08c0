//! Acknowledgement: how sure what was accepted is, asked by ticket, by stream or for everything.

use std::sync::Arc;

use super::store::{Inner, Store};
use crate::error::Result;
use crate::ids::{Sequence, StreamId};
use crate::journal::{Keeper, Level, Ticket};

impl Store {
    /// Waits until the group behind `ticket` reached `level`; the caller may be the one who writes
    /// and syncs, for itself and for all who wait.
    ///
    /// # Errors
    /// `Io` or `DiskFull` when it could not be written, and may be tried again; `OutcomeUnknown`
    /// when a sync failed: the store has halted. `Fenced` when another process took over what this one
    /// had.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut.
    pub fn wait(&self, ticket: &Ticket, level: Level) -> Result<()> {
        let writer = self.writer("wait")?;
        self.core().check_write("wait")?;
        let level = self.core().level(level);
        writer.journal.wait(ticket, level).inspect_err(|e| self.note_journal_failure(e))?;
        self.core().bell.ring();
        match level {
            Level::Durable => self.made_durable(),
            // P5: who was taken over writes what nobody reads.
            Level::Written => self.core().check_not_taken_over(),
            Level::Accepted => Ok(()),
        }
    }

    /// Returns when everything accepted before it is durable. On nothing new it writes and syncs
    /// nothing; where several processes write it looks whether its own lock file stands.
    ///
    /// # Errors
    /// As [`Store::wait`]; `Fenced` when another process took over what this one had.
    ///
    /// # Durability
    /// *Durable*, with one data sync for any number of streams.
    pub fn barrier(&self) -> Result<()> {
        let writer = self.writer("barrier")?;
        self.core().check_write("barrier")?;
        let is_new = writer.journal.is_open();
        writer.journal.barrier().inspect_err(|e| self.note_journal_failure(e))?;
        if !is_new {
            // Somebody else may have synced it, and not have looked yet.
            return self.core().check_not_taken_over();
        }
        self.core().bell.ring();
        self.made_durable()
    }

    /// As [`Store::barrier`], for what was accepted of `stream`, and whatever was accepted before
    /// that.
    ///
    /// # Errors
    /// As [`Store::wait`]; `NotFound` for an unknown stream.
    ///
    /// # Durability
    /// *Durable*, as there.
    pub fn barrier_of(&self, stream: StreamId) -> Result<()> {
        let writer = self.writer("barrier")?;
        self.core().check_write("barrier")?;
        self.load_all(&mut writer.streams.lock(), &[stream])?;
        let is_new = writer.journal.first_open_of(stream).is_some();
        writer.journal.barrier_of(stream).inspect_err(|e| self.note_journal_failure(e))?;
        if !is_new {
            // Somebody else may have synced it, and not have looked yet.
            return self.core().check_not_taken_over();
        }
        self.core().bell.ring();
        self.made_durable()
    }

    /// Every record of `stream` below this is durable. Does no I/O for a stream that was appended to,
    /// and answers also once the store has halted.
    ///
    /// # Errors
    /// `NotFound` for an unknown stream; `Closed`.
    pub fn durable_upto(&self, stream: StreamId) -> Result<Sequence> {
        let writer = self.writer_even_halted()?;
        self.core().check_not_taken_over()?;
        let mut streams = writer.streams.lock();
        self.load_all(&mut streams, &[stream])?;
        let end = streams.known("look at", stream)?;
        let open = writer.journal.first_open_of(stream);
        Ok(open.map_or(end.next(), |first| first.max(end.sealed_upto)))
    }

    /// Fails with what stopped the store, or its journal, if something did.
    pub(crate) fn check_working(&self, operation: &'static str) -> Result<()> {
        if let Some(cause) = self.writer_even_halted()?.journal.poisoned() {
            self.core().halt(&cause);
        }
        self.core().check_write(operation).map(drop)
    }

    /// Comes between a sync and its acknowledgement, and tidies up.
    fn made_durable(&self) -> Result<()> {
        self.core().check_not_taken_over()?;
        self.core().note_untidy(self.keep_budget());
        Ok(())
    }
}

impl Keeper for Inner {
    fn wait(self: Arc<Self>, ticket: &Ticket, level: Level) -> Result<()> {
        Store::within(&self).wait(ticket, level)
    }
}
