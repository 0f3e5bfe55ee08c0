//! Diff: where two recordings begin to differ. Chunks with the same digest are equal and are not
//! read; all others are compared record by record, wherever chunks end in either.

use std::collections::BTreeMap;
use std::fmt;

use super::reader::Recording;
use super::run::Run;
use super::stream::Stream;
use crate::digest::Digest;
use crate::engine::Store;
use crate::error::Result;
use crate::format::column::{Field, Schema, Value};
use crate::manifest::{ChunkRow, ObjectRow, Reading};
use crate::protection::Protection;

/// How one recording differs from another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Only one of them has a stream of this name.
    Stream {
        /// The stream.
        stream: String,
        /// Whether it is the first recording that has it.
        is_in_first: bool,
    },
    /// A stream has other fields.
    Schema {
        /// The stream.
        stream: String,
        /// What differs.
        what: String,
    },
    /// One of them has more records of a stream, and all before are equal.
    Length {
        /// The stream.
        stream: String,
        /// The iteration of the first record that only one of them has.
        iteration: i64,
        /// How many records each has.
        records: (u64, u64),
    },
    /// A record is of another iteration, or of another time.
    Moment {
        /// The stream.
        stream: String,
        /// The record, from 0.
        record: u64,
        /// The lesser of both iterations.
        iteration: i64,
        /// Both, as text.
        values: (String, String),
    },
    /// A field has another value.
    Value {
        /// The stream.
        stream: String,
        /// The iteration.
        iteration: i64,
        /// The field.
        field: String,
        /// Which element, where it is an array of the same shape in both.
        element: Option<usize>,
        /// Both, as text.
        values: (String, String),
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { stream, is_in_first } => {
                let which = if *is_in_first { "first" } else { "second" };
                write!(f, "only the {which} has a stream {stream:?}")
            }
            Self::Schema { stream, what } => write!(f, "stream {stream:?}: {what}"),
            Self::Length { stream, iteration, records: (one, other) } => {
                write!(
                    f,
                    "stream {stream:?}: {one} and {other} records, from iteration {iteration} on"
                )
            }
            Self::Moment { stream, record, values: (one, other), .. } => {
                write!(f, "stream {stream:?} record {record}: {one} and {other}")
            }
            Self::Value { stream, iteration, field, element, values: (one, other) } => {
                write!(f, "stream {stream:?} iteration {iteration} field {field:?}")?;
                if let Some(element) = element {
                    write!(f, " element {element}")?;
                }
                write!(f, ": {one} and {other}")
            }
        }
    }
}

/// What a comparison of two recordings found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// Streams that only one has, and streams with other fields; then, of all streams that both
    /// have with the same fields, the difference at the least iteration. Empty where they are equal.
    pub differences: Vec<Difference>,
    /// Records that were decoded and compared.
    pub records_compared: u64,
    /// Records that were known to be equal by the digests of their chunks.
    pub records_known_equal: u64,
}

impl Diff {
    /// Whether both hold the same.
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }
}

impl Store {
    /// Where the recordings called `one` and `other` begin to differ. Names, statuses and metadata
    /// are not compared; values are equal bit for bit or not at all.
    ///
    /// # Errors
    /// As [`Store::recording`] and [`Recording::streams`].
    pub fn diff(&self, one: &str, other: &str) -> Result<Diff> {
        self.recording(one)?.diff(&self.recording(other)?)
    }
}

impl Recording {
    /// As [`Store::diff`], also with a recording of another store.
    ///
    /// # Errors
    /// As there.
    pub fn diff(&self, other: &Recording) -> Result<Diff> {
        let mut diff =
            Diff { differences: Vec::new(), records_compared: 0, records_known_equal: 0 };
        let (ones, others) = (self.streams()?, other.streams()?);
        let only = |stream: &Stream, is_in_first| {
            let stream = stream.name().to_owned();
            Difference::Stream { stream, is_in_first }
        };
        let by_name = |streams: &[Stream]| -> BTreeMap<String, usize> {
            let names = streams.iter().enumerate();
            names.map(|(at, stream)| (stream.name().to_owned(), at)).collect()
        };
        let (ones_at, others_at) = (by_name(&ones), by_name(&others));
        let mut first: Option<(i64, Difference)> = None;
        for one in &ones {
            let Some(other) = others_at.get(one.name()).and_then(|at| others.get(*at)) else {
                diff.differences.push(only(one, true));
                continue;
            };
            if let Some(what) = schemas(one.schema(), other.schema()) {
                let stream = one.name().to_owned();
                diff.differences.push(Difference::Schema { stream, what });
                continue;
            }
            let found = Pair { one, other, diff: &mut diff }.first_difference()?;
            if let Some((iteration, found)) = found
                && first.as_ref().is_none_or(|(least, _)| iteration < *least)
            {
                first = Some((iteration, found));
            }
        }
        let names = |other: &&Stream| !ones_at.contains_key(other.name());
        diff.differences.extend(others.iter().filter(names).map(|other| only(other, false)));
        diff.differences.extend(first.map(|(_, difference)| difference));
        Ok(diff)
    }
}

