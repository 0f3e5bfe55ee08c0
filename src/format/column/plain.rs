//! What a codec is given of a block: lengths, then elements, missing numbers filled.

use std::ops::Range;

use super::block::pack;
use super::coding::BlockCodec;
use super::compress::Compressor;
use super::data::Data;
use super::number::Bits;
use super::numeric::Binned;
use super::transform;
use super::values::Column;
use crate::error::Result;

/// Codecs are tried on this many windows of so many records.
const SAMPLE_WINDOWS: usize = 4;
const SAMPLE_WINDOW_RECORDS: usize = 256;
const SAMPLE_BLOB_BYTES: usize = 16 << 10;
/// pco has to gain more than one part in so many over the best of the others.
const PCO_GAIN_SHARE: usize = 16;

/// What the bits of a word are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// Numbers as words.
#[derive(Debug)]
pub struct Words<W> {
    words: Vec<W>,
    kind: Kind,
}

/// The elements of a block.
#[derive(Debug)]
pub enum Body<'a> {
    W8(Words<u8>),
    W16(Words<u16>),
    W32(Words<u32>),
    W64(Words<u64>),
    Bits(Vec<bool>),
    Bytes(&'a [u8]),
}

/// Calls an expression with the words, or others with what is no number.
macro_rules! with_body {
    ($body:expr, $words:ident => $of_words:expr, $bits:ident => $of_bits:expr, $bytes:ident => $of_bytes:expr) => {
        match $body {
            Body::W8($words) => $of_words,
            Body::W16($words) => $of_words,
            Body::W32($words) => $of_words,
            Body::W64($words) => $of_words,
            Body::Bits($bits) => $of_bits,
            Body::Bytes($bytes) => $of_bytes,
        }
    };
}

/// The values of a block.
#[derive(Debug)]
pub struct Plain<'a> {
    /// Of text and bytes, or of the free axes of arrays.
    lens: Vec<u32>,
    body: Body<'a>,
    /// How many elements each record has, where that is fixed and more than one.
    per_record: Option<usize>,
}

