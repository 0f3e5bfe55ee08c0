//! The part of a recording's schema that one stream records.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::format::column::Schema;

/// The fields called `fields`, in the order of `schema`.
///
/// # Errors
/// `Invalid` for an unknown or repeated field, or none.
pub(in crate::recording) fn stream_schema(
    schema: &Schema,
    stream: &str,
    fields: &[String],
) -> Result<Schema> {
    let refuse = |cause: String| Err(Error::invalid("record", format!("stream {stream:?}"), cause));
    let mut wanted = HashSet::new();
    for field in fields {
        if schema.position(field).is_none() {
            return refuse(format!("there is no field {field:?}"));
        }
        if !wanted.insert(field.as_str()) {
            return refuse(format!("field {field:?} is listed twice"));
        }
    }
    if wanted.is_empty() {
        return refuse("it has no field".into());
    }
    let kept = schema.fields().iter().filter(|field| wanted.contains(field.name.as_str()));
    let of_stream = Schema::new(kept.cloned().collect())?;
    Ok(if schema.is_timed() { of_stream.timed() } else { of_stream })
}
