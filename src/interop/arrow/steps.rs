//! A batch step by step: so few rows at a time that memory holds them as plain values of a wider schema.
//!
//! Some arrays take fewer bytes than their values: nulls without a type, dictionaries, views, runs. What they
//! become is summed up before it is built.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Fields, SchemaRef};

use super::widen::widen;
use crate::error::{Error, ErrorKind, Result};

/// The most rows of a step.
pub(super) const ROWS_MAX: usize = 8 << 10;
/// A step of more bytes is halved.
const BYTES_MAX: usize = 64 << 20;
/// A row of more bytes is refused; and so are [`ROWS_MAX`] rows whose values are shared.
const PLAIN_BYTES_MAX: usize = 256 << 20;
/// A batch has at most so many values in all of its arrays for each byte.
const VALUES_PER_BYTE: usize = 64;

/// Gives `batch` to `each`, [widened](widen) to `schema`, step by step.
///
/// # Errors
/// Those of `widen` and of `each`; `LimitExceeded` for a row that takes more than 256 MiB.
pub fn widen_in_steps(
    batch: &RecordBatch,
    schema: &SchemaRef,
    each: &mut dyn FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let (mut at, rows) = (0, batch.num_rows());
    while at < rows {
        let mut step = batch.slice(at, ROWS_MAX.min(rows - at));
        let bytes = loop {
            let bytes = widened_bytes(&step, schema);
            if bytes <= BYTES_MAX || step.num_rows() <= 1 {
                break bytes;
            }
            step = step.slice(0, step.num_rows() / 2);
        };
        if bytes > PLAIN_BYTES_MAX {
            let cause = format!("row {at} of it takes {bytes} bytes as columns of its output");
            return Err(Error::new(ErrorKind::LimitExceeded, "convert", "a batch", cause));
        }
        at += step.num_rows();
        each(&widen(&step, schema)?)?;
    }
    Ok(())
}

/// Looks whether `len` bytes justify the values of `batch`, which was read from them. A slice counts with all
/// that it was cut from.
///
/// # Errors
/// `LimitExceeded`, saying by how much.
pub(super) fn check_values(batch: &RecordBatch, len: usize) -> Result<()> {
    check_count(values_of(batch), len)
}

fn check_count(values: usize, len: usize) -> Result<()> {
    if values > len.saturating_mul(VALUES_PER_BYTE) {
        let cause = format!(
            "its columns have {values} values in {len} bytes, and a byte is at most \
             {VALUES_PER_BYTE}: leave out columns that hold nothing"
        );
        return Err(Error::new(ErrorKind::LimitExceeded, "read", "an Arrow batch", cause));
    }
    Ok(())
}

/// Looks whether the values of `batch`, which is `len` bytes, fit into memory where none is shared, in time that
/// follows these bytes.
///
/// # Errors
/// `LimitExceeded`, saying by how much they do not; and for more rows than its bytes justify.
pub(super) fn check_plain(batch: &RecordBatch, len: usize) -> Result<()> {
    let (mut at, rows) = (0, batch.num_rows());
    // P9: as many steps as its bytes justify; each column has a value for each row.
    check_count(rows, len)?;
    while at < rows {
        let step = batch.slice(at, ROWS_MAX.min(rows - at));
        at += step.num_rows();
        let bytes = sum(step.columns().iter().map(plain_bytes));
        if bytes > PLAIN_BYTES_MAX.max(len) {
            let cause = format!(
                "{} rows of it are {bytes} bytes without dictionaries and views, and \
                 {PLAIN_BYTES_MAX} are the most",
                step.num_rows()
            );
            return Err(Error::new(ErrorKind::LimitExceeded, "read", "an Arrow batch", cause));
        }
    }
    Ok(())
}

/// Values in all arrays of `batch`, however deep.
fn values_of(batch: &RecordBatch) -> usize {
    let mut open: Vec<_> = batch.columns().iter().map(|column| column.to_data()).collect();
    let mut values = 0_usize;
    while let Some(data) = open.pop() {
        values = values.saturating_add(data.len());
        open.extend(data.child_data().iter().cloned());
    }
    values
}

/// About how many bytes `batch` takes once it is widened.
fn widened_bytes(batch: &RecordBatch, schema: &SchemaRef) -> usize {
    let names = batch.schema();
    of_columns(names.fields(), batch.columns(), schema.fields(), batch.num_rows())
}

fn of_columns(from: &Fields, columns: &[ArrayRef], to: &Fields, rows: usize) -> usize {
    sum(to.iter().map(|field| {
        let known = from.find(field.name()).and_then(|(at, _)| columns.get(at));
        match known {
            Some(column) => of_column(column, field.data_type()),
            None => rows.saturating_mul(width(field.data_type())),
        }
    }))
}

