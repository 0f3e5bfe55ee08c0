//! A column that takes JSON values as they come, and widens with them: nothing yet, integers, then
//! floats; texts, lists, objects.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, ListArray, NullArray, PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};

use super::union::{COLUMNS_MAX, WIDE_INTEGER, too_wide};
use super::widen::float_of;
use crate::error::ErrorKind;

/// Values of one key.
#[derive(Debug)]
pub(super) struct Column {
    kind: Kind,
    nulls: NullBufferBuilder,
    len: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Nulls only.
    Nothing,
    Bool(BooleanBufferBuilder),
    Int(Vec<i64>),
    /// Integers above int64, and whether one was below zero.
    Wide {
        values: Vec<i128>,
        is_signed: bool,
    },
    Float(Vec<f64>),
    Text(Vec<u8>, Vec<i32>),
    List(Box<Column>, Vec<i32>),
    Object(Box<Object>),
}

/// Columns by their keys, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) columns: Vec<(String, Column)>,
    by_key: HashMap<String, usize>,
    /// Objects begun.
    pub(super) len: usize,
}

/// Why a value does not fit.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) kind: ErrorKind,
    pub(super) cause: String,
}

impl From<String> for Misfit {
    fn from(cause: String) -> Self {
        Self { kind: ErrorKind::TypeMismatch, cause }
    }
}

/// How many columns there are together: keys of objects, and items of lists.
#[derive(Debug, Default)]
pub(super) struct Width(usize);

impl Width {
    pub(super) fn columns(&self) -> usize {
        self.0
    }

    /// One column more.
    fn one(&mut self) -> Result<(), Misfit> {
        if self.0 >= COLUMNS_MAX {
            return Err(Misfit { kind: ErrorKind::LimitExceeded, cause: too_wide() });
        }
        self.0 += 1;
        Ok(())
    }
}

