//! One attempt at a hand-off: prepared durably under a claim, done outside, decided by what is read
//! back. Each function here that calls the target does so outside of any transaction.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::listing::standing;
use super::target::Target;
use crate::engine::Claim;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{HandoffId, OutputId};
use crate::manifest::{
    ClaimKind, HandoffRow, HandoffState, ObjectRow, OutputRow, Reading, ResourceKey, Write,
};
use crate::protection::Protection;
use crate::staging::describing::{Said, shortened};
use crate::staging::{OutputReader, Stage};
use crate::vfs::Step;

/// A hand-off that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandedOff {
    /// Which.
    pub id: HandoffId,
    /// Of which output.
    pub output: OutputId,
    /// The outside system, by the name that it gave itself.
    pub target: String,
    /// What showed that it is there, as the target put it.
    pub evidence: Vec<u8>,
    /// Whether it was done before this call.
    pub is_repeat: bool,
}

impl HandedOff {
    pub(super) fn of(id: HandoffId, row: &HandoffRow, is_repeat: bool) -> Self {
        let (target, evidence) = (row.target.clone(), row.evidence.clone());
        Self { id, output: row.output, target, evidence, is_repeat }
    }
}

/// A hand-off that is prepared, and ours to decide.
#[derive(Debug)]
pub(super) struct Attempt<'s> {
    stage: &'s Stage,
    id: HandoffId,
    row: HandoffRow,
    claim: Claim,
}

/// What claiming a hand-off found.
#[derive(Debug)]
pub(super) enum Begun<'s> {
    /// It is ours.
    Ours(Attempt<'s>),
    /// It was decided before, as the row says.
    Decided(HandoffId, HandoffRow),
}

fn place(output: OutputId) -> String {
    format!("output {output}")
}

/// Runs code of the caller.
pub(super) fn called<T>(target: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let cause = "the target panicked; its hand-off stays as it was";
        Err(Error::new(ErrorKind::CallerPanicked, "hand off", target, cause))
    })
}

/// Prepares the hand-off of an output to `target`, or takes on the one that is not decided. `intent` is
/// what a new one is to say.
pub(super) fn prepare<'s>(
    stage: &'s Stage,
    output: OutputId,
    target: &str,
    intent: &[u8],
) -> Result<Begun<'s>> {
    let (at, id_of_stage) = (stage.store.wall_nanos(), stage.id());
    begin(stage, output, &|w| {
        if let Some(found) = standing(w, id_of_stage, output, target)? {
            return Ok(found);
        }
        let Some(output_row) = w.get::<OutputRow>(&(id_of_stage, output))? else {
            let cause = "it was retired meanwhile";
            return Err(Error::new(ErrorKind::NotFound, "hand off", place(output), cause));
        };
        let row = HandoffRow {
            stage: id_of_stage,
            output,
            object: output_row.object,
            target: target.to_owned(),
            intent: intent.to_vec(),
            evidence: Vec::new(),
            state: HandoffState::Prepared,
            tries: 0,
            failure: None,
            at,
        };
        Ok((w.next_handoff_id()?, row))
    })
}

/// Takes on the hand-off `id`, whatever became of it.
pub(super) fn take_on<'s>(stage: &'s Stage, id: HandoffId) -> Result<Begun<'s>> {
    let missing = || {
        let cause = "there is no such hand-off in this stage";
        Error::new(ErrorKind::NotFound, "hand off", format!("hand-off {id}"), cause)
    };
    let found = stage.store.snapshot()?.get::<HandoffRow>(&id)?;
    let output = found.filter(|row| row.stage == stage.id()).ok_or_else(missing)?.output;
    begin(stage, output, &|w| {
        let row = w.get::<HandoffRow>(&id)?.ok_or_else(missing)?;
        Ok((id, row))
    })
}

