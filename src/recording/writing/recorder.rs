//! Recording one by one: each record goes through the journal, full chunks are sealed on the way.
//!
//! ```text
//!   append, observe ──▶ group (encoded once) ──▶ journal's queue, engine's tail
//!                                 └─ counted ──▶ tally ──[a full chunk]──▶ batch ──▶ rows
//! ```
//! One lock orders everything: recorder, then the engine's.

use std::cell::{RefCell, RefMut};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use super::admit::Insists;
use super::batch::Batch;
use super::checkpoint::CHECKPOINTS_KEPT;
use super::open_stream::{OpenStream, Sampled};
use super::recorded::Group;
use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, Value};
use crate::ids::RecordingId;
use crate::journal::Ticket;
use crate::recording::describing::Moment;
use crate::recording::keeping::Where;
use crate::recording::reading::History;

/// One record for [`Recorder::append_all`].
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// The stream, by its position in the order of declaration.
    pub stream: usize,
    /// Greater than every earlier one of this stream.
    pub iteration: i64,
    /// Where the schema is timed: finite, and no less than that of any earlier one of this stream.
    pub time: Option<f64>,
    /// As many as the stream has fields, in schema order.
    pub values: &'a [Value<'a>],
}

/// A running recording. Dropped, it makes durable what was accepted, and stays *running*:
/// [`Recorder::close`] does the same and tells what failed.
#[derive(Debug)]
pub struct Recorder {
    pub(super) store: Store,
    pub(super) id: RecordingId,
    pub(super) name: String,
    /// All fields, of which each stream has some or all.
    pub(super) schema: Schema,
    /// Absent once it has ended.
    pub(super) claim: Option<Claim>,
    /// What was sealed before it was resumed.
    pub(super) history: History,
    /// Reentrant, so that code of a caller that comes back is refused and does not wait for itself.
    state: ReentrantMutex<RefCell<State>>,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct State {
    pub streams: Vec<OpenStream>,
    pub batch: Batch,
    pub group: Group,
    /// The iteration that was observed last.
    pub observed: Option<i64>,
    /// Of what was accepted last.
    pub ticket: Option<Ticket>,
    /// How many checkpoints stay.
    pub checkpoints_kept: usize,
}

impl Recorder {
    pub(in crate::recording) fn new(
        store: Store,
        id: RecordingId,
        name: String,
        schema: Schema,
        claim: Claim,
        streams: Vec<OpenStream>,
        batch: Batch,
    ) -> Self {
        let observed = streams.iter().filter_map(|s| s.tally.last().map(|(at, _)| at)).max();
        let group = Group::default();
        let kept = CHECKPOINTS_KEPT;
        let state = State { streams, batch, group, observed, ticket: None, checkpoints_kept: kept };
        let (history, state) = (History::default(), ReentrantMutex::new(RefCell::new(state)));
        let claim = Some(claim);
        Self { store, id, name, schema, claim, history, state }
    }

    /// The same, of a recording that goes on behind the observation at `observed` and what lies
    /// before it.
    pub(in crate::recording) fn behind(mut self, observed: Option<i64>, history: History) -> Self {
        self.history = history;
        let state = self.state.get_mut().get_mut();
        state.observed = state.observed.max(observed);
        self
    }

    /// The recording's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position of the stream called `name`.
    pub fn stream(&self, name: &str) -> Option<usize> {
        let state = self.state.lock();
        let state = state.try_borrow().ok()?;
        state.streams.iter().position(|stream| stream.name == name)
    }

    /// Where the recording is: its last iteration, and the end of a stream that holds it.
    pub(super) fn here(&self) -> Result<Where> {
        self.locked("note", |state| {
            let last = |stream: &OpenStream| Some((stream.tally.last()?.0, stream.id));
            let Some((iteration, stream)) = state.streams.iter().filter_map(last).max() else {
                return Ok(Where::default());
            };
            Ok(Where { iteration: Some(iteration), anchor: self.store.cursor_of(stream) })
        })
    }

    /// Appends one record to one stream that is not timed.
    ///
    /// # Errors
    /// As [`Recorder::append_all`].
    ///
    /// # Durability
    /// None (*Accepted*): wait on the ticket, or call [`Recorder::barrier`].
    pub fn append(&self, stream: usize, iteration: i64, values: &[Value<'_>]) -> Result<Ticket> {
        self.append_all(&[NewRecord { stream, iteration, time: None, values }])
    }

    /// Appends records as one atomic group: after a crash all of them are there, or none.
    ///
    /// # Errors
    /// `Invalid` for an unknown stream, values that do not fit its schema, or an iteration that
    /// does not grow, with nothing accepted; `LimitExceeded`, at once, for a group above the queue;
    /// `QueueFull` and `TimedOut` as its streams' [`Overflow`](crate::recording::Overflow) wants it; `DiskFull`;
    /// `Halted`; what kept an earlier chunk from being published.
    ///
    /// # Durability
    /// None (*Accepted*): wait on the ticket, or call [`Recorder::barrier`].
    pub fn append_all(&self, records: &[NewRecord<'_>]) -> Result<Ticket> {
        let attempt = self.locked("append", |state| {
            let State { streams, group, .. } = &mut *state;
            for (at, record) in records.iter().enumerate() {
                let Some(stream) = streams.get(record.stream) else {
                    let cause = format!("there is no stream number {}", record.stream);
                    return Err(Error::invalid("append", format!("{:?}", self.name), cause));
                };
                stream.schema.check_row(record.values).map_err(|e| {
                    let cause = format!("{}: {}", e.place(), e.cause());
                    Error::new(e.kind(), "append", format!("stream {:?}", stream.name), cause)
                })?;
                let now = Moment { iteration: record.iteration, time: record.time };
                let before = records[..at].iter().rev().find(|r| r.stream == record.stream);
                let before = before.map(|r| Moment { iteration: r.iteration, time: r.time });
                stream.check_order(now, before)?;
                let sampled = Sampled::default();
                group.encode(record.stream, stream, now, sampled, |at, field, row, bytes| {
                    row.push(field, record.values.get(at).unwrap_or(&Value::Missing), bytes);
                    Ok(())
                })?;
            }
            self.attempt(state, Insists::No)
        })?;
        self.settle("append", attempt, Insists::No)
    }

    /// Runs `work` with everything in its hands; what it collected is forgotten at its end.
    pub(super) fn locked<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        let guard: ReentrantMutexGuard<'_, _> = self.state.lock();
        let mut state: RefMut<'_, State> = guard.try_borrow_mut().map_err(|_| {
            let cause = "it is used from within an observation of it";
            Error::invalid(operation, format!("{:?}", self.name), cause)
        })?;
        // Also what a panic in a caller's code left there.
        state.group.clear();
        let done = work(&mut state);
        state.group.clear();
        done
    }

    pub(super) fn publish(&self, state: &mut State) -> Result<()> {
        let State { streams, batch, .. } = state;
        batch.publish(&self.store, streams).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                let cause = "it was retired meanwhile";
                Error::new(ErrorKind::Conflict, "seal", format!("{:?}", self.name), cause)
                    .with_source(e)
            }
            _ => e,
        })
    }

    /// Seals and publishes all records at hand.
    pub(super) fn seal(&self) -> Result<()> {
        self.locked("seal", |state| {
            for position in 0..state.streams.len() {
                let span = state.streams.get_mut(position).and_then(|s| s.tally.cut());
                if let Some(span) = span {
                    state.batch.push(position, span);
                }
                if state.batch.is_due() {
                    self.publish(state)?;
                }
            }
            self.publish(state)
        })
    }
}