impl Column {
    pub(super) fn new() -> Self {
        Self { kind: Kind::Nothing, nulls: NullBufferBuilder::new(0), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds nulls until there are `len` values.
    pub(super) fn pad(&mut self, len: usize) {
        let Some(more) = len.checked_sub(self.len).filter(|more| *more > 0) else { return };
        self.nulls.append_n_nulls(more);
        self.len = len;
        match &mut self.kind {
            Kind::Nothing => {}
            Kind::Bool(values) => values.append_n(more, false),
            Kind::Int(values) => values.resize(len, 0),
            Kind::Wide { values, .. } => values.resize(len, 0),
            Kind::Float(values) => values.resize(len, 0.0),
            Kind::Text(_, ends) | Kind::List(_, ends) => {
                let end = ends.last().copied().unwrap_or(0);
                ends.resize(len, end);
            }
            Kind::Object(object) => object.len = len,
        }
    }

    /// One value more, which the caller then adds to the kind.
    fn one(&mut self) {
        self.nulls.append_non_null();
        self.len += 1;
    }

    pub(super) fn push_bool(&mut self, value: bool) -> Result<(), Misfit> {
        if let Kind::Nothing = self.kind {
            let mut values = BooleanBufferBuilder::new(self.len + 1);
            values.append_n(self.len, false);
            self.kind = Kind::Bool(values);
        }
        let Kind::Bool(values) = &mut self.kind else { return Err(self.misfit("a boolean")) };
        values.append(value);
        self.one();
        Ok(())
    }

    pub(super) fn push_int(&mut self, value: i128) -> Result<(), Misfit> {
        if let Kind::Nothing = self.kind {
            self.kind = Kind::Int(vec![0; self.len]);
        }
        match (&mut self.kind, i64::try_from(value)) {
            (Kind::Int(values), Ok(value)) => values.push(value),
            (Kind::Int(values), Err(_)) => {
                let is_signed = values.iter().any(|value| *value < 0);
                let mut values: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
                values.push(value);
                self.kind = Kind::Wide { values, is_signed };
            }
            (Kind::Wide { values, is_signed }, _) => {
                *is_signed |= value < 0;
                values.push(value);
            }
            (Kind::Float(values), _) => {
                values.push(float_of(value).ok_or_else(|| no_float(value))?);
            }
            _ => return Err(self.misfit("an integer")),
        }
        self.one();
        Ok(())
    }

    pub(super) fn push_float(&mut self, value: f64) -> Result<(), Misfit> {
        let float = |value: i128| float_of(value).ok_or_else(|| no_float(value));
        match &mut self.kind {
            Kind::Float(_) => {}
            Kind::Nothing => self.kind = Kind::Float(vec![0.0; self.len]),
            Kind::Int(values) => {
                let floats = values.iter().map(|value| float(i128::from(*value)));
                self.kind = Kind::Float(floats.collect::<Result<_, _>>()?);
            }
            Kind::Wide { values, .. } => {
                let floats = values.iter().map(|value| float(*value));
                self.kind = Kind::Float(floats.collect::<Result<_, _>>()?);
            }
            _ => return Err(self.misfit("a float")),
        }
        if let Kind::Float(values) = &mut self.kind {
            values.push(value);
        }
        self.one();
        Ok(())
    }

    pub(super) fn push_text(&mut self, text: &str) -> Result<(), Misfit> {
        if let Kind::Nothing = self.kind {
            self.kind = Kind::Text(Vec::new(), vec![0; self.len]);
        }
        let Kind::Text(bytes, ends) = &mut self.kind else { return Err(self.misfit("a text")) };
        bytes.extend_from_slice(text.as_bytes());
        ends.push(i32::try_from(bytes.len()).map_err(|_| too_much())?);
        self.one();
        Ok(())
    }

    /// The column of a list's items; [`end_list`](Self::end_list) follows.
    pub(super) fn begin_list(&mut self, width: &mut Width) -> Result<&mut Column, Misfit> {
        if let Kind::Nothing = self.kind {
            width.one()?;
            self.kind = Kind::List(Box::new(Column::new()), vec![0; self.len]);
        }
        match self.kind {
            Kind::List(ref mut items, _) => Ok(items),
            _ => Err(self.misfit("a list")),
        }
    }

    pub(super) fn end_list(&mut self) -> Result<(), Misfit> {
        if let Kind::List(items, ends) = &mut self.kind {
            ends.push(i32::try_from(items.len).map_err(|_| too_much())?);
            self.one();
        }
        Ok(())
    }

    /// One object more, and its columns.
    pub(super) fn begin_object(&mut self) -> Result<&mut Object, Misfit> {
        if let Kind::Nothing = self.kind {
            self.kind = Kind::Object(Box::new(Object { len: self.len, ..Object::default() }));
        }
        match self.kind {
            Kind::Object(ref mut object) => {
                self.nulls.append_non_null();
                self.len += 1;
                object.len += 1;
                Ok(object)
            }
            _ => Err(self.misfit("an object")),
        }
    }

    fn misfit(&self, found: &str) -> Misfit {
        let before = match &self.kind {
            Kind::Nothing => "nulls",
            Kind::Bool(_) => "booleans",
            Kind::Int(_) | Kind::Wide { .. } => "integers",
            Kind::Float(_) => "floats",
            Kind::Text(..) => "texts",
            Kind::List(..) => "lists",
            Kind::Object(_) => "objects",
        };
        format!("it is {found}, and there were {before} before").into()
    }

    pub(super) fn data_type(&self) -> DataType {
        match &self.kind {
            Kind::Nothing => DataType::Null,
            Kind::Bool(_) => DataType::Boolean,
            Kind::Int(_) => DataType::Int64,
            Kind::Wide { is_signed: true, .. } => WIDE_INTEGER,
            Kind::Wide { .. } => DataType::UInt64,
            Kind::Float(_) => DataType::Float64,
            Kind::Text(..) => DataType::Utf8,
            Kind::List(items, _) => DataType::List(item(items)),
            // No file has a form for an object without any column.
            Kind::Object(object) if object.columns.is_empty() => DataType::Null,
            Kind::Object(object) => DataType::Struct(object.fields()),
        }
    }

    /// The values, of which none is left here: `len` of them. The type stays.
    pub(super) fn take(&mut self, len: usize) -> Result<ArrayRef, ArrowError> {
        self.pad(len);
        let ty = self.data_type();
        let nulls = self.nulls.finish();
        self.len = 0;
        Ok(match &mut self.kind {
            Kind::Nothing => Arc::new(NullArray::new(len)),
            Kind::Bool(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Kind::Int(values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                Arc::new(PrimitiveArray::<Int64Type>::try_new(values, nulls)?)
            }
            Kind::Wide { values, is_signed } => {
                let values = std::mem::take(values);
                let signed = ScalarBuffer::from(values.clone());
                if *is_signed {
                    let array = PrimitiveArray::<Decimal128Type>::try_new(signed, nulls)?;
                    Arc::new(array.with_data_type(ty))
                } else {
                    let values = values.into_iter().map(|value| u64::try_from(value).unwrap_or(0));
                    let values = ScalarBuffer::from(values.collect::<Vec<_>>());
                    Arc::new(PrimitiveArray::<UInt64Type>::try_new(values, nulls)?)
                }
            }
            Kind::Float(values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                Arc::new(PrimitiveArray::<Float64Type>::try_new(values, nulls)?)
            }
            Kind::Text(bytes, ends) => {
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                Arc::new(StringArray::try_new(offsets(ends), bytes, nulls)?)
            }
            Kind::List(items, ends) => {
                let (count, item) = (items.len, item(items));
                let values = items.take(count)?;
                Arc::new(ListArray::try_new(item, offsets(ends), values, nulls)?)
            }
            Kind::Object(object) if object.columns.is_empty() => {
                object.len = 0;
                Arc::new(NullArray::new(len))
            }
            Kind::Object(object) => {
                let fields = object.fields();
                Arc::new(StructArray::try_new(fields, object.take()?, nulls)?)
            }
        })
    }
}

impl Object {
    /// The column of `key`, with nulls where objects before this one lack it.
    pub(super) fn column(&mut self, at: usize) -> Result<&mut Column, Misfit> {
        let before = self.len.saturating_sub(1);
        match self.columns.get_mut(at) {
            Some((_, column)) if column.len <= before => {
                column.pad(before);
                Ok(column)
            }
            _ => Err("it is there twice in one object".to_owned().into()),
        }
    }

    /// Where the column of `key` is: mostly at `expected`.
    pub(super) fn find(
        &mut self,
        key: &str,
        expected: usize,
        width: &mut Width,
    ) -> Result<usize, Misfit> {
        if self.columns.get(expected).is_some_and(|(known, _)| known == key) {
            return Ok(expected);
        }
        if let Some(at) = self.by_key.get(key) {
            return Ok(*at);
        }
        width.one()?;
        self.by_key.insert(key.to_owned(), self.columns.len());
        self.columns.push((key.to_owned(), Column::new()));
        Ok(self.columns.len() - 1)
    }

    pub(super) fn fields(&self) -> Fields {
        let field = |(key, column): &(String, Column)| Field::new(key, column.data_type(), true);
        self.columns.iter().map(field).collect()
    }

    /// All values, of which none is left here.
    pub(super) fn take(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        let len = std::mem::take(&mut self.len);
        self.columns.iter_mut().map(|(_, column)| column.take(len)).collect()
    }
}

fn item(items: &Column) -> FieldRef {
    Arc::new(Field::new_list_field(items.data_type(), true))
}

/// Ends of values as offsets.
fn offsets(ends: &mut Vec<i32>) -> OffsetBuffer<i32> {
    let ends = std::mem::take(ends);
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    offsets.extend(ends);
    OffsetBuffer::new(offsets.into())
}

fn no_float(value: i128) -> Misfit {
    format!("there are integers and floats, and no float equals {value}").into()
}

fn too_much() -> Misfit {
    let cause = "2 GiB of one column are the most".to_owned();
    Misfit { kind: ErrorKind::LimitExceeded, cause }
}
