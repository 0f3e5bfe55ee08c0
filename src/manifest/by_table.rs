//! Rows whose type is known by their table alone: for whoever moves rows from one manifest to
//! another without being told what they are.

use super::key::Key;
use super::row::{Row, from_value};
use super::rows::{
    CheckpointRow, ChunkRow, ClaimRow, EventRow, FileRow, GroupRow, HandoffRow, HistoryRow,
    InlineRow, JournalRow, LeaseRow, LeasedRow, NameHandoffRow, NameRow, ObjectRow,
    ObjectSnapshotRow, OutputRow, OwnerRow, ParameterRow, PartRow, PreparationRow, ProducerRow,
    QuarantineRow, ReceiptRow, RecipeRow, RecordingNameRow, RecordingRow, RetiringRow, ScrubRow,
    SnapshotNameRow, SnapshotRow, StageRow, StreamRow,
};
use super::table::Table;
use super::write::Write;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;

/// Calls a generic function with the type of a table's rows. A table that has rows is listed here.
macro_rules! with_row_of {
    ($table:expr, $call:ident $arguments:tt) => {
        with_row_of!($table, $call $arguments: CheckpointRow ChunkRow ClaimRow EventRow FileRow GroupRow
            HandoffRow HistoryRow InlineRow JournalRow LeaseRow NameRow ObjectRow OutputRow OwnerRow
            ParameterRow PartRow ProducerRow QuarantineRow ReceiptRow RecordingNameRow RecordingRow
            SnapshotRow StageRow StreamRow RecipeRow RetiringRow LeasedRow PreparationRow
            ObjectSnapshotRow SnapshotNameRow NameHandoffRow ScrubRow)
    };
    ($table:expr, $call:ident $arguments:tt: $($row:ident)*) => {
        match $table {
            $($row::TABLE => $call::<$row>$arguments,)*
            other => {
                let cause = "this release has no rows of it";
                Err(Error::new(ErrorKind::Unsupported, "read", other.name(), cause))
            }
        }
    };
}

/// The objects that the row with these bytes refers to.
///
/// # Errors
/// `Damage` when it does not decode; `NewerFormat`; `Unsupported` for a table without rows of its
/// own.
pub fn edges_of_value(table: Table, key: &[u8], value: &[u8]) -> Result<Vec<ObjectId>> {
    with_row_of!(table, edges(key, value))
}

fn edges<R: Row>(key: &[u8], value: &[u8]) -> Result<Vec<ObjectId>> {
    let mut objects = Vec::new();
    from_value::<R>(key, value)?.edges(&mut |object| objects.push(object));
    Ok(objects)
}

impl Write<'_> {
    /// Writes the row with these bytes, as [`put`](Self::put) does.
    ///
    /// # Errors
    /// As there, and as [`edges_of_value`].
    pub fn put_value(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        with_row_of!(table, put(self, key, value))
    }
}

fn put<R: Row>(w: &mut Write<'_>, key: &[u8], value: &[u8]) -> Result<()> {
    let row = from_value::<R>(key, value)?;
    w.put(&R::Key::from_bytes(key)?, &row)
}
