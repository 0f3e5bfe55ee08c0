//! The transaction that a recording begins with: its rows, its name and its claim, all or none. What
//! a start left that was killed before its first record gives way in the same transaction.

use super::about::{RecordingAbout, StreamAbout};
use super::parameter::{Parameter, index_parameters};
use super::remove::{forget, remove_rows};
use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::{CheckpointId, EventId, RecordingId, StreamId};
use crate::manifest::{
    CheckpointRow, ClaimKind, ClaimRow, EventRow, Reading, RecordingNameRow, RecordingRow,
    RecordingStatus, ResourceKey, StreamRow, Write,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// A description without an error.
#[derive(Debug)]
pub(super) struct Checked {
    pub name: String,
    pub schema: Schema,
    pub streams: Vec<NewStream>,
    pub metadata: Vec<(String, String)>,
    pub about: RecordingAbout,
    pub parameters: Vec<(String, Parameter)>,
}

/// A stream of it.
#[derive(Debug)]
pub(super) struct NewStream {
    pub name: String,
    pub schema: Schema,
    pub about: StreamAbout,
}

/// A recording that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub id: RecordingId,
    pub claim: Claim,
    pub streams: Vec<StreamId>,
}

/// Begins the recording, or changes nothing.
pub(super) fn begin(store: &Store, checked: &Checked) -> Result<Begun> {
    let name = &checked.name;
    let left = abandoned(store, name)?;
    let created = store.disk().wall_nanos();
    let write = |w: &mut Write| {
        let mut gone = Vec::new();
        if let Some((id, row)) = &left
            && w.get::<RecordingNameRow>(name)?.is_some_and(|named| named.recording == *id)
            && w.get::<RecordingRow>(id)?.as_ref() == Some(row)
            && !has_history(w, *id)?
        {
            // The claim is ours already, and stays.
            let claim = w.get::<ClaimRow>(&ResourceKey::of_recording(name))?;
            gone = remove_rows(w, name)?;
            if let Some(claim) = claim {
                w.put(&ResourceKey::of_recording(name), &claim)?;
            }
        }
        write_rows(w, checked, created).map(|(id, streams)| (id, streams, gone))
    };
    let key = ResourceKey::of_recording(name);
    let claimed = store.claim_with(&key, ClaimKind::Recording, Step::PublishCommit, write);
    let ((id, streams, gone), claim) = claimed.map_err(|e| match e.kind() {
        ErrorKind::Conflict if e.operation() == "claim" => {
            let cause = format!("a recording of this name is being written, {}", e.cause());
            Error::new(ErrorKind::Exists, "record", format!("{name:?}"), cause)
        }
        _ => e,
    })?;
    // Where several processes write: a record is accepted before it comes to the journal.
    store.hold_streams(&streams)?;
    forget(store, gone, "its start was abandoned")?;
    Ok(Begun { id, claim, streams })
}

fn write_rows(
    w: &mut Write,
    checked: &Checked,
    created: Option<i64>,
) -> Result<(RecordingId, Vec<StreamId>)> {
    let recording = w.next_recording_id()?;
    if !w.insert_absent(&checked.name, &RecordingNameRow { recording })? {
        let cause = "a recording of this name is there already";
        return Err(Error::new(ErrorKind::Exists, "record", format!("{:?}", checked.name), cause));
    }
    let mut streams = Vec::with_capacity(checked.streams.len());
    for (position, stream) in checked.streams.iter().enumerate() {
        let NewStream { name, schema, about } = stream;
        streams.push(add_stream(w, recording, position, name, schema, about)?);
    }
    let row = RecordingRow {
        name: checked.name.clone(),
        status: RecordingStatus::Running,
        streams: streams.clone(),
        metadata: checked.metadata.clone(),
        created,
        schema: checked.schema.to_bytes()?,
        about: checked.about.to_bytes()?,
    };
    w.put(&recording, &row)?;
    index_parameters(w, recording, &checked.parameters)?;
    Ok((recording, streams))
}

/// Writes the row of a new stream.
pub(super) fn add_stream(
    w: &mut Write,
    recording: RecordingId,
    position: usize,
    name: &str,
    schema: &Schema,
    about: &StreamAbout,
) -> Result<StreamId> {
    let Ok(position) = u32::try_from(position) else {
        let kind = ErrorKind::LimitExceeded;
        return Err(Error::new(kind, "record", format!("stream {name:?}"), "too many streams"));
    };
    let stream = w.next_stream_id()?;
    let row = StreamRow {
        recording: Some(recording),
        name: name.to_owned(),
        position,
        schema: schema.to_bytes()?,
        about: about.to_bytes()?,
        ..StreamRow::default()
    };
    w.put(&stream, &row)?;
    Ok(stream)
}

/// Whether there is something of the recording besides records.
fn has_history(rows: &impl Reading, id: RecordingId) -> Result<bool> {
    let checkpoints = (id.0, CheckpointId(0))..=(id.0, CheckpointId(u64::MAX));
    let events = (id, EventId(0))..=(id, EventId(u64::MAX));
    Ok(rows.last::<CheckpointRow>(checkpoints)?.is_some()
        || rows.last::<EventRow>(events)?.is_some())
}

/// The recording called `name`, if it is one that was started and never written: it is *running*,
/// nobody holds its claim, and it has no record, event or checkpoint.
fn abandoned(store: &Store, name: &str) -> Result<Option<(RecordingId, RecordingRow)>> {
    let snapshot = store.snapshot()?;
    let Some(named) = snapshot.get::<RecordingNameRow>(&name.to_owned())? else { return Ok(None) };
    let id = named.recording;
    let row = snapshot.require::<RecordingRow>(&id)?;
    let is_claimed = snapshot.get::<ClaimRow>(&ResourceKey::of_recording(name))?.is_some();
    if row.status != RecordingStatus::Running
        || (is_claimed && Protection::RecordingClaim.is_on())
        || has_history(&snapshot, id)?
    {
        return Ok(None);
    }
    drop(snapshot);
    // Where several processes write, one that holds a stream is at work on it.
    if let Err(e) = store.hold_streams(&row.streams) {
        return if e.kind() == ErrorKind::Conflict { Ok(None) } else { Err(e) };
    }
    for stream in &row.streams {
        if !store.is_untouched(*stream)? {
            return Ok(None);
        }
    }
    Ok(Some((id, row)))
}
