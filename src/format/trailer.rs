//! The trailer of a sealed file: where its footer begins and its content ends. It repeats what the
//! header says, so that a damaged header makes no block unreadable.

use super::sealed::{
    Framing, HEADER_BYTES, VERSION, agree, damage, fields, known, show, u32_at, u64_at,
};
use crate::digest::checksum;
use crate::error::Result;

/// The last bytes of the content.
pub const TRAILER_MAGIC: [u8; 8] = *b"\x89CLOSED\n";
/// Length of the trailer.
pub const TRAILER_BYTES: usize = 56;
/// The trailer begins at a multiple of this, so that it is found without the label.
pub const TRAILER_ALIGN: usize = 8;

fields! {
    /// The trailer: field, offset, width.
    TRAILER_LAYOUT:
    TRAILER_FOOTER_OFFSET 0..8;
    TRAILER_CONTENT_LEN 8..16;
    TRAILER_EXTENTS 16..24;
    TRAILER_SEED 24..32;
    TRAILER_BLOCK_BYTES 32..36;
    TRAILER_FOOTER_CRC 36..40;
    TRAILER_VERSION 40..44;
    TRAILER_CRC 44..48;
    TRAILER_END_MAGIC 48..56;
}

/// The end of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// Where the footer begins: the end of the last extent.
    pub footer_offset: u64,
    /// Length of the content, this trailer included.
    pub content_len: u64,
    /// Extents that the footer describes.
    pub extents: u64,
    /// What the header says too.
    pub framing: Framing,
    /// Checksum of the footer, padding included.
    pub footer_crc: u32,
}

impl Trailer {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[TRAILER_FOOTER_OFFSET].copy_from_slice(&self.footer_offset.to_le_bytes());
        bytes[TRAILER_CONTENT_LEN].copy_from_slice(&self.content_len.to_le_bytes());
        bytes[TRAILER_EXTENTS].copy_from_slice(&self.extents.to_le_bytes());
        bytes[TRAILER_SEED].copy_from_slice(&self.framing.seed.to_le_bytes());
        bytes[TRAILER_BLOCK_BYTES].copy_from_slice(&self.framing.block_bytes.to_le_bytes());
        bytes[TRAILER_FOOTER_CRC].copy_from_slice(&self.footer_crc.to_le_bytes());
        bytes[TRAILER_VERSION].copy_from_slice(&VERSION.to_le_bytes());
        let crc = checksum(&bytes[..TRAILER_CRC.start]);
        bytes[TRAILER_CRC].copy_from_slice(&crc.to_le_bytes());
        bytes[TRAILER_END_MAGIC].copy_from_slice(&TRAILER_MAGIC);
        bytes
    }

    /// Reads a trailer whose last byte lies just before `end`.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat` when it is whole and of a version that this release does not know.
    pub fn from_bytes(bytes: &[u8; TRAILER_BYTES], end: u64) -> Result<Self> {
        if bytes[TRAILER_END_MAGIC] != TRAILER_MAGIC {
            return Err(damage("trailer", format!("no content ends with {}", show(bytes))));
        }
        agree("trailer", checksum(&bytes[..TRAILER_CRC.start]), u32_at(bytes, TRAILER_CRC))?;
        known("trailer", u32_at(bytes, TRAILER_VERSION))?;
        let block_bytes = u32_at(bytes, TRAILER_BLOCK_BYTES);
        let trailer = Self {
            footer_offset: u64_at(bytes, TRAILER_FOOTER_OFFSET),
            content_len: u64_at(bytes, TRAILER_CONTENT_LEN),
            extents: u64_at(bytes, TRAILER_EXTENTS),
            framing: Framing::checked("trailer", block_bytes, u64_at(bytes, TRAILER_SEED))?,
            footer_crc: u32_at(bytes, TRAILER_FOOTER_CRC),
        };
        if trailer.content_len != end {
            let said = trailer.content_len;
            return Err(damage("trailer", format!("it ends at {said} by its word, at {end} here")));
        }
        if trailer.footer_offset < HEADER_BYTES as u64
            || trailer.footer_offset > end.saturating_sub(TRAILER_BYTES as u64)
        {
            let at = trailer.footer_offset;
            return Err(damage("trailer", format!("a footer at {at} lies outside the content")));
        }
        Ok(trailer)
    }

    /// Finds the last whole trailer in `window`, the bytes of a file from `window_at` on. For a file
    /// whose label is damaged, and with it the word where the content ends.
    pub fn find(window: &[u8], window_at: u64) -> Option<Self> {
        let mut end = window.len();
        while end >= TRAILER_BYTES {
            let file_end = window_at.checked_add(end as u64)?;
            let (_, bytes) = window[..end].split_last_chunk::<TRAILER_BYTES>()?;
            if bytes[TRAILER_END_MAGIC] == TRAILER_MAGIC
                && let Ok(trailer) = Self::from_bytes(bytes, file_end)
            {
                return Some(trailer);
            }
            // Back to the next place where a trailer can end, and from there from place to place.
            let over = (file_end % TRAILER_ALIGN as u64) as usize;
            end -= if over == 0 { TRAILER_ALIGN } else { over };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn trailer() -> Trailer {
        let framing = Framing { block_bytes: 4096, seed: 7 };
        Trailer { footer_offset: 28, content_len: 88, extents: 0, framing, footer_crc: 9 }
    }

    /// Can any single byte of a trailer change unnoticed?
    #[test]
    fn a_changed_byte_of_a_trailer_is_noticed() {
        let bytes = trailer().to_bytes();
        assert_eq!(Trailer::from_bytes(&bytes, 88).unwrap(), trailer());
        assert!(Trailer::from_bytes(&bytes, 96).is_err());
        for flip in 1..=255u8 {
            for at in 0..TRAILER_BYTES {
                let mut bad = bytes;
                bad[at] ^= flip;
                assert_eq!(Trailer::from_bytes(&bad, 88).unwrap_err().kind(), ErrorKind::Damage);
            }
        }
    }

    /// Is a whole trailer of another version called newer, and not damaged?
    #[test]
    fn an_unknown_version_is_newer_and_not_damage() {
        let mut bytes = trailer().to_bytes();
        bytes[TRAILER_VERSION].copy_from_slice(&2u32.to_le_bytes());
        let crc = checksum(&bytes[..TRAILER_CRC.start]);
        bytes[TRAILER_CRC].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Trailer::from_bytes(&bytes, 88).unwrap_err().kind(), ErrorKind::NewerFormat);
    }

    /// Is the trailer found wherever the window begins, and a copy at a wrong place passed over?
    #[test]
    fn a_trailer_is_found_behind_any_label() {
        let mut file = vec![1; 32];
        file.extend_from_slice(&trailer().to_bytes());
        for label in 0..40 {
            let whole = [&file[..], &vec![3; label]].concat();
            for from in 0..=32 {
                assert_eq!(Trailer::find(&whole[from..], from as u64), Some(trailer()));
            }
            assert_eq!(Trailer::find(&whole[33..], 33), None);
            assert_eq!(Trailer::find(&whole, 8), None);
        }
    }
}
