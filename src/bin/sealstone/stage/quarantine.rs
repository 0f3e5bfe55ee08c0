//! `sealstone stage quarantine`: what could not be read or converted.

use sealstone::staging::{GroupId, QuarantineId};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

use super::args::{QuarantineAddArgs, QuarantineExportArgs, RetryArgs, StageArgs};
use crate::args::TimeFormat;
use crate::input::NewFile;
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, shown, size, time};

pub fn list(args: &StageArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let found = store.stage(&args.stage)?.quarantine()?;
    if output.is_json {
        let list: Vec<Value> = found
            .iter()
            .map(|one| {
                json!({
                    "id": one.id.0, "group": one.group.0, "key": one.key.to_string(),
                    "rows": one.rows, "batches": one.batches, "reason": one.reason,
                    "at_unix_nanos": one.at,
                })
            })
            .collect();
        output.object(object(json!({ "stage": args.stage, "quarantine": list })))?;
        return Ok(0);
    }
    for one in &found {
        output.line(&format!(
            "{}\t{}\t{}\t{}\t{}",
            one.id,
            shown(&one.key.to_string()),
            counted(one.rows, "row"),
            time(one.at, times),
            shown(&one.reason),
        ))?;
    }
    Ok(0)
}

pub fn add(args: &QuarantineAddArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let stage = store.stage(&args.stage)?;
    let group = GroupId(args.group);
    let mut ids: Vec<u64> = Vec::new();
    let parts = match args.dry_run {
        true => stage.parts()?.iter().filter(|part| part.group == group).count(),
        false => {
            ids.extend(stage.set_aside(group, &args.why)?.iter().map(|one| one.id.0));
            store.close()?;
            ids.len()
        }
    };
    if output.is_json {
        output.object(object(json!({
            "command": "quarantine add", "dry_run": args.dry_run, "stage": args.stage,
            "group": args.group, "ids": ids, "parts": parts,
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be put" } else { "put" };
    let parts = counted(parts as u64, "part");
    output.remark(&format!("{parts} of group {} {verb} into quarantine", args.group))?;
    Ok(0)
}

pub fn retry(args: &RetryArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let stage = store.stage(&args.stage)?;
    let ids: Vec<QuarantineId> = match args.ids.is_empty() {
        // A record that came to no group is only exported.
        true => {
            let aside = stage.quarantine()?.into_iter();
            aside.filter(|one| one.group != GroupId(0)).map(|one| one.id).collect()
        }
        false => args.ids.iter().map(|id| QuarantineId(*id)).collect(),
    };
    let mut groups = Vec::new();
    if !args.dry_run {
        for id in &ids {
            groups.push(stage.retry(*id)?.0);
        }
        store.close()?;
    }
    if output.is_json {
        let ids: Vec<u64> = ids.iter().map(|id| id.0).collect();
        output.object(object(json!({
            "command": "quarantine retry", "dry_run": args.dry_run, "stage": args.stage,
            "ids": ids, "groups": groups,
        })))?;
        return Ok(0);
    }
    let verb =
        if args.dry_run { "would be given back" } else { "given back, to be converted again" };
    output.remark(&format!("{} {verb}", counted(ids.len() as u64, "part")))?;
    Ok(0)
}

pub fn export(args: &QuarantineExportArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let pieces = store.stage(&args.stage)?.export_quarantined(QuarantineId(args.id))?;
    // What the part names by digest lies in files of its own, by that name.
    let named = |(at, digest): (usize, &str)| match at {
        0 => args.output.clone(),
        _ => PathBuf::from(format!("{}.{digest}", args.output.display())),
    };
    let (mut len, mut files) = (0, Vec::new());
    for (at, (digest, bytes)) in pieces.iter().enumerate() {
        let path = named((at, &digest.to_string()));
        if !args.dry_run {
            let mut file = NewFile::create("export", &path)?;
            let failed = |e| sealstone::Error::io("export", path.display(), e);
            file.write_all(bytes).map_err(failed)?;
            file.finish()?;
        }
        len += bytes.len() as u64;
        files.push(path.to_string_lossy().into_owned());
    }
    if output.is_json {
        output.object(object(json!({
            "command": "quarantine export", "dry_run": args.dry_run, "stage": args.stage,
            "id": args.id, "bytes": len, "files": files,
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be written" } else { "written" };
    output.remark(&format!("{} {verb} to {}", size(len), shown(&files.join(", "))))?;
    Ok(0)
}
