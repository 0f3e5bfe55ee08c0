//! A batch of Arrow as an IPC stream: its schema, its dictionaries, itself.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Fields, Schema, SchemaRef};

use super::steps::{check_plain, check_values};
use super::union::check_width;
use crate::error::{Error, ErrorKind, Result};

/// The bytes of `batch`. A slice of a batch gives the bytes of its own rows only.
///
/// # Errors
/// `Invalid` for a batch that has no column, that has two of one name, or that IPC has no form for.
/// `LimitExceeded` for one whose rows its bytes do not justify: columns that hold nothing, or dictionaries
/// and views whose values are far longer than they are; and for more than 10,000 columns together.
pub fn batch_to_bytes(batch: &RecordBatch) -> Result<Vec<u8>> {
    let refused = |cause: String| Error::invalid("append", "an Arrow batch", cause);
    if batch.num_columns() == 0 {
        return Err(refused("it has no column, so that its rows would hold nothing".to_owned()));
    }
    if let Some(name) = twice(batch.schema().fields()) {
        return Err(refused(format!("column {name} is there twice: rename one")));
    }
    check_width(batch.schema_ref().fields())?;
    let bytes = written(batch.schema_ref(), Some(batch))
        .map_err(|e| refused("it has no form in IPC".to_owned()).with_source(e))?;
    check_plain(batch, bytes.len())?;
    if check_values(batch, bytes.len()).is_err() {
        // A slice keeps what it was cut from; its bytes do not.
        batches_from_bytes(bytes.clone(), batch.num_rows() as u64)?;
    }
    Ok(bytes)
}

/// The name that two of `fields` share, also within one of them.
fn twice(fields: &Fields) -> Option<String> {
    let mut seen = BTreeSet::new();
    fields.iter().find_map(|field| {
        if !seen.insert(field.name()) {
            return Some(field.name().clone());
        }
        match field.data_type() {
            DataType::Struct(inner) => twice(inner),
            _ => None,
        }
    })
}

/// The bytes of `schema`, equal for equal schemas.
///
/// # Errors
/// `Invalid` for a schema that IPC has no form for.
pub fn schema_to_bytes(schema: &Schema) -> Result<Vec<u8>> {
    written(schema, None)
        .map_err(|e| Error::invalid("describe", "a schema", "it has no form in IPC").with_source(e))
}

fn written(schema: &Schema, batch: Option<&RecordBatch>) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    batch.map_or(Ok(()), |batch| writer.write(batch))?;
    writer.finish()?;
    writer.into_inner()
}

/// The schema that [`schema_to_bytes`] wrote; that of no column for no bytes.
///
/// # Errors
/// `Damage` for other bytes.
pub fn schema_from_bytes(bytes: &[u8]) -> Result<SchemaRef> {
    match bytes {
        [] => Ok(Arc::new(Schema::empty())),
        _ => read(bytes.to_vec(), What::Schema).map(|(schema, _)| schema),
    }
}

/// The schema of a batch, without its values.
///
/// # Errors
/// `Damage` for bytes that are no batch.
pub fn schema_of_batch(bytes: &[u8]) -> Result<SchemaRef> {
    read(head(bytes).to_vec(), What::Schema).map(|(schema, _)| schema)
}

/// The first message of a stream, which is its schema: marker, length, what has that length, and as
/// much of what is behind it as its reader wants to see before it ends a message.
fn head(bytes: &[u8]) -> &[u8] {
    let len = bytes.get(4..8).and_then(|len| Some(u32::from_le_bytes(len.try_into().ok()?)));
    let len = len.and_then(|len| usize::try_from(len).ok()?.checked_add(12));
    len.and_then(|len| bytes.get(..len)).unwrap_or(bytes)
}

