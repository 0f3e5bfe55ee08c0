//! `sealstone stage flush STORE STAGE`.

use sealstone::staging::{GroupView, KeyPart, KeyType, Ready, Stage};
use sealstone::{Error, Result};
use serde_json::json;

use super::args::FlushArgs;
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, shown};

pub fn run(args: &FlushArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let stage = store.stage(&args.stage)?;
    let part = match args.before {
        Some(_) => Some(part_of(args, &stage)?),
        None => None,
    };
    let none = |_: &GroupView| false;
    let ready = match (args.before, &part) {
        (Some(minute), Some(part)) => Ready::Before(part, minute),
        _ if args.all => Ready::All,
        _ => Ready::rule(&none),
    };
    if args.dry_run {
        let groups = stage.groups()?;
        let would: Vec<_> = groups.iter().filter(|group| is_ready(args, &part, group)).collect();
        if output.is_json {
            let ids: Vec<_> = would.iter().map(|group| group.id.map(|id| id.0)).collect();
            output
                .object(object(json!({ "command": "flush", "dry_run": true, "detached": ids })))?;
            return Ok(0);
        }
        for group in &would {
            let key = group.key.to_string();
            output.line(&format!("{}\t{}", shown(&key), counted(group.rows, "row")))?;
        }
        let count = counted(would.len() as u64, "group");
        output.remark(&format!("{count} would be detached"))?;
        return Ok(0);
    }
    let flushed = stage.flush(&ready)?;
    store.close()?;
    if output.is_json {
        let ids: Vec<u64> = flushed.detached.iter().map(|id| id.0).collect();
        output.object(object(json!({
            "command": "flush", "dry_run": false, "stage": args.stage, "rows": flushed.rows,
            "batches": flushed.batches, "parts": flushed.parts, "detached": ids,
        })))?;
        return Ok(0);
    }
    let hint = match flushed.detached.is_empty() && args.before.is_none() && !args.all {
        true => "; --all or --before MINUTE detaches",
        false => "",
    };
    output.remark(&format!(
        "sealed {} of {} into {}; {} detached{hint}",
        counted(flushed.rows, "row"),
        counted(flushed.batches, "batch").replace("batchs", "batches"),
        counted(flushed.parts, "part"),
        counted(flushed.detached.len() as u64, "group"),
    ))?;
    Ok(0)
}

/// The part of the key that `--before` is about.
fn part_of(args: &FlushArgs, stage: &Stage) -> Result<String> {
    if let Some(part) = &args.part {
        return Ok(part.clone());
    }
    let fields = stage.key_shape().fields();
    let mut minutes = fields.iter().filter(|(_, ty)| *ty == KeyType::Minute);
    match (minutes.next(), minutes.next()) {
        (Some((name, _)), None) => Ok(name.clone()),
        (None, _) => Err(Error::invalid("flush", &args.stage, "its keys have no minute")),
        _ => Err(Error::invalid("flush", &args.stage, "its keys have several; give --part NAME")),
    }
}

fn is_ready(args: &FlushArgs, part: &Option<String>, group: &GroupView) -> bool {
    let its = part.as_ref().and_then(|part| group.key.part(part));
    let is_before = |minute| matches!(its, Some(KeyPart::Minute(its)) if *its < minute);
    !group.is_detached && (args.all || args.before.is_some_and(is_before))
}
