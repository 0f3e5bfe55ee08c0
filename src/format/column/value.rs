//! Types and values of fields: what one cell of a record may be. Type tags are part of the format.

use super::array::Array;
use super::number::for_each_number;
use crate::error::{Error, ErrorKind, Result};

/// The type of a field, or of the elements of its arrays.
///
/// Each has its tag on disk; 15 is kept for times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FieldType {
    /// True or false.
    Bool,
    /// A signed 64-bit integer.
    I64,
    /// An IEEE 754 double, kept bit for bit.
    F64,
    /// UTF-8 text.
    String,
    /// Any bytes.
    Bytes,
    /// One JSON value, as its text.
    Json,
    /// A signed 8-bit integer.
    I8,
    /// A signed 16-bit integer.
    I16,
    /// A signed 32-bit integer.
    I32,
    /// An unsigned 8-bit integer.
    U8,
    /// An unsigned 16-bit integer.
    U16,
    /// An unsigned 32-bit integer.
    U32,
    /// An unsigned 64-bit integer.
    U64,
    /// An IEEE 754 single, kept bit for bit.
    F32,
    /// A value of a serde type, encoded; the field carries the type's name and fingerprint.
    Opaque,
}

/// Types, their tags on disk and their names.
const TYPES: &[(FieldType, u8, &str)] = &[
    (FieldType::Bool, 1, "bool"),
    (FieldType::I64, 2, "i64"),
    (FieldType::F64, 3, "f64"),
    (FieldType::String, 4, "string"),
    (FieldType::Bytes, 5, "bytes"),
    (FieldType::Json, 6, "json"),
    (FieldType::I8, 7, "i8"),
    (FieldType::I16, 8, "i16"),
    (FieldType::I32, 9, "i32"),
    (FieldType::U8, 10, "u8"),
    (FieldType::U16, 11, "u16"),
    (FieldType::U32, 12, "u32"),
    (FieldType::U64, 13, "u64"),
    (FieldType::F32, 14, "f32"),
    (FieldType::Opaque, 16, "opaque"),
];

impl FieldType {
    /// Every type.
    pub const ALL: &'static [FieldType] = &[
        Self::Bool,
        Self::I64,
        Self::F64,
        Self::String,
        Self::Bytes,
        Self::Json,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::Opaque,
    ];

    /// Its tag on disk.
    pub fn tag(self) -> u8 {
        TYPES.iter().find(|(ty, ..)| *ty == self).map_or(0, |(_, tag, _)| *tag)
    }

    /// Its name on command lines and in messages.
    pub fn name(self) -> &'static str {
        TYPES.iter().find(|(ty, ..)| *ty == self).map_or("", |(.., name)| *name)
    }

    /// The type with this tag.
    ///
    /// # Errors
    /// `NewerFormat` for a tag that this release does not know.
    pub fn from_tag(tag: u8) -> Result<Self> {
        let known = TYPES.iter().find(|(_, known, _)| *known == tag);
        known.map(|(ty, ..)| *ty).ok_or_else(|| {
            let cause = format!("type tag {tag} is of a newer release");
            Error::new(ErrorKind::NewerFormat, "read", "schema", cause)
        })
    }

    /// The type with this name.
    ///
    /// # Errors
    /// `Invalid`, listing the names.
    pub fn from_name(name: &str) -> Result<Self> {
        let known = TYPES.iter().find(|(.., known)| *known == name);
        known.map(|(ty, ..)| *ty).ok_or_else(|| {
            let names = TYPES.iter().map(|(.., name)| *name).collect::<Vec<_>>().join(", ");
            Error::invalid("parse", "type", format!("{name:?} is none of {names}"))
        })
    }

    /// Bytes of a value in a record, 1 for a `bool`; 0 where values differ in length.
    pub fn width(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            Self::String | Self::Bytes | Self::Json | Self::Opaque => 0,
        }
    }

    /// Whether it is a number or a `bool`, of which there may be arrays.
    pub fn is_number(self) -> bool {
        self.width() > 0
    }
}

