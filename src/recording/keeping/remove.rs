//! Removing a recording: its rows and its streams' go in one transaction.

use super::events::remove_events;
use super::status::give_up;
use crate::engine::{Retired, Store, Thing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CheckpointId, Ordinal, RecordingId, StreamId};
use crate::manifest::{
    CheckpointRow, ChunkRow, ClaimKind, ClaimRow, Reading, RecordingNameRow, RecordingRow,
    ResourceKey, StreamRow, Write,
};
use crate::protection::Protection;
use crate::recording::describing::remove_parameters;
use crate::vfs::Step;

impl Store {
    /// Retires the recording called `name` with everything in it; `why` goes into the receipt.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` while a living process writes it, naming who; any error leaves every
    /// table as it was.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`].
    pub fn retire_recording(&self, name: &str, why: &str) -> Result<Retired> {
        remove(self, name, None, why)
    }
}

/// What is to be removed, where that is known before.
#[derive(Debug)]
pub(in crate::recording) struct Expected {
    pub id: RecordingId,
    /// What it was, if it may not have changed.
    pub seen: Option<Seen>,
}

/// A recording and its streams, as somebody saw them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::recording) struct Seen {
    pub row: RecordingRow,
    streams: Vec<Option<StreamRow>>,
}

impl Seen {
    /// The recording of `row`, as `at` shows it.
    pub fn of(at: &impl Reading, row: RecordingRow) -> Result<Self> {
        let streams = row.streams.iter().map(|stream| at.get::<StreamRow>(stream));
        let streams = streams.collect::<Result<_>>()?;
        Ok(Self { row, streams })
    }
}

/// Removes the recording called `name`, which must be what is `expected`. Whoever writes a recording
/// holds its claim, and so does who removes it, for the one transaction.
pub(in crate::recording) fn remove(
    store: &Store,
    name: &str,
    expected: Option<&Expected>,
    why: &str,
) -> Result<Retired> {
    hold(store, name)?;
    let refuse = |kind, cause: &str| Err(Error::new(kind, "retire", format!("{name:?}"), cause));
    // P4: rows, chunks and edges of the whole recording go in one transaction.
    let change = |w: &mut Write| {
        let Some(found) = w.get::<RecordingNameRow>(&name.to_owned())? else {
            return refuse(ErrorKind::NotFound, "there is no recording of this name");
        };
        if let Some(expected) = expected {
            if found.recording != expected.id {
                return refuse(ErrorKind::Conflict, "another recording has its name now");
            }
            // One that was gone on with and ended again has the row that it had; its streams tell.
            let now =
                w.get::<RecordingRow>(&expected.id)?.map(|row| Seen::of(w, row)).transpose()?;
            if expected.seen.is_some() && now != expected.seen {
                return refuse(ErrorKind::Conflict, "it has changed since");
            }
        }
        let streams = remove_rows(w, name)?;
        let (objects, bytes) = store.write_receipt(w, &format!("recording {name:?}"), why)?;
        Ok((streams, objects, bytes))
    };
    let key = ResourceKey::of_recording(name);
    let removed = store.claim_with(&key, ClaimKind::Recording, Step::RetireCommit, change);
    let removed = removed.inspect_err(|_| give_up(store, name));
    let ((streams, objects, bytes), claim) = removed.map_err(|e| match e.kind() {
        ErrorKind::Conflict if e.operation() == "claim" => {
            let cause = format!("it is being written, {}", e.cause());
            Error::new(ErrorKind::Conflict, "retire", format!("{name:?}"), cause)
        }
        _ => e,
    })?;
    // It went with the rows.
    claim.released();
    let things = streams.len() as u64 + 1;
    forget(store, streams, why)?;
    Ok(Retired { things, objects, bytes, ..Retired::default() })
}

/// Claims the streams of the recording called `name`, if there is one: where several processes write,
/// another one may be at work on it.
pub(super) fn hold(store: &Store, name: &str) -> Result<()> {
    let snapshot = store.snapshot()?;
    let Some(named) = snapshot.get::<RecordingNameRow>(&name.to_owned())? else { return Ok(()) };
    let Some(row) = snapshot.get::<RecordingRow>(&named.recording)? else { return Ok(()) };
    drop(snapshot);
    store.hold_streams(&row.streams)
}

/// Removes the rows of the recording called `name`, if there is one, and returns its streams.
pub(in crate::recording) fn remove_rows(w: &mut Write, name: &str) -> Result<Vec<StreamId>> {
    let Some(RecordingNameRow { recording }) = w.remove(&name.to_owned())? else {
        return Ok(Vec::new());
    };
    if Protection::ParametersRemoved.is_on() {
        remove_parameters(w, recording)?;
    }
    w.remove::<ClaimRow>(&ResourceKey::of_recording(name))?;
    remove_events(w, recording)?;
    let range = (recording.0, CheckpointId(0))..=(recording.0, CheckpointId(u64::MAX));
    while let Some((key, _)) = w.last::<CheckpointRow>(range.clone())? {
        w.remove::<CheckpointRow>(&key)?;
    }
    let streams = w.remove::<RecordingRow>(&recording)?.map_or(Vec::new(), |row| row.streams);
    for stream in &streams {
        let range = (*stream, Ordinal(0))..=(*stream, Ordinal(u64::MAX));
        while let Some((key, _)) = w.last::<ChunkRow>(range.clone())? {
            w.remove::<ChunkRow>(&key)?;
        }
        w.remove::<StreamRow>(stream)?;
    }
    Ok(streams)
}

/// The rows are gone; this forgets what memory and journals still hold of the streams.
pub(in crate::recording) fn forget(store: &Store, streams: Vec<StreamId>, why: &str) -> Result<()> {
    let things: Vec<Thing> = streams.into_iter().map(Thing::Stream).collect();
    store.retire(&things, why).map(drop)
}
