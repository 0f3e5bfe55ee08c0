//! `sealstone pack STORE FILE`, `sealstone unpack FILE STORE`.

use std::ops::ControlFlow;

use sealstone::engine::{Packed, Packing};
use serde_json::{Map, Value, json};

use super::args::PackArgs;
use super::output::{End, Output};
use super::words::{counted, size};

pub fn run(args: &PackArgs, is_pack: bool, output: &mut Output) -> Result<u8, End> {
    let verb = if is_pack { "pack" } else { "unpack" };
    let opening = output.opening();
    if args.dry_run {
        let would = opening.pack_estimate(&args.from)?;
        return tell(args, verb, &would, output).map(|()| 0);
    }
    let bar = output.progress(verb, Some(0), true);
    let mut on = |at: Packing| {
        // Each byte is read twice: for the copy, and to verify it.
        let before = if at.part == "copy" { 0 } else { at.total };
        bar.set_length(at.total.saturating_mul(2));
        bar.set_position(before.saturating_add(at.done));
        ControlFlow::Continue(())
    };
    let done = match is_pack {
        true => opening.pack(&args.from, &args.to, &mut on),
        false => opening.unpack(&args.from, &args.to, &mut on),
    };
    bar.finish_and_clear();
    tell(args, verb, &done?, output).map(|()| 0)
}

fn tell(args: &PackArgs, verb: &str, done: &Packed, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("command", json!(verb));
        put("dry_run", json!(args.dry_run));
        put("commit", json!(done.commit.0));
        put("files", json!(done.files));
        put("bytes", json!(done.bytes));
        put("objects", json!(done.objects));
        put("was_there", json!(done.was_there));
        return output.object(object);
    }
    let is = match (args.dry_run, done.was_there) {
        (true, _) => "would be",
        (false, true) => "was there already, and is verified:",
        (false, false) => "is",
    };
    output.remark(&format!(
        "{} {is} {} at commit {}: {}, {} in {}",
        args.to.display(),
        args.from.display(),
        done.commit,
        counted(done.objects, "object"),
        size(done.bytes),
        counted(done.files, "file"),
    ))
}
