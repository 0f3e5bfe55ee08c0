//! What cannot be read: each kind has its own error with its place, and the lenient reader returns
//! everything else, with a list of the gaps.

use std::path::{Path, PathBuf};

use sealstone::recording::{Field, FieldType, Gap, Recording, Schema, Value};
use sealstone::{Error, ErrorKind, Limits, Store};

use crate::made::{self, bulk, chunk, forged, pair, publish};
use crate::support::home;

/// Every record that a lenient reader shows, as iteration and values, and the gaps.
type Shown = (Vec<(i64, Vec<Option<f64>>)>, Vec<Gap>);

fn lenient(recording: &Recording) -> Shown {
    let mut shown = Vec::new();
    let gaps = recording.lenient(&mut |found| {
        assert_eq!(found.iterations.len() as u64, found.records.end - found.records.start);
        for (at, iteration) in found.iterations.as_i64().unwrap().iter().enumerate() {
            let value = |column: &Option<_>| match column
                .as_ref()
                .map(|c: &sealstone::recording::Column| c.get(at))
            {
                Some(Value::F64(value)) => Some(value),
                _ => None,
            };
            shown.push((*iteration, found.columns.iter().map(value).collect()));
        }
        Ok(())
    });
    (shown, gaps.unwrap())
}

/// Everything by the readers that stop at the first error.
fn all(recording: &Recording) -> Result<u64, Error> {
    let stream = recording.stream("s")?;
    let fields = (0..stream.schema().fields().len()).collect();
    let mut records = stream.records(fields, 0..stream.record_count(), 1 << 20);
    let mut count = 0;
    while records.advance()? {
        count += 1;
    }
    Ok(count)
}

fn sealed_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root.join("sealed")).unwrap() {
        let folder = std::fs::read_dir(folder.unwrap().path()).unwrap();
        files.extend(folder.map(|entry| entry.unwrap().path()));
    }
    files.sort();
    files
}

/// A closed store with a complete recording whose chunks lie in several files, the name of one of
/// them, and its bytes.
fn in_files() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut limits = Limits::default();
    (limits.sealed_file_bytes, limits.snapshot_chain_max) = (32 << 10, 0);
    limits.object_inline_bytes_max = 64;
    let store = Store::options().limits(limits).create(&root).unwrap();
    // Noise, so that the files are as long as what is in them.
    let noise = |n: i64| [1u64, 2].map(|k| made::noise(n as u64 * 2 + k));
    bulk(&store, "run", 8 << 10, 0..10_000, noise);
    store.close().unwrap();
    let files = sealed_files(&root);
    assert!(files.len() > 3, "{files:?}");
    let one = files.into_iter().max_by_key(|file| std::fs::metadata(file).unwrap().len()).unwrap();
    (dir, root, one)
}

/// What happened to a file.
type Harm = fn(&Path, Vec<u8>);

fn harm_of_files() -> [(&'static str, Harm); 4] {
    [
        ("the file is missing", |file, _| std::fs::remove_file(file).unwrap()),
        ("cut short", |file, bytes| std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap()),
        ("too long", |file, bytes| std::fs::write(file, [&bytes[..], b"more"].concat()).unwrap()),
        ("does not fit its checksum", |file, mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(file, bytes).unwrap();
        }),
    ]
}

/// What a lenient reader misses of a file that was harmed, checked against what it lists as gaps;
/// an error if records are missing that no gap tells of.
fn harmed(cause: &str, harm: Harm) -> Result<(), String> {
    let (_dir, root, file) = in_files();
    harm(&file, std::fs::read(&file).unwrap());
    let store = Store::open_read_only(&root).unwrap();
    let recording = store.recording("run").unwrap();
    let refused = all(&recording).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage, "{refused}");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(refused.chain().contains(name) && refused.chain().contains(cause), "{refused:?}");
    let (shown, gaps) = lenient(&recording);
    assert!(!shown.is_empty() && shown.windows(2).all(|two| two[0].0 < two[1].0));
    let is_told = |n: i64| gaps.iter().any(|gap| gap.records.contains(&(n as u64)));
    for n in 0..10_000 {
        let found = shown.binary_search_by_key(&n, |(iteration, _)| *iteration);
        let is_whole = found.is_ok_and(|at| shown[at].1.iter().all(Option::is_some));
        if is_whole == is_told(n) {
            return Err(format!("record {n}: read {is_whole}, told {}", is_told(n)));
        }
    }
    for gap in &gaps {
        assert!(gap.stream == "s" && gap.cause.chain().contains(name), "{gap:?}");
        let (first, last) = gap.iterations.unwrap();
        assert_eq!(
            first as u64..last as u64 + 1,
            gap.records,
            "a record's iteration is its number"
        );
    }
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| gap.cause.kind() == ErrorKind::Damage));
    Ok(())
}

/// Does a missing, short, long or altered file have its own error with its name, and is everything
/// else returned, with exactly what is missing in the list of gaps?
#[test]
fn rec46_what_a_harmed_file_held_is_a_gap_and_all_else_is_returned() {
    for (cause, harm) in harm_of_files() {
        harmed(cause, harm).unwrap();
    }
}

