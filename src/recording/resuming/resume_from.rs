//! Where a recording goes on from: the cursor of each of its streams, and the state there.

use super::resume_plan::{ResumePlan, StreamPlan};
use super::undecodable::{self, Undecodable};
use crate::engine::{Checkpoint, Store, StreamView, place_of_scope};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, row_payload};
use crate::ids::{CheckpointId, Ordinal, RecordingId, Sequence, StreamId};
use crate::manifest::{ChunkRow, Cursor, Reading, RecordingNameRow, RecordingRow};
use crate::recording::reading::{CHUNKS_HELD_MAX, Restored, Stream};

/// Where a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ResumeFrom {
    /// Behind the last record of each stream; there is no state. What was left out behind that, and is
    /// counted ([`Stream::dropped`](crate::recording::Stream::dropped)), stays counted, also if it is done again.
    Tail,
    /// At the newest checkpoint that reads.
    #[default]
    LatestCheckpoint,
    /// At this one.
    Checkpoint(CheckpointId),
}

/// Everything that is to be known before a run goes on. Nothing is written to learn it.
#[derive(Debug)]
pub(super) struct Target {
    pub recording: RecordingId,
    pub row: RecordingRow,
    /// Each stream as it is, by position.
    pub views: Vec<StreamView>,
    /// Where each goes on.
    pub cursors: Vec<Cursor>,
    pub restored: Option<Restored>,
    /// Records that do not decode. The cursors lie before them.
    pub undecodable: Vec<Undecodable>,
}

impl Target {
    /// Each stream, and up to which record it is sealed, as far as it stays.
    pub fn sealed(&self) -> Vec<(StreamId, Sequence)> {
        let ends = self.views.iter().zip(&self.cursors);
        ends.map(|(view, cursor)| (view.stream, view.row.sealed_upto.min(cursor.end))).collect()
    }
}

/// The streams of a recording, seen at one instant.
struct Look {
    views: Vec<StreamView>,
    undecodable: Vec<Undecodable>,
}

impl Look {
    fn at(store: &Store, row: &RecordingRow) -> Result<Self> {
        // Of the chunks the last is enough, whatever their number.
        let views = store.views_within(&row.streams, 0)?;
        let undecodable = undecodable::find(store, &views)?;
        Ok(Self { views, undecodable })
    }

    /// Whether a checkpoint covers records that are not there.
    fn is_behind(&self, checkpoint: &Checkpoint) -> bool {
        let is_beyond = |view: &StreamView| {
            let mut cursors = checkpoint.cursors.iter();
            cursors.any(|cursor| cursor.stream == view.stream && cursor.end.0 > view.record_count())
        };
        self.views.iter().any(is_beyond)
    }
}

/// How often a recording that moves on is looked at before what is seen of it is told.
const LOOKS: usize = 3;

impl Target {
    /// The recording may be written meanwhile, or moved back. So a checkpoint is read before the
    /// streams are looked at; and one that covers more than they have is damaged only if it does so
    /// when everything is looked at again.
    pub fn of(store: &Store, name: &str, from: ResumeFrom) -> Result<Self> {
        let (recording, row) = find(store, name)?;
        let mut looks = 1..LOOKS;
        loop {
            let mut is_behind = false;
            let found = Self::look(store, name, (recording, row.clone()), from, &mut is_behind);
            let has_moved = match &found {
                // A payload went that was not sealed when it was seen.
                Err(e) => is_behind || e.kind() == ErrorKind::NotFound,
                Ok(_) => is_behind,
            };
            if !has_moved || looks.next().is_none() {
                return found;
            }
        }
    }

