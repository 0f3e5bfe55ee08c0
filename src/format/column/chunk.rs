//! A chunk: a sealed run of records of one stream, column by column, made deterministically.
//!
//! ```text
//! header | blocks of the iterations | of the times, if timed | of field 0 | ... | footer | trailer
//! ```
//!
//! The footer (codec's form) holds the schema and a row for each block; the trailer says where the
//! footer begins. A reader takes the end first, then only the blocks that it needs.

use serde::{Deserialize, Serialize};

use super::block::{self, CHUNK_RAW_BYTES_MAX};
use super::coding::{BlockCodec, Coding};
use super::compress::Compressor;
use super::schema::{Schema, cells_len};
use super::value::{FieldType, Value};
use super::values::Column;
use crate::codec;
use crate::digest::checksum;
use crate::error::{Error, Result};

/// Opens a chunk.
pub const MAGIC: [u8; 8] = *b"SSTNCHNK";
/// Closes a chunk.
pub const END_MAGIC: [u8; 8] = *b"SSTNKNHC";
/// The version of the chunk's form.
pub const VERSION: u16 = 1;
/// Length of the header.
pub const HEADER_LEN: usize = 16;
/// Length of the trailer.
pub const TRAILER_LEN: usize = 24;

/// The header: field, offset, width. Integers are little-endian.
pub const HEADER_LAYOUT: &[(&str, usize, usize)] =
    &[("MAGIC", 0, 8), ("VERSION", 8, 2), ("ZERO", 10, 2), ("CRC", 12, 4)];

/// The trailer: field, offset, width. Its crc covers the bytes before it.
pub const TRAILER_LAYOUT: &[(&str, usize, usize)] = &[
    ("FOOTER_LEN", 0, 4),
    ("FOOTER_CRC", 4, 4),
    ("VERSION", 8, 2),
    ("ZERO", 10, 2),
    ("CRC", 12, 4),
    ("END_MAGIC", 16, 8),
];

/// The parts of the footer, in order, each with its type.
pub const FOOTER_LAYOUT: &[(&str, &str)] = &[
    ("schema", "bytes"),
    ("records", "u64"),
    ("first iteration", "i64"),
    ("last iteration", "i64"),
    ("first and last time", "optional pair of f64 bits"),
    ("raw length of the records", "u64"),
    ("blocks", "list of block rows"),
];

/// The parts of a block row in the footer, in order, each with its type.
pub const BLOCK_ROW_LAYOUT: &[(&str, &str)] = &[
    ("column", "u32"),
    ("first record", "u64"),
    ("records", "u32"),
    ("first iteration", "i64"),
    ("last iteration", "i64"),
    ("first and last time", "optional pair of f64 bits"),
    ("missing values", "u32"),
    ("NaN values", "u32"),
    ("least and greatest value", "optional pair of u64"),
    ("codec", "u8"),
    ("offset", "u64"),
    ("stored length", "u32"),
    ("raw length", "u32"),
    ("crc32c of the stored bytes", "u32"),
];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Footer {
    pub schema: Vec<u8>,
    pub records: u64,
    pub first_iteration: i64,
    pub last_iteration: i64,
    pub times: Option<(u64, u64)>,
    pub raw_len: u64,
    pub blocks: Vec<BlockRow>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct BlockRow {
    pub column: u32,
    pub first_record: u64,
    pub records: u32,
    pub first_iteration: i64,
    pub last_iteration: i64,
    pub times: Option<(u64, u64)>,
    pub missing: u32,
    pub nan: u32,
    pub bounds: Option<(u64, u64)>,
    pub codec: u8,
    pub offset: u64,
    pub stored_len: u32,
    pub raw_len: u32,
    pub checksum: u32,
}

/// A finished chunk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EncodedChunk {
    /// Its bytes.
    pub content: Vec<u8>,
    /// How many records it holds.
    pub records: u64,
    /// First and last iteration.
    pub iterations: (i64, i64),
    /// First and last time, where its schema is timed.
    pub times: Option<(f64, f64)>,
    /// Length of its records before encoding.
    pub raw_len: u64,
}

