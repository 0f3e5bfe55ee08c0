//! `sealstone diff STORE RECORDING OTHER`. Ends with 1 where they differ, as diff and cmp do.

use serde_json::{Map, Value, json};

use super::args::DiffArgs;
use super::output::{End, Output};
use super::words::{counted, shown};

/// The exit code where two recordings differ.
const DIFFERENT: u8 = 1;

pub fn run(args: &DiffArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let one = store.recording(&args.recording)?;
    let diff = match &args.other_store {
        None => one.diff(&store.recording(&args.other)?)?,
        Some(path) => one.diff(&output.opening().open_read_only(path)?.recording(&args.other)?)?,
    };
    if output.is_json {
        let differences: Vec<Value> =
            diff.differences.iter().map(|difference| json!(difference.to_string())).collect();
        let mut object = Map::new();
        object.insert("equal".to_owned(), json!(diff.is_empty()));
        object.insert("differences".to_owned(), Value::Array(differences));
        object.insert("records_compared".to_owned(), json!(diff.records_compared));
        object.insert("records_known_equal".to_owned(), json!(diff.records_known_equal));
        output.object(object)?;
    } else {
        for difference in &diff.differences {
            output.line(&shown(&difference.to_string()))?;
        }
        output.remark(&format!(
            "{} compared, {} known to be equal by their digests",
            counted(diff.records_compared, "record"),
            counted(diff.records_known_equal, "record"),
        ))?;
    }
    Ok(if diff.is_empty() { 0 } else { DIFFERENT })
}
