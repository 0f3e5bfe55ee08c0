//! The transaction that a recording begins with: its rows, its name and its claim, all or none.
//!
//! ```text
//!   nothing of that name ──▶ rows and claim in one commit
//!   an abandoned start ────▶ claim ──▶ judged: no record ──▶ its rows go, the new ones come, in one commit
//! ```

use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::{CheckpointId, EventId, RecordingId, StreamId};
use crate::manifest::{
    CheckpointRow, ClaimKind, ClaimRow, EventRow, Reading, RecordingNameRow, RecordingRow,
    RecordingStatus, ResourceKey, StreamRow, Write,
};
use crate::protection::Protection;
use crate::recording::describing::{Parameter, RecordingAbout, StreamAbout, index_parameters};
use crate::recording::keeping::{forget, give_up, remove_rows};
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
    // The claim on the recording is gone by then.
    begun(store, checked).inspect_err(|_| give_up(store, &checked.name))
}

fn begun(store: &Store, checked: &Checked) -> Result<Begun> {
    let name = &checked.name;
    let created = store.disk().wall_nanos();
    let Some((left, row)) = left_over(store, name)? else {
        let key = ResourceKey::of_recording(name);
        let write = |w: &mut Write| write_rows(w, checked, created);
        let claimed = store.claim_with(&key, ClaimKind::Recording, Step::PublishCommit, write);
        let ((id, streams), claim) = claimed.map_err(|e| of_name(name, e))?;
        // Where several processes write: a record is accepted before it comes to the journal.
        store.hold_streams(&streams)?;
        return Ok(Begun { id, claim, streams });
    };
    let claim = claim_abandoned(store, name, left, &row)?;
    let key = ResourceKey::of_recording(name);
    let committed = store.transact(Step::PublishCommit, |w| {
        check_left(w, name, left)?;
        let held = w.require::<ClaimRow>(&key)?;
        let gone = remove_rows(w, name)?;
        // The claim is ours already, and stays.
        w.put(&key, &held)?;
        write_rows(w, checked, created).map(|(id, streams)| (id, streams, gone))
    })?;
    let (id, streams, gone) = committed.value;
    forget(store, gone, "its start was abandoned")?;
    store.hold_streams(&streams)?;
    Ok(Begun { id, claim, streams })
}

fn write_rows(
    w: &mut Write,
    checked: &Checked,
    created: Option<i64>,
) -> Result<(RecordingId, Vec<StreamId>)> {
    let recording = w.next_recording_id()?;
    if !w.insert_absent(&checked.name, &RecordingNameRow { recording })? {
        return Err(taken(&checked.name, TAKEN));
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

/// The recording called `name`, if there is one of which a start may have been abandoned. Who holds
/// it is looked at when it is claimed: a holder that died holds nothing.
///
/// # Errors
/// `Exists` for one that has something in it.
fn left_over(store: &Store, name: &str) -> Result<Option<(RecordingId, RecordingRow)>> {
    let snapshot = store.snapshot()?;
    let Some(named) = snapshot.get::<RecordingNameRow>(&name.to_owned())? else { return Ok(None) };
    let row = snapshot.require::<RecordingRow>(&named.recording)?;
    if snapshot.get::<ClaimRow>(&ResourceKey::of_recording(name))?.is_none() {
        check_left(&snapshot, name, named.recording)?;
    }
    Ok(Some((named.recording, row)))
}

/// Whether `name` is that of `left`, which is *running*, without an event, a checkpoint or a chunk.
fn check_left(rows: &impl Reading, name: &str, left: RecordingId) -> Result<()> {
    let named = rows.get::<RecordingNameRow>(&name.to_owned())?;
    if named.is_none_or(|named| named.recording != left) {
        return Err(taken(name, "another recording has its name now"));
    }
    let row = rows.require::<RecordingRow>(&left)?;
    if row.status != RecordingStatus::Running || has_history(rows, left)? {
        return Err(taken(name, TAKEN));
    }
    for stream in &row.streams {
        let stream = rows.get::<StreamRow>(stream)?;
        if stream.is_some_and(|stream| stream.next_ordinal.0 > 0 || stream.generation.0 > 0) {
            return Err(taken(name, TAKEN));
        }
    }
    Ok(())
}

/// Claims the recording, which has no record.
///
/// # Errors
/// `Exists` when it has one, or somebody writes it.
fn claim_abandoned(
    store: &Store,
    name: &str,
    left: RecordingId,
    row: &RecordingRow,
) -> Result<Claim> {
    let is_first = !Protection::JudgedUnderClaim.is_on();
    if is_first {
        check_untouched(store, name, row)?;
    }
    let key = ResourceKey::of_recording(name);
    let check = |w: &mut Write| check_left(w, name, left);
    let claimed = store.claim_with(&key, ClaimKind::Recording, Step::ClaimCommit, check);
    let ((), claim) = claimed.map_err(|e| of_name(name, e))?;
    // P2: whoever wrote it had this claim, and let go of it once his records were durable. While it
    // is ours nobody writes.
    if !is_first {
        check_untouched(store, name, row)?;
    }
    Ok(claim)
}

fn check_untouched(store: &Store, name: &str, row: &RecordingRow) -> Result<()> {
    let new: Vec<StreamId> =
        row.streams.iter().copied().filter(|stream| !store.has_stream_at_hand(*stream)).collect();
    // Where several processes write, one that holds a stream is at work on it.
    store.hold_streams(&row.streams).map_err(|e| of_name(name, e))?;
    for stream in &row.streams {
        if !store.is_untouched(*stream)? {
            // It is for others to go on with.
            new.iter().try_for_each(|stream| store.release_stream(*stream))?;
            return Err(taken(name, TAKEN));
        }
    }
    Ok(())
}

const TAKEN: &str = "a recording of this name is there already";

fn taken(name: &str, cause: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Exists, "record", format!("{name:?}"), cause)
}

/// What a claim that somebody else has means for a start.
fn of_name(name: &str, e: Error) -> Error {
    match e.kind() {
        ErrorKind::Conflict if e.operation() == "claim" => {
            taken(name, format!("a recording of this name is being written, {}", e.cause()))
        }
        _ => e,
    }
}
