//! Going on with a recording, behind its last record or from a checkpoint.
//!
//! ```text
//!   resume ──[plan]──▶ what would be cut; nothing is written
//!      └──[start]──▶ claim ──▶ one transaction moves every stream back ──▶ recorder, state
//! ```
//! Sealed history is not read: at most the iterations of one chunk of a stream that was cut inside
//! it. That history is looked at before the recording is *complete* (`history`).

use super::last_record::at_end;
use super::left_out::left_out;
use super::resume_from::{ResumeFrom, Target, find};
use super::resume_plan::ResumePlan;
use super::undecodable::{Quarantined, Undecodable, quarantine, take_back};
use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::RecordingId;
use crate::manifest::{
    ClaimKind, Cursor, Reading, RecordingRow, RecordingStatus, ResourceKey, StreamRow, Write,
};
use crate::protection::Protection;
use crate::recording::describing::{
    Every, RecordingAbout, Sampling, Settings, StreamAbout, StreamSettings, check_same,
};
use crate::recording::keeping::give_up;
use crate::recording::reading::{Ask, At, Decoders, History, Restored};
use crate::recording::writing::{Batch, NewRecording, OpenStream, Recorder};
use crate::vfs::Step;

/// How a recording is gone on with: `store.resume(name).start()?`.
#[derive(Debug, Clone)]
#[must_use]
pub struct Resume {
    store: Store,
    name: String,
    from: ResumeFrom,
    expected: Option<NewRecording>,
    reopens: bool,
    sets_aside: bool,
    reads_history: bool,
}

/// A recording that goes on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resumed {
    /// Takes the records that follow.
    pub recorder: Recorder,
    /// The state of the checkpoint that it goes on from; none from the end of what is there.
    pub state: Option<Restored>,
    /// What was cut.
    pub plan: ResumePlan,
    /// Records that did not decode, where they were set aside.
    pub quarantined: Option<Quarantined>,
}

impl Store {
    /// Describes how the recording called `name` is gone on with, from its newest checkpoint if
    /// nothing else is said. Nothing is written before it is started.
    pub fn resume(&self, name: &str) -> Resume {
        Resume {
            store: self.clone(),
            name: name.to_owned(),
            from: ResumeFrom::default(),
            expected: None,
            reopens: false,
            sets_aside: false,
            reads_history: false,
        }
    }
}

impl Resume {
    /// Where it goes on.
    pub fn from(mut self, from: ResumeFrom) -> Self {
        self.from = from;
        self
    }

    /// What the caller takes the recording to be: it is refused where time axis, fields, streams or
    /// what they record differ. Where chunks end, and what streams do when the queue is full, may
    /// differ, and are as given here from now on; so is metadata, which takes the place of that of the
    /// same key. Parameters are not compared, and stay.
    pub fn expect(mut self, settings: &NewRecording) -> Self {
        self.expected = Some(settings.clone());
        self
    }

    /// Goes on also with a recording that ended, as *complete* or *failed*: it is *running* again.
    pub fn reopen(mut self) -> Self {
        self.reopens = true;
        self
    }

    /// Goes on before records that do not decode; their bytes are kept, with those of all unsealed
    /// records that were observed with them or later. What was sealed stays: a stream may then end at a
    /// later iteration than the others, and the run goes on behind that.
    pub fn set_aside(mut self) -> Self {
        self.sets_aside = true;
        self
    }

    /// Before the recording is *complete* every byte of what was sealed before is read and verified,
    /// and not only looked for: see [`Recorder::complete`].
    pub fn read_history(mut self) -> Self {
        self.reads_history = true;
        self
    }

    /// What would be cut from which stream, and why [`Resume::start`] would refuse, if it would.
    /// Nothing is written. A store that was opened to be read tells what one that was opened to write
    /// would meet, and who writes the recording now.
    ///
    /// # Errors
    /// `NotFound`; `NoCheckpoint`; `Conflict` for other settings than expected; `Damage`.
    pub fn plan(&self) -> Result<ResumePlan> {
        let (_, row) = find(&self.store, &self.name)?;
        self.check_settings(&row)?;
        let target = Target::of(&self.store, &self.name, self.from)?;
        let refused = self.refused(&target)?;
        Ok(target.plan(&self.store, refused))
    }

