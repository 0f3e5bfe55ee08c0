//! Blocks: some records of one column, encoded by the codec that suits them best.
//!
//! Raw form: flags of present records (one bit a record, lowest first, padded with zeros), only if one
//! is missing; then the lengths (u32 each) of text and bytes, or of the free axes of arrays, record by
//! record and 0 for a missing one; then all elements: numbers in their own width, `bool` as one bit,
//! bytes as they are. A missing number has the value of the record before it (of the first present
//! record at the start); a missing array or text has no element.

use std::ops::Range;

use super::axes::Shape;
use super::coding::{BlockCodec, Coding, suits};
use super::compress::Compressor;
use super::data::Data;
use super::number::Bits;
use super::parts::Flags;
use super::plain::{Plain, fill};
use super::value::FieldType;
use super::values::Column;
use crate::error::Result;

/// A block holds at most this many records.
pub const BLOCK_RECORDS_MAX: usize = 1 << 17;
/// A block's values are at most this long before encoding, unless it is one single value.
pub const BLOCK_RAW_BYTES: usize = 1 << 20;
/// What is stored raw is cut where it passes so many bytes, for whoever wants few records of it: text,
/// bytes and arrays, of which one is wanted, and single numbers, of which many are.
const RAW_BLOCK_BYTES: usize = 16 << 10;
const RAW_NUMBERS_BYTES: usize = 64 << 10;
/// One value is at most this long.
pub const VALUE_BYTES_MAX: usize = 1 << 28;
/// The raw lengths of all blocks of a chunk, 8 bytes a record at least, add up to at most 1 GiB.
pub const CHUNK_RAW_BYTES_MAX: u64 = 1 << 30;
/// A single value longer than a block is stored at most so many times smaller than it is.
pub(super) const LONE_VALUE_RATIO_MAX: usize = 256;

/// An encoded block and what is known of its records.
#[derive(Debug)]
pub struct Encoded {
    pub coding: Coding,
    pub bytes: Vec<u8>,
    pub raw_len: usize,
    pub missing: usize,
    pub nan: usize,
    /// Least and greatest value: integers in 64 bits, floats as their bits, by totalOrder without
    /// NaN, `bool` as 0, 1.
    pub bounds: Option<(u64, u64)>,
}

/// Cuts a column into the records of its blocks: a function of the values alone.
pub fn cut(column: &Column) -> Vec<Range<usize>> {
    cut_at(column, 0..column.len(), BLOCK_RAW_BYTES)
}

/// Cuts records where their values pass `most` bytes.
fn cut_at(column: &Column, records: Range<usize>, most: usize) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut start, mut bytes) = (records.start, 0);
    for at in records.clone() {
        let more = row_len(column, at);
        let full = bytes + more > most || at - start == BLOCK_RECORDS_MAX;
        if at > start && full {
            cuts.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += more;
    }
    if start < records.end {
        cuts.push(start..records.end);
    }
    cuts
}

/// Bytes of a record in memory, flags and places aside.
fn row_len(column: &Column, at: usize) -> usize {
    match (&column.data, &column.extents) {
        (Data::Blob(blob), _) => 4 + blob.get(at).len(),
        (_, Some(extents)) => {
            4 * column.shape.free_count() + extents.range(at).len() * column.ty.width()
        }
        (_, None) => column.ty.width(),
    }
}

/// What a block takes in memory: a `bool` of an array has a byte there, and a bit in raw form.
pub(super) fn memory_len(ty: FieldType, shape: &Shape, records: u64, raw_len: u64) -> u64 {
    if ty != FieldType::Bool || shape.is_scalar() {
        return raw_len;
    }
    let lens = records.saturating_mul(4 * shape.free_count() as u64).min(raw_len);
    lens.saturating_add((raw_len - lens).saturating_mul(8))
}

/// Encodes the records `records` of `column`, which are one of its [`cut`]s: by `forced`, or what a sample
/// is smallest with. What stays raw becomes smaller blocks, so that few records are few bytes to read.
pub fn encode(
    column: &Column,
    records: Range<usize>,
    forced: Option<Coding>,
    zstd: &mut Compressor,
) -> Result<Vec<(Range<usize>, Encoded)>> {
    if let Some((coding, bytes, raw_len)) = packed(column, records.clone(), forced, zstd)? {
        return Ok(vec![(records.clone(), done(column, records, coding, bytes, raw_len))]);
    }
    let raw = |records: Range<usize>| (records.clone(), raw(column, records));
    let is_number = column.extents.is_none() && !matches!(column.data, Data::Blob(_));
    let most = if is_number { RAW_NUMBERS_BYTES } else { RAW_BLOCK_BYTES };
    Ok(cut_at(column, records, most).into_iter().map(raw).collect())
}