/// Claims an output and counts an attempt of the hand-off that `find` names, in one transaction.
fn begin<'s>(
    stage: &'s Stage,
    output: OutputId,
    find: &dyn Fn(&mut Write<'_>) -> Result<(HandoffId, HandoffRow)>,
) -> Result<Begun<'s>> {
    let decided = RefCell::new(None);
    let resource = ResourceKey::of_output(stage.id(), output);
    let begun = stage.store.claim_with(&resource, ClaimKind::Output, Step::HandoffPrepare, |w| {
        let (id, mut row) = find(w)?;
        if row.state != HandoffState::Prepared {
            let cause = "it is decided already";
            let found = Error::new(ErrorKind::Conflict, "hand off", place(output), cause);
            decided.replace(Some((id, row)));
            return Err(found);
        }
        let Some(tries) = row.tries.checked_add(1) else {
            let cause = "no more attempts can be counted; roll it back";
            return Err(Error::new(ErrorKind::LimitExceeded, "hand off", place(output), cause));
        };
        row.tries = tries;
        if Protection::HandoffPrepared.is_on() {
            w.put(&id, &row)?;
        }
        Ok((id, row))
    });
    match (begun, decided.into_inner()) {
        (Ok(((id, row), claim)), _) => Ok(Begun::Ours(Attempt { stage, id, row, claim })),
        (Err(_), Some((id, row))) => Ok(Begun::Decided(id, row)),
        (Err(e), None) => Err(e),
    }
}

impl Attempt<'_> {
    /// Whom it is to, by name.
    pub(super) fn target(&self) -> &str {
        &self.row.target
    }

    /// Does it, and decides by what is there then.
    pub(super) fn hand_off(self, target: &dyn Target) -> Result<HandedOff> {
        let name = self.row.target.clone();
        let done = called(&name, || self.done(target)).and_then(|evidence| {
            Said::Evidence.check("hand off", evidence.len())?;
            Ok(evidence)
        });
        match done {
            Ok(evidence) => {
                let (id, mut row) = (self.id, self.row.clone());
                (row.state, row.evidence, row.failure) = (HandoffState::Done, evidence, None);
                self.settle(&row)?;
                Ok(HandedOff::of(id, &row, false))
            }
            Err(e) => Err(self.failed(e)),
        }
    }

    fn done(&self, target: &dyn Target) -> Result<Vec<u8>> {
        let (intent, attempt) = (self.row.intent.as_slice(), self.row.tries);
        target.tidy(intent, attempt)?;
        if let Some(evidence) = target.evidence(intent)? {
            return Ok(evidence);
        }
        target.put(intent, attempt, &mut self.bytes()?)?;
        target.evidence(intent)?.ok_or_else(|| {
            let cause =
                "the target took it, and shows nothing of it; it is tried again when resumed";
            Error::damage("hand off", place(self.row.output), cause)
        })
    }

    /// The bytes of the output. The row's edge keeps them, whatever becomes of the output.
    fn bytes(&self) -> Result<OutputReader> {
        let pin = self.stage.store.pin();
        let snapshot = self.stage.store.snapshot()?;
        let len = snapshot.require::<ObjectRow>(&self.row.object)?.len;
        pin.keep(&snapshot, [self.row.object])?;
        pin.narrow();
        Ok(OutputReader::kept(pin, self.row.object, len))
    }

    /// Takes away what is there of it, and decides that it is not.
    pub(super) fn roll_back(self, target: &dyn Target) -> Result<()> {
        let name = self.row.target.clone();
        let (intent, attempt) = (self.row.intent.clone(), self.row.tries);
        let removed = called(&name, || {
            // What earlier attempts left half done shows what they made: it goes last.
            target.remove(&intent)?;
            target.tidy(&intent, attempt)?;
            match target.evidence(&intent)? {
                None => Ok(()),
                Some(_) => {
                    let cause = "the target took it away, and it is still there";
                    Err(Error::damage("roll back", place(self.row.output), cause))
                }
            }
        });
        match removed {
            Ok(()) => {
                let mut row = self.row.clone();
                (row.state, row.failure) = (HandoffState::RolledBack, None);
                self.settle(&row)
            }
            Err(e) => Err(self.failed(e)),
        }
    }

    /// Writes down why it failed. It stays prepared, and is free for the next.
    fn failed(self, why: Error) -> Error {
        let mut row = self.row.clone();
        row.failure = Some(shortened(why.chain()));
        let stage = self.stage;
        // The first failure is the one to tell; the other one is told by the next call.
        if let Err(e) = self.settle(&row)
            && !matches!(e.kind(), ErrorKind::Fenced | ErrorKind::Halted | ErrorKind::Closed)
        {
            stage.memory.keep_trouble(e);
        }
        why
    }

    /// P4, P5: the decision and the end of the claim are one transaction, which a claim that is not ours
    /// any more fails.
    fn settle(self, row: &HandoffRow) -> Result<()> {
        self.stage.store.transact(Step::HandoffSettle, |w| {
            self.claim.release_in(w)?;
            w.put(&self.id, row)
        })?;
        self.claim.released();
        Ok(())
    }
}
