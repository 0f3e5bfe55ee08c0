//! A year of weather, staged by airport and month: 36 files, read back by pyarrow.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealstone::staging::{Batch, Key, KeyPart, KeyShape, ToParquet};

use crate::support::{Staged, outputs};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nyc-weather-2013.csv");
const PYARROW: &str = "pyarrow==26.0.1";
/// Rows of a batch.
const BATCH: usize = 100;

/// Counts the files of a directory and compares their rows with those of the input, as a multiset of texts
/// whose numbers were parsed.
const COMPARE: &str = r#"
import collections, csv, glob, sys
import pyarrow.parquet as parquet

def value(column, text):
    if text == "NA":
        return None
    return text if column in ("origin", "time_hour") else float(text)

def plain(value):
    return float(value) if isinstance(value, (int, float)) else value

with open(sys.argv[1], newline="") as lines:
    reader = csv.DictReader(lines)
    columns = reader.fieldnames
    wanted = collections.Counter(tuple(value(c, row[c]) for c in columns) for row in reader)
found = collections.Counter()
files = sorted(glob.glob(sys.argv[2] + "/*.parquet"))
for name in files:
    table = parquet.read_table(name)
    if len({(row["origin"], row["month"]) for row in table.select(["origin", "month"]).to_pylist()}) != 1:
        sys.exit(f"{name} has rows of several groups")
    for row in table.to_pylist():
        found[tuple(plain(row.get(c)) for c in columns)] += 1
if found != wanted:
    sys.exit(f"missing: {list((wanted - found).items())[:3]}; more: {list((found - wanted).items())[:3]}")
print(len(files), sum(found.values()))
"#;

/// Are the files of all groups together the input, each row once, to a reader that is not ours?
#[test]
fn the_weather_becomes_36_files_whose_union_is_the_input() {
    let input = fs::read_to_string(INPUT).unwrap();
    let staged = Staged::new(&KeyShape::new().text("airport").integer("month"));
    let rows = stage(&staged, &input);
    assert_eq!(rows, 26_115);
    let converted = staged.convert(&ToParquet::new());
    let dir = staged.dir.path().join("files");
    fs::create_dir(&dir).unwrap();
    for id in outputs(&converted) {
        fs::write(dir.join(format!("{id}.parquet")), staged.bytes_of(id)).unwrap();
    }
    assert_eq!(converted.len(), 36);
    assert_eq!(staged.stage.view().unwrap().rows(), rows);
    let Some(python) = python() else {
        eprintln!("SKIPPED: NO PYTHON HERE. NO OTHER READER HAS READ THE 36 FILES.");
        return;
    };
    let output = Command::new(python).args(["-c", COMPARE, INPUT]).arg(&dir).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert_eq!(out.trim(), "36 26115");
}

/// Appends the lines of the file, as JSON, under airport and month. Returns the rows.
fn stage(staged: &Staged, input: &str) -> u64 {
    let mut lines = input.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut groups: BTreeMap<(String, i64), Vec<String>> = BTreeMap::new();
    let mut rows = 0;
    for line in lines {
        let cells: Vec<(&str, &str)> = names.iter().copied().zip(line.split(',')).collect();
        let cell = |wanted| cells.iter().find(|(name, _)| *name == wanted).unwrap().1;
        let key = (cell("origin").to_owned(), cell("month").parse().unwrap());
        let group = groups.entry(key.clone()).or_default();
        group.push(json(&cells));
        if group.len() == BATCH {
            append(staged, &key, &std::mem::take(group));
        }
        rows += 1;
    }
    for (key, rest) in groups.iter().filter(|(_, rest)| !rest.is_empty()) {
        append(staged, key, rest);
    }
    rows
}

fn append(staged: &Staged, (airport, month): &(String, i64), lines: &[String]) {
    let key = Key::new([KeyPart::Text(airport.clone()), KeyPart::Integer(*month)]);
    staged.stage.append(&key, Batch::json_lines(lines.join("\n")).unwrap(), None).unwrap();
}

/// Numbers as they stand there; a missing value is left out.
fn json(cells: &[(&str, &str)]) -> String {
    let field = |(name, text): &(&str, &str)| match *name {
        "origin" | "time_hour" => format!("\"{name}\":\"{text}\""),
        _ => format!("\"{name}\":{text}"),
    };
    let known = cells.iter().filter(|(_, text)| *text != "NA");
    format!("{{{}}}", known.map(field).collect::<Vec<_>>().join(","))
}

/// A Python with pyarrow: the one of `.ci/run`, that of this machine, or one that is made here.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pyarrow");
    let inside = made.join("bin/python");
    let known = [root.join("target/ci-tools/bin/python"), "python3".into(), inside.clone()];
    let has = |python: &PathBuf, code: &str| {
        let output = Command::new(python).args(["-c", code]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if let Some(found) = known.iter().find(|python| has(python, "import pyarrow.parquet")) {
        return Some(found.clone());
    }
    if !has(&"python3".into(), "") {
        return None;
    }
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&made));
    run(Command::new(&inside).args(["-m", "pip", "install", "--quiet", PYARROW]));
    Some(inside)
}
