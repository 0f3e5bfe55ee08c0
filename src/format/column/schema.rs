//! Schemas: the named, typed fields of a record, in order, and their form on disk.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::axes::{Axis, RANK_MAX, Shape};
use super::block::{CHUNK_RAW_BYTES_MAX, VALUE_BYTES_MAX};
use super::value::{FieldType, Value};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::shape;

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
    /// The axes of its values; none for a single value in each record.
    pub shape: Shape,
    /// What an `opaque` field's values are; none of others.
    pub opaque: Option<OpaqueType>,
    /// Documentation, as pairs of key and text: a unit, a meaning.
    pub labels: Vec<(String, String)>,
}

/// The serde type of an opaque field, as far as it is known without the type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpaqueType {
    /// The name it had where the field was made; it tells nothing apart.
    pub name: String,
    /// The fingerprint of its shape.
    pub fingerprint: u64,
}

impl OpaqueType {
    /// What is known of `T`.
    ///
    /// # Errors
    /// `Invalid` for a type whose shape cannot be seen as a whole.
    pub fn of<T: DeserializeOwned>() -> Result<Self> {
        Ok(Self { name: shape::name_of::<T>(), fingerprint: shape::fingerprint_of::<T>()? })
    }
}

impl Field {
    /// A field of which no value may be missing.
    pub fn new(name: impl Into<String>, ty: FieldType) -> Self {
        let shape = Shape::default();
        Self { name: name.into(), ty, nullable: false, shape, opaque: None, labels: Vec::new() }
    }

    /// A field of values of the serde type `T`, which are read as a type of the same shape or not
    /// at all.
    ///
    /// # Errors
    /// `Invalid` for a type whose shape cannot be seen as a whole.
    pub fn opaque<T: DeserializeOwned>(name: impl Into<String>) -> Result<Self> {
        let opaque = Some(OpaqueType::of::<T>()?);
        Ok(Self { opaque, ..Self::new(name, FieldType::Opaque) })
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

    /// The same field of arrays with axes of these lengths, the slowest first.
    #[must_use]
    pub fn array(self, lens: impl IntoIterator<Item = u32>) -> Self {
        self.axes(lens.into_iter().map(Axis::Fixed))
    }

    /// The same field of arrays with `rank` axes, each as long as each record says.
    #[must_use]
    pub fn ragged(self, rank: usize) -> Self {
        self.axes(std::iter::repeat_n(Axis::Free, rank))
    }

    /// The same field of arrays with these axes, the slowest first.
    #[must_use]
    pub fn axes(mut self, axes: impl IntoIterator<Item = Axis>) -> Self {
        self.shape = Shape::new(axes);
        self
    }

    /// The same field with its unit as a label.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        self.label("unit", unit)
    }

