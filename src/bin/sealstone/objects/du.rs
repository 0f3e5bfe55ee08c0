//! `sealstone du STORE`: what takes the bytes.

use serde_json::{Value, json};

use crate::args::StoreArgs;
use crate::open::object;
use crate::output::{End, Output};
use crate::words::{counted, shown, size};

pub fn run(args: &StoreArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let usage = store.du()?;
    let accounts = usage.accounts;
    if output.is_json {
        let namespaces: Vec<Value> = usage
            .namespaces
            .iter()
            .map(
                |one| json!({ "namespace": one.namespace, "names": one.names, "bytes": one.bytes }),
            )
            .collect();
        output.object(object(json!({
            "command": "du",
            "bytes": {
                "on_disk": accounts.on_disk, "live": accounts.live, "dead": accounts.dead,
                "condemned": accounts.condemned, "open": accounts.open, "orphan": accounts.orphan,
                "shared": usage.shared, "inline": usage.inline,
            },
            "retiring": usage.retiring, "namespaces": namespaces,
        })))?;
        return Ok(0);
    }
    for (what, bytes, means) in [
        ("on disk", accounts.on_disk, "the sum of the next five"),
        ("  live", accounts.live, "rows refer to it"),
        ("  dead", accounts.dead, "retired, in files that hold live bytes too: gc rewrites them"),
        ("  condemned", accounts.condemned, "retired, in files of their own: gc unlinks them"),
        ("  orphan", accounts.orphan, "no row names it: gc removes it"),
        ("  open", accounts.open, "the manifest, journals, ballast, and what is being written"),
        ("shared", usage.shared, "of live: more than one thing refers to it, stored once"),
        ("inline", usage.inline, "of open: small objects, in the manifest"),
    ] {
        output.line(&format!("{what}\t{}\t{means}", size(bytes)))?;
    }
    if usage.retiring > 0 {
        let recipes = counted(usage.retiring, "retired recipe");
        output.line(&format!("{recipes} not taken apart yet: gc goes on"))?;
    }
    for one in &usage.namespaces {
        let (namespace, names) = (shown(&one.namespace), counted(one.names, "name"));
        output.line(&format!(
            "namespace {namespace}\t{names}\t{} as if nothing were shared",
            size(one.bytes)
        ))?;
    }
    Ok(0)
}
