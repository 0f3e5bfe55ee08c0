//! Checkpoints of a running recording: a whole state, and how far each stream was.

use super::observable::{Cell, Observable};
use super::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{CHUNK_RAW_BYTES_MAX, RowEncoder};
use crate::ids::{CheckpointId, StreamId};
use crate::manifest::{Reading, RecordingRow, RecordingStatus};
use crate::recording::describing::Moment;
use crate::recording::reading::encode_state;

/// How many checkpoints of a recording stay: the newest, and one to fall back to.
pub const CHECKPOINTS_KEPT: usize = 2;

impl Recorder {
    /// Stores the whole of `state`, every field of the recording's schema, and how far each stream
    /// is, so that a run can go on from here. Everything accepted before is made durable first.
    ///
    /// What the ring of a stream keeps is no part of it, as it is not recorded: a run that goes on from
    /// here does not have it, and counts it among the records that were left out
    /// ([`Stream::dropped`](crate::recording::Stream::dropped)), with those that were before. A run that goes on
    /// here without a break keeps it, and may trigger it.
    ///
    /// The newest [`CHECKPOINTS_KEPT`] stay, or as many as [`Recorder::keep_checkpoints`] says.
    ///
    /// # Errors
    /// `Invalid` for a state that lacks a value, or is before the last observation or the last record
    /// of any stream; `Conflict` when the recording has ended; what the state returned, with its
    /// source; `LimitExceeded` for a state above 1 GiB; as [`Recorder::barrier`].
    ///
    /// # Durability
    /// *Durable* when it returns: the state, and every record accepted before.
    pub fn checkpoint<S: Observable + ?Sized>(&self, state: &S) -> Result<CheckpointId> {
        let now = Moment { iteration: state.iteration(), time: state.time() };
        self.locked("checkpoint", |open| {
            let recorded = open.streams.iter().filter_map(|s| s.tally.last().map(|(at, _)| at));
            let last = open.observed.into_iter().chain(recorded).max();
            if let Some(last) = last.filter(|last| now.iteration < *last) {
                let cause = format!("iteration {} lies before {last}", now.iteration);
                return Err(Error::invalid("checkpoint", format!("{:?}", self.name), cause));
            }
            let row = self.store.snapshot()?.get::<RecordingRow>(&self.id)?;
            if row.is_none_or(|row| row.status != RecordingStatus::Running) {
                let cause = "it has ended, or was retired meanwhile";
                let place = format!("{:?}", self.name);
                return Err(Error::new(ErrorKind::Conflict, "checkpoint", place, cause));
            }
            let values = self.whole_state(now, &mut |name, to| state.field(name, to))?;
            let ids: Vec<StreamId> = open.streams.iter().map(|stream| stream.id).collect();
            let ends = open.streams.iter().map(|stream| stream.at()).collect();
            let bytes = encode_state(&self.schema, ends, &values)?;
            let keep = open.checkpoints_kept;
            self.store.checkpoint_keeping(self.id.0, &ids, &bytes, keep)
        })
    }

    /// From now on the newest `count` checkpoints stay when a new one is made; at least 1. One alone
    /// leaves nothing to fall back to when it is damaged.
    ///
    /// # Errors
    /// `Invalid` from within an observation of the same recorder.
    pub fn keep_checkpoints(&self, count: usize) -> Result<()> {
        self.locked("checkpoint", |open| {
            open.checkpoints_kept = count.max(1);
            Ok(())
        })
    }

    /// The values of all fields, as one record.
    fn whole_state(
        &self,
        now: Moment,
        give: &mut dyn FnMut(&str, &mut Cell<'_>) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let place =
            |field: &str| format!("{:?} iteration {} field {field:?}", self.name, now.iteration);
        self.schema
            .check_time(None, now.time)
            .map_err(|e| e.told_of("checkpoint", place("time")))?;
        let mut bytes = Vec::new();
        let mut encoder = RowEncoder::begin(&self.schema, now.iteration, now.time, &mut bytes);
        for field in self.schema.fields() {
            let mut cell = Cell::new(field, &mut bytes, Some(&mut encoder));
            let given = give(&field.name, &mut cell).and_then(|()| cell.finish());
            given.map_err(|e| e.told_of("checkpoint", place(&field.name)))?;
        }
        let len = encoder.cells_len();
        if len > CHUNK_RAW_BYTES_MAX {
            let cause = format!("{len} bytes; {CHUNK_RAW_BYTES_MAX} is the most");
            let place = format!("{:?} iteration {}", self.name, now.iteration);
            return Err(Error::new(ErrorKind::LimitExceeded, "checkpoint", place, cause));
        }
        Ok(bytes)
    }
}