    /// The same field with what it means as a label.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Self {
        self.label("description", text)
    }

    /// A field called `name` of what [`Field::kind`] says.
    ///
    /// # Errors
    /// `Invalid` for anything else, and for an opaque type, which a name does not tell.
    pub fn of_kind(name: impl Into<String>, kind: &str) -> Result<Self> {
        let (ty, axes) = match kind.strip_suffix(']').and_then(|kind| kind.split_once('[')) {
            Some((ty, axes)) => (ty, axes.split(',').map(str::trim).collect()),
            None => (kind, Vec::new()),
        };
        let axis = |text: &str| match text {
            "_" => Some(Axis::Free),
            text => text.parse().ok().map(Axis::Fixed),
        };
        let ty = FieldType::from_name(ty)?;
        let refused = |cause: String| Error::invalid("parse", "type", cause);
        let Some(axes) = axes.into_iter().map(axis).collect::<Option<Vec<Axis>>>() else {
            return Err(refused(format!("{kind:?} has an axis that is neither a length nor _")));
        };
        let field = Self::new(name, ty).axes(axes);
        field.check().map_err(refused)?;
        Ok(field)
    }

    /// What it holds, as `f64` or `u8[3, _]`.
    pub fn kind(&self) -> String {
        format!("{}{}", self.ty.name(), self.shape)
    }

    /// Whether it can be a field at all.
    fn check(&self) -> std::result::Result<(), String> {
        let width = self.ty.width() as u64;
        if self.labels.iter().any(|(key, text)| key.trim().is_empty() || text.is_empty()) {
            return Err("a label is blank".into());
        }
        if (self.ty == FieldType::Opaque) != self.opaque.is_some() {
            return Err("an opaque field, and no other, knows its type: Field::opaque".into());
        }
        if self.shape.is_scalar() {
            return Ok(());
        }
        if !self.ty.is_number() {
            return Err(format!("there are no arrays of {}", self.ty.name()));
        }
        if self.shape.rank() > RANK_MAX {
            return Err(format!("it has {} axes; {RANK_MAX} is the most", self.shape.rank()));
        }
        match self.shape.fixed_len() {
            Some(0) => Err("an axis has no length".into()),
            _ if self.shape.axes().contains(&Axis::Fixed(0)) => Err("an axis has no length".into()),
            Some(len) if len.saturating_mul(width) > VALUE_BYTES_MAX as u64 => {
                Err(format!("its values have more than {VALUE_BYTES_MAX} bytes"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it holds such values.
    ///
    /// # Errors
    /// As [`Schema::check_row`].
    pub(crate) fn check_value(&self, value: &Value<'_>) -> Result<()> {
        let place = || format!("field {:?}", self.name);
        let fits = match value {
            Value::Missing => self.nullable,
            Value::Array(array) => {
                let fits = array.field_type() == self.ty && self.shape.fits(array.axes());
                if fits && !array.is_whole() {
                    let (axes, len) = (array.axes(), array.elements().len());
                    let cause = match len == 0 && axes.contains(&0) {
                        true => format!("an array of {axes:?} has too many places for no element"),
                        false => format!("{len} elements for an array of {axes:?}"),
                    };
                    return Err(Error::invalid("append", place(), cause));
                }
                fits && !self.shape.is_scalar()
            }
            value => value.field_type() == Some(self.ty) && self.shape.is_scalar(),
        };
        if !fits {
            let cause = format!("it holds {}, and the value is {}", self.kind(), value.kind());
            return Err(Error::invalid("append", place(), cause));
        }
        let len = value.varying_len();
        if len > VALUE_BYTES_MAX {
            let cause = format!("a value of {len} bytes; {VALUE_BYTES_MAX} is the most");
            return Err(Error::new(ErrorKind::LimitExceeded, "append", place(), cause));
        }
        Ok(())
    }
}

/// The fields of a record, in order. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    fields: Arc<[Field]>,
    is_timed: bool,
}

#[derive(Serialize, Deserialize)]
struct SchemaRow {
    version: u16,
    timed: bool,
    fields: Vec<FieldRow>,
}

#[derive(Serialize, Deserialize)]
struct FieldRow {
    name: String,
    tag: u8,
    nullable: bool,
    /// Lengths of an array's axes, 0 for a free one; empty for a scalar.
    shape: Vec<u32>,
    opaque: Option<OpaqueType>,
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
            if let Err(cause) = field.check() {
                return refuse(&place, cause);
            }
        }
        Ok(Self { fields: fields.into(), is_timed: false })
    }

    /// The same schema, whose records carry a physical time as well.
    #[must_use]
    pub fn timed(mut self) -> Self {
        self.is_timed = true;
        self
    }

    /// Whether its records carry a physical time.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Whether a record of time `time` may follow one of `last`: there where the schema is timed,
    /// finite, and no earlier.
    ///
    /// # Errors
    /// `Invalid`, with both times.
    pub fn check_time(&self, last: Option<f64>, time: Option<f64>) -> Result<()> {
        let cause = match (self.is_timed, time, last) {
            (false, None, _) => return Ok(()),
            (true, Some(time), _) if !time.is_finite() => format!("time {time} is not finite"),
            (true, Some(time), Some(last)) if time < last => {
                format!("time {time} does not follow {last}")
            }
            (true, Some(_), _) => return Ok(()),
            (true, None, _) => "it has no time, and its schema is timed".into(),
            (false, Some(time), _) => format!("it has time {time}, and its schema is not timed"),
        };
        Err(Error::invalid("append", "record", cause))
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
            field.check_value(value)?;
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
            shape: field.shape.to_lens(),
            opaque: field.opaque.clone(),
            labels: field.labels.clone(),
        });
        let (version, timed) = (SCHEMA_VERSION, self.is_timed);
        let row = SchemaRow { version, timed, fields: fields.collect() };
        codec::encode("schema", &row)
    }

    /// Reads the form on disk.
    ///
    /// # Errors
    /// `Damage` when the bytes are no schema; `NewerFormat` for a version or type of a newer
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
            fields.push(Field {
                name: field.name,
                ty: FieldType::from_tag(field.tag)?,
                nullable: field.nullable,
                shape: Shape::of_lens(&field.shape),
                opaque: field.opaque,
                labels: field.labels,
            });
        }
        let schema = Self::new(fields).map_err(|e| e.as_kind(ErrorKind::Damage))?;
        Ok(if row.timed { schema.timed() } else { schema })
    }
}

/// What iteration and time of a record take in [`cells_len`].
pub(super) const MOMENT_LEN: u64 = 18;

