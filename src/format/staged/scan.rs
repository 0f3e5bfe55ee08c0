//! Scan: the whole batches of a part, and what stands behind the last of them.
//!
//! A part that was written and lost its end is *torn*: nothing whole stands behind the tear, and what
//! stands before it is used. Anything else that does not read is *damaged*, and none of it is used.

use super::part::{ALIGN, DIGEST_BYTES, FrameHead, INLINE, NAMED_BYTES, OBJECT, PartHeader};
use super::part::{PART_HEADER_BYTES, frame_len};
use super::record::{BatchHead, decode_batch, decode_head};
use crate::digest::{Digest, checksum};
use crate::error::{Error, Result};
use crate::ids::Sequence;

/// Where the bytes of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// Here.
    Inline(&'a [u8]),
    /// In an object that holds the batch's whole record: behind its first `skip` bytes.
    Object {
        /// The object's digest.
        digest: Digest,
        /// Its length.
        len: u64,
        /// Length of the record's head.
        skip: u64,
    },
}

/// A batch of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartFrame<'a> {
    /// Its record's position in the intake.
    pub sequence: Sequence,
    /// What it is.
    pub head: BatchHead<'a>,
    /// Its bytes.
    pub content: Content<'a>,
}

impl PartFrame<'_> {
    /// Bytes of the batch.
    pub fn len(&self) -> u64 {
        match self.content {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::Object { len, skip, .. } => len.saturating_sub(skip),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a part ends.
#[derive(Debug, Clone)]
pub enum PartEnd {
    /// As its header says.
    Whole,
    /// It lost its end: from `offset` on nothing is whole.
    Torn {
        /// Where the first frame begins that is not whole.
        offset: u64,
        /// Bytes from there on.
        bytes: u64,
    },
    /// Something in it does not read.
    Damaged {
        /// Where that frame begins.
        offset: u64,
        /// Why.
        cause: Error,
    },
}

/// What a part's bytes hold.
#[derive(Debug, Clone)]
pub struct PartScan<'a> {
    /// What it says of itself; `None` where not even that is there.
    pub header: Option<PartHeader>,
    /// Its whole batches before the end, in order.
    pub frames: Vec<PartFrame<'a>>,
    /// How it ends.
    pub end: PartEnd,
}

/// Reads a part as far as it is whole. Its first damage ends it: what is behind is not looked at.
pub fn scan_part(part: &[u8]) -> PartScan<'_> {
    let nothing = |end| PartScan { header: None, frames: Vec::new(), end };
    let (header, seed) = match PartHeader::decode(part) {
        Ok(decoded) => decoded,
        // Nothing, less than a header, or a header that never reached the disk.
        Err(_) if part.len() < PART_HEADER_BYTES || part.iter().all(|byte| *byte == 0) => {
            return nothing(PartEnd::Torn { offset: 0, bytes: part.len() as u64 });
        }
        Err(cause) => return nothing(PartEnd::Damaged { offset: 0, cause }),
    };
    let mut scan = PartScan { header: Some(header), frames: Vec::new(), end: PartEnd::Whole };
    let mut offset = PART_HEADER_BYTES;
    scan.end = loop {
        let rest = part.get(offset..).unwrap_or_default();
        if rest.is_empty() {
            break end_of(&header, &scan.frames, offset);
        }
        match frame_at(rest, seed) {
            Found::Frame(head, body) => match batch_of(&header, &scan.frames, &head, body) {
                Ok(frame) => {
                    scan.frames.push(frame);
                    offset += frame_len(head.len);
                }
                Err(cause) => break PartEnd::Damaged { offset: offset as u64, cause },
            },
            Found::Nothing => break tear_or_damage(&header, part, offset, seed),
        }
    };
    scan
}

enum Found<'a> {
    Frame(FrameHead, &'a [u8]),
    Nothing,
}

/// A whole frame, padding included.
fn frame_at(bytes: &[u8], seed: u32) -> Found<'_> {
    let Some((head, rest)) = FrameHead::decode(bytes, seed) else { return Found::Nothing };
    match rest.split_at_checked(head.len) {
        Some((body, _))
            if checksum(body) == head.body_checksum && bytes.len() >= frame_len(head.len) =>
        {
            Found::Frame(head, body)
        }
        _ => Found::Nothing,
    }
}