    /// Why it would be refused, as far as that is known without doing it.
    fn refused(&self, target: &Target) -> Result<Vec<String>> {
        let mut refused = Vec::new();
        if let Some(holder) = self.store.holder_of(&ResourceKey::of_recording(&self.name))? {
            refused.push(format!("another writer has it, {holder}"));
        }
        refused.extend(self.check_status(&target.row).err().map(|e| e.cause().to_owned()));
        if let Err(e) = self.everys(&target.row) {
            refused.push(format!("{}: {}", e.place(), e.cause()));
        }
        if let Some(bad) = target.undecodable.first().filter(|_| !self.sets_aside) {
            let Undecodable { stream, first, .. } = bad;
            refused.push(format!("stream {stream:?} record {first} does not decode"));
        }
        Ok(refused)
    }

    /// Goes on. Every stream is moved back to where it goes on, in one transaction; the next
    /// iteration is accepted then.
    ///
    /// # Errors
    /// `NotFound`; `NoCheckpoint`; `Conflict` for a recording that ended, other settings than
    /// expected, or one that somebody else writes, who is named; `Invalid` for a stream of a
    /// predicate that was not given with [`Resume::expect`]; `Damage` for records that do not
    /// decode; `ReadOnly` where the store was opened to be read. Nothing is changed then.
    ///
    /// Each stream counts as left out ([`Stream::dropped`](crate::recording::Stream::dropped)) what it did where
    /// the run goes on, and not what was left out behind that; from [`ResumeFrom::Tail`] also what was counted
    /// behind the last record.
    ///
    /// # Durability
    /// What it cut is gone for every reader, durably, when it returns.
    pub fn start(self) -> Result<Resumed> {
        self.start_if(|_| Ok(()))
    }

    /// As [`Resume::start`], with the state of the checkpoint put into `state`.
    ///
    /// # Errors
    /// As there; `Invalid` when a field has no decoder, or a decoder refuses its value, and from
    /// [`ResumeFrom::Tail`], where there is no state; `TypeMismatch`; `Damage` for bytes of a type that
    /// do not decode. Nothing is changed then, neither the recording nor `state`: but what decoders of
    /// [`Decoders::field_with`] put there, as they are asked before anything is cut.
    ///
    /// # Durability
    /// As there.
    pub fn start_into<S>(self, decoders: &Decoders<S>, state: &mut S) -> Result<Resumed> {
        let (_, row) = find(&self.store, &self.name)?;
        decoders.check(&Schema::from_bytes(&row.schema)?)?;
        if self.from == ResumeFrom::Tail {
            let cause = "from its end there is no state to put anywhere: use start";
            return Err(Error::invalid("resume", format!("{:?}", self.name), cause));
        }
        let resumed = self.start_if(|target| match &target.restored {
            Some(restored) => restored.ask(Ask::ThoseThatMayRefuse, decoders, state),
            None => Ok(()),
        })?;
        // They said that they will not refuse: from here on nothing fails.
        if let Some(restored) = &resumed.state {
            restored.ask(Ask::TheOthers, decoders, state)?;
        }
        Ok(resumed)
    }

    fn start_if(self, accepts: impl FnOnce(&Target) -> Result<()>) -> Result<Resumed> {
        let (store, name) = (self.store.clone(), self.name.clone());
        // The claim on the recording is gone by then.
        self.started(accepts).inspect_err(|_| give_up(&store, &name))
    }

    fn started(self, accepts: impl FnOnce(&Target) -> Result<()>) -> Result<Resumed> {
        let (recording, row) = find(&self.store, &self.name)?;
        let everys = self.everys(&row)?;
        self.check_settings(&row)?;
        let claim = self.claim(recording)?;
        self.store.hold_streams(&row.streams)?;
        // Nobody else moves it from here on.
        let target = Target::of(&self.store, &self.name, self.from)?;
        accepts(&target)?;
        let plan = target.plan(&self.store, Vec::new());
        if let Some(bad) = target.undecodable.first().filter(|_| !self.sets_aside) {
            return Err(bad.error("resume", &self.name));
        }
        let left_out = left_out(&self.store, &target)?;
        let mut ats = ats(&self.store, &target, &everys)?;
        ats.iter_mut().zip(&left_out).for_each(|(at, (dropped, _))| at.dropped = *dropped);
        let history = History::of(target.sealed(), self.reads_history);
        let quarantined = self.set_aside_and_move_back(&target, &left_out)?;
        self.store.reopened(&target.row.streams)?;
        let recorder = self.open(&target, claim, everys, ats, history)?;
        Ok(Resumed { recorder, state: target.restored, plan, quarantined })
    }

