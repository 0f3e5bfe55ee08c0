//! A part's content: a header that says how much there must be, then one frame for each batch.

use super::record::Fixed;
use crate::digest::{Digest, checksum, checksum_more};
use crate::error::{Error, ErrorKind, Result};
use crate::format::offsets::layout;
use crate::ids::{Sequence, StageId, StreamId};

layout! {
    /// A part's header: field, offset, width.
    PART_HEADER_LAYOUT,
    /// Length of a part's header.
    PART_HEADER_BYTES:
    P_MAGIC "part_magic" 0 + 8,
    P_VERSION "part_version" 8 + 4,
    P_CHECKSUM "part_checksum" 12 + 4,
    P_STAGE "stage" 16 + 8,
    P_INTAKE "intake" 24 + 8,
    P_FIRST "first" 32 + 8,
    P_UPTO "upto" 40 + 8,
    P_BATCHES "batches" 48 + 8,
    P_LENGTH "part_length" 56 + 8,
}

layout! {
    /// What stands before each body: field, offset, width.
    PART_FRAME_LAYOUT,
    /// Length of what stands before a body.
    PART_FRAME_BYTES:
    F_LENGTH "body_length" 0 + 4,
    F_CHECKSUM "frame_checksum" 4 + 4,
    F_BODY_CHECKSUM "frame_body_checksum" 8 + 4,
    F_KIND "frame_kind" 12 + 1,
    F_SEQUENCE "sequence" 13 + 8,
}

/// The longest content of a part: beyond it a seal begins another one.
pub const PART_BYTES_MAX: usize = 1 << 30;
/// Frames start at multiples of this.
pub(super) const ALIGN: usize = 8;

const MAGIC: [u8; 8] = *b"sealpart";
const VERSION: u32 = 1;

pub(super) const INLINE: u8 = 1;
pub(super) const OBJECT: u8 = 2;
pub(super) const DIGEST_BYTES: usize = 32;
/// A digest and a length stand before the head of a batch that lies in an object.
pub(super) const NAMED_BYTES: usize = DIGEST_BYTES + 8;

/// What a part says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartHeader {
    /// Its stage.
    pub stage: StageId,
    /// The stream that its batches were accepted in.
    pub intake: StreamId,
    /// The first record of that stream that may be here.
    pub first: Sequence,
    /// The record behind the last that may be.
    pub upto: Sequence,
    /// Its batches.
    pub batches: u64,
    /// Its length, this header included.
    pub len: u64,
}

