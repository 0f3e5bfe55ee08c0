//! Columns as they are in memory, and the same through zstd in blocks: what no knowledge of types gains.

use zstd::bulk::{Compressor, decompress};

use super::{Column, Data, Table, Texts};
use crate::Outcome;

/// As large as a block of ours, or a page of Parquet's.
const BLOCK_BYTES: usize = 1 << 20;

/// The values one behind the other, little-endian; then the flags.
pub fn bytes_of(column: &Column) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(column.data.raw_len());
    match &column.data {
        Data::F64(values) => values.iter().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes())),
        Data::I64(values) => values.iter().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes())),
        Data::Text(texts) => {
            let mut start = 0;
            for end in &texts.ends {
                bytes.extend_from_slice(&((end - start) as u32).to_le_bytes());
                start = *end;
            }
            bytes.extend_from_slice(&texts.bytes);
        }
    }
    for flags in column.present.iter().flat_map(|flags| flags.chunks(8)) {
        bytes.push(
            flags.iter().enumerate().fold(0, |byte, (at, flag)| byte | u8::from(*flag) << at),
        );
    }
    bytes
}

fn column_of(like: &Column, bytes: &[u8]) -> Outcome<Column> {
    let (values, flags) = bytes.split_at(bytes.len() - flags_len(like));
    let words = || values.chunks_exact(8).filter_map(|word| word.first_chunk().copied());
    let data = match &like.data {
        Data::F64(_) => Data::F64(words().map(f64::from_le_bytes).collect()),
        Data::I64(_) => Data::I64(words().map(i64::from_le_bytes).collect()),
        Data::Text(_) => {
            let (lens, bytes) = values.split_at_checked(4 * like.rows()).ok_or("too short")?;
            let mut texts = Texts { bytes: bytes.to_vec(), ends: Vec::with_capacity(like.rows()) };
            let mut end = 0;
            for len in lens.chunks_exact(4).filter_map(|word| word.first_chunk()) {
                end += u32::from_le_bytes(*len) as usize;
                texts.ends.push(end);
            }
            Data::Text(texts)
        }
    };
    let flag = |row: usize| flags[row / 8] >> (row % 8) & 1 == 1;
    let present = like.present.as_ref().map(|_| (0..like.rows()).map(flag).collect());
    Ok(Column { name: like.name.clone(), data, present, axes: like.axes.clone() })
}

fn flags_len(like: &Column) -> usize {
    like.present.as_ref().map_or(0, |flags| flags.len().div_ceil(8))
}

/// Each column's blocks: with a level through zstd, else as they are.
pub fn encode(table: &Table, level: Option<i32>) -> Outcome<Vec<Vec<Vec<u8>>>> {
    let mut zstd = level.map(Compressor::new).transpose()?;
    let mut encoded = Vec::new();
    for column in &table.columns {
        let bytes = bytes_of(column);
        encoded.push(match &mut zstd {
            None => vec![bytes],
            Some(zstd) => {
                let blocks = bytes.chunks(BLOCK_BYTES).map(|block| zstd.compress(block));
                blocks.collect::<Result<_, _>>()?
            }
        });
    }
    Ok(encoded)
}

/// What [`encode`] made, back.
pub fn decode(like: &Table, encoded: &[Vec<Vec<u8>>], level: Option<i32>) -> Outcome<Table> {
    let mut columns = Vec::new();
    for (like, blocks) in like.columns.iter().zip(encoded) {
        if level.is_none() {
            columns.push(column_of(like, &blocks[0])?);
            continue;
        }
        let mut bytes = Vec::with_capacity(like.raw_len());
        for block in blocks {
            bytes.extend_from_slice(&decompress(block, BLOCK_BYTES)?);
        }
        columns.push(column_of(like, &bytes)?);
    }
    Ok(Table { columns })
}
