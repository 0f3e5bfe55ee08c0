//! How far a recording is.
//!
//! ```text
//!   (no row) --[NewRecording::start]--> Running --[Recorder::complete]--> Complete
//!                                          `-----[Recorder::fail]-------> Failed
//! ```

use crate::engine::{Claim, Store, count_dropped};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{RecordingId, StreamId};
use crate::manifest::{Reading, RecordingRow, RecordingStatus, Write};
use crate::vfs::Step;

/// Ends a running recording in one transaction, with more to say of it and what its streams dropped,
/// and lets go of it.
pub(super) fn set_status(
    store: &Store,
    id: RecordingId,
    name: &str,
    claim: Claim,
    status: RecordingStatus,
    metadata: &[(String, String)],
    dropped: &[(StreamId, u64)],
) -> Result<()> {
    store.transact(Step::PublishCommit, |w| {
        count_dropped(w, dropped)?;
        let row = end(w, id, name, status, metadata)?;
        w.put(&id, &row)?;
        claim.release_in(w)
    })?;
    claim.released();
    store.keep_snapshot();
    Ok(())
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
