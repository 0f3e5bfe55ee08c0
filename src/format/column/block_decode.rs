//! Blocks back to columns. Nothing in a block is believed: each length is checked against what its
//! row count and type demand before memory is taken.

use std::borrow::Cow;

use super::block::{
    BLOCK_RAW_BYTES, BLOCK_ROWS_MAX, BlockCodec, LONE_VALUE_RATIO_MAX, VALUE_BYTES_MAX, suits,
    unpack,
};
use super::compress::decompress;
use super::transform;
use super::value::FieldType;
use super::values::{Blob, Column, Data, Flags};
use crate::error::{Error, Result};

/// What the footer says of a block.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub codec: BlockCodec,
    pub rows: usize,
    pub missing: usize,
    pub raw_len: usize,
}

/// Decodes a block of a column of type `ty`.
pub fn decode(ty: FieldType, shape: Shape, stored: &[u8]) -> Result<Column> {
    admit(ty, shape, stored.len())?;
    if shape.codec == BlockCodec::Constant {
        return constant(ty, shape, stored);
    }
    let raw = match shape.codec {
        BlockCodec::Raw => Cow::Borrowed(stored),
        _ => Cow::Owned(decompress(stored, shape.raw_len)?),
    };
    if raw.len() != shape.raw_len {
        return wrong(format!("{} bytes instead of {}", raw.len(), shape.raw_len));
    }
    let flags_len = if shape.missing > 0 { shape.rows.div_ceil(8) } else { 0 };
    let (flags, values) = match raw.split_at_checked(flags_len) {
        Some((flags, values)) => (flags, values),
        None => return wrong("it is shorter than its flags".into()),
    };
    let present = if shape.missing > 0 { Some(flags_of(flags, shape)?) } else { None };
    let mut data = match ty {
        FieldType::Bool => bools(values, shape.rows)?,
        FieldType::I64 => {
            let words = words(values, shape, false)?;
            Data::I64(words.into_iter().map(|w| w as i64).collect())
        }
        FieldType::F64 => {
            let words = words(values, shape, true)?;
            Data::F64(words.into_iter().map(f64::from_bits).collect())
        }
        FieldType::String | FieldType::Json => Data::Blob(checked_text(blob(values, shape)?)?),
        FieldType::Bytes => Data::Blob(blob(values, shape)?),
    };
    if let Some(flags) = &present {
        clear_missing(&mut data, flags)?;
    }
    Ok(Column { ty, data, present })
}

/// P9: bounds what decoding may allocate before anything is allocated.
fn admit(ty: FieldType, shape: Shape, stored_len: usize) -> Result<()> {
    if shape.rows == 0 || shape.rows > BLOCK_ROWS_MAX || shape.missing > shape.rows {
        return wrong(format!("{} rows, {} of them missing", shape.rows, shape.missing));
    }
    if !suits(shape.codec, ty) {
        return wrong(format!("codec {:?} does not suit {}", shape.codec, ty.name()));
    }
    let usual = BLOCK_RAW_BYTES + BLOCK_ROWS_MAX / 8;
    let lone = shape.rows == 1
        && shape.raw_len <= VALUE_BYTES_MAX + 8
        && shape.raw_len / (LONE_VALUE_RATIO_MAX + 1) <= stored_len;
    if shape.raw_len > usual && !lone {
        return wrong(format!("{} raw bytes for {} rows", shape.raw_len, shape.rows));
    }
    Ok(())
}

fn constant(ty: FieldType, shape: Shape, stored: &[u8]) -> Result<Column> {
    let rows = shape.rows;
    let mut column = Column::new(ty);
    let value_len = if shape.missing == 0 { stored.len() } else { 0 };
    if constant_raw_len(ty, shape, value_len) != shape.raw_len {
        return wrong(format!("{} raw bytes for {rows} times the same", shape.raw_len));
    }
    if shape.missing == rows && stored.is_empty() {
        column.data = match ty {
            FieldType::Bool => Data::Bool(vec![false; rows]),
            FieldType::I64 => Data::I64(vec![0; rows]),
            FieldType::F64 => Data::F64(vec![0.0; rows]),
            _ => Data::Blob(Blob { ends: vec![0; rows], bytes: Vec::new() }),
        };
        let mut none = Flags::default();
        (0..rows).for_each(|_| none.push(false));
        column.present = Some(none);
        return Ok(column);
    }
    if shape.missing != 0 {
        return wrong("a constant of which some rows are missing".into());
    }
    let word = stored.first_chunk::<8>().map(|b| u64::from_le_bytes(*b));
    column.data = match (ty, stored, word) {
        (FieldType::Bool, [flag @ 0..=1], _) => Data::Bool(vec![*flag == 1; rows]),
        (FieldType::I64, [_, _, _, _, _, _, _, _], Some(w)) => Data::I64(vec![w as i64; rows]),
        (FieldType::F64, [_, _, _, _, _, _, _, _], Some(w)) => {
            Data::F64(vec![f64::from_bits(w); rows])
        }
        (FieldType::String | FieldType::Json | FieldType::Bytes, value, _) => {
            if rows.saturating_mul(4 + value.len()) > BLOCK_RAW_BYTES {
                return wrong(format!("{rows} times {} bytes", value.len()));
            }
            let ends = (1..=rows).map(|n| n * value.len()).collect();
            let blob = Blob { ends, bytes: value.repeat(rows) };
            Data::Blob(if ty == FieldType::Bytes { blob } else { checked_text(blob)? })
        }
        _ => return wrong(format!("{} bytes are no {}", stored.len(), ty.name())),
    };
    Ok(column)
}

