//! Columns as a Parquet file in memory: one row group, pages as its library makes them.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

use super::{Column, Data, Table, Texts};
use crate::Outcome;

/// The reader of one column of a row group.
pub fn typed_reader<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
) -> Outcome<ColumnReaderImpl<T>> {
    Ok(get_typed_column_reader(group.get_column_reader(at)?))
}

/// How to write.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// zstd's level; none leaves pages as they are.
    pub level: Option<i32>,
    /// Numbers by BYTE_STREAM_SPLIT instead of dictionaries and plain values.
    pub is_split: bool,
}

/// A record's array is so many values of its column: Parquet's own lists would add levels to each.
fn schema_of(table: &Table) -> Outcome<TypePtr> {
    let mut text = String::from("message r {");
    for column in &table.columns {
        let kind = match column.data {
            Data::F64(_) => "double",
            Data::I64(_) => "int64",
            Data::Text(_) => "binary",
        };
        let repetition = if column.present.is_some() { "optional" } else { "required" };
        text.push_str(&format!(" {repetition} {kind} {};", column.name));
    }
    text.push_str(" }");
    Ok(Arc::new(parse_message_type(&text)?))
}

fn properties_of(table: &Table, how: How) -> Outcome<WriterPropertiesBuilder> {
    let mut properties = WriterProperties::builder().set_compression(match how.level {
        Some(level) => Compression::ZSTD(ZstdLevel::try_new(level)?),
        None => Compression::UNCOMPRESSED,
    });
    for column in &table.columns {
        let path = ColumnPath::from(column.name.as_str());
        if how.is_split && !matches!(column.data, Data::Text(_)) {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
        }
    }
    Ok(properties)
}

/// The file. All columns have as many values as the longest: a record is a row only where no column has
/// axes.
pub fn encode(table: &Table, how: How) -> Outcome<Vec<u8>> {
    let properties = Arc::new(properties_of(table, how)?.build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema_of(table)?, properties)?;
    let mut group = writer.next_row_group()?;
    for column in &table.columns {
        let mut to = group.next_column()?.ok_or("no column")?;
        let levels: Option<Vec<i16>> =
            column.present.as_ref().map(|flags| flags.iter().map(|f| i16::from(*f)).collect());
        let levels = levels.as_deref();
        match &column.data {
            Data::F64(values) => write::<DoubleType>(to.typed(), column, values, levels)?,
            Data::I64(values) => write::<Int64Type>(to.typed(), column, values, levels)?,
            Data::Text(texts) => {
                let bytes = Bytes::from(texts.bytes.clone());
                let mut start = 0;
                let mut views = Vec::with_capacity(texts.ends.len());
                for end in &texts.ends {
                    views.push(ByteArray::from(bytes.slice(start..*end)));
                    start = *end;
                }
                write::<ByteArrayType>(to.typed(), column, &views, levels)?;
            }
        }
        to.close()?;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

fn write<T: DataType>(
    to: &mut ColumnWriterImpl<'_, T>,
    column: &Column,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Outcome<()> {
    if levels.is_none() {
        to.write_batch(values, None, None)?;
        return Ok(());
    }
    let present = values.iter().enumerate().filter(|(row, _)| column.is_present(*row));
    let present: Vec<T::T> = present.map(|(_, value)| value.clone()).collect();
    to.write_batch(&present, levels, None)?;
    Ok(())
}

/// What [`encode`] made, back.
pub fn decode(like: &Table, file: &Bytes) -> Outcome<Table> {
    let file = SerializedFileReader::new(file.clone())?;
    let group = file.get_row_group(0)?;
    let mut columns = Vec::new();
    for (at, like) in like.columns.iter().enumerate() {
        let (data, present) = match &like.data {
            Data::F64(_) => {
                let (values, present) = read::<DoubleType>(&*group, at, like, 0.0)?;
                (Data::F64(values), present)
            }
            Data::I64(_) => {
                let (values, present) = read::<Int64Type>(&*group, at, like, 0)?;
                (Data::I64(values), present)
            }
            Data::Text(_) => {
                let none = ByteArray::from(Vec::new());
                let (values, present) = read::<ByteArrayType>(&*group, at, like, none)?;
                let mut texts = Texts::default();
                values.iter().for_each(|value| texts.push(value.data()));
                (Data::Text(texts), present)
            }
        };
        columns.push(Column { name: like.name.clone(), data, present, axes: like.axes.clone() });
    }
    Ok(Table { columns })
}

type Read<T> = (Vec<T>, Option<Vec<bool>>);

fn read<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
    like: &Column,
    none: T::T,
) -> Outcome<Read<T::T>> {
    let count = like.data.len();
    let mut reader = typed_reader::<T>(group, at)?;
    let mut values = Vec::with_capacity(count);
    if like.present.is_none() {
        reader.read_records(count, None, None, &mut values)?;
        return Ok((values, None));
    }
    let mut levels = Vec::with_capacity(count);
    reader.read_records(count, Some(&mut levels), None, &mut values)?;
    let present: Vec<bool> = levels.iter().map(|level| *level == 1).collect();
    let mut values = values.into_iter();
    let mut all = Vec::with_capacity(count);
    for is_present in &present {
        let value = if *is_present { values.next() } else { None };
        all.push(value.unwrap_or_else(|| none.clone()));
    }
    Ok((all, Some(present)))
}
