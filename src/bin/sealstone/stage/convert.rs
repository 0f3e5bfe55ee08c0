//! `sealstone stage convert STORE STAGE --parquet | --jsonl`.

use std::ops::ControlFlow;

use sealstone::staging::{
    ConvertOptions, ConvertProgress, Converted, Converter, JsonLinesToZstd, Key, PlanOptions, Stage,
};
use sealstone::{Error, Result};
use serde_json::json;

use super::args::ConvertArgs;
use crate::open::open;
use crate::output::{End, Output};
use crate::words::{counted, shown, size};

/// Something was skipped: a group that failed, or bytes that were put into quarantine.
const SKIPPED: u8 = 3;
/// All of them failed.
const FAILED: u8 = 1;

/// What became of the groups together.
#[derive(Default)]
struct Sum {
    groups: u64,
    outputs: u64,
    rows: u64,
    len: u64,
    quarantined: u64,
    rows_left: u64,
    failed: u64,
}

pub fn run(args: &ConvertArgs, output: &mut Output) -> Result<u8, End> {
    let converter = converter(args)?;
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let stage = store.stage(&args.stage)?;
    if args.dry_run {
        return would(&stage, args, output);
    }
    let groups_max = args.groups.unwrap_or(usize::MAX);
    let keys = keys(args, &stage)?;
    let plan =
        stage.plan(&PlanOptions { groups_max, keys: keys.as_deref(), ..PlanOptions::default() })?;
    let bar = output.progress("converting", Some(plan.len() as u64), false);
    let tell = |now: ConvertProgress| {
        bar.set_position(now.groups_done);
        ControlFlow::Continue(())
    };
    let options = ConvertOptions {
        threads_max: args.threads,
        progress: Some(&tell),
        ..ConvertOptions::default()
    };
    let converted = plan.convert(converter.as_ref(), &options)?;
    bar.finish_and_clear();
    let mut sum = Sum::default();
    for group in &converted {
        one(group, &mut sum, output)?;
    }
    store.close()?;
    told(&sum, args, output)?;
    Ok(match sum.failed + sum.quarantined {
        0 => 0,
        // Nothing was done.
        _ if sum.failed == sum.groups => FAILED,
        _ => SKIPPED,
    })
}

/// What writes the outputs.
fn converter(args: &ConvertArgs) -> Result<Box<dyn Converter>> {
    if args.jsonl {
        return Ok(Box::new(JsonLinesToZstd::new()));
    }
    #[cfg(feature = "parquet")]
    let converter = Ok(Box::new(sealstone::staging::ToParquet::new()) as Box<dyn Converter>);
    #[cfg(not(feature = "parquet"))]
    let converter = {
        let cause = "this build has no Parquet: install it with --features cli,parquet";
        Err(Error::new(sealstone::ErrorKind::Unsupported, "convert", &args.stage, cause))
    };
    converter
}

/// The keys that were asked for; `None` for all.
fn keys(args: &ConvertArgs, stage: &Stage) -> Result<Option<Vec<Key>>> {
    if args.keys.is_empty() {
        return Ok(None);
    }
    args.keys.iter().map(|key| stage.key_shape().parse(key)).collect::<Result<_>>().map(Some)
}

fn would(stage: &Stage, args: &ConvertArgs, output: &mut Output) -> Result<u8, End> {
    let (groups, keys) = (stage.groups()?, keys(args, stage)?);
    let is_wanted = |key: &Key| keys.as_ref().is_none_or(|keys| keys.contains(key));
    let detached = groups.iter().filter(|group| group.is_detached && is_wanted(&group.key));
    for group in detached.take(args.groups.unwrap_or(usize::MAX)) {
        let (id, key) = (group.id.map(|id| id.0), group.key.to_string());
        if output.is_json {
            let fields = json!({ "group": id, "key": key, "rows": group.rows, "dry_run": true });
            output.message("status", fields)?;
        } else {
            output.line(&format!("{}\t{}", shown(&key), counted(group.rows, "row")))?;
        }
    }
    Ok(0)
}

/// Tells what became of a group.
fn one(group: &Converted, sum: &mut Sum, output: &mut Output) -> Result<(), End> {
    let (id, key) = (group.group.id.map(|id| id.0), group.group.key.to_string());
    sum.groups += 1;
    let made = match &group.made {
        Ok(made) => made,
        Err(error) => {
            sum.failed += 1;
            return failed(error, id, &key, output);
        }
    };
    sum.outputs += made.outputs.len() as u64;
    sum.rows += made.rows;
    sum.len += made.len;
    sum.quarantined += made.quarantined.len() as u64;
    sum.rows_left += made.rows_left;
    if output.is_json {
        let outputs: Vec<u64> = made.outputs.iter().map(|id| id.0).collect();
        let aside = made.quarantined.len();
        let fields = json!({
            "group": id, "key": key, "outputs": outputs, "rows": made.rows, "bytes": made.len,
            "quarantined": aside, "rows_left": made.rows_left,
        });
        return output.message("status", fields);
    }
    if !made.quarantined.is_empty() {
        let aside = counted(made.quarantined.len() as u64, "part");
        let what = "did not read, or could not be converted";
        output.warn(&format!("{key}: {aside} {what}: see `stage quarantine ls`"));
    }
    if made.rows_left > 0 {
        let rows = counted(made.rows_left, "row");
        output.warn(&format!("{key}: {rows} stay, to be converted by another run"));
    }
    Ok(())
}

fn failed(error: &Error, id: Option<u64>, key: &str, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        let fields = json!({
            "group": id, "key": key, "kind": error.kind().name(), "cause": error.chain(),
        });
        return output.message("finding", fields);
    }
    let way_out = match id {
        Some(id) => format!("; `stage quarantine add` takes group {id} out of the way"),
        None => String::new(),
    };
    output.warn(&format!("{key} stays as it was: {}{way_out}", error.chain()));
    Ok(())
}

fn told(sum: &Sum, args: &ConvertArgs, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        let fields = json!({
            "command": "convert", "stage": args.stage, "groups": sum.groups, "outputs": sum.outputs,
            "rows": sum.rows, "bytes": sum.len, "failed": sum.failed, "quarantined": sum.quarantined,
            "rows_left": sum.rows_left,
        });
        return output.message("summary", fields);
    }
    let failed = match sum.failed {
        0 => String::new(),
        failed => format!("; {} failed", counted(failed, "group")),
    };
    output.remark(&format!(
        "{} of {} into {}, {}{failed}",
        counted(sum.rows, "row"),
        counted(sum.groups - sum.failed, "group"),
        counted(sum.outputs, "output"),
        size(sum.len),
    ))
}