/// The batch in a frame whose checksums fit: what does not decode now is no accident of the disk.
fn batch_of<'a>(
    header: &PartHeader,
    before: &[PartFrame<'_>],
    head: &FrameHead,
    body: &'a [u8],
) -> Result<PartFrame<'a>> {
    let wrong = |cause: &str| Error::damage("decode", "part", cause);
    let sequence = head.sequence;
    let is_behind = before.last().is_none_or(|last| last.sequence < sequence);
    if !is_behind || sequence < header.first || sequence >= header.upto {
        return Err(wrong("a batch is not where its number belongs"));
    }
    match head.kind {
        INLINE => {
            let (head, bytes) = decode_batch(body)?;
            Ok(PartFrame { sequence, head, content: Content::Inline(bytes) })
        }
        OBJECT => {
            let Some((named, record)) = body.split_first_chunk::<NAMED_BYTES>() else {
                return Err(wrong("a batch in an object is not named"));
            };
            let (digest, len) = named.split_at(DIGEST_BYTES);
            let (mut name, mut number) = ([0; DIGEST_BYTES], [0; 8]);
            name.copy_from_slice(digest);
            number.copy_from_slice(len);
            let len = u64::from_le_bytes(number);
            let (head, used) = decode_head(record)?;
            let skip = used as u64;
            if used != record.len() || skip > len {
                return Err(wrong("a batch in an object has another head"));
            }
            let content = Content::Object { digest: Digest(name), len, skip };
            Ok(PartFrame { sequence, head, content })
        }
        other => Err(wrong(&format!("frame kind {other} is not known"))),
    }
}

