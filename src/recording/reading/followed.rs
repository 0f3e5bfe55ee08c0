//! What a follower is told.

use std::sync::Arc;

use super::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, Value, row_payload};
use crate::manifest::RecordingStatus;
use crate::recording::keeping::Event;

/// One thing that happened to a recording that is followed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Followed {
    /// A record came to the end of a stream.
    Appended {
        /// The stream's name.
        stream: Arc<str>,
        /// The record.
        record: FollowedRecord,
    },
    /// Records that were told before lie in chunks now.
    Sealed {
        /// The stream's name.
        stream: Arc<str>,
        /// All below this.
        upto: u64,
    },
    /// The end of a stream was moved back: what was told from there on does not count any more, and
    /// what follows takes its place.
    Rewound {
        /// The stream's name.
        stream: Arc<str>,
        /// The next record of it will have this sequence.
        to: u64,
    },
    /// An event or a note.
    Event(Event),
    /// The recording has ended, and all of it was told: this follow is over. A recording that is
    /// resumed later goes on; [`PausedFollow::over`](crate::recording::PausedFollow::over) looks again.
    Ended(RecordingStatus),
}

/// A record as a follower is given it, whole and its own.
#[derive(Debug, Clone)]
pub struct FollowedRecord {
    schema: Arc<Schema>,
    sequence: u64,
    iteration: i64,
    time: Option<f64>,
    payload: Arc<[u8]>,
}

impl FollowedRecord {
    /// Takes a record in its row-wise form; nothing of it is shown before all of it decodes.
    pub(super) fn new(
        stream: &str,
        schema: &Arc<Schema>,
        sequence: u64,
        payload: Arc<[u8]>,
    ) -> Result<Self> {
        let mut values = Vec::new();
        let (iteration, time) =
            row_payload::decode(schema, &payload, &mut values).map_err(|e| {
                let place = format!("stream {stream:?} record {sequence}");
                Error::new(e.kind(), "follow", place, e.cause()).with_source(e)
            })?;
        drop(values);
        Ok(Self { schema: Arc::clone(schema), sequence, iteration, time, payload })
    }

    /// Its position in its stream, from 0.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Its iteration.
    pub fn iteration(&self) -> i64 {
        self.iteration
    }

    /// Its physical time, where the schema is timed.
    pub fn time(&self) -> Option<f64> {
        self.time
    }

    /// The fields of its stream.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Its values, in the order of the schema.
    pub fn values(&self) -> Vec<Value<'_>> {
        let mut values = Vec::new();
        // It decoded when it was made.
        match row_payload::decode(&self.schema, &self.payload, &mut values) {
            Ok(_) => values,
            Err(_) => Vec::new(),
        }
    }

    /// The value of the field called `name`; `None` when the stream has no such field.
    pub fn value(&self, name: &str) -> Option<Value<'_>> {
        let at = self.schema.position(name)?;
        self.values().get(at).copied()
    }

    /// The value of the field called `name`, as a Rust type.
    ///
    /// # Errors
    /// `NotFound`, `TypeMismatch`.
    pub fn get<T: Element>(&self, name: &str) -> Result<T> {
        let place = || format!("record {} field {name:?}", self.sequence);
        let Some(field) = self.schema.position(name).and_then(|at| self.schema.fields().get(at))
        else {
            let cause = "the stream has no such field";
            return Err(Error::new(ErrorKind::NotFound, "follow", place(), cause));
        };
        T::check(field)?;
        let value = self.value(name).unwrap_or(Value::Missing);
        let found = value.field_type().map_or("missing", |ty| ty.name());
        T::from_value(value).ok_or_else(|| {
            let cause = format!("it is {found}, not {}", T::NAME);
            Error::new(ErrorKind::TypeMismatch, "follow", place(), cause)
        })
    }
}
