//! A Parquet file to batches, row group by row group, from bytes that the caller fetches.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder};

use crate::error::{Error, Result};

/// Gives the bytes of a range.
pub type ParquetBytes<'a> = dyn FnMut(Range<u64>) -> Result<Vec<u8>> + 'a;

/// Rows decoded at a time.
const STEP: usize = 8 << 10;

/// Reads the batches of a file. Memory holds the columns of a row group that are asked for.
pub struct ParquetReader {
    rows: u64,
    schema: SchemaRef,
    decoder: ParquetPushDecoder,
}

impl ParquetReader {
    /// Reads the footer of a file of `len` bytes, to read all of its columns.
    ///
    /// # Errors
    /// Those of `fetch`; `Damage` for bytes that are no Parquet file.
    pub fn open(len: u64, fetch: &mut ParquetBytes<'_>) -> Result<Self> {
        Self::of(len, fetch, false)
    }

    /// The same, to read the first column only: enough to count rows by reading them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_first_column(len: u64, fetch: &mut ParquetBytes<'_>) -> Result<Self> {
        Self::of(len, fetch, true)
    }

    fn of(len: u64, fetch: &mut ParquetBytes<'_>, is_first_only: bool) -> Result<Self> {
        let footer = Arc::new(footer(len, fetch)?);
        let mut groups = footer.row_groups().iter().map(|group| group.num_rows());
        let rows = groups.try_fold(0_i64, |all, rows| all.checked_add(rows.max(0)));
        let rows = rows.filter(|rows| *rows == footer.file_metadata().num_rows());
        let rows = rows.and_then(|rows| u64::try_from(rows).ok());
        let rows = rows.ok_or_else(|| damaged("its row groups are not as many rows as it says"))?;
        guarded(|| {
            let builder = ParquetPushDecoderBuilder::try_new_decoder(footer)?.with_batch_size(STEP);
            let schema = builder.schema().clone();
            let first = ProjectionMask::leaves(builder.parquet_schema(), [0]);
            let builder = if is_first_only { builder.with_projection(first) } else { builder };
            Ok(Self { rows, schema, decoder: builder.build()? })
        })
    }

    /// Rows, as the footer says.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The columns of the file.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows, or `None` behind the last.
    ///
    /// # Errors
    /// Those of `fetch`; `Damage` for bytes that are no Parquet file.
    pub fn next_batch(&mut self, fetch: &mut ParquetBytes<'_>) -> Result<Option<RecordBatch>> {
        loop {
            match guarded(|| self.decoder.try_decode())? {
                DecodeResult::Data(batch) => return Ok(Some(batch)),
                DecodeResult::Finished => return Ok(None),
                DecodeResult::NeedsData(ranges) => {
                    let pieces = pieces(&ranges, fetch)?;
                    guarded(|| self.decoder.push_ranges(ranges, pieces))?;
                }
            }
        }
    }
}

impl fmt::Debug for ParquetReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetReader").field("rows", &self.rows).finish_non_exhaustive()
    }
}

fn footer(len: u64, fetch: &mut ParquetBytes<'_>) -> Result<ParquetMetaData> {
    let decoder = guarded(|| ParquetMetaDataPushDecoder::try_new(len))?;
    let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Skip);
    loop {
        match guarded(|| decoder.try_decode())? {
            DecodeResult::Data(footer) => return Ok(footer),
            DecodeResult::Finished => return Err(damaged("its footer came to no end")),
            DecodeResult::NeedsData(ranges) => {
                if ranges.iter().any(|range| range.end > len) {
                    return Err(damaged("its footer lies beyond its end"));
                }
                let pieces = pieces(&ranges, fetch)?;
                guarded(|| decoder.push_ranges(ranges, pieces))?;
            }
        }
    }
}

fn pieces(ranges: &[Range<u64>], fetch: &mut ParquetBytes<'_>) -> Result<Vec<Bytes>> {
    ranges.iter().map(|range| fetch(range.clone()).map(Bytes::from)).collect()
}

/// P9: the crate checks what it reads, and stops with a panic at some of what no writer wrote.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(e)) => Err(damaged("it is no Parquet file").with_source(e)),
        Err(_) => Err(damaged("it is no Parquet file: its reader gave up")),
    }
}

