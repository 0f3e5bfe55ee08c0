//! Key: what the batches of a group have in common.

use std::sync::Arc;

use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::BATCH_KEY_BYTES_MAX;

/// The longest key, in bytes as stored.
pub const KEY_BYTES_MAX: usize = BATCH_KEY_BYTES_MAX;

/// One part of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPart {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A minute, counted from 1970-01-01T00:00 UTC.
    Minute(i64),
    /// The digest of something, say of a schema.
    Digest(Digest),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// What the batches of a group have in common: the parts that the stage's
/// [`KeyShape`](super::KeyShape) asks for, in its order. Keys compare part by part.
///
/// Written, it is `schema=a/minute=2026-12-01T09:40`; one that no stage has seen yet knows no names, and
/// is written `a/2026-12-01T09:40`.
#[derive(Debug, Clone)]
pub struct Key {
    parts: Vec<KeyPart>,
    pub(super) names: Option<Arc<[String]>>,
}

const TEXT: u8 = 1;
const INTEGER: u8 = 2;
const MINUTE: u8 = 3;
const DIGEST: u8 = 4;
const BYTES: u8 = 5;
/// Ends text and bytes; a zero inside is followed by [`ESCAPED`], which is no part's tag.
const END: u8 = 0;
const ESCAPED: u8 = 0xff;

impl Key {
    /// A key of these parts.
    pub fn new(parts: impl Into<Vec<KeyPart>>) -> Self {
        Self { parts: parts.into(), names: None }
    }

    /// Its parts.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// The part of this name, where the key comes from a stage.
    pub fn part(&self, name: &str) -> Option<&KeyPart> {
        let at = self.names.as_ref()?.iter().position(|one| one == name)?;
        self.parts.get(at)
    }

    /// Bytes that compare as the keys do.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.parts.iter().for_each(|part| part.write(&mut bytes));
        bytes
    }

    /// The key with these bytes.
    ///
    /// # Errors
    /// `Damage` for bytes of no key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut parts = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, behind) = KeyPart::read(rest)
                .ok_or_else(|| Error::damage("decode", "key", format!("{bytes:x?} is none")))?;
            parts.push(part);
            rest = behind;
        }
        Ok(Self::new(parts))
    }

    pub(super) fn check_len(&self) -> Result<()> {
        let len = self.to_bytes().len();
        if len <= KEY_BYTES_MAX {
            return Ok(());
        }
        let cause = format!("{len} bytes, {KEY_BYTES_MAX} allowed");
        Err(Error::new(ErrorKind::LimitExceeded, "append", "key", cause))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts.cmp(&other.parts)
    }
}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.parts.hash(state);
    }
}

impl KeyPart {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Text(text) => escape(to, TEXT, text.as_bytes()),
            Self::Bytes(bytes) => escape(to, BYTES, bytes),
            Self::Integer(number) => signed(to, INTEGER, *number),
            Self::Minute(number) => signed(to, MINUTE, *number),
            Self::Digest(digest) => {
                to.push(DIGEST);
                to.extend_from_slice(&digest.0);
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (tag, rest) = bytes.split_first()?;
        match *tag {
            TEXT => {
                let (text, rest) = unescape(rest)?;
                Some((Self::Text(String::from_utf8(text).ok()?), rest))
            }
            BYTES => unescape(rest).map(|(bytes, rest)| (Self::Bytes(bytes), rest)),
            INTEGER => number(rest).map(|(number, rest)| (Self::Integer(number), rest)),
            MINUTE => number(rest).map(|(number, rest)| (Self::Minute(number), rest)),
            DIGEST => {
                let (digest, rest) = rest.split_first_chunk::<32>()?;
                Some((Self::Digest(Digest(*digest)), rest))
            }
            _ => None,
        }
    }
}

/// The sign is turned, so that negative numbers come first.
fn signed(to: &mut Vec<u8>, tag: u8, number: i64) {
    to.push(tag);
    to.extend_from_slice(&(number.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some(((u64::from_be_bytes(*number) ^ (1 << 63)).cast_signed(), rest))
}

fn escape(to: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    to.push(tag);
    for &byte in bytes {
        to.push(byte);
        if byte == END {
            to.push(ESCAPED);
        }
    }
    to.push(END);
}

fn unescape(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut plain = Vec::new();
    let mut rest = bytes;
    loop {
        let (&byte, behind) = rest.split_first()?;
        rest = behind;
        if byte == END {
            match rest.split_first() {
                Some((&ESCAPED, behind)) => rest = behind,
                _ => return Some((plain, rest)),
            }
        }
        plain.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = KeyPart> {
        prop_oneof![
            "[\0a-c\u{ff}]{0,4}".prop_map(KeyPart::Text),
            any::<i64>().prop_map(KeyPart::Integer),
            (-3i64..3).prop_map(KeyPart::Minute),
            any::<[u8; 32]>().prop_map(|digest| KeyPart::Digest(Digest(digest))),
            prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..4)
                .prop_map(KeyPart::Bytes),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Do keys come back from their bytes, and do bytes compare as keys do?
        #[test]
        fn bytes_of_keys_keep_their_order(
            one in prop::collection::vec(part(), 0..4),
            other in prop::collection::vec(part(), 0..4),
        ) {
            let (one, other) = (Key::new(one), Key::new(other));
            prop_assert_eq!(&Key::from_bytes(&one.to_bytes()).unwrap(), &one);
            prop_assert_eq!(one.to_bytes().cmp(&other.to_bytes()), one.cmp(&other));
        }

        /// Are other bytes an error, or the bytes of what they say?
        #[test]
        fn hostile_bytes_are_errors_or_keys(
            bytes in prop::collection::vec(prop_oneof![0u8..7, any::<u8>()], 0..40),
        ) {
            if let Ok(key) = Key::from_bytes(&bytes) {
                prop_assert_eq!(key.to_bytes(), bytes);
            }
        }
    }

    /// Is the wire format the frozen one?
    #[test]
    fn golden_vector() {
        let key = Key::new([
            KeyPart::Text("a\0".to_owned()),
            KeyPart::Minute(-1),
            KeyPart::Bytes(vec![]),
        ]);
        let bytes = [1, b'a', 0, 0xff, 0, 3, 0x7f, 255, 255, 255, 255, 255, 255, 255, 5, 0];
        assert_eq!(key.to_bytes(), bytes);
    }
}
