//! `sealstone backup STORE TO`.

use std::ops::ControlFlow;

use sealstone::clock::monotonic_nanos;
use sealstone::engine::{Backup, BackupOptions};
use serde_json::json;

use super::args::BackupArgs;
use super::output::{End, Output};
use super::words::{counted, size};

/// Status lines of `--json` come at most this often.
const STATUS_NANOS: u64 = 1_000_000_000;

pub fn run(args: &BackupArgs, output: &mut Output) -> Result<u8, End> {
    let started = monotonic_nanos();
    let store = output.opening().open_read_only(&args.store)?;
    let options =
        BackupOptions { fast: args.fast, allow_shared_root: output.allow_shared_root, disk: None };
    if args.dry_run {
        let plan = store.backup_estimate(&args.to, &options)?;
        tell(args, &plan, started, output)?;
        return Ok(0);
    }
    let bar = output.progress("backup", Some(0), true);
    let (mut told, mut closed) = (started, Ok(()));
    let made = store.backup_with(&args.to, &options, &mut |at| {
        bar.set_message(at.part);
        bar.set_length(at.total);
        bar.set_position(at.done);
        let now = monotonic_nanos();
        if output.is_json && now - told >= STATUS_NANOS {
            told = now;
            let status = json!({ "part": at.part, "done": at.done, "total": at.total });
            closed = output.message("status", status).and_then(|()| output.finish());
        }
        match closed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    bar.finish_and_clear();
    closed?;
    let made = made?;
    store.close()?;
    tell(args, &made, started, output)?;
    Ok(0)
}

fn tell(args: &BackupArgs, made: &Backup, started: u64, output: &mut Output) -> Result<(), End> {
    let took = ((monotonic_nanos() - started) / 1_000_000) as f64 / 1000.0;
    if output.is_json {
        return output.message(
            "summary",
            json!({
                "command": "backup", "dry_run": args.dry_run,
                "commit": made.commit.0, "onto_commit": made.onto.map(|commit| commit.0),
                "rows": made.rows, "manifest_bytes": made.manifest_bytes,
                "files": made.files, "files_copied": made.files_copied,
                "files_removed": made.files_removed, "bytes_copied": made.bytes_copied,
                "journals": made.journals, "seconds": took,
            }),
        );
    }
    let verb = if args.dry_run { "would be" } else { "is" };
    let onto = match made.onto {
        Some(commit) => format!(" (it was at {commit})"),
        None => String::new(),
    };
    output.remark(&format!(
        "{} {verb} {} at commit {}{onto}: {}, {} copied with {}, {} removed, {took:.2} s",
        args.to.display(),
        args.store.display(),
        made.commit,
        counted(made.files, "sealed file"),
        counted(made.files_copied, "file"),
        size(made.bytes_copied),
        counted(made.files_removed, "file"),
    ))
}
