//! `sealstone snapshot create|ls|cat|rm STORE`: what names stood for, kept.

use sealstone::objects::{
    Gone, Name, NameView, ObjectSnapshotState, Objects, SnapshotDraft, SnapshotInfo,
};
use sealstone::{Error, ErrorKind};
use serde_json::{Value, json};

use super::args::{SnapshotArgs, SnapshotCreateArgs, SnapshotRmArgs};
use crate::args::{StoreArgs, TimeFormat};
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, gc_gives_back, shown, size, time};

/// Names that are read at once.
const PAGE: usize = 1000;

/// What a snapshot is to keep.
struct Wanted {
    names: Vec<Name>,
    namespaces: Vec<String>,
}

pub fn create(args: &SnapshotCreateArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let objects = store.objects();
    let wanted = wanted(args, &objects)?;
    if args.dry_run {
        return would(args, &wanted, &objects, output);
    }
    // What cannot be added is told before anything is opened.
    for name in &wanted.names {
        standing(&objects, name)?;
    }
    let went_on = objects.snapshots()?.iter().any(|one| one.name == args.snapshot);
    let draft = objects.snapshot(&args.snapshot)?;
    let done = match add(&draft, &wanted) {
        Ok(()) => draft.commit()?,
        Err(e) => {
            // What this call opened goes with it; what stood before stands.
            if !went_on && draft.commit().is_ok() {
                let _ = objects.retire_snapshot(&args.snapshot, "not all of it could be added");
            }
            return Err(e.into());
        }
    };
    drop(objects);
    store.close()?;
    if output.is_json {
        let mut fields = fields(&done);
        if let Value::Object(fields) = &mut fields {
            fields.insert("command".to_owned(), json!("snapshot create"));
            fields.insert("dry_run".to_owned(), json!(false));
        }
        output.object(object(fields))?;
        return Ok(0);
    }
    output.remark(&format!(
        "snapshot {} keeps {} with {}",
        shown(&done.name),
        counted(done.names, "name"),
        size(done.bytes),
    ))?;
    Ok(0)
}

fn add(draft: &SnapshotDraft, wanted: &Wanted) -> sealstone::Result<()> {
    draft.add_all(&wanted.names)?;
    wanted.namespaces.iter().try_for_each(|namespace| draft.add_namespace(namespace).map(drop))
}

fn standing(objects: &Objects, name: &Name) -> sealstone::Result<NameView> {
    objects
        .name(name)?
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "snapshot", name, "nothing stands there"))
}

fn wanted(args: &SnapshotCreateArgs, objects: &Objects) -> Result<Wanted, End> {
    let mut wanted = Wanted { names: Vec::new(), namespaces: Vec::new() };
    for what in &args.what {
        match what.contains('/') {
            true => wanted.names.push(what.parse()?),
            false => wanted.namespaces.push(what.clone()),
        }
    }
    while args.what.is_empty() {
        let page = objects.namespaces("", wanted.namespaces.last().map(String::as_str), PAGE)?;
        let is_last = page.len() < PAGE;
        wanted.namespaces.extend(page);
        if is_last {
            break;
        }
    }
    Ok(wanted)
}

fn would(
    args: &SnapshotCreateArgs,
    wanted: &Wanted,
    objects: &Objects,
    output: &mut Output,
) -> Result<u8, End> {
    let (mut names, mut bytes) = (0u64, 0u64);
    for name in &wanted.names {
        let view = standing(objects, name)?;
        (names, bytes) = (names + 1, bytes.saturating_add(view.len));
    }
    for namespace in &wanted.namespaces {
        let mut after = None::<String>;
        loop {
            let page = objects.names(namespace, "", after.as_deref(), PAGE)?;
            for view in &page {
                (names, bytes) = (names + 1, bytes.saturating_add(view.len));
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.name.name().to_owned()),
                _ => break,
            }
        }
    }
    if output.is_json {
        output.object(object(json!({
            "command": "snapshot create", "dry_run": true, "name": args.snapshot, "names": names,
            "bytes": bytes,
        })))?;
        return Ok(0);
    }
    let names = counted(names, "name");
    output.remark(&format!(
        "snapshot {} would keep {names} with {}",
        shown(&args.snapshot),
        size(bytes)
    ))?;
    Ok(0)
}

