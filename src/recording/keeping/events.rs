//! Events and notes: what is said of a recording while it runs, with the time at which it was said.
//!
//! Each is a row of its own, durable when the call returns. It stays whatever becomes of the records:
//! a run that goes back to a checkpoint takes back records, not what was said about them, and
//! [`Event::stands`] tells whether the history in which it was said is still part of the recording.

use std::ops::ControlFlow;

use crate::engine::{Store, is_kept};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, RecordingId, Sequence, StreamId};
use crate::manifest::{
    Cursor, EventForm, EventRow, Reading, RecordingRow, RecordingStatus, Snapshot, StreamRow, Write,
};
use crate::vfs::Step;

/// The longest value of an event, in bytes. What is larger belongs into a stream.
pub const EVENT_BYTES_MAX: usize = 64 << 10;
/// The longest kind of an event, in bytes.
pub const EVENT_KIND_BYTES_MAX: usize = 256;
/// The kind of a note.
pub const NOTE: &str = "note";

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventValue {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// The text of one JSON value. It is kept as it is, and not examined.
    Json(String),
}

impl From<&str> for EventValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for EventValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for EventValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Vec<u8>> for EventValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl EventValue {
    fn into_parts(self) -> (EventForm, Vec<u8>) {
        match self {
            Self::Bytes(bytes) => (EventForm::Bytes, bytes),
            Self::Text(text) => (EventForm::Text, text.into_bytes()),
            Self::Json(text) => (EventForm::Json, text.into_bytes()),
        }
    }

    fn of_parts(form: EventForm, body: Vec<u8>, place: &str) -> Result<Self> {
        let text = |body| {
            String::from_utf8(body)
                .map_err(|e| Error::damage("read", place, "text is not UTF-8").with_source(e))
        };
        Ok(match form {
            EventForm::Bytes => Self::Bytes(body),
            EventForm::Text => Self::Text(text(body)?),
            EventForm::Json => Self::Json(text(body)?),
        })
    }
}

/// An event, as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    id: EventId,
    iteration: Option<i64>,
    at: Option<i64>,
    kind: String,
    value: EventValue,
    stands: bool,
}

impl Event {
    /// Its number in its recording: rises with each, never used twice.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// The last iteration that was recorded before it; `None` before the first.
    pub fn iteration(&self) -> Option<i64> {
        self.iteration
    }

    /// Wall-clock nanoseconds since 1970 when it was made.
    pub fn at(&self) -> Option<i64> {
        self.at
    }

    /// What kind of event, in its owner's words.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What it says.
    pub fn value(&self) -> &EventValue {
        &self.value
    }

    /// Whether the records before it are still part of the recording. A run that went back to an
    /// earlier checkpoint took them back.
    pub fn stands(&self) -> bool {
        self.stands
    }

    fn of_row(snapshot: &Snapshot, key: (RecordingId, EventId), row: EventRow) -> Result<Self> {
        let place = format!("recording {} event {}", key.0, key.1);
        let stands = match &row.anchor {
            None => true,
            Some(anchor) => match snapshot.get::<StreamRow>(&anchor.stream)? {
                Some(stream) => is_within(anchor, &stream),
                None => false,
            },
        };
        Ok(Self {
            id: key.1,
            iteration: row.iteration,
            at: row.at,
            kind: row.kind,
            value: EventValue::of_parts(row.form, row.body, &place)?,
            stands,
        })
    }
}

/// Whether the last record before the anchor still counts.
fn is_within(anchor: &Cursor, stream: &StreamRow) -> bool {
    match anchor.end.0.checked_sub(1) {
        Some(last) => is_kept(stream, anchor.generation, Sequence(last)),
        None => true,
    }
}

/// How many a follower takes at once.
const TAKEN_MAX: usize = 256;

pub(in crate::recording) fn events_from(
    snapshot: &Snapshot,
    recording: RecordingId,
    from: EventId,
) -> Result<Vec<Event>> {
    list_events(snapshot, recording, from, TAKEN_MAX)
}

