//! Fork: a new recording that begins as another one was at a checkpoint, and shares its chunks.

use super::left_out::left_out;
use super::resume_from::{ResumeFrom, Target};
use crate::engine::{Branch, STATE_INLINE_BYTES_MAX, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::{CheckpointId, RecordingId, StreamId};
use crate::manifest::{
    CheckpointRow, Cursor, Reading, RecordingNameRow, RecordingRow, RecordingStatus, StateBytes,
    StreamRow, Write,
};
use crate::recording::describing::{StreamAbout, check_recording_name, copy_parameters};
use crate::recording::keeping::copy_events;
use crate::recording::reading::Restored;
use crate::recording::writing::chunks_of_view;

/// A recording that began as another one was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkedRecording {
    /// Its number.
    pub id: RecordingId,
    /// The checkpoint of the other one at which it begins; none at the end of what was there.
    pub checkpoint: Option<CheckpointId>,
    /// The iteration of that checkpoint's state.
    pub iteration: Option<i64>,
    /// Newer checkpoints that were passed over since they do not read, the newest first, each with
    /// what was wrong with it.
    pub passed_over: Vec<(CheckpointId, String)>,
}

/// How often a fork is tried of a recording that moves on meanwhile.
const TRIES_MAX: usize = 8;

/// Metadata key of the recording that a fork began as.
const FORK_OF: &str = "fork.of";
/// Metadata key of the checkpoint at which it did.
const FORK_AT: &str = "fork.checkpoint";

impl Store {
    /// Begins a recording called `name` that is as the one called `of` was at a checkpoint of it,
    /// or is at its end. It is *running*, with that checkpoint as its own, and goes on with
    /// [`Store::resume`]; `of` stays as it is, whatever its status, and may be written meanwhile.
    ///
    /// Chunks are shared. Records that were not sealed yet are sealed for the fork alone. Its streams
    /// count as left out ([`Stream::dropped`](crate::recording::Stream::dropped)) what those of `of` did by then.
    ///
    /// # Errors
    /// `NotFound`, `NoCheckpoint`; `Exists` when the name is taken; `Conflict` for a checkpoint that a
    /// resume went back beyond, or when `of` moves on faster than it can be forked; `Invalid` for a
    /// blank or overlong name; `Damage` for unsealed records that do not decode; `ReadOnly`, `DiskFull`,
    /// with nothing changed.
    ///
    /// # Durability
    /// The fork is durable when this returns, or nothing of it is there.
    pub fn fork(&self, of: &str, at: ResumeFrom, name: &str) -> Result<ForkedRecording> {
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
        let mut tries = 1..TRIES_MAX;
        loop {
            let target = Target::of(self, of, at)?;
            match self.fork_of(&target, of, name) {
                // It was sealed on, moved back, or let go of that checkpoint meanwhile.
                Err(e)
                    if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::NotFound)
                        && tries.next().is_some() => {}
                Err(e) => return Err(e),
                Ok(id) => {
                    self.keep_snapshot();
                    let plan = target.plan(self, Vec::new());
                    let (checkpoint, iteration) = (plan.checkpoint, plan.iteration);
                    let passed_over = plan.passed_over;
                    return Ok(ForkedRecording { id, checkpoint, iteration, passed_over });
                }
            }
        }
    }

    fn fork_of(&self, target: &Target, of: &str, name: &str) -> Result<RecordingId> {
        if let Some(bad) = target.undecodable.first() {
            return Err(bad.error("fork", of));
        }
        let mut branches = Vec::with_capacity(target.cursors.len());
        let left_out = left_out(self, target)?;
        let each = target.views.iter().zip(&target.cursors).zip(&left_out);
        for ((view, cursor), (dropped, _)) in each {
            let shared_upto = view.row.sealed_upto;
            let schema = Schema::from_bytes(&view.row.schema)?;
            let limits = StreamAbout::from_bytes(&view.row.about)?.limits();
            let unsealed = chunks_of_view(self, view, &schema, &limits, cursor.end)?;
            branches.push(Branch { cursor: *cursor, shared_upto, unsealed, dropped: *dropped });
        }
        let checkpoint = target.restored.as_ref().map(|restored| restored.checkpoint());
        let row = row_of(&target.row, name, checkpoint, self.disk().wall_nanos());
        self.seal_fork(branches)?.publish(|w, forked| {
            if !w.insert_absent(&row.name, &RecordingNameRow { recording: forked.recording })? {
                return Err(taken(name));
            }
            let row = RecordingRow { streams: forked.streams.clone(), ..row.clone() };
            w.put(&forked.recording, &row)?;
            copy_parameters(w, target.recording, forked.recording)?;
            let (from, to) = (target.recording, forked.recording);
            copy_events(w, from, to, &target.cursors, &forked.streams)?;
            if let Some(restored) = &target.restored {
                keep_checkpoint(w, target, restored, &forked.streams, forked.recording)?;
            }
            Ok(forked.recording)
        })
    }
}

fn row_of(
    of: &RecordingRow,
    name: &str,
    checkpoint: Option<CheckpointId>,
    created: Option<i64>,
) -> RecordingRow {
    let mut metadata = of.metadata.clone();
    metadata.retain(|(key, _)| key != FORK_OF && key != FORK_AT);
    metadata.push((FORK_OF.to_owned(), of.name.clone()));
    metadata.extend(checkpoint.map(|id| (FORK_AT.to_owned(), id.to_string())));
    RecordingRow {
        name: name.to_owned(),
        status: RecordingStatus::Running,
        streams: Vec::new(),
        metadata,
        created,
        ..of.clone()
    }
}

/// The fork has the checkpoint as its own, with cursors of its own streams; also one that its
/// recording let go of meanwhile, for newer ones.
fn keep_checkpoint(
    w: &mut Write,
    target: &Target,
    restored: &Restored,
    streams: &[StreamId],
    recording: RecordingId,
) -> Result<()> {
    let (scope, checkpoint) = (target.recording.0, restored.checkpoint());
    let (state, at) = match w.get::<CheckpointRow>(&(scope, checkpoint))? {
        Some(row) => (row.state, row.at),
        None if restored.bytes().len() <= STATE_INLINE_BYTES_MAX => {
            (StateBytes::Inline(restored.bytes().to_vec()), None)
        }
        None => {
            let cause = format!("checkpoint {checkpoint} went meanwhile");
            let place = format!("{:?}", target.row.name);
            return Err(Error::new(ErrorKind::Conflict, "fork", place, cause));
        }
    };
    let mut cursors = Vec::with_capacity(streams.len());
    for (stream, cursor) in streams.iter().zip(&target.cursors) {
        let generation = w.require::<StreamRow>(stream)?.generation;
        cursors.push(Cursor { stream: *stream, generation, end: cursor.end });
    }
    let id = w.next_checkpoint_id()?;
    w.put(&(recording.0, id), &CheckpointRow { cursors, state, at })
}

fn taken(name: &str) -> Error {
    let cause = "a recording of this name is there already";
    Error::new(ErrorKind::Exists, "fork", format!("{name:?}"), cause)
}
