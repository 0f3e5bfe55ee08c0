//! Schemas: the named, typed fields of a record, in order, and their form on disk.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::block::{CHUNK_RAW_BYTES_MAX, VALUE_BYTES_MAX};
use super::value::{FieldType, Value};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};

/// The most fields a schema may have.
pub const FIELDS_MAX: usize = 4096;
/// The longest name of a field, in bytes.
pub const FIELD_NAME_BYTES_MAX: usize = 1024;
/// The version of the form on disk.
const SCHEMA_VERSION: u16 = 1;

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Its name, unique in its schema.
    pub name: String,
    /// The type of its values.
    pub ty: FieldType,
    /// Whether a value may be missing.
    pub nullable: bool,
    /// Documentation, as pairs of key and text: a unit, a meaning.
    pub labels: Vec<(String, String)>,
}

impl Field {
    /// A field of which no value may be missing.
    pub fn new(name: impl Into<String>, ty: FieldType) -> Self {
        Self { name: name.into(), ty, nullable: false, labels: Vec::new() }
    }

    /// The same field, whose values may be missing.
    #[must_use]
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// The same field with one more label.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.labels.push((key.into(), text.into()));
        self
    }
}

/// The fields of a record, in order. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    fields: Arc<[Field]>,
}

#[derive(Serialize, Deserialize)]
struct SchemaRow {
    version: u16,
    fields: Vec<FieldRow>,
}

#[derive(Serialize, Deserialize)]
struct FieldRow {
    name: String,
    tag: u8,
    nullable: bool,
    /// Lengths of an array's axes; empty for a scalar.
    shape: Vec<u32>,
    labels: Vec<(String, String)>,
}

impl Schema {
    /// Makes a schema of `fields`.
    ///
    /// # Errors
    /// `Invalid`, naming the field: no field, too many, an empty, blank, overlong or repeated name,
    /// a blank label.
    pub fn new(fields: Vec<Field>) -> Result<Self> {
        let refuse = |field: &str, cause: String| Err(Error::invalid("make", field, cause));
        if fields.is_empty() {
            return refuse("schema", "it has no field".into());
        }
        if fields.len() > FIELDS_MAX {
            let cause = format!("it has {} fields; {FIELDS_MAX} is the most", fields.len());
            return refuse("schema", cause);
        }
        let mut seen = std::collections::HashSet::with_capacity(fields.len());
        for (position, field) in fields.iter().enumerate() {
            let place = format!("field {:?}", field.name);
            if field.name.trim().is_empty() {
                return refuse(&format!("field number {position}"), "its name is blank".into());
            }
            if field.name.len() > FIELD_NAME_BYTES_MAX {
                let cause = format!("its name has more than {FIELD_NAME_BYTES_MAX} bytes");
                return refuse(&format!("field number {position}"), cause);
            }
            if !seen.insert(field.name.as_str()) {
                return refuse(&place, "the name is used twice".into());
            }
            if field.labels.iter().any(|(key, text)| key.trim().is_empty() || text.is_empty()) {
                return refuse(&place, "a label is blank".into());
            }
        }
        Ok(Self { fields: fields.into() })
    }

    /// The fields, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Where the field called `name` stands.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Whether `values` are one record of this schema.
    ///
    /// # Errors
    /// `Invalid`, naming the field, what it holds and what was given; `LimitExceeded` for a value
    /// above [`VALUE_BYTES_MAX`](super::VALUE_BYTES_MAX), or a record that no chunk can hold.
    pub fn check_row(&self, values: &[Value<'_>]) -> Result<()> {
        if values.len() != self.fields.len() {
            let cause = format!("{} values for {} fields", values.len(), self.fields.len());
            return Err(Error::invalid("append", "record", cause));
        }
        for (field, value) in self.fields.iter().zip(values) {
            let given = match value.field_type() {
                Some(ty) if ty == field.ty => {
                    check_len(field, value)?;
                    continue;
                }
                None if field.nullable => continue,
                Some(ty) => ty.name(),
                None => "missing",
            };
            let cause = format!("it holds {}, and the value is {given}", field.ty.name());
            return Err(Error::invalid("append", format!("field {:?}", field.name), cause));
        }
        let cells = cells_len(values);
        if cells > CHUNK_RAW_BYTES_MAX {
            let cause = format!("{cells} bytes; {CHUNK_RAW_BYTES_MAX} is the most");
            return Err(Error::new(ErrorKind::LimitExceeded, "append", "record", cause));
        }
        Ok(())
    }

    /// Its form on disk.
    ///
    /// # Errors
    /// `LimitExceeded` when it is too long to be kept.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let fields = self.fields.iter().map(|field| FieldRow {
            name: field.name.clone(),
            tag: field.ty.tag(),
            nullable: field.nullable,
            shape: Vec::new(),
            labels: field.labels.clone(),
        });
        let row = SchemaRow { version: SCHEMA_VERSION, fields: fields.collect() };
        codec::encode("schema", &row)
    }

    /// Reads the form on disk.
    ///
    /// # Errors
    /// `Damage` when the bytes are no schema; `NewerFormat` for a version, type or array of a newer
    /// release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        // P9: the codec bounds what a length in the bytes may allocate.
        let newer =
            |cause: String| Err(Error::new(ErrorKind::NewerFormat, "read", "schema", cause));
        let version = bytes.first_chunk::<2>().map_or(0, |b| u16::from_le_bytes(*b));
        if version > SCHEMA_VERSION {
            return newer(format!("version {version} is of a newer release"));
        }
        let row: SchemaRow = codec::decode("schema", bytes)?;
        let mut fields = Vec::with_capacity(row.fields.len());
        for field in row.fields {
            if !field.shape.is_empty() {
                return newer(format!("field {:?} is an array", field.name));
            }
            let ty = FieldType::from_tag(field.tag)?;
            fields.push(Field {
                name: field.name,
                ty,
                nullable: field.nullable,
                labels: field.labels,
            });
        }
        Self::new(fields).map_err(|e| e.as_kind(ErrorKind::Damage))
    }
}

