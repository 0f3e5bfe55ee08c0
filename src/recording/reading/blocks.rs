//! Statistics: what the footers of chunks say of the blocks of a field, without a value being read.

use std::collections::VecDeque;
use std::ops::Range;

use super::stream::Stream;
use crate::error::Result;
use crate::format::column::{BlockCodec, BlockInfo, ColumnId, FieldType, Value};

/// Some records of one field that lie together, and what is known of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Block {
    /// Its records, in the stream. Of records that a cut took back it may hold some more.
    pub records: Range<u64>,
    /// The first and last iteration in it.
    pub iterations: (i64, i64),
    /// The first and last time in it, where records have one.
    pub times: Option<(f64, f64)>,
    /// How many of its records have no value.
    pub missing: u64,
    /// How many of its values, or elements of arrays, are NaN.
    pub nan: u64,
    /// The least and the greatest value, or element of arrays, NaN aside: of numbers and truth values,
    /// where there is one.
    pub bounds: Option<(Value<'static>, Value<'static>)>,
    /// How it is stored.
    pub codec: BlockCodec,
    /// Bytes of it as they are stored.
    pub stored_bytes: u64,
    /// Bytes of it before encoding.
    pub raw_bytes: u64,
}

/// Blocks of a field, in order. What is not sealed is in none.
#[derive(Debug)]
pub struct Blocks<'s> {
    stream: &'s Stream,
    column: ColumnId,
    ty: FieldType,
    /// What is wanted, from the next chunk on.
    records: Range<u64>,
    ready: VecDeque<Block>,
}

impl<'s> Blocks<'s> {
    pub(super) fn new(
        stream: &'s Stream,
        column: ColumnId,
        ty: FieldType,
        records: Range<u64>,
    ) -> Self {
        let records = records.start..records.end.min(stream.sealed_record_count());
        Self { stream, column, ty, records, ready: VecDeque::new() }
    }

    /// The blocks of the chunk that holds the next record wanted.
    fn load(&mut self) -> Result<()> {
        let Some(at) = self.stream.chunk_of(self.records.start)? else {
            self.records.start = self.records.end;
            return Ok(());
        };
        let open = self.stream.open_chunk(at)?;
        if open.records.end <= self.records.start {
            return Err(self.stream.wrong("fewer records than its chunks say"));
        }
        for info in open.chunk.blocks(self.column) {
            let end = open.records.start.saturating_add(info.records.end).min(open.records.end);
            let records = open.records.start.saturating_add(info.records.start)..end;
            if records.start < self.records.end.min(end) && self.records.start < end {
                self.ready.push_back(block(self.ty, records, info));
            }
        }
        self.records.start = open.records.end;
        Ok(())
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Result<Block>> {
        while self.ready.is_empty() && self.records.start < self.records.end {
            if let Err(e) = self.load() {
                // The first error ends it.
                self.records.start = self.records.end;
                return Some(Err(e));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

fn block(ty: FieldType, records: Range<u64>, info: BlockInfo) -> Block {
    let bounds =
        info.bounds.and_then(|(least, greatest)| value(ty, least).zip(value(ty, greatest)));
    Block {
        records,
        iterations: info.iterations,
        times: info.times,
        missing: info.missing,
        nan: info.nan,
        bounds,
        codec: info.codec,
        stored_bytes: info.stored_len,
        raw_bytes: info.raw_len,
    }
}

/// A value as statistics keep it: integers in 64 bits, floats as their bits.
fn value(ty: FieldType, bits: u64) -> Option<Value<'static>> {
    Some(match ty {
        FieldType::Bool => Value::Bool(bits != 0),
        FieldType::I8 => Value::I8(bits as i8),
        FieldType::I16 => Value::I16(bits as i16),
        FieldType::I32 => Value::I32(bits as i32),
        FieldType::I64 => Value::I64(bits as i64),
        FieldType::U8 => Value::U8(bits as u8),
        FieldType::U16 => Value::U16(bits as u16),
        FieldType::U32 => Value::U32(bits as u32),
        FieldType::U64 => Value::U64(bits),
        FieldType::F32 => Value::F32(f32::from_bits(bits as u32)),
        FieldType::F64 => Value::F64(f64::from_bits(bits)),
        _ => return None,
    })
}
