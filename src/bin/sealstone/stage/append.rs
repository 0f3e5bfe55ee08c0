//! `sealstone stage append STORE STAGE [FILE]`: lines become batches under keys.
//!
//! With a producer each batch carries where the input stands behind it, in one record: a run that was
//! stopped anywhere goes on behind what was taken, and takes no line twice.

use sealstone::clock::monotonic_nanos;
use sealstone::staging::{Batch, Key, Produced, Stage};
use sealstone::{Error, ErrorKind, Layout, Result, Store};
use serde_json::json;

use super::args::{AppendArgs, LineFormat};
use super::keys::{KeySpec, Keys};
use super::lines::{Lines, Next};
use super::pattern::Pattern;
use super::slab::{Position, Slab};
use crate::args::LayoutName;
use crate::failure::LOST;
use crate::open::writing;
use crate::output::{End, Output};
use crate::words::{counted, shown, size};

/// A slab ends at so many bytes, whatever it has of lines.
const SLAB_BYTES_MAX: u64 = 8 << 20;
/// Status lines of `--json` are at least this far apart.
const STATUS_NANOS: u64 = 1_000_000_000;

pub fn run(args: &AppendArgs, output: &mut Output) -> Result<u8, End> {
    let started = monotonic_nanos();
    let (specs, pattern) = specs(args)?;
    let is_json = match args.format {
        Some(format) => format == LineFormat::Jsonl,
        None => !args.fields.is_empty() || (args.pattern.is_none() && is_named_json(&args.file)),
    };
    let lines = Lines::open(&args.file, args.row_size_max)?;
    let mut told = Told::default();
    if args.dry_run {
        let stands =
            output.opening().open_read_only(&args.store).and_then(|store| store.stage(&args.stage));
        let shape = stands.ok().map(|stage| stage.key_shape().clone());
        let keys = Keys::new(specs, pattern, is_json, shape.as_ref())?;
        let mut reading = Reading { args, keys, lines, at_line: 0 };
        while let Some((slab, _)) = reading.slab(&mut told, output)? {
            told.count(&slab);
        }
        return told.end(args, started, output);
    }
    let layout = match args.layout {
        LayoutName::Directory => Layout::Directory,
        LayoutName::SingleFile => Layout::SingleFile,
    };
    let store = writing(output, args.shared).layout(layout).open_or_create(&args.store)?;
    let (stage, keys) = stage_of(args, &store, specs, pattern, is_json)?;
    let mut reading = Reading { args, keys, lines, at_line: 0 };
    let mut producer = Producer::new(args, &stage)?;
    reading.go_on(&mut producer, &stage, &mut told, output)?;
    let mut last_status = started;
    while let Some((slab, position)) = reading.slab(&mut told, output)? {
        producer.append(&stage, &slab, position, 0)?;
        told.count(&slab);
        let now = monotonic_nanos();
        if output.is_json && now - last_status >= STATUS_NANOS {
            last_status = now;
            output.message("status", json!({ "rows": told.rows, "bytes": told.len }))?;
            output.finish()?;
        }
    }
    stage.barrier()?;
    told.sequence = producer.sequence;
    drop((stage, producer));
    store.close()?;
    told.end(args, started, output)
}

/// Whether a file's name says that its lines are JSON.
fn is_named_json(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson")
}

/// The parts of keys that the command line asks for: constants, captures, fields.
fn specs(args: &AppendArgs) -> Result<(Vec<KeySpec>, Option<Pattern>)> {
    let mut specs = args.constants.clone();
    let mut pattern = None;
    if let Some(text) = &args.pattern {
        let refused = |why| Error::invalid("append", "--pattern", why);
        let (parsed, captured) = Pattern::parse(text).map_err(refused)?;
        specs.extend(captured);
        pattern = Some(parsed);
    }
    specs.extend(args.fields.iter().cloned());
    if args.format == Some(LineFormat::Lines) && !args.fields.is_empty() {
        let cause = "fields are taken from JSON lines; give --format jsonl, or --pattern";
        return Err(Error::invalid("append", "--key", cause));
    }
    Ok((specs, pattern))
}