fn damaged(cause: &str) -> Error {
    Error::damage("read", "Parquet", cause)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array};

    use super::super::{JsonColumns, ParquetWriter};
    use super::*;
    use crate::error::ErrorKind;

    fn lines(count: u64) -> JsonColumns {
        let mut columns = JsonColumns::new();
        for n in 0..count {
            let line = format!(
                r#"{{"n":{n},"t":"text {}","o":{{"l":[{n},null],"e":[]}},"z":null}}"#,
                n % 7
            );
            columns.push(line.as_bytes()).unwrap();
        }
        columns
    }

    fn written(batches: &[RecordBatch]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        let mut writer = ParquetWriter::new(batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.push(batch, &mut out).unwrap());
        writer.finish(&mut out).unwrap();
        bytes
    }

    fn from(bytes: &[u8]) -> impl FnMut(Range<u64>) -> Result<Vec<u8>> {
        |range| {
            let found = bytes.get(range.start as usize..range.end as usize);
            found.map(<[u8]>::to_vec).ok_or_else(|| damaged("beyond"))
        }
    }

    /// Do the rows come back, counted by the footer and by reading, and are the bytes always the same?
    #[test]
    fn what_is_written_reads_back() {
        let batch = lines(20_000).take().unwrap();
        let bytes = written(&[batch.slice(0, 3), batch.slice(3, 19_997)]);
        assert_eq!(bytes, written(&[batch.slice(0, 3), batch.slice(3, 19_997)]));
        let mut fetch = from(&bytes);
        let mut reader = ParquetReader::open(bytes.len() as u64, &mut fetch).unwrap();
        assert_eq!(reader.rows(), 20_000);
        assert_eq!(*reader.schema(), batch.schema());
        let mut at = 0;
        while let Some(found) = reader.next_batch(&mut fetch).unwrap() {
            assert_eq!(found, batch.slice(at, found.num_rows()));
            at += found.num_rows();
        }
        assert_eq!(at, 20_000);
    }

    /// Is only the first column fetched where rows are counted?
    #[test]
    fn counting_fetches_one_column() {
        let bytes = written(&[lines(20_000).take().unwrap()]);
        let fetched = Cell::new(0);
        let mut from = from(&bytes);
        let mut fetch = |range: Range<u64>| {
            fetched.set(fetched.get() + range.end - range.start);
            from(range)
        };
        let mut reader = ParquetReader::open_first_column(bytes.len() as u64, &mut fetch).unwrap();
        let mut rows = 0;
        while let Some(batch) = reader.next_batch(&mut fetch).unwrap() {
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), rows);
            rows += batch.num_rows() as i64;
        }
        assert_eq!(rows, 20_000);
        assert!(fetched.get() < bytes.len() as u64 * 2 / 3, "{} bytes", fetched.get());
    }

    /// Does memory hold a row group, and not the file?
    #[test]
    fn bytes_are_handed_on_as_row_groups_end() {
        let mut random = 1_u64;
        let mut column = || {
            let mut next = |_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 1).cast_signed()
            };
            Arc::new(Int64Array::from_iter_values((0..65_536).map(&mut next))) as ArrayRef
        };
        let mut batch = || RecordBatch::try_from_iter([("a", column()), ("b", column())]).unwrap();
        let mut writer = ParquetWriter::new(batch().schema()).unwrap();
        let pieces = Cell::new(0);
        let mut out = |_: &[u8]| {
            pieces.set(pieces.get() + 1);
            Ok(())
        };
        for _ in 0..75 {
            writer.push(&batch(), &mut out).unwrap();
            assert!(writer.0.memory_size() < 80 << 20, "{} bytes", writer.0.memory_size());
        }
        assert!(pieces.get() >= 2, "{} pieces of about 75 MiB", pieces.get());
    }

    /// Is every other text of bytes an error or a file, and never a panic?
    #[test]
    fn changed_bytes_do_no_harm() {
        std::panic::set_hook(Box::new(|_| {}));
        let bytes = written(&[lines(50).take().unwrap()]);
        let read = |bytes: &[u8]| -> Result<u64> {
            let mut fetch = from(bytes);
            let mut reader = ParquetReader::open(bytes.len() as u64, &mut fetch)?;
            let mut rows = 0;
            while let Some(batch) = reader.next_batch(&mut fetch)? {
                rows += batch.num_rows() as u64;
            }
            Ok(rows)
        };
        assert_eq!(read(&bytes).unwrap(), 50);
        for len in (0..bytes.len()).step_by(7) {
            assert_eq!(read(&bytes[..len]).unwrap_err().kind(), ErrorKind::Damage, "{len}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x04;
            let _ = read(&changed);
        }
        let _ = std::panic::take_hook();
    }

    /// Is a schema that Parquet cannot hold an error before a byte is written?
    #[test]
    fn rows_without_a_column_are_refused() {
        let mut columns = JsonColumns::new();
        columns.push(b"{}").unwrap();
        let refused = ParquetWriter::new(columns.schema()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
    }
}
