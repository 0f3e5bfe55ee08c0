//! Schemas to their union: every column of both, each wide enough for both.
//!
//! | one | other | union |
//! |---|---|---|
//! | null | any | the other |
//! | signed integers, unsigned integers | of the same sign | the wider |
//! | unsigned of 8 to 32 bits | signed | signed, wide enough for both |
//! | uint64 | signed | decimal128(20, 0) |
//! | floats | floats | the wider |
//! | integers | float | float64; a value that no float64 equals is an error where it is widened |
//! | utf8, binary | large, or a dictionary of it | the large one; the plain one |
//! | struct, list | the same of other columns | the union of what is in them |
//!
//! All else has no union. A column that one of both lacks is null there.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use crate::error::{Error, ErrorKind, Result};

/// Digits that both int64 and uint64 fit in.
pub(super) const WIDE_INTEGER: DataType = DataType::Decimal128(20, 0);

/// The most columns of a schema, those within columns counted.
pub(super) const COLUMNS_MAX: usize = 10_000;

/// Looks whether `fields` are no more columns than a schema may have.
///
/// # Errors
/// `LimitExceeded` that names the first column beyond.
pub(super) fn check_width(fields: &Fields) -> Result<()> {
    let mut left = COLUMNS_MAX;
    match beyond(fields.iter(), &mut left, "") {
        None => Ok(()),
        Some(column) => {
            let place = format!("column {column}");
            Err(Error::new(ErrorKind::LimitExceeded, "count", place, too_wide()))
        }
    }
}