    fn look(
        store: &Store,
        name: &str,
        (recording, row): (RecordingId, RecordingRow),
        from: ResumeFrom,
        is_behind: &mut bool,
    ) -> Result<Self> {
        let schema = Schema::from_bytes(&row.schema)?;
        let scope = recording.0;
        let mut seen: Option<Look> = None;
        let mut reads = |checkpoint: &Checkpoint| {
            let look = match seen.take() {
                Some(look) => look,
                None => Look::at(store, &row)?,
            };
            let look = seen.insert(look);
            *is_behind |= look.is_behind(checkpoint);
            check_cursors(checkpoint, &look.views, &look.undecodable)?;
            let state = checkpoint.state.clone();
            Restored::decode(checkpoint.id, &schema, look.views.len(), state)
        };
        let found = match from {
            ResumeFrom::Tail => None,
            ResumeFrom::LatestCheckpoint => {
                let mut restored = None;
                let checkpoint = store.latest_checkpoint_that(scope, &mut |checkpoint| {
                    restored = Some(reads(checkpoint)?);
                    Ok(())
                });
                Some((checkpoint.map_err(|e| of_recording(e, recording, name))?, restored))
            }
            ResumeFrom::Checkpoint(id) => {
                let notes = store.checkpoints(scope)?;
                if notes.iter().any(|note| note.id == id && !note.stands) {
                    let cause = format!("a resume went back beyond checkpoint {id}");
                    let place = format!("{name:?}");
                    return Err(Error::new(ErrorKind::Conflict, "resume", place, cause));
                }
                let checkpoint =
                    store.checkpoint_of(scope, id).map_err(|e| of_recording(e, recording, name))?;
                let restored = reads(&checkpoint)?;
                Some((checkpoint, Some(restored)))
            }
        };
        let Look { views, undecodable } = match seen {
            Some(look) => look,
            None => Look::at(store, &row)?,
        };
        let (cursors, restored) = match found {
            None => (ends(store, &views, &undecodable)?, None),
            Some((checkpoint, mut restored)) => {
                if let Some(restored) = &mut restored {
                    restored.note_passed_over(checkpoint.passed_over.clone());
                }
                (in_order(&checkpoint, &views)?, restored)
            }
        };
        Ok(Self { recording, row, views, cursors, restored, undecodable })
    }

    /// In words and numbers; `refused` is why it would not be done.
    pub fn plan(&self, store: &Store, refused: Vec<String>) -> ResumePlan {
        let streams = self.views.iter().zip(&self.cursors).map(|(view, cursor)| StreamPlan {
            name: view.row.name.clone(),
            records: view.record_count(),
            kept: cursor.end.0,
            sealed_cut: view.row.sealed_upto.0.saturating_sub(cursor.end.0),
        });
        let restored = self.restored.as_ref();
        ResumePlan {
            recording: self.row.name.clone(),
            status: self.row.status.clone(),
            checkpoint: restored.map(Restored::checkpoint),
            iteration: restored.map(Restored::iteration),
            passed_over: restored.map(|r| r.passed_over().to_vec()).unwrap_or_default(),
            streams: streams.collect(),
            undecodable: self.undecodable.clone(),
            torn: store.recovery().torn,
            refused,
        }
    }
}

/// The recording called `name`.
pub(super) fn find(store: &Store, name: &str) -> Result<(RecordingId, RecordingRow)> {
    let snapshot = store.snapshot()?;
    let Some(row) = snapshot.get::<RecordingNameRow>(&name.to_owned())? else {
        let cause = "there is no recording of this name";
        return Err(Error::new(ErrorKind::NotFound, "resume", format!("{name:?}"), cause));
    };
    Ok((row.recording, snapshot.require::<RecordingRow>(&row.recording)?))
}

/// The same error, told of the recording and not of its number; another place is told as well.
fn of_recording(e: Error, recording: RecordingId, name: &str) -> Error {
    let (operation, place) = (e.operation(), format!("{name:?}"));
    match e.place() == place_of_scope(recording.0) {
        true => e.told_of(operation, place),
        false => {
            Error::new(e.kind(), operation, place, "its checkpoint did not read").with_source(e)
        }
    }
}

