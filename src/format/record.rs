//! The body of a records frame: one atomic group of records.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::ids::{Generation, Sequence, StreamId};

/// Field, offset, width of what stands before the payload of each record. A body is the number of
/// its records (4 bytes), then the records, each with its payload behind it.
pub const RECORD_LAYOUT: &[(&str, usize, usize)] = &[
    ("stream", 0, 8),
    ("generation", 8, 4),
    ("sequence", 12, 8),
    ("payload_kind", 20, 1),
    ("payload_length", 21, 8),
];
/// Length of what stands before a payload.
pub const RECORD_HEADER_BYTES: usize = 29;
/// Length of the number of records.
pub const COUNT_BYTES: usize = 4;

const INLINE: u8 = 1;
const OBJECT: u8 = 2;
const DIGEST_BYTES: usize = 32;

/// Where a record belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its stream.
    pub stream: StreamId,
    /// The stream's generation when it was accepted.
    pub generation: Generation,
    /// Its position in the stream.
    pub sequence: Sequence,
}

/// Bytes that many may hold, or a part of such bytes, which keeps all of them.
#[derive(Clone)]
pub struct SharedBytes {
    whole: Arc<[u8]>,
    range: Range<usize>,
}

impl SharedBytes {
    /// What `range` is of `whole`; nothing where it is none of it.
    pub fn part(whole: Arc<[u8]>, range: Range<usize>) -> Self {
        let range = if whole.get(range.clone()).is_some() { range } else { 0..0 };
        Self { whole, range }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }
}

impl<B: Into<Arc<[u8]>>> From<B> for SharedBytes {
    fn from(bytes: B) -> Self {
        let whole = bytes.into();
        let range = 0..whole.len();
        Self { whole, range }
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// What a record holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The bytes themselves.
    Inline(SharedBytes),
    /// The name of an object that was sealed before.
    Object {
        /// Its digest.
        digest: Digest,
        /// Its length.
        len: u64,
    },
}

/// One sample of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its stream.
    pub stream: StreamId,
    /// The stream's generation when it was accepted.
    pub generation: Generation,
    /// Its position in the stream.
    pub sequence: Sequence,
    /// What it holds.
    pub payload: Payload,
}

impl Payload {
    /// Bytes that it takes in memory: those of an object are not here.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Object { .. } => DIGEST_BYTES as u64,
        }
    }
}

impl Record {
    /// Where it belongs.
    pub fn place(&self) -> Place {
        let Self { stream, generation, sequence, .. } = *self;
        Place { stream, generation, sequence }
    }

    fn encoded_len(&self) -> usize {
        RECORD_HEADER_BYTES
            + match &self.payload {
                Payload::Inline(bytes) => bytes.len(),
                Payload::Object { .. } => DIGEST_BYTES,
            }
    }
}

/// Length of the body that [`encode_body`] makes of `records`.
pub fn body_len(records: &[Record]) -> usize {
    COUNT_BYTES + records.iter().map(Record::encoded_len).sum::<usize>()
}

/// A body up to this length is put together without memory of its own.
const SHORT_BODY: usize = 512;

/// The body of the frame that holds one record with these bytes, and they as a part of it: one
/// allocation for a short one.
pub fn encode_single(place: &Place, payload: &[u8]) -> (Arc<[u8]>, SharedBytes) {
    let start = COUNT_BYTES + RECORD_HEADER_BYTES;
    let mut head = [0; COUNT_BYTES + RECORD_HEADER_BYTES];
    head[..COUNT_BYTES].copy_from_slice(&1u32.to_le_bytes());
    put_header(&mut head[COUNT_BYTES..], place, INLINE, payload.len() as u64);
    let len = start + payload.len();
    let mut short = [0; SHORT_BODY];
    let body: Arc<[u8]> = match short.get_mut(..len) {
        Some(short) => {
            short[..start].copy_from_slice(&head);
            short[start..].copy_from_slice(payload);
            Arc::from(&*short)
        }
        None => Arc::from([&head[..], payload].concat()),
    };
    let payload = SharedBytes { whole: Arc::clone(&body), range: start..len };
    (body, payload)
}

/// Length of the body of one record with a payload of `len` bytes.
pub fn single_len(len: usize) -> usize {
    COUNT_BYTES + RECORD_HEADER_BYTES + len
}

