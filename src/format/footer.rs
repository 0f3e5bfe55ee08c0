//! The footer of a sealed file: what is inside, extent by extent, without any row of the manifest.
//!
//! One entry for each extent, in the order of their places: a fixed part, then `about`, the bytes by
//! which a face describes it. Zeros follow until the trailer's place.

use super::sealed::{Blocks, HEADER_BYTES, agree, damage, fields, u32_at, u64_at};
use super::trailer::{TRAILER_ALIGN, Trailer};
use crate::digest::{Digest, checksum};
use crate::error::{Error, ErrorKind, Result};

/// The codec of an extent whose stored bytes are the raw ones.
pub const CODEC_NONE: u8 = 0;
/// Length of an entry's fixed part.
pub const ENTRY_BYTES: usize = 64;

fields! {
    /// The fixed part of an entry: field, offset, width.
    ENTRY_LAYOUT:
    ENTRY_DIGEST 0..32;
    ENTRY_LEN 32..40;
    ENTRY_OFFSET 40..48;
    ENTRY_STORED_LEN 48..56;
    ENTRY_CODEC 56..60;
    ENTRY_ABOUT_LEN 60..64;
}

/// One extent of a sealed file: what it is and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentAt {
    /// Digest of the raw bytes, before any codec.
    pub digest: Digest,
    /// Length of the raw bytes.
    pub len: u64,
    /// How the raw bytes became the stored ones.
    pub codec: u8,
    /// Where the extent begins in the file.
    pub offset: u64,
    /// Stored bytes, the checksums of the blocks not counted.
    pub stored_len: u64,
}

/// An extent with the bytes by which a face describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// What it is and where it lies.
    pub extent: ExtentAt,
    /// The description.
    pub about: Vec<u8>,
}

/// All extents of a sealed file, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// One for each extent.
    pub extents: Vec<Described>,
}

/// Adds the entry of one more extent to the bytes of a footer.
///
/// # Errors
/// `LimitExceeded` when `about` has 4 GiB or more.
pub fn push_entry(footer: &mut Vec<u8>, extent: &ExtentAt, about: &[u8]) -> Result<()> {
    let about_len = u32::try_from(about.len()).map_err(|_| {
        let cause = format!("a description of {} bytes is too long", about.len());
        Error::new(ErrorKind::LimitExceeded, "seal", "footer", cause)
    })?;
    let mut entry = [0; ENTRY_BYTES];
    entry[ENTRY_DIGEST].copy_from_slice(&extent.digest.0);
    entry[ENTRY_LEN].copy_from_slice(&extent.len.to_le_bytes());
    entry[ENTRY_OFFSET].copy_from_slice(&extent.offset.to_le_bytes());
    entry[ENTRY_STORED_LEN].copy_from_slice(&extent.stored_len.to_le_bytes());
    entry[ENTRY_CODEC].copy_from_slice(&u32::from(extent.codec).to_le_bytes());
    entry[ENTRY_ABOUT_LEN].copy_from_slice(&about_len.to_le_bytes());
    footer.extend_from_slice(&entry);
    footer.extend_from_slice(about);
    Ok(())
}

/// Fills the bytes of a footer that begins at `footer_offset` up to the trailer's place.
pub fn pad(footer: &mut Vec<u8>, footer_offset: u64) {
    let over = (footer_offset % TRAILER_ALIGN as u64) as usize + footer.len();
    footer.resize(footer.len() + over.next_multiple_of(TRAILER_ALIGN) - over, 0);
}

impl Footer {
    /// Reads the bytes between the last extent and the trailer. The extents must tile the file from
    /// the header to the footer. Allocates at most 4 times their length.
    ///
    /// # Errors
    /// `Damage`.
    pub fn from_bytes(bytes: &[u8], trailer: &Trailer) -> Result<Self> {
        agree("footer", checksum(bytes), trailer.footer_crc)?;
        if trailer.extents > (bytes.len() / ENTRY_BYTES) as u64 {
            let cause = format!("{} extents cannot be described here", trailer.extents);
            return Err(damage("footer", cause));
        }
        let mut extents = Vec::with_capacity(trailer.extents as usize);
        let (mut rest, mut place) = (bytes, HEADER_BYTES as u64);
        for n in 0..trailer.extents {
            let described = take_entry(&mut rest, n)?;
            let extent = &described.extent;
            let blocks = Blocks::new(extent.offset, extent.stored_len, trailer.framing.block_bytes)
                .filter(|blocks| extent.offset == place && blocks.end() <= trailer.footer_offset);
            let Some(blocks) = blocks else {
                let (offset, len) = (extent.offset, extent.stored_len);
                return Err(damage(
                    "footer",
                    format!("extent {n} of {len} bytes lies at {offset}"),
                ));
            };
            place = blocks.end();
            extents.push(described);
        }
        if place != trailer.footer_offset {
            return Err(damage("footer", format!("no extent holds the bytes from {place} on")));
        }
        if rest.len() >= TRAILER_ALIGN || rest.iter().any(|&byte| byte != 0) {
            return Err(damage("footer", format!("{} bytes are left over", rest.len())));
        }
        Ok(Self { extents })
    }
}

