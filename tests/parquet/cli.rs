//! `sealstone stage convert --parquet`: does a script get what it asks for, and learn what it did not get?

use std::path::Path;
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use sealstone::Store;
use serde_json::Value;

/// Every message that a command prints.
#[track_caller]
fn told(args: &[&str], code: i32) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sealstone"));
    command.env_remove("SEALSTONE_STORE").args(args).arg("--json");
    let output = command.output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(dir: &Path, names: [&str; 3]) -> [String; 3] {
    names.map(|name| dir.join(name).to_str().unwrap().to_owned())
}

/// Does each group become one file with its rows, one that cannot stay as it was and be told with its column,
/// and is the exit code 3 then?
#[test]
fn stg28_stage_convert_writes_parquet_and_tells_what_it_could_not() {
    let dir = tempfile::tempdir().unwrap();
    let [store, file, out] = texts(dir.path(), ["s.stone", "in.jsonl", "out"]);
    let mut lines: String =
        (0..90).map(|n| format!("{{\"host\":\"h{}\",\"n\":{n}}}\n", n % 3)).collect();
    lines += "{\"host\":\"bad\",\"n\":1}\n{\"host\":\"bad\",\"n\":\"one\"}\n";
    std::fs::write(&file, lines).unwrap();
    told(&["stage", "append", &store, "logs", &file, "--key", "host"], 0);
    told(&["stage", "flush", &store, "logs", "--all"], 0);
    let convert = ["stage", "convert", &store, "logs", "--parquet"];
    let messages = told(&convert, 3);
    let sum = messages.last().unwrap();
    assert_eq!(
        (&sum["groups"], &sum["outputs"], &sum["rows"], &sum["failed"]),
        (&4.into(), &3.into(), &90.into(), &1.into())
    );
    let finding = messages.iter().find(|one| one["message_type"] == "finding").unwrap();
    assert!(finding["cause"].as_str().unwrap().contains("column n"), "{finding}");
    assert_eq!(finding["key"], "host=bad");
    // Nothing but what failed: no group was converted.
    let again = told(&convert, 1);
    assert_eq!(again.last().unwrap()["failed"], 1);
    let published = told(&["stage", "publish", &store, "logs", &out], 0);
    assert_eq!(published.last().unwrap()["published"], 3);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 3);
    let store = Store::open(&store).unwrap();
    let view = store.stage("logs").unwrap().view().unwrap();
    let batches = view.batches().map(Result::unwrap).filter(|batch| batch.form == "parquet");
    let batches = batches.flat_map(|batch| batch.record_batches().unwrap());
    let mut found: Vec<i64> = batches
        .flat_map(|batch| batch["n"].as_primitive::<Int64Type>().values().to_vec())
        .collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..90));
    assert_eq!(view.rows(), 92);
}
