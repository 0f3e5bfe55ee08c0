//! Records as values of the caller's own type, one after the other, in bounded memory.

use std::fmt;
use std::ops::Range;

use super::decoders::{Bound, Decoders};
use super::reader::Recording;
use super::records::Records;
use super::stream::Stream;
use crate::error::Result;

/// Decoded values that are in memory at a time, about.
const HELD_BYTES: u64 = 8 << 20;

/// A record as a value of the caller's own type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decoded<S> {
    /// Its iteration.
    pub iteration: i64,
    /// Its time, where the stream has times.
    pub time: Option<f64>,
    /// What its values made.
    pub state: S,
}

/// Records as states, in order. The first error ends it.
pub struct States<'s, S, F> {
    stream: &'s Stream,
    of: String,
    decoders: Bound<'s, S>,
    make: F,
    records: Option<Records<'s>>,
}

impl<S, F> fmt::Debug for States<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Recording {
    /// The stream called `name`, if each of its fields has a decoder: that is found out before any
    /// file is opened.
    ///
    /// # Errors
    /// `Invalid`, with the fields that have no decoder; as [`Recording::stream`].
    pub fn stream_for<S>(&self, name: &str, decoders: &Decoders<S>) -> Result<Stream> {
        decoders.check(&self.stream_schema(name)?)?;
        self.stream(name)
    }
}

impl Stream {
    /// All records as values of type `S`: each begins as what `make` gives, and every field's
    /// decoder adds its value.
    ///
    /// # Errors
    /// `Invalid`, with the fields that have no decoder.
    pub fn states<'s, S, F: Fn() -> S>(
        &'s self,
        decoders: &'s Decoders<S>,
        make: F,
    ) -> Result<States<'s, S, F>> {
        let bound = decoders.bind(self.schema())?;
        let of = format!("stream {:?}", self.name());
        let states = States { stream: self, of, decoders: bound, make, records: None };
        Ok(states.records(0..self.record_count()))
    }
}

impl<S, F: Fn() -> S> States<'_, S, F> {
    /// Only these records, as far as they are there, from the first of them on.
    #[must_use]
    pub fn records(mut self, records: Range<u64>) -> Self {
        let fields = (0..self.stream.schema().fields().len()).collect();
        self.records = Some(self.stream.records(fields, records, HELD_BYTES));
        self
    }

    /// Only the records whose iterations lie in this range.
    ///
    /// # Errors
    /// `Damage` when they cannot be found.
    pub fn iterations(self, iterations: Range<i64>) -> Result<Self> {
        let records = self.stream.records_of(iterations)?;
        Ok(self.records(records))
    }

    /// Only the records whose times lie in this range.
    ///
    /// # Errors
    /// `NotFound` where its records have no time; `Damage` when they cannot be found.
    pub fn times(self, times: Range<f64>) -> Result<Self> {
        let records = self.stream.records_between_times(times)?;
        Ok(self.records(records))
    }

    fn decode_next(&mut self) -> Result<Option<Decoded<S>>> {
        let Some(records) = &mut self.records else { return Ok(None) };
        if !records.advance()? {
            return Ok(None);
        }
        let (iteration, time) = (records.iteration(), records.time());
        let mut state = (self.make)();
        self.decoders.decode(&self.of, iteration, |at| records.get(at), &mut state)?;
        Ok(Some(Decoded { iteration, time, state }))
    }
}

impl<S, F: Fn() -> S> Iterator for States<'_, S, F> {
    type Item = Result<Decoded<S>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.decode_next();
        if next.is_err() {
            self.records = None;
        }
        next.transpose()
    }
}
