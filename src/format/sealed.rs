//! The content of a sealed file: header, extents cut into checksummed blocks, footer, trailer.
//!
//! ```text
//!   | header | block crc block crc .. | block crc .. | footer | trailer | label | label end |
//!            '------- extent ---------'--- extent ---'
//!   '-------------------- content, named by its digest ------------------'--- for salvage -'
//! ```
//!
//! All numbers are little-endian. No clock, id or salt is in the content: equal extents, equal bytes.
//! A block's checksum covers the file's seed and the block's place, so that a block read from
//! another place or another file does not pass. The end is written in
//! [`trailer`](super::trailer) and [`footer`](super::footer).

use std::ops::Range;

use crate::digest::{Digest, checksum, checksum_more};
use crate::error::{Error, ErrorKind, Result};

/// Defines the fields of a fixed layout once, as byte ranges, and the table of (field, offset,
/// width) that docs/FORMAT.md is compared with.
macro_rules! fields {
    ($(#[$doc:meta])* $table:ident: $($name:ident $range:expr;)*) => {
        $(const $name: std::ops::Range<usize> = $range;)*
        $(#[$doc])*
        pub const $table: &[(&str, usize, usize)] =
            &[$((stringify!($name), $name.start, $name.end - $name.start)),*];
    };
}
pub(super) use fields;

/// The first bytes of a sealed file.
pub const MAGIC: [u8; 8] = *b"\x89SEALED\n";
/// The version of this format.
pub const VERSION: u32 = 1;
/// Length of the header: the first extent begins here.
pub const HEADER_BYTES: usize = 28;
/// Length of a block's checksum, behind the block.
pub const BLOCK_CRC_BYTES: u64 = 4;
/// The largest block: 64 MiB.
pub const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// The seed is computed over at most so many first bytes of the first extent.
pub const SEED_BYTES_MAX: usize = 64 << 10;

fields! {
    /// The header: field, offset, width.
    HEADER_LAYOUT:
    HEADER_MAGIC 0..8;
    HEADER_VERSION 8..12;
    HEADER_BLOCK_BYTES 12..16;
    HEADER_SEED 16..24;
    HEADER_CRC 24..28;
}

/// Where an extent's blocks get their meaning from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Bytes in a block, but for the last of an extent.
    pub block_bytes: u32,
    /// Goes into every checksum: see [`seed_of`].
    pub seed: u64,
}

/// The seed of a file whose first extent begins with these stored bytes (at most
/// [`SEED_BYTES_MAX`] of them count): the head of their digest, so that it needs no salt.
pub fn seed_of(first_stored: &[u8]) -> u64 {
    Digest::of(&first_stored[..first_stored.len().min(SEED_BYTES_MAX)]).prefix()
}

impl Framing {
    /// The header of a file with this framing.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[HEADER_MAGIC].copy_from_slice(&MAGIC);
        bytes[HEADER_VERSION].copy_from_slice(&VERSION.to_le_bytes());
        bytes[HEADER_BLOCK_BYTES].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes[HEADER_SEED].copy_from_slice(&self.seed.to_le_bytes());
        let crc = checksum(&bytes[..HEADER_CRC.start]);
        bytes[HEADER_CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat` when it is whole and of a version that this release does not know.
    pub fn from_header(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        if bytes[HEADER_MAGIC] != MAGIC {
            return Err(damage("header", format!("no sealed file begins with {}", show(bytes))));
        }
        agree("header", checksum(&bytes[..HEADER_CRC.start]), u32_at(bytes, HEADER_CRC))?;
        known("header", u32_at(bytes, HEADER_VERSION))?;
        Self::checked("header", u32_at(bytes, HEADER_BLOCK_BYTES), u64_at(bytes, HEADER_SEED))
    }

    pub(super) fn checked(what: &'static str, block_bytes: u32, seed: u64) -> Result<Self> {
        if block_bytes == 0 || block_bytes > BLOCK_BYTES_MAX {
            return Err(damage(what, format!("blocks of {block_bytes} bytes cannot be")));
        }
        Ok(Self { block_bytes, seed })
    }

    /// The checksum of no byte yet of the block that lies at `at`; go on with
    /// [`checksum_more`].
    pub fn block_checksum(&self, at: u64) -> u32 {
        checksum_more(checksum(&self.seed.to_le_bytes()), &at.to_le_bytes())
    }
}

/// The blocks of one extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    offset: u64,
    stored_len: u64,
    block_bytes: u64,
    end: u64,
}

impl Blocks {
    /// The blocks of an extent of `stored_len` bytes at `offset`; `None` when it ends past every
    /// possible file, or `block_bytes` is zero.
    pub fn new(offset: u64, stored_len: u64, block_bytes: u32) -> Option<Self> {
        let block_bytes = u64::from(block_bytes);
        let count = stored_len.checked_add(block_bytes.checked_sub(1)?)? / block_bytes;
        let span = stored_len.checked_add(count.checked_mul(BLOCK_CRC_BYTES)?)?;
        Some(Self { offset, stored_len, block_bytes, end: offset.checked_add(span)? })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.stored_len.div_ceil(self.block_bytes)
    }

    /// Where the extent ends in the file, the last checksum included.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Where `block` begins in the file.
    pub fn at(&self, block: u64) -> u64 {
        self.offset + block * (self.block_bytes + BLOCK_CRC_BYTES)
    }

    /// The stored bytes of the extent that `block` holds.
    pub fn holds(&self, block: u64) -> Range<u64> {
        let start = (block * self.block_bytes).min(self.stored_len);
        start..(start + self.block_bytes).min(self.stored_len)
    }

    /// The blocks that hold the stored bytes `range`; none for an empty range.
    pub fn over(&self, range: &Range<u64>) -> Range<u64> {
        if range.is_empty() {
            return 0..0;
        }
        range.start / self.block_bytes..range.end.div_ceil(self.block_bytes)
    }
}

/// The first bytes of `bytes`, for a message about what a place held.
pub fn show(bytes: &[u8]) -> String {
    if bytes.iter().all(|&byte| byte == 0) {
        return "zeros".to_owned();
    }
    let head: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    head.join(" ")
}

pub(super) fn damage(what: &'static str, cause: impl std::fmt::Display) -> Error {
    Error::damage("read", what, cause)
}

pub(super) fn agree(what: &'static str, computed: u32, recorded: u32) -> Result<()> {
    if computed != recorded {
        let cause = format!("its checksum is {computed:08x}, {recorded:08x} was recorded");
        return Err(damage(what, cause));
    }
    Ok(())
}

pub(super) fn known(what: &'static str, version: u32) -> Result<()> {
    if version != VERSION {
        let cause = format!("version {version}; this release knows version {VERSION}");
        return Err(Error::new(ErrorKind::NewerFormat, "read", what, cause));
    }
    Ok(())
}

pub(super) fn u32_at(bytes: &[u8], field: Range<usize>) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[field]);
    u32::from_le_bytes(value)
}

pub(super) fn u64_at(bytes: &[u8], field: Range<usize>) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[field]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMING: Framing = Framing { block_bytes: 4096, seed: 7 };

    /// Can any single byte of a header change unnoticed?
    #[test]
    fn a_changed_byte_of_a_header_is_noticed() {
        let header = FRAMING.header();
        assert_eq!(Framing::from_header(&header).unwrap(), FRAMING);
        for flip in 1..=255u8 {
            for at in 0..HEADER_BYTES {
                let mut bad = header;
                bad[at] ^= flip;
                assert_eq!(Framing::from_header(&bad).unwrap_err().kind(), ErrorKind::Damage);
            }
        }
    }

    /// Is a whole header of another version called newer, and not damaged?
    #[test]
    fn an_unknown_version_is_newer_and_not_damage() {
        let mut header = FRAMING.header();
        header[HEADER_VERSION].copy_from_slice(&2u32.to_le_bytes());
        let crc = checksum(&header[..HEADER_CRC.start]);
        header[HEADER_CRC].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Framing::from_header(&header).unwrap_err().kind(), ErrorKind::NewerFormat);
    }

    /// Do lying lengths overflow? Every sum must be checked.
    #[test]
    fn lying_extents_do_not_overflow() {
        for (offset, len, block) in
            [(u64::MAX, 1, 1), (0, u64::MAX, 1), (1, u64::MAX - 1, u32::MAX), (0, 1, 0)]
        {
            assert!(Blocks::new(offset, len, block).is_none(), "{offset} {len} {block}");
        }
    }

    /// Do the blocks of an extent hold each of its bytes once, and lie one behind the other?
    #[test]
    fn blocks_tile_their_extent() {
        for block_bytes in 1..=7 {
            for len in 0..=22 {
                let blocks = Blocks::new(28, len, block_bytes).unwrap();
                let (mut at, mut held) = (28, 0);
                for block in 0..blocks.count() {
                    assert_eq!((blocks.at(block), blocks.holds(block).start), (at, held));
                    held = blocks.holds(block).end;
                    at += blocks.holds(block).count() as u64 + BLOCK_CRC_BYTES;
                    for byte in blocks.holds(block) {
                        assert_eq!(blocks.over(&(byte..byte + 1)), block..block + 1);
                    }
                }
                assert_eq!((blocks.end(), len), (at, held));
                assert_eq!(blocks.over(&(0..len)), 0..blocks.count());
            }
        }
    }
}
