//! Reading a chunk: its end first, then only the blocks that a request needs.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use super::axes::Shape;
use super::block::{BLOCK_RAW_BYTES, CHUNK_RAW_BYTES_MAX, memory_len};
use super::block_decode::{self, Said};
use super::chunk::{BlockRow, END_MAGIC, Footer, HEADER_LEN, MAGIC, TRAILER_LEN, VERSION};
use super::coding::{BlockCodec, Coding};
use super::schema::{Field, Schema};
use super::value::FieldType;
use super::values::Column;
use crate::codec;
use crate::digest::checksum;
use crate::error::{Error, ErrorKind, Result};

/// Gives `len` bytes of a chunk's content from `offset`.
pub type ReadRange<'a> = dyn FnMut(u64, u64) -> Result<Vec<u8>> + 'a;

/// So much of the end is read at once, since most footers are shorter.
const END_LEN: u64 = 4096;

/// Which column of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnId {
    /// The iterations, in every chunk.
    Iteration,
    /// The times, in every chunk of a timed schema.
    Time,
    /// A field, by its position in the schema.
    Field(usize),
}

/// What the footer says of one block.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BlockInfo {
    /// Its column.
    pub column: ColumnId,
    /// Its records, counted from the chunk's first.
    pub records: Range<u64>,
    /// First and last iteration.
    pub iterations: (i64, i64),
    /// First and last time, where the schema is timed.
    pub times: Option<(f64, f64)>,
    /// Records without a value.
    pub missing: u64,
    /// Values, or elements of arrays, that are NaN.
    pub nan: u64,
    /// Least and greatest value or element, NaN aside: integers by their value in 64 bits, floats
    /// as their bits, `bool` as 0 and 1; none for text and bytes, or where no value is.
    pub bounds: Option<(u64, u64)>,
    /// How it is stored.
    pub codec: BlockCodec,
    /// Whether elements of arrays stand beside those of the next record instead of their own.
    pub is_transposed: bool,
    /// Bytes stored.
    pub stored_len: u64,
    /// Bytes before encoding.
    pub raw_len: u64,
}

/// An opened chunk: its footer, checked. It holds no content.
#[derive(Debug, Clone)]
pub struct Chunk {
    place: String,
    schema: Schema,
    records: u64,
    iterations: (i64, i64),
    times: Option<(f64, f64)>,
    raw_len: u64,
    blocks: HashMap<u32, Vec<BlockRow>>,
    /// Length of footer and trailer.
    end_len: u64,
}

impl Chunk {
    /// Reads the footer of a chunk of `len` bytes; `place` names it in errors.
    ///
    /// # Errors
    /// `Damage` when the bytes are no chunk; `NewerFormat` for a newer version or type.
    pub fn open(place: impl fmt::Display, len: u64, read: &mut ReadRange<'_>) -> Result<Self> {
        Self::open_with(place, len, END_LEN, read)
    }

    /// As [`Chunk::open`], for whoever guesses how long the end is, which is read at once.
    pub(crate) fn open_with(
        place: impl fmt::Display,
        len: u64,
        end_len: u64,
        read: &mut ReadRange<'_>,
    ) -> Result<Self> {
        let place = place.to_string();
        let wrong = |cause: &str| Error::damage("read", &place, cause);
        let least = (HEADER_LEN + TRAILER_LEN) as u64;
        if len < least {
            return Err(wrong("it is shorter than any chunk"));
        }
        let end_at = len.saturating_sub(end_len.max(TRAILER_LEN as u64));
        let end = exactly(read, &place, end_at, len - end_at)?;
        let Some((before, trailer)) = end.split_last_chunk::<TRAILER_LEN>() else {
            return Err(wrong("it is shorter than any chunk"));
        };
        let Some((footer_len, footer_crc, version)) = parse_trailer(trailer) else {
            return Err(wrong("no trailer"));
        };
        check_version(version, &place)?;
        if footer_len > len - least {
            return Err(wrong("the footer is longer than the chunk"));
        }
        let footer = match before.len().checked_sub(footer_len as usize) {
            Some(at) => before[at..].to_vec(),
            None => {
                // What is known of its end is not read again.
                let at = len - TRAILER_LEN as u64 - footer_len;
                let mut footer = exactly(read, &place, at, end_at - at)?;
                footer.extend_from_slice(before);
                footer
            }
        };
        // P6: the checksum of the footer covers the checksum of every block.
        if checksum(&footer) != footer_crc {
            return Err(wrong("the footer's checksum does not fit"));
        }
        if end_at == 0 {
            check_header(&end[..HEADER_LEN], &place)?;
        }
        let content_end = len - TRAILER_LEN as u64 - footer_len;
        let footer: Footer = codec::decode("chunk footer", &footer)
            .map_err(|e| wrong("the footer does not decode").with_source(e))?;
        let end_len = len - content_end;
        Ok(Self { end_len, ..Self::from_footer(place, footer, content_end)? })
    }