/// The length of the raw form of `rows` equal values, or of none.
fn constant_raw_len(ty: FieldType, shape: Shape, value_len: usize) -> usize {
    let rows = shape.rows;
    let flags = if shape.missing > 0 { rows.div_ceil(8) } else { 0 };
    flags.saturating_add(match ty {
        FieldType::Bool => rows.div_ceil(8),
        FieldType::I64 | FieldType::F64 => rows * 8,
        FieldType::String | FieldType::Json | FieldType::Bytes => {
            rows.saturating_mul(value_len.saturating_add(4))
        }
    })
}

fn flags_of(bytes: &[u8], shape: Shape) -> Result<Flags> {
    match unpack(bytes, shape.rows) {
        Some(flags) if shape.rows - flags.count_set() == shape.missing => Ok(flags),
        _ => wrong("its flags contradict the count of missing rows".into()),
    }
}

fn bools(bytes: &[u8], rows: usize) -> Result<Data> {
    match unpack(bytes, rows) {
        Some(flags) => Ok(Data::Bool((0..rows).map(|at| flags.get(at)).collect())),
        None => wrong(format!("{} bytes for {rows} bits", bytes.len())),
    }
}

fn words(bytes: &[u8], shape: Shape, float: bool) -> Result<Vec<u64>> {
    if bytes.len() != shape.rows * 8 {
        return wrong(format!("{} bytes for {} values", bytes.len(), shape.rows));
    }
    let order = shape.codec.delta_order();
    if order == 0 && shape.codec != BlockCodec::ShuffleZstd {
        return Ok(bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect());
    }
    let mut words = transform::unshuffle(bytes);
    if order > 0 {
        words.iter_mut().for_each(|w| *w = transform::unzigzag(*w));
        transform::undelta(&mut words, order);
        if float {
            words.iter_mut().for_each(|w| *w = transform::unordered(*w));
        }
    }
    Ok(words)
}

fn blob(bytes: &[u8], shape: Shape) -> Result<Blob> {
    let rows = shape.rows;
    let Some((lens, bytes)) = bytes.split_at_checked(rows * 4) else {
        return wrong(format!("{} bytes for {rows} lengths", bytes.len()));
    };
    let mut ends = Vec::with_capacity(rows);
    let mut end = 0usize;
    for at in 0..rows {
        let len = if shape.codec == BlockCodec::ShuffleZstd {
            [lens[at], lens[rows + at], lens[2 * rows + at], lens[3 * rows + at]]
        } else {
            [lens[4 * at], lens[4 * at + 1], lens[4 * at + 2], lens[4 * at + 3]]
        };
        end = end.saturating_add(u32::from_le_bytes(len) as usize);
        ends.push(end);
    }
    if end != bytes.len() {
        return wrong(format!("lengths that add up to {end} over {} bytes", bytes.len()));
    }
    Ok(Blob { ends, bytes: bytes.to_vec() })
}

fn checked_text(blob: Blob) -> Result<Blob> {
    match std::str::from_utf8(&blob.bytes) {
        Ok(text) if blob.ends.iter().all(|end| text.is_char_boundary(*end)) => Ok(blob),
        _ => wrong("text that is not UTF-8".into()),
    }
}

fn clear_missing(data: &mut Data, present: &Flags) -> Result<()> {
    let rows = (0..present.len()).filter(|at| !present.get(*at));
    match data {
        Data::Bool(values) => rows.for_each(|at| values[at] = false),
        Data::I64(values) => rows.for_each(|at| values[at] = 0),
        Data::F64(values) => rows.for_each(|at| values[at] = 0.0),
        Data::Blob(blob) => {
            if let Some(row) = rows.into_iter().find(|at| !blob.get(*at).is_empty()) {
                return wrong(format!("row {row} is missing and has bytes"));
            }
        }
    }
    Ok(())
}

fn wrong<T>(cause: String) -> Result<T> {
    Err(Error::damage("decode", "block", cause))
}
