//! Quarantine: what did not read, with its bytes, until it is tried again.
//!
//! ```text
//!   part ──[publish_group]──▶ in quarantine ──[retry]──▶ a new detached group of its key
//!                                  ╰─[export_quarantined]─▶ its bytes, as many as were there
//! ```
//! P7: nothing in it is ever dropped.

use super::input::Used;
use super::plan::Planned;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, ObjectId, QuarantineId};
use crate::manifest::{
    ClaimKind, GroupRow, GroupState, ObjectRow, PartRow, QuarantineRow, Reading, ResourceKey, Write,
};
use crate::staging::reading::Fault;
use crate::staging::{Key, KeyShape, Stage};
use crate::vfs::Step;

/// Something that did not read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Its number.
    pub id: QuarantineId,
    /// The group that it was in.
    pub group: GroupId,
    /// The key of that group.
    pub key: Key,
    /// Why it is here.
    pub reason: String,
    /// Rows in it that no output has.
    pub rows: u64,
    /// Batches of them.
    pub batches: u64,
    /// Wall-clock nanoseconds when it was put here.
    pub at: Option<i64>,
}

impl Quarantined {
    pub(super) fn of(shape: &KeyShape, id: QuarantineId, row: &QuarantineRow) -> Result<Self> {
        Ok(Self {
            id,
            group: row.group,
            key: shape.key_of(&row.key)?,
            reason: row.reason.clone(),
            rows: row.part.rows,
            batches: row.part.batches,
            at: row.at,
        })
    }
}

/// A part that is to be put aside.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) used: Used,
    fault: Fault,
    /// Bytes of it are in the set that is published.
    pub(super) has_bytes: bool,
}

impl Aside {
    pub(super) fn new(used: Used, fault: Fault) -> Self {
        Self { used, fault, has_bytes: false }
    }

    /// Writes its row, inside the transaction.
    pub(super) fn put(
        &self,
        w: &mut Write<'_>,
        stage: &Stage,
        group: &Planned,
        part: PartRow,
        objects: Vec<ObjectId>,
        at: Option<i64>,
    ) -> Result<(QuarantineId, QuarantineRow)> {
        let id = w.next_quarantine_id()?;
        let (key, reason) = (group.row.key.clone(), self.fault.reason.clone());
        let row = QuarantineRow { group: group.id, key, reason, objects, part, at };
        w.put(&(stage.id(), id), &row)?;
        Ok((id, row))
    }
}

impl Stage {
    /// What did not read, in the order in which it was put aside.
    ///
    /// # Errors
    /// `NotFound` once the stage was removed; `Halted`, `Closed`, `Damage`.
    pub fn quarantine(&self) -> Result<Vec<Quarantined>> {
        self.check("list")?;
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let range = (self.id(), QuarantineId(0))..=(self.id(), QuarantineId(u64::MAX));
        let rows = snapshot.list::<QuarantineRow>(range, usize::MAX)?;
        rows.iter().map(|((_, id), row)| Quarantined::of(self.key_shape(), *id, row)).collect()
    }

    /// Gives back what is in quarantine, as a detached group of its own that the next plan takes up: for
    /// when its bytes read again. What still does not read comes here again. Returns the group.
    ///
    /// # Errors
    /// `NotFound` for what is not here; `Conflict` while somebody else gives it back.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn retry(&self, id: QuarantineId) -> Result<GroupId> {
        self.check("retry")?;
        let claim =
            self.store.claim(&ResourceKey::of_quarantined(self.id(), id), ClaimKind::Group)?;
        let committed = self.store.transact(Step::QuarantineCommit, |w| {
            self.row(w)?;
            let Some(row) = w.remove::<QuarantineRow>(&(self.id(), id))? else {
                return Err(self.not_here(id));
            };
            let (group, part) = (w.next_group_id()?, w.next_part_id()?);
            let whole = GroupRow {
                key: row.key,
                state: GroupState::Detached { at: w.commit_seq() },
                rows: row.part.rows,
                batches: row.part.batches,
                len: row.part.len,
                first_at: None,
                last_at: None,
                failures: 0,
                failure: None,
            };
            w.put(&(self.id(), group), &whole)?;
            w.put(&(group, part), &row.part)?;
            claim.release_in(w)?;
            Ok(group)
        })?;
        claim.released();
        Ok(committed.value)
    }

    /// The bytes of what is in quarantine, as many as were there: a part as it is stored, whole batches
    /// that no output has among them.
    ///
    /// # Errors
    /// `NotFound` for what is not here; `Damage` when these bytes do not read either.
    pub fn export_quarantined(&self, id: QuarantineId) -> Result<Vec<u8>> {
        self.check("export")?;
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let Some(row) = snapshot.get::<QuarantineRow>(&(self.id(), id))? else {
            return Err(self.not_here(id));
        };
        let mut bytes = Vec::new();
        for object in &row.objects {
            snapshot.require::<ObjectRow>(object)?;
            bytes.append(&mut self.store.fetch(*object)?);
        }
        Ok(bytes)
    }

    fn not_here(&self, id: QuarantineId) -> Error {
        let place = format!("number {id} in quarantine of {}", self.place());
        Error::new(ErrorKind::NotFound, "read", place, "it is not there; it may have been retried")
    }
}
