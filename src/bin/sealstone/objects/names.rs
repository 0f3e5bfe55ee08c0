//! `sealstone names STORE [NS [PREFIX]]`, `sealstone names rm STORE NS/NAME DIGEST`.

use sealstone::objects::{NameView, Objects};
use sealstone::{Error, ErrorKind};
use serde_json::{Value, json};

use super::args::{NamesArgs, NamesRmArgs};
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{shown, size};

/// Names that are read at once.
const PAGE: usize = 1000;

pub fn list(args: &NamesArgs, output: &mut Output) -> Result<u8, End> {
    let path = args.store.as_ref().ok_or_else(|| Error::invalid("names", "STORE", "give it"))?;
    let objects = output.opening().open_read_only(path)?.objects();
    let count = match &args.namespace {
        Some(namespace) => names(&objects, namespace, &args.prefix, output)?,
        None => namespaces(&objects, output)?,
    };
    if output.is_json {
        let fields = json!({ "command": "names", "namespace": args.namespace, "count": count });
        output.message("summary", fields)?;
    }
    Ok(0)
}

fn namespaces(objects: &Objects, output: &mut Output) -> Result<u64, End> {
    let (mut count, mut after) = (0, None::<String>);
    loop {
        let page = objects.namespaces("", after.as_deref(), PAGE)?;
        for namespace in &page {
            match output.is_json {
                true => output.message("namespace", json!({ "namespace": namespace }))?,
                false => output.line(&shown(namespace))?,
            }
        }
        count += page.len() as u64;
        let is_full = page.len() == PAGE;
        match page.into_iter().next_back() {
            Some(last) if is_full => after = Some(last),
            _ => return Ok(count),
        }
    }
}

fn names(
    objects: &Objects,
    namespace: &str,
    prefix: &str,
    output: &mut Output,
) -> Result<u64, End> {
    let (mut count, mut after) = (0, None::<String>);
    loop {
        let page = objects.names(namespace, prefix, after.as_deref(), PAGE)?;
        for view in &page {
            match output.is_json {
                true => output.message("name", fields(view))?,
                false => output.line(&line(view))?,
            }
        }
        count += page.len() as u64;
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some(last.name.name().to_owned()),
            _ => return Ok(count),
        }
    }
}

/// A name, for programs.
pub fn fields(view: &NameView) -> Value {
    json!({
        "name": view.name.to_string(), "digest": view.digest.to_string(), "bytes": view.len,
        "generation": view.generation.0, "commit": view.commit.0,
    })
}

fn line(view: &NameView) -> String {
    let name = view.name.to_string();
    format!("{}\t{}\t{}\tgeneration {}", shown(&name), view.digest, size(view.len), view.generation)
}

pub fn remove(args: &NamesRmArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let objects = store.objects();
    let stands = objects.name(&args.name)?.map(|view| view.digest);
    let is_released = match args.dry_run {
        true => stands == Some(args.digest),
        false => objects.release(&args.name, &args.digest)?,
    };
    if !is_released {
        let cause = match objects.name(&args.name)?.map(|view| view.digest) {
            Some(other) => format!("it stands for {other}; nothing was changed"),
            None => "nothing stands there; nothing was changed".to_owned(),
        };
        return Err(Error::new(ErrorKind::Conflict, "names rm", &args.name, cause).into());
    }
    drop(objects);
    store.close()?;
    if output.is_json {
        output.object(object(json!({
            "command": "names rm", "dry_run": args.dry_run, "name": args.name.to_string(),
            "digest": args.digest.to_string(),
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be let go of" } else { "let go of" };
    output.remark(&format!("{} {verb}", shown(&args.name.to_string())))?;
    Ok(0)
}
