//! The row-wise form of a record, made value by value, so that no value has to be held meanwhile.
//! The bytes are those of [`row_payload::encode`](super::row_payload::encode).

use super::axes::Axis;
use super::row_payload::{ROW_KIND, TIMED_ROW_KIND, flags_len};
use super::schema::{Field, MOMENT_LEN, Schema, cell_len};
use super::value::Value;

/// A record that is being encoded at the end of a buffer.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    flags_at: usize,
    bit: usize,
    cells_len: u64,
}

impl RowEncoder {
    /// Begins a record at the end of `bytes`; its time has passed [`Schema::check_time`].
    pub(crate) fn begin(
        schema: &Schema,
        iteration: i64,
        time: Option<f64>,
        bytes: &mut Vec<u8>,
    ) -> Self {
        bytes.push(if time.is_some() { TIMED_ROW_KIND } else { ROW_KIND });
        bytes.extend_from_slice(&iteration.to_le_bytes());
        if let Some(time) = time {
            bytes.extend_from_slice(&time.to_bits().to_le_bytes());
        }
        let flags_at = bytes.len();
        bytes.resize(flags_at + flags_len(schema), 0);
        Self { flags_at, bit: 0, cells_len: MOMENT_LEN }
    }

    /// Adds the value of the next field, which has passed [`Field::check_value`].
    pub(crate) fn push(&mut self, field: &Field, value: &Value<'_>, bytes: &mut Vec<u8>) {
        if field.nullable {
            if let Some(flags) = bytes.get_mut(self.flags_at + self.bit / 8) {
                *flags |= u8::from(!value.is_missing()) << (self.bit % 8);
            }
            self.bit += 1;
        }
        push_value(field, value, bytes);
        self.cells_len += cell_len(value);
    }

    /// What the record adds to the raw length of a chunk's blocks at most.
    pub(crate) fn cells_len(&self) -> u64 {
        self.cells_len
    }
}

/// Appends `value` of `field` alone.
pub(crate) fn push_alone(field: &Field, value: &Value<'_>, bytes: &mut Vec<u8>) {
    bytes.push(u8::from(!value.is_missing()));
    push_value(field, value, bytes);
}

fn push_value(field: &Field, value: &Value<'_>, bytes: &mut Vec<u8>) {
    if let Value::Array(array) = value {
        for (axis, len) in field.shape.axes().iter().zip(array.axes()) {
            if *axis == Axis::Free {
                bytes.extend_from_slice(&len.to_le_bytes());
            }
        }
    }
    value.write_le(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column::{FieldType, cells_len, row_payload};

    /// Does a record made value by value decode to its values, and count what a chunk counts?
    #[test]
    fn value_by_value_is_the_record() {
        let fields =
            ["a", "b", "c", "d"].map(|name| Field::new(name, FieldType::String).nullable());
        let mut fields = fields.to_vec();
        fields.insert(2, Field::new("x", FieldType::F64));
        let schema = Schema::new(fields).unwrap().timed();
        let s = Value::String("text");
        for values in [[s, Value::Missing, s, s, Value::Missing], [s; 5]] {
            let mut values = values;
            values[2] = Value::F64(1.5);
            let mut bytes = vec![7];
            let mut encoder = RowEncoder::begin(&schema, -3, Some(0.5), &mut bytes);
            for (field, value) in schema.fields().iter().zip(&values) {
                encoder.push(field, value, &mut bytes);
            }
            let mut back = Vec::new();
            let moment = row_payload::decode(&schema, &bytes[1..], &mut back).unwrap();
            assert_eq!((moment, back.as_slice()), ((-3, Some(0.5)), values.as_slice()));
            assert_eq!(bytes.len() as u64 - 1, row_payload::encoded_len(&schema, &values));
            assert_eq!(encoder.cells_len(), cells_len(&values));
        }
    }
}
