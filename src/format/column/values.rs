//! A column in memory: the values of one field, decoded, with the places where none is.

use std::ops::Range;

use super::value::{FieldType, Value};

/// One flag per row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    words: Vec<u64>,
    len: usize,
}

impl Flags {
    /// `len` flags, all set.
    pub fn all_set(len: usize) -> Self {
        let mut words = vec![u64::MAX; len / 64];
        if !len.is_multiple_of(64) {
            words.push((1 << (len % 64)) - 1);
        }
        Self { words, len }
    }

    /// Adds one flag.
    pub fn push(&mut self, flag: bool) {
        let (word, bit) = (self.len / 64, self.len % 64);
        if word == self.words.len() {
            self.words.push(0);
        }
        self.words[word] |= u64::from(flag) << bit;
        self.len += 1;
    }

    /// The flag of row `at`; false beyond the end.
    pub fn get(&self, at: usize) -> bool {
        at < self.len && self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// How many flags there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many are set.
    pub fn count_set(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Values of varying length, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blob {
    /// Where each value ends in `bytes`.
    pub(super) ends: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    /// The bytes of value `at`; none beyond the end.
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends.get(at - 1).copied().unwrap_or(0) };
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }
}

/// The values of a column. Where a row is missing there stands a zero or an empty value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Data {
    /// Of a `bool` field.
    Bool(Vec<bool>),
    /// Of an `i64` field.
    I64(Vec<i64>),
    /// Of an `f64` field.
    F64(Vec<f64>),
    /// Of a `string`, `bytes` or `json` field; UTF-8 in the first and the last.
    Blob(Blob),
}

/// The values of one field over some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub(super) ty: FieldType,
    pub(super) data: Data,
    /// Which rows hold a value; `None` when all do.
    pub(super) present: Option<Flags>,
}

impl Column {
    /// A column of no rows.
    pub fn new(ty: FieldType) -> Self {
        let data = match ty {
            FieldType::Bool => Data::Bool(Vec::new()),
            FieldType::I64 => Data::I64(Vec::new()),
            FieldType::F64 => Data::F64(Vec::new()),
            FieldType::String | FieldType::Bytes | FieldType::Json => Data::Blob(Blob::default()),
        };
        Self { ty, data, present: None }
    }

