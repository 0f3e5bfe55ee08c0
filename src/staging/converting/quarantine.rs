//! Quarantine: what did not read or was refused, with its bytes, until it is tried again.
//!
//! ```text
//!   part ──[publish_group, set_aside]──▶ in quarantine ──[retry]──▶ a new detached group of its key
//!                                  ╰─[export_quarantined]─▶ its bytes, as many as were there
//! ```
//! P7: nothing in it is ever dropped.

use super::input::Used;
use super::plan::Planned;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, ObjectId, QuarantineId};
use crate::manifest::{
    ClaimKind, GroupRow, GroupState, ObjectRow, PartRow, QuarantineRow, Reading, ResourceKey, Write,
};
use crate::protection::Protection;
use crate::staging::reading::Fault;
use crate::staging::{Key, KeyShape, Stage};
use crate::vfs::Step;

/// Something that did not read, or that could not be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// Its number.
    pub id: QuarantineId,
    /// The group that it was in; 0 for a record that did not read before it came to one.
    pub group: GroupId,
    /// The key of that group; empty for such a record.
    pub key: Key,
    /// Why it is here.
    pub reason: String,
    /// Rows in it that no output has; 0 where nobody knows.
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
        put_aside(w, stage, id, &row)?;
        Ok((id, row))
    }
}

/// P7: what leaves its group goes here in the same transaction.
pub(super) fn put_aside(
    w: &mut Write<'_>,
    stage: &Stage,
    id: QuarantineId,
    row: &QuarantineRow,
) -> Result<()> {
    match Protection::StageQuarantineFirst.is_on() {
        true => w.put(&(stage.id(), id), row),
        false => Ok(()),
    }
}

impl Stage {
    /// What did not read, was refused by a converter or set aside by hand, in the order in which it came here.
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
    /// when its bytes read again, or another converter takes them. What still does not read, or is refused,
    /// comes here again; what has no row left is gone once it reads. Returns the group.
    ///
    /// # Errors
    /// `NotFound` for what is not here; `Conflict` while somebody else gives it back; `Invalid` for a record
    /// that came to no group: it stays here, to be exported.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn retry(&self, id: QuarantineId) -> Result<GroupId> {
        self.check("retry")?;
        let claim =
            self.store.claim(&ResourceKey::of_quarantined(self.id(), id), ClaimKind::Group)?;
        let committed = self.store.transact(Step::QuarantineCommit, |w| {
            self.row(w)?;
            let Some(mut row) = w.remove::<QuarantineRow>(&(self.id(), id))? else {
                return Err(self.not_here(id));
            };
            if row.group == GroupId(0) {
                let place = format!("number {id} in quarantine of {}", self.place());
                let cause = "it is a record of no group; export it, and append what it holds";
                return Err(Error::invalid("retry", place, cause));
            }
            // P7: what was saved of it stays until its part is used whole: it may read worse by now.
            let (own, payloads) = (row.part.object, &mut row.part.payloads);
            let is_new = |object: &ObjectId| *object != own && !payloads.contains(object);
            let mut saved: Vec<ObjectId> = row.objects.into_iter().filter(is_new).collect();
            payloads.append(&mut saved);
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

    /// The bytes of what is in quarantine, as many as are there, each with the digest that they were
    /// stored by: what was saved of the part, which has whole batches that no output has among them, then
    /// what it names by digest, and what was saved when it was put aside before.
    ///
    /// # Errors
    /// `NotFound` for what is not here; `Damage` when not a byte of it is there.
    pub fn export_quarantined(&self, id: QuarantineId) -> Result<Vec<(Digest, Vec<u8>)>> {
        self.check("export")?;
        let pin = self.store.pin();
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let Some(row) = snapshot.get::<QuarantineRow>(&(self.id(), id))? else {
            return Err(self.not_here(id));
        };
        let mut all = row.objects;
        let named = row.part.payloads.into_iter().filter(|object| !all.contains(object));
        all.append(&mut named.collect());
        pin.keep(&snapshot, all.iter().copied())?;
        pin.narrow();
        let mut exported = Vec::new();
        for object in all {
            let digest = snapshot.require::<ObjectRow>(&object)?.digest;
            let bytes = match self.store.fetch(object) {
                Err(e) if e.kind() == ErrorKind::Damage => self.store.remains(object, true)?,
                fetched => fetched?,
            };
            if !bytes.is_empty() {
                exported.push((digest, bytes));
            }
        }
        if exported.is_empty() {
            let place = format!("number {id} in quarantine of {}", self.place());
            let cause = "no byte of it is there; retry it when its file is back";
            return Err(Error::damage("export", place, cause));
        }
        Ok(exported)
    }

    fn not_here(&self, id: QuarantineId) -> Error {
        let place = format!("number {id} in quarantine of {}", self.place());
        Error::new(ErrorKind::NotFound, "read", place, "it is not there; it may have been retried")
    }
}
