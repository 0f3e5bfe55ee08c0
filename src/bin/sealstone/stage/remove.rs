//! `sealstone stage rm STORE STAGE`.

use sealstone::{Error, ErrorKind};
use serde_json::json;

use super::args::StageRmArgs;
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, gc_gives_back, shown};

pub fn run(args: &StageRmArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let stage = store.stage(&args.stage)?;
    let (rows, published) = {
        let view = stage.view()?;
        (view.rows(), view.outputs().map(|one| one.rows).fold(0u64, u64::saturating_add))
    };
    let staged = rows.saturating_sub(published);
    if staged > 0 && !args.force {
        let cause = format!(
            "{} not in any output yet; convert them, or give --force",
            match staged {
                1 => "1 row is".to_owned(),
                _ => format!("{} are", counted(staged, "row")),
            }
        );
        let place = format!("stage {:?}", args.stage);
        return Err(Error::new(ErrorKind::Conflict, "remove", place, cause).into());
    }
    let outputs = stage.outputs()?.len() as u64;
    drop(stage);
    let bytes = match args.dry_run {
        true => None,
        // What others took in since the look above keeps it.
        false if !args.force => {
            Some(store.remove_converted_stage(&args.stage, "removed by hand")?.bytes)
        }
        false => Some(store.remove_stage(&args.stage, "removed by hand")?.bytes),
    };
    if output.is_json {
        output.object(object(json!({
            "command": "rm", "dry_run": args.dry_run, "stage": args.stage, "rows": rows,
            "staged_rows": staged, "outputs": outputs, "bytes": bytes,
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be removed" } else { "removed" };
    let back = gc_gives_back(bytes);
    output.remark(&format!(
        "stage {} with {} in {} {verb}{back}",
        shown(&args.stage),
        counted(rows, "row"),
        counted(outputs, "output"),
    ))?;
    Ok(0)
}
