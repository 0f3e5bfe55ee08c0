//! The label of a sealed file: who referred to it when it was sealed. It stands behind the content,
//! outside its digest, and serves salvage alone: nothing that a row says is learnt from it.
//!
//! The body holds the lists; the end, of fixed length, closes the file. Besides it tells which
//! content the file should have, so that files that changed places are noticed without hashing them.

use serde::{Deserialize, Serialize};

use super::sealed::{VERSION, agree, damage, fields, known, show, u32_at, u64_at};
use crate::codec;
use crate::digest::{Digest, checksum};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, StoreId};

/// The last bytes of a sealed file.
pub const LABEL_MAGIC: [u8; 8] = *b"\x89LABEL.\n";
/// Length of a label's end.
pub const LABEL_END_BYTES: usize = 88;
/// The longest body: 16 MiB.
pub const LABEL_BODY_BYTES_MAX: usize = 16 << 20;

fields! {
    /// The end of a label: field, offset, width.
    LABEL_END_LAYOUT:
    LABEL_DIGEST 0..32;
    LABEL_STORE 32..48;
    LABEL_CONTENT_LEN 48..56;
    LABEL_COMMIT 56..64;
    LABEL_BODY_LEN 64..68;
    LABEL_BODY_CRC 68..72;
    LABEL_VERSION 72..76;
    LABEL_CRC 76..80;
    LABEL_END_MAGIC 80..88;
}

/// Who referred to a sealed file at its birth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The store that sealed it.
    pub store: StoreId,
    /// The store's highest commit known when it was sealed.
    pub commit: CommitSeq,
    /// The rows that were to refer to it, and rows that those need to be understood.
    pub referrers: Vec<Referrer>,
    /// The inputs that an output consumed.
    pub inputs: Vec<Digest>,
}

/// A row as it was to be when the file was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Referrer {
    /// The extent that it was to refer to, by position; `None` for a row that refers to none.
    pub extent: Option<u32>,
    /// Its table, by number.
    pub table: u8,
    /// Its key; empty where it was not known.
    pub key: Vec<u8>,
    /// Its value, or nothing where it was not known. The number of an object that was only to be
    /// stored is 0 in it.
    pub value: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Body {
    referrers: Vec<Referrer>,
    inputs: Vec<Digest>,
}

/// The end of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelEnd {
    /// Digest of the content before it.
    pub digest: Digest,
    /// Length of the content: where the label's body begins.
    pub content_len: u64,
    /// The store that sealed the file.
    pub store: StoreId,
    /// The store's highest commit known when it was sealed.
    pub commit: CommitSeq,
    /// Length of the body.
    pub body_len: u32,
    body_crc: u32,
}

impl Label {
    /// The bytes to put behind content of this digest and length.
    ///
    /// # Errors
    /// `LimitExceeded` when the body passes [`LABEL_BODY_BYTES_MAX`].
    pub fn to_bytes(&self, digest: &Digest, content_len: u64) -> Result<Vec<u8>> {
        let body = (&self.referrers, &self.inputs);
        let mut bytes = codec::encode("label", &body)?;
        if bytes.len() > LABEL_BODY_BYTES_MAX {
            let cause = format!("{} bytes, {LABEL_BODY_BYTES_MAX} are the limit", bytes.len());
            return Err(Error::new(ErrorKind::LimitExceeded, "seal", "label", cause));
        }
        let mut end = [0; LABEL_END_BYTES];
        end[LABEL_DIGEST].copy_from_slice(&digest.0);
        end[LABEL_STORE].copy_from_slice(&self.store.0);
        end[LABEL_CONTENT_LEN].copy_from_slice(&content_len.to_le_bytes());
        end[LABEL_COMMIT].copy_from_slice(&self.commit.0.to_le_bytes());
        end[LABEL_BODY_LEN].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        end[LABEL_BODY_CRC].copy_from_slice(&checksum(&bytes).to_le_bytes());
        end[LABEL_VERSION].copy_from_slice(&VERSION.to_le_bytes());
        let crc = checksum(&end[..LABEL_CRC.start]);
        end[LABEL_CRC].copy_from_slice(&crc.to_le_bytes());
        end[LABEL_END_MAGIC].copy_from_slice(&LABEL_MAGIC);
        bytes.extend_from_slice(&end);
        Ok(bytes)
    }

