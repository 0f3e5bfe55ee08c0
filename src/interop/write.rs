//! Typed rows to CSV or JSON lines. What a column's missing values were called is written again.

use std::io::Write;

use super::number::{write_display, write_float, write_hex};
use super::options::Format;
use super::plan::Missing;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Value;

/// A column of the output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutColumn {
    /// Its name.
    pub name: String,
    /// How a missing value is spelled, where that is known.
    pub missing: Option<Missing>,
}

impl OutColumn {
    /// A column and the spelling of its missing values.
    pub fn new(name: impl Into<String>, missing: Option<Missing>) -> Self {
        Self { name: name.into(), missing }
    }
}

/// Writes rows. Call [`RowWriter::finish`] to learn of errors of the last ones.
#[derive(Debug)]
pub struct RowWriter<W: Write> {
    target: Target<W>,
    columns: Vec<OutColumn>,
    text: String,
    rows: u64,
}

#[derive(Debug)]
enum Target<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Jsonl { output: std::io::BufWriter<W>, keys: Vec<String> },
}

const BUFFER_BYTES: usize = 64 << 10;

impl<W: Write> RowWriter<W> {
    /// Begins; CSV gets its header line.
    ///
    /// # Errors
    /// `Io` and `DiskFull`.
    pub fn new(output: W, format: Format, columns: Vec<OutColumn>) -> Result<Self> {
        let target = match format {
            Format::Csv => {
                let mut builder = csv::WriterBuilder::new();
                let mut writer = builder.buffer_capacity(BUFFER_BYTES).from_writer(output);
                writer
                    .write_record(columns.iter().map(|c| c.name.as_str()))
                    .map_err(csv_refused)?;
                Target::Csv(Box::new(writer))
            }
            Format::Jsonl => {
                let mut keys = Vec::with_capacity(columns.len());
                for column in &columns {
                    keys.push(json_text(&column.name)?);
                }
                let output = std::io::BufWriter::with_capacity(BUFFER_BYTES, output);
                Target::Jsonl { output, keys }
            }
        };
        Ok(Self { target, columns, text: String::new(), rows: 0 })
    }

    /// Writes one row: as many values as there are columns.
    ///
    /// # Errors
    /// `Io` and `DiskFull`; `Invalid` for a `json` value that is none.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        self.rows += 1;
        match &mut self.target {
            Target::Csv(writer) => {
                for (column, value) in self.columns.iter().zip(values) {
                    self.text.clear();
                    match value {
                        Value::String(text) | Value::Json(text) => {
                            writer.write_field(text).map_err(csv_refused)?;
                            continue;
                        }
                        Value::Missing => {
                            if let Some(Missing::Text(spelling)) = &column.missing {
                                self.text.push_str(spelling);
                            }
                        }
                        value => write_scalar(value, &mut self.text),
                    }
                    writer.write_field(&self.text).map_err(csv_refused)?;
                }
                writer.write_record(None::<&[u8]>).map_err(csv_refused)
            }
            Target::Jsonl { output, keys } => {
                self.text.clear();
                self.text.push('{');
                for ((column, key), value) in self.columns.iter().zip(keys).zip(values) {
                    if value.is_missing() && column.missing == Some(Missing::Absent) {
                        continue;
                    }
                    if self.text.len() > 1 {
                        self.text.push(',');
                    }
                    self.text.push_str(key);
                    self.text.push(':');
                    write_json(value, &mut self.text)?;
                }
                self.text.push_str("}\n");
                output.write_all(self.text.as_bytes()).map_err(refused)
            }
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Hands everything to the output and gives it back.
    ///
    /// # Errors
    /// `Io` and `DiskFull`.
    pub fn finish(self) -> Result<W> {
        let mut output = match self.target {
            Target::Csv(writer) => writer
                .into_inner()
                .map_err(|e| refused(std::io::Error::new(e.error().kind(), e.to_string())))?,
            Target::Jsonl { output, .. } => {
                output.into_inner().map_err(|e| refused(e.into_error()))?
            }
        };
        output.flush().map_err(refused)?;
        Ok(output)
    }
}

/// Appends the JSON form of a value. What JSON has no number for is written as a string.
///
/// # Errors
/// `Invalid` for a `json` value that is not one JSON value on one line.
pub fn write_json(value: &Value<'_>, into: &mut String) -> Result<()> {
    match value {
        Value::Missing => into.push_str("null"),
        Value::String(text) => into.push_str(&json_text(text)?),
        Value::Json(raw) if super::cells::is_json_line(raw) => into.push_str(raw),
        Value::Json(_) => {
            return Err(Error::invalid("export", "json field", "it holds text that is not JSON"));
        }
        Value::F64(v) if !v.is_finite() => quoted(value, into),
        Value::F32(v) if !v.is_finite() => quoted(value, into),
        Value::Bytes(bytes) | Value::Opaque(bytes) => {
            into.push('"');
            write_hex(bytes, into);
            into.push('"');
        }
        value => write_scalar(value, into),
    }
    Ok(())
}

/// Appends the plain form of a value, of arrays the JSON; nothing for a missing one.
pub fn write_scalar(value: &Value<'_>, into: &mut String) {
    match value {
        Value::Bool(v) => into.push_str(if *v { "true" } else { "false" }),
        Value::I8(v) => write_display(v, into),
        Value::I16(v) => write_display(v, into),
        Value::I32(v) => write_display(v, into),
        Value::I64(v) => write_display(v, into),
        Value::U8(v) => write_display(v, into),
        Value::U16(v) => write_display(v, into),
        Value::U32(v) => write_display(v, into),
        Value::U64(v) => write_display(v, into),
        Value::F32(v) => write_float(*v, into),
        Value::F64(v) => write_float(*v, into),
        Value::String(text) | Value::Json(text) => into.push_str(text),
        Value::Bytes(bytes) | Value::Opaque(bytes) => write_hex(bytes, into),
        Value::Array(array) => write_array(array.axes(), &mut array.elements().iter(), into),
        _ => {}
    }
}

/// Appends a number as a JSON string.
fn quoted(value: &Value<'_>, into: &mut String) {
    into.push('"');
    write_scalar(value, into);
    into.push('"');
}

/// Appends an array as JSON, one level for each axis. Behind an empty axis nothing is written: what
/// reads it again takes axes of a fixed length from the field's type, and 0 for the others.
fn write_array(
    axes: &[u32],
    elements: &mut dyn Iterator<Item = Value<'static>>,
    into: &mut String,
) {
    let Some((len, inner)) = axes.split_first() else {
        match elements.next() {
            Some(Value::F64(v)) if !v.is_finite() => quoted(&Value::F64(v), into),
            Some(Value::F32(v)) if !v.is_finite() => quoted(&Value::F32(v), into),
            Some(value) => write_scalar(&value, into),
            None => {}
        }
        return;
    };
    into.push('[');
    for at in 0..*len {
        if at > 0 {
            into.push(',');
        }
        write_array(inner, elements, into);
    }
    into.push(']');
}

fn json_text(text: &str) -> Result<String> {
    serde_json::to_string(text)
        .map_err(|e| Error::invalid("export", "text", "not writable as JSON").with_source(e))
}

fn refused(source: std::io::Error) -> Error {
    Error::io("write", "output", source)
}

fn csv_refused(error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => refused(source),
        other => Error::new(ErrorKind::Io, "write", "output", format!("{other:?}")),
    }
}
