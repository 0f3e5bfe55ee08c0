//! `sealstone cat STORE RECORDING`: records as CSV with stream and iteration, or as JSON.

use std::collections::BTreeSet;

use sealstone::interop::{Format, OutColumn, RowWriter, write_json};
use sealstone::recording::{Merged, Stream, Value};

use super::args::CatArgs;
use super::output::{End, Output};

/// Memory for the records of one stream.
const HELD_BYTES: u64 = 8 << 20;

pub fn run(args: &CatArgs, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let recording = store.recording(&args.recording)?;
    let streams = match &args.stream {
        Some(name) => vec![recording.stream(name)?],
        None => recording.streams()?,
    };
    let names = names_of(&args.fields, &streams)?;
    // Where the fields stand in each stream that has them.
    let positions: Vec<Vec<usize>> = streams
        .iter()
        .map(|stream| names.iter().filter_map(|name| stream.schema().position(name)).collect())
        .collect();
    print(args, &streams, &positions, &names, output)?;
    Ok(0)
}

/// The fields that were asked for, each of which some stream has; or those that the streams have.
fn names_of(asked: &[String], streams: &[Stream]) -> Result<Vec<String>, End> {
    let mut names: Vec<String> = Vec::new();
    if asked.is_empty() {
        let mut seen = BTreeSet::new();
        for field in streams.iter().flat_map(|stream| stream.schema().fields()) {
            if seen.insert(&field.name) {
                names.push(field.name.clone());
            }
        }
        return Ok(names);
    }
    for name in asked {
        let is_there = |stream: &Stream| stream.schema().position(name).is_some();
        if let Some(first) = streams.first()
            && !streams.iter().any(is_there)
        {
            // Its error names the fields there are.
            drop(first.field(name)?);
        }
        names.push(name.clone());
    }
    Ok(names)
}

fn print(
    args: &CatArgs,
    streams: &[Stream],
    positions: &[Vec<usize>],
    names: &[String],
    output: &mut Output,
) -> Result<(), End> {
    let is_json = output.is_json;
    let mut lines = Lines::new(names, is_json, output)?;
    if let ([stream], [positions]) = (streams, positions) {
        let mut range = args.records.clone().unwrap_or(0..stream.record_count());
        if let Some(wanted) = args.iterations {
            let of = stream.records_of(wanted.from..wanted.to.unwrap_or(i64::MAX))?;
            let end = if wanted.to.is_some() { of.end } else { stream.record_count() };
            range = range.start.max(of.start)..range.end.min(end);
        }
        let mut records = stream.records(positions.clone(), range, HELD_BYTES);
        while records.advance()? {
            lines.record(stream, records.iteration(), &records.values())?;
        }
        return lines.finish();
    }
    let mut merged = Merged::new(streams, positions)?;
    while let Some(at) = merged.advance()? {
        let (Some(stream), Some(records)) = (streams.get(at), merged.records(at)) else { continue };
        let iteration = records.iteration();
        if args.iterations.is_none_or(|wanted| wanted.contains(iteration)) {
            let values: Vec<Value<'_>> =
                names.iter().map(|name| value_of(stream, positions, at, name, records)).collect();
            lines.record(stream, iteration, &values)?;
        }
    }
    lines.finish()
}

/// The value of the field called `name`; missing where the stream does not have it.
fn value_of<'r>(
    stream: &Stream,
    positions: &[Vec<usize>],
    at: usize,
    name: &str,
    records: &'r sealstone::recording::Records<'_>,
) -> Value<'r> {
    let position = stream.schema().position(name);
    let taken =
        position.zip(positions.get(at)).and_then(|(p, all)| all.iter().position(|x| *x == p));
    taken.map_or(Value::Missing, |at| records.get(at))
}

/// The records as text.
enum Lines<'o> {
    Csv(RowWriter<&'o mut dyn std::io::Write>),
    Json { names: Vec<String>, output: &'o mut Output, text: String },
}

impl<'o> Lines<'o> {
    fn new(names: &[String], is_json: bool, output: &'o mut Output) -> Result<Self, End> {
        if is_json {
            let mut quoted = Vec::with_capacity(names.len());
            for name in names {
                let mut text = String::new();
                write_json(&Value::String(name), &mut text)?;
                quoted.push(text);
            }
            return Ok(Self::Json { names: quoted, output, text: String::new() });
        }
        let fixed = ["stream", "iteration"].into_iter().map(str::to_owned);
        let columns = fixed.chain(names.iter().cloned()).map(|name| OutColumn::new(name, None));
        let stdout: &mut dyn std::io::Write = output.stdout();
        Ok(Self::Csv(RowWriter::new(stdout, Format::Csv, columns.collect())?))
    }

    fn record(&mut self, stream: &Stream, iteration: i64, values: &[Value<'_>]) -> Result<(), End> {
        match self {
            Self::Csv(writer) => {
                let mut row = vec![Value::String(stream.name()), Value::I64(iteration)];
                row.extend_from_slice(values);
                Ok(writer.row(&row)?)
            }
            Self::Json { names, output, text } => {
                text.clear();
                text.push_str("{\"message_type\":\"record\",\"schema\":1,\"stream\":");
                write_json(&Value::String(stream.name()), text)?;
                text.push_str(&format!(",\"iteration\":{iteration},\"values\":{{"));
                for (at, (name, value)) in names.iter().zip(values).enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    text.push_str(name);
                    text.push(':');
                    write_json(value, text)?;
                }
                text.push_str("}}");
                output.line(text)
            }
        }
    }

    fn finish(self) -> Result<(), End> {
        if let Self::Csv(writer) = self {
            writer.finish()?;
        }
        Ok(())
    }
}
