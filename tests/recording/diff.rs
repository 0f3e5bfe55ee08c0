//! Diff: where two recordings begin to differ.

use std::sync::Arc;

use sealstone::Store;
use sealstone::recording::{Difference, Field, FieldType, Schema, Value};
use sealstone::vfs::{RealDisk, TraceDisk};

use crate::made::{bulk, pair};
use crate::support::home;

fn plain(n: i64) -> [f64; 2] {
    [n as f64, -(n as f64)]
}

/// The value of iteration `at` is another one in field `y`.
fn but_for(at: i64) -> impl Fn(i64) -> [f64; 2] {
    move |n| if n == at { [n as f64, 0.5] } else { plain(n) }
}

/// Are equal recordings equal without a byte of their chunks being read, and is one value that
/// differs found at the price of the chunks that differ?
#[test]
fn rec51_equal_chunks_are_not_decoded() {
    let dir = tempfile::tempdir().unwrap();
    let disk = TraceDisk::counting(RealDisk::new());
    let options = Store::options().disk(Arc::new(disk.clone()));
    let store = options.create(dir.path().join("run.stone")).unwrap();
    bulk(&store, "a", 8 << 10, 0..20_000, plain);
    bulk(&store, "b", 8 << 10, 0..20_000, plain);
    bulk(&store, "c", 8 << 10, 0..20_000, but_for(15_000));
    let read = |one: &str, other: &str| {
        let before = disk.counts().bytes_read;
        let diff = store.diff(one, other).unwrap();
        (diff, disk.counts().bytes_read - before)
    };
    let (diff, bytes) = read("a", "b");
    assert!(diff.is_empty(), "{diff:?}");
    assert_eq!((diff.records_compared, diff.records_known_equal), (0, 20_000));
    let stored = store.recording("a").unwrap().stream("s").unwrap().stored_bytes().unwrap();
    assert!(bytes < stored / 10, "{bytes} of {stored} were read");
    let (diff, bytes) = read("a", "c");
    let [Difference::Value { stream, iteration, field, element, values }] = &diff.differences[..]
    else {
        panic!("{diff:?}");
    };
    assert_eq!((stream.as_str(), *iteration, field.as_str(), *element), ("s", 15_000, "y", None));
    assert_eq!(values, &("-15000.0".to_owned(), "0.5".to_owned()));
    assert!(diff.records_compared < 1_000, "{diff:?}");
    assert!(bytes < stored, "{bytes} of {stored} were read");
}

/// Is a difference found wherever chunks end, in the journal's tail as well, bit for bit?
#[test]
fn rec51_chunk_boundaries_do_not_matter() {
    let home = home();
    let store = &home.store;
    bulk(store, "a", 8 << 10, 0..3_000, plain);
    bulk(store, "b", 5 << 10, 0..3_000, plain);
    assert!(store.diff("a", "b").unwrap().is_empty());
    bulk(store, "c", 3 << 10, 0..3_000, but_for(2_999));
    let diff = store.diff("a", "c").unwrap();
    assert!(
        matches!(&diff.differences[..], [Difference::Value { iteration: 2_999, .. }]),
        "{diff:?}"
    );
    // Unsealed records of a running one; -0 is not 0.
    let new = store.record("live", &pair()).stream("s", ["x", "y"]);
    let recorder = new.start().unwrap();
    for n in 0..3_000 {
        recorder.append(0, n, &plain(n).map(Value::F64)).unwrap();
    }
    let diff = store.diff("a", "live").unwrap();
    assert!(diff.is_empty(), "-0.0 in both: {diff:?}");
    drop(recorder);
    bulk(store, "zero", 8 << 10, 0..3_000, |n| if n == 0 { [0.0, 0.0] } else { plain(n) });
    let diff = store.diff("a", "zero").unwrap();
    assert!(matches!(&diff.differences[..], [Difference::Value { iteration: 0, .. }]), "{diff:?}");
}

/// Are missing records, other iterations, streams and schemas told, and which element of an array?
#[test]
fn rec51_every_kind_of_difference_is_told() {
    let home = home();
    let store = &home.store;
    bulk(store, "a", 8 << 10, 0..1_000, plain);
    bulk(store, "short", 8 << 10, 0..900, plain);
    let diff = store.diff("a", "short").unwrap();
    assert_eq!(
        diff.differences,
        [Difference::Length { stream: "s".to_owned(), iteration: 900, records: (1_000, 900) }]
    );
    bulk(store, "skips", 8 << 10, (0..1_001).filter(|n| *n != 500), plain);
    let diff = store.diff("a", "skips").unwrap();
    let moment = &diff.differences[..];
    assert!(matches!(moment, [Difference::Moment { record: 500, iteration: 500, .. }]), "{diff:?}");

    let grid = Field::new("grid", FieldType::F32).array([2, 3]);
    let fields = vec![Field::new("x", FieldType::F64), grid];
    let schema = Schema::new(fields).unwrap();
    let array = |name: &str, value: f32| {
        let new = store.record(name, &schema).stream("s", ["x"]).stream("grid", ["grid"]);
        let recorder = new.start().unwrap();
        let grid = [0.0, 1.0, 2.0, 3.0, value, 5.0];
        let grid = sealstone::recording::Array::new(&[2, 3], &grid);
        recorder.append(1, 7, &[Value::from(grid)]).unwrap();
        recorder.complete().unwrap();
    };
    array("one", 4.0);
    array("other", 4.5);
    let diff = store.diff("one", "other").unwrap();
    assert_eq!(
        diff.differences[0].to_string(),
        "stream \"grid\" iteration 7 field \"grid\" element 4: 4.0 and 4.5"
    );
    let diff = store.diff("a", "one").unwrap();
    let told: Vec<String> = diff.differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["stream \"s\": only the first has a field \"y\"", "only the second has a stream \"grid\""]
    );
}

/// The second recording shares its first chunk with the first one, but for 40 records that were
/// taken back; what follows differs.
#[cfg(feature = "sim")]
fn cut() -> sealstone::recording::Diff {
    use crate::made::{chunk, publish};
    let home = home();
    let store = &home.store;
    for name in ["whole", "cut"] {
        drop(store.record(name, &pair()).stream("s", ["x", "y"]).start().unwrap());
        let shared: Vec<i64> = (0..100).collect();
        publish(store, name, chunk(&pair(), &shared), &shared);
    }
    let stream = |name: &str| store.recording(name).unwrap().stream("s").unwrap();
    let mut cursors = store.cursors(&[stream("cut").id()]).unwrap();
    cursors[0].end = sealstone::ids::Sequence(60);
    store.rewind(&cursors).unwrap();
    assert_eq!((stream("whole").record_count(), stream("cut").record_count()), (100, 60));
    let more: Vec<i64> = (1_000..1_040).collect();
    publish(store, "cut", chunk(&pair(), &more), &more);
    store.diff("whole", "cut").unwrap()
}

/// Of a chunk that both have and one of them cut: are only the records that count taken for equal?
#[cfg(feature = "sim")]
#[test]
fn rec51_a_chunk_that_was_cut_is_equal_as_far_as_it_counts() {
    let diff = cut();
    let moment = &diff.differences[..];
    assert!(matches!(moment, [Difference::Moment { record: 60, iteration: 60, .. }]), "{diff:?}");
    assert_eq!(diff.records_known_equal, 60);
}

/// Would it be noticed if the digest alone decided?
#[cfg(feature = "sim")]
#[test]
fn rec51_without_the_cut_a_difference_is_missed() {
    use sealstone::protection::{Protection, switch_off};
    let _off = switch_off(Protection::DiffCut);
    assert!(cut().is_empty());
}