/// The stage, created where there is none.
fn stage_of(
    args: &AppendArgs,
    store: &Store,
    specs: Vec<KeySpec>,
    pattern: Option<Pattern>,
    is_json: bool,
) -> Result<(Stage, Keys)> {
    let stands = match store.stage(&args.stage) {
        Ok(stage) => Some(stage.key_shape().clone()),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let keys = Keys::new(specs, pattern, is_json, stands.as_ref())?;
    Ok((store.stage_or_create(&args.stage, keys.shape())?, keys))
}

/// What was taken.
#[derive(Debug, Default)]
struct Told {
    rows: u64,
    batches: u64,
    len: u64,
    passed_over: u64,
    repeated: u64,
    has_rest: bool,
    sequence: Option<u64>,
}

impl Told {
    fn count(&mut self, slab: &Slab) {
        self.rows += slab.rows;
        self.len += slab.len;
        self.batches += slab.batches.len() as u64;
    }

    fn end(&self, args: &AppendArgs, started: u64, output: &mut Output) -> Result<u8, End> {
        let seconds = ((monotonic_nanos() - started) / 1_000_000) as f64 / 1000.0;
        if self.has_rest {
            output.warn("the last line has no end yet and was left; give --complete to take it");
        }
        if self.passed_over > 0 {
            let lines = counted(self.passed_over, "line");
            output.warn(&format!("{lines} without a key passed over"));
        }
        if output.is_json {
            output.message(
                "summary",
                json!({
                    "command": "append", "dry_run": args.dry_run, "stage": args.stage,
                    "rows": self.rows, "batches": self.batches, "bytes": self.len,
                    "skipped": self.passed_over, "rows_before": self.repeated,
                    "has_rest": self.has_rest, "producer": args.producer,
                    "sequence": self.sequence, "seconds": seconds,
                }),
            )?;
        } else {
            let verb = if args.dry_run { "would append" } else { "appended" };
            let batches = match self.batches {
                1 => "1 batch".to_owned(),
                n => format!("{} batches", crate::words::count(n)),
            };
            output.remark(&format!(
                "{verb} {} as {batches} to {}: {}, {seconds:.2} s",
                counted(self.rows, "row"),
                shown(&args.stage),
                size(self.len),
            ))?;
        }
        Ok(if self.passed_over > 0 || self.has_rest { LOST } else { 0 })
    }
}

/// Who appends, and how far it got.
#[derive(Debug)]
struct Producer {
    name: Option<String>,
    /// The number of its last batch.
    sequence: Option<u64>,
    /// Where its input stood then.
    stood: Option<Position>,
    is_json: bool,
}

impl Producer {
    fn new(args: &AppendArgs, stage: &Stage) -> Result<Self> {
        let mut producer =
            Self { name: args.producer.clone(), sequence: None, stood: None, is_json: false };
        if let Some(name) = &producer.name
            && let Some(progress) = stage.progress(name)?
        {
            producer.sequence = Some(progress.sequence);
            producer.stood = Some(Position::from_bytes(name, &progress.position)?);
        }
        Ok(producer)
    }

    /// Appends the batches of a slab, from number `first` of them on.
    fn append(&mut self, stage: &Stage, slab: &Slab, position: Position, first: u64) -> Result<()> {
        for (at, (key, bytes, rows)) in (0u64..).zip(&slab.batches) {
            if at < first {
                continue;
            }
            let sequence = self.sequence.map_or(1, |last| last.saturating_add(1));
            self.one(stage, key, (bytes, *rows), sequence, Position { batch: at, ..position })?;
            self.sequence = self.name.is_some().then_some(sequence);
        }
        Ok(())
    }

    /// Appends one batch; whether it was taken before.
    fn one(
        &self,
        stage: &Stage,
        key: &Key,
        (bytes, rows): (&Vec<u8>, u64),
        sequence: u64,
        position: Position,
    ) -> Result<bool> {
        let batch = match self.is_json {
            true => Batch::json_lines(bytes.clone())?,
            false => Batch::opaque(bytes.clone(), rows),
        };
        let produced =
            self.name.as_ref().map(|name| Produced::new(name, sequence).at(position.to_bytes()));
        Ok(stage.append(key, batch, produced.as_ref())?.is_repeat)
    }
}

/// The input, as slabs.
struct Reading<'a> {
    args: &'a AppendArgs,
    keys: Keys,
    lines: Lines,
    /// Lines before the next one.
    at_line: u64,
}

