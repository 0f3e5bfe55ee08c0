//! `sealstone ls STORE [RECORDING]`, `sealstone ls STORE --where FILTER`.

use sealstone::recording::{Recording, RecordingStatus};
use serde_json::{Map, Value, json};

use super::args::{LsArgs, TimeFormat};
use super::output::{End, Output};
use super::words::{counted, shown, size, time};

pub fn run(args: &LsArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    match &args.recording {
        Some(name) => streams(&store.recording(name)?, times, output)?,
        None => {
            let found = match &args.filter {
                Some(filter) => store.catalogue().filter(filter)?,
                None => store.recordings(usize::MAX)?,
            };
            recordings(&found, times, output)?;
        }
    }
    Ok(0)
}

/// How far a recording is, in a word.
pub fn status_name(status: &RecordingStatus) -> &'static str {
    match status {
        RecordingStatus::Running => "running",
        RecordingStatus::Complete => "complete",
        RecordingStatus::Failed { .. } => "failed",
    }
}

fn recordings(found: &[Recording], times: TimeFormat, output: &mut Output) -> Result<(), End> {
    let mut list = Vec::new();
    for recording in found {
        let mut records = 0u64;
        for stream in recording.streams()? {
            records = records.saturating_add(stream.record_count());
        }
        if output.is_json {
            list.push(summary(recording, records));
            continue;
        }
        output.line(&format!(
            "{}\t{}\t{}\t{}\t{}",
            shown(recording.name()),
            status_name(recording.status()),
            counted(recording.stream_count() as u64, "stream"),
            counted(records, "record"),
            time(recording.created(), times),
        ))?;
    }
    if output.is_json {
        let mut object = Map::new();
        object.insert("recordings".to_owned(), Value::Array(list));
        output.object(object)?;
    }
    Ok(())
}

fn summary(recording: &Recording, records: u64) -> Value {
    json!({
        "name": recording.name(), "status": status_name(recording.status()),
        "streams": recording.stream_count(), "records": records,
        "created_unix_nanos": recording.created(),
    })
}

fn streams(recording: &Recording, times: TimeFormat, output: &mut Output) -> Result<(), End> {
    let mut records = 0u64;
    let mut list = Vec::new();
    for stream in recording.streams()? {
        records = records.saturating_add(stream.record_count());
        let iterations = stream.iterations()?;
        let (raw, stored) = (stream.raw_bytes()?, stream.stored_bytes()?);
        if output.is_json {
            list.push(json!({
                "name": stream.name(), "records": stream.record_count(), "sealed_records": stream.sealed_record_count(),
                "chunks": stream.chunk_count(), "iterations": iterations,
                "bytes_raw": raw, "bytes_stored": stored,
            }));
            continue;
        }
        let range = iterations.map_or("-".to_owned(), |(first, last)| format!("{first}..={last}"));
        output.line(&format!(
            "{}\t{}\t{}\titerations {range}\t{} stored of {}",
            shown(stream.name()),
            counted(stream.record_count(), "record"),
            counted(stream.chunk_count() as u64, "chunk"),
            size(stored),
            size(raw),
        ))?;
    }
    let fields = recording.schema().fields();
    if output.is_json {
        let fields: Vec<Value> = fields
            .iter()
            .map(|f| json!({ "name": f.name, "type": f.ty.name(), "nullable": f.nullable }))
            .collect();
        let metadata: Map<String, Value> =
            recording.metadata().iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        let mut object = Map::new();
        if let Value::Object(summary) = summary(recording, records) {
            object.extend(summary);
        }
        object.insert("streams".to_owned(), Value::Array(list));
        object.insert("fields".to_owned(), Value::Array(fields));
        object.insert("metadata".to_owned(), Value::Object(metadata));
        return output.object(object);
    }
    if output.is_verbose {
        for field in fields {
            let nullable = if field.nullable { ", may be missing" } else { "" };
            output.line(&format!("field {}\t{}{nullable}", shown(&field.name), field.ty.name()))?;
        }
        for (key, text) in recording.metadata() {
            output.line(&format!("metadata {}\t{text:?}", shown(key)))?;
        }
        output.line(&format!("created\t{}", time(recording.created(), times)))?;
    }
    Ok(())
}
