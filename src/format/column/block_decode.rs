//! Blocks back to columns. Nothing in a block is believed: each length is checked against what its
//! record count and type demand before memory is taken.

use std::borrow::Cow;

use super::axes::{RANK_MAX, Shape, count_of};
use super::block::{
    BLOCK_RAW_BYTES, BLOCK_RECORDS_MAX, LONE_VALUE_RATIO_MAX, VALUE_BYTES_MAX, memory_len, unpack,
};
use super::coding::{BlockCodec, Coding, suits};
use super::compress::decompress;
use super::data::Data;
use super::number::Bits;
use super::numeric::Binned;
use super::parts::{Blob, Flags};
use super::plain::Kind;
use super::transform::{self, Word};
use super::value::FieldType;
use super::values::{Column, Extents};
use crate::error::{Error, Result};

/// What is known of a block: its column, and what the footer says.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    pub ty: FieldType,
    pub shape: &'a Shape,
    pub coding: Coding,
    pub records: usize,
    pub missing: usize,
    pub raw_len: usize,
}

/// Decodes a block.
pub fn decode(said: Said<'_>, stored: &[u8]) -> Result<Column> {
    admit(said, stored.len())?;
    if said.coding.codec == BlockCodec::Constant {
        return constant(said, stored);
    }
    let raw = match said.coding.codec {
        BlockCodec::Raw | BlockCodec::Pco => Cow::Borrowed(stored),
        _ => Cow::Owned(decompress(stored, said.raw_len)?),
    };
    if said.coding.codec != BlockCodec::Pco && raw.len() != said.raw_len {
        return wrong(format!("{} bytes instead of {}", raw.len(), said.raw_len));
    }
    parse(said, &raw)
}

/// P9: bounds what decoding may allocate before anything is allocated.
fn admit(said: Said<'_>, stored_len: usize) -> Result<()> {
    if said.records == 0 || said.records > BLOCK_RECORDS_MAX || said.missing > said.records {
        return wrong(format!("{} records, {} of them missing", said.records, said.missing));
    }
    if !suits(said.coding, said.ty, said.shape) {
        return wrong(format!("codec {:?} does not suit {}", said.coding, said.ty.name()));
    }
    let usual = BLOCK_RAW_BYTES + BLOCK_RECORDS_MAX / 8;
    // A flag of a record is a bit in memory too: counted as eight it would refuse what was written.
    let flags = if said.missing > 0 { said.records.div_ceil(8) } else { 0 };
    let rest = said.raw_len.saturating_sub(flags) as u64;
    let in_memory = memory_len(said.ty, said.shape, said.records as u64, rest);
    // The last byte of bits may be filled up.
    let is_usual = said.raw_len <= usual && in_memory <= (usual + 8) as u64;
    let lone = said.records == 1
        && in_memory <= (VALUE_BYTES_MAX + 8 + 4 * RANK_MAX) as u64
        && (said.raw_len <= usual || said.raw_len / (LONE_VALUE_RATIO_MAX + 1) <= stored_len);
    if !is_usual && !lone {
        return wrong(format!("{} raw bytes for {} records", said.raw_len, said.records));
    }
    Ok(())
}

/// Reads the raw form, in the order of its codec.
fn parse(said: Said<'_>, raw: &[u8]) -> Result<Column> {
    let flags_len = if said.missing > 0 { said.records.div_ceil(8) } else { 0 };
    let Some((flags, rest)) = raw.split_at_checked(flags_len) else {
        return wrong("it is shorter than its flags".into());
    };
    let present = if said.missing > 0 { Some(flags_of(flags, said)?) } else { None };
    let column = |data, extents| {
        Ok(Column {
            ty: said.ty,
            shape: said.shape.clone(),
            data,
            extents,
            present: present.clone(),
        })
    };
    if !said.ty.is_number() {
        let blob = blob(rest, said)?;
        let gap = |flags: &Flags| {
            (0..said.records).find(|at| !flags.get(*at) && !blob.get(*at).is_empty())
        };
        if let Some(row) = present.as_ref().and_then(gap) {
            return wrong(format!("row {row} is missing and has bytes"));
        }
        return column(Data::Blob(checked_text(said.ty, blob)?), None);
    }
    if said.shape.is_scalar() {
        let mut data = numbers(rest, said.records, said)?;
        if let Some(flags) = &present {
            data.clear((0..said.records).filter(|at| !flags.get(*at)));
        }
        return column(data, None);
    }
    let (extents, rest) = extents(rest, said, present.as_ref())?;
    let data = numbers(rest, extents.ends.last().copied().unwrap_or(0), said)?;
    column(data, Some(extents))
}

