//! Blocks: some rows of one column, encoded by the codec that suits them best.
//!
//! Raw form: flags of present rows (one bit a row, lowest first, padded with zeros), only if a row
//! is missing; then the lengths (u32 each) of text and bytes, or of the free axes of arrays, row by
//! row and 0 for a missing one; then all elements: numbers in their own width, `bool` as one bit,
//! bytes as they are. A missing number has the value of the row before it (of the first present
//! row at the start); a missing array or text has no element.

use std::ops::Range;

use super::axes::Shape;
use super::compress::Compressor;
use super::data::Data;
use super::number::Bits;
use super::parts::Flags;
use super::plain::{Plain, fill};
use super::value::FieldType;
use super::values::Column;
use crate::error::Result;

/// A block holds at most this many rows.
pub const BLOCK_ROWS_MAX: usize = 1 << 17;
/// A block's values are at most this long before encoding, unless it is one single value.
pub const BLOCK_RAW_BYTES: usize = 1 << 20;
/// One value is at most this long.
pub const VALUE_BYTES_MAX: usize = 1 << 28;
/// The raw lengths of all blocks of a chunk, 8 bytes a row at least, add up to at most 1 GiB.
pub const CHUNK_RAW_BYTES_MAX: u64 = 1 << 30;
/// A single value longer than a block is stored at most so many times smaller than it is.
pub(super) const LONE_VALUE_RATIO_MAX: usize = 256;

/// How a block is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCodec {
    /// The raw form.
    Raw = 0,
    /// One value for all rows, or nothing where all are missing.
    Constant = 1,
    /// zstd of the raw form.
    Zstd = 2,
    /// zstd of the raw form with numbers and lengths in byte planes.
    ShuffleZstd = 3,
    /// As before, of zigzag differences in the order-preserving integer domain.
    Delta1 = 4,
    /// The same, of second differences.
    Delta2 = 5,
    /// The same, of third differences.
    Delta3 = 6,
    /// pco of numbers of two bytes and more, behind flags and lengths in raw form.
    Pco = 7,
}

impl BlockCodec {
    /// Every codec, in the order of their tags.
    pub const ALL: [BlockCodec; 8] = [
        Self::Raw,
        Self::Constant,
        Self::Zstd,
        Self::ShuffleZstd,
        Self::Delta1,
        Self::Delta2,
        Self::Delta3,
        Self::Pco,
    ];

    /// Its tag on disk.
    pub fn tag(self) -> u8 {
        self as u8
    }

    /// The codec with this tag.
    pub fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }

    /// Whether numbers and lengths are in byte planes.
    pub(super) fn has_planes(self) -> bool {
        self == Self::ShuffleZstd || self.delta_order() > 0
    }

    /// How often differences are taken.
    pub(super) fn delta_order(self) -> u8 {
        match self {
            Self::Delta1 => 1,
            Self::Delta2 => 2,
            Self::Delta3 => 3,
            _ => 0,
        }
    }
}

/// How a block is stored, as its tag on disk says: the codec in the lower four bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    pub codec: BlockCodec,
    /// Elements of arrays: all first ones, row by row, then all second ones.
    pub is_transposed: bool,
}

impl Coding {
    const TRANSPOSED: u8 = 0x10;

    pub fn of(codec: BlockCodec) -> Self {
        Self { codec, is_transposed: false }
    }

    pub fn tag(self) -> u8 {
        self.codec.tag() | if self.is_transposed { Self::TRANSPOSED } else { 0 }
    }

    pub fn from_tag(tag: u8) -> Option<Self> {
        let is_transposed = tag & Self::TRANSPOSED != 0;
        Some(Self { codec: BlockCodec::from_tag(tag & !Self::TRANSPOSED)?, is_transposed })
    }
}

/// An encoded block and what is known of its rows.
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

/// Cuts a column into the rows of its blocks: a function of the values alone.
pub fn cut(column: &Column) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for at in 0..column.len() {
        let more = row_len(column, at);
        let full = bytes + more > BLOCK_RAW_BYTES || at - start == BLOCK_ROWS_MAX;
        if at > start && full {
            cuts.push(start..at);
            (start, bytes) = (at, 0);
        }
        bytes += more;
    }
    if start < column.len() {
        cuts.push(start..column.len());
    }
    cuts
}

/// Bytes of a row in memory, flags and places aside.
fn row_len(column: &Column, at: usize) -> usize {
    match (&column.data, &column.extents) {
        (Data::Blob(blob), _) => 4 + blob.get(at).len(),
        (_, Some(extents)) => {
            4 * column.shape.free_count() + extents.range(at).len() * column.ty.width()
        }
        (_, None) => column.ty.width(),
    }
}

