//! Outputs: what groups became, listed, read and retired.

use std::collections::BTreeMap;
use std::io;

use super::output_reader::OutputReader;
use crate::digest::Digest;
use crate::engine::Claim;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, HandoffId, OutputId, StageId};
use crate::manifest::{
    ClaimKind, HandoffOrderKey, HandoffOrderRow, HandoffRow, HandoffState, ObjectRow, OutputRow,
    Reading, ResourceKey,
};
use crate::staging::handing_off::forget_handoffs;
use crate::staging::{Key, KeyShape, Stage};
use crate::vfs::Step;

/// An output that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputView {
    /// Its number; a later one has a higher.
    pub id: OutputId,
    /// The key of its groups.
    pub key: Key,
    /// The groups whose rows it holds.
    pub groups: Vec<GroupId>,
    /// The outputs that it was merged from.
    pub merged: Vec<OutputId>,
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub len: u64,
    /// What its bytes are: the name that its converter gives.
    pub form: String,
    /// Its schema, as its converter puts it; empty where that has none.
    pub schema: Vec<u8>,
    /// Wall-clock nanoseconds when it was published.
    pub at: Option<i64>,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl OutputView {
    pub(in crate::staging) fn of(
        rows: &impl Reading,
        shape: &KeyShape,
        id: OutputId,
        row: &OutputRow,
    ) -> Result<Self> {
        Ok(Self {
            id,
            key: shape.key_of(&row.key)?,
            groups: row.groups.clone(),
            merged: row.merged.clone(),
            rows: row.rows,
            len: row.len,
            form: row.form.clone(),
            schema: row.schema.clone(),
            at: row.at,
            digest: rows.require::<ObjectRow>(&row.object)?.digest,
        })
    }
}

/// What a retirement of outputs did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetiredOutputs {
    /// Outputs that went.
    pub outputs: u64,
    /// Those that were not there: retiring them again is no error.
    pub unknown: Vec<OutputId>,
    /// Bytes that nothing refers to any more, given back by reclaim.
    pub bytes: u64,
}

impl Stage {
    /// Its outputs, in the order in which they were published.
    ///
    /// # Errors
    /// `NotFound` once the stage was removed; `Halted`, `Closed`, `Damage`.
    pub fn outputs(&self) -> Result<Vec<OutputView>> {
        self.check("list")?;
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let rows = snapshot.list::<OutputRow>(outputs_of(self.id()), usize::MAX)?;
        let views = rows.iter();
        views.map(|((_, id), row)| OutputView::of(&snapshot, self.key_shape(), *id, row)).collect()
    }

    /// The union of the schemas of everything that was ever published, as its converters put it; empty
    /// as long as none had one.
    ///
    /// # Errors
    /// As [`Stage::outputs`].
    pub fn schema(&self) -> Result<Vec<u8>> {
        self.check("read")?;
        Ok(self.row(&self.store.snapshot()?)?.schema)
    }

    /// Opens an output. Its bytes stay as long as the reader stands in this process.
    ///
    /// # Errors
    /// `NotFound` for one that is not there; `Halted`, `Closed`, `Damage`.
    pub fn read_output(&self, id: OutputId) -> Result<OutputReader> {
        self.check("read")?;
        let pin = self.store.pin();
        let snapshot = self.store.snapshot()?;
        let row = self.output_row(&snapshot, id)?;
        pin.keep(&snapshot, [row.object])?;
        pin.narrow();
        Ok(OutputReader::kept(pin, row.object, row.len))
    }

    /// Copies an output to `to`; returns its length in bytes.
    ///
    /// # Errors
    /// As [`Stage::read_output`]; `Io` when `to` refuses: then some of it is there.
    ///
    /// # Durability
    /// Whatever `to` gives, which is flushed and not synced.
    pub fn copy_output(&self, id: OutputId, to: &mut dyn io::Write) -> Result<u64> {
        let mut reader = self.read_output(id)?;
        let refused = |e| Error::io("copy", format!("output {id}"), e);
        let len = io::copy(&mut reader, to).map_err(refused)?;
        to.flush().map_err(refused)?;
        Ok(len)
    }