    /// REC35: what is cut is kept before it is cut.
    fn set_aside_and_move_back(
        &self,
        target: &Target,
        left_out: &[(u64, u64)],
    ) -> Result<Option<Quarantined>> {
        let keep = || match target.undecodable.is_empty() {
            true => Ok(None),
            false => quarantine(&self.store, &self.name, &target.views, &target.cursors).map(Some),
        };
        if !Protection::QuarantineFirst.is_on() {
            self.move_back(target, left_out)?;
            return keep();
        }
        let kept = keep()?;
        let moved = self.move_back(target, left_out);
        if let (Err(e), Some(kept)) = (&moved, &kept)
            && e.kind() != ErrorKind::OutcomeUnknown
        {
            // Nothing was cut, so nothing is to be kept.
            let _ = take_back(&self.store, kept);
        }
        moved.map(|()| kept)
    }

    fn check_status(&self, row: &RecordingRow) -> Result<()> {
        let status = match &row.status {
            RecordingStatus::Running => return Ok(()),
            _ if self.reopens => return Ok(()),
            RecordingStatus::Complete => "complete".to_owned(),
            RecordingStatus::Failed { reason } => format!("failed ({reason:?})"),
        };
        let cause = format!("it is {status}; reopen it to go on with it");
        Err(Error::new(ErrorKind::Conflict, "resume", format!("{:?}", self.name), cause))
    }

    fn check_settings(&self, row: &RecordingRow) -> Result<()> {
        let Some(expected) = &self.expected else { return Ok(()) };
        check_same(&self.name, &stored(&self.store, row)?, &expected.settings()?)
    }

    /// What each stream records.
    fn everys(&self, row: &RecordingRow) -> Result<Vec<Every>> {
        let stored = stored(&self.store, row)?;
        let every = |stream: &StreamSettings| {
            let given = self.expected.as_ref().and_then(|draft| draft.every_of(&stream.name));
            match (given, &stream.sampling) {
                (Some(every), _) => Ok(every),
                (None, Sampling::Predicate) => {
                    let place = format!("{:?} stream {:?}", self.name, stream.name);
                    let cause = "it records what a predicate picks: give that with expect";
                    Err(Error::invalid("resume", place, cause))
                }
                (None, sampling) => Ok(Every::again(sampling.clone())),
            }
        };
        stored.streams.iter().map(every).collect()
    }

    fn claim(&self, recording: RecordingId) -> Result<Claim> {
        let key = ResourceKey::of_recording(&self.name);
        let check = |w: &mut Write| {
            let row = w.get::<RecordingRow>(&recording)?;
            match row.filter(|row| row.name == self.name) {
                // REC32: decided where the claim is taken, or it may end in between.
                Some(row) if Protection::StatusInClaim.is_on() => self.check_status(&row),
                Some(_) => Ok(()),
                None => {
                    let cause = "it was retired meanwhile";
                    let place = format!("{:?}", self.name);
                    Err(Error::new(ErrorKind::NotFound, "resume", place, cause))
                }
            }
        };
        let claimed = self.store.claim_with(&key, ClaimKind::Recording, Step::ClaimCommit, check);
        claimed.map(|((), claim)| claim).map_err(|e| match e.operation() {
            "claim" => {
                let cause = format!("another writer has it, {}", e.cause());
                Error::new(e.kind(), "resume", format!("{:?}", self.name), cause).with_source(e)
            }
            _ => e,
        })
    }

    /// REC39: every stream that is beyond its cursor goes back, with whatever else changes, in ONE
    /// transaction.
    fn move_back(&self, target: &Target, left_out: &[(u64, u64)]) -> Result<()> {
        let ends = target.views.iter().zip(&target.cursors);
        let back: Vec<Cursor> = ends
            .filter(|(view, cursor)| view.record_count() > cursor.end.0)
            .map(|(_, cursor)| *cursor)
            .collect();
        let limits = self.new_limits(target)?;
        let said = self.new_metadata(&target.row)?;
        let counts = target.views.iter().zip(left_out).map(|(view, (dropped, told))| {
            (view.stream, dropped.saturating_sub(*told), view.row.dropped)
        });
        let counts: Vec<_> = counts.filter(|(_, new, old)| new != old).collect();
        let is_as_it_was = target.row.status == RecordingStatus::Running && said.is_none();
        if back.is_empty() && limits.is_empty() && counts.is_empty() && is_as_it_was {
            return Ok(());
        }
        self.store.rewind_with(&back, |w| {
            if !is_as_it_was {
                let mut row = w.require::<RecordingRow>(&target.recording)?;
                row.status = RecordingStatus::Running;
                row.metadata = said.unwrap_or(row.metadata);
                w.put(&target.recording, &row)?;
            }
            for (stream, about) in &limits {
                let mut row = w.require::<StreamRow>(stream)?;
                row.about = about.to_bytes()?;
                w.put(stream, &row)?;
            }
            for (stream, dropped, _) in &counts {
                let mut row = w.require::<StreamRow>(stream)?;
                row.dropped = *dropped;
                w.put(stream, &row)?;
            }
            Ok(())
        })
    }

