//! `sealstone export STORE RECORDING`.

use std::io::Write;
use std::ops::ControlFlow;

use sealstone::clock::monotonic_nanos;
use sealstone::interop::Format;
use sealstone::recording::{ExportOptions, Exported, Recording};
use serde_json::json;

use super::args::{ExportArgs, FileFormat};
use super::input::NewFile;
use super::output::{End, Output};
use super::words::{count, counted, shown, size};

pub fn run(args: &ExportArgs, output: &mut Output) -> Result<u8, End> {
    let started = monotonic_nanos();
    let store = output.opening().open_read_only(&args.store)?;
    let recording = store.recording(&args.recording)?;
    let mut options = ExportOptions::new(format(args));
    options.streams = args.streams.clone();
    options.fields = args.fields.clone();
    let bar = output.progress("export", records(&recording)?, false);
    let mut progress = |rows| {
        bar.set_position(rows);
        ControlFlow::Continue(())
    };
    let Some(path) = &args.output else {
        recording.export(output.stdout(), &options, &mut progress)?;
        return Ok(0);
    };
    let (exported, bytes) = if args.dry_run {
        let counter = Counter { bytes: 0 };
        let (exported, counter) = recording.export(counter, &options, &mut progress)?;
        (exported, counter.bytes)
    } else {
        let file = NewFile::create("export", path)?;
        let (exported, file) = recording.export(file, &options, &mut progress)?;
        (exported, file.finish()?)
    };
    bar.finish_and_clear();
    report(args, exported, bytes, started, output)?;
    Ok(0)
}

fn format(args: &ExportArgs) -> Format {
    match args.format {
        Some(FileFormat::Csv) => Format::Csv,
        Some(FileFormat::Jsonl) => Format::Jsonl,
        None => {
            let name = args.output.as_ref().map(|path| path.to_string_lossy());
            name.and_then(|name| Format::of_name(&name)).unwrap_or(Format::Csv)
        }
    }
}

fn records(recording: &Recording) -> Result<Option<u64>, End> {
    Ok(Some(
        recording
            .streams()?
            .iter()
            .fold(0, |sum, stream| sum.saturating_add(stream.record_count())),
    ))
}

struct Counter {
    bytes: u64,
}

impl Write for Counter {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.bytes += from.len() as u64;
        Ok(from.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn report(
    args: &ExportArgs,
    exported: Exported,
    bytes: u64,
    started: u64,
    output: &mut Output,
) -> Result<(), End> {
    let took = ((monotonic_nanos() - started) / 1_000_000) as f64 / 1000.0;
    if output.is_json {
        return output.message(
            "summary",
            json!({
                "command": "export", "dry_run": args.dry_run, "recording": args.recording,
                "rows": exported.rows, "values": exported.values, "missing": exported.missing,
                "bytes_out": bytes, "seconds": took,
            }),
        );
    }
    let verb = if args.dry_run { "would export" } else { "exported" };
    output.remark(&format!(
        "{verb} {}: {}, {} ({} missing), {} written, {took:.2} s",
        shown(&args.recording),
        counted(exported.rows, "row"),
        counted(exported.values, "value"),
        count(exported.missing),
        size(bytes),
    ))
}
