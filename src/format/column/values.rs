//! A column in memory: the values of one field, decoded, with the places where none is.

use std::ops::Range;

use super::array::Array;
use super::axes::Shape;
use super::data::Data;
use super::number::Number;
use super::parts::Flags;
use super::schema::Field;
use super::value::{FieldType, Value};

/// Where the arrays of a column's records lie among its elements.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Extents {
    /// The lengths of the free axes, record by record; zeros of a missing record.
    pub(super) free: Vec<u32>,
    /// Where each record ends among the elements.
    pub(super) ends: Vec<usize>,
}

impl Extents {
    pub(super) fn range(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { 0 } else { self.ends.get(at - 1).copied().unwrap_or(0) };
        start..self.ends.get(at).copied().unwrap_or(start)
    }
}

/// The values of one field over some records.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub(super) ty: FieldType,
    pub(super) shape: Shape,
    pub(super) data: Data,
    /// Of arrays alone.
    pub(super) extents: Option<Extents>,
    /// Which records hold a value; `None` when all do.
    pub(super) present: Option<Flags>,
}

impl Column {
    /// A column of no records, with one value of type `ty` in each.
    pub fn new(ty: FieldType) -> Self {
        Self::shaped(ty, &Shape::default())
    }

    /// A column of no records of values of `field`.
    pub fn of(field: &Field) -> Self {
        Self::shaped(field.ty, &field.shape)
    }

    pub(super) fn shaped(ty: FieldType, shape: &Shape) -> Self {
        let extents = (!shape.is_scalar()).then(Extents::default);
        Self { ty, shape: shape.clone(), data: Data::new(ty), extents, present: None }
    }

    /// A column of no records of the same kind of values.
    pub fn empty(&self) -> Self {
        Self::shaped(self.ty, &self.shape)
    }

    /// The type of its values, or of the elements of its arrays.
    pub fn field_type(&self) -> FieldType {
        self.ty
    }

    /// The axes of its values.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.extents.as_ref().map_or_else(|| self.data.len(), |extents| extents.ends.len())
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its values, missing records included as zeros: look at [`Column::is_present`] as well. Of
    /// arrays the elements of all records, and none of missing ones.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Whether record `at` holds a value.
    pub fn is_present(&self, at: usize) -> bool {
        at < self.len() && self.present.as_ref().is_none_or(|flags| flags.get(at))
    }

    /// How many records hold no value.
    pub fn missing_count(&self) -> usize {
        self.present.as_ref().map_or(0, |flags| flags.len() - flags.count_set())
    }

