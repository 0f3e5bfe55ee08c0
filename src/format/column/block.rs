//! Blocks: some rows of one column, encoded by the codec that suits them best.
//!
//! Raw form: flags of present rows (one bit a row, lowest first, padded with zeros), only if a row
//! is missing; then the values: `i64` and `f64` as 8 bytes each, `bool` as one bit, text and bytes
//! as all lengths (u32) followed by all bytes. A missing row has the value of the row before it (of
//! the first present row at the start), or no bytes.

use std::ops::Range;

use super::compress::Compressor;
use super::transform;
use super::value::FieldType;
use super::values::{Blob, Column, Data, Flags};
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

/// Codecs are tried on this many windows of so many rows.
const SAMPLE_WINDOWS: usize = 4;
const SAMPLE_WINDOW_ROWS: usize = 256;
const SAMPLE_BLOB_BYTES: usize = 16 << 10;

/// How a block is stored. Tag 7 is kept for pco.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCodec {
    /// The raw form.
    Raw = 0,
    /// One value for all rows, or nothing where all are missing.
    Constant = 1,
    /// zstd of the raw form.
    Zstd = 2,
    /// zstd of the raw form with 8-byte values, or lengths, in byte planes.
    ShuffleZstd = 3,
    /// As before, of zigzag differences in the order-preserving integer domain.
    Delta1 = 4,
    /// The same, of second differences.
    Delta2 = 5,
    /// The same, of third differences.
    Delta3 = 6,
}

impl BlockCodec {
    /// Every codec, in the order of their tags.
    pub const ALL: [BlockCodec; 7] = [
        Self::Raw,
        Self::Constant,
        Self::Zstd,
        Self::ShuffleZstd,
        Self::Delta1,
        Self::Delta2,
        Self::Delta3,
    ];

    /// Its tag on disk.
    pub fn tag(self) -> u8 {
        self as u8
    }

    /// The codec with this tag.
    pub fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
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

/// An encoded block and what is known of its rows.
#[derive(Debug)]
pub struct Encoded {
    pub codec: BlockCodec,
    pub bytes: Vec<u8>,
    pub raw_len: usize,
    pub missing: usize,
    pub nan: usize,
    /// Least and greatest value: `i64` as its bits, `f64` by totalOrder without NaN, `bool` as 0, 1.
    pub bounds: Option<(u64, u64)>,
}

/// The values of a block, missing rows filled.
enum Plain<'a> {
    Words { words: Vec<u64>, float: bool },
    Bits(Vec<bool>),
    Blob { lens: Vec<u32>, bytes: &'a [u8] },
}

/// Cuts a column into the rows of its blocks: a function of the values alone.
pub fn cut(column: &Column) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut start = 0;
    match &column.data {
        Data::Blob(blob) => {
            let mut bytes = 0;
            for at in 0..blob.len() {
                let more = 4 + blob.get(at).len();
                let full = bytes + more > BLOCK_RAW_BYTES || at - start == BLOCK_ROWS_MAX;
                if at > start && full {
                    cuts.push(start..at);
                    (start, bytes) = (at, 0);
                }
                bytes += more;
            }
        }
        _ => {
            while column.len() - start > BLOCK_ROWS_MAX {
                cuts.push(start..start + BLOCK_ROWS_MAX);
                start += BLOCK_ROWS_MAX;
            }
        }
    }
    if start < column.len() {
        cuts.push(start..column.len());
    }
    cuts
}

/// Encodes the rows `rows` of `column`, which are one of its [`cut`]s.
pub fn encode(column: &Column, rows: Range<usize>, zstd: &mut Compressor) -> Result<Encoded> {
    let missing = rows.clone().filter(|at| !column.is_present(*at)).count();
    let presence = if missing == 0 { Vec::new() } else { bits(rows.clone(), column) };
    let plain = fill(column, rows.clone());
    let raw_len = presence.len() + plain.raw_len();
    let (nan, bounds) = statistics(column, rows.clone());
    let done = |codec, bytes| Ok(Encoded { codec, bytes, raw_len, missing, nan, bounds });

    if missing == rows.len() {
        return done(BlockCodec::Constant, Vec::new());
    }
    if let Some(value) = plain.constant().filter(|_| missing == 0 && rows.len() > 1) {
        return done(BlockCodec::Constant, value);
    }
    let codec = choose(&plain, zstd)?;
    if codec != BlockCodec::Raw {
        let mut body = presence.clone();
        plain.write(codec, &mut body);
        let stored = zstd.compress(&body)?;
        let lone = raw_len > BLOCK_RAW_BYTES && raw_len / LONE_VALUE_RATIO_MAX > stored.len();
        if stored.len() < raw_len && !lone {
            return done(codec, stored);
        }
    }
    let mut body = presence;
    plain.write(BlockCodec::Raw, &mut body);
    done(BlockCodec::Raw, body)
}

