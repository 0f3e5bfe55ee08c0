//! The journal's file header and frame header: where each field stands, and what makes one valid.
//!
//! A frame is `header, body, zeros up to the next multiple of 8`. Its header has a checksum of its
//! own, so that whoever looks for frames behind a tear pays for headers, not for bodies, and so that
//! what a header states (all below `synced_up_to` was durable when it was written) is known to be
//! true even when its body was lost.

use super::offsets::layout;
use crate::digest::{checksum, checksum_more};
use crate::ids::{CommitSeq, Epoch, OwnerId, StoreId};
use crate::protection::Protection;

/// The first bytes of a journal file.
pub const MAGIC: [u8; 8] = *b"sealjrnl";
/// The version that this build writes.
pub const VERSION: u32 = 1;
/// Frames start at multiples of this.
pub const FRAME_ALIGN: usize = 8;
/// The longest frame that any reader accepts, header included.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// Random bytes of one journal file. No frame of another file is valid in it.
pub type Salt = [u8; 16];

layout! {
    /// The file header: field, offset, width.
    HEADER_LAYOUT,
    /// Length of the file header. Every later version keeps these fields where they are.
    HEADER_BYTES:
    H_MAGIC "magic" 0 + 8,
    H_VERSION "version" 8 + 4,
    H_CHECKSUM "checksum" 12 + 4,
    H_STORE "store" 16 + 16,
    H_OWNER "owner" 32 + 16,
    H_SALT "salt" 48 + 16,
    H_EPOCH "epoch" 64 + 8,
    H_N "n" 72 + 8,
    H_COMMIT "commit" 80 + 8,
}

layout! {
    /// The frame header: field, offset, width. The body follows.
    FRAME_LAYOUT,
    /// Length of a frame header.
    FRAME_HEADER_BYTES:
    F_LENGTH "length" 0 + 4,
    F_CHECKSUM "header_checksum" 4 + 4,
    F_BODY_CHECKSUM "body_checksum" 8 + 4,
    F_KIND "kind" 12 + 1,
    F_SYNCED "synced_up_to" 13 + 8,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// One atomic group of records.
    Records,
    /// No record: it only states what is durable. The next frame takes its place.
    Synced,
    /// Written by a newer release.
    Unknown(u8),
}

impl FrameKind {
    fn to_byte(self) -> u8 {
        match self {
            Self::Records => 1,
            Self::Synced => 2,
            Self::Unknown(byte) => byte,
        }
    }

    fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Records,
            2 => Self::Synced,
            other => Self::Unknown(other),
        }
    }
}

/// The header of a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The store it belongs to.
    pub store: StoreId,
    /// The owner that wrote it.
    pub owner: OwnerId,
    /// Binds the frames to this file.
    pub salt: Salt,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// Its number among the owner's journals.
    pub n: u64,
    /// The highest commit known durable when it was born: a witness of the manifest's age.
    pub commit: CommitSeq,
}

/// Why a file header was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderFault {
    /// The file ends before its header does.
    Short,
    /// It does not begin with [`MAGIC`].
    Magic,
    /// Its checksum is wrong.
    Checksum,
    /// It is whole, and of a version that this build does not read.
    Version(u32),
}

fn u32_at(bytes: &[u8], at: std::ops::Range<usize>) -> u32 {
    let mut le = [0; 4];
    le.copy_from_slice(&bytes[at]);
    u32::from_le_bytes(le)
}

fn u64_at(bytes: &[u8], at: std::ops::Range<usize>) -> u64 {
    let mut le = [0; 8];
    le.copy_from_slice(&bytes[at]);
    u64::from_le_bytes(le)
}

fn id_at(bytes: &[u8], at: std::ops::Range<usize>) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[at]);
    id
}

