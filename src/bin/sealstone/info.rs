//! `sealstone info STORE`.

use sealstone::Layout;
use sealstone::engine::{Info, SnapshotAge};
use sealstone::vfs::DirectIo;
use serde_json::{Map, Value, json};

use super::args::{StoreArgs, TimeFormat};
use super::output::{End, Output};
use super::words::{count, counted, size, time};

pub fn run(args: &StoreArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let info = store.info()?;
    let accounts = store.accounts()?;
    let direct = match &info.direct_io {
        DirectIo::Direct => "direct".to_owned(),
        DirectIo::Buffered(why) => format!("buffered: {why}"),
    };
    let checked = info.check_integrity.applies(info.manifest_bytes);
    let check =
        format!("{} ({:?} bytes)", if checked { "yes" } else { "no" }, info.check_integrity);
    let rows: Vec<(&str, u64)> = info.rows.iter().map(|(table, n)| (table.name(), *n)).collect();
    if output.is_json {
        let tables: Map<String, Value> =
            rows.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect();
        let object = json!({
            "store": info.store.to_string(), "path": args.store.to_string_lossy(),
            "format": info.format, "layout": info.layout.name(), "access": info.access,
            "created_unix_nanos": info.created, "openings": info.epoch.0,
            "commit": info.commit.0, "witness": info.witness.map(|commit| commit.0),
            "sealed_folders": info.sealed_folders, "direct_io": direct, "check_integrity": check,
            "snapshot": info.snapshot.map(|age| snapshot_json(&age)),
            "is_recovered_copy": info.is_recovered_copy, "rows": tables,
            "bytes": {
                "on_disk": accounts.on_disk, "live": accounts.live, "dead": accounts.dead,
                "condemned": accounts.condemned, "open": accounts.open,
                "orphan": accounts.orphan, "manifest": info.manifest_bytes,
            },
        });
        return match object {
            Value::Object(object) => output.object(object).map(|()| 0),
            _ => Ok(0),
        };
    }
    let (witness, barrier) = gives(&info);
    let mut facts = vec![
        ("store", info.store.to_string()),
        (
            "format",
            format!("{}, {} layout, {} access", info.format, info.layout.name(), info.access),
        ),
        ("created", time(info.created, times)),
        ("openings for writing", count(info.epoch.0)),
        ("newest commit", count(info.commit.0)),
        ("witness (HEAD)", witness),
        ("a barrier is", barrier.to_owned()),
        ("newest snapshot of the rows", snapshot_age(info.snapshot.as_ref(), times)),
        ("sealed files are written", direct),
        ("manifest checked at opening", check),
        ("manifest", size(info.manifest_bytes)),
        ("on disk", size(accounts.on_disk)),
        ("  live", size(accounts.live)),
        ("  dead", size(accounts.dead)),
        ("  condemned", size(accounts.condemned)),
        ("  orphan", size(accounts.orphan)),
        ("  manifest, journals, ballast", size(accounts.open)),
    ];
    if info.is_recovered_copy {
        facts.push(("recovered", "in memory only: its writer was killed".to_owned()));
    }
    for (what, value) in facts {
        output.line(&format!("{what}: {value}"))?;
    }
    for (table, n) in rows {
        if n > 0 || output.is_verbose {
            output.line(&format!("rows of {table}: {}", count(n)))?;
        }
    }
    Ok(0)
}

/// What the layout gives: the witness, and what a barrier is.
fn gives(info: &Info) -> (String, &'static str) {
    match (info.layout, info.witness) {
        (Layout::SingleFile, _) => (
            "none: an older copy put in its place is not noticed".to_owned(),
            "one commit, for all who wait",
        ),
        (_, None) => ("none reads".to_owned(), "one data sync, for all who wait"),
        (_, Some(commit)) => (count(commit.0), "one data sync, for all who wait"),
    }
}

fn snapshot_json(age: &SnapshotAge) -> Value {
    json!({
        "covers": age.covers.0, "commits_since": age.commits, "written_unix_nanos": age.at,
        "chain": age.chain, "bytes": age.bytes, "is_complete": age.is_complete,
    })
}

/// What salvage would have to do without.
fn snapshot_age(age: Option<&SnapshotAge>, times: TimeFormat) -> String {
    let Some(age) = age else { return "none".to_owned() };
    let since = match age.is_complete {
        true => "nothing changed since".to_owned(),
        false => format!("{} since", counted(age.commits, "commit")),
    };
    let (covers, at) = (count(age.covers.0), time(age.at, times));
    format!(
        "of commit {covers}, written {at}, {since}; {} in {}",
        size(age.bytes),
        counted(age.chain, "file")
    )
}
