//! Events and notes of a recording, by whoever writes it.

use super::recorder::Recorder;
use crate::error::Result;
use crate::ids::EventId;
use crate::recording::keeping::{EventValue, NOTE, add_event};

impl Recorder {
    /// Says that something happened: an event of `kind`, with the last iteration that was recorded
    /// and the wall-clock time. Everything accepted before is made durable first, so that no crash
    /// takes back the iteration that it names.
    ///
    /// # Errors
    /// `Invalid` for a blank or long kind; `LimitExceeded` for a value above
    /// [`EVENT_BYTES_MAX`](crate::recording::EVENT_BYTES_MAX);
    /// `Conflict` when the recording has ended; as [`Recorder::barrier`].
    ///
    /// # Durability
    /// *Durable* when it returns, by a commit of its own, and every record accepted before.
    pub fn event(&self, kind: &str, value: impl Into<EventValue>) -> Result<EventId> {
        let here = self.here()?;
        // Else a crash takes back records that another run may put others in the place of, and the
        // event would stand in a history that it was not made in.
        self.store.barrier()?;
        add_event(&self.store, (self.id, &self.name), here, kind, value.into())
    }

    /// Notes something down: an event of the kind [`NOTE`].
    ///
    /// # Errors
    /// As [`Recorder::event`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn note(&self, text: &str) -> Result<EventId> {
        self.event(NOTE, text)
    }
}
