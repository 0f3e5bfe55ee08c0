//! One row of input, typed: values that own their bytes, in buffers that are used again.

use crate::format::column::{FieldType, Value};

#[derive(Debug, Clone, Copy)]
enum Cell {
    Missing,
    /// A number, or a `bool`.
    Number(Value<'static>),
    Text {
        start: usize,
        end: usize,
        json: bool,
    },
    Bytes {
        start: usize,
        end: usize,
    },
}

/// The values of one row.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    text: String,
    bytes: Vec<u8>,
}

impl Cells {
    /// Forgets the row and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.text.clear();
        self.bytes.clear();
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Adds a value.
    pub fn push(&mut self, value: Value<'_>) {
        let cell = match value {
            Value::Bool(v) => Cell::Number(v.into()),
            Value::I8(v) => Cell::Number(v.into()),
            Value::I16(v) => Cell::Number(v.into()),
            Value::I32(v) => Cell::Number(v.into()),
            Value::I64(v) => Cell::Number(v.into()),
            Value::U8(v) => Cell::Number(v.into()),
            Value::U16(v) => Cell::Number(v.into()),
            Value::U32(v) => Cell::Number(v.into()),
            Value::U64(v) => Cell::Number(v.into()),
            Value::F32(v) => Cell::Number(v.into()),
            Value::F64(v) => Cell::Number(v.into()),
            Value::String(v) => self.text(v, false),
            Value::Json(v) => self.text(v, true),
            Value::Bytes(v) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(v);
                Cell::Bytes { start, end: self.bytes.len() }
            }
            _ => Cell::Missing,
        };
        self.cells.push(cell);
    }

    fn text(&mut self, text: &str, json: bool) -> Cell {
        let start = self.text.len();
        self.text.push_str(text);
        Cell::Text { start, end: self.text.len(), json }
    }

    /// Value `at`; missing beyond the end.
    pub fn get(&self, at: usize) -> Value<'_> {
        match self.cells.get(at).copied() {
            None | Some(Cell::Missing) => Value::Missing,
            Some(Cell::Number(value)) => value,
            Some(Cell::Text { start, end, json }) => {
                let text = self.text.get(start..end).unwrap_or("");
                if json { Value::Json(text) } else { Value::String(text) }
            }
            Some(Cell::Bytes { start, end }) => {
                Value::Bytes(self.bytes.get(start..end).unwrap_or(&[]))
            }
        }
    }

    /// All values, in order.
    pub fn values(&self) -> Vec<Value<'_>> {
        (0..self.len()).map(|at| self.get(at)).collect()
    }

    /// Reads `text` as a value of type `ty` and adds it. Returns whether it is one; nothing is
    /// added where it is not.
    #[must_use]
    pub fn parse(&mut self, ty: FieldType, text: &str) -> bool {
        let cell = match ty {
            FieldType::String => Some(self.text(text, false)),
            FieldType::Json => is_json_line(text).then(|| self.text(text, true)),
            FieldType::Bytes => {
                let start = self.bytes.len();
                let whole = super::number::parse_hex(text, &mut self.bytes);
                whole.then_some(Cell::Bytes { start, end: self.bytes.len() })
            }
            number => super::number::parse_number(number, text).map(Cell::Number),
        };
        self.cells.extend(cell);
        cell.is_some()
    }
}

/// Whether `text` is one JSON value that fits on a line.
pub fn is_json_line(text: &str) -> bool {
    !text.contains('\n') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
