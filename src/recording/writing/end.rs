//! How a recorder ends.
//!
//! ```text
//!   complete, fail ──▶ seal all ──▶ ONE commit: status, counts, claims
//!   close, drop ─────▶ drain ─────▶ one commit: counts, claims        still running
//! ```
//! What stopped the writer is told before anything else. A commit whose outcome is unknown has halted
//! the store: nothing that this opening does later can take it back.

use super::observable::Observable;
use super::observe::For;
use super::recorder::Recorder;
use crate::engine::count_dropped;
use crate::error::{Error, Result};
use crate::ids::StreamId;
use crate::manifest::RecordingStatus;
use crate::protection::Protection;
use crate::recording::describing::{Moment, check_name};
use crate::recording::keeping::{set_status, streams_of};
use crate::vfs::Step;

impl Recorder {
    /// Makes everything accepted durable, seals it, then ends the recording as *complete*. What a
    /// ring keeps and was not triggered is left out, and counted. Of a recording that was resumed what
    /// was sealed before is looked at first: each chunk's row, its file's presence, length and name, its
    /// footer; its values only where [`Resume::read_history`](crate::recording::Resume::read_history) says so.
    ///
    /// # Errors
    /// `Damage` for sealed history; as [`Recorder::wait`]; `Conflict` when the recording has ended already or was retired. The
    /// recording then stays *running* with all its records, unless the error is `OutcomeUnknown`:
    /// opened again, it may be *complete*.
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn complete(mut self) -> Result<()> {
        self.check_working("complete")?;
        self.end(RecordingStatus::Complete)
    }

    /// As [`Recorder::complete`]; `state` is recorded first in every stream that lacks its iteration,
    /// due or not, and waits for room in each.
    ///
    /// # Errors
    /// As there, and as [`Recorder::observe`]. The recorder is gone then, and the recording stays
    /// *running*: it goes on with [`Store::resume`](crate::Store::resume).
    ///
    /// # Durability
    /// As there.
    pub fn complete_with<S: Observable + ?Sized>(mut self, state: &S) -> Result<()> {
        self.check_working("complete")?;
        self.leave_rings()?;
        let now = Moment { iteration: state.iteration(), time: state.time() };
        self.observe_for(For::All, now, &mut |name, to| state.field(name, to))?;
        self.end(RecordingStatus::Complete)
    }

    /// Makes everything accepted durable, seals it, then ends the recording as *failed*.
    ///
    /// # Errors
    /// What stopped the writer, if something did; `Invalid` for a blank reason; as
    /// [`Recorder::complete`]. The recorder is gone then, also for a blank reason, and the recording
    /// stays *running*.
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn fail(mut self, reason: &str) -> Result<()> {
        if Protection::WriterErrorFirst.is_on() {
            self.check_working("fail")?;
        }
        if check_name("reason", reason).is_err() {
            let place = format!("{:?}", self.name);
            return Err(Error::invalid("fail", place, "the reason is blank or too long"));
        }
        self.end(RecordingStatus::Failed { reason: reason.to_owned() })
    }

    /// Makes everything accepted durable and lets go of the recording, which stays *running* and can
    /// be resumed. Dropping the recorder does the same, and tells nobody what failed.
    ///
    /// # Errors
    /// As [`Recorder::wait`]; what kept full chunks from being published.
    ///
    /// # Durability
    /// All accepted records are durable when this returns.
    pub fn close(mut self) -> Result<()> {
        self.let_go()
    }

    fn end(&mut self, status: RecordingStatus) -> Result<()> {
        self.leave_rings()?;
        self.seal()?;
        if status == RecordingStatus::Complete && Protection::HistoryBeforeComplete.is_on() {
            self.history.check(&self.store, &self.name)?;
        }
        let dropped = self.dropped()?;
        let Some(claim) = self.claim.take() else { return Ok(()) };
        set_status(&self.store, self.id, &self.name, claim, status, &[], &dropped)
    }

    fn let_go(&mut self) -> Result<()> {
        let Some(claim) = self.claim.take() else { return Ok(()) };
        let published = self.leave_rings().and_then(|()| {
            self.locked("close", |state| match state.batch.is_due() {
                true => self.publish(state),
                false => Ok(()),
            })
        });
        let drained = self.store.barrier();
        let dropped = self.dropped()?;
        if drained.is_ok() && (!dropped.is_empty() || self.store.is_shared()) {
            let streams = streams_of(&self.store, self.id)?;
            self.store.transact_releasing(Step::ClaimCommit, &streams, |w| {
                count_dropped(w, &dropped)?;
                claim.release_in(w)
            })?;
            claim.released();
        }
        drained.and(published)
    }

    /// What the rings keep is not recorded any more.
    fn leave_rings(&self) -> Result<()> {
        self.locked("end", |state| {
            for stream in &mut state.streams {
                let left = stream.ring.clear();
                stream.leave_out(left);
            }
            Ok(())
        })
    }

    /// What was dropped behind the last record of each stream, which could not tell it.
    fn dropped(&self) -> Result<Vec<(StreamId, u64)>> {
        self.locked("end", |state| {
            let counts = state.streams.iter().map(|stream| (stream.id, stream.dropped));
            Ok(counts.filter(|(_, dropped)| *dropped > 0).collect())
        })
    }

    fn check_working(&self, operation: &'static str) -> Result<()> {
        self.store.check_working(operation)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Nobody is left to tell: `close` does.
        let _ = self.let_go();
    }
}