fn put_header(into: &mut [u8], place: &Place, kind: u8, len: u64) {
    into[..8].copy_from_slice(&place.stream.0.to_le_bytes());
    into[8..12].copy_from_slice(&place.generation.0.to_le_bytes());
    into[12..20].copy_from_slice(&place.sequence.0.to_le_bytes());
    into[20] = kind;
    into[21..RECORD_HEADER_BYTES].copy_from_slice(&len.to_le_bytes());
}

/// The body of the frame that holds `records`.
pub fn encode_body(records: &[Record]) -> Vec<u8> {
    let mut body = Vec::with_capacity(body_len(records));
    // A frame is bounded far below 2^32 records; a body with a wrong count would not decode.
    body.extend(u32::try_from(records.len()).unwrap_or(0).to_le_bytes());
    for record in records {
        let (kind, len, bytes): (u8, u64, &[u8]) = match &record.payload {
            Payload::Inline(bytes) => (INLINE, bytes.len() as u64, bytes),
            Payload::Object { digest, len } => (OBJECT, *len, &digest.0),
        };
        let mut header = [0; RECORD_HEADER_BYTES];
        put_header(&mut header, &record.place(), kind, len);
        body.extend_from_slice(&header);
        body.extend_from_slice(bytes);
    }
    body
}

/// The records in a body whose checksum was right.
///
/// # Errors
/// `Damage`: the bytes are no body of this format, which no accident makes of one.
pub fn decode_body(body: &[u8]) -> Result<Vec<Record>> {
    let mut rest = Rest(body);
    let count = u32::from_le_bytes(rest.array()?) as usize;
    if count == 0 || count > rest.0.len() / RECORD_HEADER_BYTES {
        return Err(wrong(format!("{count} records in {} bytes", body.len())));
    }
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        records.push(rest.record()?);
    }
    match rest.0.len() {
        0 => Ok(records),
        left => Err(wrong(format!("{left} bytes are left over"))),
    }
}

fn wrong(cause: impl std::fmt::Display) -> Error {
    Error::damage("decode", "the body of a frame", cause)
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(len).ok().and_then(|len| self.0.split_at_checked(len));
        let (taken, rest) = split.ok_or_else(|| wrong("a record reaches past the end"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    fn record(&mut self) -> Result<Record> {
        let stream = StreamId(u64::from_le_bytes(self.array()?));
        let generation = Generation(u32::from_le_bytes(self.array()?));
        let sequence = Sequence(u64::from_le_bytes(self.array()?));
        let [kind] = self.array()?;
        let len = u64::from_le_bytes(self.array()?);
        let payload = match kind {
            INLINE => Payload::Inline(self.take(len)?.into()),
            OBJECT => Payload::Object { digest: Digest(self.array()?), len },
            other => return Err(wrong(format!("payload kind {other} is not known"))),
        };
        Ok(Record { stream, generation, sequence, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = Record> {
        let payload = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..700).prop_map(|b| Payload::Inline(b.into())),
            (any::<[u8; 32]>(), any::<u64>())
                .prop_map(|(d, len)| Payload::Object { digest: Digest(d), len }),
        ];
        (any::<u64>(), any::<u32>(), any::<u64>(), payload).prop_map(|(s, g, q, payload)| Record {
            stream: StreamId(s),
            generation: Generation(g),
            sequence: Sequence(q),
            payload,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Does every group of records come back, and no shorter or longer body pass?
        #[test]
        fn groups_come_back_and_cut_ones_do_not(records in prop::collection::vec(record(), 1..20)) {
            let mut body = encode_body(&records);
            prop_assert_eq!(body.len(), body_len(&records));
            prop_assert_eq!(&decode_body(&body).unwrap(), &records);
            if let Payload::Inline(bytes) = &records[0].payload {
                let (single, part) = encode_single(&records[0].place(), bytes);
                prop_assert_eq!(&single[..], &encode_body(&records[..1])[..]);
                prop_assert_eq!(&part, bytes);
            }
            for len in 0..body.len() {
                prop_assert!(decode_body(&body[..len]).is_err());
            }
            body.push(0);
            prop_assert!(decode_body(&body).is_err());
        }

        /// Do hostile bytes end in an error rather than a panic or a huge allocation?
        #[test]
        fn hostile_bodies_are_errors_or_records(body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(records) = decode_body(&body) {
                prop_assert_eq!(encode_body(&records), body);
            }
        }
    }

    /// Is the layout the drawn one?
    #[test]
    fn the_layout_has_no_gap() {
        let mut end = 0;
        for &(field, offset, width) in RECORD_LAYOUT {
            assert_eq!(offset, end, "{field}");
            end += width;
        }
        assert_eq!(end, RECORD_HEADER_BYTES);
    }
}