fn done(
    column: &Column,
    records: Range<usize>,
    coding: Coding,
    bytes: Vec<u8>,
    raw_len: usize,
) -> Encoded {
    let missing = records.clone().filter(|at| !column.is_present(*at)).count();
    let (nan, bounds) = statistics(column, records);
    Encoded { coding, bytes, raw_len, missing, nan, bounds }
}

/// Records as they are, or nothing where they all are missing.
fn raw(column: &Column, records: Range<usize>) -> Encoded {
    let mut body = presence(column, records.clone());
    let plain = fill(column, records.clone());
    let raw_len = body.len() + plain.raw_len();
    if records.clone().all(|at| !column.is_present(at)) {
        return done(column, records, Coding::of(BlockCodec::Constant), Vec::new(), raw_len);
    }
    plain.write(BlockCodec::Raw, &mut body);
    done(column, records, Coding::of(BlockCodec::Raw), body, raw_len)
}

/// Records by a codec that gains, or by the forced one where it applies: coding, bytes, raw length.
fn packed(
    column: &Column,
    records: Range<usize>,
    forced: Option<Coding>,
    zstd: &mut Compressor,
) -> Result<Option<(Coding, Vec<u8>, usize)>> {
    let presence = presence(column, records.clone());
    let plain = fill(column, records.clone());
    let raw_len = presence.len() + plain.raw_len();
    let constant = Coding::of(BlockCodec::Constant);
    if records.clone().all(|at| !column.is_present(at)) {
        return Ok(Some((constant, Vec::new(), raw_len)));
    }
    if presence.is_empty()
        && records.len() > 1
        && forced.is_none_or(|forced| forced == constant)
        && let Some(value) = plain.constant(records.len())
    {
        return Ok(Some((constant, value, raw_len)));
    }
    let codings = match forced {
        Some(forced) if suits(forced, column.ty, &column.shape) => vec![forced],
        Some(_) => Vec::new(),
        None => choose(&plain, zstd)?,
    };
    let mut best: Option<(Coding, Vec<u8>)> = None;
    for coding in codings {
        if matches!(coding.codec, BlockCodec::Raw | BlockCodec::Constant) {
            continue;
        }
        let stored = match coding.is_transposed {
            true => stored(&plain.transposed(), coding.codec, &presence, zstd)?,
            false => stored(&plain, coding.codec, &presence, zstd)?,
        };
        let Some(stored) = stored else { continue };
        if best.as_ref().is_none_or(|(_, known)| stored.len() < known.len()) {
            best = Some((coding, stored));
        }
    }
    let is_kept = |stored: &Vec<u8>| {
        let lone = raw_len > BLOCK_RAW_BYTES && raw_len / LONE_VALUE_RATIO_MAX > stored.len();
        (stored.len() < raw_len || forced.is_some()) && !lone
    };
    let best = best.filter(|(_, stored)| is_kept(stored));
    Ok(best.map(|(coding, stored)| (coding, stored, raw_len)))
}

/// The flags of records, of which one is missing.
fn presence(column: &Column, records: Range<usize>) -> Vec<u8> {
    let is_whole = records.clone().all(|at| column.is_present(at));
    if is_whole { Vec::new() } else { bits(records, column) }
}

/// What is stored of a block by a codec; nothing where pco does not take it.
pub(super) fn stored(
    plain: &Plain<'_>,
    codec: BlockCodec,
    presence: &[u8],
    zstd: &mut Compressor,
) -> Result<Option<Vec<u8>>> {
    let mut body = presence.to_vec();
    if codec == BlockCodec::Pco {
        let Some(numbers) = plain.pco(plain.best_order(zstd)?) else { return Ok(None) };
        plain.write_lens(codec, &mut body);
        body.extend_from_slice(&numbers);
        return Ok(Some(body));
    }
    plain.write(codec, &mut body);
    Ok(Some(if codec == BlockCodec::Raw { body } else { zstd.compress(&body)? }))
}