    fn from_footer(place: String, footer: Footer, content_end: u64) -> Result<Self> {
        let schema = Schema::from_bytes(&footer.schema).map_err(|e| {
            Error::new(e.kind(), "read", &place, "its schema is not readable").with_source(e)
        })?;
        let wrong = |cause: String| Err(Error::damage("read", &place, cause));
        if footer.records == 0 || footer.first_iteration > footer.last_iteration {
            return wrong("a chunk without records".into());
        }
        let times = times_of(footer.times);
        if footer.times.is_some() != schema.is_timed() || footer.times.is_some() != times.is_some()
        {
            return wrong("times that contradict its schema, or each other".into());
        }
        let of_records = 1 + usize::from(schema.is_timed());
        let mut blocks: HashMap<u32, Vec<BlockRow>> = HashMap::new();
        let (mut free_from, mut raw_len) = (HEADER_LEN as u64, 0u64);
        for block in footer.blocks {
            // P9: stored bytes belong to one block, so that few of them cannot stand for many.
            let end = block.offset.checked_add(u64::from(block.stored_len));
            let inside = block.offset >= free_from && end.is_some_and(|end| end <= content_end);
            free_from = end.unwrap_or(content_end);
            let of = (block.column as usize).checked_sub(of_records);
            let field = of.and_then(|at| schema.fields().get(at));
            raw_len = raw_len.saturating_add(demand(&block, field));
            if raw_len > CHUNK_RAW_BYTES_MAX {
                return wrong(format!("its blocks are longer than {CHUNK_RAW_BYTES_MAX} bytes"));
            }
            if (block.column as usize) < of_records && block.missing != 0 {
                return wrong("records without an iteration or a time".into());
            }
            if block.times.is_some() != schema.is_timed() {
                return wrong("blocks whose times contradict its schema".into());
            }
            let of_column = blocks.entry(block.column).or_default();
            let next = of_column.last().map_or(0, |b| b.first_record + u64::from(b.records));
            if !inside || block.first_record != next || block.records == 0 {
                let cause = format!("block {} of column {}", of_column.len(), block.column);
                return wrong(format!("{cause} does not follow the one before, or lies outside"));
            }
            of_column.push(block);
        }
        let columns = schema.fields().len() + of_records;
        if let Err(cause) = check_columns(&blocks, columns, footer.records) {
            return wrong(cause);
        }
        Ok(Self {
            place,
            schema,
            records: footer.records,
            iterations: (footer.first_iteration, footer.last_iteration),
            times,
            raw_len: footer.raw_len,
            blocks,
            end_len: 0,
        })
    }

    /// The schema of its records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The length of its end: for [`Chunk::open_with`] of a chunk like it.
    pub(crate) fn end_len(&self) -> u64 {
        self.end_len
    }

    /// How many blocks its footer tells of.
    pub(crate) fn block_count(&self) -> usize {
        self.blocks.values().map(Vec::len).sum()
    }