    /// The value of record `at`; missing beyond the end.
    pub fn get(&self, at: usize) -> Value<'_> {
        if !self.is_present(at) {
            return Value::Missing;
        }
        if let Some(extents) = &self.extents {
            let mut free = extents.free.iter().skip(at * self.shape.free_count());
            let lens = self.shape.lens(|| free.next().copied().unwrap_or(0));
            return Value::Array(Array::of_parts(lens, self.data.elements(extents.range(at))));
        }
        match &self.data {
            Data::Blob(blob) => match self.ty {
                FieldType::String => Value::String(text(blob.get(at))),
                FieldType::Json => Value::Json(text(blob.get(at))),
                FieldType::Opaque => Value::Opaque(blob.get(at)),
                _ => Value::Bytes(blob.get(at)),
            },
            data => data.number(at),
        }
    }

    /// Adds a record. Returns whether the value is of the column's type and axes, or missing; another
    /// is not taken.
    #[must_use]
    pub fn push(&mut self, value: Value<'_>) -> bool {
        let records = self.len();
        if value.is_missing() {
            match &mut self.extents {
                Some(extents) => {
                    extents.free.resize(extents.free.len() + self.shape.free_count(), 0);
                    extents.ends.push(self.data.len());
                }
                None => self.data.push_nothing(1),
            }
            self.present.get_or_insert_with(|| Flags::all_set(records)).push(false);
            return true;
        }
        let taken = match (value, &mut self.extents, &mut self.data) {
            (Value::Array(array), Some(extents), data) => {
                let fits = self.ty == array.field_type()
                    && array.is_whole()
                    && self.shape.fits(array.axes());
                let taken = fits && data.push_elements(array.elements());
                if taken {
                    let axes = self.shape.axes().iter().zip(array.axes());
                    let free = axes.filter(|(axis, _)| **axis == super::axes::Axis::Free);
                    extents.free.extend(free.map(|(_, len)| *len));
                    extents.ends.push(data.len());
                }
                taken
            }
            (value, None, Data::Blob(blob)) if value.field_type() == Some(self.ty) => {
                blob.push(value.bytes());
                true
            }
            (value, None, data) => data.push_number(value),
            _ => false,
        };
        if let (true, Some(flags)) = (taken, &mut self.present) {
            flags.push(true);
        }
        taken
    }

    /// Adds the records `records` of `other`, as far as it has them. Returns whether types and axes
    /// agree; nothing is taken where they do not.
    #[must_use]
    pub fn extend(&mut self, other: &Self, records: Range<usize>) -> bool {
        if self.ty != other.ty || self.shape != other.shape {
            return false;
        }
        let end = records.end.min(other.len());
        let records = records.start.min(end)..end;
        let before = self.len();
        let elements = match (&mut self.extents, &other.extents) {
            (Some(to), Some(from)) if !records.is_empty() => {
                let count = self.shape.free_count();
                let free = from.free.get(records.start * count..records.end * count);
                to.free.extend_from_slice(free.unwrap_or(&[]));
                let elements = from.range(records.start).start..from.range(records.end - 1).end;
                let base = self.data.len();
                to.ends
                    .extend(records.clone().map(|at| base + from.range(at).end - elements.start));
                elements
            }
            _ => records.clone(),
        };
        if !self.data.extend(&other.data, elements) {
            return false;
        }
        if self.present.is_some() || other.present.is_some() {
            let flags = self.present.get_or_insert_with(|| Flags::all_set(before));
            records.for_each(|at| flags.push(other.is_present(at)));
        }
        true
    }

    /// The values of a column of single numbers of type `T`, where no record is missing.
    pub fn as_slice<T: Number>(&self) -> Option<&[T]> {
        let is_whole = self.extents.is_none() && self.missing_count() == 0;
        if is_whole { T::of_data(&self.data) } else { None }
    }

    /// The elements of all arrays of type `T`, record after record, where no record is missing.
    pub fn elements<T: Number>(&self) -> Option<&[T]> {
        let is_whole = self.extents.is_some() && self.missing_count() == 0;
        if is_whole { T::of_data(&self.data) } else { None }
    }

    /// The values of an `f64` column, where no record is missing.
    pub fn as_f64(&self) -> Option<&[f64]> {
        self.as_slice()
    }

    /// The values of an `i64` column, where no record is missing.
    pub fn as_i64(&self) -> Option<&[i64]> {
        self.as_slice()
    }

    /// The values of a `bool` column, where no record is missing.
    pub fn as_bool(&self) -> Option<&[bool]> {
        self.as_slice()
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
    use super::super::axes::Axis;
    use super::*;

    /// Do missing records stay where they were put, the first one late, across word boundaries?
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

    /// Do arrays of differing lengths stay apart, and are those that do not fit refused?
    #[test]
    fn arrays_keep_their_lengths() {
        let field = Field::new("x", FieldType::F32).axes([Axis::Free, Axis::Fixed(2)]).nullable();
        let mut column = Column::of(&field);
        let records = [[1.0f32, 2.0, 3.0, 4.0].as_slice(), &[], &[5.0, 6.0]];
        let value = |at: usize| Value::Array(Array::new(&[records[at].len() / 2, 2], records[at]));
        for at in 0..3 {
            assert!(column.push(value(at)));
            assert!(column.push(Value::Missing));
        }
        assert!(!column.push(Value::F32(1.0)));
        assert!(!column.push(Value::Array(Array::new(&[2, 2], records[2]))), "too few elements");
        assert!(!column.push(Value::Array(Array::new(&[1, 3], &[1.0f32; 3]))), "another axis");
        assert!(!column.push(Value::Array(Array::new(&[1, 2], &[1.0f64; 2]))), "another type");
        assert_eq!(column.len(), 6);
        let mut part = Column::of(&field);
        assert!(part.extend(&column, 3..5) && part.extend(&column, 0..3));
        let expected = [Value::Missing, value(2), value(0), Value::Missing, value(1)];
        assert_eq!(part.iter().collect::<Vec<_>>(), expected);
    }
}
