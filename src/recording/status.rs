//! How far a recording is.
//!
//! ```text
//!   (no row) --[NewRecording::start]--> Running --[Recorder::complete]--> Complete
//!                                          `-----[Recorder::fail]-------> Failed
//! ```

use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::RecordingId;
use crate::manifest::{Reading, RecordingRow, RecordingStatus};
use crate::vfs::Step;

/// Ends a running recording in one transaction, with more to say of it.
pub(super) fn set_status(
    store: &Store,
    id: RecordingId,
    name: &str,
    status: RecordingStatus,
    metadata: &[(String, String)],
) -> Result<()> {
    let refuse = |kind, cause: &str| Error::new(kind, "complete", format!("{name:?}"), cause);
    store.transact(Step::PublishCommit, |w| {
        let Some(mut row) = w.get::<RecordingRow>(&id)? else {
            return Err(refuse(ErrorKind::Conflict, "it was retired meanwhile"));
        };
        if row.status != RecordingStatus::Running {
            return Err(refuse(ErrorKind::Conflict, "it has ended already"));
        }
        row.status = status;
        row.metadata.extend_from_slice(metadata);
        w.put(&id, &row)
    })?;
    Ok(())
}
