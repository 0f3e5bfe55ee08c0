//! Forms that batches may have, schemas that do not agree, groups too large for memory.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, StringArray};
use sealstone::ErrorKind;
use sealstone::staging::{Batch, JsonLinesToZstd, MergeOptions, RecordBatch, ToParquet};

use crate::support::{Staged, key, outputs};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn ints(batches: &[RecordBatch], name: &str) -> Vec<Option<i64>> {
    let column = |batch: &RecordBatch| -> Vec<_> {
        batch[name].as_primitive::<Int64Type>().iter().collect()
    };
    batches.iter().flat_map(column).collect()
}

/// STG28: has an output the union of the schemas of its batches, Arrow and JSON lines together, each row
/// with its own values, in the order in which they were accepted?
#[test]
fn stg28_an_output_has_the_union_of_its_batches() {
    let staged = Staged::by_name();
    staged.lines("a", "{\"n\":1}\n{\"n\":2,\"t\":\"two\"}\n");
    staged.arrow("a", &batch(vec![("n", Arc::new(Int32Array::from(vec![3, 4])))]));
    staged.lines("a", "{\"f\":0.5}\n");
    staged.arrow(
        "a",
        &batch(vec![
            ("f", Arc::new(Int64Array::from(vec![7]))),
            ("t", Arc::new(StringArray::from(vec!["last"]))),
        ]),
    );
    let ids = outputs(&staged.convert(&ToParquet::new()));
    let rows = staged.rows_of(ids[0]);
    assert_eq!(ints(&rows, "n"), [Some(1), Some(2), Some(3), Some(4), None, None]);
    let floats: Vec<_> = rows[0]["f"].as_primitive::<Float64Type>().iter().collect();
    assert_eq!(floats, [None, None, None, None, Some(0.5), Some(7.0)]);
    let texts: Vec<_> = rows[0]["t"].as_string::<i32>().iter().collect();
    assert_eq!(texts, [None, Some("two"), None, None, None, Some("last")]);
    assert_eq!(staged.stage.view().unwrap().rows(), 6);
}

/// STG28: does a group whose types contradict the stage's fail alone, name the column and both types, keep
/// its rows, and leave the stage's schema as it was?
#[test]
fn stg28_a_conflict_fails_one_group_and_leaves_the_schema() {
    let staged = Staged::by_name();
    staged.lines("a", "{\"status\":200}\n");
    outputs(&staged.convert(&ToParquet::new()));
    let before = staged.stage.schema().unwrap();
    assert!(!before.is_empty());
    staged.lines("b", "{\"status\":\"ok\"}\n");
    staged.lines("c", "{\"status\":404}\n");
    staged.lines("d", "{\"status\":1}\n{\"status\":[1]}\n");
    for group in staged.convert(&ToParquet::new()) {
        let name = group.group.key.to_string();
        match name.as_str() {
            "name=c" => assert_eq!(group.made.unwrap().rows, 1),
            "name=b" => {
                let error = group.made.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TypeMismatch);
                let text = error.chain();
                assert!(["status", "Int64", "Utf8"].iter().all(|w| text.contains(w)), "{text}");
            }
            _ => {
                let text = group.made.unwrap_err().chain();
                assert!(text.contains("status") && text.contains("list"), "{text}");
            }
        }
    }
    assert_eq!(staged.stage.schema().unwrap(), before);
    assert_eq!(staged.stage.view().unwrap().rows(), 5);
    // A column that is new widens the schema, and the group that failed is tried again, and fails again.
    staged.lines("e", "{\"new\":true,\"status\":1.5}\n");
    let again = staged.convert(&ToParquet::new());
    assert_eq!(again.iter().filter(|group| group.made.is_ok()).count(), 1);
    assert_ne!(staged.stage.schema().unwrap(), before);
}

/// Is a group that does not fit into memory read twice, with the rows of both readings the same?
#[test]
fn a_group_larger_than_memory_is_read_twice() {
    let staged = Staged::by_name();
    let filler = "x".repeat(100);
    let mut count = 0;
    // About 60 MiB, of which 48 would be kept.
    for _ in 0..80 {
        let mut text = String::new();
        for _ in 0..6_000 {
            writeln!(text, "{{\"n\":{count},\"late\":null,\"filler\":\"{filler}\"}}").unwrap();
            count += 1;
        }
        staged.lines("a", &text);
    }
    staged.lines("a", &format!("{{\"n\":{count},\"late\":\"here\"}}\n"));
    let converted = staged.convert(&ToParquet::new());
    assert_eq!(converted[0].made.as_ref().unwrap().rows, 480_001);
    let rows = staged.rows_of(outputs(&converted)[0]);
    let found: Vec<i64> = ints(&rows, "n").into_iter().flatten().collect();
    assert!(found.iter().copied().eq(0..480_001));
    let late = rows.iter().map(|batch| batch["late"].len() - batch["late"].null_count());
    assert_eq!(late.sum::<usize>(), 1);
}