/// What a record adds to the raw length of a chunk's blocks at most, its iteration and time
/// included; also what it takes in memory.
pub(crate) fn cells_len(values: &[Value<'_>]) -> u64 {
    values.iter().map(cell_len).sum::<u64>() + MOMENT_LEN
}

/// A number, missing or not, or the place of an array, its axes and elements, or of text.
pub(super) fn cell_len(value: &Value<'_>) -> u64 {
    let axes = match value {
        Value::Array(array) => 4 * array.axes().len() as u64,
        _ => 0,
    };
    9 + axes + value.varying_len() as u64
}

#[cfg(test)]
mod tests {
    use super::super::array::Array;
    use super::*;

    fn sample() -> Schema {
        Schema::new(vec![
            Field::new("x", FieldType::F64).nullable().label("unit", "m"),
            Field::new("name", FieldType::String),
            Field::new("grid", FieldType::U8).axes([Axis::Fixed(2), Axis::Free]),
            Field::opaque::<(u8, String)>("parts").unwrap().nullable(),
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
        assert!(text(vec![field("a").array([0, 3])]).contains("no length"));
        assert!(text(vec![field("a").axes([Axis::Free, Axis::Fixed(0)])]).contains("no length"));
        assert!(text(vec![field("a").ragged(9)]).contains("9 axes; 8"));
        assert!(text(vec![field("a").array([1 << 31, 1 << 31, 1 << 31])]).contains("bytes"));
        assert!(
            text(vec![Field::new("a", FieldType::Json).ragged(1)]).contains("no arrays of json")
        );
        assert!(text(vec![Field::new("a", FieldType::Opaque)]).contains("Field::opaque"));
    }

    /// Is what a field says of itself understood again?
    #[test]
    fn kinds_are_read_as_they_are_said() {
        for field in [
            Field::new("x", FieldType::U16),
            Field::new("x", FieldType::F32).array([3, 4]),
            Field::new("x", FieldType::Bool).axes([Axis::Free, Axis::Fixed(2)]),
        ] {
            assert_eq!(Field::of_kind("x", &field.kind()).unwrap(), field);
        }
        assert!(Field::of_kind("x", "f32[3,_]").is_ok());
        for wrong in ["f32[", "f32[]", "f32[-1]", "f32[0]", "json[2]", "opaque", "float", "f32]"] {
            assert!(Field::of_kind("x", wrong).is_err(), "{wrong}");
        }
    }

    /// Does a wrong record name the field?
    #[test]
    fn a_wrong_record_names_the_field() {
        let schema = sample();
        let grid = Value::from(Array::new(&[2, 3], &[7u8; 6]));
        let name = Value::String("n");
        let text = |values: &[Value<'_>]| schema.check_row(values).unwrap_err().to_string();
        schema.check_row(&[Value::Missing, name, grid, Value::Opaque(b"x")]).unwrap();
        let wrong = text(&[Value::I64(1), name, grid, Value::Missing]);
        assert_eq!(wrong, "append field \"x\": it holds f64, and the value is i64");
        assert!(text(&[Value::F64(1.0), Value::Missing, grid, Value::Missing]).contains("missing"));
        assert!(text(&[Value::F64(1.0)]).contains("1 values for 4 fields"));
        let of = |grid: Array<'_>| text(&[Value::Missing, name, grid.into(), Value::Missing]);
        let other = of(Array::new(&[3, 2], &[7u8; 6]));
        assert!(other.ends_with("it holds u8[2, _], and the value is u8[3, 2]"), "{other}");
        assert!(of(Array::new(&[2, 3], &[7u8; 5])).ends_with("5 elements for an array of [2, 3]"));
        assert!(of(Array::new(&[2, 3], &[7i8; 6])).contains("i8[2, 3]"));
        assert!(of(Array::new(&[2; 300], &[7u8; 6])).contains("it holds u8[2, _]"));
    }

    /// Is a time refused that cannot follow, with both numbers?
    #[test]
    fn rec15_a_wrong_time_is_refused_with_both_numbers() {
        let (plain, timed) = (sample(), sample().timed());
        assert!(timed.is_timed() && !plain.is_timed());
        assert_eq!(Schema::from_bytes(&timed.to_bytes().unwrap()).unwrap(), timed);
        plain.check_time(None, None).unwrap();
        timed.check_time(None, Some(-1.5)).unwrap();
        timed.check_time(Some(2.0), Some(2.0)).unwrap();
        let text =
            |schema: &Schema, last, time| schema.check_time(last, time).unwrap_err().to_string();
        let early = text(&timed, Some(2.5), Some(2.25));
        assert_eq!(early, "append record: time 2.25 does not follow 2.5");
        assert!(text(&timed, None, None).contains("no time"));
        assert!(text(&timed, None, Some(f64::NAN)).contains("NaN is not finite"));
        assert!(text(&timed, Some(1.0), Some(f64::INFINITY)).contains("not finite"));
        assert!(text(&plain, None, Some(1.0)).contains("not timed"));
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
