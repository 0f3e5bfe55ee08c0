//! Deciding a hand-off of names: completed by evidence that is exactly its own, or rolled back.

use std::cell::Cell;

use super::change::{Expected, Published, check_expected};
use super::hand_off::{Evidence, HANDOFF_BYTES_MAX, changes_of};
use super::publish::Publishing;
use crate::engine::{remove_leased, remove_name_handoff};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::HandoffId;
use crate::manifest::{NameHandoffRow, Reading, Write};
use crate::objects::describing::Objects;
use crate::protection::Protection;
use crate::vfs::Step;

/// Characters of what was told that go into a receipt.
const TOLD_CHARS_MAX: usize = 200;

impl Objects {
    /// Publishes the names of the hand-off `id`, which `evidence` shows to be done outside, in ONE transaction:
    /// each is compared with the generation that it is to replace, the hand-off goes, the lease's hold on what
    /// is named ends, and a receipt says what was told.
    ///
    /// # Errors
    /// Each leaves everything as it was, and the hand-off pending: `NotFound` for one that is not pending
    /// (decided before, or never there); `Invalid` for evidence of another hand-off, of another generation, or
    /// of other names or digests; `Conflict` where a name was changed meanwhile
    /// ([`Present::of`](super::Present::of) says to what): take away what is outside, and roll it back;
    /// `LimitExceeded` above [`HANDOFF_BYTES_MAX`] told.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn complete(&self, id: HandoffId, evidence: &Evidence) -> Result<Published> {
        if evidence.told.len() > HANDOFF_BYTES_MAX {
            let cause = format!("{} bytes told, {HANDOFF_BYTES_MAX} allowed", evidence.told.len());
            return Err(Error::new(ErrorKind::LimitExceeded, "complete", place(id), cause));
        }
        let committed = self.store().transact(Step::NameHandoffSettle, |w| {
            let row = w.get::<NameHandoffRow>(&id)?.ok_or_else(|| {
                let cause = "it is not pending: decided before, or never there";
                Error::new(ErrorKind::NotFound, "complete", place(id), cause)
            })?;
            check_evidence(w, id, &row, evidence)?;
            let mut publishing = Publishing::default();
            for (change, named) in changes_of(w, &row)?.iter().zip(&row.names) {
                let expected = change.expected.map_or(Expected::Nothing, Expected::Generation);
                let old = check_expected("complete", w, &change.name, expected)?;
                let to = (named.object, change.digest, change.len);
                publishing.set(w, &change.name, old.as_ref(), to)?;
            }
            // P4: names, the hand-off and the lease's hold change in one transaction.
            remove_name_handoff(w, id)?;
            if let Some(lease) = row.lease {
                remove_leased(w, lease, row.names.iter().map(|name| name.object))?;
            }
            let why = format!("completed, told {}", shown(&evidence.told));
            let (objects, bytes) = self.store().write_receipt(w, &what(id, &row), &why)?;
            Ok(publishing.published(w, objects, bytes))
        })?;
        Ok(committed.value)
    }

    /// Gives the hand-off `id` up, which is not done outside, or taken away there again: it goes, names stand
    /// as they do, and what nothing else refers to goes with it. `why` goes into the receipt. `false` where it
    /// is not pending: decided before, or never there.
    ///
    /// # Errors
    /// Any error leaves it pending; after `OutcomeUnknown` the store has halted.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn roll_back(&self, id: HandoffId, why: &str) -> Result<bool> {
        if self.store().snapshot()?.get::<NameHandoffRow>(&id)?.is_none() {
            return Ok(false);
        }
        let is_gone = Cell::new(false);
        let rolled_back = self.store().transact(Step::NameHandoffSettle, |w| {
            let Some(row) = remove_name_handoff(w, id)? else {
                is_gone.set(true);
                return Err(Error::new(
                    ErrorKind::NotFound,
                    "roll back",
                    place(id),
                    "it is not pending",
                ));
            };
            self.store().write_receipt(w, &what(id, &row), &format!("rolled back: {why}")).map(drop)
        });
        match rolled_back {
            Err(_) if is_gone.get() => Ok(false),
            rolled_back => rolled_back.map(|_| true),
        }
    }
}

/// OBJ13: what does not name this very hand-off, its generation and all that it changes shows nothing.
fn check_evidence(
    w: &Write<'_>,
    id: HandoffId,
    row: &NameHandoffRow,
    evidence: &Evidence,
) -> Result<()> {
    if !Protection::EvidenceExact.is_on() {
        return Ok(());
    }
    let Evidence { handoff, generation, changes, .. } = evidence;
    let cause = if *handoff != id {
        format!("it is evidence of hand-off {handoff}")
    } else if *generation != row.prepared {
        format!("it is evidence of generation {generation}, and this is {}", row.prepared)
    } else if *changes != changes_of(w, row)? {
        "it is evidence of other names, or of what they are not to stand for".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid("complete", place(id), cause))
}

fn place(id: HandoffId) -> String {
    format!("hand-off {id}")
}

fn what(id: HandoffId, row: &NameHandoffRow) -> String {
    format!("hand-off {id} of {} names to {:?}", row.names.len(), row.target)
}

fn shown(told: &[u8]) -> String {
    let text = String::from_utf8_lossy(told);
    let beginning: String = text.chars().take(TOLD_CHARS_MAX).collect();
    format!("{beginning:?}")
}
