//! Handing names off: what is to be published is durable and pinned before anything is done outside.

use serde::{Deserialize, Serialize};

use super::change::{Publish, check_expected, check_names};
use super::leased::Lookup;
use super::publish::check_early;
use crate::codec;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, HandoffId, LeaseId, NameGeneration};
use crate::manifest::{
    HANDOFF_NAMES_MAX, HandoffName, NameHandoffRow, NameKey, Namespace, ObjectRow, Reading,
};
use crate::objects::describing::{Name, Objects};
use crate::protection::Protection;
use crate::vfs::Step;

/// The longest intent of a hand-off, and the longest that is told in its evidence: 64 KiB.
pub const HANDOFF_BYTES_MAX: usize = 64 << 10;

/// The longest name of an outside system, in bytes of UTF-8.
pub const HANDOFF_TARGET_BYTES_MAX: usize = 1024;

/// One name that a hand-off changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffChange {
    /// The name.
    pub name: Name,
    /// Which generation of it is to be replaced; `None` where nothing stood there.
    pub expected: Option<NameGeneration>,
    /// What it is to stand for.
    pub digest: Digest,
    /// Its length in bytes.
    pub len: u64,
}

/// A publication of names that an outside system takes part in, prepared and not decided: names stand as
/// before, and what they are to stand for is pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameHandoff {
    /// Which.
    pub id: HandoffId,
    /// Its generation: the commit that prepared it. No other one of this store has it.
    pub generation: CommitSeq,
    /// The outside system, as the caller names it.
    pub target: String,
    /// What it changes.
    pub changes: Vec<HandoffChange>,
    /// What is to be there outside, as the caller put it.
    pub intent: Vec<u8>,
    /// Wall-clock nanoseconds since 1970 when it was prepared, where the clock could say.
    pub at: Option<i64>,
}

/// What shows that a hand-off was done outside: it names the hand-off, its generation, and all that it
/// published. Write it down outside together with what it shows, and hand it to [`Objects::complete`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which hand-off.
    pub handoff: HandoffId,
    /// Its generation.
    pub generation: CommitSeq,
    /// What it published.
    pub changes: Vec<HandoffChange>,
    /// What the outside system told, as the caller puts it; it goes into the receipt.
    pub told: Vec<u8>,
}

impl Evidence {
    /// As bytes, to be written down outside.
    ///
    /// # Errors
    /// `LimitExceeded` when what is told is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        codec::encode("evidence", self)
    }

    /// From bytes that [`Evidence::to_bytes`] gave.
    ///
    /// # Errors
    /// `Damage` for any others.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        codec::decode("evidence", bytes)
    }
}

impl NameHandoff {
    /// What shows that exactly this was done; `told` is what the outside system said.
    pub fn evidence(&self, told: impl Into<Vec<u8>>) -> Evidence {
        let (handoff, generation) = (self.id, self.generation);
        Evidence { handoff, generation, changes: self.changes.clone(), told: told.into() }
    }

    pub(super) fn of(rows: &impl Reading, id: HandoffId, row: NameHandoffRow) -> Result<Self> {
        let changes = changes_of(rows, &row)?;
        let NameHandoffRow { target, intent, prepared: generation, at, .. } = row;
        Ok(Self { id, generation, target, changes, intent, at })
    }
}

/// The name that a row names.
pub(super) fn name_of(change: &HandoffName) -> Result<Name> {
    let (namespace, name) = (Namespace(change.namespace), change.name.clone());
    Name::of_key(&NameKey { namespace, name })
}

/// What a row changes.
pub(super) fn changes_of(rows: &impl Reading, row: &NameHandoffRow) -> Result<Vec<HandoffChange>> {
    let change = |change: &HandoffName| {
        let digest = rows.require::<ObjectRow>(&change.object)?.digest;
        let HandoffName { expected, len, .. } = *change;
        Ok(HandoffChange { name: name_of(change)?, expected, digest, len })
    };
    row.names.iter().map(change).collect()
}

