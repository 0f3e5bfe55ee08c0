//! A batch's record: the head that says what it is, then the batch's bytes.

use super::form::Form;
use crate::digest::Hasher;
use crate::error::{Error, ErrorKind, Result};
use crate::format::offsets::layout;

layout! {
    /// The fixed head of a batch's record: field, offset, width. Key, producer and position follow,
    /// then the batch's bytes.
    BATCH_LAYOUT,
    /// Length of the fixed head.
    BATCH_HEAD_BYTES:
    B_VERSION "batch_version" 0 + 1,
    B_FORM "form" 1 + 1,
    B_FLAGS "flags" 2 + 1,
    B_KEY "key_length" 3 + 2,
    B_PRODUCER "producer_length" 5 + 2,
    B_POSITION "position_length" 7 + 4,
    B_ROWS "rows" 11 + 8,
    B_AT "at" 19 + 8,
    B_SEQUENCE "producer_sequence" 27 + 8,
    B_FINGERPRINT "fingerprint" 35 + 16,
}

/// The longest key, in bytes as encoded.
pub const BATCH_KEY_BYTES_MAX: usize = 1024;
/// The longest name of a producer, in bytes.
pub const PRODUCER_BYTES_MAX: usize = 256;
/// The longest position of a source, in bytes.
pub const POSITION_BYTES_MAX: usize = 4096;
/// The longest head, key, producer and position included.
pub const BATCH_HEAD_BYTES_MAX: usize =
    BATCH_HEAD_BYTES + BATCH_KEY_BYTES_MAX + PRODUCER_BYTES_MAX + POSITION_BYTES_MAX;

const VERSION: u8 = 1;
const HAS_TIME: u8 = 1;
const HAS_PRODUCER: u8 = 2;

/// What a batch is, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHead<'a> {
    /// What its bytes are.
    pub form: Form,
    /// Its rows; at least 1.
    pub rows: u64,
    /// Wall-clock nanoseconds when it was accepted.
    pub at: Option<i64>,
    /// Its key, as bytes.
    pub key: &'a [u8],
    /// Whose batch it is, if that was said.
    pub producer: Option<ProducerMark<'a>>,
}

/// Which batch of a producer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerMark<'a> {
    /// The producer's name.
    pub name: &'a str,
    /// The number that it gave the batch.
    pub sequence: u64,
    /// Where its source stood behind the batch.
    pub position: &'a [u8],
    /// By which a repeat is told from another batch of the same number.
    pub fingerprint: [u8; 16],
}

/// By which a repeat of a batch is told from another one of the same number.
pub fn fingerprint(key: &[u8], form: Form, rows: u64, bytes: &[u8]) -> [u8; 16] {
    let mut hasher = Hasher::default();
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(&[form.to_byte()]);
    hasher.update(&rows.to_le_bytes());
    hasher.update(bytes);
    let digest = hasher.finish();
    std::array::from_fn(|at| digest.0[at])
}

/// The record of a batch.
///
/// # Errors
/// `LimitExceeded` for a key, a name or a position that is too long; `Invalid` for no rows.
pub fn encode_batch(head: &BatchHead<'_>, bytes: &[u8]) -> Result<Vec<u8>> {
    check_len("key", head.key.len(), BATCH_KEY_BYTES_MAX)?;
    let mark = head.producer.unwrap_or(ProducerMark {
        name: "",
        sequence: 0,
        position: &[],
        fingerprint: [0; 16],
    });
    check_len("producer", mark.name.len(), PRODUCER_BYTES_MAX)?;
    check_len("position", mark.position.len(), POSITION_BYTES_MAX)?;
    if head.rows == 0 {
        return Err(Error::invalid("encode", "batch", "it has no rows"));
    }
    let time = if head.at.is_some() { HAS_TIME } else { 0 };
    let producer = if head.producer.is_some() { HAS_PRODUCER } else { 0 };
    let mut fixed = [0; BATCH_HEAD_BYTES];
    fixed[B_VERSION].copy_from_slice(&[VERSION]);
    fixed[B_FORM].copy_from_slice(&[head.form.to_byte()]);
    fixed[B_FLAGS].copy_from_slice(&[time | producer]);
    // Each fits: it was just compared with its limit.
    fixed[B_KEY].copy_from_slice(&(head.key.len() as u16).to_le_bytes());
    fixed[B_PRODUCER].copy_from_slice(&(mark.name.len() as u16).to_le_bytes());
    fixed[B_POSITION].copy_from_slice(&(mark.position.len() as u32).to_le_bytes());
    fixed[B_ROWS].copy_from_slice(&head.rows.to_le_bytes());
    fixed[B_AT].copy_from_slice(&head.at.unwrap_or(0).to_le_bytes());
    fixed[B_SEQUENCE].copy_from_slice(&mark.sequence.to_le_bytes());
    fixed[B_FINGERPRINT].copy_from_slice(&mark.fingerprint);
    Ok([&fixed, head.key, mark.name.as_bytes(), mark.position, bytes].concat())
}

