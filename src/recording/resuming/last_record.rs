//! The last record of a stream that goes on behind its end: its iteration and time, and what sampling
//! has to know of it. It is in memory mostly; of a stream that was cut inside a chunk, or that goes by a
//! field's value, one record of that chunk is read.

use super::resume_from::{last_chunk, whole_stream};
use crate::engine::{Store, StreamView};
use crate::error::Result;
use crate::format::column::{Schema, Value, row_payload};
use crate::ids::Sequence;
use crate::recording::reading::At;
use crate::recording::writing::digest_of;

/// What the last record below `end` is. `watched` is the field that the stream goes by.
pub(super) fn at_end(
    store: &Store,
    view: &StreamView,
    end: Sequence,
    watched: Option<&str>,
) -> Result<At> {
    let Some(record) = end.0.checked_sub(1) else { return Ok(At::default()) };
    let schema = Schema::from_bytes(&view.row.schema)?;
    // A field of other streams is not in the record: then the next observation is taken.
    let watched = watched.and_then(|name| schema.position(name));
    if let Some(at) = record.checked_sub(view.row.sealed_upto.0)
        && let Some((_, payload)) = view.tail.get(at as usize)
    {
        let bytes = store.payload_bytes(payload)?;
        let mut values = Vec::new();
        let (iteration, time) = row_payload::decode(&schema, &bytes, &mut values)?;
        let field_and_value = watched.and_then(|at| schema.fields().get(at).zip(values.get(at)));
        let seen = field_and_value.map(|(field, value)| digest_of(field, value).0);
        return Ok(At { last: Some((iteration, time)), seen, ..At::default() });
    }
    let whole = last_chunk(store, view)?.filter(|chunk| {
        chunk.records == chunk.records_written && chunk.first.0 + chunk.records == end.0
    });
    if let Some(chunk) = whole.filter(|_| watched.is_none())
        && let Some((_, iteration)) = chunk.iterations
    {
        let time = chunk.times.map(|(_, last)| f64::from_bits(last));
        return Ok(At { last: Some((iteration, time)), ..At::default() });
    }
    let stream = whole_stream(store, view)?;
    let iteration = stream.iteration().records(record..record + 1).to_column()?;
    let iteration = match iteration.get(0) {
        Value::I64(iteration) => iteration,
        _ => return Err(stream.wrong("a record without an iteration")),
    };
    let time = match schema.is_timed() {
        true => match stream.time()?.records(record..record + 1).to_column()?.get(0) {
            Value::F64(time) => Some(time),
            _ => return Err(stream.wrong("a record without a time")),
        },
        false => None,
    };
    let mut seen = None;
    if let Some(field) = watched.and_then(|at| schema.fields().get(at)) {
        let column = stream.field(&field.name)?.records(record..record + 1).to_column()?;
        seen = Some(digest_of(field, &column.get(0)).0);
    }
    Ok(At { last: Some((iteration, time)), seen, ..At::default() })
}
