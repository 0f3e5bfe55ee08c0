//! A part of a key from text.

use sealstone::digest::Digest;
use sealstone::staging::{KeyPart, KeyType};

use super::minutes::minute;

/// The part of type `ty` that `text` says.
pub fn part_of(ty: KeyType, text: &str) -> Result<KeyPart, String> {
    let part = match ty {
        KeyType::Text => Some(KeyPart::Text(text.to_owned())),
        KeyType::Integer => text.trim().parse().ok().map(KeyPart::Integer),
        KeyType::Minute => minute(text).map(KeyPart::Minute),
        KeyType::Digest => text.parse::<Digest>().ok().map(KeyPart::Digest),
        KeyType::Bytes => bytes(text).map(KeyPart::Bytes),
    };
    part.ok_or_else(|| format!("{text:?} is no {}", ty.name()))
}

/// Bytes as pairs of hex digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | d)).collect())
}