/// The column that is one more than `left`.
fn beyond<'a>(
    fields: impl Iterator<Item = &'a FieldRef>,
    left: &mut usize,
    within: &str,
) -> Option<String> {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    for field in fields {
        let place = path(within, field.name());
        let Some(less) = left.checked_sub(1) else { return Some(place) };
        *left = less;
        let found = match field.data_type() {
            Struct(inner) => beyond(inner.iter(), left, &place),
            List(item)
            | LargeList(item)
            | FixedSizeList(item, _)
            | ListView(item)
            | LargeListView(item)
            | Map(item, _) => beyond(std::iter::once(item), left, &place),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

pub(super) fn too_wide() -> String {
    format!("{COLUMNS_MAX} columns together are the most, those within columns counted")
}

/// The union of `one` and `other`: columns of `one` first, in its order, then those that only `other`
/// has. What both say beside the columns is kept, where they do not contradict one another.
///
/// # Errors
/// `TypeMismatch` that names the column and both types, where they have no union; `LimitExceeded` that names
/// the column where they have more than 10,000 together, those within columns counted.
pub fn union(one: &Schema, other: &Schema) -> Result<Schema> {
    let fields = union_of_fields(one.fields(), other.fields(), "")?;
    check_width(&fields)?;
    Ok(Schema::new_with_metadata(fields, agreed(one.metadata(), other.metadata())))
}

fn union_of_fields(one: &Fields, other: &Fields, within: &str) -> Result<Fields> {
    let others: HashMap<&str, &FieldRef> =
        other.iter().map(|field| (field.name().as_str(), field)).collect();
    let mut all = Vec::with_capacity(one.len());
    for field in one {
        all.push(match others.get(field.name().as_str()) {
            Some(other) => Arc::new(union_of_field(field, other, within)?),
            None => optional(field),
        });
    }
    let known: HashMap<&str, ()> = one.iter().map(|field| (field.name().as_str(), ())).collect();
    let news = other.iter().filter(|field| !known.contains_key(field.name().as_str()));
    all.extend(news.map(optional));
    Ok(all.into())
}

fn optional(field: &FieldRef) -> FieldRef {
    match field.is_nullable() {
        true => field.clone(),
        false => Arc::new(field.as_ref().clone().with_nullable(true)),
    }
}

fn union_of_field(one: &Field, other: &Field, within: &str) -> Result<Field> {
    let place = path(within, one.name());
    let ty = union_of_types(one.data_type(), other.data_type(), &place)?;
    let null = |field: &Field| field.is_nullable() || field.data_type().is_null();
    let field = Field::new(one.name(), ty, null(one) || null(other));
    Ok(field.with_metadata(agreed(one.metadata(), other.metadata())))
}

fn union_of_types(one: &DataType, other: &DataType, place: &str) -> Result<DataType> {
    use DataType::{
        Binary, Dictionary, LargeBinary, LargeList, LargeUtf8, List, Null, Struct, Utf8,
    };
    let item = |one: &Field, other: &Field| union_of_field(one, other, place).map(Arc::new);
    Ok(match (one, other) {
        _ if one == other => one.clone(),
        (Null, known) | (known, Null) => known.clone(),
        (Dictionary(_, value), plain) | (plain, Dictionary(_, value)) => {
            union_of_types(value, plain, place).map_err(|_| no_union(place, one, other))?
        }
        (Utf8, LargeUtf8) | (LargeUtf8, Utf8) => LargeUtf8,
        (Binary, LargeBinary) | (LargeBinary, Binary) => LargeBinary,
        (Struct(one), Struct(other)) => Struct(union_of_fields(one, other, place)?),
        (List(one), List(other)) => List(item(one, other)?),
        (LargeList(one) | List(one), LargeList(other) | List(other)) => {
            LargeList(item(one, other)?)
        }
        _ => number(one, other).ok_or_else(|| no_union(place, one, other))?,
    })
}

/// Bits and whether there is a sign.
fn integer(ty: &DataType) -> Option<(u8, bool)> {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    Some(match ty {
        Int8 => (8, true),
        Int16 => (16, true),
        Int32 => (32, true),
        Int64 => (64, true),
        UInt8 => (8, false),
        UInt16 => (16, false),
        UInt32 => (32, false),
        UInt64 => (64, false),
        _ => return None,
    })
}

fn number(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{Float16, Float32, Float64};
    if is_float(one) && (is_float(other) || integer(other).is_some())
        || is_float(other) && integer(one).is_some()
    {
        return Some(match (one, other) {
            (Float16, Float32) | (Float32, Float16) => Float32,
            _ => Float64,
        });
    }
    match (integer(one), integer(other)) {
        (Some((a, signed)), Some((b, also))) if signed == also => Some(of_bits(a.max(b), signed)),
        (Some((signed, true)), Some((unsigned, false)))
        | (Some((unsigned, false)), Some((signed, true))) => Some(match unsigned {
            64 => WIDE_INTEGER,
            _ => of_bits(signed.max(unsigned * 2), true),
        }),
        (Some(_), None) if *other == WIDE_INTEGER => Some(WIDE_INTEGER),
        (None, Some(_)) if *one == WIDE_INTEGER => Some(WIDE_INTEGER),
        _ => None,
    }
}

fn is_float(ty: &DataType) -> bool {
    matches!(ty, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

fn of_bits(bits: u8, signed: bool) -> DataType {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    match (bits, signed) {
        (8, true) => Int8,
        (16, true) => Int16,
        (32, true) => Int32,
        (_, true) => Int64,
        (8, false) => UInt8,
        (16, false) => UInt16,
        (32, false) => UInt32,
        (_, false) => UInt64,
    }
}

fn agreed(
    one: &HashMap<String, String>,
    other: &HashMap<String, String>,
) -> HashMap<String, String> {
    let both = one.iter().chain(other);
    both.filter(|(key, value)| {
        [one, other].iter().all(|of| of.get(*key).is_none_or(|v| v == *value))
    })
    .map(|(key, value)| (key.clone(), value.clone()))
    .collect()
}

/// The name of a column within another.
pub(super) fn path(within: &str, name: &str) -> String {
    if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") }
}

fn no_union(place: &str, one: &DataType, other: &DataType) -> Error {
    let cause =
        format!("its types {one} and {other} have no union: stage them under keys of their own");
    Error::new(ErrorKind::TypeMismatch, "unite", format!("column {place}"), cause)
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType::*;

    use super::*;

    fn schema(fields: &[(&str, DataType)]) -> Schema {
        let field = |(name, ty): &(&str, DataType)| Field::new(*name, ty.clone(), false);
        Schema::new(fields.iter().map(field).collect::<Vec<_>>())
    }

    fn united(one: DataType, other: DataType) -> Option<DataType> {
        let found = union(&schema(&[("c", one)]), &schema(&[("c", other)])).ok()?;
        Some(found.field(0).data_type().clone())
    }

    /// STG28: does the union have the columns of both, in order, optional where one lacks them?
    #[test]
    fn stg28_the_union_has_the_columns_of_both() {
        let one = schema(&[("a", Int64), ("b", Utf8)]);
        let other = schema(&[("c", Boolean), ("b", Utf8)]);
        let both = union(&one, &other).unwrap();
        let found: Vec<_> =
            both.fields().iter().map(|f| (f.name().as_str(), f.is_nullable())).collect();
        assert_eq!(found, [("a", true), ("b", false), ("c", true)]);
        assert_eq!(union(&both, &one).unwrap(), both);
        assert_eq!(union(&both, &both).unwrap(), both);
    }

    /// STG28: is each pair of types as the table says, both ways, and is each union its own?
    #[test]
    fn stg28_types_widen_where_no_value_changes() {
        let utf8 = || Dictionary(Box::new(Int32), Box::new(Utf8));
        let cases = [
            (Int8, Int64, Some(Int64)),
            (UInt8, UInt32, Some(UInt32)),
            (UInt32, Int8, Some(Int64)),
            (UInt8, Int8, Some(Int16)),
            (UInt64, Int8, Some(WIDE_INTEGER)),
            (WIDE_INTEGER, Int64, Some(WIDE_INTEGER)),
            (Float32, Float64, Some(Float64)),
            (Float16, Float32, Some(Float32)),
            (Int32, Float32, Some(Float64)),
            (Int64, Float64, Some(Float64)),
            (Null, Utf8, Some(Utf8)),
            (Utf8, LargeUtf8, Some(LargeUtf8)),
            (utf8(), Utf8, Some(Utf8)),
            (utf8(), utf8(), Some(utf8())),
            (utf8(), Int64, None),
            (Utf8, Int64, None),
            (Boolean, Int8, None),
            (Date32, Int32, None),
            (WIDE_INTEGER, Float64, None),
            (Binary, Utf8, None),
        ];
        for (one, other, both) in cases {
            assert_eq!(united(one.clone(), other.clone()), both, "{one} and {other}");
            assert_eq!(united(other.clone(), one.clone()), both, "{other} and {one}");
        }
    }

    /// Are columns counted together, however deep, and is the first beyond named?
    #[test]
    fn columns_are_bounded_together() {
        let names = |prefix: &str, count| -> Schema {
            let field = |n| Field::new(format!("{prefix}{n}"), Int8, true);
            Schema::new((0..count).map(field).collect::<Vec<_>>())
        };
        assert!(union(&names("a", 5_000), &names("b", 5_000)).is_ok());
        let refused = union(&names("a", 5_000), &names("b", 5_001)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
        assert!(refused.to_string().contains("column b5000"), "{refused}");
        let within = Struct(names("c", 4_000).fields().clone());
        let list = List(Arc::new(Field::new_list_field(within.clone(), true)));
        let deep = schema(&[("x", within.clone()), ("y", list), ("z", within)]);
        let refused = union(&Schema::empty(), &deep).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
        assert!(refused.to_string().contains("column z.c"), "{refused}");
    }

    /// STG28: does a conflict name the column, however deep it lies, and both types?
    #[test]
    fn stg28_a_conflict_names_column_and_types() {
        let inner = |ty| Struct(vec![Field::new("port", ty, true)].into());
        let list = |ty| List(Arc::new(Field::new("item", inner(ty), true)));
        let one = schema(&[("hosts", list(Int64))]);
        let other = schema(&[("hosts", list(Utf8))]);
        let error = union(&one, &other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch);
        let text = error.to_string();
        assert!(["hosts.item.port", "Int64", "Utf8"].iter().all(|w| text.contains(w)), "{text}");
    }
}
