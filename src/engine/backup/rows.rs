//! The rows of a copy: those of the snapshot, as a clean close at that commit would leave them.

use std::path::Path;
use std::sync::Arc;

use super::bounds::Bounds;
use crate::engine::left::{add, trim};
use crate::error::{Error, Result};
use crate::ids::{FileId, OwnerId};
use crate::manifest::{
    Draft, Drafted, FileRow, FileState, JournalRow, JournalState, Key, OwnerEnd, OwnerRow, Pass,
    Snapshot, Table, from_value, row_value,
};
use crate::vfs::Disk;

/// What the draft names.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Makes the manifest of the copy at `path`.
pub(super) fn draft(
    snapshot: &Snapshot,
    bounds: &Bounds,
    disk: &Arc<dyn Disk>,
    path: &Path,
    tell: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<(Drafted, Named)> {
    let (mut named, mut seen) = (Named::default(), 0);
    let mut draft = Draft::create(disk, path)?;
    draft.copy(snapshot, &mut |table, key, value| {
        seen += 1;
        if seen % TOLD_EACH == 0 {
            tell(seen)?;
        }
        match table {
            // Whoever holds one lives elsewhere, if at all.
            Table::Claims => Ok(Pass::Left),
            Table::Owners => owner(key, value),
            Table::Journals => journal(key, value, bounds, snapshot),
            Table::Files => file(key, value, &mut named),
            // It follows from the rows of files that are left.
            Table::Condemned => Ok(Pass::Left),
            _ => Ok(Pass::Same),
        }
    })?;
    Ok((draft.finish()?, named))
}

/// Rows from one call of progress to the next.
const TOLD_EACH: u64 = 10_000;

pub(super) fn owner(key: &[u8], value: &[u8]) -> Result<Pass> {
    let id = OwnerId::from_bytes(key)?;
    let row: OwnerRow = from_value(key, value)?;
    if row.ended.is_some() {
        return Ok(Pass::Same);
    }
    // Nobody has the copy open; it is as if the store had been closed now.
    let ended = Some(OwnerEnd::Closed);
    Ok(Pass::Changed(row_value(&id, &OwnerRow { ended, ..row })?))
}

pub(super) fn journal(
    key: &[u8],
    value: &[u8],
    bounds: &Bounds,
    snapshot: &Snapshot,
) -> Result<Pass> {
    let id = <(OwnerId, u64)>::from_bytes(key)?;
    let mut row: JournalRow = from_value(key, value)?;
    if let Some(lasts) = bounds.lasts.get(&id) {
        add(&mut row.needed, lasts);
        trim(snapshot, &mut row.needed)?;
    }
    if row.state == JournalState::Open {
        let Some(end) = bounds.open.get(&id).copied() else {
            let cause = "its end was not looked for";
            return Err(Error::damage("back up", format!("journal {}-{}", id.0, id.1), cause));
        };
        row.state = JournalState::Finished { end };
    }
    Ok(Pass::Changed(row_value(&id, &row)?))
}

/// A file without a live byte is not copied: its row would only ask for its unlink.
fn file(key: &[u8], value: &[u8], named: &mut Named) -> Result<Pass> {
    FileId::from_bytes(key)?;
    let row: FileRow = from_value(key, value)?;
    if row.state != FileState::Sealed {
        return Ok(Pass::Left);
    }
    named.files += 1;
    named.bytes = named.bytes.saturating_add(row.len);
    Ok(Pass::Same)
}
