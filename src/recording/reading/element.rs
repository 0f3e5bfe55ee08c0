//! Values of fields as Rust types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Array, Field, Number, OpaqueType, Value};
use crate::protection::Protection;

/// A Rust type that a field's values can be read as: numbers and `bool`, `String`, `Vec<u8>` for
/// bytes; [`NdArray`] of numbers, and `Vec` and `[T; N]` of them for arrays of one axis; [`Opaque`]
/// for a serde type; an `Option` of one of them where values may be missing.
pub trait Element: Sized {
    /// Its name in errors.
    const NAME: &'static str;

    /// The value, if it is of this type.
    fn from_value(value: Value<'_>) -> Option<Self>;

    /// As [`Element::from_value`], where bytes that are of this type and do not decode are an error of
    /// their own.
    ///
    /// # Errors
    /// `Damage` for such bytes.
    fn decode(value: Value<'_>) -> Result<Option<Self>> {
        Ok(Self::from_value(value))
    }

    /// Whether values of this field can be of this type, as far as the values do not say so.
    ///
    /// # Errors
    /// `TypeMismatch` for an opaque field of another type.
    fn check(field: &Field) -> Result<()> {
        let _ = field;
        Ok(())
    }
}

macro_rules! elements {
    ($($ty:ty, $name:literal, $pattern:pat => $value:expr;)*) => {$(
        impl Element for $ty {
            const NAME: &'static str = $name;
            fn from_value(value: Value<'_>) -> Option<Self> {
                match value {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}

elements! {
    i8, "i8", Value::I8(v) => v;
    i16, "i16", Value::I16(v) => v;
    i32, "i32", Value::I32(v) => v;
    i64, "i64", Value::I64(v) => v;
    u8, "u8", Value::U8(v) => v;
    u16, "u16", Value::U16(v) => v;
    u32, "u32", Value::U32(v) => v;
    u64, "u64", Value::U64(v) => v;
    f32, "f32", Value::F32(v) => v;
    f64, "f64", Value::F64(v) => v;
    bool, "bool", Value::Bool(v) => v;
    String, "string", Value::String(v) | Value::Json(v) => v.to_owned();
}

impl<T: Element> Element for Option<T> {
    const NAME: &'static str = T::NAME;
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Missing => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
    fn decode(value: Value<'_>) -> Result<Option<Self>> {
        match value {
            Value::Missing => Ok(Some(None)),
            value => Ok(T::decode(value)?.map(Some)),
        }
    }
    fn check(field: &Field) -> Result<()> {
        T::check(field)
    }
}

/// The elements of an array of one axis, if it is one.
fn line<T: Number>(value: Value<'_>) -> Option<Vec<T>> {
    match value {
        Value::Array(array) if array.axes().len() == 1 => array.elements().to_vec(),
        _ => None,
    }
}

macro_rules! lines {
    ($($ty:ty, $name:literal;)*) => {$(
        impl Element for Vec<$ty> {
            const NAME: &'static str = $name;
            fn from_value(value: Value<'_>) -> Option<Self> {
                line(value)
            }
        }
    )*};
}

lines! {
    i8, "i8[_]"; i16, "i16[_]"; i32, "i32[_]"; i64, "i64[_]"; u16, "u16[_]"; u32, "u32[_]";
    u64, "u64[_]"; f32, "f32[_]"; f64, "f64[_]"; bool, "bool[_]";
}

impl Element for Vec<u8> {
    const NAME: &'static str = "bytes or u8[_]";
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.to_vec()),
            value => line(value),
        }
    }
}

impl<T: Number, const N: usize> Element for [T; N] {
    const NAME: &'static str = "an array of that length";
    fn from_value(value: Value<'_>) -> Option<Self> {
        line(value)?.try_into().ok()
    }
}

/// An array of one record: its elements, the last axis running fastest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NdArray<T> {
    axes: Vec<usize>,
    elements: Vec<T>,
}

impl<T: Number> NdArray<T> {
    /// An array of `axes`, the slowest first.
    ///
    /// # Errors
    /// `Invalid` when there are not as many elements as the product of the axes.
    pub fn new(axes: &[usize], elements: Vec<T>) -> Result<Self> {
        let product = axes.iter().try_fold(1usize, |product, len| product.checked_mul(*len));
        if product != Some(elements.len()) {
            let cause = format!("{} elements for an array of {axes:?}", elements.len());
            return Err(Error::invalid("make", "array", cause));
        }
        Ok(Self { axes: axes.to_vec(), elements })
    }

    /// The lengths of its axes, the slowest first.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// Its elements, the last axis running fastest.
    pub fn elements(&self) -> &[T] {
        &self.elements
    }

    /// The elements alone.
    pub fn into_elements(self) -> Vec<T> {
        self.elements
    }

    /// The element at `at`, one position for each axis; none outside.
    pub fn get(&self, at: &[usize]) -> Option<T> {
        if at.len() != self.axes.len() || at.iter().zip(&self.axes).any(|(n, len)| n >= len) {
            return None;
        }
        let place = at.iter().zip(&self.axes).fold(0, |place, (n, len)| place * len + n);
        self.elements.get(place).copied()
    }
}

impl<'a, T: Number> From<&'a NdArray<T>> for Value<'a> {
    fn from(array: &'a NdArray<T>) -> Self {
        Array::new(&array.axes, &array.elements).into()
    }
}

impl<T: Number> Element for NdArray<T> {
    const NAME: &'static str = "an array of that type";
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Array(array) => {
                let axes = array.axes().iter().map(|len| *len as usize).collect();
                Some(Self { axes, elements: array.elements().to_vec()? })
            }
            _ => None,
        }
    }
}

