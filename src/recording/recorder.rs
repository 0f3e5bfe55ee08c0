//! Recording one by one: each record goes through the journal, full chunks are sealed on the way.
//!
//! ```text
//!   append, observe ──▶ group (encoded once) ──▶ journal's queue, engine's tail
//!                                 └─ counted ──▶ tally ──[a full chunk]──▶ batch ──▶ rows
//! ```
//! One lock orders everything: recorder, then the engine's.

use std::cell::{RefCell, RefMut};

use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use super::batch::Batch;
use super::checkpoint::CHECKPOINTS_KEPT;
use super::draft::check_name;
use super::events::Where;
use super::every::Moment;
use super::history::History;
use super::observable::Observable;
use super::observe::For;
use super::open_stream::{OpenStream, Sampled};
use super::recorded::Group;
use super::status::set_status;
use crate::engine::{Claim, Store, Waiting};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, Value};
use crate::ids::RecordingId;
use crate::journal::{Level, Ticket};
use crate::manifest::RecordingStatus;
use crate::protection::Protection;

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

/// A running recording. Dropped, it stays *running*, and what was accepted is kept.
#[derive(Debug)]
pub struct Recorder {
    pub(super) store: Store,
    pub(super) id: RecordingId,
    pub(super) name: String,
    /// All fields, of which each stream has some or all.
    pub(super) schema: Schema,
    pub(super) claim: Claim,
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
    pub(super) fn new(
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
        Self { store, id, name, schema, claim, history, state }
    }

    /// The same, of a recording that goes on behind the observation at `observed` and what lies
    /// before it.
    pub(super) fn behind(mut self, observed: Option<i64>, history: History) -> Self {
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
    /// does not grow, with nothing accepted; `LimitExceeded` for a group above the queue;
    /// `DiskFull`; `Halted`; what kept an earlier chunk from being published.
    ///
    /// # Durability
    /// None (*Accepted*): wait on the ticket, or call [`Recorder::barrier`].
    pub fn append_all(&self, records: &[NewRecord<'_>]) -> Result<Ticket> {
        self.locked("append", |state| {
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
            self.accept(state)
        })
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

    /// Accepts what was collected, as one group, and counts it.
    pub(super) fn accept(&self, state: &mut State) -> Result<Ticket> {
        // Full chunks that could not be published hold memory: nothing more before they are.
        if state.batch.is_due() {
            self.publish(state)?;
        }
        let State { streams, batch, group, .. } = &mut *state;
        // P1: one frame for all of them. The mutant makes one of each.
        let frame = if Protection::ObservationWhole.is_on() { group.parts.len() } else { 1 };
        let mut ticket = None;
        for parts in group.parts.chunks(frame.max(1)) {
            ticket = Some(self.store.append_parts(&group.bytes, parts)?);
        }
        let ticket = ticket.map_or_else(|| self.store.ticket_of_nothing(), Ok)?;
        for recorded in &group.records {
            let Some(stream) = streams.get_mut(recorded.stream) else { continue };
            if let Some(span) = stream.count(recorded) {
                batch.push(recorded.stream, span);
            }
        }
        state.ticket = Some(ticket.clone());
        // The records are accepted whatever becomes of the chunks; the next call tries again.
        if state.batch.is_due() {
            let _ = self.publish(state);
        }
        Ok(ticket)
    }

    fn publish(&self, state: &mut State) -> Result<()> {
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

    /// Waits until the records behind `ticket` reached `level`.
    ///
    /// # Errors
    /// `Io`, `DiskFull`; `OutcomeUnknown` when a sync failed: the store has halted.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut.
    pub fn wait(&self, ticket: &Ticket, level: Level) -> Result<()> {
        self.store.wait(ticket, level)
    }

    /// As [`Recorder::wait`], as a future for any executor.
    ///
    /// # Errors
    /// Its output is what [`Recorder::wait`] returns.
    ///
    /// # Durability
    /// *Written* survives a killed process, *Durable* a power cut: when the future is ready.
    pub fn when(&self, ticket: &Ticket, level: Level) -> Waiting {
        self.store.when(ticket, level)
    }

    /// Returns when everything accepted before it is durable. Seals nothing.
    ///
    /// # Errors
    /// As [`Recorder::wait`].
    ///
    /// # Durability
    /// *Durable*, with one data sync for any number of streams.
    pub fn barrier(&self) -> Result<()> {
        self.store.barrier()
    }

    /// Seals what is left, then ends the recording as *complete*. Of a recording that was resumed what
    /// was sealed before is looked at first: each chunk's row, its file's presence, length and name,
    /// its footer; its values only where [`Resume::read_history`](super::Resume::read_history) says so.
    ///
    /// # Errors
    /// `Damage` for sealed history; as [`Recorder::wait`]; `Conflict` when the recording has ended already or was retired. The
    /// recording then stays *running* with all its records.
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn complete(self) -> Result<()> {
        self.seal()?;
        self.history.check(&self.store, &self.name)?;
        let Self { store, id, name, claim, .. } = self;
        set_status(&store, id, &name, claim, RecordingStatus::Complete, &[])
    }

    /// Records `state` in every stream that lacks its iteration, due or not, then as
    /// [`Recorder::complete`].
    ///
    /// # Errors
    /// As [`Recorder::observe`] and [`Recorder::complete`].
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn complete_with<S: Observable + ?Sized>(self, state: &S) -> Result<()> {
        let now = Moment { iteration: state.iteration(), time: state.time() };
        self.observe_for(For::All, now, &mut |name, to| state.field(name, to))?;
        self.complete()
    }

    /// Seals what is left, then ends the recording as *failed*. Accepted records are kept.
    ///
    /// # Errors
    /// `Invalid` for a blank reason; as [`Recorder::complete`], and such an error takes precedence.
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn fail(self, reason: &str) -> Result<()> {
        if check_name("reason", reason).is_err() {
            let place = format!("{:?}", self.name);
            return Err(Error::invalid("fail", place, "the reason is blank or too long"));
        }
        self.seal()?;
        let status = RecordingStatus::Failed { reason: reason.to_owned() };
        let Self { store, id, name, claim, .. } = self;
        set_status(&store, id, &name, claim, status, &[])
    }
}