/// The batches in `bytes`, with `rows` rows together. Values lie where they lay, where they are aligned.
///
/// # Errors
/// `Damage` for bytes that are no batches, or batches of other rows; `LimitExceeded` for rows that so many
/// bytes do not justify.
pub fn batches_from_bytes(bytes: Vec<u8>, rows: u64) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let len = bytes.len();
    let (schema, batches) = read(bytes, What::Batches)?;
    let found = batches.iter().map(|batch| batch.num_rows() as u64).fold(0, u64::saturating_add);
    if found != rows {
        return Err(damaged(format!("it holds {found} rows, and {rows} were accepted")));
    }
    for batch in &batches {
        check_values(batch, len)?;
        check_plain(batch, len)?;
    }
    Ok((schema, batches))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Schema,
    Batches,
}

fn read(bytes: Vec<u8>, what: What) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    // P9: the crate checks what it reads, and stops with a panic at some of what no writer wrote.
    let found = catch_unwind(AssertUnwindSafe(|| decoded(bytes, what)));
    match found {
        Ok(Ok((Some(schema), batches))) => Ok((schema, batches)),
        Ok(Ok((None, _))) => Err(damaged("it has no schema")),
        Ok(Err(e)) => Err(damaged("it is no IPC stream").with_source(e)),
        Err(_) => Err(damaged("it is no IPC stream: its reader gave up")),
    }
}

type Decoded = (Option<SchemaRef>, Vec<RecordBatch>);

fn decoded(bytes: Vec<u8>, what: What) -> Result<Decoded, ArrowError> {
    let mut buffer = Buffer::from_vec(bytes);
    let mut decoder = StreamDecoder::new();
    let mut batches = Vec::new();
    while !buffer.is_empty() {
        batches.extend(decoder.decode(&mut buffer)?);
    }
    if what == What::Batches {
        decoder.finish()?;
    }
    Ok((decoder.schema(), batches))
}

fn damaged(cause: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damage, "read", "an Arrow batch", cause)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap()
    }

    /// Does a batch come back equal, a slice of it as its rows, and are its bytes always the same?
    #[test]
    fn a_batch_reads_back() {
        let bytes = batch_to_bytes(&batch()).unwrap();
        assert_eq!(bytes, batch_to_bytes(&batch()).unwrap());
        let (schema, found) = batches_from_bytes(bytes.clone(), 3).unwrap();
        assert_eq!(found, [batch()]);
        assert_eq!(schema, batch().schema());
        assert_eq!(schema_of_batch(&bytes).unwrap(), batch().schema());
        let slice = batch().slice(1, 1);
        let (_, found) = batches_from_bytes(batch_to_bytes(&slice).unwrap(), 1).unwrap();
        assert_eq!(found, [slice]);
        assert_eq!(batches_from_bytes(bytes, 4).unwrap_err().kind(), ErrorKind::Damage);
    }

    /// Does a schema come back, and is none the one of no column?
    #[test]
    fn a_schema_reads_back() {
        let bytes = schema_to_bytes(&batch().schema()).unwrap();
        assert_eq!(schema_from_bytes(&bytes).unwrap(), batch().schema());
        assert_eq!(*schema_from_bytes(&[]).unwrap(), Schema::empty());
    }

    /// Is a batch refused whose rows no file could hold as they are?
    #[test]
    fn a_batch_of_no_column_or_of_two_alike_is_refused() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let alike = RecordBatch::try_from_iter([("n", column.clone()), ("n", column)]).unwrap();
        for bad in [alike, RecordBatch::new_empty(Arc::new(Schema::empty()))] {
            assert_eq!(batch_to_bytes(&bad).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }

    /// Is every other text of bytes an error, or a batch of that many rows, and never a panic?
    #[test]
    fn changed_bytes_do_no_harm() {
        std::panic::set_hook(Box::new(|_| {}));
        let bytes = batch_to_bytes(&batch()).unwrap();
        for len in 0..bytes.len() - 8 {
            let found = batches_from_bytes(bytes[..len].to_vec(), 3);
            assert!(found.is_err(), "{len} of {} bytes", bytes.len());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                if let Ok((_, found)) = batches_from_bytes(changed, 3) {
                    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
                }
            }
        }
        let _ = std::panic::take_hook();
    }
}