/// Collects records and encodes them as a chunk. Equal records give equal bytes.
#[derive(Debug)]
pub struct ChunkBuilder {
    schema: Schema,
    iterations: Column,
    /// Of a timed schema.
    times: Option<Column>,
    columns: Vec<Column>,
    last: Option<i64>,
    last_time: Option<f64>,
    raw_len: u64,
    cells_len: u64,
    /// Of fields, where no sample decides.
    coding: Option<Coding>,
    /// Kept from one chunk to the next.
    zstd: Option<Compressor>,
}

impl ChunkBuilder {
    /// Begins a chunk of records of `schema`.
    pub fn new(schema: Schema) -> Self {
        Self {
            iterations: Column::new(FieldType::I64),
            times: schema.is_timed().then(|| Column::new(FieldType::F64)),
            columns: empty(&schema),
            schema,
            last: None,
            last_time: None,
            raw_len: 0,
            cells_len: 0,
            coding: None,
            zstd: None,
        }
    }

    /// Stores all blocks of fields by `codec`, whether it gains or not, instead of by what a sample
    /// is smallest with; raw where the codec does not apply. A block without a value stays constant.
    /// To compare codecs: left to itself the builder chooses for each block.
    #[must_use]
    pub fn with_codec(mut self, codec: BlockCodec) -> Self {
        self.coding = Some(Coding::of(codec));
        self
    }

    /// As [`ChunkBuilder::with_codec`], with elements of arrays beside those of the next record; raw
    /// where there are no arrays of numbers with fixed axes.
    #[must_use]
    pub fn with_codec_across(mut self, codec: BlockCodec) -> Self {
        self.coding = Some(Coding { codec, is_transposed: true });
        self
    }

    /// The schema of its records.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How many records it holds.
    pub fn record_count(&self) -> u64 {
        self.iterations.len() as u64
    }

    /// Length of its records before encoding: what limits are compared with.
    pub fn raw_len(&self) -> u64 {
        self.raw_len
    }