impl Plain<'_> {
    /// The length of the raw form.
    pub fn raw_len(&self) -> usize {
        4 * self.lens.len()
            + with_body!(&self.body, w => w.raw_len(), bits => bits.len().div_ceil(8), bytes => bytes.len())
    }

    /// The raw form of the one value of all records, if they agree; of text and bytes without length.
    pub fn constant(&self, records: usize) -> Option<Vec<u8>> {
        let per_record = self.lens.len() / records;
        let (first, _) = self.lens.split_at_checked(per_record)?;
        if per_record > 0 && self.lens.chunks_exact(per_record).any(|lens| lens != first) {
            return None;
        }
        let mut value = Vec::new();
        if !matches!(self.body, Body::Bytes(_)) {
            first.iter().for_each(|len| value.extend_from_slice(&len.to_le_bytes()));
        }
        with_body!(&self.body,
            w => transform::plain(repeated(&w.words, records)?, &mut value),
            bits => pack(repeated(bits, records)?.iter().copied(), &mut value),
            bytes => value.extend_from_slice(repeated(bytes, records)?));
        Some(value)
    }

    /// Appends the form that `codec` hands to zstd, or stores.
    pub fn write(&self, codec: BlockCodec, into: &mut Vec<u8>) {
        self.write_lens(codec, into);
        with_body!(&self.body,
            w => w.write(codec, into),
            bits => pack(bits.iter().copied(), into),
            bytes => into.extend_from_slice(bytes));
    }

    /// Appends the lengths alone.
    pub fn write_lens(&self, codec: BlockCodec, into: &mut Vec<u8>) {
        if codec.has_planes() {
            transform::shuffle(&self.lens, into);
        } else {
            transform::plain(&self.lens, into);
        }
    }

    /// The numbers as pco stores them, if it does.
    pub fn pco(&self, order: u8) -> Option<Vec<u8>> {
        with_body!(&self.body, w => w.pco(order), _bits => None, _bytes => None)
    }

    /// How often differences are best taken.
    pub fn best_order(&self, zstd: &mut Compressor) -> Result<u8> {
        let tried = self.sample().try_zstd(zstd)?;
        let best = tried.iter().min_by_key(|(_, len)| *len);
        Ok(best.map_or(0, |(codec, _)| codec.delta_order()))
    }

    /// The length that each codec worth a try would store.
    pub fn try_all(&self, zstd: &mut Compressor) -> Result<Vec<(BlockCodec, usize)>> {
        let mut tried = self.try_zstd(zstd)?;
        let best = tried.iter().min_by_key(|(_, len)| *len).copied();
        if let Some((codec, len)) = best
            && let Some(numbers) = self.pco(codec.delta_order())
        {
            let pco = numbers.len() + 4 * self.lens.len();
            // It takes longer than the others, so it has to be worth it.
            if pco + len / PCO_GAIN_SHARE < len {
                tried.push((BlockCodec::Pco, pco));
            }
        }
        Ok(tried)
    }

    fn try_zstd(&self, zstd: &mut Compressor) -> Result<Vec<(BlockCodec, usize)>> {
        let mut body = Vec::with_capacity(self.raw_len());
        let mut tried = Vec::new();
        for codec in self.candidates() {
            body.clear();
            self.write(*codec, &mut body);
            tried.push((*codec, zstd.compress(&body)?.len()));
        }
        Ok(tried)
    }

    /// The codecs of zstd worth a try.
    fn candidates(&self) -> &'static [BlockCodec] {
        use BlockCodec::{Delta1, Delta2, Delta3, ShuffleZstd, Zstd};
        match &self.body {
            Body::W8(_) => &[Zstd, Delta1, Delta2],
            Body::W16(_) | Body::W32(_) | Body::W64(_) => {
                &[Zstd, ShuffleZstd, Delta1, Delta2, Delta3]
            }
            Body::Bits(_) if self.lens.is_empty() => &[Zstd],
            Body::Bits(_) | Body::Bytes(_) => &[Zstd, ShuffleZstd],
        }
    }

    /// The same with all first elements of records in front, then all second ones.
    pub fn transposed(&self) -> Plain<'_> {
        let row = self.per_record.unwrap_or(1);
        self.numbers(|len| {
            let records = len / row;
            (0..len).map(|at| at % records * row + at / records).collect()
        })
    }

    /// A part of [`Plain::transposed`] that stands for the whole; none where there is nothing to
    /// transpose.
    pub fn sample_across(&self) -> Option<Plain<'_>> {
        let row = self.per_record?;
        let len = with_body!(&self.body, w => w.words.len(), _bits => 0, _bytes => 0);
        let records = len / row;
        if records < 2 {
            return None;
        }
        let run = records.min(SAMPLE_WINDOW_RECORDS);
        let elements = (SAMPLE_WINDOWS * SAMPLE_WINDOW_RECORDS / run).clamp(1, row);
        Some(self.numbers(|_| {
            let element = |number: usize| number * row / elements;
            let places =
                (0..elements).flat_map(|number| (0..run).map(move |at| at * row + element(number)));
            places.collect()
        }))
    }

    /// The numbers at some places.
    fn numbers(&self, places: impl FnOnce(usize) -> Vec<usize>) -> Plain<'_> {
        let body = match &self.body {
            Body::W8(w) => Body::W8(w.at(&places(w.words.len()))),
            Body::W16(w) => Body::W16(w.at(&places(w.words.len()))),
            Body::W32(w) => Body::W32(w.at(&places(w.words.len()))),
            Body::W64(w) => Body::W64(w.at(&places(w.words.len()))),
            Body::Bits(bits) => Body::Bits(bits.clone()),
            Body::Bytes(bytes) => Body::Bytes(bytes),
        };
        Plain { lens: Vec::new(), body, per_record: None }
    }

    /// A part that stands for the whole. Of arrays with free axes their lengths are not in it.
    pub fn sample(&self) -> Plain<'_> {
        let lens = Vec::new();
        let body = match &self.body {
            Body::W8(w) => Body::W8(w.sample()),
            Body::W16(w) => Body::W16(w.sample()),
            Body::W32(w) => Body::W32(w.sample()),
            Body::W64(w) => Body::W64(w.sample()),
            Body::Bits(bits) => Body::Bits(bits.clone()),
            Body::Bytes(bytes) => {
                let (mut records, mut end) = (0, 0);
                for len in self.lens.iter().map(|len| *len as usize) {
                    if records > 0 && end + len + 4 * records > SAMPLE_BLOB_BYTES {
                        break;
                    }
                    (records, end) = (records + 1, end + len);
                }
                let lens = self.lens.iter().take(records).copied().collect();
                let body = Body::Bytes(bytes.get(..end).unwrap_or(bytes));
                return Plain { lens, body, per_record: None };
            }
        };
        Plain { lens, body, per_record: None }
    }
}