/// Events from number `from` on, at most `at_most`.
pub(in crate::recording) fn list_events(
    snapshot: &Snapshot,
    recording: RecordingId,
    from: EventId,
    at_most: usize,
) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let range = (recording, from)..=(recording, EventId(u64::MAX));
    snapshot.scan::<EventRow>(range, &mut |key, row| {
        if events.len() == at_most {
            return Ok(ControlFlow::Break(()));
        }
        events.push(Event::of_row(snapshot, key, row)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(events)
}

/// Where in a recording an event is made.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::recording) struct Where {
    pub iteration: Option<i64>,
    pub anchor: Option<Cursor>,
}

/// Writes an event of the running recording `id`.
pub(in crate::recording) fn add_event(
    store: &Store,
    (id, name): (RecordingId, &str),
    here: Where,
    kind: &str,
    value: EventValue,
) -> Result<EventId> {
    let place = || format!("{name:?}");
    let refuse = |cause: String| Err(Error::invalid("note", place(), cause));
    if kind.trim().is_empty() || kind.len() > EVENT_KIND_BYTES_MAX {
        return refuse(format!("its kind is blank or above {EVENT_KIND_BYTES_MAX} bytes"));
    }
    let (form, body) = value.into_parts();
    if body.len() > EVENT_BYTES_MAX {
        let cause = format!("{} bytes where {EVENT_BYTES_MAX} fit; use a stream", body.len());
        return Err(Error::new(ErrorKind::LimitExceeded, "note", place(), cause));
    }
    let Where { iteration, anchor } = here;
    let at = store.disk().wall_nanos();
    let row = EventRow { iteration, at, kind: kind.to_owned(), form, body, anchor };
    let committed = store.transact(Step::EventCommit, |w| {
        let running = w.get::<RecordingRow>(&id)?;
        if running.is_none_or(|row| row.status != RecordingStatus::Running) {
            let cause = "it has ended, or was retired meanwhile";
            return Err(Error::new(ErrorKind::Conflict, "note", place(), cause));
        }
        let event = next_id(w, id)?;
        w.put(&(id, event), &row)?;
        Ok(event)
    })?;
    Ok(committed.value)
}

fn next_id(w: &Write, recording: RecordingId) -> Result<EventId> {
    let range = (recording, EventId(0))..=(recording, EventId(u64::MAX));
    match w.last::<EventRow>(range)? {
        None => Ok(EventId(0)),
        Some(((_, last), _)) => last.next().ok_or_else(|| {
            let place = format!("recording {recording}");
            Error::new(ErrorKind::LimitExceeded, "note", place, "no number is left")
        }),
    }
}

/// For a fork: the events of `from` that were made below `cursors` become events of `to`, whose
/// `streams` stand in the same order.
pub(in crate::recording) fn copy_events(
    w: &mut Write,
    from: RecordingId,
    to: RecordingId,
    cursors: &[Cursor],
    streams: &[StreamId],
) -> Result<()> {
    let rows = w.list::<EventRow>((from, EventId(0))..=(from, EventId(u64::MAX)), usize::MAX)?;
    for ((_, id), mut row) in rows {
        if let Some(anchor) = row.anchor {
            let mut there = cursors.iter().zip(streams);
            let there = there.find(|(c, _)| c.stream == anchor.stream && anchor.end <= c.end);
            let stands = match w.get::<StreamRow>(&anchor.stream)? {
                Some(stream) => is_within(&anchor, &stream),
                None => false,
            };
            let Some((_, stream)) = there.filter(|_| stands) else { continue };
            let generation = w.require::<StreamRow>(stream)?.generation;
            row.anchor = Some(Cursor { stream: *stream, generation, end: anchor.end });
        }
        w.put(&(to, id), &row)?;
    }
    Ok(())
}

/// Removes all events of `recording`.
pub(super) fn remove_events(w: &mut Write, recording: RecordingId) -> Result<()> {
    let range = (recording, EventId(0))..=(recording, EventId(u64::MAX));
    while let Some((key, _)) = w.last::<EventRow>(range.clone())? {
        w.remove::<EventRow>(&key)?;
    }
    Ok(())
}
