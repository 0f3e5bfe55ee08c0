//! Columns as chunks of ours in memory, as a recording seals them.

use sealstone::Limits;
use sealstone::format::column::{BlockCodec, Chunk, ChunkBuilder, ColumnId};
use sealstone::recording::{
    Array, Column as Decoded, Data as DecodedData, Field, FieldType, Schema, Value,
};

use super::{Column, Data, Table, Texts};
use crate::Outcome;

fn schema_of(table: &Table) -> Outcome<Schema> {
    let mut fields = Vec::new();
    for column in &table.columns {
        let ty = match column.data {
            Data::F64(_) => FieldType::F64,
            Data::I64(_) => FieldType::I64,
            Data::Text(_) => FieldType::String,
        };
        let mut field = Field::new(column.name.clone(), ty);
        if !column.axes.is_empty() {
            field = field.array(column.axes.iter().map(|len| *len as u32));
        }
        fields.push(if column.present.is_some() { field.nullable() } else { field });
    }
    Ok(Schema::new(fields)?)
}

fn cell(column: &Column, row: usize) -> Outcome<Value<'_>> {
    if !column.is_present(row) {
        return Ok(Value::Missing);
    }
    Ok(match &column.data {
        Data::F64(values) if !column.axes.is_empty() => {
            let width = column.width();
            Value::Array(Array::new(&column.axes, &values[row * width..(row + 1) * width]))
        }
        Data::F64(values) => Value::F64(values[row]),
        Data::I64(values) => Value::I64(values[row]),
        Data::Text(texts) => Value::String(std::str::from_utf8(texts.get(row))?),
    })
}

/// How to encode.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Bytes of records in a chunk, where not as by default.
    pub chunk_bytes: Option<u64>,
    /// One codec for all fields; true: elements of arrays across records.
    pub codec: Option<(BlockCodec, bool)>,
}

/// The chunks.
pub fn encode(table: &Table, how: How) -> Outcome<Vec<Vec<u8>>> {
    let chunk_bytes = how.chunk_bytes.unwrap_or(Limits::default().chunk_bytes);
    let builder = ChunkBuilder::new(schema_of(table)?);
    let mut builder = match how.codec {
        None => builder,
        Some((codec, false)) => builder.with_codec(codec),
        Some((codec, true)) => builder.with_codec_across(codec),
    };
    let mut chunks = Vec::new();
    let mut values = Vec::with_capacity(table.columns.len());
    for row in 0..table.rows() {
        values.clear();
        for column in &table.columns {
            values.push(cell(column, row)?);
        }
        if builder.is_full_for(&values, chunk_bytes) {
            chunks.push(builder.finish()?.content);
        }
        builder.push(row as i64, None, &values)?;
    }
    chunks.push(builder.finish()?.content);
    Ok(chunks)
}

/// What [`encode`] made, back.
pub fn decode(like: &Table, chunks: &[Vec<u8>]) -> Outcome<Table> {
    let mut columns: Vec<Column> = like.columns.iter().map(empty).collect();
    for content in chunks {
        let mut read = |offset: u64, len: u64| {
            let range = offset as usize..(offset + len) as usize;
            content.get(range).map(<[u8]>::to_vec).ok_or_else(|| {
                sealstone::Error::damage("read", "chunk", "it is shorter than it says")
            })
        };
        let chunk = Chunk::open("chunk", content.len() as u64, &mut read)?;
        for (at, column) in columns.iter_mut().enumerate() {
            let decoded = chunk.column(&mut read, ColumnId::Field(at), 0..chunk.record_count())?;
            take(column, &decoded)?;
        }
    }
    Ok(Table { columns })
}

fn empty(like: &Column) -> Column {
    let data = match &like.data {
        Data::F64(values) => Data::F64(Vec::with_capacity(values.len())),
        Data::I64(values) => Data::I64(Vec::with_capacity(values.len())),
        Data::Text(_) => Data::Text(Texts::default()),
    };
    let present = like.present.as_ref().map(|_| Vec::new());
    Column { name: like.name.clone(), data, present, axes: like.axes.clone() }
}

fn take(column: &mut Column, decoded: &Decoded) -> Outcome<()> {
    match (&mut column.data, decoded.data()) {
        (Data::F64(all), DecodedData::F64(more)) => all.extend_from_slice(more),
        (Data::I64(all), DecodedData::I64(more)) => all.extend_from_slice(more),
        (Data::Text(all), DecodedData::Blob(more)) => {
            (0..more.len()).for_each(|at| all.push(more.get(at)));
        }
        _ => return Err(format!("{} came back as another type", column.name).into()),
    }
    if let Some(present) = &mut column.present {
        present.extend((0..decoded.len()).map(|row| decoded.is_present(row)));
    }
    Ok(())
}
