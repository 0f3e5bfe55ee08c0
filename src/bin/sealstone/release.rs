//! `sealstone release STORE`.

use serde_json::{Map, json};

use super::args::ReleaseArgs;
use super::output::{End, Output};

pub fn run(args: &ReleaseArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open(&args.store)?;
    let was_held = store.release_salvaged()?;
    store.close()?;
    if output.is_json {
        let mut object = Map::new();
        object.insert("command".to_owned(), json!("release"));
        object.insert("was_held".to_owned(), json!(was_held));
        output.object(object)?;
        return Ok(0);
    }
    let told = match was_held {
        true => "may be reclaimed from now on",
        false => "was not held: it may be reclaimed",
    };
    output.remark(&format!("{} {told}", args.store.display()))?;
    Ok(0)
}