/// What a record adds to the raw length of a chunk's blocks at most, its iteration included.
pub(super) fn cells_len(values: &[Value<'_>]) -> u64 {
    values.iter().map(Value::cell_len).sum::<u64>() + Value::I64(0).cell_len()
}

fn check_len(field: &Field, value: &Value<'_>) -> Result<()> {
    let len = match value {
        Value::String(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    if len > VALUE_BYTES_MAX {
        let cause = format!("a value of {len} bytes; {VALUE_BYTES_MAX} is the most");
        let place = format!("field {:?}", field.name);
        return Err(Error::new(ErrorKind::LimitExceeded, "append", place, cause));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Schema {
        Schema::new(vec![
            Field::new("x", FieldType::F64).nullable().label("unit", "m"),
            Field::new("name", FieldType::String),
        ])
        .unwrap()
    }

    /// Does a schema survive its bytes, and is every cut or flipped byte an error or a schema?
    #[test]
    fn bytes_of_a_schema_are_never_trusted() {
        let schema = sample();
        let bytes = schema.to_bytes().unwrap();
        assert_eq!(Schema::from_bytes(&bytes).unwrap(), schema);
        for at in 0..bytes.len() {
            assert!(Schema::from_bytes(&bytes[..at]).is_err());
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x80;
            let _ = Schema::from_bytes(&flipped);
        }
    }

    /// Is each wrong schema refused with its own message?
    #[test]
    fn wrong_schemas_are_refused_by_name() {
        let text = |fields| Schema::new(fields).unwrap_err().to_string();
        let field = |name: &str| Field::new(name, FieldType::I64);
        assert!(text(vec![]).contains("no field"));
        assert!(text(vec![field(" ")]).contains("blank"));
        assert!(text(vec![field("a"), field("a")]).contains("\"a\": the name is used twice"));
        assert!(text(vec![field("a").label("unit", "")]).contains("label"));
        assert!(text(vec![field("a"); FIELDS_MAX + 1]).contains("4096"));
        assert!(text(vec![field(&"n".repeat(2000))]).contains("1024 bytes"));
    }

    /// Does a wrong record name the field?
    #[test]
    fn a_wrong_record_names_the_field() {
        let schema = sample();
        schema.check_row(&[Value::Missing, Value::String("n")]).unwrap();
        let wrong = schema.check_row(&[Value::I64(1), Value::String("n")]).unwrap_err();
        assert_eq!(wrong.to_string(), "append field \"x\": it holds f64, and the value is i64");
        assert!(schema.check_row(&[Value::F64(1.0), Value::Missing]).is_err());
        assert!(schema.check_row(&[Value::F64(1.0)]).is_err());
    }

    /// Is a record refused that no reader would take a chunk of?
    #[test]
    fn a_record_that_no_chunk_holds_is_refused() {
        let fields = (0..5).map(|n| Field::new(format!("f{n}"), FieldType::Bytes).nullable());
        let schema = Schema::new(fields.collect()).unwrap();
        let huge = vec![0; VALUE_BYTES_MAX];
        let mut values = [Value::Bytes(&huge); 5];
        let error = schema.check_row(&values).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        values[0] = Value::Missing;
        values[1] = Value::Missing;
        schema.check_row(&values).unwrap();
    }
}