/// How two schemas differ, in words.
pub(super) fn schemas(one: &Schema, other: &Schema) -> Option<String> {
    // An opaque type that moved has another name, and the same values.
    let is_same = |one: &Field, other: &Field| {
        let print = |field: &Field| field.opaque.as_ref().map(|opaque| opaque.fingerprint);
        let unnamed = |field: &Field| Field { opaque: None, ..field.clone() };
        one == other || (print(one) == print(other) && unnamed(one) == unnamed(other))
    };
    let (fields, others) = (one.fields(), other.fields());
    let are_same = || fields.iter().zip(others).all(|(one, other)| is_same(one, other));
    if one.is_timed() == other.is_timed() && fields.len() == others.len() && are_same() {
        return None;
    }
    if one.is_timed() != other.is_timed() {
        let which = if one.is_timed() { "first" } else { "second" };
        return Some(format!("only the records of the {which} have a time"));
    }
    for field in one.fields() {
        match other.position(&field.name).and_then(|at| other.fields().get(at)) {
            None => return Some(format!("only the first has a field {:?}", field.name)),
            Some(found) if !is_same(found, field) => {
                let (a, b) = (field.kind(), found.kind());
                return Some(match a == b {
                    true => format!("field {:?} is described otherwise", field.name),
                    false => format!("field {:?} is {a} and {b}", field.name),
                });
            }
            Some(_) => {}
        }
    }
    let more = other.fields().iter().find(|field| one.position(&field.name).is_none());
    Some(match more {
        Some(field) => format!("only the second has a field {:?}", field.name),
        None => "the fields stand in another order".to_owned(),
    })
}

/// A stream in both recordings.
struct Pair<'p> {
    one: &'p Stream,
    other: &'p Stream,
    diff: &'p mut Diff,
}

impl Pair<'_> {
    /// The first difference, with its iteration.
    fn first_difference(&mut self) -> Result<Option<(i64, Difference)>> {
        let (records, other_records) = (self.one.record_count(), self.other.record_count());
        let both = records.min(other_records);
        let mut record = 0;
        while record < both {
            let (here, there) = (at(self.one, record)?, at(self.other, record)?);
            if let Some(equal) = self.equal_chunk(&here, &there, record)? {
                let upto = record.saturating_add(equal).min(both);
                self.diff.records_known_equal += upto - record;
                record = upto;
                continue;
            }
            let upto = here.1.min(there.1).min(both);
            let (one, other) = (self.one.run(record..upto)?, self.other.run(record..upto)?);
            self.diff.records_compared += upto - record;
            if let Some(found) = self.compare(&one, &other) {
                return Ok(Some(found));
            }
            record = upto;
        }
        if records == other_records {
            return Ok(None);
        }
        let longer = if records > other_records { self.one } else { self.other };
        let column = longer.iteration().records(both..both + 1).to_column()?;
        let iteration = column.as_i64().and_then(|values| values.first().copied());
        let iteration = iteration.unwrap_or(i64::MAX);
        let stream = self.one.name().to_owned();
        let records = (records, other_records);
        Ok(Some((iteration, Difference::Length { stream, iteration, records })))
    }

    /// How many records from `record` on are equal since they lie at the beginning of chunks with the
    /// same digest; none where that is not known.
    fn equal_chunk(&self, here: &Place, there: &Place, record: u64) -> Result<Option<u64>> {
        let (Some(here), Some(there)) = (&here.0, &there.0) else { return Ok(None) };
        if here.first.0 != record || there.first.0 != record {
            return Ok(None);
        }
        if digest(self.one, here)? != digest(self.other, there)? {
            return Ok(None);
        }
        // Of a chunk that was cut fewer records count than lie in it.
        Ok(Some(match Protection::DiffCut.is_on() {
            true => here.records.min(there.records),
            false => here.records_written.max(there.records_written),
        }))
    }

    fn compare(&self, one: &Run, other: &Run) -> Option<(i64, Difference)> {
        let stream = || self.one.name().to_owned();
        for at in 0..one.iterations.len() {
            let (iteration, time) = moment(one, at);
            let (other_iteration, other_time) = moment(other, at);
            let same_time = match (&time, &other_time) {
                (Some(one), Some(other)) => one.same(other),
                _ => true,
            };
            if iteration != other_iteration || !same_time {
                let shown = |iteration: i64, time: Option<Value<'_>>| match time {
                    Some(time) => format!("iteration {iteration} time {}", show(&time)),
                    None => format!("iteration {iteration}"),
                };
                let values = (shown(iteration, time), shown(other_iteration, other_time));
                let (iteration, record) =
                    (iteration.min(other_iteration), one.records.start + at as u64);
                let stream = stream();
                return Some((iteration, Difference::Moment { stream, record, iteration, values }));
            }
            let fields = self.one.schema().fields().iter();
            for (field, (a, b)) in fields.zip(one.columns.iter().zip(&other.columns)) {
                let (a, b) = (a.get(at), b.get(at));
                let equal = match Protection::DiffBits.is_on() {
                    true => a.same(&b),
                    false => a == b,
                };
                if !equal {
                    let (element, values) = unequal(&a, &b);
                    let (stream, field) = (stream(), field.name.clone());
                    let found = Difference::Value { stream, iteration, field, element, values };
                    return Some((iteration, found));
                }
            }
        }
        None
    }
}