impl Plain<'_> {
    fn raw_len(&self) -> usize {
        match self {
            Self::Words { words, .. } => words.len() * 8,
            Self::Bits(bits) => bits.len().div_ceil(8),
            Self::Blob { lens, bytes } => lens.len() * 4 + bytes.len(),
        }
    }

    /// The one value of all rows, if they agree.
    fn constant(&self) -> Option<Vec<u8>> {
        match self {
            Self::Words { words, .. } => {
                let first = words.first()?;
                words.iter().all(|w| w == first).then(|| first.to_le_bytes().to_vec())
            }
            Self::Bits(bits) => {
                let first = bits.first()?;
                bits.iter().all(|b| b == first).then(|| vec![u8::from(*first)])
            }
            Self::Blob { lens, bytes } => {
                let len = *lens.first()? as usize;
                let first = bytes.get(..len)?;
                let equal = lens.iter().all(|l| *l as usize == len)
                    && (len == 0 || bytes.chunks_exact(len).all(|value| value == first));
                equal.then(|| first.to_vec())
            }
        }
    }

    /// Appends the form that `codec` hands to zstd, or stores.
    fn write(&self, codec: BlockCodec, into: &mut Vec<u8>) {
        match self {
            Self::Words { words, float } => match codec {
                BlockCodec::Raw | BlockCodec::Constant | BlockCodec::Zstd => {
                    words.iter().for_each(|w| into.extend_from_slice(&w.to_le_bytes()));
                }
                BlockCodec::ShuffleZstd => transform::shuffle(words, into),
                BlockCodec::Delta1 | BlockCodec::Delta2 | BlockCodec::Delta3 => {
                    let map = |w: &u64| if *float { transform::ordered(*w) } else { *w };
                    let mut mapped: Vec<u64> = words.iter().map(map).collect();
                    transform::delta(&mut mapped, codec.delta_order());
                    mapped.iter_mut().for_each(|w| *w = transform::zigzag(*w));
                    transform::shuffle(&mapped, into);
                }
            },
            Self::Bits(flags) => pack(flags.iter().copied(), into),
            Self::Blob { lens, bytes } => {
                if codec == BlockCodec::ShuffleZstd {
                    for plane in 0..4 {
                        into.extend(lens.iter().map(|len| (len >> (8 * plane)) as u8));
                    }
                } else {
                    lens.iter().for_each(|len| into.extend_from_slice(&len.to_le_bytes()));
                }
                into.extend_from_slice(bytes);
            }
        }
    }

    fn candidates(&self) -> &'static [BlockCodec] {
        use BlockCodec::{Delta1, Delta2, Delta3, ShuffleZstd, Zstd};
        match self {
            Self::Words { .. } => &[Zstd, ShuffleZstd, Delta1, Delta2, Delta3],
            Self::Bits(_) => &[Zstd],
            Self::Blob { .. } => &[Zstd, ShuffleZstd],
        }
    }

    /// A part that stands for the whole.
    fn sample(&self) -> Plain<'_> {
        match self {
            Self::Words { words, float } => {
                let mut part = Vec::with_capacity(SAMPLE_WINDOWS * SAMPLE_WINDOW_ROWS);
                if words.len() <= part.capacity() {
                    part.extend_from_slice(words);
                } else {
                    let step = (words.len() - SAMPLE_WINDOW_ROWS) / (SAMPLE_WINDOWS - 1);
                    for window in 0..SAMPLE_WINDOWS {
                        let from = window * step;
                        part.extend_from_slice(&words[from..from + SAMPLE_WINDOW_ROWS]);
                    }
                }
                Plain::Words { words: part, float: *float }
            }
            Self::Bits(flags) => Plain::Bits(flags.clone()),
            Self::Blob { lens, bytes } => {
                let (mut rows, mut end) = (0, 0);
                for len in lens.iter().map(|len| *len as usize) {
                    if rows > 0 && end + len + 4 * rows > SAMPLE_BLOB_BYTES {
                        break;
                    }
                    (rows, end) = (rows + 1, end + len);
                }
                Plain::Blob { lens: lens[..rows].to_vec(), bytes: &bytes[..end] }
            }
        }
    }
}

