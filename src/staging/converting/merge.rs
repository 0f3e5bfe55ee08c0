//! Merge: many outputs of a key become one, by the protocol of a conversion.
//!
//! ```text
//!   outputs ──[claim_outputs]──▶ claimed ──[merge_set]──▶ written, counted ──▶ ONE transaction:
//!                                                      the one in, the many out, claims released
//! ```
//! An output that an outside system has, or may have, stays as it is: what would be merged from it
//! would come there a second time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::converter::Merger;
use super::input::Meter;
use super::options::MergeOptions;
use super::output_reader::OutputReader;
use super::outputs::{OutputView, is_outside, outputs_of};
use super::write::{Counts, Found, Written, producer_text, row_text, stage_text, validate, write};
use crate::engine::{Claim, Content};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, ObjectId, OutputId};
use crate::manifest::{OutputRow, ProducerKey, ProducerRow, Reading, ResourceKey, Write};
use crate::protection::Protection;
use crate::staging::Stage;
use crate::staging::handing_off::forget_handoffs;
use crate::vfs::Step;

/// Of so many producers the label of a merged output says how far they got.
const PRODUCERS_MAX: usize = 128;

/// What became of outputs that were to be merged.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The outputs; gone, if there is one in their place.
    pub inputs: Vec<OutputId>,
    /// The one that took their place; or why they stand as they were.
    pub output: Result<OutputId>,
}

/// Outputs that become one.
struct Set {
    rows: Vec<(OutputId, OutputRow)>,
    claims: Mutex<Vec<Claim>>,
}

impl Stage {
    /// Merges outputs of one key and of the merger's form, as many as `options` say; each merge is ONE
    /// transaction and fails apart. Outputs that somebody else has, and those that were handed to an
    /// outside system, are passed over.
    ///
    /// # Errors
    /// Each merge's own is in [`Merged::output`], as of a conversion. `Invalid` for bounds that merge
    /// nothing; `NotFound` once the stage was removed.
    ///
    /// # Durability
    /// What is published is *Durable* when it returns.
    pub fn merge(&self, options: &MergeOptions<'_>, merger: &dyn Merger) -> Result<Vec<Merged>> {
        self.check("merge")?;
        if options.inputs_max < 2 || options.inputs_min < 2 || options.threads_max == 0 {
            let cause = "inputs_max and inputs_min are at least 2, threads_max at least 1";
            return Err(Error::invalid("merge", self.place(), cause));
        }
        let sets = self.claimed(self.mergeable(options, merger.form())?, options)?;
        let meter = Meter::new(sets.len() as u64, options.progress);
        let mut merged: Vec<Option<Result<OutputId>>> = sets.iter().map(|_| None).collect();
        let set_at = |at: u64| usize::try_from(at).ok().and_then(|at| sets.get(at));
        let work = |at: u64| match set_at(at) {
            Some(set) => self.merge_set(set, options, merger, &meter),
            None => Err(Error::invalid("merge", "outputs", "there are fewer")),
        };
        let mut take = |at: u64, written: Result<Written>| {
            let Some(set) = set_at(at) else { return };
            let output = written.and_then(|written| self.publish_merged(set, written));
            meter.groups_done.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
            // Whatever happened, what is still ours is free again.
            if let Err(e) = self.store.release_claims(std::mem::take(&mut *set.claims.lock())) {
                self.memory.keep_trouble(e);
            }
            if let Some(place) = usize::try_from(at).ok().and_then(|at| merged.get_mut(at)) {
                *place = Some(output);
            }
        };
        self.store.at_once(options.threads_max, sets.len() as u64, &work, &mut take);
        let ends = sets.iter().zip(merged);
        let ends = ends.filter_map(|(set, output)| {
            Some(Merged { inputs: set.rows.iter().map(|(id, _)| *id).collect(), output: output? })
        });
        Ok(ends.collect())
    }

    /// Sets of outputs that may become one, oldest first.
    fn mergeable(&self, options: &MergeOptions<'_>, form: &str) -> Result<Vec<Vec<OutputId>>> {
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let mut open: BTreeMap<Vec<u8>, (u64, Vec<OutputId>)> = BTreeMap::new();
        let mut sets = Vec::new();
        for ((_, id), row) in snapshot.list::<OutputRow>(outputs_of(self.id()), usize::MAX)? {
            if row.form != form
                || row.len > options.input_bytes_max
                || is_outside(&snapshot, self.id(), id)?
            {
                continue;
            }
            let (len, ids) = open.entry(row.key).or_default();
            if len.saturating_add(row.len) > options.output_bytes_max
                || ids.len() >= options.inputs_max
            {
                sets.push(std::mem::take(ids));
                *len = 0;
            }
            *len = len.saturating_add(row.len);
            ids.push(id);
        }
        sets.extend(open.into_values().map(|(_, ids)| ids));
        sets.retain(|ids| ids.len() >= options.inputs_min);
        Ok(sets)
    }