    /// How many records it holds.
    pub fn record_count(&self) -> u64 {
        self.records
    }

    /// First and last iteration.
    pub fn iterations(&self) -> (i64, i64) {
        self.iterations
    }

    /// First and last time, where its schema is timed.
    pub fn times(&self) -> Option<(f64, f64)> {
        self.times
    }

    /// Length of its records before encoding.
    pub fn raw_len(&self) -> u64 {
        self.raw_len
    }

    /// What is known of the blocks of a column, in order.
    pub fn blocks(&self, column: ColumnId) -> Vec<BlockInfo> {
        self.block_rows(column).iter().filter_map(|row| info(column, row)).collect()
    }

    /// Decodes the records `records` of a column, reading only the blocks that hold them.
    ///
    /// # Errors
    /// `Damage` when a block does not fit its checksum or does not decode; `NewerFormat` for a
    /// codec of a newer release; whatever `read` gives.
    pub fn column(
        &self,
        read: &mut ReadRange<'_>,
        column: ColumnId,
        records: Range<u64>,
    ) -> Result<Column> {
        let scalar = Shape::default();
        let (ty, shape) = match column {
            ColumnId::Iteration => (FieldType::I64, &scalar),
            ColumnId::Time if self.schema.is_timed() => (FieldType::F64, &scalar),
            ColumnId::Time => {
                let cause = "its records have no time";
                return Err(Error::invalid("read", &self.place, cause));
            }
            ColumnId::Field(at) => match self.schema.fields().get(at) {
                Some(field) => (field.ty, &field.shape),
                None => {
                    let cause = format!("it has no field number {at}");
                    return Err(Error::invalid("read", &self.place, cause));
                }
            },
        };
        let mut all = Column::shaped(ty, shape);
        for run in runs(self.overlapping(column, &records)) {
            let Some(at) = run.first().map(|block| block.offset) else { continue };
            let len = run.iter().map(|block| u64::from(block.stored_len)).sum();
            let bytes = exactly(read, &self.place, at, len)?;
            let mut rest = bytes.as_slice();
            for block in run {
                let (stored, behind) = rest.split_at(block.stored_len as usize);
                rest = behind;
                let decoded = self.decode(stored, ty, shape, block)?;
                let end = block.first_record + u64::from(block.records);
                let from = records.start.saturating_sub(block.first_record) as usize;
                let to = (records.end.min(end) - block.first_record) as usize;
                if from == 0 && to == decoded.len() && all.is_empty() {
                    all = decoded;
                } else if !all.extend(&decoded, from..to) {
                    return Err(Error::damage("read", &self.place, "blocks of different types"));
                }
            }
        }
        Ok(all)
    }

    /// The records whose iterations lie in `iterations`: found by the footer and at most two blocks.
    ///
    /// # Errors
    /// As [`Chunk::column`].
    pub fn records_of(&self, read: &mut ReadRange<'_>, wanted: Range<i64>) -> Result<Range<u64>> {
        let start = self.first_row_from(read, wanted.start)?;
        let end = self.first_row_from(read, wanted.end)?;
        Ok(start..end.max(start))
    }

    /// The first record whose iteration is at least `bound`; the record count if none is.
    fn first_row_from(&self, read: &mut ReadRange<'_>, bound: i64) -> Result<u64> {
        for block in self.block_rows(ColumnId::Iteration) {
            if block.last_iteration < bound {
                continue;
            }
            if block.first_iteration >= bound {
                return Ok(block.first_record);
            }
            // Iterations grow: a block that has room for no others has them all.
            let span = block.last_iteration.abs_diff(block.first_iteration);
            if span == u64::from(block.records) - 1 {
                return Ok(block.first_record + bound.abs_diff(block.first_iteration));
            }
            let column = self.read_block(read, FieldType::I64, block)?;
            let Some(values) = column.as_i64() else {
                return Err(Error::damage("read", &self.place, "records without an iteration"));
            };
            return Ok(block.first_record + values.partition_point(|v| *v < bound) as u64);
        }
        Ok(self.records)
    }

