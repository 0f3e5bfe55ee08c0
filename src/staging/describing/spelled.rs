//! Keys as people write and type them: `schema=nginx/minute=2026-12-01T09:40`.
//!
//! What would not read back (`/`, `=`, `%`, what is not printable) is written as `%` and two hex digits.

use std::fmt;

use super::key::{Key, KeyPart};
use super::minute::{minute_of, text_of};
use super::shape::{KeyShape, KeyType, refuse};
use crate::error::Result;

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts().iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            if let Some(name) = self.names.as_ref().and_then(|names| names.get(at)) {
                write!(f, "{name}=")?;
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.chars().try_for_each(|c| write_char(f, c)),
            Self::Integer(number) => number.fmt(f),
            Self::Minute(minute) => f.write_str(&text_of(*minute)),
            Self::Digest(digest) => digest.fmt(f),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

fn write_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    if !matches!(c, '/' | '=' | '%') && !c.is_control() && !c.is_whitespace() {
        return write!(f, "{c}");
    }
    let mut bytes = [0; 4];
    c.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "%{byte:02x}"))
}

impl KeyShape {
    /// The key that is written so: `name=value/name=value`, each part in its place.
    ///
    /// # Errors
    /// `Invalid`, naming the part that is missing, unknown or not of its type.
    pub fn parse(&self, text: &str) -> Result<Key> {
        let given: Vec<&str> = if text.is_empty() { Vec::new() } else { text.split('/').collect() };
        if given.len() != self.fields().len() {
            let cause = format!("{} parts, its keys have {}", given.len(), self.fields().len());
            return Err(refuse("key", cause));
        }
        let parts =
            given.iter().zip(self.fields()).map(|(one, (name, ty))| match one.split_once('=') {
                Some((given, value)) if given == name => part_of(name, *ty, value),
                _ => Err(refuse("key", format!("{one:?} stands where {name}= is wanted"))),
            });
        let key = Key::new(parts.collect::<Result<Vec<_>>>()?);
        self.check(&key)?;
        Ok(self.named(key))
    }
}

/// The part of `ty` that is written `value`.
fn part_of(name: &str, ty: KeyType, value: &str) -> Result<KeyPart> {
    let part = match ty {
        KeyType::Text => plain(value).map(KeyPart::Text),
        KeyType::Integer => value.parse().ok().map(KeyPart::Integer),
        KeyType::Minute => minute_of(value).map(KeyPart::Minute),
        KeyType::Digest => value.parse().ok().map(KeyPart::Digest),
        KeyType::Bytes => bytes_of(value).map(KeyPart::Bytes),
    };
    part.ok_or_else(|| refuse("key", format!("{value:?} is no {} for {name:?}", ty.name())))
}

fn plain(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'%' {
            let (digits, behind) = rest.split_first_chunk::<2>()?;
            bytes.push(hex(*digits)?);
            rest = behind;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| hex(*pair)).collect()
}

fn hex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn shape() -> KeyShape {
        KeyShape::new().text("t").integer("i").minute("m").digest("d").bytes("b")
    }

    /// Do keys read back from what is written of them, with whatever is in them?
    #[test]
    fn what_is_written_of_a_key_reads_back() {
        for text in ["", "nginx", "a/b=c%", "zwei Wörter", "\0\n", "%2f"] {
            let key = Key::new([
                KeyPart::Text(text.to_owned()),
                KeyPart::Integer(-7),
                KeyPart::Minute(29_935_470),
                KeyPart::Digest(Digest::of(b"x")),
                KeyPart::Bytes(vec![0, 255]),
            ]);
            let written = shape().named(key.clone()).to_string();
            assert_eq!(shape().parse(&written).unwrap(), key, "{written}");
            assert!(written.contains("/i=-7/m=2026-12-01T12:30/d="), "{written}");
        }
        assert_eq!(KeyShape::new().parse("").unwrap(), Key::new([]));
    }

    /// Is what is no key refused, naming the part?
    #[test]
    fn what_is_no_key_is_refused_by_name() {
        let shape = KeyShape::new().text("t").integer("i");
        for (text, word) in [
            ("t=a", "1 parts"),
            ("", "0 parts"),
            ("t=a/j=1", "i= is wanted"),
            ("t=a/i=x", "\"i\""),
            ("t=%2/i=1", "\"t\""),
            ("t=%zz/i=1", "\"t\""),
            ("t=%ff/i=1", "\"t\""),
        ] {
            let e = shape.parse(text).unwrap_err();
            assert!(e.cause().contains(word), "{text}: {e}");
        }
    }
}