    /// The type of its values.
    pub fn field_type(&self) -> FieldType {
        self.ty
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        match &self.data {
            Data::Bool(values) => values.len(),
            Data::I64(values) => values.len(),
            Data::F64(values) => values.len(),
            Data::Blob(blob) => blob.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its values, missing rows included as zeros: look at [`Column::is_present`] as well.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Whether row `at` holds a value.
    pub fn is_present(&self, at: usize) -> bool {
        at < self.len() && self.present.as_ref().is_none_or(|flags| flags.get(at))
    }

    /// How many rows hold no value.
    pub fn missing_count(&self) -> usize {
        self.present.as_ref().map_or(0, |flags| flags.len() - flags.count_set())
    }

    /// The value of row `at`; missing beyond the end.
    pub fn get(&self, at: usize) -> Value<'_> {
        if !self.is_present(at) {
            return Value::Missing;
        }
        match &self.data {
            Data::Bool(values) => values.get(at).map_or(Value::Missing, |v| Value::Bool(*v)),
            Data::I64(values) => values.get(at).map_or(Value::Missing, |v| Value::I64(*v)),
            Data::F64(values) => values.get(at).map_or(Value::Missing, |v| Value::F64(*v)),
            Data::Blob(blob) => match self.ty {
                FieldType::String => Value::String(text(blob.get(at))),
                FieldType::Json => Value::Json(text(blob.get(at))),
                _ => Value::Bytes(blob.get(at)),
            },
        }
    }

    /// Adds a row. Returns whether the value is of the column's type, or missing; another is not
    /// taken.
    #[must_use]
    pub fn push(&mut self, value: Value<'_>) -> bool {
        let rows = self.len();
        match (&mut self.data, value) {
            (data, Value::Missing) => {
                match data {
                    Data::Bool(values) => values.push(false),
                    Data::I64(values) => values.push(0),
                    Data::F64(values) => values.push(0.0),
                    Data::Blob(blob) => blob.push(&[]),
                }
                self.present.get_or_insert_with(|| Flags::all_set(rows)).push(false);
                return true;
            }
            (Data::Bool(values), Value::Bool(v)) => values.push(v),
            (Data::I64(values), Value::I64(v)) => values.push(v),
            (Data::F64(values), Value::F64(v)) => values.push(v),
            (Data::Blob(blob), Value::String(v)) if self.ty == FieldType::String => {
                blob.push(v.as_bytes());
            }
            (Data::Blob(blob), Value::Json(v)) if self.ty == FieldType::Json => {
                blob.push(v.as_bytes());
            }
            (Data::Blob(blob), Value::Bytes(v)) if self.ty == FieldType::Bytes => blob.push(v),
            _ => return false,
        }
        if let Some(flags) = &mut self.present {
            flags.push(true);
        }
        true
    }

    /// Adds the rows `rows` of `other`, as far as it has them. Returns whether the types agree;
    /// nothing is taken where they do not.
    #[must_use]
    pub fn extend(&mut self, other: &Self, rows: Range<usize>) -> bool {
        if self.ty != other.ty {
            return false;
        }
        let end = rows.end.min(other.len());
        let rows = rows.start.min(end)..end;
        let before = self.len();
        match (&mut self.data, &other.data) {
            (Data::Bool(to), Data::Bool(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Data::I64(to), Data::I64(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Data::F64(to), Data::F64(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Data::Blob(to), Data::Blob(from)) => {
                rows.clone().for_each(|at| to.push(from.get(at)));
            }
            _ => return false,
        }
        if self.present.is_some() || other.present.is_some() {
            let flags = self.present.get_or_insert_with(|| Flags::all_set(before));
            rows.for_each(|at| flags.push(other.is_present(at)));
        }
        true
    }

    /// The values of an `f64` column, where no row is missing.
    pub fn as_f64(&self) -> Option<&[f64]> {
        match &self.data {
            Data::F64(values) if self.missing_count() == 0 => Some(values),
            _ => None,
        }
    }

    /// The values of an `i64` column, where no row is missing.
    pub fn as_i64(&self) -> Option<&[i64]> {
        match &self.data {
            Data::I64(values) if self.missing_count() == 0 => Some(values),
            _ => None,
        }
    }

    /// The values of a `bool` column, where no row is missing.
    pub fn as_bool(&self) -> Option<&[bool]> {
        match &self.data {
            Data::Bool(values) if self.missing_count() == 0 => Some(values),
            _ => None,
        }
    }

    /// Every value in turn.
    pub fn iter(&self) -> impl Iterator<Item = Value<'_>> {
        (0..self.len()).map(|at| self.get(at))
    }
}

/// Decoding has checked that text is UTF-8, and pushing takes nothing else.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do missing rows stay where they were put, the first one late, across word boundaries?
    #[test]
    fn missing_rows_stay_missing() {
        let mut column = Column::new(FieldType::I64);
        for at in 0..200i64 {
            let value = if at == 130 || at == 199 { Value::Missing } else { Value::I64(at) };
            assert!(column.push(value));
        }
        assert_eq!(column.missing_count(), 2);
        assert!(column.get(130).is_missing() && column.get(500).is_missing());
        assert_eq!(column.get(131), Value::I64(131));
        let mut part = Column::new(FieldType::I64);
        assert!(part.extend(&column, 120..131));
        assert!(part.extend(&column, 0..2));
        assert_eq!(part.len(), 13);
        assert_eq!(part.missing_count(), 1);
        assert!(part.get(10).is_missing());
        assert_eq!(part.get(12), Value::I64(1));
    }

    /// Is a value of another type refused and nothing changed?
    #[test]
    fn another_type_is_refused() {
        let mut column = Column::new(FieldType::String);
        assert!(column.push(Value::String("a")));
        assert!(!column.push(Value::Bytes(b"b")));
        assert!(!column.push(Value::I64(1)));
        assert!(!column.extend(&Column::new(FieldType::Bytes), 0..1));
        assert_eq!(column.iter().collect::<Vec<_>>(), [Value::String("a")]);
        assert_eq!(column.as_f64(), None);
    }
}