/// Where the arrays lie, and the bytes of their elements.
fn extents<'b>(
    bytes: &'b [u8],
    said: Said<'_>,
    present: Option<&Flags>,
) -> Result<(Extents, &'b [u8])> {
    let count = said.shape.free_count();
    let Some((lens, bytes)) = bytes.split_at_checked(said.records * count * 4) else {
        return wrong(format!("{} bytes for the lengths of {} records", bytes.len(), said.records));
    };
    let free = lens_of(lens, said.coding.codec);
    let mut ends = Vec::with_capacity(said.records);
    let mut end = 0usize;
    for at in 0..said.records {
        let mut of_row = free.iter().skip(at * count).take(count).copied();
        if present.is_some_and(|flags| !flags.get(at)) {
            if of_row.any(|len| len != 0) {
                return wrong(format!("row {at} is missing and has lengths"));
            }
        } else {
            let (lens, rank) = said.shape.lens(|| of_row.next().unwrap_or(0));
            let Some(len) = lens.get(..usize::from(rank)).and_then(count_of) else {
                return wrong(format!("row {at} is an array of {lens:?}"));
            };
            end = end.saturating_add(len);
        }
        ends.push(end);
    }
    Ok((Extents { free, ends }, bytes))
}

fn constant(said: Said<'_>, stored: &[u8]) -> Result<Column> {
    let records = said.records;
    let mut column = Column::shaped(said.ty, said.shape);
    if said.missing != 0 && (said.missing != records || !stored.is_empty()) {
        return wrong("a constant of which some records are missing".into());
    }
    let lies = || wrong(format!("{} raw bytes for {records} times the same", said.raw_len));
    if said.missing == records {
        let flags = records.div_ceil(8);
        let filled = match (said.ty.width(), said.ty) {
            _ if !said.shape.is_scalar() => 4 * records * said.shape.free_count(),
            (0, _) => 4 * records,
            (_, FieldType::Bool) => records.div_ceil(8),
            (width, _) => width * records,
        };
        if said.raw_len != flags + filled {
            return lies();
        }
        let taken = (0..records).all(|_| column.push(super::value::Value::Missing));
        return if taken { Ok(column) } else { lies() };
    }
    if !said.ty.is_number() {
        if records.saturating_mul(4 + stored.len()) != said.raw_len
            || said.raw_len > BLOCK_RAW_BYTES
        {
            return lies();
        }
        let mut blob = Blob::default();
        (0..records).for_each(|_| blob.push(stored));
        column.data = Data::Blob(checked_text(said.ty, blob)?);
        return Ok(column);
    }
    let one =
        Said { coding: Coding::of(BlockCodec::Raw), records: 1, raw_len: stored.len(), ..said };
    let first = parse(one, stored)?;
    let elements = first.data.len();
    let raw_len = match said.ty {
        FieldType::Bool => records.saturating_mul(elements).div_ceil(8),
        ty => records.saturating_mul(elements).saturating_mul(ty.width()),
    };
    if raw_len.saturating_add(4 * records * said.shape.free_count()) != said.raw_len {
        return lies();
    }
    let taken = (0..records).all(|_| column.extend(&first, 0..1));
    if taken { Ok(column) } else { lies() }
}

fn flags_of(bytes: &[u8], said: Said<'_>) -> Result<Flags> {
    match unpack(bytes, said.records) {
        Some(flags) if said.records - flags.count_set() == said.missing => Ok(flags),
        _ => wrong("its flags contradict the count of missing records".into()),
    }
}