    /// Retires outputs, all or none: their rows are read by nobody any more. `why` goes into the
    /// receipt.
    ///
    /// # Errors
    /// `Conflict` while one of them is merged or handed to an outside system, by whomever, or its
    /// hand-off is not decided. Any error leaves all of them as they were.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`](crate::Store::reclaim).
    pub fn retire_outputs(&self, ids: &[OutputId], why: &str) -> Result<RetiredOutputs> {
        self.check("retire")?;
        let mut retired = RetiredOutputs::default();
        let mut wanted = Vec::new();
        {
            let snapshot = self.store.snapshot()?;
            self.row(&snapshot)?;
            for id in ids {
                match snapshot.get::<OutputRow>(&(self.id(), *id))? {
                    Some(_) if !wanted.contains(id) => wanted.push(*id),
                    Some(_) => {}
                    None => retired.unknown.push(*id),
                }
            }
        }
        let claims = self.claim_outputs(&wanted, &|_, _| Ok(true))?;
        if claims.len() < wanted.len() {
            let cause = "some of them are being merged, handed on or retired; try again later";
            return Err(Error::new(ErrorKind::Conflict, "retire", self.place(), cause));
        }
        if wanted.is_empty() {
            return Ok(retired);
        }
        let committed = self.store.transact(Step::RetireCommit, |w| {
            for id in &wanted {
                forget_handoffs(w, self.id(), *id)?;
                w.remove::<OutputRow>(&(self.id(), *id))?;
            }
            claims.iter().try_for_each(|claim| claim.release_in(w))?;
            let what = format!("{} outputs of {}", wanted.len(), self.place());
            self.store.write_receipt(w, &what, why).map(|(_, bytes)| bytes)
        })?;
        claims.into_iter().for_each(Claim::released);
        (retired.outputs, retired.bytes) = (wanted.len() as u64, committed.value);
        Ok(retired)
    }

    /// Claims those of `outputs` that are free and that `may` agrees to.
    pub(in crate::staging) fn claim_outputs(
        &self,
        outputs: &[OutputId],
        may: &dyn Fn(&crate::manifest::Write<'_>, OutputId) -> Result<bool>,
    ) -> Result<Vec<Claim>> {
        let named = |id: &OutputId| (ResourceKey::of_output(self.id(), *id), *id);
        let ids: BTreeMap<ResourceKey, OutputId> = outputs.iter().map(named).collect();
        let keys: Vec<ResourceKey> = outputs.iter().map(|id| named(id).0).collect();
        self.store.claim_free(&keys, ClaimKind::Output, keys.len(), &|w, key| {
            let Some(id) = ids.get(key) else { return Ok(false) };
            Ok(w.get::<OutputRow>(&(self.id(), *id))?.is_some() && may(w, *id)?)
        })
    }

    pub(in crate::staging) fn output_row(
        &self,
        rows: &impl Reading,
        id: OutputId,
    ) -> Result<OutputRow> {
        self.row(rows)?;
        rows.get::<OutputRow>(&(self.id(), id))?.ok_or_else(|| {
            let place = format!("output {id} of {}", self.place());
            let cause = "it is not there; it may have been merged or retired";
            Error::new(ErrorKind::NotFound, "read", place, cause)
        })
    }
}

/// The keys of the outputs of a stage.
pub(in crate::staging) fn outputs_of(
    stage: StageId,
) -> std::ops::RangeInclusive<(StageId, OutputId)> {
    (stage, OutputId(0))..=(stage, OutputId(u64::MAX))
}

fn handoffs(
    rows: &impl Reading,
    stage: StageId,
    output: OutputId,
    is_decided: bool,
) -> Result<Vec<HandoffId>> {
    let key = |handoff| HandoffOrderKey { stage, is_decided, output, handoff };
    let range = key(HandoffId(0))..=key(HandoffId(u64::MAX));
    let found = rows.list::<HandoffOrderRow>(range, usize::MAX)?;
    Ok(found.into_iter().map(|(key, _)| key.handoff).collect())
}

/// The hand-off of an output that may or may not be outside.
fn undecided(rows: &impl Reading, stage: StageId, output: OutputId) -> Result<Option<HandoffId>> {
    Ok(handoffs(rows, stage, output, false)?.first().copied())
}

/// Whether an outside system has an output, or may have it.
pub(super) fn is_outside(rows: &impl Reading, stage: StageId, output: OutputId) -> Result<bool> {
    if undecided(rows, stage, output)?.is_some() {
        return Ok(true);
    }
    for handoff in handoffs(rows, stage, output, true)? {
        if rows.require::<HandoffRow>(&handoff)?.state == HandoffState::Done {
            return Ok(true);
        }
    }
    Ok(false)
}