    /// The records whose times lie in `times`: found by the footer and at most two blocks. None where
    /// the schema is not timed.
    ///
    /// # Errors
    /// As [`Chunk::column`].
    pub fn records_between_times(
        &self,
        read: &mut ReadRange<'_>,
        times: Range<f64>,
    ) -> Result<Range<u64>> {
        let start = self.first_row_since(read, times.start)?;
        let end = self.first_row_since(read, times.end)?;
        Ok(start..end.max(start))
    }

    /// The first record whose time is at least `bound`; the record count if none is.
    fn first_row_since(&self, read: &mut ReadRange<'_>, bound: f64) -> Result<u64> {
        for block in self.block_rows(ColumnId::Time) {
            let Some((first, last)) = times_of(block.times) else {
                return Err(Error::damage("read", &self.place, "a block's times go backwards"));
            };
            if last < bound {
                continue;
            }
            if first >= bound {
                return Ok(block.first_record);
            }
            let column = self.read_block(read, FieldType::F64, block)?;
            let Some(values) = column.as_f64() else {
                return Err(Error::damage("read", &self.place, "records without a time"));
            };
            return Ok(block.first_record + values.partition_point(|v| *v < bound) as u64);
        }
        Ok(self.records)
    }

    fn block_rows(&self, column: ColumnId) -> &[BlockRow] {
        let number = match column {
            ColumnId::Iteration => Some(0),
            ColumnId::Time => self.schema.is_timed().then_some(1),
            ColumnId::Field(at) => {
                let first = 1 + u32::from(self.schema.is_timed());
                u32::try_from(at).ok().and_then(|at| at.checked_add(first))
            }
        };
        number.and_then(|number| self.blocks.get(&number)).map_or(&[], Vec::as_slice)
    }

    /// The blocks of a column that hold some of `records`.
    fn overlapping(&self, column: ColumnId, records: &Range<u64>) -> &[BlockRow] {
        let blocks = self.block_rows(column);
        let from =
            blocks.partition_point(|b| b.first_record + u64::from(b.records) <= records.start);
        let upto = blocks.partition_point(|b| b.first_record < records.end);
        blocks.get(from..upto).unwrap_or_default()
    }

    fn read_block(
        &self,
        read: &mut ReadRange<'_>,
        ty: FieldType,
        block: &BlockRow,
    ) -> Result<Column> {
        let stored = exactly(read, &self.place, block.offset, u64::from(block.stored_len))?;
        self.decode(&stored, ty, &Shape::default(), block)
    }

    fn decode(
        &self,
        stored: &[u8],
        ty: FieldType,
        shape: &Shape,
        block: &BlockRow,
    ) -> Result<Column> {
        let place = || format!("{} offset {}", self.place, block.offset);
        // P6: nothing is decoded before its checksum fits.
        if checksum(stored) != block.checksum {
            return Err(Error::damage("read", place(), "the block's checksum does not fit"));
        }
        let Some(coding) = Coding::from_tag(block.codec) else {
            let cause = format!("codec {} is of a newer release", block.codec);
            return Err(Error::new(ErrorKind::NewerFormat, "read", place(), cause));
        };
        let said = Said {
            ty,
            shape,
            coding,
            records: block.records as usize,
            missing: block.missing as usize,
            raw_len: block.raw_len as usize,
        };
        block_decode::decode(said, stored)
            .map_err(|e| Error::damage("read", place(), "a block does not decode").with_source(e))
    }
}

/// Blocks that are read at once: they lie behind each other, and are no longer than one may be.
fn runs(blocks: &[BlockRow]) -> impl Iterator<Item = &[BlockRow]> {
    let mut bytes = 0;
    blocks.chunk_by(move |before, next| {
        bytes += before.stored_len as usize;
        let joins = before.offset + u64::from(before.stored_len) == next.offset
            && bytes + next.stored_len as usize <= BLOCK_RAW_BYTES;
        if !joins {
            bytes = 0;
        }
        joins
    })
}

