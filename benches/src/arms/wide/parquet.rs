//! Parquet: twenty-one columns, the time the first; row groups by statistics, pages by the offset index.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::{FIELDS, Wide, name, value};
use crate::Outcome;
use crate::columns::parquet::typed_reader;

pub struct Parquet {
    path: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
    reader: Option<SerializedFileReader<File>>,
}

impl Parquet {
    pub fn open(dir: &Path) -> Outcome<Self> {
        let path = dir.join("peer.parquet");
        if path.exists() {
            let reader = Some(read(&path)?);
            return Ok(Self { path, writer: None, reader });
        }
        let fields: Vec<String> =
            (0..FIELDS).map(|field| format!("required double {};", name(field))).collect();
        let schema = format!("message w {{ required int64 n; {} }}", fields.join(" "));
        let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
        let schema = Arc::new(parse_message_type(&schema)?);
        let file = File::create(&path)?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        Ok(Self { path, writer: Some(writer), reader: None })
    }
}

fn read(path: &Path) -> Outcome<SerializedFileReader<File>> {
    let options = ReadOptionsBuilder::new().with_page_index().build();
    Ok(SerializedFileReader::new_with_options(File::open(path)?, options)?)
}

impl Wide for Parquet {
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()> {
        let writer = self.writer.as_mut().ok_or("the file is finished")?;
        let mut group = writer.next_row_group()?;
        let mut column = group.next_column()?.ok_or("no column")?;
        let times: Vec<i64> = numbers.clone().map(|number| number as i64).collect();
        column.typed::<Int64Type>().write_batch(&times, None, None)?;
        column.close()?;
        for field in 0..FIELDS {
            let mut column = group.next_column()?.ok_or("no column")?;
            let values: Vec<f64> = numbers.clone().map(|number| value(number, field)).collect();
            column.typed::<DoubleType>().write_batch(&values, None, None)?;
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    fn finish(&mut self) -> Outcome<()> {
        if let Some(writer) = self.writer.take() {
            writer.into_inner()?.sync_all()?;
            self.reader = Some(read(&self.path)?);
        }
        Ok(())
    }

    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>> {
        let reader = self.reader.as_ref().ok_or("the file is not finished")?;
        let mut values = Vec::new();
        for (at, about) in reader.metadata().row_groups().iter().enumerate() {
            let bounds = about.column(0).statistics().ok_or("no statistics")?;
            let word = |bytes: Option<&[u8]>| -> Outcome<u64> {
                let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
                Ok(u64::from_le_bytes(bytes.ok_or("no bounds")?))
            };
            let (least, most) = (word(bounds.min_bytes_opt())?, word(bounds.max_bytes_opt())?);
            if most < numbers.start || least >= numbers.end {
                continue;
            }
            let group = reader.get_row_group(at)?;
            let rows = about.num_rows() as usize;
            let mut times = Vec::with_capacity(rows);
            typed_reader::<Int64Type>(&*group, 0)?.read_records(rows, None, None, &mut times)?;
            let before = |bound: u64| times.partition_point(|time| (*time as u64) < bound);
            let (from, to) = (before(numbers.start), before(numbers.end));
            let mut column = typed_reader::<DoubleType>(&*group, 1 + field)?;
            column.skip_records(from)?;
            column.read_records(to - from, None, None, &mut values)?;
        }
        Ok(values)
    }
}
