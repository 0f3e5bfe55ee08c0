//! JSON lines to columns. Types follow the values: see [`JsonColumns`].

use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::json_column::{Column, Misfit, Object, Width};
use crate::error::{Error, ErrorKind, Result};

/// Objects of JSON lines, column by column. A key is a column, null where a line lacks it; an object
/// within is a struct, an array a list, a text utf8, a number int64 or float64. Where both are met it is
/// float64, as long as each integer has one that equals it; integers above int64 make it uint64, or
/// decimal128(20, 0) beside negative ones. Above 64 bits an integer is the float64 nearest to it. A key
/// without any value but null, or with empty objects only, is a column of nulls.
#[derive(Debug, Default)]
pub struct JsonColumns {
    root: Object,
    width: Width,
    text_bytes: usize,
}

impl JsonColumns {
    /// No column, no row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one line in: an object.
    ///
    /// # Errors
    /// `Input` for a line that is no object, or that repeats a key; `TypeMismatch`, naming the column, for a
    /// value that does not go with those before it; `LimitExceeded` for more than 10,000 columns together,
    /// those within columns counted, or more than 2 GiB of one. Nothing more can be taken in then.
    pub fn push(&mut self, line: &[u8]) -> Result<()> {
        let mut misfit = None;
        self.root.len += 1;
        self.text_bytes = self.text_bytes.saturating_add(line.len());
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let visitor =
            ObjectVisitor { object: &mut self.root, width: &mut self.width, misfit: &mut misfit };
        let read = deserializer.deserialize_map(visitor).and_then(|()| deserializer.end());
        read.map_err(|e| match misfit {
            Some(Found { column, cause: Misfit { kind, cause } }) => {
                Error::new(kind, "read", format!("column {column}"), cause)
            }
            None => {
                let cause = "it is no JSON object: as Parquet only objects can be held";
                Error::new(ErrorKind::Input, "read", "a JSON line", cause).with_source(e)
            }
        })
    }

    /// Rows taken in since the last [`take`](Self::take).
    pub fn rows(&self) -> usize {
        self.root.len
    }

    /// About how many bytes they take.
    pub fn bytes(&self) -> usize {
        let values = self.root.len.saturating_mul(self.width.columns());
        self.text_bytes.saturating_add(values.saturating_mul(8))
    }

    /// The columns so far, in the order in which they were met.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.root.fields()))
    }

    /// The rows, as a batch of [`schema`](Self::schema). Columns and types stay known.
    ///
    /// # Errors
    /// `LimitExceeded` where Arrow has no form for them.
    pub fn take(&mut self) -> Result<RecordBatch> {
        let schema = self.schema();
        self.text_bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(self.root.len));
        let columns = self.root.take();
        columns
            .and_then(|columns| RecordBatch::try_new_with_options(schema, columns, &options))
            .map_err(|e| {
                let cause = "Arrow has no form for these rows";
                Error::new(ErrorKind::LimitExceeded, "read", "JSON lines", cause).with_source(e)
            })
    }
}

/// A misfit, and the column that it is in.
struct Found {
    column: String,
    cause: Misfit,
}

struct ObjectVisitor<'a> {
    object: &'a mut Object,
    width: &'a mut Width,
    misfit: &'a mut Option<Found>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut expected = 0;
        loop {
            let seed = KeySeed { object: &mut *self.object, width: &mut *self.width, expected };
            let Some(found) = map.next_key_seed(seed)? else { break };
            let at = found.map_err(|(key, cause)| told_of(self.misfit, key, cause))?;
            let before = self.misfit.is_some();
            let column = self.object.column(at);
            let value = match column {
                Ok(column) => map.next_value_seed(ValueSeed {
                    column,
                    width: &mut *self.width,
                    misfit: &mut *self.misfit,
                }),
                Err(cause) => Err(told(self.misfit, cause)),
            };
            if let Err(e) = value {
                let key = self.object.columns.get(at).map_or("", |(key, _)| key);
                if let (Some(found), false) = (self.misfit.as_mut(), before) {
                    found.column = match found.column.as_str() {
                        "" => key.to_owned(),
                        inner => format!("{key}.{inner}"),
                    };
                }
                return Err(e);
            }
            expected = at + 1;
        }
        Ok(())
    }
}

