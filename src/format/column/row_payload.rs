//! The row-wise form of one record, as the journal keeps it until its chunk is sealed.
//!
//! ```text
//! kind u8 | iteration i64 | time f64, of kind 2 | flags of present values, one bit a nullable field | values
//! ```
//!
//! Values follow in the order of the schema, missing ones take no byte: a number its own width,
//! `bool` 1 byte, text, bytes and opaque values a length u32 and their bytes, arrays the lengths of
//! their free axes, u32 each, and their elements. All little-endian.

use super::array::{Array, Elements};
use super::axes::{RANK_MAX, count_of};
use super::row_dropped::split_dropped;
use super::row_encoder::RowEncoder;
use super::schema::{Field, Schema};
use super::value::{FieldType, Value};
use crate::error::{Error, ErrorKind, Result};

/// The first byte of a record without a time.
pub const ROW_KIND: u8 = 1;
/// The first byte of a record with a time. Others are kept for later forms.
pub const TIMED_ROW_KIND: u8 = 2;

/// Length of the record that [`encode`] makes.
pub fn encoded_len(schema: &Schema, values: &[Value<'_>]) -> u64 {
    let of = |(field, value): (&Field, &Value<'_>)| match (value, field.ty.width()) {
        (Value::Missing, _) => 0,
        (Value::Array(_), _) => 4 * field.shape.free_count() + value.varying_len(),
        (_, 0) => 4 + value.varying_len(),
        (_, width) => width,
    };
    let values: u64 = schema.fields().iter().zip(values).map(|pair| of(pair) as u64).sum();
    let time = if schema.is_timed() { 8 } else { 0 };
    (1 + 8 + time + flags_len(schema)) as u64 + values
}

/// Encodes a record that has passed [`Schema::check_row`] and [`Schema::check_time`].
pub fn encode(schema: &Schema, iteration: i64, time: Option<f64>, values: &[Value<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded_len(schema, values) as usize);
    let mut encoder = RowEncoder::begin(schema, iteration, time, &mut bytes);
    for (field, value) in schema.fields().iter().zip(values) {
        encoder.push(field, value, &mut bytes);
    }
    bytes
}

/// Reads the iteration of a record alone.
///
/// # Errors
/// `Damage` when it is too short; `NewerFormat` for another kind.
pub fn iteration(bytes: &[u8]) -> Result<i64> {
    Ok(moment(bytes)?.0)
}

/// Reads the iteration and the time of a record alone.
///
/// # Errors
/// As [`iteration`].
pub fn moment(bytes: &[u8]) -> Result<(i64, Option<f64>)> {
    Rest(bytes).moment()
}

/// Decodes a record into `values`, which is cleared first, and returns its iteration and time.
///
/// # Errors
/// `Damage` when the bytes are no record of this schema; `NewerFormat` for another kind.
pub fn decode<'a>(
    schema: &Schema,
    bytes: &'a [u8],
    values: &mut Vec<Value<'a>>,
) -> Result<(i64, Option<f64>)> {
    let mut rest = Rest(bytes);
    let (iteration, time) = rest.moment()?;
    if schema.is_timed() != time.is_some() || time.is_some_and(|time| !time.is_finite()) {
        return wrong(format!("time {time:?} in a record of another schema"));
    }
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
        values.push(if field.shape.is_scalar() {
            rest.value(field.ty)?
        } else {
            rest.array(field)?
        });
    }
    let padding = flags.last().filter(|_| bit % 8 != 0).map_or(0, |byte| byte >> (bit % 8));
    if padding != 0 || !rest.0.is_empty() {
        return wrong(format!("{} bytes too many, or flags of no field", rest.0.len()));
    }
    Ok((iteration, time))
}

pub(super) fn flags_len(schema: &Schema) -> usize {
    schema.fields().iter().filter(|field| field.nullable).count().div_ceil(8)
}

fn wrong<T>(cause: String) -> Result<T> {
    Err(Error::damage("decode", "record", cause))
}

/// What is left of the bytes.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn moment(&mut self) -> Result<(i64, Option<f64>)> {
        // What was dropped before it is no part of it.
        (_, self.0) = split_dropped(self.0)?;
        let [kind] = self.bytes()?;
        if kind != ROW_KIND && kind != TIMED_ROW_KIND {
            let cause = format!("record kind {kind} is of a newer release");
            return Err(Error::new(ErrorKind::NewerFormat, "decode", "record", cause));
        }
        let iteration = i64::from_le_bytes(self.bytes()?);
        let time = match kind {
            TIMED_ROW_KIND => Some(f64::from_bits(u64::from_le_bytes(self.bytes()?))),
            _ => None,
        };
        Ok((iteration, time))
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

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.0.split_first_chunk::<N>() {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(*taken)
            }
            None => wrong(format!("{} bytes where {N} belong", self.0.len())),
        }
    }

    fn value(&mut self, ty: FieldType) -> Result<Value<'a>> {
        Ok(match ty {
            FieldType::String => Value::String(self.text()?),
            FieldType::Json => Value::Json(self.text()?),
            FieldType::Bytes => Value::Bytes(self.blob()?),
            FieldType::Opaque => Value::Opaque(self.blob()?),
            number => match number.of_le_bytes(self.take(number.width())?) {
                Value::Missing => return wrong(format!("a byte that is no {}", number.name())),
                value => value,
            },
        })
    }

    fn array(&mut self, field: &Field) -> Result<Value<'a>> {
        let mut free = [0; RANK_MAX];
        for len in free.iter_mut().take(field.shape.free_count()) {
            *len = u32::from_le_bytes(self.bytes()?);
        }
        let mut free = free.iter();
        let lens = field.shape.lens(|| free.next().copied().unwrap_or(0));
        // P9: the bytes must be there, whatever the lengths say.
        let count = lens.0.get(..usize::from(lens.1)).and_then(count_of);
        let Some(len) = count.and_then(|count| count.checked_mul(field.ty.width())) else {
            return wrong(format!("an array of {lens:?}"));
        };
        let bytes = self.take(len)?;
        if field.ty == FieldType::Bool && bytes.iter().any(|byte| *byte > 1) {
            return wrong("a byte that is no bool".into());
        }
        Ok(Value::Array(Array::of_parts(lens, Elements::Bytes(field.ty, bytes))))
    }

    fn blob(&mut self) -> Result<&'a [u8]> {
        let len = u32::from_le_bytes(self.bytes()?);
        self.take(len as usize)
    }

    fn text(&mut self) -> Result<&'a str> {
        let bytes = self.blob()?;
        std::str::from_utf8(bytes)
            .map_err(|e| Error::damage("decode", "record", "text is not UTF-8").with_source(e))
    }
}
