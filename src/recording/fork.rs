//! Fork: a new recording that begins as another one was at a checkpoint, and shares its chunks.

use super::about::StreamAbout;
use super::batch::chunks_of_view;
use super::draft::check_recording_name;
use super::events::copy_events;
use super::parameter::copy_parameters;
use super::resume_from::{ResumeFrom, Target};
use crate::engine::{Branch, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::{CheckpointId, RecordingId};
use crate::manifest::{
    CheckpointRow, Cursor, Reading, RecordingNameRow, RecordingRow, RecordingStatus, StreamRow,
    Write,
};

/// Metadata key of the recording that a fork began as.
const FORK_OF: &str = "fork.of";
/// Metadata key of the checkpoint at which it did.
const FORK_AT: &str = "fork.checkpoint";

impl Store {
    /// Begins a recording called `name` that is as the one called `of` was at a checkpoint of it,
    /// or is at its end. It is *running*, with that checkpoint as its own, and goes on with
    /// [`Store::resume`]; `of` stays as it is, whatever its status, and may be written meanwhile.
    ///
    /// Chunks are shared. Records that were not sealed yet are sealed for the fork alone.
    ///
    /// # Errors
    /// `NotFound`, `NoCheckpoint`; `Exists` when the name is taken; `Conflict` when `of` was moved
    /// back meanwhile; `Invalid` for a blank or overlong name; `Damage` for unsealed records that do not
    /// decode; `ReadOnly`, `DiskFull`, with nothing changed.
    ///
    /// # Durability
    /// The fork is durable when this returns, or nothing of it is there.
    pub fn fork(&self, of: &str, at: ResumeFrom, name: &str) -> Result<RecordingId> {
        check_recording_name(name)?;
        let snapshot = self.snapshot()?;
        if snapshot.get::<RecordingNameRow>(&name.to_owned())?.is_some() {
            return Err(taken(name));
        }
        drop(snapshot);
        if self.owner().is_some() && at == ResumeFrom::Tail {
            // What is accepted and not written yet is part of the end that a caller sees.
            self.barrier()?;
        }
        let target = Target::of(self, of, at)?;
        if let Some(bad) = target.undecodable.first() {
            return Err(bad.error("fork", of));
        }
        let mut branches = Vec::with_capacity(target.cursors.len());
        for (view, cursor) in target.views.iter().zip(&target.cursors) {
            let shared_upto = view.row.sealed_upto;
            let schema = Schema::from_bytes(&view.row.schema)?;
            let limits = StreamAbout::from_bytes(&view.row.about)?.limits();
            let unsealed = chunks_of_view(self, view, &schema, &limits, cursor.end)?;
            branches.push(Branch { cursor: *cursor, shared_upto, unsealed });
        }
        let scope = target.recording.0;
        let checkpoint = target.restored.as_ref().map(|restored| restored.checkpoint());
        let row = row_of(&target.row, name, checkpoint);
        let made = self.seal_fork(branches)?.publish(|w, forked| {
            if !w.insert_absent(&row.name, &RecordingNameRow { recording: forked.recording })? {
                return Err(taken(name));
            }
            let row = RecordingRow { streams: forked.streams.clone(), ..row.clone() };
            w.put(&forked.recording, &row)?;
            copy_parameters(w, target.recording, forked.recording)?;
            let (from, to) = (target.recording, forked.recording);
            copy_events(w, from, to, &target.cursors, &forked.streams)?;
            if let Some(checkpoint) = checkpoint {
                keep_checkpoint(w, (scope, checkpoint), forked.recording, &forked.streams)?;
            }
            Ok(forked.recording)
        })?;
        self.keep_snapshot();
        Ok(made)
    }
}

fn row_of(of: &RecordingRow, name: &str, checkpoint: Option<CheckpointId>) -> RecordingRow {
    let mut metadata = of.metadata.clone();
    metadata.retain(|(key, _)| key != FORK_OF && key != FORK_AT);
    metadata.push((FORK_OF.to_owned(), of.name.clone()));
    metadata.extend(checkpoint.map(|id| (FORK_AT.to_owned(), id.to_string())));
    RecordingRow {
        name: name.to_owned(),
        status: RecordingStatus::Running,
        streams: Vec::new(),
        metadata,
        created: crate::clock::wall_nanos(),
        ..of.clone()
    }
}

/// The fork has the checkpoint as its own, with cursors of its own streams.
fn keep_checkpoint(
    w: &mut Write,
    from: (u64, CheckpointId),
    recording: RecordingId,
    streams: &[crate::ids::StreamId],
) -> Result<()> {
    let Some(mut row) = w.get::<CheckpointRow>(&from)? else {
        let cause = format!("checkpoint {} went meanwhile", from.1);
        return Err(Error::new(
            ErrorKind::Conflict,
            "fork",
            format!("recording {}", from.0),
            cause,
        ));
    };
    let mut cursors = Vec::with_capacity(streams.len());
    for (stream, cursor) in streams.iter().zip(&row.cursors) {
        let generation = w.require::<StreamRow>(stream)?.generation;
        cursors.push(Cursor { stream: *stream, generation, end: cursor.end });
    }
    row.cursors = cursors;
    let id = w.next_checkpoint_id()?;
    w.put(&(recording.0, id), &row)
}

fn taken(name: &str) -> Error {
    let cause = "a recording of this name is there already";
    Error::new(ErrorKind::Exists, "fork", format!("{name:?}"), cause)
}
