//! What two descriptions of one recording differ in, in words. Only what changes the meaning of records
//! counts: the time axis, the fields, the streams, and what each of them records.

use std::collections::BTreeMap;

use super::axis::TimeAxis;
use super::every::Sampling;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Field, Schema};
use crate::protection::Protection;

/// What the records of a recording mean.
#[derive(Debug, Clone)]
pub(in crate::recording) struct Settings {
    pub axis: TimeAxis,
    pub schema: Schema,
    /// By position.
    pub streams: Vec<StreamSettings>,
}

/// Of one stream.
#[derive(Debug, Clone)]
pub(in crate::recording) struct StreamSettings {
    pub name: String,
    pub schema: Schema,
    pub sampling: Sampling,
}

/// Whether a run that is `wanted` can go on with a recording that is `stored`.
///
/// # Errors
/// `Conflict`, with every difference.
pub(in crate::recording) fn check_same(
    name: &str,
    stored: &Settings,
    wanted: &Settings,
) -> Result<()> {
    let found = differences(stored, wanted);
    if found.is_empty() || !Protection::SettingsCompared.is_on() {
        return Ok(());
    }
    let cause = format!("it was recorded otherwise: {}", found.join("; "));
    Err(Error::new(ErrorKind::Conflict, "resume", format!("{name:?}"), cause))
}

fn differences(stored: &Settings, wanted: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    axes(&stored.axis, &wanted.axis, &mut found);
    fields("", &stored.schema, &wanted.schema, &mut found);
    let by_name = |settings: &Settings| -> BTreeMap<String, usize> {
        let names = settings.streams.iter().enumerate();
        names.map(|(at, stream)| (stream.name.clone(), at)).collect()
    };
    let names = |settings: &Settings| -> Vec<String> {
        settings.streams.iter().map(|stream| stream.name.clone()).collect()
    };
    let (had_at, wants_at) = (by_name(stored), by_name(wanted));
    let (had, wants) = (names(stored), names(wanted));
    for name in had.iter().filter(|name| !wants_at.contains_key(*name)) {
        found.push(format!("stream {name:?} is not asked for"));
    }
    for name in wants.iter().filter(|name| !had_at.contains_key(*name)) {
        found.push(format!("it has no stream {name:?}"));
    }
    let kept = |all: &[String], other: &BTreeMap<String, usize>| -> Vec<String> {
        all.iter().filter(|name| other.contains_key(*name)).cloned().collect()
    };
    if kept(&had, &wants_at) != kept(&wants, &had_at) {
        found.push(format!("its streams are in the order {}", listed(&had)));
    }
    for stored in &stored.streams {
        let Some(wanted) = wants_at.get(&stored.name).and_then(|at| wanted.streams.get(*at)) else {
            continue;
        };
        let of = format!("stream {:?}: ", stored.name);
        fields(&of, &stored.schema, &wanted.schema, &mut found);
        if stored.sampling != wanted.sampling {
            let (was, now) = (rule(&stored.sampling), rule(&wanted.sampling));
            found.push(format!("{of}it records {was}, not {now}"));
        }
    }
    found
}

fn axes(stored: &TimeAxis, wanted: &TimeAxis, found: &mut Vec<String>) {
    let mut differ = |what: &str, was: Option<&str>, now: Option<&str>| {
        if was.unwrap_or_default() != now.unwrap_or_default() {
            let text = |text: Option<&str>| match text {
                Some(text) if !text.is_empty() => format!("{text:?}"),
                _ => "nothing".to_owned(),
            };
            found.push(format!("time axis: {what} is {}, not {}", text(was), text(now)));
        }
    };
    let names = [stored, wanted].map(|axis| Some(axis.iteration_name()));
    differ("the name of iterations", names[0], names[1]);
    let units = [stored, wanted].map(|axis| Some(axis.iteration_unit()));
    differ("the unit of iterations", units[0], units[1]);
    differ("the name of physical time", stored.time_name(), wanted.time_name());
    differ("the unit of physical time", stored.time_unit(), wanted.time_unit());
}

fn fields(of: &str, stored: &Schema, wanted: &Schema, found: &mut Vec<String>) {
    if of.is_empty() && stored.is_timed() != wanted.is_timed() {
        let text = |timed: bool| if timed { "have a physical time" } else { "have none" };
        let (was, now) = (text(stored.is_timed()), text(wanted.is_timed()));
        found.push(format!("its records {was}, those asked for {now}"));
    }
    let by_name = |schema: &Schema| -> BTreeMap<String, Field> {
        let fields = schema.fields().iter();
        fields.map(|field| (field.name.clone(), field.clone())).collect()
    };
    let (had, wants) = (by_name(stored), by_name(wanted));
    for field in stored.fields() {
        match wants.get(&field.name) {
            None => found.push(format!("{of}field {:?} is not asked for", field.name)),
            Some(other) if !is_same(field, other) => {
                let (was, now) = (form(field), form(other));
                found.push(format!("{of}field {:?} is {was}, not {now}", field.name));
            }
            Some(_) => {}
        }
    }
    for field in wanted.fields() {
        if !had.contains_key(&field.name) {
            found.push(format!("{of}it has no field {:?}", field.name));
        }
    }
    // What is found above says more than the order does.
    if found.is_empty() {
        let names = |schema: &Schema| -> Vec<String> {
            schema.fields().iter().map(|field| field.name.clone()).collect()
        };
        if names(stored) != names(wanted) {
            found.push(format!("{of}its fields are in the order {}", listed(&names(stored))));
        }
    }
}

/// A description may be written better, and an opaque type may move; all else says what the values
/// are.
fn is_same(stored: &Field, wanted: &Field) -> bool {
    let parts = |field: &Field| {
        let print = field.opaque.as_ref().map(|opaque| opaque.fingerprint);
        (field.ty, field.nullable, field.shape.clone(), print)
    };
    parts(stored) == parts(wanted) && unit(stored) == unit(wanted)
}

fn unit(field: &Field) -> Option<&str> {
    field.labels.iter().find(|(key, _)| key == "unit").map(|(_, text)| text.as_str())
}

fn form(field: &Field) -> String {
    let mut text = field.kind();
    if let Some(opaque) = &field.opaque {
        text.push_str(&format!(" {opaque:?}"));
    }
    if field.nullable {
        text.push_str(" that may be missing");
    }
    if let Some(unit) = unit(field) {
        text.push_str(&format!(" in {unit:?}"));
    }
    text
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// What a stream records, in words.
pub(super) fn rule(sampling: &Sampling) -> String {
    match sampling {
        Sampling::All => "every observation".to_owned(),
        Sampling::Iterations(interval) => format!("every {interval} iterations"),
        Sampling::Time(interval) => format!("every {interval} of physical time"),
        Sampling::Wall(nanos) => {
            format!("every {:?} of wall-clock time", std::time::Duration::from_nanos(*nanos))
        }
        Sampling::ChangeOf(field) => format!("changes of {field:?}"),
        Sampling::Predicate => "what a predicate picks".to_owned(),
    }
}