/// Where the column of a key is.
struct KeySeed<'a> {
    object: &'a mut Object,
    width: &'a mut Width,
    expected: usize,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Result<usize, (String, Misfit)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Result<usize, (String, Misfit)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let found = self.object.find(key, self.expected, self.width);
        Ok(found.map_err(|cause| (key.to_owned(), cause)))
    }
}

struct ValueSeed<'a> {
    column: &'a mut Column,
    width: &'a mut Width,
    misfit: &'a mut Option<Found>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

fn told<E: serde::de::Error>(misfit: &mut Option<Found>, cause: Misfit) -> E {
    told_of(misfit, String::new(), cause)
}

fn told_of<E: serde::de::Error>(misfit: &mut Option<Found>, column: String, cause: Misfit) -> E {
    *misfit = Some(Found { column, cause });
    E::custom("a value does not fit")
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.column.pad(self.column.len() + 1);
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.column.push_bool(value).map_err(|cause| told(self.misfit, cause))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.column.push_int(value.into()).map_err(|cause| told(self.misfit, cause))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.column.push_int(value.into()).map_err(|cause| told(self.misfit, cause))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.column.push_float(value).map_err(|cause| told(self.misfit, cause))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.column.push_text(text).map_err(|cause| told(self.misfit, cause))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let (misfit, width) = (self.misfit, self.width);
        let column = self.column.begin_list(width).map_err(|cause| told(misfit, cause))?;
        while items
            .next_element_seed(ValueSeed {
                column: &mut *column,
                width: &mut *width,
                misfit: &mut *misfit,
            })?
            .is_some()
        {}
        self.column.end_list().map_err(|cause| told(misfit, cause))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let object = self.column.begin_object().map_err(|cause| told(self.misfit, cause))?;
        ObjectVisitor { object, width: self.width, misfit: self.misfit }.visit_map(map)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_schema::DataType;

    use super::*;

    fn columns(lines: &[&str]) -> Result<JsonColumns> {
        let mut columns = JsonColumns::new();
        lines.iter().try_for_each(|line| columns.push(line.as_bytes()))?;
        Ok(columns)
    }

    fn type_of(lines: &[&str]) -> DataType {
        columns(lines).unwrap().schema().field(0).data_type().clone()
    }

    /// Is each line a row, with nulls where it lacks a key, in every kind of column?
    #[test]
    fn lines_become_columns() {
        let mut read = columns(&[
            r#"{"n":1,"t":"a","b":true,"f":0.5}"#,
            r#"{"f":1,"n":-2,"later":[1,null,3]}"#,
            r#"{}"#,
            r#"{"o":{"x":7,"y":{"z":"deep"}},"later":[],"t":null}"#,
            r#"{"t":"q\"uote\n","o":{"x":8}}"#,
        ])
        .unwrap();
        assert_eq!(read.rows(), 5);
        let batch = read.take().unwrap();
        let ints = batch["n"].as_primitive::<Int64Type>();
        assert_eq!(ints.iter().collect::<Vec<_>>(), [Some(1), Some(-2), None, None, None]);
        let floats = batch["f"].as_primitive::<Float64Type>();
        assert_eq!(floats.iter().collect::<Vec<_>>(), [Some(0.5), Some(1.0), None, None, None]);
        let texts = batch["t"].as_string::<i32>();
        let texts: Vec<_> = texts.iter().collect();
        assert_eq!(texts, [Some("a"), None, None, None, Some("q\"uote\n")]);
        let list = batch["later"].as_list::<i32>();
        assert_eq!(list.value_length(1), 3);
        assert!(list.is_null(0) && list.is_valid(3) && list.value_length(3) == 0);
        let object = batch["o"].as_struct();
        assert!(object.is_null(2) && object.is_valid(4));
        assert_eq!(object["x"].as_primitive::<Int64Type>().value(4), 8);
        assert_eq!(object["y"].as_struct()["z"].as_string::<i32>().value(3), "deep");
        assert_eq!(batch.num_rows(), 5);
    }

    /// Do types stay known when the rows are taken, and are rows behind them right?
    #[test]
    fn types_outlive_the_rows() {
        let mut read = columns(&[r#"{"a":{"b":[1]},"c":1.5}"#]).unwrap();
        let schema = read.schema();
        read.take().unwrap();
        assert_eq!(read.rows(), 0);
        read.push(br#"{"c":3}"#).unwrap();
        read.push(br#"{"a":{"b":[4,5]}}"#).unwrap();
        let batch = read.take().unwrap();
        assert_eq!(batch.schema(), schema);
        assert_eq!(batch["c"].as_primitive::<Float64Type>().value(0), 3.0);
        let list = batch["a"].as_struct()["b"].as_list::<i32>().value(1);
        assert_eq!(list.as_primitive::<Int64Type>().values(), &[4, 5]);
    }

    /// Does a number keep its value in whatever its column becomes?
    #[test]
    fn numbers_widen_only_where_they_keep_their_value() {
        assert_eq!(type_of(&[r#"{"a":1}"#, r#"{"a":2.5}"#]), DataType::Float64);
        assert_eq!(type_of(&[r#"{"a":1}"#, r#"{"a":18446744073709551615}"#]), DataType::UInt64);
        let signed = [r#"{"a":-1}"#, r#"{"a":18446744073709551615}"#];
        assert_eq!(type_of(&signed), DataType::Decimal128(20, 0));
        assert_eq!(type_of(&[signed[1], signed[0]]), DataType::Decimal128(20, 0));
        let lost = columns(&[r#"{"a":9007199254740993}"#, r#"{"a":0.5}"#]).unwrap_err();
        assert!(lost.to_string().contains("9007199254740993"), "{lost}");
        let lost = columns(&[r#"{"a":0.5}"#, r#"{"a":9007199254740993}"#]).unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::TypeMismatch);
    }

    /// STG28: does a conflict name the column, however deep, and both kinds?
    #[test]
    fn stg28_a_conflict_names_column_and_kinds() {
        let error =
            columns(&[r#"{"a":{"b":[{"c":1}]}}"#, r#"{"a":{"b":[{"c":"x"}]}}"#]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch);
        assert_eq!(
            error.to_string(),
            "read column a.b.c: it is a text, and there were integers before"
        );
        let error = columns(&[r#"{"a":1}"#, r#"{"a":[1]}"#]).unwrap_err();
        assert!(error.to_string().contains("column a: it is a list"), "{error}");
    }

    /// Are columns counted together, however deep, with the one beyond named; and does a line without any
    /// cost no more than the columns' nulls?
    #[test]
    fn columns_are_bounded_together() {
        let keys = |from: usize, count| {
            let keys: Vec<_> = (from..from + count).map(|n| format!("\"{n}\":0")).collect();
            keys.join(",")
        };
        let full = format!("{{\"a\":{{{}}},\"b\":[{{{}}}]}}", keys(0, 4_000), keys(0, 5_997));
        let mut read = columns(&[&full]).unwrap();
        assert_eq!(read.bytes(), full.len() + 10_000 * 8);
        let refused = read.push(br#"{"b":[{"more":1}]}"#).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
        assert!(refused.to_string().contains("column b.more"), "{refused}");
        let lists = format!("{{{}}}", keys(0, 9_999) + ",\"l\":[[1]]");
        assert_eq!(columns(&[&lists]).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }

    /// Is each line that is no object an error?
    #[test]
    fn what_is_no_object_is_refused() {
        for bad in
            ["1", "[1]", "{", "{\"a\":1}{", "{\"a\":01}", "{\"a\":1,}", "null", "{\"a\":\"\\x\"}"]
        {
            assert_eq!(columns(&[bad]).unwrap_err().kind(), ErrorKind::Input, "{bad}");
        }
        let twice = columns(&[r#"{"a":1,"a":2}"#]).unwrap_err();
        assert!(twice.to_string().contains("column a: it is there twice"), "{twice}");
        assert!(columns(&[&"{\"a\":".repeat(100_000)]).is_err());
    }
}
