//! `sealstone claims STORE`: who works on what.

use sealstone::clock::wall_nanos;
use serde_json::{Value, json};

use crate::args::{StoreArgs, TimeFormat};
use crate::open::object;
use crate::output::{End, Output};
use crate::words::{shown, time};

pub fn run(args: &StoreArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let now = wall_nanos();
    let mut list = Vec::new();
    for claim in store.claims(usize::MAX)? {
        let (resource, kind, row) = (claim.resource.to_string(), claim.row.kind.name(), &claim.row);
        // As the clocks tell, which may have been set: nothing is decided by it.
        let age = now.zip(row.since).map(|(now, since)| now.saturating_sub(since));
        let process = claim.holder.as_ref().map(|one| (one.host.clone(), one.pid));
        if output.is_json {
            list.push(json!({
                "resource": resource, "kind": kind, "owner": row.owner.to_string(),
                "epoch": row.epoch.0, "host": process.as_ref().map(|(host, _)| host),
                "pid": process.as_ref().map(|(_, pid)| pid), "since_unix_nanos": row.since,
                "age_nanos": age, "commit": row.taken.0,
            }));
            continue;
        }
        let holder = match process {
            Some((host, pid)) => format!("process {pid} on {}", shown(&host)),
            None => format!("owner {}", row.owner),
        };
        let (since, age) = (time(row.since, times), age.map_or("unknown".to_owned(), age_text));
        output.line(&format!("{}\t{kind}\t{holder}\tsince {since}\t{age}", shown(&resource)))?;
    }
    if output.is_json {
        output.object(object(json!({ "claims": Value::Array(list) })))?;
    }
    Ok(0)
}

/// `3 d`, `2 h`, `41 s`.
fn age_text(nanos: i64) -> String {
    let seconds = nanos.div_euclid(1_000_000_000);
    match seconds {
        i64::MIN..0 => "of the future".to_owned(),
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} m", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}