/// Would a gap that nobody lists be noticed?
#[cfg(feature = "sim")]
#[test]
fn rec46_a_gap_that_is_not_listed_is_noticed() {
    use sealstone::protection::{Protection, switch_off};
    let _off = switch_off(Protection::GapListed);
    let (cause, harm) = harm_of_files()[0];
    assert!(harmed(cause, harm).is_err());
}

/// Chunks that contradict what is known of them: what is wrong, the chunk, and its error.
fn wrong_chunks() -> [(&'static str, Vec<u8>, ErrorKind, &'static str); 5] {
    let iterations: Vec<i64> = (100..200).collect();
    let whole = chunk(&pair(), &iterations);
    let field = |name: &str| Field::new(name, FieldType::F64);
    let one = Schema::new(vec![field("x")]).unwrap();
    let twice = forged(whole.clone(), 1, |footer| {
        // The name of the second field, with its length before it.
        let name = [1, 0, 0, 0, 0, 0, 0, 0, b'y'];
        let at = footer.windows(name.len()).position(|bytes| bytes == name).unwrap();
        footer[at + name.len() - 1] = b'x';
    });
    let version = forged(whole.clone(), 99, |_| {});
    let backwards: Vec<i64> = (50..150).collect();
    let backwards = chunk(&pair(), &backwards);
    let mut altered = whole;
    altered[20] ^= 1;
    [
        ("a field twice", twice, ErrorKind::Damage, "used twice"),
        (
            "a missing field",
            chunk(&one, &iterations),
            ErrorKind::Damage,
            "only the first has a field \"y\"",
        ),
        ("an unknown version", version, ErrorKind::NewerFormat, "version 99"),
        (
            "an iteration that does not grow",
            backwards,
            ErrorKind::Damage,
            "iteration 50 follows iteration 99",
        ),
        ("altered bytes", altered, ErrorKind::Damage, "checksum"),
    ]
}

/// Does each of these have its own error with its place, and are the records around it returned?
#[test]
fn rec46_each_kind_of_wrong_chunk_has_its_own_error_and_is_a_gap() {
    for (what, content, kind, cause) in wrong_chunks() {
        let home = home();
        let store = &home.store;
        drop(store.record("run", &pair()).stream("s", ["x", "y"]).start().unwrap());
        let before: Vec<i64> = (0..100).collect();
        let wrong: Vec<i64> = match what {
            "an iteration that does not grow" => (50..150).collect(),
            _ => (100..200).collect(),
        };
        let after: Vec<i64> = (200..300).collect();
        publish(store, "run", chunk(&pair(), &before), &before);
        publish(store, "run", content, &wrong);
        publish(store, "run", chunk(&pair(), &after), &after);
        let recording = store.recording("run").unwrap();
        let refused = all(&recording).unwrap_err();
        assert_eq!(refused.kind(), kind, "{what}: {refused:?}");
        assert!(refused.place().contains("stream \"s\""), "{what}: {refused:?}");
        assert!(refused.chain().contains(cause), "{what}: {refused:?}");
        let (shown, gaps) = lenient(&recording);
        let shown: Vec<i64> =
            shown.iter().filter(|one| one.1.iter().all(Option::is_some)).map(|one| one.0).collect();
        assert_eq!(shown, [before, after].concat(), "{what}");
        assert_eq!(gaps.len(), 1, "{what}: {gaps:?}");
        assert_eq!(gaps[0].records, 100..200, "{what}");
        assert!(gaps[0].cause.chain().contains(cause), "{what}: {gaps:?}");
    }
}

/// Is what a damaged journal still tells returned, behind what is sealed?
#[test]
fn rec46_a_journal_is_read_as_far_as_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let store = Store::create(&root).unwrap();
    let recorder = store.record("run", &pair()).stream("s", ["x", "y"]).start().unwrap();
    for n in 0..100 {
        recorder.append(0, n, &[Value::F64(n as f64), Value::F64(0.0)]).unwrap();
        recorder.barrier().unwrap();
    }
    // As if the writer had been killed here.
    std::mem::forget((recorder, store.clone()));
    let journals: Vec<_> = std::fs::read_dir(root.join("journal")).unwrap().collect();
    let [Ok(journal)] = &journals[..] else { panic!("{journals:?}") };
    let copy = dir.path().join("copy.stone");
    let copied = std::process::Command::new("cp").arg("-r").args([&root, &copy]).status();
    assert!(copied.unwrap().success());
    let journal = copy.join("journal").join(journal.file_name());
    let mut bytes = std::fs::read(&journal).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[used / 2] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    let store = Store::open_read_only(&copy).unwrap();
    let recording = store.recording("run").unwrap();
    let refused = all(&recording).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage, "{refused}");
    assert!(refused.place().contains("journal"), "{refused}");
    let (shown, gaps) = lenient(&recording);
    assert!((10..90).contains(&shown.len()), "{}", shown.len());
    assert!(shown.iter().enumerate().all(|(at, one)| one.0 == at as i64));
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].records, shown.len() as u64..u64::MAX);
}
