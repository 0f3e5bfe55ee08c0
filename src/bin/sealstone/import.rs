//! `sealstone import STORE FILE`.

use std::ops::ControlFlow;

use sealstone::clock::monotonic_nanos;
use sealstone::engine::{Budget, WriteAccess};
use sealstone::interop::Format;
use sealstone::recording::{Import, ImportOptions, Imported};
use sealstone::{Error, Layout};
use serde_json::{Value, json};

use super::args::{FileFormat, ImportArgs, LayoutName};
use super::failure::LOST;
use super::input::Input;
use super::output::{End, Output};
use super::words::{count, counted, shown, size};

/// Status lines of `--json` are at least this far apart.
const STATUS_NANOS: u64 = 1_000_000_000;

pub fn run(args: &ImportArgs, output: &mut Output) -> Result<u8, End> {
    let options = options(args)?;
    let started = monotonic_nanos();
    let mut input = Input::open("import", &args.file)?;
    input.follow(output.progress("import", input.length(), true));
    if args.dry_run {
        let imported = {
            let mut progress = status(output, started);
            Import::open(&mut input, &options)?.dry_run(&mut progress)?
        };
        report(args, &options, &imported, input.bytes(), None, started, output)?;
        return Ok(code(&imported));
    }
    // Before the store: an input that is no table creates none.
    let import = Import::open(&mut input, &options)?;
    let layout = match args.layout {
        LayoutName::Directory => Layout::Directory,
        LayoutName::SingleFile => Layout::SingleFile,
    };
    let access = if args.shared { WriteAccess::Shared } else { WriteAccess::Single };
    let store = output.opening().layout(layout).access(access).open_or_create(&args.store)?;
    let imported = {
        let mut progress = status(output, started);
        import.into_store(&store, &mut progress)
    };
    let imported = match imported {
        Ok(imported) => imported,
        Err(e) => {
            // What was discarded gives its bytes back at once; the first error is the one to tell.
            let _ = store.reclaim(Budget::default());
            let _ = store.close();
            return Err(e.into());
        }
    };
    if args.replace {
        store.reclaim(Budget::default())?;
    }
    let mut stored = 0u64;
    for stream in store.recording(&options.name)?.streams()? {
        stored = stored.saturating_add(stream.stored_bytes()?);
    }
    store.close()?;
    report(args, &options, &imported, input.bytes(), Some(stored), started, output)?;
    Ok(code(&imported))
}

/// How the second spelling of a missing value was written is lost.
fn code(imported: &Imported) -> u8 {
    if imported.spelled_otherwise.is_empty() { 0 } else { LOST }
}

fn options(args: &ImportArgs) -> Result<ImportOptions, Error> {
    let stdin = args.file.as_os_str() == "-";
    let file = args.file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let source = if stdin { "standard input".to_owned() } else { file.clone() };
    let format = match args.format {
        Some(FileFormat::Csv) => Format::Csv,
        Some(FileFormat::Jsonl) => Format::Jsonl,
        None => Format::of_name(&file).ok_or_else(|| {
            let cause =
                "its format is not known by its ending; give --format csv or --format jsonl";
            Error::invalid("import", &source, cause)
        })?,
    };
    let name = match &args.name {
        Some(name) => name.clone(),
        None if stdin => {
            return Err(Error::invalid("import", "standard input", "give the recording a --name"));
        }
        None => file.rsplit_once('.').map_or(file.as_str(), |(stem, _)| stem).to_owned(),
    };
    let mut options = ImportOptions::new(name, format, source);
    options.stream_by = args.stream_by.clone();
    options.iteration = args.iteration.clone();
    options.chunk_bytes = args.chunk_size;
    options.replaces = args.replace;
    options.read.types = args.types.clone();
    options.read.infer_rows = args.infer_rows;
    options.read.delimiter = args.delimiter;
    options.read.record_bytes_max = usize::try_from(args.row_size_max).unwrap_or(usize::MAX);
    if !args.missing.is_empty() {
        options.read.missing = args.missing.clone();
    }
    options.read.check()?;
    Ok(options)
}

/// Tells `--json` readers now and then how far it is.
fn status(output: &mut Output, started: u64) -> impl FnMut(u64) -> ControlFlow<()> + '_ {
    let mut last = started;
    move |rows| {
        let now = monotonic_nanos();
        if output.is_json && now - last >= STATUS_NANOS {
            last = now;
            let fields = json!({ "rows": rows, "seconds": seconds(now - started) });
            let sent = output.message("status", fields).and_then(|()| output.finish());
            if sent.is_err() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

fn seconds(nanos: u64) -> f64 {
    (nanos / 1_000_000) as f64 / 1000.0
}

fn report(
    args: &ImportArgs,
    options: &ImportOptions,
    imported: &Imported,
    bytes_in: u64,
    stored: Option<u64>,
    started: u64,
    output: &mut Output,
) -> Result<(), End> {
    let took = seconds(monotonic_nanos() - started);
    for (column, values) in &imported.spelled_otherwise {
        let values = counted(*values, "missing value");
        output.warn(&format!(
            "column {column:?} spells {values} in a second way; an export will not"
        ));
    }
    if output.is_json {
        let streams: Vec<Value> = imported
            .streams
            .iter()
            .map(|(name, records)| json!({ "name": name, "records": records }))
            .collect();
        let fields = imported.schema.fields().iter();
        let fields: Vec<Value> =
            fields.map(|f| json!({ "name": f.name, "type": f.ty.name() })).collect();
        return output.message(
            "summary",
            json!({
                "command": "import", "dry_run": args.dry_run, "recording": options.name,
                "rows": imported.rows, "values": imported.values, "missing": imported.missing,
                "streams": streams, "fields": fields,
                "bytes_in": bytes_in, "bytes_stored": stored, "seconds": took,
            }),
        );
    }
    let verb = if args.dry_run { "would import" } else { "imported" };
    let stored = stored.map_or(String::new(), |bytes| format!(", {} stored", size(bytes)));
    output.remark(&format!(
        "{verb} {} as {}: {}, {} ({} missing), {}; {} read{stored}, {took:.2} s",
        shown(&options.read.source),
        shown(&options.name),
        counted(imported.rows, "row"),
        counted(imported.values, "value"),
        count(imported.missing),
        counted(imported.streams.len() as u64, "stream"),
        size(bytes_in),
    ))?;
    if args.dry_run || output.is_verbose {
        for field in imported.schema.fields() {
            output.remark(&format!("  field {} {}", shown(&field.name), field.ty.name()))?;
        }
        for (name, records) in &imported.streams {
            output.remark(&format!("  stream {} {}", shown(name), counted(*records, "record")))?;
        }
    }
    Ok(())
}