impl Header {
    /// The bytes of this header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[H_MAGIC].copy_from_slice(&MAGIC);
        bytes[H_VERSION].copy_from_slice(&VERSION.to_le_bytes());
        bytes[H_STORE].copy_from_slice(&self.store.0);
        bytes[H_OWNER].copy_from_slice(&self.owner.0);
        bytes[H_SALT].copy_from_slice(&self.salt);
        bytes[H_EPOCH].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[H_N].copy_from_slice(&self.n.to_le_bytes());
        bytes[H_COMMIT].copy_from_slice(&self.commit.0.to_le_bytes());
        let sum = header_checksum(&bytes);
        bytes[H_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a header from the first bytes of a file.
    ///
    /// # Errors
    /// The fault that makes the bytes no header of ours. A newer version is told from damage by the
    /// checksum, which covers the version.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(HeaderFault::Short)?;
        if bytes[H_MAGIC] != MAGIC {
            return Err(HeaderFault::Magic);
        }
        if u32_at(bytes, H_CHECKSUM) != header_checksum(bytes) {
            return Err(HeaderFault::Checksum);
        }
        match u32_at(bytes, H_VERSION) {
            VERSION => Ok(Self {
                store: StoreId(id_at(bytes, H_STORE)),
                owner: OwnerId(id_at(bytes, H_OWNER)),
                salt: id_at(bytes, H_SALT),
                epoch: Epoch(u64_at(bytes, H_EPOCH)),
                n: u64_at(bytes, H_N),
                commit: CommitSeq(u64_at(bytes, H_COMMIT)),
            }),
            other => Err(HeaderFault::Version(other)),
        }
    }
}

fn header_checksum(bytes: &[u8; HEADER_BYTES]) -> u32 {
    checksum_more(checksum(&bytes[..H_CHECKSUM.start]), &bytes[H_CHECKSUM.end..])
}

/// The header of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of header and body, without the padding.
    pub len: u32,
    /// What it is.
    pub kind: FrameKind,
    /// Checksum of the body and its padding.
    pub body_checksum: u32,
    /// All of the file below this was durable when the frame was written.
    pub synced_up_to: u64,
}

/// `len` rounded up to the next place where a frame may start.
pub fn padded(len: usize) -> usize {
    len.next_multiple_of(FRAME_ALIGN)
}

/// The checksum that a frame with this body carries for it.
pub fn body_checksum(body: &[u8]) -> u32 {
    let len = FRAME_HEADER_BYTES + body.len();
    checksum_more(checksum(body), &[0; FRAME_ALIGN][..padded(len) - len])
}

impl FrameHeader {
    /// The header of a frame with a body of `body_len` bytes.
    pub fn new(kind: FrameKind, body_len: usize, body_checksum: u32, synced_up_to: u64) -> Self {
        // A body is bounded far below 4 GiB; a longer one would yield a header that never decodes.
        let len = u32::try_from(FRAME_HEADER_BYTES + body_len).unwrap_or(0);
        Self { len, kind, body_checksum, synced_up_to }
    }