/// Encodes the rows `rows` of `column`, which are one of its [`cut`]s.
pub fn encode(column: &Column, rows: Range<usize>, zstd: &mut Compressor) -> Result<Encoded> {
    let missing = rows.clone().filter(|at| !column.is_present(*at)).count();
    let presence = if missing == 0 { Vec::new() } else { bits(rows.clone(), column) };
    let plain = fill(column, rows.clone());
    let raw_len = presence.len() + plain.raw_len();
    let (nan, bounds) = statistics(column, rows.clone());
    let done = |coding, bytes| Ok(Encoded { coding, bytes, raw_len, missing, nan, bounds });

    if missing == rows.len() {
        return done(Coding::of(BlockCodec::Constant), Vec::new());
    }
    let constant = if missing == 0 && rows.len() > 1 { plain.constant(rows.len()) } else { None };
    if let Some(value) = constant {
        return done(Coding::of(BlockCodec::Constant), value);
    }
    let coding = choose(&plain, zstd)?;
    if coding.codec != BlockCodec::Raw {
        let stored = match coding.is_transposed {
            true => stored(&plain.transposed(), coding.codec, &presence, zstd)?,
            false => stored(&plain, coding.codec, &presence, zstd)?,
        };
        let gains = |stored: &Vec<u8>| {
            let lone = raw_len > BLOCK_RAW_BYTES && raw_len / LONE_VALUE_RATIO_MAX > stored.len();
            stored.len() < raw_len && !lone
        };
        if let Some(stored) = stored.filter(gains) {
            return done(coding, stored);
        }
    }
    let mut body = presence;
    plain.write(BlockCodec::Raw, &mut body);
    done(Coding::of(BlockCodec::Raw), body)
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

/// The codec that makes a sample smallest; raw where none gains a sixteenth.
fn choose(plain: &Plain<'_>, zstd: &mut Compressor) -> Result<Coding> {
    let sample = plain.sample();
    let raw_len = sample.raw_len();
    let mut best = (Coding::of(BlockCodec::Raw), raw_len - raw_len / 16);
    let across = plain.sample_across();
    for (sample, is_transposed) in [(Some(&sample), false), (across.as_ref(), true)] {
        let Some(sample) = sample else { continue };
        for (codec, len) in sample.try_all(zstd)? {
            // Samples may differ in length.
            let len = len * raw_len / sample.raw_len().max(1);
            if len < best.1 {
                best = (Coding { codec, is_transposed }, len);
            }
        }
    }
    Ok(best.0)
}

pub(super) fn bits(rows: Range<usize>, column: &Column) -> Vec<u8> {
    let mut packed = Vec::with_capacity(rows.len().div_ceil(8));
    pack(rows.map(|at| column.is_present(at)), &mut packed);
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
fn statistics(column: &Column, rows: Range<usize>) -> (usize, Option<(u64, u64)>) {
    macro_rules! of {
        ($($variant:ident)*) => {
            match &column.data {
                $(Data::$variant(values) => numbers(column, rows, values),)*
                Data::Bool(values) => {
                    let flags = present(column, rows, values).map(|flag| u64::from(*flag));
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
    rows: Range<usize>,
    values: &[T],
) -> (usize, Option<(u64, u64)>) {
    let (mut nan, mut range) = (0, None);
    for value in present(column, rows, values) {
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

/// The elements of the rows that have a value.
fn present<'c, T>(
    column: &'c Column,
    rows: Range<usize>,
    values: &'c [T],
) -> impl Iterator<Item = &'c T> {
    let elements = match &column.extents {
        // A missing array has none.
        Some(extents) if !rows.is_empty() => {
            extents.range(rows.start).start..extents.range(rows.end - 1).end
        }
        _ => rows.clone(),
    };
    let is_scalar = column.extents.is_none();
    let values = values.get(elements.clone()).unwrap_or(&[]);
    let present = values.iter().zip(elements);
    present.filter(move |(_, at)| !is_scalar || column.is_present(*at)).map(|(value, _)| value)
}

/// Reads packed flags back: `None` when there are too few bytes or a padding bit is set.
pub(super) fn unpack(bytes: &[u8], rows: usize) -> Option<Flags> {
    let mut flags = Flags::default();
    if bytes.len() != rows.div_ceil(8) {
        return None;
    }
    for at in 0..rows {
        flags.push(bytes[at / 8] >> (at % 8) & 1 == 1);
    }
    let padding = bytes.last().filter(|_| !rows.is_multiple_of(8)).map_or(0, |b| b >> (rows % 8));
    (padding == 0).then_some(flags)
}

/// Whether a column of this type can be stored so.
pub(super) fn suits(coding: Coding, ty: FieldType, shape: &Shape) -> bool {
    let is_scalar = shape.is_scalar();
    let in_rows = shape.fixed_len().is_some() && !is_scalar && ty.width() > 0;
    if coding.is_transposed && (!in_rows || ty == FieldType::Bool) {
        return false;
    }
    match coding.codec {
        BlockCodec::Raw | BlockCodec::Constant if coding.is_transposed => false,
        BlockCodec::Pco => ty.width() > 1,
        BlockCodec::Raw | BlockCodec::Constant | BlockCodec::Zstd => true,
        BlockCodec::ShuffleZstd => ty != FieldType::Bool || !is_scalar,
        _ => ty.is_number() && ty != FieldType::Bool,
    }
}
