//! `sealstone retire STORE [RECORDING..]`: recordings go, by name or by rules, after a plan. What goes of
//! objects is retired by the room of that name.

use std::time::Duration;

use sealstone::Store;
use sealstone::recording::{Applied, RetentionPlan};
use serde_json::{Map, Value, json};

use super::args::RetireArgs;
use super::objects;
use super::open::open as open_for;
use super::output::{End, Output};
use super::words::{counted, shown, size};

/// Done, but something was skipped.
const SKIPPED: u8 = 3;

pub fn run(args: &RetireArgs, output: &mut Output) -> Result<u8, End> {
    if !args.things.is_empty() {
        return objects::retire(args, output);
    }
    if !args.recordings.is_empty() {
        return by_name(args, output);
    }
    let plan = plan(args, &open(args, output)?)?;
    let (now, stay) = (plan.now(), plan.stay().to_vec());
    let planned: Vec<_> = plan.retire().cloned().collect();
    let applied = match args.dry_run {
        true => Applied::default(),
        false => plan.apply()?,
    };
    let code = if applied.changed.is_empty() { 0 } else { SKIPPED };
    if output.is_json {
        let planned = planned
            .iter()
            .map(|one| json!({ "name": one.name, "why": one.why, "bytes": one.bytes }))
            .collect();
        let pairs = |of: &[sealstone::recording::Stays]| -> Value {
            of.iter().map(|one| json!({ "name": one.name, "why": one.why })).collect()
        };
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("command", json!("retire"));
        put("dry_run", json!(args.dry_run));
        put("now_unix_nanos", json!(now));
        put("planned", Value::Array(planned));
        put("stay", pairs(&stay));
        put("retired", json!(applied.retired));
        put("changed", pairs(&applied.changed));
        put("bytes", json!(applied.bytes));
        output.object(object)?;
        return Ok(code);
    }
    for one in &planned {
        output.line(&format!("{}\t{}\t{}", shown(&one.name), size(one.bytes), one.why))?;
    }
    for one in stay.iter().chain(&applied.changed) {
        output.warn(&format!("{} stays: {}", one.name, one.why));
    }
    let (count, verb) = match args.dry_run {
        true => (planned.len(), "would be retired"),
        false => (applied.retired.len(), "retired"),
    };
    let count = counted(count as u64, "recording");
    output.remark(&format!("{count} {verb}; gc gives back {}", size(applied.bytes)))?;
    Ok(code)
}

fn open(args: &RetireArgs, output: &Output) -> Result<Store, End> {
    Ok(open_for(output, &args.store, args.shared, args.dry_run)?)
}

fn plan(args: &RetireArgs, store: &Store) -> Result<RetentionPlan, End> {
    let mut rules = store.retention();
    if let Some(n) = args.keep_newest {
        rules = rules.keep_newest(n);
    }
    if let Some(seconds) = args.older_than {
        rules = rules.older_than(Duration::from_secs(seconds));
    }
    if let Some(bytes) = args.bytes_above {
        rules = rules.bytes_above(bytes);
    }
    Ok(rules.plan()?)
}

fn by_name(args: &RetireArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(args, output)?;
    let mut bytes = 0u64;
    for name in &args.recordings {
        store.recording(name)?;
        if !args.dry_run {
            let retired = store.retire_recording(name, "retired by hand")?;
            bytes = bytes.saturating_add(retired.bytes);
        }
    }
    if output.is_json {
        let mut object = Map::new();
        object.insert("command".to_owned(), json!("retire"));
        object.insert("dry_run".to_owned(), json!(args.dry_run));
        object.insert("retired".to_owned(), json!(args.recordings));
        object.insert("bytes".to_owned(), json!(bytes));
        output.object(object)?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be retired" } else { "retired" };
    let count = counted(args.recordings.len() as u64, "recording");
    output.remark(&format!("{count} {verb}; gc gives back {}", size(bytes)))?;
    Ok(0)
}