/// Iteration and time of a record.
fn moment(run: &Run, at: usize) -> (i64, Option<Value<'_>>) {
    let iteration = match run.iterations.get(at) {
        Value::I64(iteration) => iteration,
        _ => 0,
    };
    (iteration, run.times.as_ref().map(|times| times.get(at)))
}

/// The chunk that holds a record, if it is sealed, and the end of its records.
type Place = (Option<ChunkRow>, u64);

fn at(stream: &Stream, record: u64) -> Result<Place> {
    Ok(match stream.chunk_of(record)? {
        Some(at) => {
            let chunk = stream.chunks.get(at)?;
            let end = chunk.first.0.saturating_add(chunk.records);
            (Some(chunk), end)
        }
        None => (None, stream.record_count()),
    })
}

fn digest(stream: &Stream, chunk: &ChunkRow) -> Result<Digest> {
    Ok(stream.store.snapshot()?.require::<ObjectRow>(&chunk.object)?.digest)
}

/// Which element differs, and both as text.
fn unequal(one: &Value<'_>, other: &Value<'_>) -> (Option<usize>, (String, String)) {
    if let (Value::Array(a), Value::Array(b)) = (one, other)
        && a.axes() == b.axes()
    {
        let (a, b) = (a.elements(), b.elements());
        for (at, (a, b)) in a.iter().zip(b.iter()).enumerate() {
            if !a.same(&b) {
                return (Some(at), (show(&a), show(&b)));
            }
        }
    }
    (None, (show(one), show(other)))
}

/// The most of a value that is shown.
const SHOWN_CHARS: usize = 80;

fn show(value: &Value<'_>) -> String {
    let shown = match value {
        Value::Missing => "missing".to_owned(),
        Value::F64(v) if v.is_nan() => format!("NaN ({:#018x})", v.to_bits()),
        Value::F32(v) if v.is_nan() => format!("NaN ({:#010x})", v.to_bits()),
        Value::Array(array) => format!("an array of {:?}", array.axes()),
        Value::Bytes(bytes) | Value::Opaque(bytes) => format!("{} bytes", bytes.len()),
        Value::String(text) | Value::Json(text) => {
            format!("{:?}", text.chars().take(SHOWN_CHARS).collect::<String>())
        }
        Value::Bool(v) => v.to_string(),
        Value::F64(v) => format!("{v:?}"),
        Value::F32(v) => format!("{v:?}"),
        Value::I8(v) => v.to_string(),
        Value::I16(v) => v.to_string(),
        Value::I32(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::U8(v) => v.to_string(),
        Value::U16(v) => v.to_string(),
        Value::U32(v) => v.to_string(),
        Value::U64(v) => v.to_string(),
    };
    shown.chars().take(SHOWN_CHARS).collect()
}