/// `count` numbers, which are all of `bytes`.
fn numbers(bytes: &[u8], count: usize, said: Said<'_>) -> Result<Data> {
    macro_rules! of {
        ($($variant:ident)*) => {
            match said.ty {
                $(FieldType::$variant => Data::$variant(words(bytes, count, said)?),)*
                FieldType::Bool => match unpack(bytes, count) {
                    Some(flags) => Data::Bool((0..count).map(|at| flags.get(at)).collect()),
                    None => return wrong(format!("{} bytes for {count} bits", bytes.len())),
                },
                other => return wrong(format!("{} is no number", other.name())),
            }
        };
    }
    Ok(of!(I8 I16 I32 I64 U8 U16 U32 U64 F32 F64))
}

fn words<T: Bits>(bytes: &[u8], count: usize, said: Said<'_>) -> Result<Vec<T>> {
    let codec = said.coding.codec;
    let len = count.checked_mul(T::Word::BYTES);
    let words = if codec == BlockCodec::Pco {
        // P9: the raw length bounds the count, and `admit` has bounded the raw length.
        let flags = if said.missing > 0 { said.records.div_ceil(8) } else { 0 };
        let before = flags + 4 * said.records * said.shape.free_count();
        if len.and_then(|len| len.checked_add(before)) != Some(said.raw_len) {
            return wrong(format!("{count} values in {} raw bytes", said.raw_len));
        }
        T::Word::expand(bytes, count, T::KIND)?
    } else if len != Some(bytes.len()) {
        return wrong(format!("{} bytes for {count} values", bytes.len()));
    } else if codec.has_planes() {
        unplane::<T>(bytes, codec.delta_order())
    } else {
        transform::unplain(bytes)
    };
    if said.coding.is_transposed {
        // Whole records: their lengths are fixed.
        let row = said.shape.fixed_len().map_or(1, |len| len.max(1)) as usize;
        let records = words.len() / row;
        let places = (0..records * row).map(|at| at % row * records + at / row);
        return Ok(places.filter_map(|at| words.get(at)).map(|w| T::of_word(*w)).collect());
    }
    Ok(words.into_iter().map(T::of_word).collect())
}

fn unplane<T: Bits>(bytes: &[u8], order: u8) -> Vec<T::Word> {
    let mut words: Vec<T::Word> = transform::unshuffle(bytes);
    if order > 0 {
        words.iter_mut().for_each(|w| *w = w.unzigzag());
        transform::undelta(&mut words, order);
        if T::KIND == Kind::Float {
            words.iter_mut().for_each(|w| *w = w.unordered());
        }
    }
    words
}

fn lens_of(bytes: &[u8], codec: BlockCodec) -> Vec<u32> {
    if codec.has_planes() { transform::unshuffle(bytes) } else { transform::unplain(bytes) }
}

fn blob(bytes: &[u8], said: Said<'_>) -> Result<Blob> {
    let records = said.records;
    let Some((lens, bytes)) = bytes.split_at_checked(records * 4) else {
        return wrong(format!("{} bytes for {records} lengths", bytes.len()));
    };
    let mut ends = Vec::with_capacity(records);
    let mut end = 0usize;
    for len in lens_of(lens, said.coding.codec) {
        end = end.saturating_add(len as usize);
        ends.push(end);
    }
    if end != bytes.len() {
        return wrong(format!("lengths that add up to {end} over {} bytes", bytes.len()));
    }
    Ok(Blob { ends, bytes: bytes.to_vec() })
}

fn checked_text(ty: FieldType, blob: Blob) -> Result<Blob> {
    if !matches!(ty, FieldType::String | FieldType::Json) {
        return Ok(blob);
    }
    match std::str::from_utf8(&blob.bytes) {
        Ok(text) if blob.ends.iter().all(|end| text.is_char_boundary(*end)) => Ok(blob),
        _ => wrong("text that is not UTF-8".into()),
    }
}

fn wrong<T>(cause: String) -> Result<T> {
    Err(Error::damage("decode", "block", cause))
}
