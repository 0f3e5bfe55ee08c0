//! `sealstone lease ls|abandon|publish STORE`: preparations.

use sealstone::objects::{Objects, Preparation, PreparationView};
use sealstone::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::args::{AbandonArgs, PublishArgs};
use super::names::fields;
use crate::args::{StoreArgs, TimeFormat};
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, gc_gives_back, shown, size, time};

pub fn list(
    args: &StoreArgs,
    times: TimeFormat,
    output: &mut Output,
) -> std::result::Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let found = store.objects().preparations()?;
    if output.is_json {
        let list: Vec<Value> = found.iter().map(view_json).collect();
        output.object(object(json!({ "preparations": list })))?;
        return Ok(0);
    }
    for one in &found {
        let open_by = match &one.open_by {
            Some(who) => format!("\topen by {}", shown(who)),
            None => String::new(),
        };
        let pieces = match one.pieces {
            0 => String::new(),
            pieces => format!(", {} of what is not whole yet", counted(pieces, "piece")),
        };
        output.line(&format!(
            "{}\t{}\t{} of {}{pieces}\t{}{open_by}",
            shown(&one.name),
            shown(&one.purpose),
            counted(one.objects, "object"),
            size(one.bytes),
            time(one.created, times),
        ))?;
    }
    Ok(0)
}

fn view_json(one: &PreparationView) -> Value {
    json!({
        "name": one.name, "lease": one.lease.0, "purpose": one.purpose, "objects": one.objects,
        "bytes": one.bytes, "pieces": one.pieces, "open_by": one.open_by,
        "created_unix_nanos": one.created, "deadline_unix_nanos": one.deadline,
    })
}

/// The preparation of this name, as listed.
fn view(objects: &Objects, name: &str) -> Result<PreparationView> {
    let found = objects.preparations()?.into_iter().find(|one| one.name == name);
    found.ok_or_else(|| {
        let place = format!("preparation {name:?}");
        Error::new(ErrorKind::NotFound, "lease", place, "there is no preparation of this name")
    })
}

/// Gives `prep` up where it keeps nothing; whether it did.
pub fn end_if_empty(objects: &Objects, prep: Preparation, why: &str) -> Result<bool> {
    let view = view(objects, prep.name())?;
    let is_empty = view.objects == 0 && view.pieces == 0;
    if is_empty {
        prep.abandon(why)?;
    }
    Ok(is_empty)
}

pub fn abandon(args: &AbandonArgs, output: &mut Output) -> std::result::Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let objects = store.objects();
    let before = view(&objects, &args.preparation)?;
    let retired = match args.dry_run {
        true => None,
        false => Some(objects.abandon(&args.preparation, "abandoned by hand")?),
    };
    drop(objects);
    store.close()?;
    let bytes = retired.as_ref().map(|retired| retired.bytes);
    if output.is_json {
        output.object(object(json!({
            "command": "lease abandon", "dry_run": args.dry_run, "preparation": args.preparation,
            "kept": before.objects, "objects": retired.as_ref().map(|retired| retired.objects),
            "bytes": bytes,
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be abandoned" } else { "abandoned" };
    let back = gc_gives_back(bytes);
    output.remark(&format!(
        "preparation {} with {} {verb}{back}",
        shown(&args.preparation),
        counted(before.objects, "object"),
    ))?;
    Ok(0)
}

pub fn publish(args: &PublishArgs, output: &mut Output) -> std::result::Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let objects = store.objects();
    view(&objects, &args.preparation)?;
    if args.dry_run {
        return would(args, &objects, output);
    }
    let prep = objects.prepare(&args.preparation)?;
    let published = prep.publish(&args.changes())?;
    let is_gone = end_if_empty(&objects, prep, "published")?;
    drop(objects);
    store.close()?;
    if output.is_json {
        let names: Vec<Value> = published.names.iter().map(fields).collect();
        output.object(object(json!({
            "command": "lease publish", "dry_run": false, "preparation": args.preparation,
            "names": names, "commit": published.commit.0, "replaced": published.replaced,
            "bytes_retired": published.bytes, "is_preparation_gone": is_gone,
        })))?;
        return Ok(0);
    }
    output.remark(&format!(
        "{} published, of which {} stood for something else; preparation {} {}",
        counted(published.names.len() as u64, "name"),
        published.replaced,
        shown(&args.preparation),
        if is_gone { "keeps nothing more, and is gone" } else { "keeps the rest" },
    ))?;
    Ok(0)
}

/// What stands under the names now.
fn would(
    args: &PublishArgs,
    objects: &Objects,
    output: &mut Output,
) -> std::result::Result<u8, End> {
    let mut list = Vec::new();
    for (name, digest) in &args.names {
        let stands = objects.name(name)?;
        let now = stands.as_ref().map_or("nothing".to_owned(), |view| view.digest.to_string());
        match output.is_json {
            true => list.push(json!({
                "name": name.to_string(), "digest": digest.to_string(),
                "stands": stands.as_ref().map(fields),
            })),
            false => output.line(&format!(
                "{}\twould stand for {digest}\tstands for {now}",
                shown(&name.to_string())
            ))?,
        }
    }
    if output.is_json {
        output.object(object(json!({
            "command": "lease publish", "dry_run": true, "preparation": args.preparation,
            "names": list,
        })))?;
    }
    Ok(0)
}