fn state_name(one: &SnapshotInfo) -> String {
    format!("{:?}", one.state).to_lowercase()
}

fn fields(one: &SnapshotInfo) -> Value {
    json!({
        "name": one.name, "state": state_name(one), "names": one.names, "bytes": one.bytes,
        "commit": one.committed.map(|commit| commit.0), "created_unix_nanos": one.created,
    })
}

pub fn list(args: &StoreArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let found = output.opening().open_read_only(&args.store)?.objects().snapshots()?;
    if output.is_json {
        let list: Vec<Value> = found.iter().map(fields).collect();
        output.object(object(json!({ "snapshots": list })))?;
        return Ok(0);
    }
    for one in &found {
        output.line(&format!(
            "{}\t{}\t{} with {}\t{}",
            shown(&one.name),
            state_name(one),
            counted(one.names, "name"),
            size(one.bytes),
            time(one.created, times),
        ))?;
    }
    Ok(0)
}

pub fn cat(args: &SnapshotArgs, output: &mut Output) -> Result<u8, End> {
    let view =
        output.opening().open_read_only(&args.store)?.objects().read_snapshot(&args.snapshot)?;
    let (mut after, mut count) = (None::<Name>, 0u64);
    loop {
        let page = view.all(after.as_ref(), PAGE)?;
        for one in &page {
            let name = one.name.to_string();
            match output.is_json {
                true => output.message(
                    "name",
                    json!({ "name": name, "digest": one.digest.to_string(), "bytes": one.len }),
                )?,
                false => {
                    output.line(&format!("{}\t{}\t{}", shown(&name), one.digest, size(one.len)))?;
                }
            }
        }
        count += page.len() as u64;
        let is_full = page.len() == PAGE;
        match page.into_iter().next_back() {
            Some(last) if is_full => after = Some(last.name),
            _ => break,
        }
    }
    if output.is_json {
        let fields = json!({ "command": "snapshot cat", "name": args.snapshot, "count": count });
        output.message("summary", fields)?;
    }
    Ok(0)
}

pub fn remove(args: &SnapshotRmArgs, output: &mut Output) -> Result<u8, End> {
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let objects = store.objects();
    let found = objects.snapshots()?.into_iter().find(|one| one.name == args.snapshot);
    let found = found.ok_or_else(|| {
        let place = format!("snapshot {:?}", args.snapshot);
        Error::new(ErrorKind::NotFound, "snapshot rm", place, "there is no such snapshot")
    })?;
    let is_open = found.state == ObjectSnapshotState::Open;
    if is_open && !args.open {
        let place = format!("snapshot {:?}", args.snapshot);
        let cause = "it is open: complete it with 'snapshot create', or give it up with --open";
        return Err(Error::new(ErrorKind::Conflict, "snapshot rm", place, cause).into());
    }
    let gone = [Gone::Snapshot(args.snapshot.clone())];
    if is_open && !args.dry_run {
        // Only its own process, or nobody, has it: then it is committed, and goes.
        objects.snapshot(&args.snapshot)?.commit()?;
    }
    let retired = match args.dry_run {
        true => None,
        false => Some(objects.retire(&gone, "retired by hand")?),
    };
    drop(objects);
    store.close()?;
    let bytes = retired.as_ref().map(|retired| retired.bytes);
    if output.is_json {
        output.object(object(json!({
            "command": "snapshot rm", "dry_run": args.dry_run, "name": args.snapshot,
            "names": found.names, "objects": retired.as_ref().map(|retired| retired.objects),
            "bytes": bytes,
        })))?;
        return Ok(0);
    }
    let verb = if args.dry_run { "would be retired" } else { "retired" };
    let back = gc_gives_back(bytes);
    let names = counted(found.names, "name");
    output.remark(&format!("snapshot {} with {names} {verb}{back}", shown(&args.snapshot)))?;
    Ok(0)
}
