//! Recording one by one: each record goes through the journal, full chunks are sealed on the way.

use parking_lot::Mutex;

use super::draft::check_name;
use super::filling::Filling;
use super::status::set_status;
use crate::engine::{Append, ChunkBuild, Store, Waiting};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Value, row_payload};
use crate::ids::RecordingId;
use crate::journal::{Level, Ticket};
use crate::manifest::RecordingStatus;

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
    store: Store,
    id: RecordingId,
    name: String,
    chunk_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    fillings: Vec<Filling>,
    /// Full chunks whose publication has not succeeded yet.
    full: Vec<ChunkBuild>,
    /// Why records that were accepted are not in `fillings`.
    broken: Option<Error>,
}

impl State {
    /// Fails with the first cause once accepted records are missing here.
    fn is_whole(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }
}

impl Recorder {
    pub(super) fn new(
        store: Store,
        id: RecordingId,
        name: String,
        chunk_bytes: u64,
        fillings: Vec<Filling>,
    ) -> Self {
        let state = Mutex::new(State { fillings, full: Vec::new(), broken: None });
        Self { store, id, name, chunk_bytes, state }
    }

    /// The recording's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position of the stream called `name`.
    pub fn stream(&self, name: &str) -> Option<usize> {
        self.state.lock().fillings.iter().position(|filling| filling.name == name)
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
    /// `DiskFull`; `Halted`, also where a chunk could not be made of accepted records: they stay
    /// readable, and this recorder takes no more.
    ///
    /// # Durability
    /// None (*Accepted*): wait on the ticket, or call [`Recorder::barrier`].
    pub fn append_all(&self, records: &[NewRecord<'_>]) -> Result<Ticket> {
        let mut state = self.state.lock();
        state.is_whole()?;
        let group = self.encode(&state.fillings, records)?;
        // Full chunks that could not be published hold memory: nothing more before they are.
        self.publish(&mut state)?;
        let accepted = self.store.append(group)?;
        // P2: the records are in the journal. A chunk made without one of them would give the ones
        // behind it the wrong sequence, so no chunk is made any more.
        if let Err(e) = self.fill(&mut state, records) {
            let cause = "its records are accepted, but no chunk can be made of them";
            let place = format!("{:?}", self.name);
            let e = Error::new(ErrorKind::Halted, "append", place, cause).with_source(e);
            state.broken = Some(e.clone());
            return Err(e);
        }
        // The records are accepted whatever becomes of the chunks; the next call tries again.
        if !state.full.is_empty() {
            let _ = self.publish(&mut state);
        }
        Ok(accepted.ticket)
    }

    fn fill(&self, state: &mut State, records: &[NewRecord<'_>]) -> Result<()> {
        for record in records {
            let Some(filling) = state.fillings.get_mut(record.stream) else { continue };
            let sealed =
                filling.push(record.iteration, record.time, record.values, self.chunk_bytes)?;
            if let (Some(sealed), Some(id)) = (sealed, filling.id) {
                state.full.push(sealed.build(id, &filling.name)?);
            }
        }
        Ok(())
    }

    fn encode(&self, fillings: &[Filling], records: &[NewRecord<'_>]) -> Result<Vec<Append>> {
        let mut group = Vec::with_capacity(records.len());
        for (at, record) in records.iter().enumerate() {
            let Some(filling) = fillings.get(record.stream) else {
                let cause = format!("there is no stream number {}", record.stream);
                return Err(Error::invalid("append", format!("{:?}", self.name), cause));
            };
            filling.check(record.iteration, record.time, record.values)?;
            let before = records[..at].iter().rev().find(|r| r.stream == record.stream);
            filling.check_iteration(record.iteration, before.map(|r| r.iteration))?;
            filling.check_time(record.time, before.and_then(|r| r.time))?;
            let Some(stream) = filling.id else { continue };
            let payload =
                row_payload::encode(filling.schema(), record.iteration, record.time, record.values);
            group.push(Append { stream, payload });
        }
        Ok(group)
    }

    fn publish(&self, state: &mut State) -> Result<()> {
        if !state.full.is_empty() {
            self.store.publish_chunks(state.full.clone())?;
            state.full.clear();
        }
        Ok(())
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

    /// Seals what is left, then ends the recording as *complete*.
    ///
    /// # Errors
    /// As [`Recorder::wait`]; `Conflict` when the recording has ended already; `Halted` after an
    /// append gave that. The recording then stays *running* with all its records.
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn complete(self) -> Result<()> {
        self.seal()?;
        set_status(&self.store, self.id, &self.name, RecordingStatus::Complete, &[])
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
        set_status(&self.store, self.id, &self.name, status, &[])
    }

    fn seal(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.is_whole()?;
        let State { fillings, full, .. } = &mut *state;
        for filling in fillings {
            if let (Some(sealed), Some(id)) = (filling.seal()?, filling.id) {
                full.push(sealed.build(id, &filling.name)?);
            }
        }
        self.publish(&mut state).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                let cause = "it was retired meanwhile";
                Error::new(ErrorKind::Conflict, "seal", format!("{:?}", self.name), cause)
                    .with_source(e)
            }
            _ => e,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column::{Field, FieldType, Schema, VALUE_BYTES_MAX};

    /// Can an error behind acceptance make a later chunk hold other rows than its sequences say?
    #[test]
    fn p2_an_error_behind_acceptance_ends_the_recorder() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("run.stone")).unwrap();
        let schema = Schema::new(vec![Field::new("x", FieldType::Bytes)]).unwrap();
        let run = store.record("run", &schema).stream("s", ["x"]).start().unwrap();
        let huge = vec![0; VALUE_BYTES_MAX + 1];
        let refused = run.append(0, 1, &[Value::Bytes(&huge)]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded, "refused before it is accepted");
        run.append(0, 1, &[Value::Bytes(b"one")]).unwrap();

        run.state.lock().fillings[0].refuse_below(100);
        let broken = run.append(0, 2, &[Value::Bytes(b"two")]).unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::Halted);
        let later = run.append(0, 200, &[Value::Bytes(b"three")]).unwrap_err();
        assert_eq!(later.chain(), broken.chain(), "the first cause");
        run.barrier().unwrap();
        assert_eq!(run.complete().unwrap_err().kind(), ErrorKind::Halted);
        let recording = store.recording("run").unwrap();
        assert_eq!(recording.status(), &RecordingStatus::Running);
        let stream = recording.stream("s").unwrap();
        let values: Vec<Vec<u8>> = stream.field("x").unwrap().to_vec().unwrap();
        assert_eq!(values, [b"one", b"two"]);
    }
}