    /// What is said of it from now on, where that is something else.
    fn new_metadata(&self, row: &RecordingRow) -> Result<Option<Vec<(String, String)>>> {
        let Some(expected) = &self.expected else { return Ok(None) };
        let given = expected.said()?;
        let mut said = row.metadata.clone();
        said.retain(|(key, _)| given.iter().all(|(given, _)| given != key));
        said.extend(given);
        let sorted = |all: &[(String, String)]| {
            let mut all = all.to_vec();
            all.sort();
            all
        };
        Ok(Some(said).filter(|said| sorted(said) != sorted(&row.metadata)))
    }

    /// Streams whose chunks end elsewhere from now on.
    fn new_limits(&self, target: &Target) -> Result<Vec<(crate::ids::StreamId, StreamAbout)>> {
        let Some(expected) = &self.expected else { return Ok(Vec::new()) };
        let mut changed = Vec::new();
        for view in &target.views {
            let stored = StreamAbout::from_bytes(&view.row.about)?;
            if let Some(about) = expected.about_of(&view.row.name).filter(|new| *new != stored) {
                changed.push((view.stream, about));
            }
        }
        Ok(changed)
    }

    fn open(
        &self,
        target: &Target,
        claim: Claim,
        everys: Vec<Every>,
        ats: Vec<At>,
        history: History,
    ) -> Result<Recorder> {
        let schema = Schema::from_bytes(&target.row.schema)?;
        let chunks = target.views.iter().map(|view| view.row.next_ordinal.0);
        let chunks = chunks.fold(0, u64::saturating_add);
        let (mut streams, mut batch) =
            (Vec::with_capacity(ats.len()), Batch::behind(chunks as usize));
        let each = target.views.iter().zip(everys).zip(ats);
        for (position, ((view, every), at)) in each.enumerate() {
            let stored = StreamAbout::from_bytes(&view.row.about)?;
            let expected = self.expected.as_ref().and_then(|draft| draft.about_of(&view.row.name));
            let about = expected.unwrap_or(stored);
            let limits = about.limits();
            let of_stream = Schema::from_bytes(&view.row.schema)?;
            let watched = every.watched().and_then(|name| schema.position(name));
            let watched = watched.and_then(|at| schema.fields().get(at)).cloned();
            let name = view.row.name.clone();
            let mut stream = OpenStream::new(view.stream, name, of_stream, limits, every, watched);
            stream.overflow = about.overflow;
            for span in stream.prime(&self.store, at)? {
                batch.push(position, span);
            }
            streams.push(stream);
        }
        let observed = target.restored.as_ref().map(Restored::iteration);
        let (store, id, name) = (self.store.clone(), target.recording, self.name.clone());
        Ok(Recorder::new(store, id, name, schema, claim, streams, batch).behind(observed, history))
    }
}

/// What the rows of a recording say its records mean.
fn stored(store: &Store, row: &RecordingRow) -> Result<Settings> {
    let snapshot = store.snapshot()?;
    let mut streams = Vec::with_capacity(row.streams.len());
    for id in &row.streams {
        let stream = snapshot.require::<StreamRow>(id)?;
        streams.push(StreamSettings {
            schema: Schema::from_bytes(&stream.schema)?,
            sampling: StreamAbout::from_bytes(&stream.about)?.sampling,
            name: stream.name,
        });
    }
    let axis = RecordingAbout::from_bytes(&row.about)?.axis;
    Ok(Settings { axis, schema: Schema::from_bytes(&row.schema)?, streams })
}

/// What each stream's last record is, of those that stay.
fn ats(store: &Store, target: &Target, everys: &[Every]) -> Result<Vec<At>> {
    if let Some(restored) = &target.restored {
        return Ok(restored.streams().to_vec());
    }
    let ends = target.views.iter().zip(&target.cursors).zip(everys);
    ends.map(|((view, cursor), every)| at_end(store, view, cursor.end, every.watched())).collect()
}