impl Objects {
    /// Prepares the publication of `changes` together with something outside: `target` names the outside
    /// system, `intent` says what is to be there, with all that it takes to find it and to take it away.
    /// Nothing is to be done outside before this returns. Then it is done there, and
    /// [`complete`](Self::complete) publishes the names; or it is given up, and
    /// [`roll_back`](Self::roll_back) forgets it. Until then names stand as before for everybody, and what
    /// they are to stand for stays, whatever becomes of `lease`; after a crash it is listed by
    /// [`handoffs`](Self::handoffs).
    ///
    /// # Errors
    /// Each leaves everything as it was: as [`publish`](Self::publish), with at most
    /// [`HANDOFF_NAMES_MAX`](super::HANDOFF_NAMES_MAX) names; `Invalid` for a blank target, `LimitExceeded` above
    /// [`HANDOFF_TARGET_BYTES_MAX`] or [`HANDOFF_BYTES_MAX`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn hand_off(
        &self,
        lease: LeaseId,
        changes: &[Publish],
        target: &str,
        intent: &[u8],
    ) -> Result<NameHandoff> {
        check_names("hand off", changes.iter().map(|change| &change.name), HANDOFF_NAMES_MAX)?;
        check_text(target, intent)?;
        let looked_at = check_early(self.store(), "hand off", lease, changes)?;
        let at = self.store().wall_nanos();
        let committed = self.store().transact(Step::NameHandoffPrepare, |w| {
            let mut lookup = Lookup::of("hand off", w, lease, &looked_at)?;
            let mut names = Vec::with_capacity(changes.len());
            for Publish { name, expected, digest } in changes {
                let old = check_expected("hand off", w, name, *expected)?;
                let (kept, key) = (lookup.find(w, digest)?, name.key());
                names.push(HandoffName {
                    namespace: key.namespace.0,
                    name: key.name,
                    expected: old.map(|old| old.generation),
                    object: kept.object,
                    len: kept.len,
                });
            }
            let row = NameHandoffRow {
                target: target.to_owned(),
                names,
                intent: intent.to_vec(),
                lease: Some(lease),
                prepared: w.commit_seq(),
                at,
            };
            let id = w.next_handoff_id()?;
            if Protection::NameHandoffPrepared.is_on() {
                w.put(&id, &row)?;
            }
            NameHandoff::of(w, id, row)
        })?;
        Ok(committed.value)
    }

    /// Every hand-off of names that is not decided, in the order in which they were prepared.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn handoffs(&self) -> Result<Vec<NameHandoff>> {
        let snapshot = self.store().snapshot()?;
        let rows = snapshot.list::<NameHandoffRow>(.., usize::MAX)?;
        rows.into_iter().map(|(id, row)| NameHandoff::of(&snapshot, id, row)).collect()
    }

    /// The hand-off `id`, if it is not decided.
    ///
    /// # Errors
    /// `Damage`, `Halted`, `Closed`.
    pub fn handoff(&self, id: HandoffId) -> Result<Option<NameHandoff>> {
        let snapshot = self.store().snapshot()?;
        let row = snapshot.get::<NameHandoffRow>(&id)?;
        row.map(|row| NameHandoff::of(&snapshot, id, row)).transpose()
    }
}

fn check_text(target: &str, intent: &[u8]) -> Result<()> {
    if target.trim().is_empty() {
        return Err(Error::invalid("hand off", "target", "its name is blank"));
    }
    for (what, bytes, allowed) in [
        ("target", target.len(), HANDOFF_TARGET_BYTES_MAX),
        ("intent", intent.len(), HANDOFF_BYTES_MAX),
    ] {
        if bytes > allowed {
            let cause = format!("{bytes} bytes, {allowed} allowed");
            return Err(Error::new(ErrorKind::LimitExceeded, "hand off", what, cause));
        }
    }
    Ok(())
}
