//! `sealstone salvage STORE NEW`.

use sealstone::check::{SalvageOptions, Salvaged, salvage};
use sealstone::clock::monotonic_nanos;
use serde_json::json;

use super::args::SalvageArgs;
use super::failure::LOST;
use super::output::{End, Output};
use super::words::{count, counted, shown, size};

pub fn run(args: &SalvageArgs, output: &mut Output) -> Result<u8, End> {
    let started = monotonic_nanos();
    let salvaged = salvage(&args.store, &args.new, &SalvageOptions::default())?;
    for lost in &salvaged.lost {
        if output.is_json {
            let fields = json!({
                "severity": "lost", "what": lost.what, "records": lost.records, "why": lost.why,
            });
            output.message("finding", fields)?;
        } else {
            output.line(&format!("lost: {}", shown(&lost.to_string())))?;
        }
    }
    for unconfirmed in &salvaged.unconfirmed {
        if output.is_json {
            let what = unconfirmed.to_string();
            output.message("finding", json!({ "severity": "unconfirmed", "what": what }))?;
        } else {
            output.line(&format!("unconfirmed: {}", shown(&unconfirmed.to_string())))?;
        }
    }
    let tells_notes = output.is_verbose && !output.is_json;
    for note in salvaged.notes.iter().filter(|_| tells_notes) {
        output.line(&format!("note: {}", shown(note)))?;
    }
    summary(args, &salvaged, started, output)?;
    Ok(if salvaged.is_whole() { 0 } else { LOST })
}

fn summary(
    args: &SalvageArgs,
    salvaged: &Salvaged,
    started: u64,
    output: &mut Output,
) -> Result<(), End> {
    let took = ((monotonic_nanos() - started) / 1_000_000) as f64 / 1000.0;
    if output.is_json {
        return output.message(
            "summary",
            json!({
                "command": "salvage", "store": salvaged.store.to_string(),
                "path": args.new.to_string_lossy(),
                "covers": salvaged.covers.map(|commit| commit.0), "snapshots": salvaged.chain,
                "witnessed": salvaged.witnessed.0, "is_whole": salvaged.is_whole(),
                "lost": salvaged.lost.len(), "unconfirmed": salvaged.unconfirmed.len(),
                "streams": salvaged.streams, "chunks": salvaged.chunks,
                "records": salvaged.records, "objects": salvaged.objects,
                "bytes": salvaged.bytes, "notes": salvaged.notes, "seconds": took,
            }),
        );
    }
    let from = match salvaged.covers {
        Some(covers) => format!("a snapshot of commit {}", count(covers.0)),
        None => "labels and journals alone: no snapshot reads".to_owned(),
    };
    let verdict = match salvaged.is_whole() {
        true => "nothing is lost".to_owned(),
        false => format!(
            "{} lost, {} unconfirmed",
            count(salvaged.lost.len() as u64),
            count(salvaged.unconfirmed.len() as u64)
        ),
    };
    output.remark(&format!(
        "{} was made from {from}: {}, {}, {}, {} of {}; {verdict}, {took:.2} s",
        args.new.display(),
        counted(salvaged.streams, "stream"),
        counted(salvaged.chunks, "chunk"),
        counted(salvaged.records, "unsealed record"),
        counted(salvaged.objects, "object"),
        size(salvaged.bytes),
    ))
}