/// A batch's record: its head, and its bytes.
///
/// # Errors
/// `Damage` for bytes that are no record of a batch; `NewerFormat` for one of a later release.
pub fn decode_batch(record: &[u8]) -> Result<(BatchHead<'_>, &[u8])> {
    let (fixed, rest) = record
        .split_first_chunk::<BATCH_HEAD_BYTES>()
        .ok_or_else(|| wrong(format!("{} bytes are too few", record.len())))?;
    let [version] = fixed.field(B_VERSION);
    if version < VERSION {
        return Err(wrong(format!("no release wrote version {version}")));
    }
    if version != VERSION {
        let cause = format!("it has version {version}, this release knows {VERSION}");
        return Err(Error::new(ErrorKind::NewerFormat, "decode", "batch", cause));
    }
    let [form] = fixed.field(B_FORM);
    let [flags] = fixed.field(B_FLAGS);
    if flags & !(HAS_TIME | HAS_PRODUCER) != 0 {
        return Err(wrong(format!("flags {flags:#x} are not known")));
    }
    let (key, rest) = split(rest, u16::from_le_bytes(fixed.field(B_KEY)).into())?;
    let (name, rest) = split(rest, u16::from_le_bytes(fixed.field(B_PRODUCER)).into())?;
    let (position, bytes) = split(rest, u32::from_le_bytes(fixed.field(B_POSITION)).into())?;
    let is_within = key.len() <= BATCH_KEY_BYTES_MAX
        && name.len() <= PRODUCER_BYTES_MAX
        && position.len() <= POSITION_BYTES_MAX;
    if !is_within {
        return Err(wrong("a part of its head is longer than it may be"));
    }
    let name = std::str::from_utf8(name).map_err(|_| wrong("its producer's name is no text"))?;
    let rows = u64::from_le_bytes(fixed.field(B_ROWS));
    if rows == 0 {
        return Err(wrong("it has no rows"));
    }
    let at = i64::from_le_bytes(fixed.field(B_AT));
    let sequence = u64::from_le_bytes(fixed.field(B_SEQUENCE));
    let mark = ProducerMark { name, sequence, position, fingerprint: fixed.field(B_FINGERPRINT) };
    let (has_time, has_producer) = (flags & HAS_TIME != 0, flags & HAS_PRODUCER != 0);
    let nothing = ProducerMark { name: "", sequence: 0, position: &[], fingerprint: [0; 16] };
    if (!has_time && at != 0) || (!has_producer && mark != nothing) {
        return Err(wrong("its flags deny what it says"));
    }
    let head = BatchHead {
        form: Form::from_byte(form)?,
        rows,
        at: has_time.then_some(at),
        key,
        producer: has_producer.then_some(mark),
    };
    Ok((head, bytes))
}

/// The head of a record of which the first [`BATCH_HEAD_BYTES_MAX`] bytes, or all, are given, and its
/// length.
///
/// # Errors
/// As [`decode_batch`].
pub fn decode_head(beginning: &[u8]) -> Result<(BatchHead<'_>, usize)> {
    let (head, bytes) = decode_batch(beginning)?;
    Ok((head, beginning.len() - bytes.len()))
}

fn check_len(what: &str, len: usize, max: usize) -> Result<()> {
    if len <= max {
        return Ok(());
    }
    let cause = format!("{len} bytes of {what}, {max} allowed");
    Err(Error::new(ErrorKind::LimitExceeded, "encode", "batch", cause))
}

fn wrong(cause: impl std::fmt::Display) -> Error {
    Error::damage("decode", "batch", cause)
}

fn split(bytes: &[u8], len: u64) -> Result<(&[u8], &[u8])> {
    let split = usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len));
    split.ok_or_else(|| wrong("its head reaches past its end"))
}

/// A field of fixed bytes, by its constant range.
pub(super) trait Fixed {
    fn field<const N: usize>(&self, at: std::ops::Range<usize>) -> [u8; N];
}