/// The codec that makes a sample smallest; none where none gains a sixteenth. Behind pco also the best
/// of the others: its bins fit a sample better than they fit the whole.
fn choose(plain: &Plain<'_>, zstd: &mut Compressor) -> Result<Vec<Coding>> {
    let sample = plain.sample();
    let raw_len = sample.raw_len();
    let enough = raw_len - raw_len / 16;
    let mut best: [Option<(Coding, usize)>; 2] = [None; 2];
    let across = plain.sample_across();
    for (sample, is_transposed) in [(Some(&sample), false), (across.as_ref(), true)] {
        let Some(sample) = sample else { continue };
        for (codec, len) in sample.try_all(zstd)? {
            // Samples may differ in length.
            let len = len * raw_len / sample.raw_len().max(1);
            let place = &mut best[usize::from(codec == BlockCodec::Pco)];
            if len < place.map_or(enough, |(_, known)| known) {
                *place = Some((Coding { codec, is_transposed }, len));
            }
        }
    }
    Ok(match best {
        [Some(other), Some(pco)] if pco.1 < other.1 => vec![pco.0, other.0],
        [other, pco] => other.or(pco).map(|(coding, _)| coding).into_iter().collect(),
    })
}

pub(super) fn bits(records: Range<usize>, column: &Column) -> Vec<u8> {
    let mut packed = Vec::with_capacity(records.len().div_ceil(8));
    pack(records.map(|at| column.is_present(at)), &mut packed);
    packed
}

pub(super) fn pack(flags: impl Iterator<Item = bool>, into: &mut Vec<u8>) {
    let mut byte = 0u8;
    let mut used = 0;
    for flag in flags {
        byte |= u8::from(flag) << used;
        used += 1;
        if used == 8 {
            into.push(byte);
            (byte, used) = (0, 0);
        }
    }
    if used > 0 {
        into.push(byte);
    }
}

/// How many elements are NaN, and the least and greatest of the others.
fn statistics(column: &Column, records: Range<usize>) -> (usize, Option<(u64, u64)>) {
    macro_rules! of {
        ($($variant:ident)*) => {
            match &column.data {
                $(Data::$variant(values) => numbers(column, records, values),)*
                Data::Bool(values) => {
                    let flags = present(column, records, values).map(|flag| u64::from(*flag));
                    (0, flags.fold(None, |range: Option<(u64, u64)>, flag| match range {
                        None => Some((flag, flag)),
                        Some((least, greatest)) => Some((least.min(flag), greatest.max(flag))),
                    }))
                }
                Data::Blob(_) => (0, None),
            }
        };
    }
    of!(I8 I16 I32 I64 U8 U16 U32 U64 F32 F64)
}

fn numbers<T: Bits>(
    column: &Column,
    records: Range<usize>,
    values: &[T],
) -> (usize, Option<(u64, u64)>) {
    let (mut nan, mut range) = (0, None);
    for value in present(column, records, values) {
        if value.is_nan() {
            nan += 1;
            continue;
        }
        let (least, greatest) = range.unwrap_or((*value, *value));
        let least = if value.key() < least.key() { *value } else { least };
        let greatest = if value.key() > greatest.key() { *value } else { greatest };
        range = Some((least, greatest));
    }
    (nan, range.map(|(least, greatest)| (least.widen(), greatest.widen())))
}

/// The elements of the records that have a value.
fn present<'c, T>(
    column: &'c Column,
    records: Range<usize>,
    values: &'c [T],
) -> impl Iterator<Item = &'c T> {
    let elements = match &column.extents {
        // A missing array has none.
        Some(extents) if !records.is_empty() => {
            extents.range(records.start).start..extents.range(records.end - 1).end
        }
        _ => records.clone(),
    };
    let is_scalar = column.extents.is_none();
    let values = values.get(elements.clone()).unwrap_or(&[]);
    let present = values.iter().zip(elements);
    present.filter(move |(_, at)| !is_scalar || column.is_present(*at)).map(|(value, _)| value)
}

/// Reads packed flags back: `None` when there are too few bytes or a padding bit is set.
pub(super) fn unpack(bytes: &[u8], records: usize) -> Option<Flags> {
    let mut flags = Flags::default();
    if bytes.len() != records.div_ceil(8) {
        return None;
    }
    for at in 0..records {
        flags.push(bytes[at / 8] >> (at % 8) & 1 == 1);
    }
    let padding =
        bytes.last().filter(|_| !records.is_multiple_of(8)).map_or(0, |b| b >> (records % 8));
    (padding == 0).then_some(flags)
}