/// Whether everything that a checkpoint covers is there, and decodes.
fn check_cursors(
    checkpoint: &Checkpoint,
    views: &[StreamView],
    undecodable: &[Undecodable],
) -> Result<()> {
    let cursors = in_order(checkpoint, views)?;
    for (position, (cursor, view)) in cursors.iter().zip(views).enumerate() {
        let place = || format!("checkpoint {}", checkpoint.id);
        if cursor.end.0 > view.record_count() {
            let cause = format!("it covers {} records of stream {:?}", cursor.end, view.row.name);
            let cause = format!("{cause}, which has {}", view.record_count());
            return Err(Error::damage("resume", place(), cause));
        }
        let bad = undecodable.iter().find(|bad| bad.position == position);
        if let Some(bad) = bad.filter(|bad| bad.first < cursor.end) {
            let cause = format!("it covers record {} of stream {:?}", bad.first, bad.stream);
            let cause = format!("{cause}, which does not decode");
            return Err(Error::damage("resume", place(), cause));
        }
    }
    Ok(())
}

/// The cursors of a checkpoint in the order of the streams.
fn in_order(checkpoint: &Checkpoint, views: &[StreamView]) -> Result<Vec<Cursor>> {
    let cursors = views.iter().map(|view| {
        let of_it = checkpoint.cursors.iter().find(|cursor| cursor.stream == view.stream);
        of_it.copied().ok_or_else(|| {
            let cause = format!("it does not cover stream {:?}", view.row.name);
            Error::damage("resume", format!("checkpoint {}", checkpoint.id), cause)
        })
    });
    cursors.collect()
}

/// The end of each stream; where records do not decode, of each stream before those were observed, but
/// never before its sealed end: what is sealed decodes, and nothing would keep it.
fn ends(store: &Store, views: &[StreamView], undecodable: &[Undecodable]) -> Result<Vec<Cursor>> {
    let bound = undecodable.iter().map(|bad| bad.iteration).min();
    let mut cursors = Vec::with_capacity(views.len());
    for (position, view) in views.iter().enumerate() {
        let mut end = view.record_count();
        if let Some(bad) = undecodable.iter().find(|bad| bad.position == position) {
            end = bad.first.0;
        }
        if let Some(bound) = bound {
            end = end.min(observed_before(store, view, bound)?);
        }
        let generation = view.row.generation;
        cursors.push(Cursor { stream: view.stream, generation, end: Sequence(end) });
    }
    Ok(cursors)
}

/// How many records of a stream are sealed, or were observed before iteration `bound` and decode.
fn observed_before(store: &Store, view: &StreamView, bound: i64) -> Result<u64> {
    let mut kept = 0;
    for (_, payload) in &view.tail {
        let iteration = row_payload::iteration(&store.payload_bytes(payload)?);
        if !iteration.is_ok_and(|iteration| iteration < bound) {
            break;
        }
        kept += 1;
    }
    Ok(view.row.sealed_upto.0 + kept)
}

/// The last chunk of a stream as it was seen.
pub(super) fn last_chunk(store: &Store, view: &StreamView) -> Result<Option<ChunkRow>> {
    match view.row.next_ordinal.0.checked_sub(1) {
        Some(last) => store.snapshot()?.get::<ChunkRow>(&(view.stream, Ordinal(last))),
        None => Ok(None),
    }
}

/// The stream of a view that has no chunks, for reading.
pub(super) fn whole_stream(store: &Store, view: &StreamView) -> Result<Stream> {
    let views = store.views_within(&[view.stream], CHUNKS_HELD_MAX)?;
    let cause = "it was retired meanwhile";
    let place = || format!("stream {:?}", view.row.name);
    let view = views.into_iter().next();
    Stream::of_view(
        store,
        view.ok_or_else(|| Error::new(ErrorKind::NotFound, "resume", place(), cause))?,
    )
}
