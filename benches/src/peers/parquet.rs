//! Parquet: one file, complete and durable when it is finished. Time and payload are columns, each append is
//! a row group, pages are found by the offset index. The low-level writer and reader of its crate.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::{Each, Peer};
use crate::Outcome;
use crate::columns::parquet::typed_reader;
use crate::payload::Source;

const TIME: usize = 0;
const PAYLOAD: usize = 1;
/// Records decoded at a time.
const STEP: usize = 1024;

pub struct Parquet {
    path: PathBuf,
    state: State,
}

enum State {
    Writing(Box<SerializedFileWriter<File>>),
    Reading(Box<Reader>),
    Nothing,
}

struct Reader {
    file: SerializedFileReader<File>,
    /// The times of each row group.
    groups: Vec<Range<u64>>,
}

impl Parquet {
    pub fn open(dir: &Path, compressed: bool) -> Outcome<Self> {
        let path = dir.join("peer.parquet");
        if path.exists() {
            let state = State::Reading(Box::new(Reader::open(&path)?));
            return Ok(Self { path, state });
        }
        let schema = "message r { required int64 n; required binary v; }";
        let compression = match compressed {
            true => Compression::ZSTD(ZstdLevel::try_new(1)?),
            false => Compression::UNCOMPRESSED,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .build();
        let schema = Arc::new(parse_message_type(schema)?);
        let file = File::create(&path)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        Ok(Self { path, state: State::Writing(Box::new(writer)) })
    }

    fn reader(&self) -> Outcome<&Reader> {
        match &self.state {
            State::Reading(reader) => Ok(reader),
            _ => Err("the file is not finished".into()),
        }
    }
}

impl Reader {
    fn open(path: &Path) -> Outcome<Self> {
        let options = ReadOptionsBuilder::new().with_page_index().build();
        let file = SerializedFileReader::new_with_options(File::open(path)?, options)?;
        let mut groups = Vec::new();
        for group in file.metadata().row_groups() {
            let bounds = group.column(TIME).statistics().ok_or("no statistics")?;
            let word = |bytes: Option<&[u8]>| -> Outcome<u64> {
                let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
                Ok(u64::from_le_bytes(bytes.ok_or("no bounds")?))
            };
            groups.push(word(bounds.min_bytes_opt())?..word(bounds.max_bytes_opt())? + 1);
        }
        Ok(Self { file, groups })
    }

    /// Whoever asks by time reads the times of the row groups in question.
    fn scan(&self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        let first = self.groups.partition_point(|group| group.end <= numbers.start);
        for at in first..self.groups.len() {
            if self.groups[at].start >= numbers.end {
                break;
            }
            let group = self.file.get_row_group(at)?;
            let rows = group.metadata().num_rows() as usize;
            let mut times = Vec::with_capacity(rows);
            let mut column = typed_reader::<Int64Type>(&*group, TIME)?;
            column.read_records(rows, None, None, &mut times)?;
            let before = |bound: u64| times.partition_point(|time| (*time as u64) < bound);
            let (from, to) = (before(numbers.start), before(numbers.end));
            let mut column = typed_reader::<ByteArrayType>(&*group, PAYLOAD)?;
            column.skip_records(from)?;
            let mut values: Vec<ByteArray> = Vec::new();
            for start in (from..to).step_by(STEP) {
                values.clear();
                let count = STEP.min(to - start);
                let (read, ..) = column.read_records(count, None, None, &mut values)?;
                if read != count {
                    return Err(format!("{read} of {count} records are there").into());
                }
                for (time, value) in times[start..].iter().zip(&values) {
                    each(*time as u64, value.data())?;
                }
            }
        }
        Ok(())
    }
}

impl Peer for Parquet {
    fn append(&mut self, numbers: Range<u64>, source: &mut dyn Source) -> Outcome<()> {
        let State::Writing(writer) = &mut self.state else {
            return Err("the file is finished".into());
        };
        // One piece of memory, and a view of it for each record.
        let mut all = Vec::new();
        let mut ends = Vec::new();
        for number in numbers.clone() {
            all.extend_from_slice(source.record(number));
            ends.push(all.len());
        }
        let all = Bytes::from(all);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let view = |(start, end): (usize, &usize)| ByteArray::from(all.slice(start..*end));
        let values: Vec<ByteArray> = starts.zip(&ends).map(view).collect();
        let times: Vec<i64> = numbers.map(|number| number as i64).collect();
        let mut group = writer.next_row_group()?;
        let mut column = group.next_column()?.ok_or("no column")?;
        column.typed::<Int64Type>().write_batch(&times, None, None)?;
        column.close()?;
        let mut column = group.next_column()?.ok_or("no column")?;
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
        group.close()?;
        Ok(())
    }

    fn finish(&mut self) -> Outcome<()> {
        if let State::Writing(writer) = std::mem::replace(&mut self.state, State::Nothing) {
            writer.into_inner()?.sync_all()?;
            self.state = State::Reading(Box::new(Reader::open(&self.path)?));
        }
        Ok(())
    }

    fn read(&mut self, number: u64) -> Outcome<Vec<u8>> {
        let mut found = None;
        self.reader()?.scan(number..number + 1, &mut |_, value| {
            found = Some(value.to_vec());
            Ok(())
        })?;
        Ok(found.ok_or_else(|| format!("record {number} is missing"))?)
    }

    fn scan(&mut self, numbers: Range<u64>, each: &mut Each<'_>) -> Outcome<()> {
        self.reader()?.scan(numbers, each)
    }

    fn count(&mut self) -> Outcome<u64> {
        Ok(self.reader()?.file.metadata().file_metadata().num_rows() as u64)
    }
}