impl<const LEN: usize> Fixed for [u8; LEN] {
    fn field<const N: usize>(&self, at: std::ops::Range<usize>) -> [u8; N] {
        let mut field = [0; N];
        field.iter_mut().zip(self.iter().skip(at.start)).for_each(|(to, from)| *to = *from);
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MARK: ProducerMark<'static> =
        ProducerMark { name: "h1", sequence: 7, position: &[9], fingerprint: [5; 16] };

    fn head() -> BatchHead<'static> {
        BatchHead { form: Form::Opaque, rows: 3, at: Some(-2), key: b"k", producer: Some(MARK) }
    }

    /// Is the wire format the frozen one?
    #[test]
    fn golden_vector() {
        let record = encode_batch(&head(), b"xyz").unwrap();
        let expected = [
            &[1, 1, 3, 1, 0, 2, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0][..],
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0, 0, 0, 0, 0],
            &[5; 16],
            b"kh1\x09xyz",
        ]
        .concat();
        assert_eq!(record, expected);
        let print = fingerprint(b"k", Form::JsonLines, 3, b"xyz");
        assert_ne!(print, fingerprint(b"k", Form::Opaque, 3, b"xyz"));
        assert_ne!(print, fingerprint(b"kx", Form::JsonLines, 3, b"yz"));
        assert_ne!(print, fingerprint(b"k", Form::JsonLines, 4, b"xyz"));
        let hex: String = print.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN_FINGERPRINT);
    }

    const GOLDEN_FINGERPRINT: &str = "26b8ec81e4e97cb07d23030661383276";

    /// Are limits told by name, and a batch without rows refused?
    #[test]
    fn what_no_record_may_say_is_refused() {
        let long = vec![1; BATCH_KEY_BYTES_MAX + 1];
        let e = encode_batch(&BatchHead { key: &long, ..head() }, b"").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::LimitExceeded);
        let none = encode_batch(&BatchHead { rows: 0, ..head() }, b"").unwrap_err();
        assert_eq!(none.kind(), ErrorKind::Invalid);
        let whole = encode_batch(&head(), b"xyz").unwrap();
        let with = |at: usize, byte: u8| {
            let mut other = whole.clone();
            other[at] = byte;
            decode_batch(&other).unwrap_err().kind()
        };
        assert_eq!(with(0, 2), ErrorKind::NewerFormat);
        assert_eq!(with(1, 77), ErrorKind::NewerFormat);
        assert_eq!(with(2, 7), ErrorKind::Damage);
        assert_eq!(with(2, 1), ErrorKind::Damage, "a producer, and the flag says none");
        assert_eq!(with(11, 0), ErrorKind::Damage, "no rows");
        assert_eq!(with(4, 0xff), ErrorKind::Damage, "a key past the end");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Does every record come back, its head alone as well, and no beginning of a head pass?
        #[test]
        fn records_come_back(
            form in prop_oneof![Just(Form::Opaque), Just(Form::JsonLines), Just(Form::Arrow)],
            rows in 1u64..,
            at in any::<Option<i64>>(),
            key in prop::collection::vec(any::<u8>(), 0..200),
            name in "[a-zé]{0,20}",
            numbers in any::<(u64, [u8; 16])>(),
            has_producer in any::<bool>(),
            position in prop::collection::vec(any::<u8>(), 0..100),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let (sequence, fingerprint) = numbers;
            let mark = ProducerMark { name: &name, sequence, position: &position, fingerprint };
            let producer = has_producer.then_some(mark);
            let head = BatchHead { form, rows, at, key: &key, producer };
            let record = encode_batch(&head, &bytes).unwrap();
            prop_assert_eq!(decode_batch(&record).unwrap(), (head, &bytes[..]));
            let len = record.len() - bytes.len();
            prop_assert_eq!(decode_head(&record[..len]).unwrap(), (head, len));
            for short in 0..len {
                prop_assert!(decode_head(&record[..short]).is_err());
            }
        }

        /// Do hostile bytes end in an error, or in what says the same again?
        #[test]
        fn hostile_records_are_errors_or_batches(
            mut record in prop::collection::vec(any::<u8>(), 0..200),
            helped in any::<bool>(),
        ) {
            if helped && record.len() > 19 {
                let (flags, key, name) = (record[2] & 3, record[3] & 31, record[5] & 31);
                record[..11].copy_from_slice(&[1, 1, flags, key, 0, name, 0, 0, 0, 0, 0]);
            }
            if let Ok((head, bytes)) = decode_batch(&record) {
                prop_assert_eq!(encode_batch(&head, bytes).unwrap(), record);
            }
        }
    }
}
