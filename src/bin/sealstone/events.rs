//! `sealstone events STORE RECORDING`: what was said of a recording while it ran.

use sealstone::recording::{Event, EventId, EventValue};
use serde_json::{Value, json};

use super::args::{EventsArgs, TimeFormat};
use super::follow::value_text;
use super::output::{End, Output};
use super::words::{shown, time};

/// Events read at a time.
const AT_ONCE: usize = 1000;

pub fn run(args: &EventsArgs, times: TimeFormat, output: &mut Output) -> Result<u8, End> {
    let store = output.opening().open_read_only(&args.store)?;
    let recording = store.recording(&args.recording)?;
    let mut from = EventId(0);
    loop {
        let found = recording.events(from, AT_ONCE)?;
        for event in &found {
            match output.is_json {
                true => output.message("event", event_fields(event))?,
                false => output.line(&event_line(event, times))?,
            }
        }
        match found.last().and_then(|last| last.id().next()) {
            Some(next) => from = next,
            None => return Ok(0),
        }
    }
}

/// Time, iteration, kind, value; and whether its history was taken back.
pub fn event_line(event: &Event, times: TimeFormat) -> String {
    let iteration = event.iteration().map_or("-".to_owned(), |at| at.to_string());
    let text = value_text(event.value());
    let taken_back = if event.stands() { "" } else { "\ttaken back" };
    let at = time(event.at(), times);
    format!("{at}\t{iteration}\t{}\t{}{taken_back}", shown(event.kind()), shown(&text))
}

/// The same for programs.
pub fn event_fields(event: &Event) -> Value {
    let form = match event.value() {
        EventValue::Text(_) => "text",
        EventValue::Json(_) => "json",
        _ => "hex",
    };
    json!({
        "event": event.id().0, "iteration": event.iteration(), "at_unix_nanos": event.at(),
        "kind": event.kind(), "form": form, "value": value_text(event.value()),
        "stands": event.stands(),
    })
}
