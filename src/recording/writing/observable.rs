//! What can be observed: a state that gives the value of each field when it is asked, by reference.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use serde::Serialize;

use crate::codec;
use crate::error::{Error, Result};
use crate::format::column::{Array, Field, FieldType, Number, RowEncoder, Value, push_alone};

/// A state of which records are made. It is asked only for fields of streams that are due.
pub trait Observable {
    /// The iteration that it is at.
    fn iteration(&self) -> i64;

    /// The physical time that it is at, where the recording has one.
    fn time(&self) -> Option<f64> {
        None
    }

    /// Puts the value of the field called `name` into `to`. Nothing put is a missing value.
    ///
    /// # Errors
    /// Whatever keeps the value from being given; [`Cell::refuse`] keeps an error of another kind
    /// behind it. What [`Cell::put`] returns.
    fn field(&self, name: &str, to: &mut Cell<'_>) -> Result<()>;
}

/// Where the value of one field of one record goes. It is encoded at once, and kept nowhere else.
#[derive(Debug)]
pub struct Cell<'c> {
    field: &'c Field,
    bytes: &'c mut Vec<u8>,
    /// Absent where the value is only looked at.
    encoder: Option<&'c mut RowEncoder>,
    is_put: bool,
}

impl<'c> Cell<'c> {
    pub(super) fn new(
        field: &'c Field,
        bytes: &'c mut Vec<u8>,
        encoder: Option<&'c mut RowEncoder>,
    ) -> Self {
        Self { field, bytes, encoder, is_put: false }
    }

    /// The field.
    pub fn field(&self) -> &Field {
        self.field
    }

    /// Puts a value, which is borrowed until this returns.
    ///
    /// # Errors
    /// `Invalid` for a value of another type, and for a second one; `LimitExceeded` for one that is
    /// too long.
    pub fn put<'v>(&mut self, value: impl Into<Value<'v>>) -> Result<()> {
        let value = value.into();
        if self.is_put {
            let place = format!("field {:?}", self.field.name);
            return Err(Error::invalid("observe", place, "a second value is put"));
        }
        self.field.check_value(&value)?;
        match &mut self.encoder {
            Some(encoder) => encoder.push(self.field, &value, self.bytes),
            None => push_alone(self.field, &value, self.bytes),
        }
        self.is_put = true;
        Ok(())
    }

    /// Puts a value of any serde type, encoded, into an opaque field or one of bytes.
    ///
    /// # Errors
    /// As [`Cell::put`]; `Invalid` with the source when it cannot be encoded.
    pub fn serde<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let bytes = codec::encode_value("value", value)?;
        match self.field.ty {
            FieldType::Bytes => self.put(Value::Bytes(&bytes)),
            _ => self.put(Value::Opaque(&bytes)),
        }
    }

    /// Puts an array with axes of these lengths, the slowest first.
    ///
    /// # Errors
    /// As [`Cell::put`]; `Invalid` where axes and elements differ in number.
    pub fn array<T: Number>(&mut self, axes: &[usize], elements: &[T]) -> Result<()> {
        self.put(Array::new(axes, elements))
    }

    /// An error of the caller's own, to be returned: it stays the source of what the observer gets.
    pub fn refuse(&self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        let place = format!("field {:?}", self.field.name);
        Error::invalid("observe", place, "its value cannot be given").with_source(source)
    }

    /// Puts a missing value where nothing was put.
    pub(super) fn finish(&mut self) -> Result<()> {
        if self.is_put {
            return Ok(());
        }
        if self.field.nullable || self.encoder.is_none() {
            match &mut self.encoder {
                Some(encoder) => encoder.push(self.field, &Value::Missing, self.bytes),
                None => push_alone(self.field, &Value::Missing, self.bytes),
            }
            return Ok(());
        }
        let place = format!("field {:?}", self.field.name);
        Err(Error::invalid("observe", place, "its value is missing"))
    }
}

/// Values under the names of fields.
pub trait ValueMap {
    /// The value of the field called `name`.
    fn value(&self, name: &str) -> Option<Value<'_>>;
}

impl<K: Borrow<str> + Ord> ValueMap for BTreeMap<K, Value<'_>> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        self.get(name).copied()
    }
}

impl<K: Borrow<str> + Hash + Eq, S: std::hash::BuildHasher> ValueMap for HashMap<K, Value<'_>, S> {
    fn value(&self, name: &str) -> Option<Value<'_>> {
        self.get(name).copied()
    }
}
