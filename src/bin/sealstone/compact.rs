//! `sealstone compact STORE`.

use sealstone::engine::Compacted;
use serde_json::{Map, Value, json};

use super::args::CompactArgs;
use super::output::{End, Output};
use super::words::{counted, size};

pub fn run(args: &CompactArgs, output: &mut Output) -> Result<u8, End> {
    let opening = output.opening();
    let done = match args.dry_run {
        true => opening.compact_estimate(&args.store)?,
        false => opening.compact(&args.store)?,
    };
    tell(args, &done, output)?;
    Ok(0)
}

fn tell(args: &CompactArgs, done: &Compacted, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("command", json!("compact"));
        put("dry_run", json!(args.dry_run));
        put("commit", json!(done.commit.0));
        put("rows", json!(done.rows));
        put("bytes_before", json!(done.bytes_before));
        put("bytes_after", json!(done.bytes_after));
        return output.object(object);
    }
    let about = if args.dry_run { "would be about" } else { "is now" };
    output.remark(&format!(
        "the manifest of {} {about} {}, it was {}: {} at commit {}",
        args.store.display(),
        size(done.bytes_after),
        size(done.bytes_before),
        counted(done.rows, "row"),
        done.commit,
    ))
}
