//! `sealstone stage convert --parquet`: does a script get what it asks for, and learn what it did not get?

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use sealstone::Store;

use crate::commands::{Home, told};

/// Does each group become one file with its rows, one that cannot stay as it was and be told with its column,
/// and is the exit code 3 then?
#[test]
fn stg28_stage_convert_writes_parquet_and_tells_what_it_could_not() {
    let home = Home::new();
    let [store, file, out] = ["s.stone", "in.jsonl", "out"].map(|name| home.text(name));
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