fn take_entry(rest: &mut &[u8], n: u64) -> Result<Described> {
    let short = || damage("footer", format!("it ends in the entry of extent {n}"));
    let (entry, behind) = rest.split_first_chunk::<ENTRY_BYTES>().ok_or_else(short)?;
    let about_len = u32_at(entry, ENTRY_ABOUT_LEN) as usize;
    let (about, behind) = behind.split_at_checked(about_len).ok_or_else(short)?;
    *rest = behind;
    let mut digest = Digest([0; 32]);
    digest.0.copy_from_slice(&entry[ENTRY_DIGEST]);
    let codec = u32_at(entry, ENTRY_CODEC);
    let codec = u8::try_from(codec)
        .map_err(|_| damage("footer", format!("extent {n} has codec {codec}, above 255")))?;
    let extent = ExtentAt {
        digest,
        len: u64_at(entry, ENTRY_LEN),
        codec,
        offset: u64_at(entry, ENTRY_OFFSET),
        stored_len: u64_at(entry, ENTRY_STORED_LEN),
    };
    Ok(Described { extent, about: about.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::super::sealed::Framing;
    use super::*;

    fn footer(extents: &[(u64, u64, &[u8])], footer_offset: u64) -> (Vec<u8>, Trailer) {
        let mut bytes = Vec::new();
        for &(offset, stored_len, about) in extents {
            let digest = Digest::of(about);
            let extent = ExtentAt { digest, len: stored_len, codec: 0, offset, stored_len };
            push_entry(&mut bytes, &extent, about).unwrap();
        }
        pad(&mut bytes, footer_offset);
        let content_len = footer_offset + bytes.len() as u64 + 56;
        let framing = Framing { block_bytes: 10, seed: 0 };
        let (extents, footer_crc) = (extents.len() as u64, checksum(&bytes));
        (bytes, Trailer { footer_offset, content_len, extents, framing, footer_crc })
    }

    /// Do extents read back with what is said about them, the trailer's place kept?
    #[test]
    fn entries_read_back() {
        let (bytes, trailer) = footer(&[(28, 10, b"abc"), (42, 0, b""), (42, 11, b"d")], 61);
        let read = Footer::from_bytes(&bytes, &trailer).unwrap();
        let about: Vec<&[u8]> = read.extents.iter().map(|e| &e.about[..]).collect();
        assert_eq!(about, [&b"abc"[..], b"", b"d"]);
        assert_eq!(trailer.content_len % 8, 0);
    }

    /// May extents overlap, leave a hole, or lie behind the footer? A checksum made by an enemy fits.
    #[test]
    fn extents_must_tile_the_file() {
        for extents in [
            &[(28, 10, &b""[..]), (41, 11, b"")][..],
            &[(28, 10, b""), (43, 11, b"")],
            &[(28, 10, b"")],
            &[(28, 300, b"")],
            &[(28, u64::MAX, b"")],
            &[(0, 10, b""), (42, 11, b"")],
        ] {
            let (bytes, trailer) = footer(extents, 61);
            let refused = Footer::from_bytes(&bytes, &trailer).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Damage, "{extents:?}");
        }
    }

    /// Do lying counts and lengths fail before they allocate or read past the end?
    #[test]
    fn lying_counts_are_damage() {
        let (bytes, trailer) = footer(&[(28, 10, b"abc")], 42);
        for extents in [0, 2, u64::MAX] {
            assert!(Footer::from_bytes(&bytes, &Trailer { extents, ..trailer }).is_err());
        }
        for lie in [4u32, 200, u32::MAX] {
            let mut bytes = bytes.clone();
            bytes[ENTRY_ABOUT_LEN].copy_from_slice(&lie.to_le_bytes());
            let trailer = Trailer { footer_crc: checksum(&bytes), ..trailer };
            assert_eq!(Footer::from_bytes(&bytes, &trailer).is_ok(), lie == 4);
        }
    }
}
