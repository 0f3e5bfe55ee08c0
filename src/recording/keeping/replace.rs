//! Replacing a recording: until the new one is complete under a name of its own the old one
//! stands; then both change in one transaction.

use super::remove::{forget, hold, remove_rows};
use super::status::{end, give_up, streams_of};
use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::RecordingId;
use crate::manifest::{
    ClaimRow, Reading, RecordingNameRow, RecordingRow, RecordingStatus, ResourceKey, Write,
};
use crate::vfs::Step;

/// Metadata key, while it is running, of the name that it will take.
pub(in crate::recording) const REPLACES: &str = "import.replaces";

/// Ends recording `id`, called `from`, as complete and calls it `name`; what was called so goes.
pub(in crate::recording) fn replace(
    store: &Store,
    id: RecordingId,
    from: &str,
    name: &str,
    claim: Claim,
    metadata: &[(String, String)],
) -> Result<()> {
    hold(store, name)?;
    // P4: there is no instant at which the name stands for nothing.
    let own = streams_of(store, id)?;
    let committed = store.transact_releasing(Step::RetireCommit, &own, |w| {
        let mut row = end(w, id, from, RecordingStatus::Complete, metadata)?;
        let key = ResourceKey::of_recording(name);
        if name != from && w.get::<ClaimRow>(&key)?.is_some() {
            let cause = "the recording that it is to replace is being written";
            return Err(Error::new(ErrorKind::Conflict, "replace", format!("{name:?}"), cause));
        }
        let streams = remove_rows(w, name)?;
        if !streams.is_empty() {
            store.write_receipt(w, &format!("recording {name:?}"), "replaced")?;
        }
        row.name = name.to_owned();
        row.metadata.retain(|(key, _)| key != REPLACES);
        rename(w, id, from, &row)?;
        claim.release_in(w)?;
        Ok(streams)
    });
    let gone = committed.inspect_err(|_| give_up(store, name))?;
    claim.released();
    forget(store, gone, "replaced")?;
    store.keep_snapshot();
    Ok(())
}

fn rename(w: &mut Write, id: RecordingId, from: &str, row: &RecordingRow) -> Result<()> {
    w.remove::<RecordingNameRow>(&from.to_owned())?;
    w.put(&row.name, &RecordingNameRow { recording: id })?;
    w.put(&id, row)
}