    /// Those that are free, claimed; a set of which too few are is let go.
    fn claimed(&self, sets: Vec<Vec<OutputId>>, options: &MergeOptions<'_>) -> Result<Vec<Set>> {
        let mut claimed = Vec::new();
        for ids in sets {
            let may = |w: &Write<'_>, id: OutputId| Ok(!is_outside(w, self.id(), id)?);
            let claims = self.claim_outputs(&ids, &may)?;
            if claims.len() < options.inputs_min {
                self.store.release_claims(claims)?;
                continue;
            }
            let is_ours = |id: &OutputId| {
                let key = ResourceKey::of_output(self.id(), *id);
                claims.iter().any(|claim| *claim.resource() == key)
            };
            let ours: Vec<OutputId> = ids.iter().filter(|id| is_ours(id)).copied().collect();
            let snapshot = self.store.snapshot()?;
            let rows = ours.into_iter().map(|id| Ok((id, self.output_row(&snapshot, id)?)));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            claimed.push(Set { rows, claims: Mutex::new(claims) });
        }
        Ok(claimed)
    }

    fn merge_set(
        &self,
        set: &Set,
        options: &MergeOptions<'_>,
        merger: &dyn Merger,
        meter: &Meter<'_>,
    ) -> Result<Written> {
        meter.tell()?;
        let snapshot = self.store.snapshot()?;
        let mut inputs: Vec<(OutputView, OutputReader)> = Vec::new();
        for (id, row) in &set.rows {
            let view = OutputView::of(&snapshot, self.key_shape(), *id, row)?;
            inputs.push((view, self.read_output(*id)?));
        }
        let mut context = vec![stage_text(self)?];
        let from = ProducerKey { stage: self.id(), name: String::new() };
        for (key, row) in snapshot.list::<ProducerRow>(from.., PRODUCERS_MAX)? {
            if key.stage == self.id() {
                context.push(producer_text(&key, &row)?);
            }
        }
        drop(snapshot);
        let given = inputs.iter().fold(0u64, |rows, (view, _)| rows.saturating_add(view.rows));
        let row = merged_row(set, given, merger.form(), self.store.wall_nanos());
        let mut content = Content::new(Vec::new(), Some(row_text(self, &row)?));
        content.context = context.into();
        content.inputs = inputs.iter().map(|(view, _)| view.digest).collect();
        let (has_failed, mut said) = (AtomicBool::new(false), 0);
        let sealed = write(self, content, options.output_bytes_max, &has_failed, |out, _| {
            said = merger.merge(&inputs, out)?;
            Ok(true)
        })?;
        let Some(sealed) = sealed else {
            return Err(Error::invalid("merge", "outputs", "nothing was written"));
        };
        let (sealed, schema) =
            validate(sealed, &Counts { given, said }, &mut |reader, count| match count {
                true => merger.count_rows(reader).map(Found::Rows),
                false => merger.schema(reader).map(Found::Schema),
            })?;
        let len = sealed.lens().first().copied().unwrap_or(0);
        Ok(Written { set: sealed, rows: said, len, form: merger.form().to_owned(), schema })
    }

    /// The one takes the place of the many, in ONE transaction.
    fn publish_merged(&self, set: &Set, written: Written) -> Result<OutputId> {
        let mut claims = set.claims.lock();
        let Written { set: sealed, rows, len, form, schema } = written;
        let at = self.store.wall_nanos();
        let id = self.store.publish_set(sealed, Step::OutputCommit, |w, objects| {
            self.row(w)?;
            claims.iter().try_for_each(|claim| claim.release_in(w))?;
            for (id, row) in &set.rows {
                forget_handoffs(w, self.id(), *id)?;
                let stands = w.remove::<OutputRow>(&(self.id(), *id))?;
                if stands.as_ref() != Some(row) && Protection::StageClaimChecked.is_on() {
                    let place = format!("output {id} of {}", self.place());
                    let cause = "it is not as it was when it was claimed";
                    return Err(Error::new(ErrorKind::Conflict, "merge", place, cause));
                }
            }
            let Some(object) = objects.first() else {
                return Err(Error::invalid("merge", "output", "it has no bytes"));
            };
            let row = OutputRow {
                object: *object,
                len,
                schema: schema.clone(),
                ..merged_row(set, rows, &form, at)
            };
            let id = w.next_output_id()?;
            w.put(&(self.id(), id), &row)?;
            Ok(id)
        })?;
        std::mem::take(&mut *claims).into_iter().for_each(Claim::released);
        Ok(id)
    }
}

/// The row of what a set becomes, as far as it is known before it is written.
fn merged_row(set: &Set, rows: u64, form: &str, at: Option<i64>) -> OutputRow {
    let mut groups: Vec<GroupId> =
        set.rows.iter().flat_map(|(_, row)| row.groups.iter().copied()).collect();
    groups.sort_unstable();
    groups.dedup();
    OutputRow {
        object: ObjectId(0),
        key: set.rows.first().map(|(_, row)| row.key.clone()).unwrap_or_default(),
        groups,
        merged: set.rows.iter().map(|(id, _)| *id).collect(),
        rows,
        len: 0,
        form: form.to_owned(),
        schema: Vec::new(),
        at,
    }
}
