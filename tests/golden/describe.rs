//! What a store holds, as text that says the same for every release.

use std::fmt::Write;

use sealstone::digest::Digest;
use sealstone::engine::Store;
use sealstone::manifest::{CheckpointRow, LeaseRow, Reading, StateBytes, StreamRow};
use sealstone::recording::FieldType;

/// One line for each fact, in an order that follows from the store.
pub fn describe(store: &Store) -> sealstone::Result<String> {
    let mut text = format!("store {}\n", store.id());
    let mut line = |one: String| {
        let _ = writeln!(text, "{one}");
    };
    for recording in store.recordings(usize::MAX)? {
        line(format!("recording {:?} {:?}", recording.name(), recording.status()));
        for (key, value) in recording.metadata() {
            line(format!("  {key:?} {value:?}"));
        }
        for stream in recording.streams()? {
            line(format!(
                "  stream {} {:?}: {} records",
                stream.id(),
                stream.name(),
                stream.record_count()
            ));
            for field in stream.schema().fields() {
                let read = stream.field(&field.name)?;
                let values = match field.ty {
                    // Bit for bit.
                    FieldType::F64 => {
                        let values = read.to_vec::<Option<f64>>()?.into_iter();
                        values.map(|v| format!("{:x?}", v.map(f64::to_bits))).collect()
                    }
                    FieldType::I64 => texts(read.to_vec::<Option<i64>>()?),
                    FieldType::Bool => texts(read.to_vec::<Option<bool>>()?),
                    FieldType::Bytes => texts(read.to_vec::<Option<Vec<u8>>>()?),
                    // Text; a type of a later release would say so.
                    _ => texts(read.to_vec::<Option<String>>()?),
                };
                line(format!("    {:?} {:?}: {}", field.name, field.ty, values.join(" ")));
            }
        }
    }
    let snapshot = store.snapshot()?;
    for (stream, row) in snapshot.list::<StreamRow>(.., usize::MAX)? {
        line(format!("stream {stream} {:?} {:?} cuts {:?}", row.name, row.generation, row.cuts));
        let view = store.view(stream)?;
        for (ordinal, chunk) in &view.chunks {
            let bytes = store.fetch(chunk.object)?;
            let (first, records, generation) = (chunk.first, chunk.records, chunk.generation);
            let (len, digest) = (bytes.len(), Digest::of(&bytes));
            line(format!(
                "  chunk {ordinal}: {records} records from {first}, {generation:?}, {len} bytes {digest}"
            ));
        }
        for (sequence, payload) in &view.tail {
            let bytes = store.payload_bytes(payload)?;
            line(format!("  record {sequence}: {} bytes {}", bytes.len(), Digest::of(&bytes)));
        }
    }
    for ((scope, id), row) in snapshot.list::<CheckpointRow>(.., usize::MAX)? {
        let state = match row.state {
            StateBytes::Inline(bytes) => bytes,
            StateBytes::Object(object) => store.fetch(object)?,
        };
        line(format!("checkpoint {id} of {scope}: state {}", Digest::of(&state)));
        for cursor in row.cursors {
            line(format!(
                "  stream {} {:?} ends at {}",
                cursor.stream, cursor.generation, cursor.end
            ));
        }
    }
    for (lease, row) in snapshot.list::<LeaseRow>(.., usize::MAX)? {
        line(format!("lease {lease} of {:?} for {:?}", row.holder, row.purpose));
        for object in row.objects {
            let bytes = store.fetch(object)?;
            line(format!("  object {object}: {} bytes {}", bytes.len(), Digest::of(&bytes)));
        }
    }
    Ok(text)
}

fn texts<T: std::fmt::Debug>(values: Vec<Option<T>>) -> Vec<String> {
    values.iter().map(|value| format!("{value:?}")).collect()
}
