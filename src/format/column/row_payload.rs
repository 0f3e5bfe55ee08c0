//! The row-wise form of one record, as the journal keeps it until its chunk is sealed.
//!
//! ```text
//! kind u8 = 1 | iteration i64 | flags of present values, one bit a nullable field | values
//! ```
//!
//! Values follow in the order of the schema, missing ones take no byte: `bool` 1 byte, `i64` and
//! `f64` 8, text and bytes a length u32 and their bytes. Integers are little-endian.

use super::schema::Schema;
use super::value::{FieldType, Value};
use crate::error::{Error, ErrorKind, Result};

/// The first byte: a record by schema. Others are kept for later forms.
pub const ROW_KIND: u8 = 1;

/// Length of the record that [`encode`] makes.
pub fn encoded_len(schema: &Schema, values: &[Value<'_>]) -> u64 {
    let values: u64 = values.iter().map(Value::raw_len).sum();
    (1 + 8 + flags_len(schema)) as u64 + values
}

/// Encodes a record that has passed [`Schema::check_row`].
pub fn encode(schema: &Schema, iteration: i64, values: &[Value<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_len(schema, values) as usize);
    bytes.push(ROW_KIND);
    bytes.extend_from_slice(&iteration.to_le_bytes());
    let flags_at = bytes.len();
    bytes.resize(flags_at + flags_len(schema), 0);
    let nullable = schema.fields().iter().zip(values).filter(|(field, _)| field.nullable);
    for (bit, (_, value)) in nullable.enumerate() {
        bytes[flags_at + bit / 8] |= u8::from(!value.is_missing()) << (bit % 8);
    }
    for value in values {
        match value {
            Value::Missing => {}
            Value::Bool(v) => bytes.push(u8::from(*v)),
            Value::I64(v) => bytes.extend_from_slice(&v.to_le_bytes()),
            Value::F64(v) => bytes.extend_from_slice(&v.to_bits().to_le_bytes()),
            Value::String(v) | Value::Json(v) => blob(v.as_bytes(), &mut bytes),
            Value::Bytes(v) => blob(v, &mut bytes),
        }
    }
    bytes
}

fn blob(value: &[u8], into: &mut Vec<u8>) {
    // Values above 256 MiB are refused before.
    into.extend_from_slice(&(value.len() as u32).to_le_bytes());
    into.extend_from_slice(value);
}

/// Reads the iteration of a record alone.
///
/// # Errors
/// `Damage` when it is too short; `NewerFormat` for another kind.
pub fn iteration(bytes: &[u8]) -> Result<i64> {
    let mut rest = Rest(bytes);
    rest.kind()?;
    Ok(i64::from_le_bytes(rest.array()?))
}

/// Decodes a record into `values`, which is cleared first, and returns its iteration.
///
/// # Errors
/// `Damage` when the bytes are no record of this schema; `NewerFormat` for another kind.
pub fn decode<'a>(schema: &Schema, bytes: &'a [u8], values: &mut Vec<Value<'a>>) -> Result<i64> {
    let mut rest = Rest(bytes);
    rest.kind()?;
    let iteration = i64::from_le_bytes(rest.array()?);
    let flags = rest.take(flags_len(schema))?;
    let mut bit = 0;
    values.clear();
    for field in schema.fields() {
        if field.nullable {
            let present = flags.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
            bit += 1;
            if !present {
                values.push(Value::Missing);
                continue;
            }
        }
        values.push(match field.ty {
            FieldType::Bool => match rest.array::<1>()? {
                [flag @ 0..=1] => Value::Bool(flag == 1),
                [other] => return wrong(format!("{other} is no bool")),
            },
            FieldType::I64 => Value::I64(i64::from_le_bytes(rest.array()?)),
            FieldType::F64 => Value::F64(f64::from_bits(u64::from_le_bytes(rest.array()?))),
            FieldType::String => Value::String(rest.text()?),
            FieldType::Json => Value::Json(rest.text()?),
            FieldType::Bytes => Value::Bytes(rest.blob()?),
        });
    }
    let padding = flags.last().filter(|_| bit % 8 != 0).map_or(0, |byte| byte >> (bit % 8));
    if padding != 0 || !rest.0.is_empty() {
        return wrong(format!("{} bytes too many, or flags of no field", rest.0.len()));
    }
    Ok(iteration)
}

fn flags_len(schema: &Schema) -> usize {
    schema.fields().iter().filter(|field| field.nullable).count().div_ceil(8)
}

fn wrong<T>(cause: String) -> Result<T> {
    Err(Error::damage("decode", "record", cause))
}

/// What is left of the bytes.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn kind(&mut self) -> Result<()> {
        match self.array()? {
            [ROW_KIND] => Ok(()),
            [other] => {
                let cause = format!("record kind {other} is of a newer release");
                Err(Error::new(ErrorKind::NewerFormat, "decode", "record", cause))
            }
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.0.split_at_checked(len) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => wrong(format!("{} bytes where {len} belong", self.0.len())),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.0.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(*taken)
            }
            None => wrong(format!("{} bytes where {N} belong", self.0.len())),
        }
    }

    fn blob(&mut self) -> Result<&'a [u8]> {
        let len = u32::from_le_bytes(self.array()?);
        self.take(len as usize)
    }

    fn text(&mut self) -> Result<&'a str> {
        let bytes = self.blob()?;
        std::str::from_utf8(bytes)
            .map_err(|e| Error::damage("decode", "record", "text is not UTF-8").with_source(e))
    }
}