    /// What a record adds to [`ChunkBuilder::raw_len`]: the length of its row-wise form.
    pub fn record_len(&self, values: &[Value<'_>]) -> u64 {
        super::row_payload::encoded_len(&self.schema, values)
    }

    /// Bytes that its records take in memory, where a missing value takes as many as another; also
    /// the most that their blocks take in raw form.
    pub fn cells_len(&self) -> u64 {
        self.cells_len
    }

    /// Whether a chunk that also holds this record would pass `chunk_bytes`, or what any chunk may
    /// hold.
    pub fn is_full_for(&self, values: &[Value<'_>], chunk_bytes: u64) -> bool {
        let raw_len = self.raw_len.saturating_add(self.record_len(values));
        let cells_len = self.cells_len.saturating_add(cells_len(values));
        self.record_count() > 0 && (raw_len > chunk_bytes || cells_len > CHUNK_RAW_BYTES_MAX)
    }

    /// Adds one record.
    ///
    /// # Errors
    /// `Invalid` when the values do not fit the schema, the iteration does not grow, the time is
    /// earlier, or is there and the schema is not timed; `LimitExceeded` for a value that is too
    /// long. Nothing is added.
    pub fn push(&mut self, iteration: i64, time: Option<f64>, values: &[Value<'_>]) -> Result<()> {
        self.schema.check_row(values)?;
        self.schema.check_time(self.last_time, time)?;
        if let Some(last) = self.last.filter(|last| iteration <= *last) {
            let cause = format!("iteration {iteration} does not follow {last}");
            return Err(Error::invalid("append", "record", cause));
        }
        // The record was checked above, so no column refuses its value.
        let mut taken = self.iterations.push(Value::I64(iteration));
        if let (Some(times), Some(time)) = (&mut self.times, time) {
            taken &= times.push(Value::F64(time));
        }
        for (column, value) in self.columns.iter_mut().zip(values) {
            taken &= column.push(*value);
        }
        debug_assert!(taken);
        self.last = Some(iteration);
        self.last_time = time;
        self.raw_len += self.record_len(values);
        self.cells_len += cells_len(values);
        Ok(())
    }

    /// Encodes the chunk and begins the next one, whose iterations may start anywhere.
    ///
    /// # Errors
    /// `Invalid` when it holds no record; `LimitExceeded` when a footer grows past its bound.
    pub fn finish(&mut self) -> Result<EncodedChunk> {
        let iterations = match self.iterations.as_i64().map(|all| (all.first(), all.last())) {
            Some((Some(first), Some(last))) => (*first, *last),
            _ => return Err(Error::invalid("seal", "chunk", "it holds no record")),
        };
        let last = self.iterations.len() - 1;
        let times = self.time_at(0).zip(self.time_at(last));
        let mut content = header();
        let mut zstd = self.zstd.take().map_or_else(Compressor::new, Ok)?;
        let blocks = self.encode_blocks(&mut zstd, &mut content)?;
        self.zstd = Some(zstd);
        let footer = Footer {
            schema: self.schema.to_bytes()?,
            records: self.record_count(),
            first_iteration: iterations.0,
            last_iteration: iterations.1,
            times: times.map(|(first, last)| (first.to_bits(), last.to_bits())),
            raw_len: self.raw_len,
            blocks,
        };
        let footer = codec::encode("chunk footer", &footer)?;
        content.extend_from_slice(&footer);
        content.extend_from_slice(&trailer(&footer));
        let (records, raw_len) = (self.record_count(), self.raw_len);
        let done = EncodedChunk { content, records, iterations, times, raw_len };
        self.clear();
        Ok(done)
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        let zstd = self.zstd.take();
        *self = Self { coding: self.coding, zstd, ..Self::new(self.schema.clone()) };
    }

    fn time_at(&self, row: usize) -> Option<f64> {
        match self.times.as_ref()?.get(row) {
            Value::F64(time) => Some(time),
            _ => None,
        }
    }

    fn encode_blocks(&self, zstd: &mut Compressor, content: &mut Vec<u8>) -> Result<Vec<BlockRow>> {
        let iteration_at = |row: usize| match self.iterations.get(row) {
            Value::I64(iteration) => iteration,
            _ => 0,
        };
        let mut records = Vec::new();
        let columns = std::iter::once(&self.iterations).chain(&self.times).chain(&self.columns);
        for (number, column) in columns.enumerate() {
            let coding = self.coding.filter(|_| number > usize::from(self.times.is_some()));
            for range in block::cut(column) {
                for (range, encoded) in block::encode(column, range, coding, zstd)? {
                    let times = self.time_at(range.start).zip(self.time_at(range.end - 1));
                    records.push(BlockRow {
                        column: number as u32,
                        first_record: range.start as u64,
                        records: range.len() as u32,
                        first_iteration: iteration_at(range.start),
                        last_iteration: iteration_at(range.end - 1),
                        times: times.map(|(first, last)| (first.to_bits(), last.to_bits())),
                        missing: encoded.missing as u32,
                        nan: encoded.nan as u32,
                        bounds: encoded.bounds,
                        codec: encoded.coding.tag(),
                        offset: content.len() as u64,
                        stored_len: encoded.bytes.len() as u32,
                        raw_len: encoded.raw_len as u32,
                        checksum: checksum(&encoded.bytes),
                    });
                    content.extend_from_slice(&encoded.bytes);
                }
            }
        }
        Ok(records)
    }
}

fn empty(schema: &Schema) -> Vec<Column> {
    schema.fields().iter().map(Column::of).collect()
}

fn header() -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&[0, 0]);
    let crc = checksum(&header);
    header.extend_from_slice(&crc.to_le_bytes());
    header
}

pub(super) fn trailer(footer: &[u8]) -> Vec<u8> {
    let mut trailer = Vec::with_capacity(TRAILER_LEN);
    // codec::encode refuses anything near 4 GiB.
    trailer.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    trailer.extend_from_slice(&checksum(footer).to_le_bytes());
    // Repeated from the header, so that a reader of few blocks need not read the beginning.
    trailer.extend_from_slice(&VERSION.to_le_bytes());
    trailer.extend_from_slice(&[0; 2]);
    let crc = checksum(&trailer);
    trailer.extend_from_slice(&crc.to_le_bytes());
    trailer.extend_from_slice(&END_MAGIC);
    trailer
}