/// Both times, where they are numbers in order.
/// Whether each of `columns` columns has a block for each of `records` records, and there is no other.
fn check_columns(
    blocks: &HashMap<u32, Vec<BlockRow>>,
    columns: usize,
    records: u64,
) -> std::result::Result<(), String> {
    for number in 0..columns {
        let last = u32::try_from(number).ok().and_then(|n| blocks.get(&n)?.last().copied());
        let held = last.map_or(0, |block| block.first_record + u64::from(block.records));
        if held != records {
            return Err(format!("column {number} has {held} of {records} records"));
        }
    }
    if blocks.len() != columns {
        return Err("blocks of a column that the schema lacks".into());
    }
    Ok(())
}

fn times_of(bits: Option<(u64, u64)>) -> Option<(f64, f64)> {
    let (first, last) = bits?;
    let (first, last) = (f64::from_bits(first), f64::from_bits(last));
    (first.is_finite() && last.is_finite() && first <= last).then_some((first, last))
}

/// What a block of `field`, or of iterations or times, takes of the bound of a chunk.
fn demand(block: &BlockRow, field: Option<&Field>) -> u64 {
    let (records, raw) = (u64::from(block.records), u64::from(block.raw_len));
    let in_memory = field.map_or(raw, |field| {
        let flags = if block.missing > 0 { records.div_ceil(8) } else { 0 };
        memory_len(field.ty, &field.shape, records, raw.saturating_sub(flags))
    });
    in_memory.max(raw).max(8 * records)
}

fn info(column: ColumnId, row: &BlockRow) -> Option<BlockInfo> {
    let coding = Coding::from_tag(row.codec)?;
    Some(BlockInfo {
        column,
        records: row.first_record..row.first_record + u64::from(row.records),
        iterations: (row.first_iteration, row.last_iteration),
        times: times_of(row.times),
        missing: u64::from(row.missing),
        nan: u64::from(row.nan),
        bounds: row.bounds,
        codec: coding.codec,
        is_transposed: coding.is_transposed,
        stored_len: u64::from(row.stored_len),
        raw_len: u64::from(row.raw_len),
    })
}

fn exactly(read: &mut ReadRange<'_>, place: &str, offset: u64, len: u64) -> Result<Vec<u8>> {
    let bytes = read(offset, len)?;
    if bytes.len() as u64 != len {
        let cause = format!("{} bytes at offset {offset} instead of {len}", bytes.len());
        return Err(Error::damage("read", place, cause));
    }
    Ok(bytes)
}

fn parse_trailer(bytes: &[u8; TRAILER_LEN]) -> Option<(u64, u32, u16)> {
    let word = |at: usize| bytes.get(at..)?.first_chunk::<4>().map(|b| u32::from_le_bytes(*b));
    let fits = bytes[16..] == END_MAGIC && checksum(&bytes[..12]) == word(12)?;
    fits.then_some((u64::from(word(0)?), word(4)?, word(8)? as u16))
}

fn check_header(bytes: &[u8], place: &str) -> Result<()> {
    let crc = bytes.last_chunk::<4>().map(|b| u32::from_le_bytes(*b));
    if !bytes.starts_with(&MAGIC) || crc != Some(checksum(&bytes[..HEADER_LEN - 4])) {
        return Err(Error::damage("read", place, "no header of a chunk"));
    }
    let version = bytes[MAGIC.len()..].first_chunk::<2>().map_or(0, |b| u16::from_le_bytes(*b));
    check_version(version, place)
}

fn check_version(version: u16, place: &str) -> Result<()> {
    if version != VERSION {
        let cause = format!("chunk version {version} is of a newer release");
        return Err(Error::new(ErrorKind::NewerFormat, "read", place, cause));
    }
    Ok(())
}