    /// Reads the body that belongs to `end`.
    ///
    /// # Errors
    /// `Damage`.
    pub fn from_bytes(end: &LabelEnd, body: &[u8]) -> Result<Self> {
        agree("label", checksum(body), end.body_crc)?;
        let Body { referrers, inputs } = codec::decode("label", body)?;
        Ok(Self { store: end.store, commit: end.commit, referrers, inputs })
    }
}

impl LabelEnd {
    /// Reads the end of a label, the last bytes of a file of `file_len` bytes.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat` when it is whole and of a version that this release does not know.
    pub fn from_bytes(bytes: &[u8; LABEL_END_BYTES], file_len: u64) -> Result<Self> {
        if bytes[LABEL_END_MAGIC] != LABEL_MAGIC {
            return Err(damage("label", format!("no sealed file ends with {}", show(bytes))));
        }
        agree("label", checksum(&bytes[..LABEL_CRC.start]), u32_at(bytes, LABEL_CRC))?;
        known("label", u32_at(bytes, LABEL_VERSION))?;
        let mut end = Self {
            digest: Digest([0; 32]),
            content_len: u64_at(bytes, LABEL_CONTENT_LEN),
            store: StoreId([0; 16]),
            commit: CommitSeq(u64_at(bytes, LABEL_COMMIT)),
            body_len: u32_at(bytes, LABEL_BODY_LEN),
            body_crc: u32_at(bytes, LABEL_BODY_CRC),
        };
        end.digest.0.copy_from_slice(&bytes[LABEL_DIGEST]);
        end.store.0.copy_from_slice(&bytes[LABEL_STORE]);
        let label_len = u64::from(end.body_len) + LABEL_END_BYTES as u64;
        if end.content_len.checked_add(label_len) != Some(file_len) {
            let (content, body) = (end.content_len, end.body_len);
            let cause =
                format!("content of {content} bytes and a body of {body} make another file");
            return Err(damage("label", cause));
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: u8, key: Vec<u8>, value: Vec<u8>) -> Referrer {
        Referrer { extent: Some(u32::from(table)), table, key, value }
    }

    fn label() -> Label {
        Label {
            store: StoreId::from_parts(1, [1; 10]),
            commit: CommitSeq(9),
            referrers: vec![row(15, vec![0, 7], vec![1]), row(4, Vec::new(), Vec::new())],
            inputs: vec![Digest::of(b"in")],
        }
    }

    fn parse(bytes: &[u8], content_len: u64) -> Result<Label> {
        let (body, end) = bytes.split_last_chunk().ok_or_else(|| damage("label", "short"))?;
        Label::from_bytes(&LabelEnd::from_bytes(end, content_len + bytes.len() as u64)?, body)
    }

    /// Does a label read back, and can no single byte of it change unnoticed?
    #[test]
    fn a_changed_byte_of_a_label_is_noticed() {
        let bytes = label().to_bytes(&Digest::of(b"content"), 1000).unwrap();
        assert_eq!(parse(&bytes, 1000).unwrap(), label());
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                assert_eq!(parse(&bad, 1000).unwrap_err().kind(), ErrorKind::Damage, "byte {at}");
            }
        }
        assert!(parse(&bytes, 1001).is_err());
    }

    /// Is a label too long refused when it is written, and not first when it is read?
    #[test]
    fn a_label_too_long_is_refused() {
        let long =
            Label { referrers: vec![row(0, vec![0; LABEL_BODY_BYTES_MAX], vec![])], ..label() };
        let refused = long.to_bytes(&Digest::of(b""), 0).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    }
}
