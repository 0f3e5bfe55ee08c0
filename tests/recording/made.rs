//! Recordings for the tests of reading: sealed in bulk, and chunks made by hand.

use sealstone::engine::ChunkBuild;
use sealstone::format::column::{ChunkBuilder, TRAILER_LEN};
use sealstone::ids::Sequence;
use sealstone::recording::{Field, FieldType, Schema, Value};
use sealstone::{Store, digest};

/// Fields `x` and `y`.
pub fn pair() -> Schema {
    Schema::new(["x", "y"].map(|name| Field::new(name, FieldType::F64)).to_vec()).unwrap()
}

/// A complete recording of one stream `s`: each record is its iteration, and what `value` makes of it.
pub fn bulk(
    store: &Store,
    name: &str,
    chunk_bytes: u64,
    iterations: impl Iterator<Item = i64>,
    value: impl Fn(i64) -> [f64; 2],
) {
    let new = store.record(name, &pair()).chunk_bytes(chunk_bytes).stream("s", ["x", "y"]);
    let mut bulk = new.start_bulk().unwrap();
    for iteration in iterations {
        bulk.push(0, iteration, &value(iteration).map(Value::F64)).unwrap();
    }
    bulk.complete(&[]).unwrap();
}

/// The bytes of a chunk of `schema` with these iterations; every number is the iteration.
pub fn chunk(schema: &Schema, iterations: &[i64]) -> Vec<u8> {
    let mut builder = ChunkBuilder::new(schema.clone());
    for iteration in iterations {
        let values = vec![Value::F64(*iteration as f64); schema.fields().len()];
        builder.push(*iteration, None, &values).unwrap();
    }
    builder.finish().unwrap().content
}

/// The same chunk with its footer and its version changed, and checksums that fit.
pub fn forged(mut content: Vec<u8>, version: u16, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let trailer = content.len() - TRAILER_LEN;
    let word = |at: usize| u32::from_le_bytes(content[at..at + 4].try_into().unwrap());
    let footer = trailer - word(trailer) as usize;
    change(&mut content[footer..trailer]);
    let crc = digest::checksum(&content[footer..trailer]);
    content[trailer + 4..trailer + 8].copy_from_slice(&crc.to_le_bytes());
    content[trailer + 8..trailer + 10].copy_from_slice(&version.to_le_bytes());
    let crc = digest::checksum(&content[trailer..trailer + 12]);
    content[trailer + 12..trailer + 16].copy_from_slice(&crc.to_le_bytes());
    content
}

/// Publishes a chunk at the end of stream `s` of the recording called `name`.
pub fn publish(store: &Store, name: &str, content: Vec<u8>, iterations: &[i64]) {
    let stream = store.recording(name).unwrap().stream("s").unwrap();
    let (first, last) = (iterations.first(), iterations.last());
    let build = ChunkBuild {
        stream: stream.id(),
        first: Sequence(stream.record_count()),
        records: iterations.len() as u64,
        content,
        about: b"test".to_vec(),
        raw_len: 1,
        iterations: first.copied().zip(last.copied()),
        times: None,
        payloads: Vec::new(),
    };
    store.publish_chunks(vec![build]).unwrap();
}

/// A number that no encoding makes shorter.
pub fn noise(n: u64) -> f64 {
    let mut bits = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // Finite and positive.
    f64::from_bits((bits ^ bits >> 31) >> 2)
}
