//! KeyShape: which parts the keys of a stage have.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::key::{Key, KeyPart};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};

/// The most parts of a key.
pub const KEY_FIELDS_MAX: usize = 16;
/// The longest name of a part, in bytes.
const FIELD_NAME_BYTES_MAX: usize = 64;

/// What a part of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyType {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A minute, in UTC.
    Minute,
    /// A digest.
    Digest,
    /// Bytes.
    Bytes,
}

/// Which parts the keys of a stage have, by name, in the order in which keys compare.
///
/// ```
/// use sealstone::staging::{Key, KeyPart, KeyShape};
///
/// # fn main() -> sealstone::Result<()> {
/// let shape = KeyShape::new().text("schema").minute("minute");
/// let key = shape.parse("schema=nginx/minute=2026-12-01T09:40")?;
/// assert_eq!(key.part("schema"), Some(&KeyPart::Text("nginx".to_owned())));
/// assert_eq!(key.to_string(), "schema=nginx/minute=2026-12-01T09:40");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyShape {
    fields: Vec<(String, KeyType)>,
}

impl KeyType {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Minute => "minute",
            Self::Digest => "digest",
            Self::Bytes => "bytes",
        }
    }

    fn of(part: &KeyPart) -> Self {
        match part {
            KeyPart::Text(_) => Self::Text,
            KeyPart::Integer(_) => Self::Integer,
            KeyPart::Minute(_) => Self::Minute,
            KeyPart::Digest(_) => Self::Digest,
            KeyPart::Bytes(_) => Self::Bytes,
        }
    }
}

impl KeyShape {
    /// A shape without parts: all batches of the stage have one key.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with one more part.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, ty: KeyType) -> Self {
        self.fields.push((name.into(), ty));
        self
    }

    /// The same, with text.
    #[must_use]
    pub fn text(self, name: impl Into<String>) -> Self {
        self.with(name, KeyType::Text)
    }

    /// The same, with a whole number.
    #[must_use]
    pub fn integer(self, name: impl Into<String>) -> Self {
        self.with(name, KeyType::Integer)
    }

    /// The same, with a minute.
    #[must_use]
    pub fn minute(self, name: impl Into<String>) -> Self {
        self.with(name, KeyType::Minute)
    }

    /// The same, with a digest.
    #[must_use]
    pub fn digest(self, name: impl Into<String>) -> Self {
        self.with(name, KeyType::Digest)
    }

    /// The same, with bytes.
    #[must_use]
    pub fn bytes(self, name: impl Into<String>) -> Self {
        self.with(name, KeyType::Bytes)
    }

    /// Its parts, by name.
    pub fn fields(&self) -> &[(String, KeyType)] {
        &self.fields
    }

    /// Whether `key` has these parts, and is not too long.
    ///
    /// # Errors
    /// `Invalid`, naming the first part that differs; `LimitExceeded` above
    /// [`KEY_BYTES_MAX`](super::KEY_BYTES_MAX).
    pub fn check(&self, key: &Key) -> Result<()> {
        let (has, wants) = (key.parts().len(), self.fields.len());
        if has != wants {
            return Err(refuse(
                "key",
                format!("it has {has} parts, the stage's keys have {wants}"),
            ));
        }
        for (part, (name, ty)) in key.parts().iter().zip(&self.fields) {
            let is = KeyType::of(part);
            if is != *ty {
                let cause = format!("{name:?} is {}, the stage wants {}", is.name(), ty.name());
                return Err(refuse("key", cause));
            }
        }
        key.check_len()
    }

    /// Whether a stage may have this shape.
    pub(crate) fn check_itself(&self) -> Result<()> {
        if self.fields.len() > KEY_FIELDS_MAX {
            let cause = format!("{} parts, {KEY_FIELDS_MAX} allowed", self.fields.len());
            return Err(Error::new(ErrorKind::LimitExceeded, "create", "key shape", cause));
        }
        for (at, (name, _)) in self.fields.iter().enumerate() {
            let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
            if name.is_empty() || name.len() > FIELD_NAME_BYTES_MAX || !is_word {
                let cause = format!(
                    "{name:?}: a part's name is 1 to {FIELD_NAME_BYTES_MAX} letters, digits, _ - ."
                );
                return Err(refuse("key shape", cause));
            }
            if self.fields.iter().take(at).any(|(other, _)| other == name) {
                return Err(refuse("key shape", format!("two parts are called {name:?}")));
            }
        }
        Ok(())
    }

    /// The same key, told of the names of its parts.
    pub(crate) fn named(&self, mut key: Key) -> Key {
        if self.fields.len() == key.parts().len() {
            key.names = Some(self.names());
        }
        key
    }

    /// The key with these bytes, told of the names of its parts.
    pub(crate) fn key_of(&self, bytes: &[u8]) -> Result<Key> {
        Key::from_bytes(bytes).map(|key| self.named(key))
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        codec::encode("key shape", &self.fields)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(Self { fields: codec::decode("key shape", bytes)? })
    }

    fn names(&self) -> Arc<[String]> {
        self.fields.iter().map(|(name, _)| name.clone()).collect()
    }
}

pub(super) fn refuse(place: &str, cause: impl std::fmt::Display) -> Error {
    Error::invalid("check", place, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are keys of another shape refused by the name of the part, and shapes that cannot be?
    #[test]
    fn a_key_of_another_shape_is_refused_by_name() {
        let shape = KeyShape::new().text("schema").integer("shard");
        assert_eq!(KeyShape::decode(&shape.encode().unwrap()).unwrap(), shape);
        shape.check_itself().unwrap();
        let text = |text: &str| KeyPart::Text(text.to_owned());
        shape.check(&Key::new([text("a"), KeyPart::Integer(1)])).unwrap();
        let short = shape.check(&Key::new([text("a")])).unwrap_err();
        assert!(short.cause().contains("1 parts"), "{short}");
        let other = shape.check(&Key::new([text("a"), text("1")])).unwrap_err();
        assert!(other.cause().contains("\"shard\" is text"), "{other}");
        let long = Key::new([text(&"x".repeat(2000)), KeyPart::Integer(1)]);
        assert_eq!(shape.check(&long).unwrap_err().kind(), ErrorKind::LimitExceeded);
        for bad in [
            KeyShape::new().text(""),
            KeyShape::new().text("a/b"),
            KeyShape::new().text("a").bytes("a"),
            KeyShape::new().text("x".repeat(65)),
            (0..17).fold(KeyShape::new(), |shape, n| shape.text(format!("f{n}"))),
        ] {
            assert!(bad.check_itself().is_err(), "{bad:?}");
        }
    }
}