macro_rules! values {
    ($(($ty:ty, $variant:ident),)*) => {
        /// One cell, borrowed.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum Value<'a> {
            /// No value.
            Missing,
            $(
                #[doc = concat!("Of a field of type `", stringify!($ty), "`.")]
                $variant($ty),
            )*
            /// Of a `string` field.
            String(&'a str),
            /// Of a `bytes` field.
            Bytes(&'a [u8]),
            /// Of a `json` field: the text of one JSON value.
            Json(&'a str),
            /// Of an `opaque` field: its value, encoded.
            Opaque(&'a [u8]),
            /// Of a field with axes.
            Array(Array<'a>),
        }

        impl Value<'_> {
            /// The type of a field that can hold it, or of its elements; `None` for a missing one.
            pub fn field_type(&self) -> Option<FieldType> {
                match self {
                    Self::Missing => None,
                    $(Self::$variant(_) => Some(FieldType::$variant),)*
                    Self::String(_) => Some(FieldType::String),
                    Self::Bytes(_) => Some(FieldType::Bytes),
                    Self::Json(_) => Some(FieldType::Json),
                    Self::Opaque(_) => Some(FieldType::Opaque),
                    Self::Array(array) => Some(array.field_type()),
                }
            }
        }

        $(
            impl From<$ty> for Value<'_> {
                fn from(value: $ty) -> Self {
                    Self::$variant(value)
                }
            }
        )*
    };
}
for_each_number!(values);

macro_rules! arrays {
    ($($ty:ty)*) => {$(
        impl<'a> From<&'a [$ty]> for Value<'a> {
            fn from(values: &'a [$ty]) -> Self {
                Self::Array(values.into())
            }
        }

        impl<'a, const N: usize> From<&'a [$ty; N]> for Value<'a> {
            fn from(values: &'a [$ty; N]) -> Self {
                Self::Array(values.as_slice().into())
            }
        }

        impl<'a> From<&'a Vec<$ty>> for Value<'a> {
            fn from(values: &'a Vec<$ty>) -> Self {
                Self::Array(values.as_slice().into())
            }
        }
    )*};
}
// Not of u8, whose slices are bytes: `Array::new` makes an array of them.
arrays! { bool i8 i16 i32 i64 u16 u32 u64 f32 f64 }

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::String(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<Array<'a>> for Value<'a> {
    fn from(array: Array<'a>) -> Self {
        Self::Array(array)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

impl FieldType {
    /// The value that its little-endian bytes are; missing where they are none.
    pub(super) fn of_le_bytes(self, bytes: &[u8]) -> Value<'static> {
        macro_rules! read {
            ($ty:ty, $variant:ident) => {
                bytes
                    .try_into()
                    .map_or(Value::Missing, |b| Value::$variant(<$ty>::from_le_bytes(b)))
            };
        }
        match self {
            Self::Bool => match bytes {
                [flag @ 0..=1] => Value::Bool(*flag == 1),
                _ => Value::Missing,
            },
            Self::I8 => read!(i8, I8),
            Self::I16 => read!(i16, I16),
            Self::I32 => read!(i32, I32),
            Self::I64 => read!(i64, I64),
            Self::U8 => read!(u8, U8),
            Self::U16 => read!(u16, U16),
            Self::U32 => read!(u32, U32),
            Self::U64 => read!(u64, U64),
            Self::F32 => read!(f32, F32),
            Self::F64 => read!(f64, F64),
            Self::String | Self::Bytes | Self::Json | Self::Opaque => Value::Missing,
        }
    }
}

impl Value<'_> {
    /// Whether it is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Equal bit for bit: NaN equals the same NaN, and -0 differs from 0.
    pub fn same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
            (Self::Array(a), Value::Array(b)) => a.same(b),
            (a, b) => *a == *b,
        }
    }

    /// What it is, as a field says it: `f64`, `u8[3, 4]`, or `missing`.
    pub fn kind(&self) -> String {
        match (self, self.field_type()) {
            (Self::Array(array), _) => format!("{}{:?}", array.field_type().name(), array.axes()),
            (_, ty) => ty.map_or("missing", FieldType::name).to_owned(),
        }
    }

    /// Appends its little-endian bytes: numbers alone, others behind their length.
    pub(crate) fn write_le(&self, into: &mut Vec<u8>) {
        match self {
            Self::Missing => {}
            Self::Bool(v) => into.push(u8::from(*v)),
            Self::I8(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::I16(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::I32(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::I64(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::U8(v) => into.push(*v),
            Self::U16(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::U32(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::U64(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::F32(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::F64(v) => into.extend_from_slice(&v.to_le_bytes()),
            Self::String(_) | Self::Json(_) | Self::Bytes(_) | Self::Opaque(_) => {
                let bytes = self.bytes();
                // Values above 256 MiB are refused before.
                into.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                into.extend_from_slice(bytes);
            }
            Self::Array(array) => array.elements().write_le(into),
        }
    }

    /// The bytes of text, bytes and opaque values; none of others.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::String(text) | Self::Json(text) => text.as_bytes(),
            Self::Bytes(bytes) | Self::Opaque(bytes) => bytes,
            _ => &[],
        }
    }

    /// Bytes of its elements, or its own where they vary; 0 of a single number.
    pub(super) fn varying_len(&self) -> usize {
        match self {
            Self::Array(array) => array.elements().len().saturating_mul(array.field_type().width()),
            other => other.bytes().len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do tags and names lead back to their types, and is an unknown tag a newer release's?
    #[test]
    fn tags_and_names_are_unique() {
        assert_eq!(FieldType::ALL.len(), TYPES.len());
        for &ty in FieldType::ALL {
            assert_eq!(FieldType::from_tag(ty.tag()).unwrap(), ty);
            assert_eq!(FieldType::from_name(ty.name()).unwrap(), ty);
        }
        assert_eq!(FieldType::from_tag(15).unwrap_err().kind(), ErrorKind::NewerFormat);
        assert!(FieldType::from_name("float").unwrap_err().to_string().contains("f64"));
    }
}