    /// Its bytes, at `offset` of the file with this salt.
    pub fn encode(&self, salt: &Salt, offset: u64) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[F_LENGTH].copy_from_slice(&self.len.to_le_bytes());
        bytes[F_BODY_CHECKSUM].copy_from_slice(&self.body_checksum.to_le_bytes());
        bytes[F_KIND].copy_from_slice(&[self.kind.to_byte()]);
        bytes[F_SYNCED].copy_from_slice(&self.synced_up_to.to_le_bytes());
        let sum = frame_checksum(&bytes, salt, offset);
        bytes[F_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the header that stands at `offset`, or `None` where none of this file's frames starts.
    pub fn decode(
        bytes: &[u8; FRAME_HEADER_BYTES],
        salt: &Salt,
        offset: u64,
    ) -> Option<FrameHeader> {
        let header = Self {
            len: u32_at(bytes, F_LENGTH),
            kind: FrameKind::from_byte(bytes[F_KIND.start]),
            body_checksum: u32_at(bytes, F_BODY_CHECKSUM),
            synced_up_to: u64_at(bytes, F_SYNCED),
        };
        let len = header.len as usize;
        // P9: a frame states nothing about what lies at or behind itself.
        if !(FRAME_HEADER_BYTES..=FRAME_BYTES_MAX).contains(&len) || header.synced_up_to > offset {
            return None;
        }
        let fits = u32_at(bytes, F_CHECKSUM) == frame_checksum(bytes, salt, offset);
        (fits || !Protection::FrameChecksum.is_on()).then_some(header)
    }

    /// Length of the body.
    pub fn body_len(&self) -> usize {
        (self.len as usize).saturating_sub(FRAME_HEADER_BYTES)
    }

    /// Length of the frame on disk, padding included.
    pub fn padded_len(&self) -> usize {
        padded(self.len as usize)
    }

    /// Whether `body_and_padding` is what this header was written for.
    pub fn fits(&self, body_and_padding: &[u8]) -> bool {
        // P6: nothing of a frame is returned before this.
        checksum(body_and_padding) == self.body_checksum || !Protection::FrameChecksum.is_on()
    }
}

/// Binds a header to its file (the salt), to its place in it, and to its body (whose checksum it
/// holds): neither a stale frame of a file that had these blocks before nor a copy elsewhere passes.
fn frame_checksum(bytes: &[u8; FRAME_HEADER_BYTES], salt: &Salt, offset: u64) -> u32 {
    let salted = if Protection::FrameSalt.is_on() { checksum(salt) } else { 0 };
    let placed = checksum_more(salted, &offset.to_le_bytes());
    let upto = checksum_more(placed, &bytes[..F_CHECKSUM.start]);
    checksum_more(upto, &bytes[F_CHECKSUM.end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            store: StoreId([1; 16]),
            owner: OwnerId([2; 16]),
            salt: [3; 16],
            epoch: Epoch(4),
            n: 5,
            commit: CommitSeq(6),
        }
    }

    /// Does any flipped bit of a file header pass, or is it called a newer format?
    #[test]
    fn a_flipped_bit_of_the_file_header_is_never_a_version() {
        let good = header().encode();
        assert_eq!(Header::decode(&good), Ok(header()));
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let fault = Header::decode(&bytes).unwrap_err();
            assert!(matches!(fault, HeaderFault::Magic | HeaderFault::Checksum), "bit {bit}");
        }
        assert_eq!(Header::decode(&good[..HEADER_BYTES - 1]), Err(HeaderFault::Short));
    }

    /// Is a newer version, written whole, told apart from damage?
    #[test]
    fn a_newer_version_is_not_called_damage() {
        let mut bytes = header().encode();
        bytes[H_VERSION].copy_from_slice(&(VERSION + 1).to_le_bytes());
        let sum = header_checksum(&bytes);
        bytes[H_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Header::decode(&bytes), Err(HeaderFault::Version(VERSION + 1)));
    }

    /// Does a frame pass with any bit flipped, with another salt, or at another place?
    #[test]
    fn a_frame_is_bound_to_its_bytes_salt_and_place() {
        let body = b"one frame";
        let made = FrameHeader::new(FrameKind::Records, body.len(), body_checksum(body), 88);
        let good = made.encode(&[7; 16], 96);
        assert_eq!(FrameHeader::decode(&good, &[7; 16], 96), Some(made));
        assert_eq!(FrameHeader::decode(&good, &[8; 16], 96), None);
        assert_eq!(FrameHeader::decode(&good, &[7; 16], 104), None);
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::decode(&bytes, &[7; 16], 96), None, "bit {bit}");
        }
        let mut tail = body.to_vec();
        tail.resize(made.padded_len() - FRAME_HEADER_BYTES, 0);
        assert!(made.fits(&tail));
        for bit in 0..tail.len() * 8 {
            tail[bit / 8] ^= 1 << (bit % 8);
            assert!(!made.fits(&tail), "bit {bit}");
            tail[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// Can a frame state that bytes behind itself are durable? Can a length of 0 be a frame?
    #[test]
    fn impossible_headers_are_none_even_with_a_right_checksum() {
        let salt = [7; 16];
        for (len, synced) in [(0, 0), (20, 0), (21, 97), (FRAME_BYTES_MAX as u32 + 1, 0)] {
            let made = FrameHeader {
                len,
                kind: FrameKind::Records,
                body_checksum: 0,
                synced_up_to: synced,
            };
            assert_eq!(FrameHeader::decode(&made.encode(&salt, 96), &salt, 96), None);
        }
        assert_eq!(FrameHeader::decode(&[0; FRAME_HEADER_BYTES], &[0; 16], 0), None);
    }
}
