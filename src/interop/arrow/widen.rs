//! A batch with the columns and types of a wider schema. No value changes.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, LargeStringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, LargeListArray, ListArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
    StructArray, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Fields, SchemaRef};

use super::steps::within;
use super::union::path;
use crate::error::{Error, ErrorKind, Result};

/// `batch` as one of `schema`, which is a [union](super::union) that its own schema went into: columns
/// that it lacks are null.
///
/// # Errors
/// `TypeMismatch` that names the column and the value, for an integer that no float64 equals, and for a
/// schema that is no such union.
pub fn widen(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let names = batch.schema();
    let columns = columns(names.fields(), batch.columns(), schema.fields(), batch.num_rows(), "")?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|e| mismatch("a batch", "it does not fit the union of schemas").with_source(e))
}

fn columns(
    from: &Fields,
    columns: &[ArrayRef],
    to: &Fields,
    rows: usize,
    within: &str,
) -> Result<Vec<ArrayRef>> {
    if let Some(lost) = from.iter().find(|field| to.find(field.name()).is_none()) {
        return Err(mismatch(lost.name(), "it is no column of the union of schemas"));
    }
    let column = |field: &arrow_schema::FieldRef| {
        let known = from.find(field.name()).and_then(|(at, _)| columns.get(at));
        match known {
            Some(column) => array(column, field.data_type(), &path(within, field.name())),
            None => Ok(new_null_array(field.data_type(), rows)),
        }
    };
    to.iter().map(column).collect()
}

fn array(from: &ArrayRef, to: &DataType, place: &str) -> Result<ArrayRef> {
    use DataType::{Dictionary, LargeBinary, LargeList, LargeUtf8, List, Null, Struct};
    match (from.data_type(), to) {
        (same, _) if same == to => Ok(from.clone()),
        (Null, _) => Ok(new_null_array(to, from.len())),
        (Dictionary(_, _), _) => {
            let dictionary = from.as_any_dictionary();
            let plain = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
            let plain = plain.map_err(|e| mismatch(place, "its keys do not fit").with_source(e))?;
            array(&plain, to, place)
        }
        (DataType::Utf8, LargeUtf8) => {
            let mut wide = LargeStringBuilder::new();
            from.as_string::<i32>().iter().for_each(|text| wide.append_option(text));
            Ok(Arc::new(wide.finish()))
        }
        (DataType::Binary, LargeBinary) => {
            let mut wide = LargeBinaryBuilder::new();
            from.as_binary::<i32>().iter().for_each(|bytes| wide.append_option(bytes));
            Ok(Arc::new(wide.finish()))
        }
        (Struct(fields), Struct(wider)) => {
            let parts = from.as_struct();
            let nulls = parts.nulls().cloned();
            let columns = columns(fields, parts.columns(), wider, from.len(), place)?;
            let made = match wider.is_empty() {
                true => Ok(StructArray::new_empty_fields(from.len(), nulls)),
                false => StructArray::try_new(wider.clone(), columns, nulls),
            };
            made.map(shared).map_err(|e| mismatch(place, "it does not fit").with_source(e))
        }
        (List(_), List(item)) => {
            let (_, offsets, values, nulls) = from.as_list::<i32>().clone().into_parts();
            let values = within(&offsets, &values);
            let values = array(&values, item.data_type(), &path(place, item.name()))?;
            let offsets = OffsetBuffer::from_lengths(offsets.lengths());
            ListArray::try_new(item.clone(), offsets, values, nulls)
                .map(shared)
                .map_err(|e| mismatch(place, "it does not fit").with_source(e))
        }
        (List(_) | LargeList(_), LargeList(item)) => large_list(from, item, place),
        _ => number(from, to, place),
    }
}