fn of_column(from: &ArrayRef, to: &DataType) -> usize {
    use DataType::{LargeList, List, Null, Struct};
    match (from.data_type(), to) {
        (Null, _) => from.len().saturating_mul(width(to)),
        (Struct(fields), Struct(wider)) => {
            of_columns(fields, from.as_struct().columns(), wider, from.len())
        }
        (List(_), List(item) | LargeList(item)) => {
            let list = from.as_list::<i32>();
            of_column(&within(list.offsets(), list.values()), item.data_type())
        }
        (LargeList(_), LargeList(item)) => {
            let list = from.as_list::<i64>();
            of_column(&within(list.offsets(), list.values()), item.data_type())
        }
        _ => plain_bytes(from),
    }
}

/// The values that `offsets` lie in: those of a slice of a list are a slice.
pub(super) fn within<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, values: &ArrayRef) -> ArrayRef {
    let first = offsets.first().map_or(0, |offset| offset.as_usize());
    let end = offsets.last().map_or(0, |offset| offset.as_usize());
    values.slice(first, end.saturating_sub(first))
}

/// Bytes that the values of `array` take where none is shared.
fn plain_bytes(array: &ArrayRef) -> usize {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeListView,
        LargeUtf8, List, ListView, Map, RunEndEncoded, Struct, Utf8, Utf8View,
    };
    match array.data_type() {
        Utf8 => text(array.as_string::<i32>().offsets()),
        Binary => text(array.as_binary::<i32>().offsets()),
        LargeUtf8 => text(array.as_string::<i64>().offsets()),
        LargeBinary => text(array.as_binary::<i64>().offsets()),
        Utf8View => views(array.as_string_view().views()),
        BinaryView => views(array.as_binary_view().views()),
        Struct(_) => sum(array.as_struct().columns().iter().map(plain_bytes)),
        List(_) => {
            plain_bytes(&within(array.as_list::<i32>().offsets(), array.as_list::<i32>().values()))
        }
        LargeList(_) => {
            plain_bytes(&within(array.as_list::<i64>().offsets(), array.as_list::<i64>().values()))
        }
        Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            plain_bytes(&within(map.offsets(), &entries))
        }
        FixedSizeList(_, _) => plain_bytes(array.as_fixed_size_list().values()),
        ListView(_) => list_views::<i32>(array),
        LargeListView(_) => list_views::<i64>(array),
        Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            let used = keys.filter(|(at, _)| dictionary.keys().is_valid(*at));
            sum(used.map(|(_, key)| one(dictionary.values(), key)))
        }
        RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array),
            DataType::Int32 => runs::<Int32Type>(array),
            _ => runs::<Int64Type>(array),
        },
        other => array.len().saturating_mul(width(other)),
    }
}

fn text<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> usize {
    let (first, end) = (offsets.first(), offsets.last());
    first.zip(end).map_or(0, |(first, end)| end.as_usize().saturating_sub(first.as_usize()))
}

/// The lower half of a view's first word is its length.
fn views(views: &[u128]) -> usize {
    sum(views.iter().map(|view| (view & u128::from(u32::MAX)) as usize))
}

/// Lists that may share their items. Counting ends where it is too much.
fn list_views<O: OffsetSizeTrait>(array: &ArrayRef) -> usize {
    let list = array.as_list_view::<O>();
    let mut bytes = 0_usize;
    for (at, size) in list.offsets().iter().zip(list.sizes().iter()) {
        let items = list.values().slice(at.as_usize(), size.as_usize());
        bytes = bytes.saturating_add(plain_bytes(&items)).saturating_add(items.len());
        if bytes > 2 * PLAIN_BYTES_MAX {
            return usize::MAX;
        }
    }
    bytes
}

/// Each row as long as the longest.
fn runs<R: RunEndIndexType>(array: &ArrayRef) -> usize {
    let Some(run) = array.as_run_opt::<R>().filter(|run| !run.is_empty()) else { return 0 };
    let ends = run.run_ends();
    let (first, last) = (ends.get_start_physical_index(), ends.get_end_physical_index());
    let longest = (first..=last).map(|at| one(run.values(), at)).max().unwrap_or(0);
    longest.saturating_mul(array.len())
}

fn one(values: &ArrayRef, at: usize) -> usize {
    match at < values.len() {
        true => plain_bytes(&values.slice(at, 1)),
        false => 0,
    }
}

/// Bytes of a null of this type.
fn width(ty: &DataType) -> usize {
    match ty {
        DataType::FixedSizeBinary(len) => usize::try_from(*len).unwrap_or(0),
        DataType::FixedSizeList(item, len) => {
            width(item.data_type()).saturating_mul(usize::try_from(*len).unwrap_or(0))
        }
        DataType::Struct(fields) => sum(fields.iter().map(|field| width(field.data_type()))),
        DataType::Null => 0,
        other => other.primitive_width().unwrap_or(8),
    }
}