/// The first of `records` equal parts, if they are equal.
fn repeated<T: PartialEq>(values: &[T], records: usize) -> Option<&[T]> {
    let per_record = values.len() / records;
    let first = values.get(..per_record)?;
    let is_even = per_record * records == values.len();
    let equal = per_record == 0 || values.chunks_exact(per_record).all(|value| value == first);
    (is_even && equal).then_some(first)
}

impl<W: Binned> Words<W> {
    fn raw_len(&self) -> usize {
        self.words.len() * W::BYTES
    }

    fn write(&self, codec: BlockCodec, into: &mut Vec<u8>) {
        match codec.delta_order() {
            0 if codec == BlockCodec::ShuffleZstd => transform::shuffle(&self.words, into),
            0 => transform::plain(&self.words, into),
            order => {
                let map = |w: &W| if self.kind == Kind::Float { w.ordered() } else { *w };
                let mut mapped: Vec<W> = self.words.iter().map(map).collect();
                transform::delta(&mut mapped, order);
                mapped.iter_mut().for_each(|w| *w = w.zigzag());
                transform::shuffle(&mapped, into);
            }
        }
    }

    fn sample(&self) -> Self {
        let words = &self.words;
        let mut part = Vec::with_capacity(SAMPLE_WINDOWS * SAMPLE_WINDOW_RECORDS);
        if words.len() <= part.capacity() {
            part.extend_from_slice(words);
        } else {
            let step = (words.len() - SAMPLE_WINDOW_RECORDS) / (SAMPLE_WINDOWS - 1);
            for window in 0..SAMPLE_WINDOWS {
                let from = window * step;
                part.extend_from_slice(&words[from..from + SAMPLE_WINDOW_RECORDS]);
            }
        }
        Self { words: part, kind: self.kind }
    }

    fn pco(&self, order: u8) -> Option<Vec<u8>> {
        W::compress(&self.words, self.kind, order)
    }

    fn at(&self, places: &[usize]) -> Self {
        let words = places.iter().filter_map(|at| self.words.get(*at).copied());
        Self { words: words.collect(), kind: self.kind }
    }
}

/// The values of the records `records` of a column.
pub fn fill(column: &Column, records: Range<usize>) -> Plain<'_> {
    macro_rules! of {
        ($($variant:ident $body:ident,)*) => {
            match &column.data {
                $(Data::$variant(values) => Body::$body(words(column, records.clone(), values)),)*
                Data::Bool(values) => Body::Bits(filled(column, records.clone(), values)),
                Data::Blob(blob) => return blobs(blob.parts(), records),
            }
        };
    }
    let body = of! {
        I8 W8, U8 W8, I16 W16, U16 W16, I32 W32, U32 W32, F32 W32, I64 W64, U64 W64, F64 W64,
    };
    let count = column.shape.free_count();
    let free = column.extents.as_ref().map_or(&[][..], |extents| &extents.free);
    let lens = free.get(records.start * count..records.end * count).unwrap_or(&[]).to_vec();
    let per_record = column.shape.fixed_len().and_then(|len| usize::try_from(len).ok());
    Plain { lens, body, per_record: per_record.filter(|len| *len > 1) }
}

fn words<T: Bits>(column: &Column, records: Range<usize>, values: &[T]) -> Words<T::Word> {
    let words = filled(column, records, values).into_iter().map(T::word).collect();
    Words { words, kind: T::KIND }
}

fn blobs<'a>((ends, bytes): (&[usize], &'a [u8]), records: Range<usize>) -> Plain<'a> {
    let start = if records.start == 0 { 0 } else { ends[records.start - 1] };
    let mut from = start;
    let mut lens = Vec::with_capacity(records.len());
    for end in &ends[records] {
        lens.push((end - from) as u32);
        from = *end;
    }
    Plain { lens, body: Body::Bytes(&bytes[start..from]), per_record: None }
}

/// The elements, where missing numbers repeat the record before, so that they cost next to nothing.
fn filled<T: Copy>(column: &Column, records: Range<usize>, values: &[T]) -> Vec<T> {
    if let Some(extents) = &column.extents {
        let elements = match records.is_empty() {
            true => 0..0,
            false => extents.range(records.start).start..extents.range(records.end - 1).end,
        };
        return values.get(elements).unwrap_or(&[]).to_vec();
    }
    let mut filled = values[records.clone()].to_vec();
    if column.present.is_none() {
        return filled;
    }
    let Some(first) = records.clone().find(|at| column.is_present(*at)) else { return filled };
    let mut last = values[first];
    for (at, value) in records.zip(filled.iter_mut()) {
        if column.is_present(at) {
            last = *value;
        } else {
            *value = last;
        }
    }
    filled
}
