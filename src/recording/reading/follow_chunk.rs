//! Records out of a chunk, for a follower: some at a time, each in its row-wise form.

use crate::engine::Store;
use crate::error::{Error, Result};
use crate::format::column::{Chunk, Column, ColumnId, Schema, Value, row_payload};
use crate::ids::{ObjectId, Sequence};
use crate::manifest::{ChunkRow, ObjectRow, Reading};

/// The records of `chunk` from `from` on, of about `held_bytes`, and at least one.
pub(super) fn payloads(
    store: &Store,
    place: &str,
    schema: &Schema,
    row: &ChunkRow,
    from: Sequence,
    held_bytes: u64,
) -> Result<Vec<Vec<u8>>> {
    let len = store.snapshot()?.require::<ObjectRow>(&row.object)?.len;
    let record_bytes = (row.raw_len / row.records.max(1)).max(16);
    let start = from.0.saturating_sub(row.first.0);
    let end = row.records.min(start.saturating_add((held_bytes / record_bytes).max(1)));
    // Blocks of a sealed file are read whole: where all is wanted, so is the chunk.
    let whole = match start == 0 && end == row.records {
        true => Some(store.fetch(row.object)?),
        false => None,
    };
    let mut read = |offset, len| match &whole {
        Some(content) => part(content, row.object, offset, len),
        None => store.fetch_range(row.object, offset..offset.saturating_add(len)),
    };
    let chunk = Chunk::open(place, len, &mut read)?;
    let wrong = |cause: &str| Error::damage("follow", place, cause);
    if chunk.schema() != schema || chunk.record_count() != row.records_written {
        return Err(wrong(
            "its schema or how many records it has differ from what the manifest says",
        ));
    }
    let mut column = |id| -> Result<Column> { chunk.column(&mut read, id, start..end) };
    let iterations = column(ColumnId::Iteration)?;
    let times = match schema.is_timed() {
        true => Some(column(ColumnId::Time)?),
        false => None,
    };
    let time_of = |at: usize| match times.as_ref().map(|times| times.get(at)) {
        Some(Value::F64(time)) => Some(time),
        _ => None,
    };
    let fields = 0..schema.fields().len();
    let columns = fields.map(|at| column(ColumnId::Field(at))).collect::<Result<Vec<_>>>()?;
    let count = (end - start) as usize;
    let Some(iterations) = iterations.as_i64().filter(|found| found.len() == count) else {
        return Err(wrong("records without an iteration"));
    };
    if columns.iter().any(|column| column.len() != count) {
        return Err(wrong("columns of different lengths"));
    }
    let mut payloads = Vec::with_capacity(count);
    for (at, iteration) in iterations.iter().enumerate() {
        let values: Vec<_> = columns.iter().map(|column| column.get(at)).collect();
        payloads.push(row_payload::encode(schema, *iteration, time_of(at), &values));
    }
    Ok(payloads)
}

fn part(content: &[u8], object: ObjectId, offset: u64, len: u64) -> Result<Vec<u8>> {
    let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
    let bytes = range.and_then(|(at, len)| content.get(at..)?.get(..len));
    bytes.map(<[u8]>::to_vec).ok_or_else(|| {
        Error::damage("follow", format!("object {object}"), "it is shorter than it says")
    })
}