/// Do equal batches give equal bytes?
#[test]
fn equal_batches_give_equal_bytes() {
    let output = || {
        let staged = Staged::by_name();
        for n in 0..50 {
            staged.lines("a", &format!("{{\"n\":{n},\"t\":\"text {}\"}}\n", n % 3));
        }
        let id = outputs(&staged.convert(&ToParquet::new()))[0];
        staged.bytes_of(id)
    };
    assert_eq!(output(), output());
}

/// Are batches of another form refused, with nothing of them lost?
#[test]
fn a_form_that_does_not_fit_is_refused() {
    let staged = Staged::by_name();
    staged.stage.append(&key("a"), Batch::opaque(*b"bytes", 1), None).unwrap();
    let refused = staged.convert(&ToParquet::new()).remove(0).made.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    let refused = staged.convert(&JsonLinesToZstd::new()).remove(0).made.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    assert_eq!(staged.stage.view().unwrap().rows(), 1);
    // No line of it has a value: Parquet has no form for that.
    staged.lines("b", "{}\n");
    let refused = staged.convert(&ToParquet::new());
    assert!(refused.iter().all(|group| group.made.is_err()));
}

/// Does a merge of outputs have the rows of all, in order, with the union of their schemas?
#[test]
fn outputs_merge_into_one_with_all_rows() {
    let staged = Staged::by_name();
    for lines in ["{\"n\":1}\n{\"n\":2}\n", "{\"n\":2.5,\"t\":\"x\"}\n", "{\"t\":\"y\",\"n\":4}\n"]
    {
        staged.lines("a", lines);
        outputs(&staged.convert(&ToParquet::new()));
    }
    let merged = staged.stage.merge(&MergeOptions::default(), &ToParquet::new()).unwrap();
    assert_eq!(merged.len(), 1);
    let all = staged.stage.outputs().unwrap();
    assert_eq!((all.len(), all[0].rows), (1, 4));
    let rows = staged.rows_of(all[0].id);
    let numbers: Vec<_> = rows[0]["n"].as_primitive::<Float64Type>().values().to_vec();
    assert_eq!(numbers, [1.0, 2.0, 2.5, 4.0]);
    let texts: Vec<_> = rows[0]["t"].as_string::<i32>().iter().collect();
    assert_eq!(texts, [None, None, Some("x"), Some("y")]);
}

/// Of a group with batches that Parquet has no form for, whatever the others are: does each of these go to
/// quarantine with the reason, and become the others an output; also where they are read twice?
#[test]
fn stg15_batches_that_parquet_has_no_form_for_are_put_aside() {
    let staged = Staged::by_name();
    staged.lines("a", "{\"n\":1}\n");
    staged.lines("a", "{\"n\":2}\n7\n");
    staged.stage.seal().unwrap();
    let empty: ArrayRef = Arc::new(arrow_array::StructArray::new_empty_fields(3, None));
    staged
        .arrow("a", &batch(vec![("empty", empty), ("n", Arc::new(Int64Array::from(vec![9; 3])))]));
    staged.lines("a", "{\"n\":3}\n");
    let group = staged.convert(&ToParquet::new()).remove(0);
    let made = group.made.unwrap();
    assert_eq!((made.rows, made.outputs.len(), made.rows_left), (2, 1, 0));
    assert_eq!(ints(&staged.rows_of(made.outputs[0]), "n"), [Some(1), Some(3)]);
    let reasons: Vec<_> = made.quarantined.iter().map(|one| (one.rows, &one.reason)).collect();
    assert!(reasons.len() == 2 && reasons[0].1.contains("line 2 is no object"), "{reasons:?}");
    assert!(reasons[1].1.contains("Parquet"), "{reasons:?}");
    assert_eq!(staged.stage.view().unwrap().rows(), 7);
    // Another converter takes the lines.
    staged.stage.retry(made.quarantined[0].id).unwrap();
    let made = staged.convert(&JsonLinesToZstd::new()).remove(0).made.unwrap();
    assert_eq!(made.rows, 2);
}