fn sum(of: impl Iterator<Item = usize>) -> usize {
    of.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        BinaryViewArray, DictionaryArray, Int8Array, Int64Array, LargeStringArray, ListArray,
        NullArray, RecordBatchOptions, StructArray,
    };
    use arrow_schema::{Field, Schema};

    use super::super::{batch_to_bytes, union};
    use super::*;

    fn batch(column: ArrayRef) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("c", column.data_type().clone(), true)]);
        let options = RecordBatchOptions::new().with_row_count(Some(column.len()));
        RecordBatch::try_new_with_options(Arc::new(schema), vec![column], &options).unwrap()
    }

    fn shared_text(rows: usize, bytes: usize) -> ArrayRef {
        let text: ArrayRef = Arc::new(LargeStringArray::from(vec!["x".repeat(bytes)]));
        let keys = Int8Array::from(vec![0; rows]);
        Arc::new(DictionaryArray::<Int8Type>::try_new(keys, text).unwrap())
    }

    /// Is a batch refused whose rows its bytes do not justify, however they hide, before any is built?
    #[test]
    fn rows_without_bytes_are_refused() {
        let nulls: ArrayRef = Arc::new(NullArray::new(1 << 40));
        let item = Arc::new(Field::new_list_field(DataType::Null, true));
        let lists = ListArray::new(
            item,
            OffsetBuffer::from_lengths([i32::MAX as usize]),
            Arc::new(NullArray::new(i32::MAX as usize)),
            None,
        );
        let empty = StructArray::new_empty_fields(1 << 40, None);
        let views = BinaryViewArray::from_iter_values([vec![b'y'; 1 << 20]]);
        let view = views.views().first().copied().unwrap();
        let buffers = views.data_buffers().to_vec();
        let views = BinaryViewArray::new(vec![view; 1 << 20].into(), buffers, None);
        let bad: [ArrayRef; 5] = [
            nulls,
            Arc::new(lists),
            Arc::new(empty),
            shared_text(1 << 20, 1 << 20),
            Arc::new(views),
        ];
        for (at, column) in bad.into_iter().enumerate() {
            let refused = batch_to_bytes(&batch(column)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "{at}");
        }
        let few = batch(Arc::new(NullArray::new(1000)));
        assert!(batch_to_bytes(&few).is_ok());
        let slice = batch(Arc::new(NullArray::new(1 << 40))).slice(5, 10);
        assert!(batch_to_bytes(&slice).is_ok());
    }

    /// Are rows widened a step at a time, each value once, and is a step short where its rows are long?
    #[test]
    fn steps_are_short_where_rows_are_long() {
        let rows = 20_000;
        let one = batch(Arc::new(Int64Array::from_iter_values(0..rows)));
        let mut seen = 0;
        widen_in_steps(&one, &one.schema(), &mut |step| {
            assert!(step.num_rows() <= ROWS_MAX);
            assert_eq!(*step, one.slice(seen, step.num_rows()));
            seen += step.num_rows();
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 20_000);
        let long = batch(shared_text(4_000, 1 << 20));
        let plain = batch(Arc::new(LargeStringArray::from(vec!["plain"])));
        let both = Arc::new(union(&long.schema(), &plain.schema()).unwrap());
        let mut seen = 0;
        let stopped = widen_in_steps(&long, &both, &mut |step| {
            assert!(step.get_array_memory_size() < 80 << 20);
            seen += step.num_rows();
            match seen < 300 {
                true => Ok(()),
                false => Err(Error::new(ErrorKind::Cancelled, "test", "steps", "enough")),
            }
        });
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    }

    /// Are nulls that become something wide refused rather than built?
    #[test]
    fn nulls_that_become_too_wide_are_refused() {
        let item = |ty| Arc::new(Field::new_list_field(ty, true));
        let offsets = OffsetBuffer::from_lengths([100_000]);
        let values = Arc::new(NullArray::new(100_000));
        let nulls = batch(Arc::new(ListArray::new(item(DataType::Null), offsets, values, None)));
        let wide = DataType::List(item(DataType::FixedSizeBinary(i32::MAX)));
        let wide = Arc::new(Schema::new(vec![Field::new("c", wide, true)]));
        let refused = widen_in_steps(&nulls, &wide, &mut |_| Ok(())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
    }

    /// Is a list widened in steps the list, each step with its own items?
    #[test]
    fn lists_are_widened_item_by_item() {
        let items: Vec<_> = (0..20_000).map(|n| Some(vec![Some(n), Some(n + 1)])).collect();
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(items);
        let one = batch(Arc::new(lists));
        let ty = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
        let wide = Arc::new(Schema::new(vec![Field::new("c", ty, true)]));
        let mut row = 0;
        widen_in_steps(&one, &wide, &mut |step| {
            assert_eq!(step["c"].as_list::<i32>().values().len(), 2 * step.num_rows());
            for list in step["c"].as_list::<i32>().iter().flatten() {
                assert_eq!(list.as_primitive::<Int64Type>().values(), &[row, row + 1]);
                row += 1;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(row, 20_000);
    }
}