impl Reading<'_> {
    /// Goes to where the producer stands; what is missing of its last slab is appended.
    fn go_on(
        &mut self,
        producer: &mut Producer,
        stage: &Stage,
        told: &mut Told,
        output: &mut Output,
    ) -> Result<(), End> {
        producer.is_json = self.keys.is_json();
        let (Some(stood), Some(sequence)) = (producer.stood, producer.sequence) else {
            return Ok(());
        };
        let other = || {
            let cause = "the input is not the one that its producer stands in, or its keys are others: \
                         give another --producer for another input, as for a log that was rotated";
            let place = format!("the input at bytes {}..{}", stood.from, stood.to);
            Error::new(ErrorKind::Conflict, "append", place, cause)
        };
        // Also where the slab is whole: the input may be another one by now, a log that was rotated.
        self.lines.skip_to(stood.from)?;
        let mut slab = Slab::default();
        while self.lines.offset() < stood.to && self.lines.next(None)? == Next::Line {
            // It begins within a line, or has one without a key.
            self.take(&mut slab, &mut Told::default(), output).map_err(|_| other())?;
        }
        self.at_line = stood.lines;
        let at = usize::try_from(stood.batch).unwrap_or(usize::MAX);
        let is_same = self.lines.offset() == stood.to && slab.batches.len() as u64 == stood.batches;
        let Some((key, bytes, rows)) = slab.batches.get(at).filter(|_| is_same) else {
            return Err(other().into());
        };
        // The last that was taken is taken once more: with other bytes it is refused.
        match producer.one(stage, key, (bytes, *rows), sequence, stood) {
            Ok(true) => {}
            Err(e) if e.kind() != ErrorKind::Conflict => return Err(e.into()),
            Ok(false) | Err(_) => return Err(other().into()),
        }
        producer.append(stage, &slab, stood, stood.batch + 1)?;
        let missing = slab.batches.iter().skip(at + 1);
        told.rows += missing.clone().map(|(_, _, rows)| rows).sum::<u64>();
        told.len += missing.clone().map(|(_, bytes, _)| bytes.len() as u64).sum::<u64>();
        told.batches += missing.count() as u64;
        Ok(())
    }

    /// The next slab, and where the input stands behind it; `None` at the end.
    fn slab(
        &mut self,
        told: &mut Told,
        output: &mut Output,
    ) -> Result<Option<(Slab, Position)>, End> {
        let mut slab = Slab::default();
        loop {
            let from = self.lines.offset();
            let mut until = None;
            let mut is_over = false;
            while slab.lines < self.args.rows as u64 && slab.len < SLAB_BYTES_MAX {
                match self.lines.next(until)? {
                    Next::Waited => break,
                    Next::End => is_over = true,
                    Next::Line if self.is_rest() => {
                        told.has_rest = true;
                        is_over = true;
                    }
                    // It would pass the limit: it begins the next one.
                    Next::Line
                        if slab.lines > 0
                            && slab.len + self.lines.line().len() as u64 > SLAB_BYTES_MAX =>
                    {
                        self.lines.give_back();
                        break;
                    }
                    Next::Line => self.take(&mut slab, told, output)?,
                }
                if is_over {
                    break;
                }
                until = until.or_else(|| Some(monotonic_nanos().saturating_add(self.args.linger)));
            }
            let batches = slab.batches.len() as u64;
            if batches > 0 {
                let to = if told.has_rest { self.lines.line_start() } else { self.lines.offset() };
                let position = Position { from, to, lines: self.at_line, batch: 0, batches };
                return Ok(Some((slab, position)));
            }
            if is_over {
                return Ok(None);
            }
            // Nothing but lines that were passed over.
            slab = Slab::default();
        }
    }

    /// Whether the line has no end, and may get one.
    fn is_rest(&self) -> bool {
        let may_grow =
            self.args.producer.is_some() && !self.args.complete && !self.lines.is_stdin();
        may_grow && !self.lines.line().ends_with(b"\n")
    }

    fn take(&mut self, slab: &mut Slab, told: &mut Told, output: &mut Output) -> Result<(), End> {
        self.at_line += 1;
        slab.lines += 1;
        let line = self.lines.line();
        if self.keys.is_json() && line.trim_ascii().is_empty() {
            return Ok(());
        }
        match self.keys.of(line) {
            Ok(key) => slab.take(key, line),
            Err(why) if self.args.skip => {
                told.passed_over += 1;
                if output.is_verbose {
                    output.warn(&format!("line {}: {why}", self.at_line));
                }
            }
            Err(why) => {
                let cause = format!("{why}; --skip passes over such lines");
                let place = format!("line {}", self.at_line);
                return Err(Error::new(ErrorKind::Input, "append", place, cause).into());
            }
        }
        Ok(())
    }
}