fn large_list(from: &ArrayRef, item: &arrow_schema::FieldRef, place: &str) -> Result<ArrayRef> {
    let (offsets, values, nulls) = match from.as_list_opt::<i64>() {
        Some(list) => {
            let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
            (offsets, within(list.offsets(), list.values()), list.nulls())
        }
        None => {
            let list = from.as_list::<i32>();
            let offsets = OffsetBuffer::from_lengths(list.offsets().lengths());
            (offsets, within(list.offsets(), list.values()), list.nulls())
        }
    };
    let values = array(&values, item.data_type(), &path(place, item.name()))?;
    LargeListArray::try_new(item.clone(), offsets, values, nulls.cloned())
        .map(shared)
        .map_err(|e| mismatch(place, "it does not fit").with_source(e))
}

fn number(from: &ArrayRef, to: &DataType, place: &str) -> Result<ArrayRef> {
    macro_rules! from_type {
        ($($ty:ident => $arrow:ty),*) => {
            match from.data_type() {
                $(DataType::$ty => Integer(from.as_primitive::<$arrow>(), to, place).widened(),)*
                DataType::Float16 if *to == DataType::Float32 => {
                    Ok(shared(from.as_primitive::<Float16Type>().unary::<_, Float32Type>(f32::from)))
                }
                DataType::Float16 if *to == DataType::Float64 => {
                    Ok(shared(from.as_primitive::<Float16Type>().unary::<_, Float64Type>(f64::from)))
                }
                DataType::Float32 if *to == DataType::Float64 => {
                    Ok(shared(from.as_primitive::<Float32Type>().unary::<_, Float64Type>(f64::from)))
                }
                other => Err(mismatch(place, format!("{other} does not widen to {to}"))),
            }
        };
    }
    from_type!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    )
}

/// A column of integers on its way to another type.
struct Integer<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>, &'a DataType, &'a str);

impl<T: ArrowPrimitiveType> Integer<'_, T>
where
    T::Native: Into<i128> + Copy,
{
    fn widened(self) -> Result<ArrayRef> {
        use DataType::{Float64, Int16, Int32, Int64, UInt16, UInt32, UInt64};
        match self.1 {
            Int16 => self.fitted::<Int16Type>(|v| i16::try_from(v).ok()),
            Int32 => self.fitted::<Int32Type>(|v| i32::try_from(v).ok()),
            Int64 => self.fitted::<Int64Type>(|v| i64::try_from(v).ok()),
            UInt16 => self.fitted::<UInt16Type>(|v| u16::try_from(v).ok()),
            UInt32 => self.fitted::<UInt32Type>(|v| u32::try_from(v).ok()),
            UInt64 => self.fitted::<UInt64Type>(|v| u64::try_from(v).ok()),
            Float64 => self.fitted::<Float64Type>(float_of),
            DataType::Decimal128(20, 0) => {
                let wide = self.0.unary::<_, Decimal128Type>(Into::into);
                Ok(shared(wide.with_data_type(self.1.clone())))
            }
            _ => Err(mismatch(
                self.2,
                format!("{} does not widen to {}", self.0.data_type(), self.1),
            )),
        }
    }

    fn fitted<O: ArrowPrimitiveType>(
        self,
        to: impl Fn(i128) -> Option<O::Native>,
    ) -> Result<ArrayRef> {
        let wide = self.0.try_unary::<_, O, Error>(|value| {
            let value = value.into();
            to(value).ok_or_else(|| mismatch(self.2, format!("no {} equals {value}", self.1)))
        });
        wide.map(shared)
    }
}

/// The float64 that equals `value`, if one does.
pub(super) fn float_of(value: i128) -> Option<f64> {
    let float = value as f64;
    (float as i128 == value).then_some(float)
}

