//! Observing: which streams are due, and their records of a state, encoded once and accepted as one
//! group. A stream that is not due costs nothing; one that has the iteration is left as it is.

use super::admit::{Insists, check_observed};
use super::observable::{Cell, Observable, ValueMap};
use super::open_stream::{OpenStream, Sampled};
use super::recorded::Group;
use super::recorder::{Recorder, State};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::format::column::{Field, Value, push_alone};
use crate::journal::Ticket;
use crate::recording::describing::{Due, Moment};

/// Gives the value of the field of a name.
type Give<'g> = &'g mut dyn FnMut(&str, &mut Cell<'_>) -> Result<()>;

/// Which streams an observation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// Those that are due.
    Due,
    /// All that lack its iteration.
    All,
}

impl Recorder {
    /// Records `state` in every stream that is due, as one atomic group. A stream that has its
    /// iteration already is left as it is.
    ///
    /// # Errors
    /// `Invalid` for an iteration below the last one, a time that is none where records have one,
    /// whether a stream is due or not, a missing value or one that does not fit, naming stream,
    /// iteration and field; what the state returned, with its source; as
    /// [`Recorder::append_all`]. Nothing is accepted then.
    ///
    /// # Durability
    /// None (*Accepted*): wait on the ticket, or call [`Recorder::barrier`]. Where nothing was due
    /// the ticket is of what was accepted last.
    pub fn observe<S: Observable + ?Sized>(&self, state: &S) -> Result<Ticket> {
        self.observe_with(state.iteration(), state.time(), |name, to| state.field(name, to))
    }

    /// As [`Recorder::observe`], with the values of fields given by `field`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub fn observe_with(
        &self,
        iteration: i64,
        time: Option<f64>,
        mut field: impl FnMut(&str, &mut Cell<'_>) -> Result<()>,
    ) -> Result<Ticket> {
        self.observe_for(For::Due, Moment { iteration, time }, &mut field)
    }

    /// As [`Recorder::observe`], with the values under the names of fields. Others are not looked at.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub fn observe_map<M: ValueMap + ?Sized>(
        &self,
        iteration: i64,
        time: Option<f64>,
        map: &M,
    ) -> Result<Ticket> {
        self.observe_with(iteration, time, |name, to| match map.value(name) {
            Some(value) => to.put(value),
            None => Ok(()),
        })
    }

    pub(super) fn observe_for(&self, whom: For, now: Moment, give: Give<'_>) -> Result<Ticket> {
        let insists = if whom == For::All { Insists::Yes } else { Insists::No };
        let attempt = self.locked("observe", |state| {
            check_observed(Some(now.iteration), state.observed)
                .map_err(|cause| Error::invalid("observe", format!("{:?}", self.name), cause))?;
            let clock = || self.store.monotonic_nanos();
            let State { streams, group, .. } = &mut *state;
            for (position, stream) in streams.iter().enumerate() {
                if let Some(sampled) = sampled(whom, stream, now, clock, &mut group.bytes, give)? {
                    stream.check_order(now, None).map_err(|e| {
                        let place = format!("stream {:?} iteration {}", stream.name, now.iteration);
                        e.told_of("observe", place)
                    })?;
                    record(group, position, stream, now, sampled, give)?;
                }
            }
            group.observed = Some(now.iteration);
            self.attempt(state, insists)
        })?;
        self.settle("observe", attempt, insists)
    }
}

/// Names a value as a watched field sees it.
pub(in crate::recording) fn digest_of(field: &Field, value: &Value<'_>) -> Digest {
    let mut bytes = Vec::new();
    push_alone(field, value, &mut bytes);
    Digest::of(&bytes)
}

/// Whether the stream records the observation, and what its rule keeps of it.
fn sampled(
    whom: For,
    stream: &OpenStream,
    now: Moment,
    clock: impl Fn() -> u64,
    bytes: &mut Vec<u8>,
    give: Give<'_>,
) -> Result<Option<Sampled>> {
    if stream.last().is_some_and(|(last, _)| last == now.iteration) {
        return Ok(None);
    }
    stream.check_time(now).map_err(|e| {
        e.told_of("observe", format!("stream {:?} iteration {}", stream.name, now.iteration))
    })?;
    let mut nanos = None;
    let due = stream.due(now, &mut || *nanos.get_or_insert_with(&clock));
    let mut seen = None;
    if let Some(field) = stream.watched.as_ref().filter(|_| due == Due::IfChanged) {
        let start = bytes.len();
        let mut cell = Cell::new(field, bytes, None);
        let given = give(&field.name, &mut cell).and_then(|()| cell.finish());
        given.map_err(|e| told(stream, now, field, e))?;
        seen = Some(Digest::of(bytes.get(start..).unwrap_or_default()));
        bytes.truncate(start);
    }
    let is_due = match due {
        Due::Yes => true,
        Due::No => false,
        Due::IfChanged => seen.is_some_and(|seen| stream.has_changed(seen)),
    };
    if !is_due && whom == For::Due {
        return Ok(None);
    }
    let taken_nanos = stream.every.is_by_wall().then(|| nanos.unwrap_or_else(clock));
    Ok(Some(Sampled { seen, taken_nanos }))
}

fn record(
    group: &mut Group,
    position: usize,
    stream: &OpenStream,
    now: Moment,
    sampled: Sampled,
    give: Give<'_>,
) -> Result<()> {
    group.encode(position, stream, now, sampled, |_, field, row, bytes| {
        let mut cell = Cell::new(field, bytes, Some(row));
        let given = give(&field.name, &mut cell).and_then(|()| cell.finish());
        given.map_err(|e| told(stream, now, field, e))
    })
}

/// The error with the place that only the recorder knows.
fn told(stream: &OpenStream, now: Moment, field: &Field, e: Error) -> Error {
    let (stream, iteration, field) = (&stream.name, now.iteration, &field.name);
    e.told_of("observe", format!("stream {stream:?} iteration {iteration} field {field:?}"))
}
