//! `sealstone retire STORE --name .. --snapshot .. --preparation ..`: all of it in one transaction.

use sealstone::objects::{Gone, Objects, Retirement};
use serde_json::{Map, Value, json};

use super::args::ThingsArgs;
use super::gc::{phases_json, phases_text};
use crate::args::RetireArgs;
use crate::failure::LOST;
use crate::open::{object, open};
use crate::output::{End, Output};
use crate::words::{counted, shown, size};

impl ThingsArgs {
    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.snapshots.is_empty() && self.preparations.is_empty()
    }

    fn things(&self) -> Vec<Gone> {
        let names = self.names.iter().cloned().map(Gone::Name);
        let snapshots = self.snapshots.iter().cloned().map(Gone::Snapshot);
        names
            .chain(snapshots)
            .chain(self.preparations.iter().cloned().map(Gone::Preparation))
            .collect()
    }
}

pub fn run(args: &RetireArgs, output: &mut Output) -> Result<u8, End> {
    let things = args.things.things();
    let store = open(output, &args.store, args.shared, args.dry_run)?;
    let objects = store.objects();
    let done = match (args.dry_run, args.things.rows_max) {
        (true, _) => would(&objects, &things)?,
        (false, None) => objects.retire(&things, "retired by hand")?,
        (false, Some(rows_max)) => objects.retire_bounded(&things, rows_max, "retired by hand")?,
    };
    drop(objects);
    store.close()?;
    tell(args, &done, output)?;
    Ok(if done.unknown.is_empty() { 0 } else { LOST })
}

/// What is there of it now.
fn would(objects: &Objects, things: &[Gone]) -> Result<Retirement, End> {
    let mut done = Retirement::default();
    let snapshots = objects.snapshots()?;
    let preparations = objects.preparations()?;
    for thing in things {
        let is_there = match thing {
            Gone::Name(name) => objects.name(name)?.is_some(),
            Gone::Snapshot(name) => snapshots.iter().any(|one| one.name == *name),
            Gone::Preparation(name) => preparations.iter().any(|one| one.name == *name),
            _ => false,
        };
        match is_there {
            true => done.things += 1,
            false => done.unknown.push(thing.clone()),
        }
    }
    Ok(done)
}

/// What a thing is called.
fn spelled(thing: &Gone) -> String {
    match thing {
        Gone::Name(name) => format!("name {name}"),
        Gone::Snapshot(name) => format!("snapshot {name}"),
        Gone::Preparation(name) => format!("preparation {name}"),
        _ => "another thing".to_owned(),
    }
}

fn tell(args: &RetireArgs, done: &Retirement, output: &mut Output) -> Result<(), End> {
    let unknown: Vec<String> = done.unknown.iter().map(spelled).collect();
    for one in &unknown {
        output.warn(&format!("{} is not there", shown(one)));
    }
    if output.is_json {
        let mut fields: Map<String, Value> = object(json!({
            "command": "retire", "dry_run": args.dry_run, "things": done.things,
            "unknown": unknown,
        }));
        if !args.dry_run {
            fields.extend(object(json!({
                "objects": done.objects, "bytes": done.bytes, "transactions": done.transactions,
                "is_more_left": done.is_more_left, "phases_nanos": phases_json(&done.phases),
            })));
        }
        return output.object(fields);
    }
    let things = counted(done.things, "thing");
    if args.dry_run {
        return output.remark(&format!("{things} would be retired"));
    }
    let more = if done.is_more_left { "; gc takes the rest apart" } else { "" };
    output.remark(&format!(
        "{things} retired in {}, with {}; gc gives back {}{more}",
        counted(done.transactions, "transaction"),
        counted(done.objects, "object"),
        size(done.bytes),
    ))?;
    if output.is_verbose {
        output.remark(&phases_text(&done.phases))?;
    }
    Ok(())
}
