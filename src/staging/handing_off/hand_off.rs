//! The calls of a stage that hand outputs to an outside system.

use super::attempt::{Begun, HandedOff, called, prepare, take_on};
use super::listing::{self, HandoffView, standing, undecided};
use super::target::{Offer, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{HandoffId, OutputId};
use crate::manifest::HandoffState;
use crate::staging::describing::Said;
use crate::staging::{OutputView, Stage};

/// What became of a hand-off that was resumed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Resumed {
    /// Which.
    pub id: HandoffId,
    /// Of which output.
    pub output: OutputId,
    /// That it is done, or why it is not: then it can be resumed again, or rolled back.
    pub result: Result<HandedOff>,
}

impl Stage {
    /// Hands an output to `target`, once: one that was handed to it before is told as that, and one that
    /// was begun and not decided is gone on with. The claim on the output is held meanwhile.
    ///
    /// # Errors
    /// `NotFound` for an output that is not there; `Conflict` while another one is at work on it, naming
    /// who; what the target returns, `CallerPanicked` if it panics: the hand-off stays prepared then,
    /// and is listed by [`Stage::handoffs`].
    ///
    /// # Durability
    /// *Durable* when it returns: there, and known to be there.
    pub fn hand_off(&self, output: OutputId, target: &dyn Target) -> Result<HandedOff> {
        self.check("hand off")?;
        let name = called("target", || Ok(target.name()))?;
        Said::Target.check("hand off", name.len())?;
        let found = standing(&self.store.snapshot()?, self.id(), output, &name)?;
        let intent = match found {
            Some((id, row)) if row.state == HandoffState::Done => {
                return Ok(HandedOff::of(id, &row, true));
            }
            Some((_, row)) => row.intent,
            None => {
                let offer = self.offer_of(output)?;
                called(&name, || target.intent(&offer))?
            }
        };
        Said::Intent.check("hand off", intent.len())?;
        match prepare(self, output, &name, &intent)? {
            Begun::Ours(attempt) => attempt.hand_off(target),
            Begun::Decided(id, row) => Ok(HandedOff::of(id, &row, true)),
        }
    }

    /// Goes on with every hand-off to `target` that was begun and is not decided, after a crash or a
    /// failure; one after the other, and one that fails stops no other. Those that another one is at work
    /// on are left to it.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`: each hand-off has a result of its own.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn resume_handoffs(&self, target: &dyn Target) -> Result<Vec<Resumed>> {
        self.check("hand off")?;
        let name = called("target", || Ok(target.name()))?;
        let mut resumed = Vec::new();
        for (id, row) in undecided(&self.store.snapshot()?, self.id())? {
            if row.target != name {
                continue;
            }
            let result = match take_on(self, id) {
                Ok(Begun::Ours(attempt)) => attempt.hand_off(target),
                Ok(Begun::Decided(id, row)) if row.state == HandoffState::Done => {
                    Ok(HandedOff::of(id, &row, true))
                }
                // Rolled back by another one meanwhile, or still at work on it.
                Ok(Begun::Decided(..)) => continue,
                Err(e) if e.kind() == ErrorKind::Conflict => continue,
                Err(e) => Err(e),
            };
            resumed.push(Resumed { id, output: row.output, result });
        }
        Ok(resumed)
    }

    /// Gives a hand-off up that is not decided: takes away what is there of it, and lets go of its output.
    /// One that was rolled back before stays so.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for one that is done, or that another one is at work on; `Invalid` for a
    /// target of another name; what the target returns, as `Exists` of a directory that holds the same
    /// bytes and does not show that this hand-off put them there: it stays prepared then.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn roll_back(&self, id: HandoffId, target: &dyn Target) -> Result<()> {
        self.check("roll back")?;
        let place = || format!("hand-off {id}");
        let name = called("target", || Ok(target.name()))?;
        let attempt = match take_on(self, id)? {
            Begun::Ours(attempt) => attempt,
            Begun::Decided(_, row) if row.state == HandoffState::RolledBack => return Ok(()),
            Begun::Decided(..) => {
                let cause = "it is done; retire its output, and take the copy away by hand";
                return Err(Error::new(ErrorKind::Conflict, "roll back", place(), cause));
            }
        };
        if attempt.target() != name {
            let cause = format!("it is to {:?}, and not to {name:?}", attempt.target());
            return Err(Error::invalid("roll back", place(), cause));
        }
        attempt.roll_back(target)
    }

    /// Every hand-off of its outputs, in the order in which they were prepared. Those that are not decided
    /// pin their output's bytes: resume them, or roll them back.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn handoffs(&self) -> Result<Vec<HandoffView>> {
        self.check("list")?;
        listing::all(&self.store, self.id())
    }

    /// What a target is told of an output.
    fn offer_of(&self, output: OutputId) -> Result<Offer> {
        let snapshot = self.store.snapshot()?;
        let row = self.output_row(&snapshot, output)?;
        let output = OutputView::of(&snapshot, self.key_shape(), output, &row)?;
        Ok(Offer { stage: self.name().to_owned(), output })
    }
}