/// The codec that makes the sample smallest; raw where none gains a sixteenth.
fn choose(plain: &Plain<'_>, zstd: &mut Compressor) -> Result<BlockCodec> {
    let sample = plain.sample();
    let raw_len = sample.raw_len();
    let mut best = (BlockCodec::Raw, raw_len - raw_len / 16);
    let mut body = Vec::with_capacity(raw_len);
    for codec in plain.candidates() {
        body.clear();
        sample.write(*codec, &mut body);
        let len = zstd.compress(&body)?.len();
        if len < best.1 {
            best = (*codec, len);
        }
    }
    Ok(best.0)
}

fn fill(column: &Column, rows: Range<usize>) -> Plain<'_> {
    match &column.data {
        Data::Bool(values) => Plain::Bits(filled(column, rows, values)),
        Data::I64(values) => {
            let words = filled(column, rows, values).iter().map(|v| *v as u64).collect();
            Plain::Words { words, float: false }
        }
        Data::F64(values) => {
            let words = filled(column, rows, values).iter().map(|v| v.to_bits()).collect();
            Plain::Words { words, float: true }
        }
        Data::Blob(Blob { ends, bytes }) => {
            let start = if rows.start == 0 { 0 } else { ends[rows.start - 1] };
            let mut from = start;
            let mut lens = Vec::with_capacity(rows.len());
            for end in &ends[rows] {
                lens.push((end - from) as u32);
                from = *end;
            }
            Plain::Blob { lens, bytes: &bytes[start..from] }
        }
    }
}

/// The values with missing rows repeating the row before, so that they cost next to nothing.
fn filled<T: Copy>(column: &Column, rows: Range<usize>, values: &[T]) -> Vec<T> {
    let mut filled = values[rows.clone()].to_vec();
    let Some(first) = rows.clone().find(|at| column.is_present(*at)) else { return filled };
    let mut last = values[first];
    for (at, value) in rows.zip(filled.iter_mut()) {
        if column.is_present(at) {
            last = *value;
        } else {
            *value = last;
        }
    }
    filled
}

fn bits(rows: Range<usize>, column: &Column) -> Vec<u8> {
    let mut packed = Vec::with_capacity(rows.len().div_ceil(8));
    pack(rows.map(|at| column.is_present(at)), &mut packed);
    packed
}

fn pack(flags: impl Iterator<Item = bool>, into: &mut Vec<u8>) {
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

fn statistics(column: &Column, rows: Range<usize>) -> (usize, Option<(u64, u64)>) {
    let present = rows.filter(|at| column.is_present(*at));
    match &column.data {
        Data::Blob(_) => (0, None),
        Data::Bool(values) => (0, bounds(present.map(|at| u64::from(values[at])))),
        Data::I64(values) => {
            let sorted = bounds(present.map(|at| values[at]));
            (0, sorted.map(|(least, greatest)| (least as u64, greatest as u64)))
        }
        Data::F64(values) => {
            let mut nan = 0;
            let words = present.filter_map(|at| {
                nan += usize::from(values[at].is_nan());
                (!values[at].is_nan()).then(|| transform::ordered(values[at].to_bits()))
            });
            let sorted = bounds(words);
            let back = transform::unordered;
            (nan, sorted.map(|(least, greatest)| (back(least), back(greatest))))
        }
    }
}

fn bounds<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |so_far, value| match so_far {
        None => Some((value, value)),
        Some((least, greatest)) => Some((value.min(least), value.max(greatest))),
    })
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
pub(super) fn suits(codec: BlockCodec, ty: FieldType) -> bool {
    match codec {
        BlockCodec::Raw | BlockCodec::Constant | BlockCodec::Zstd => true,
        BlockCodec::ShuffleZstd => ty != FieldType::Bool,
        _ => matches!(ty, FieldType::I64 | FieldType::F64),
    }
}
