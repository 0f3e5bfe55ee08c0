//! Types and values of fields: what one cell of a record may be. Type tags are part of the format.

use crate::error::{Error, ErrorKind, Result};

/// The type of a field.
///
/// Tags on disk: 1 to 6 below; 7 to 13 are kept for `i8 i16 i32 u8 u16 u32 u64`, 14 for `f32`, 15
/// for times, 16 for opaque values that carry their type's name and fingerprint. Arrays have the
/// tag of their element and a shape.
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
}

impl FieldType {
    /// Every type.
    pub const ALL: &'static [FieldType] =
        &[Self::Bool, Self::I64, Self::F64, Self::String, Self::Bytes, Self::Json];

    /// Its tag on disk.
    pub fn tag(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::I64 => 2,
            Self::F64 => 3,
            Self::String => 4,
            Self::Bytes => 5,
            Self::Json => 6,
        }
    }

    /// Its name on command lines and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::F64 => "f64",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Json => "json",
        }
    }

    /// The type with this tag.
    ///
    /// # Errors
    /// `NewerFormat` for a tag that this release does not know.
    pub fn from_tag(tag: u8) -> Result<Self> {
        let known = Self::ALL.iter().copied().find(|t| t.tag() == tag);
        known.ok_or_else(|| {
            let cause = format!("type tag {tag} is of a newer release");
            Error::new(ErrorKind::NewerFormat, "read", "schema", cause)
        })
    }

    /// The type with this name.
    ///
    /// # Errors
    /// `Invalid`, listing the names.
    pub fn from_name(name: &str) -> Result<Self> {
        let known = Self::ALL.iter().copied().find(|t| t.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
            Error::invalid("parse", "type", format!("{name:?} is none of {names}"))
        })
    }
}

/// One cell, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value.
    Missing,
    /// Of a `bool` field.
    Bool(bool),
    /// Of an `i64` field.
    I64(i64),
    /// Of an `f64` field.
    F64(f64),
    /// Of a `string` field.
    String(&'a str),
    /// Of a `bytes` field.
    Bytes(&'a [u8]),
    /// Of a `json` field: the text of one JSON value.
    Json(&'a str),
}

impl Value<'_> {
    /// The type of a field that can hold it; `None` for a missing one.
    pub fn field_type(&self) -> Option<FieldType> {
        match self {
            Self::Missing => None,
            Self::Bool(_) => Some(FieldType::Bool),
            Self::I64(_) => Some(FieldType::I64),
            Self::F64(_) => Some(FieldType::F64),
            Self::String(_) => Some(FieldType::String),
            Self::Bytes(_) => Some(FieldType::Bytes),
            Self::Json(_) => Some(FieldType::Json),
        }
    }

    /// Whether it is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Equal bit for bit: NaN equals the same NaN, and -0 differs from 0.
    pub fn same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
            (a, b) => *a == *b,
        }
    }

    /// Bytes it takes in a record, before any encoding.
    pub(crate) fn raw_len(&self) -> u64 {
        match self {
            Self::Missing => 0,
            Self::Bool(_) => 1,
            Self::I64(_) | Self::F64(_) => 8,
            Self::String(text) | Self::Json(text) => 4 + text.len() as u64,
            Self::Bytes(bytes) => 4 + bytes.len() as u64,
        }
    }

    /// What it takes in a column at most, missing or not: in memory and in the raw form of a block.
    pub(crate) fn cell_len(&self) -> u64 {
        let bytes = match self {
            Self::String(text) | Self::Json(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        9 + bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do tags and names lead back to their types, and is an unknown tag a newer release's?
    #[test]
    fn tags_and_names_are_unique() {
        for &ty in FieldType::ALL {
            assert_eq!(FieldType::from_tag(ty.tag()).unwrap(), ty);
            assert_eq!(FieldType::from_name(ty.name()).unwrap(), ty);
        }
        assert_eq!(FieldType::from_tag(7).unwrap_err().kind(), ErrorKind::NewerFormat);
        assert!(FieldType::from_name("float").unwrap_err().to_string().contains("f64"));
    }
}
