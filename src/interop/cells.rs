//! One row of input, typed: values that own their bytes, in buffers that are used again.

use crate::format::column::{Array, Axis, Elements, FieldType, RANK_MAX, Shape, Value};

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
    Array {
        start: usize,
        end: usize,
        ty: FieldType,
        lens: ([u32; RANK_MAX], u8),
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
            Some(Cell::Array { start, end, ty, lens }) => {
                let bytes = self.bytes.get(start..end).unwrap_or(&[]);
                Value::Array(Array::of_parts(lens, Elements::Bytes(ty, bytes)))
            }
        }
    }

    /// All values, in order.
    pub fn values(&self) -> Vec<Value<'_>> {
        (0..self.len()).map(|at| self.get(at)).collect()
    }

    /// Reads `text` as a value of type `ty`, or as a JSON array of such, and adds it. Returns
    /// whether it is one; nothing is added where it is not.
    #[must_use]
    pub fn parse(&mut self, ty: FieldType, shape: &Shape, text: &str) -> bool {
        if !shape.is_scalar() {
            let start = self.bytes.len();
            let mut array = ArrayText { ty, shape, lens: [None; RANK_MAX], bytes: &mut self.bytes };
            let whole = array.read(0, text).is_some();
            let mut lens = array.lens.map(|len| len.unwrap_or(0));
            for (len, axis) in lens.iter_mut().zip(shape.axes()) {
                // Behind an empty axis none is reached: the text does not say how long they are.
                if let Axis::Fixed(fixed) = axis {
                    *len = *fixed;
                }
            }
            if !whole {
                self.bytes.truncate(start);
                return false;
            }
            let lens = (lens, shape.rank().min(RANK_MAX) as u8);
            self.cells.push(Cell::Array { start, end: self.bytes.len(), ty, lens });
            return true;
        }
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

/// A JSON array on its way to bytes.
struct ArrayText<'c> {
    ty: FieldType,
    shape: &'c Shape,
    /// What is known of the length of each axis.
    lens: [Option<u32>; RANK_MAX],
    bytes: &'c mut Vec<u8>,
}

impl ArrayText<'_> {
    /// Reads what stands within `depth` axes; none where it is no part of such an array.
    fn read(&mut self, depth: usize, text: &str) -> Option<()> {
        let Some(axis) = self.shape.axes().get(depth).copied() else {
            // What JSON has no number for is a string.
            let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            let is_special = |text: &str| text.parse::<f64>().is_ok_and(|v| !v.is_finite());
            let text = match inner {
                Some(inner) if is_special(inner) => inner,
                Some(_) => return None,
                None => text,
            };
            super::number::parse_number(self.ty, text)?.write_le(self.bytes);
            return Some(());
        };
        let parts: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
        let len = u32::try_from(parts.len()).ok()?;
        let known = self.lens.get_mut(depth)?;
        if known.is_some_and(|known| known != len) || axis != Axis::Free && axis != Axis::Fixed(len)
        {
            return None;
        }
        *known = Some(len);
        parts.into_iter().try_for_each(|part| self.read(depth + 1, part.get()))
    }
}

/// Whether `text` is one JSON value that fits on a line.
pub fn is_json_line(text: &str) -> bool {
    !text.contains('\n') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
