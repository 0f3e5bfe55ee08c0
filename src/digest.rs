//! Digest and checksum. A digest (BLAKE3-256) names content; a checksum (CRC-32C, Castagnoli,
//! RFC 3720 appendix B.4) detects accident and names nothing.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The BLAKE3-256 digest of some content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// The first 8 bytes, big-endian: the key of the dedupe index.
    pub fn prefix(&self) -> u64 {
        let mut head = [0; 8];
        head.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(head)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|e| Error::invalid("parse", "digest", "not 64 hex digits").with_source(e))
    }
}

/// Computes a [`Digest`] piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// Takes in the next piece of content.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all pieces so far.
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

/// The CRC-32C of `bytes`.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Goes on with a CRC-32C: `checksum_more(checksum(a), b)` is the checksum of `a` then `b`.
pub fn checksum_more(so_far: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(so_far, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are these the published functions? (CRC-32C check value; BLAKE3 of nothing.)
    #[test]
    fn published_vectors() {
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum_more(checksum(b"1234"), b"56789"), 0xe306_9283);
        assert!(Digest::of(b"").to_string().starts_with("af1349b9f5f9a1a6a0404dea36dcc949"));
        let digest = Digest::of(b"seal");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
    }
}
