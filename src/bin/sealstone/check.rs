//! `sealstone check STORE`.

use std::ops::ControlFlow;

use sealstone::check::{CheckOptions, Finding, Report, Severity, check};
use sealstone::clock::monotonic_nanos;
use serde_json::json;

use super::args::CheckArgs;
use super::failure::DAMAGED;
use super::output::{End, Output};
use super::words::{count, counted, size};

pub fn run(args: &CheckArgs, output: &mut Output) -> Result<u8, End> {
    let started = monotonic_nanos();
    let options =
        CheckOptions { fast: args.fast, allow_shared_root: output.allow_shared_root, disk: None };
    let bar = output.progress("check", Some(0), false);
    let report = check(&args.store, &options, &mut |progress| {
        bar.set_message(progress.part);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    for finding in &report.findings {
        tell(finding, output)?;
    }
    summary(args, &report, started, output)?;
    // A warning loses nothing: what was stored is there.
    Ok(if report.damages > 0 { DAMAGED } else { 0 })
}

fn tell(finding: &Finding, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        return output.message(
            "finding",
            json!({
                "severity": finding.severity.name(), "place": finding.place,
                "what": finding.what, "means": finding.means,
            }),
        );
    }
    if finding.severity != Severity::Note || output.is_verbose {
        output.line(&finding.to_string())?;
    }
    Ok(())
}

fn summary(
    args: &CheckArgs,
    report: &Report,
    started: u64,
    output: &mut Output,
) -> Result<(), End> {
    let took = ((monotonic_nanos() - started) / 1_000_000) as f64 / 1000.0;
    let looked = report.looked_at;
    let on_disk = report.accounts.map(|accounts| accounts.on_disk);
    if output.is_json {
        return output.message(
            "summary",
            json!({
                "command": "check", "store": report.store.to_string(), "commit": report.commit.0,
                "is_good": report.is_good(), "is_fast": report.is_fast,
                "damages": report.damages, "warnings": report.warnings, "notes": report.notes,
                "findings_left_out": report.left_out,
                "rows": looked.rows, "objects": looked.objects, "files": looked.files,
                "journals": looked.journals, "records": looked.records,
                "streams": looked.streams, "chunks": looked.chunks,
                "bytes_read": report.bytes_read, "bytes_on_disk": on_disk, "seconds": took,
            }),
        );
    }
    if report.left_out > 0 {
        output.line(&format!("{} more are not listed", counted(report.left_out, "finding")))?;
    }
    let verdict = if report.damages > 0 {
        format!("damaged: {}", counted(report.damages, "contradiction"))
    } else if report.warnings > 0 {
        format!("whole, with {}", counted(report.warnings, "warning"))
    } else {
        "good".to_owned()
    };
    output.remark(&format!(
        "{} is {verdict}: {}, {}, {}, {}, {}; {} read{}, {took:.2} s",
        args.store.display(),
        counted(looked.rows, "row"),
        counted(looked.objects, "object"),
        counted(looked.files, "sealed file"),
        counted(looked.journals, "journal"),
        counted(looked.chunks, "chunk"),
        size(report.bytes_read),
        if report.is_fast { ", contents not looked at" } else { "" },
    ))?;
    if report.notes > 0 && !output.is_verbose {
        output.remark(&format!("{} (-v lists them)", count_notes(report.notes)))?;
    }
    Ok(())
}

fn count_notes(notes: u64) -> String {
    format!(
        "{} {} expected and harmless",
        count(notes),
        if notes == 1 { "thing is" } else { "things are" }
    )
}
