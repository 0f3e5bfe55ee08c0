//! Replacing a recording: until the new one is complete under a name of its own the old one
//! stands; then both change in one transaction.

use super::draft::NAME_BYTES_MAX;
use super::remove::{forget, remove, remove_rows};
use super::status::end;
use crate::engine::Store;
use crate::error::Result;
use crate::ids::RecordingId;
use crate::manifest::{RecordingNameRow, RecordingRow, RecordingStatus, Write};
use crate::vfs::Step;

/// Metadata key, while it is running, of the name that it will take.
pub(super) const REPLACES: &str = "import.replaces";

/// What the replacement of `name` is called until it is complete.
pub(super) fn name_of_replacement(name: &str) -> String {
    let mut text = format!("replacement of {name}");
    while text.len() > NAME_BYTES_MAX {
        text.pop();
    }
    text
}

/// Removes what a killed process left of a replacement of `name`.
pub(super) fn remove_left_over(store: &Store, name: &str) -> Result<()> {
    let replacement = name_of_replacement(name);
    let Ok(left) = store.recording(&replacement) else { return Ok(()) };
    let is_one = left.status() == &RecordingStatus::Running
        && left.metadata().iter().any(|(key, text)| key == REPLACES && text == name);
    if is_one {
        remove(store, &replacement, Some(left.id()), "its import was killed")?;
    }
    Ok(())
}

/// Ends recording `id`, called `from`, as complete and calls it `name`; what was called so goes.
pub(super) fn replace(
    store: &Store,
    id: RecordingId,
    from: &str,
    name: &str,
    metadata: &[(String, String)],
) -> Result<()> {
    // P4: there is no instant at which the name stands for nothing.
    let committed = store.transact(Step::RetireCommit, |w| {
        let mut row = end(w, id, from, RecordingStatus::Complete, metadata)?;
        let streams = remove_rows(w, name)?;
        if !streams.is_empty() {
            store.write_receipt(w, &format!("recording {name:?}"), "replaced")?;
        }
        row.name = name.to_owned();
        row.metadata.retain(|(key, _)| key != REPLACES);
        rename(w, id, from, &row)?;
        Ok(streams)
    })?;
    forget(store, committed.value, "replaced")
}

fn rename(w: &mut Write, id: RecordingId, from: &str, row: &RecordingRow) -> Result<()> {
    w.remove::<RecordingNameRow>(&from.to_owned())?;
    w.put(&row.name, &RecordingNameRow { recording: id })?;
    w.put(&id, row)
}