impl PartHeader {
    fn encode(&self) -> [u8; PART_HEADER_BYTES] {
        let mut bytes = [0; PART_HEADER_BYTES];
        bytes[P_MAGIC].copy_from_slice(&MAGIC);
        bytes[P_VERSION].copy_from_slice(&VERSION.to_le_bytes());
        bytes[P_STAGE].copy_from_slice(&self.stage.0.to_le_bytes());
        bytes[P_INTAKE].copy_from_slice(&self.intake.0.to_le_bytes());
        bytes[P_FIRST].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[P_UPTO].copy_from_slice(&self.upto.0.to_le_bytes());
        bytes[P_BATCHES].copy_from_slice(&self.batches.to_le_bytes());
        bytes[P_LENGTH].copy_from_slice(&self.len.to_le_bytes());
        let sum = header_checksum(&bytes);
        bytes[P_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header at the beginning of a part, and what its frames' checksums begin with.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat` for one of a later release.
    pub(super) fn decode(part: &[u8]) -> Result<(Self, u32)> {
        let wrong = |cause: String| Error::damage("decode", "part", cause);
        let Some((bytes, _)) = part.split_first_chunk::<PART_HEADER_BYTES>() else {
            return Err(wrong(format!("{} bytes hold no header", part.len())));
        };
        if bytes.field::<8>(P_MAGIC) != MAGIC {
            return Err(wrong("it does not begin as a part does".to_owned()));
        }
        let sum = u32::from_le_bytes(bytes.field(P_CHECKSUM));
        if sum != header_checksum(bytes) {
            return Err(wrong("its header's checksum does not fit".to_owned()));
        }
        let version = u32::from_le_bytes(bytes.field(P_VERSION));
        if version != VERSION {
            let cause = format!("it has version {version}, this release knows {VERSION}");
            return Err(Error::new(ErrorKind::NewerFormat, "decode", "part", cause));
        }
        let number = |at| u64::from_le_bytes(bytes.field(at));
        let header = Self {
            stage: StageId(number(P_STAGE)),
            intake: StreamId(number(P_INTAKE)),
            first: Sequence(number(P_FIRST)),
            upto: Sequence(number(P_UPTO)),
            batches: number(P_BATCHES),
            len: number(P_LENGTH),
        };
        Ok((header, sum))
    }
}

fn header_checksum(bytes: &[u8; PART_HEADER_BYTES]) -> u32 {
    let (before, rest) = bytes.split_at(P_CHECKSUM.start);
    let behind = rest.get(P_CHECKSUM.len()..).unwrap_or_default();
    checksum_more(checksum(before), behind)
}

/// What stands before a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameHead {
    pub(super) len: usize,
    pub(super) body_checksum: u32,
    pub(super) kind: u8,
    pub(super) sequence: Sequence,
}

impl FrameHead {
    fn encode(&self, seed: u32) -> [u8; PART_FRAME_BYTES] {
        let mut bytes = [0; PART_FRAME_BYTES];
        bytes[F_LENGTH].copy_from_slice(&(self.len as u32).to_le_bytes());
        bytes[F_BODY_CHECKSUM].copy_from_slice(&self.body_checksum.to_le_bytes());
        bytes[F_KIND].copy_from_slice(&[self.kind]);
        bytes[F_SEQUENCE].copy_from_slice(&self.sequence.0.to_le_bytes());
        let sum = frame_checksum(&bytes, seed);
        bytes[F_CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// `None` where no frame of this part begins.
    pub(super) fn decode(bytes: &[u8], seed: u32) -> Option<(Self, &[u8])> {
        let (bytes, rest) = bytes.split_first_chunk::<PART_FRAME_BYTES>()?;
        let sum = u32::from_le_bytes(bytes.field(F_CHECKSUM));
        let [kind] = bytes.field(F_KIND);
        let head = Self {
            len: usize::try_from(u32::from_le_bytes(bytes.field(F_LENGTH))).ok()?,
            body_checksum: u32::from_le_bytes(bytes.field(F_BODY_CHECKSUM)),
            kind,
            sequence: Sequence(u64::from_le_bytes(bytes.field(F_SEQUENCE))),
        };
        (sum == frame_checksum(bytes, seed)).then_some((head, rest))
    }
}

fn frame_checksum(bytes: &[u8; PART_FRAME_BYTES], seed: u32) -> u32 {
    let (before, rest) = bytes.split_at(F_CHECKSUM.start);
    let behind = rest.get(F_CHECKSUM.len()..).unwrap_or_default();
    checksum_more(checksum_more(seed, before), behind)
}

/// The length of a frame with a body of `len` bytes.
pub(super) fn frame_len(len: usize) -> usize {
    (PART_FRAME_BYTES + len).next_multiple_of(ALIGN)
}

/// Puts the content of a part together.
#[derive(Debug)]
pub struct PartBuilder {
    header: PartHeader,
    frames: Vec<(FrameHead, Vec<u8>)>,
}

impl PartBuilder {
    /// Begins the part of the records `first` up to `upto` of `intake` that have one key.
    pub fn new(stage: StageId, intake: StreamId, first: Sequence, upto: Sequence) -> Self {
        let len = PART_HEADER_BYTES as u64;
        let header = PartHeader { stage, intake, first, upto, batches: 0, len };
        Self { header, frames: Vec::new() }
    }

    /// Takes in a batch by its whole record.
    ///
    /// # Errors
    /// `LimitExceeded` when the part would be longer than [`PART_BYTES_MAX`].
    pub fn push(&mut self, sequence: Sequence, record: &[u8]) -> Result<()> {
        self.add(INLINE, sequence, record.to_vec())
    }

    /// Takes in a batch whose record lies in an object, by that object's name and the record's `head`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_named(
        &mut self,
        sequence: Sequence,
        digest: &Digest,
        len: u64,
        head: &[u8],
    ) -> Result<()> {
        self.add(OBJECT, sequence, [&digest.0[..], &len.to_le_bytes(), head].concat())
    }

    fn add(&mut self, kind: u8, sequence: Sequence, body: Vec<u8>) -> Result<()> {
        let len = self.header.len + frame_len(body.len()) as u64;
        if len > PART_BYTES_MAX as u64 {
            let cause = format!("{len} bytes of batches, {PART_BYTES_MAX} allowed");
            return Err(Error::new(ErrorKind::LimitExceeded, "seal", "part", cause));
        }
        self.header.len = len;
        self.header.batches += 1;
        let body_checksum = checksum(&body);
        self.frames.push((FrameHead { len: body.len(), body_checksum, kind, sequence }, body));
        Ok(())
    }

    /// Length of what [`finish`](Self::finish) returns.
    pub fn content_len(&self) -> u64 {
        self.header.len
    }

    /// The content.
    pub fn finish(self) -> Vec<u8> {
        let header = self.header.encode();
        let seed = header_checksum(&header);
        let mut bytes = Vec::with_capacity(self.header.len as usize);
        bytes.extend_from_slice(&header);
        for (head, body) in &self.frames {
            bytes.extend_from_slice(&head.encode(seed));
            bytes.extend_from_slice(body);
            bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        }
        bytes
    }
}