fn shared(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn mismatch(place: &str, cause: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::TypeMismatch, "widen", format!("column {place}"), cause)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{
        DictionaryArray, Float32Array, Int8Array, Int32Array, Int64Array, ListArray, StringArray,
        UInt64Array,
    };

    use super::super::union;
    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
            .unwrap()
    }

    fn widened(one: &RecordBatch, other: &RecordBatch) -> Result<(RecordBatch, RecordBatch)> {
        let both = Arc::new(union(&one.schema(), &other.schema())?);
        Ok((widen(one, &both)?, widen(other, &both)?))
    }

    /// Has a batch the columns and types of the union, with its own values and null where it has none?
    #[test]
    fn stg28_a_batch_fits_the_union_with_its_own_values() {
        let words: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
        let one = batch(vec![
            ("n", Arc::new(Int8Array::from(vec![Some(-1), None, Some(3)]))),
            ("w", Arc::new(words)),
            ("f", Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]))),
            ("u", Arc::new(UInt64Array::from(vec![u64::MAX, 1, 2]))),
        ]);
        let other = batch(vec![
            ("u", Arc::new(Int32Array::from(vec![-7]))),
            ("f", Arc::new(Int64Array::from(vec![4]))),
            ("w", Arc::new(StringArray::from(vec!["z"]))),
            ("n", Arc::new(Int64Array::from(vec![i64::MAX]))),
            ("new", Arc::new(StringArray::from(vec!["only here"]))),
        ]);
        let (one, other) = widened(&one, &other).unwrap();
        assert_eq!(one.schema(), other.schema());
        let n = one["n"].as_primitive::<Int64Type>();
        assert_eq!(n.iter().collect::<Vec<_>>(), [Some(-1), None, Some(3)]);
        let words: Vec<_> = one["w"].as_string::<i32>().iter().flatten().collect();
        assert_eq!(words, ["x", "y", "x"]);
        assert_eq!(one["f"].as_primitive::<Float64Type>().value(2), 2.5);
        assert_eq!(one["u"].as_primitive::<Decimal128Type>().value(0), u64::MAX.into());
        assert_eq!(one["new"].null_count(), 3);
        assert_eq!(other["f"].as_primitive::<Float64Type>().value(0), 4.0);
        assert_eq!(other["u"].as_primitive::<Decimal128Type>().value(0), -7);
    }

    /// Is an integer that no float64 equals an error, and never its neighbour?
    #[test]
    fn an_integer_that_no_float_equals_is_an_error() {
        let odd: i64 = (1 << 53) + 1;
        let one = batch(vec![("n", Arc::new(Int64Array::from(vec![odd])))]);
        let other = batch(vec![("n", Arc::new(Float32Array::from(vec![0.5])))]);
        let error = widened(&one, &other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch);
        assert!(error.to_string().contains("9007199254740993"), "{error}");
        let even = batch(vec![("n", Arc::new(Int64Array::from(vec![odd - 1])))]);
        assert!(widened(&even, &other).is_ok());
    }

    /// Do columns within structs and lists widen too, with the nulls around them?
    #[test]
    fn columns_within_columns_widen() {
        let list = |item: Option<i32>| {
            let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([item]), None]);
            Arc::new(lists) as ArrayRef
        };
        let wide = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1 << 40)])]);
        let within = |columns| Arc::new(StructArray::from(batch(columns))) as ArrayRef;
        let one = batch(vec![("o", within(vec![("l", list(Some(9)))]))]);
        let other = batch(vec![(
            "o",
            within(vec![("l", Arc::new(wide)), ("m", Arc::new(Int8Array::from(vec![1])))]),
        )]);
        let (one, other) = widened(&one, &other).unwrap();
        assert_eq!(one.schema(), other.schema());
        let lists = one["o"].as_struct()["l"].as_list::<i32>();
        assert!(lists.is_null(1));
        assert_eq!(lists.value(0).as_primitive::<Int64Type>().values(), &[9]);
        assert_eq!(one["o"].as_struct()["m"].null_count(), 2);
    }

    /// Is a schema refused that lacks a column, rather than the column dropped?
    #[test]
    fn no_column_is_dropped() {
        let one = batch(vec![("a", Arc::new(Int8Array::from(vec![1])))]);
        let other = batch(vec![("b", Arc::new(Int8Array::from(vec![1])))]);
        assert!(widen(&one, &other.schema()).is_err());
    }
}