/// A value of a serde type, in a field made by [`Field::opaque`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opaque<T>(pub T);

impl<T: Serialize> Opaque<T> {
    /// The bytes of a cell: what `Value::Opaque` is made of.
    ///
    /// # Errors
    /// `Invalid` for a value that cannot be encoded, nests deeper than 128 levels, or has more than
    /// 65,536 elements that take no bytes; `LimitExceeded` for one that is too long.
    pub fn encode(value: &T) -> Result<Vec<u8>> {
        codec::encode_value("opaque value", value)
    }
}

impl<T: DeserializeOwned> Element for Opaque<T> {
    const NAME: &'static str = "a value of that type";
    fn from_value(value: Value<'_>) -> Option<Self> {
        Self::decode(value).ok().flatten()
    }
    fn decode(value: Value<'_>) -> Result<Option<Self>> {
        match value {
            Value::Opaque(bytes) => {
                codec::decode_value("opaque value", bytes).map(|value| Some(Self(value)))
            }
            _ => Ok(None),
        }
    }
    fn check(field: &Field) -> Result<()> {
        let wanted = OpaqueType::of::<T>()?;
        let cause = match &field.opaque {
            Some(_) if !Protection::OpaqueShape.is_on() => return Ok(()),
            Some(kept) if kept.fingerprint == wanted.fingerprint => return Ok(()),
            Some(kept) if kept.name == wanted.name => {
                format!("its type {} had another shape when it was recorded", kept.name)
            }
            Some(kept) => format!("it holds {}, which is not {}", kept.name, wanted.name),
            None => format!("it holds {}, which is not {}", field.kind(), wanted.name),
        };
        Err(Error::new(ErrorKind::TypeMismatch, "read", format!("field {:?}", field.name), cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a place outside of an array none, however far outside it is?
    #[test]
    fn a_place_outside_is_none() {
        let array = NdArray::new(&[2, 3], vec![0u8, 1, 2, 3, 4, 5]).unwrap();
        assert_eq!(array.get(&[1, 2]), Some(5));
        for outside in [&[usize::MAX, 1][..], &[1, usize::MAX], &[2, 0], &[1], &[0, 0, 0], &[]] {
            assert_eq!(array.get(outside), None);
        }
    }
}
