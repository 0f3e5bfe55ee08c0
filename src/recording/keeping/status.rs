//! How far a recording is.
//!
//! ```text
//!   (no row) --[NewRecording::start]--> Running --[Recorder::complete]--> Complete
//!                                          `-----[Recorder::fail]-------> Failed
//! ```

use crate::engine::{Claim, Store, count_dropped};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{RecordingId, StreamId};
use crate::manifest::{
    Reading, RecordingNameRow, RecordingRow, RecordingStatus, ResourceKey, Write,
};
use crate::vfs::Step;

/// Ends a running recording in one transaction, with more to say of it and what its streams dropped,
/// and lets go of it.
pub(in crate::recording) fn set_status(
    store: &Store,
    id: RecordingId,
    name: &str,
    claim: Claim,
    status: RecordingStatus,
    metadata: &[(String, String)],
    dropped: &[(StreamId, u64)],
) -> Result<()> {
    let ended = streams_of(store, id).and_then(|streams| {
        store.transact_releasing(Step::PublishCommit, &streams, |w| {
            count_dropped(w, dropped)?;
            let row = end(w, id, name, status, metadata)?;
            w.put(&id, &row)?;
            claim.release_in(w)
        })
    });
    if ended.is_err() {
        drop(claim);
        give_up(store, name);
        return ended;
    }
    claim.released();
    store.keep_snapshot();
    Ok(())
}

/// The streams of a recording; none where it is gone.
pub(in crate::recording) fn streams_of(store: &Store, id: RecordingId) -> Result<Vec<StreamId>> {
    let row = store.snapshot()?.get::<RecordingRow>(&id)?;
    Ok(row.map_or(Vec::new(), |row| row.streams))
}

/// Where several processes write: lets go of the streams of the recording called `name`, unless it is
/// being written here. What they were claimed for came to nothing.
pub(in crate::recording) fn give_up(store: &Store, name: &str) {
    if !store.is_shared() {
        return;
    }
    let named = store.snapshot().and_then(|rows| rows.get::<RecordingNameRow>(&name.to_owned()));
    if let Ok(Some(named)) = named
        && let Ok(streams) = streams_of(store, named.recording)
    {
        store.give_up_streams(&streams, &ResourceKey::of_recording(name));
    }
}

/// The row of a running recording as it is once it has ended.
pub(super) fn end(
    w: &Write,
    id: RecordingId,
    name: &str,
    status: RecordingStatus,
    metadata: &[(String, String)],
) -> Result<RecordingRow> {
    let refuse =
        |cause: &str| Error::new(ErrorKind::Conflict, "complete", format!("{name:?}"), cause);
    let row = w.get::<RecordingRow>(&id)?;
    let mut row = row.ok_or_else(|| refuse("it was retired meanwhile"))?;
    if row.status != RecordingStatus::Running {
        return Err(refuse("it has ended already"));
    }
    row.status = status;
    row.metadata.extend_from_slice(metadata);
    Ok(row)
}