/// All bytes were read: whether that is all that the header says.
fn end_of(header: &PartHeader, frames: &[PartFrame<'_>], offset: usize) -> PartEnd {
    let (batches, offset) = (frames.len() as u64, offset as u64);
    if batches == header.batches && offset == header.len {
        return PartEnd::Whole;
    }
    if batches < header.batches && offset < header.len {
        return PartEnd::Torn { offset, bytes: 0 };
    }
    let cause = format!(
        "{batches} batches in {offset} bytes, its header says {} in {}",
        header.batches, header.len
    );
    PartEnd::Damaged { offset, cause: Error::damage("decode", "part", cause) }
}

/// No whole frame begins at `offset`: a tear, if none does behind it either.
fn tear_or_damage(header: &PartHeader, part: &[u8], offset: usize, seed: u32) -> PartEnd {
    let damaged = |cause: &str| PartEnd::Damaged {
        offset: offset as u64,
        cause: Error::damage("decode", "part", cause),
    };
    if part.len() as u64 > header.len {
        return damaged("it is longer than its header says");
    }
    let mut at = offset + ALIGN;
    while let Some(rest) = part.get(at..).filter(|rest| !rest.is_empty()) {
        if let Found::Frame(..) = frame_at(rest, seed) {
            return damaged("bytes in its middle do not read, and whole batches are behind them");
        }
        // Behind the body that a header states, so that no byte is summed twice.
        at += FrameHead::decode(rest, seed).map_or(ALIGN, |(head, _)| frame_len(head.len));
    }
    PartEnd::Torn { offset: offset as u64, bytes: (part.len() - offset) as u64 }
}

#[cfg(test)]
mod tests {
    use super::super::{Form, PartBuilder, ProducerMark, encode_batch};
    use super::*;
    use crate::ids::{StageId, StreamId};
    use proptest::prelude::*;

    fn record(n: u8, len: usize) -> Vec<u8> {
        let mark =
            ProducerMark { name: "p", sequence: n.into(), position: &[n], fingerprint: [n; 16] };
        let head =
            BatchHead { form: Form::Opaque, rows: 1, at: None, key: b"k", producer: Some(mark) };
        encode_batch(&head, &vec![n; len]).unwrap()
    }

    /// A part of batches of these lengths, and where each of its frames ends.
    fn part(lens: &[usize]) -> (Vec<u8>, Vec<usize>) {
        let (stage, intake, upto) = (StageId(3), StreamId(4), Sequence(100 + lens.len() as u64));
        let mut builder = PartBuilder::new(stage, intake, Sequence(100), upto);
        let mut ends = vec![PART_HEADER_BYTES];
        for (n, len) in lens.iter().enumerate() {
            let sequence = Sequence(100 + n as u64);
            let record = record(n as u8, *len);
            match n % 3 {
                2 => {
                    let head = &record[..record.len() - len];
                    let digest = Digest::of(&record);
                    builder.push_named(sequence, &digest, record.len() as u64, head).unwrap();
                }
                _ => builder.push(sequence, &record).unwrap(),
            }
            ends.push(builder.content_len() as usize);
        }
        (builder.finish(), ends)
    }

    /// Is the wire format the frozen one?
    #[test]
    fn golden_vector() {
        let (bytes, _) = part(&[2, 1, 4]);
        assert_eq!(Digest::of(&bytes).to_string(), GOLDEN_PART);
        assert_eq!(&bytes[..12], b"sealpart\x01\0\0\0");
    }

    const GOLDEN_PART: &str = "f1dab7103bdf4bde6418947821a6fa12947c4af059fe63120e94d065a25e57e6";

    /// Is a part without its end torn, with each whole batch before that, wherever it was cut?
    #[test]
    fn stg14_every_cut_is_a_tear_behind_the_whole_batches() {
        let (bytes, ends) = part(&[5, 0, 9, 40]);
        for len in 0..bytes.len() {
            for zeros in [false, true] {
                let mut cut = bytes[..len].to_vec();
                if zeros {
                    cut.resize(bytes.len(), 0);
                }
                let whole = ends.iter().filter(|end| **end <= len).count().saturating_sub(1);
                let scan = scan_part(&cut);
                // Zeros that were zeros before make no difference.
                if zeros && cut == bytes {
                    continue;
                }
                if zeros && len > 0 && cut[..PART_HEADER_BYTES] != bytes[..PART_HEADER_BYTES] {
                    assert!(scan.header.is_none() && scan.frames.is_empty(), "{len}");
                    continue;
                }
                assert!(matches!(scan.end, PartEnd::Torn { .. }), "{len} {zeros} {:?}", scan.end);
                assert!(scan.frames.len() >= whole && scan.frames.len() <= whole + 1, "{len}");
            }
        }
    }

    /// Is a flipped bit before a whole batch damage, and in the last one a tear; is none overlooked?
    #[test]
    fn stg15_damage_in_the_middle_is_no_tear() {
        let (bytes, ends) = part(&[5, 3, 9, 40]);
        let last = ends[ends.len() - 2];
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let scan = scan_part(&flipped);
            match scan.end {
                PartEnd::Damaged { .. } => assert!(bit / 8 < last, "byte {}", bit / 8),
                PartEnd::Torn { offset, .. } => {
                    assert!(offset as usize == last && scan.frames.len() == 3, "byte {}", bit / 8);
                }
                // Padding is all that no checksum covers.
                PartEnd::Whole => assert_eq!(scan.frames.len(), 4),
            }
        }
    }

    /// Is a frame of another part, though whole, no frame of this one?
    #[test]
    fn a_frame_of_another_part_is_not_taken_for_one_of_this() {
        let (inner, _) = part(&[5, 3, 9]);
        let mut builder = PartBuilder::new(StageId(3), StreamId(4), Sequence(0), Sequence(9));
        let head = BatchHead { form: Form::Opaque, rows: 1, at: None, key: b"k", producer: None };
        builder.push(Sequence(0), &encode_batch(&head, &inner).unwrap()).unwrap();
        let bytes = builder.finish();
        let cut = &bytes[..bytes.len() - ALIGN];
        assert!(matches!(scan_part(cut).end, PartEnd::Torn { .. }));
    }

    /// Do whole frames that say what they cannot say end in damage?
    #[test]
    fn stg15_whole_frames_that_lie_are_damage() {
        let build = |sequences: &[u64], record: &[u8]| {
            let mut builder = PartBuilder::new(StageId(3), StreamId(4), Sequence(10), Sequence(12));
            for sequence in sequences {
                builder.push(Sequence(*sequence), record).unwrap();
            }
            builder.finish()
        };
        let good = record(1, 3);
        assert!(matches!(scan_part(&build(&[10, 11], &good)).end, PartEnd::Whole));
        for sequences in [&[9][..], &[12], &[10, 10], &[11, 10]] {
            let bytes = build(sequences, &good);
            assert!(matches!(scan_part(&bytes).end, PartEnd::Damaged { .. }), "{sequences:?}");
        }
        let scan_of_bad = build(&[10, 11], b"no batch");
        let scan = scan_part(&scan_of_bad);
        assert!(matches!(scan.end, PartEnd::Damaged { .. }) && scan.frames.is_empty());
        let mut longer = build(&[10], &good);
        longer.extend([0; 8]);
        assert!(matches!(scan_part(&longer).end, PartEnd::Damaged { .. }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Does every part come back as it was put together?
        #[test]
        fn parts_come_back(lens in prop::collection::vec(0usize..300, 0..12)) {
            let (bytes, ends) = part(&lens);
            prop_assert_eq!(*ends.last().unwrap(), bytes.len());
            let scan = scan_part(&bytes);
            prop_assert!(matches!(scan.end, PartEnd::Whole), "{:?}", scan.end);
            prop_assert_eq!(scan.frames.len(), lens.len());
            for (n, (frame, len)) in scan.frames.iter().zip(&lens).enumerate() {
                prop_assert_eq!(frame.len(), *len as u64);
                prop_assert_eq!(frame.head.producer.unwrap().sequence, n as u64);
                if let Content::Inline(bytes) = frame.content {
                    prop_assert!(bytes.iter().all(|byte| *byte == n as u8));
                }
            }
        }

        /// Do hostile bytes, a true header before them or not, end in an end?
        #[test]
        fn hostile_parts_end(
            tail in prop::collection::vec(any::<u8>(), 0..400),
            keep in 0usize..200,
        ) {
            let (mut bytes, _) = part(&[5, 3, 9]);
            bytes.truncate(keep);
            bytes.extend(tail);
            let scan = scan_part(&bytes);
            prop_assert!(scan.frames.len() <= 3);
        }
    }
}
