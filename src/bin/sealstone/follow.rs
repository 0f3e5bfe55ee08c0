//! `sealstone follow STORE RECORDING`: what comes to a recording, as it comes, until it ends.

use std::time::Duration;

use sealstone::interop::write_json;
use sealstone::recording::{EventValue, Follow, FollowLevel, Followed, FollowedRecord, Value};
use sealstone::{ErrorKind, Store};
use serde_json::json;

use super::args::{FollowArgs, LevelName, TimeFormat};
use super::events::{event_fields, event_line};
use super::ls::status_name;
use super::output::{End, Output};
use super::words::shown;

/// How long a writer that was killed is waited for before the store is looked at again.
const PAUSE: Duration = Duration::from_millis(500);

pub fn run(args: &FollowArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let level = match args.level {
        LevelName::Written => FollowLevel::Written,
        LevelName::Durable => FollowLevel::Durable,
        LevelName::Sealed => FollowLevel::Sealed,
    };
    let store = output.opening().open_read_only(&args.store)?;
    let mut follow = store.follow_at(&args.recording, level)?;
    let mut is_copy = store.info()?.is_recovered_copy;
    drop(store);
    loop {
        while let Some(told) = follow.poll()? {
            tell(&told, times, output)?;
            if matches!(told, Followed::Ended(_)) {
                return Ok(0);
            }
        }
        output.finish()?;
        if args.no_wait {
            return Ok(0);
        }
        if is_copy {
            (follow, is_copy) = reopened(follow, args, output)?;
        } else if let Some(told) = follow.next_event(PAUSE)? {
            tell(&told, times, output)?;
            if matches!(told, Followed::Ended(_)) {
                return Ok(0);
            }
        }
    }
}

/// Nobody writes, and what a killed writer left is read from a copy that keeps writers out: lets
/// them in, and goes on over a new opening.
fn reopened(follow: Follow, args: &FollowArgs, output: &Output) -> Result<(Follow, bool), End> {
    let paused = follow.pause();
    loop {
        paused.wait(PAUSE);
        let store: Store = match output.opening().open_read_only(&args.store) {
            Err(e) if e.kind() == ErrorKind::InUse => continue,
            opened => opened?,
        };
        let is_copy = store.info()?.is_recovered_copy;
        return Ok((paused.over(&store)?, is_copy));
    }
}

fn tell(told: &Followed, times: TimeFormat, output: &mut Output) -> Result<(), End> {
    if output.is_json {
        return tell_json(told, output);
    }
    let line = match told {
        Followed::Appended { stream, record } => {
            format!("record\t{}\t{}\t{}", shown(stream), record.iteration(), values(record)?)
        }
        Followed::Sealed { stream, upto } => format!("sealed\t{}\t{upto}", shown(stream)),
        Followed::Rewound { stream, to } => format!("rewound\t{}\t{to}", shown(stream)),
        Followed::Event(event) => format!("event\t{}", event_line(event, times)),
        Followed::Ended(status) => format!("ended\t{}", status_name(status)),
        other => format!("{other:?}"),
    };
    output.line(&line)
}

fn tell_json(told: &Followed, output: &mut Output) -> Result<(), End> {
    match told {
        Followed::Appended { stream, record } => {
            let mut text = "{\"message_type\":\"record\",\"schema\":1,\"stream\":".to_owned();
            write_json(&Value::String(stream), &mut text)?;
            let (sequence, iteration) = (record.sequence(), record.iteration());
            text.push_str(&format!(",\"sequence\":{sequence},\"iteration\":{iteration}"));
            if let Some(time) = record.time() {
                text.push_str(",\"time\":");
                write_json(&Value::F64(time), &mut text)?;
            }
            text.push_str(&format!(",\"values\":{}}}", values(record)?));
            output.line(&text)
        }
        Followed::Sealed { stream, upto } => {
            output.message("sealed", json!({ "stream": **stream, "upto": upto }))
        }
        Followed::Rewound { stream, to } => {
            output.message("rewound", json!({ "stream": **stream, "to": to }))
        }
        Followed::Event(event) => output.message("event", event_fields(event)),
        Followed::Ended(status) => {
            output.message("ended", json!({ "status": status_name(status) }))
        }
        _ => Ok(()),
    }
}

/// The values of a record, as a JSON object.
fn values(record: &FollowedRecord) -> Result<String, End> {
    let mut text = "{".to_owned();
    for (field, value) in record.schema().fields().iter().zip(record.values()) {
        if text.len() > 1 {
            text.push(',');
        }
        write_json(&Value::String(&field.name), &mut text)?;
        text.push(':');
        write_json(&value, &mut text)?;
    }
    text.push('}');
    Ok(text)
}

/// What an event says, as text: bytes as hex.
pub fn value_text(value: &EventValue) -> String {
    match value {
        EventValue::Text(text) | EventValue::Json(text) => text.clone(),
        EventValue::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        other => format!("{other:?}"),
    }
}
