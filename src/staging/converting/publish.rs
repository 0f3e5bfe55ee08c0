//! Publish: what a group became is there, and what it was made of is gone, in ONE transaction.
//!
//! ```text
//!   written outputs, bytes that do not read (all durable) ──[publish_group]──▶ ONE transaction:
//!     the claim is ours, the parts are as claimed ─▶ outputs in ─▶ used parts out ─▶ what does not
//!     read, or was refused, into quarantine ─▶ group counted down, or out ─▶ schema of the stage ─▶ claim released
//! ```
//! P4, STG18: no instant lies between these. STG24: parts that no output holds stay.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::convert::Made;
use super::failure::note_no_rows;
use super::input::Used;
use super::left::Left;
use super::plan::Planned;
use super::quarantine::{Aside, Quarantined};
use super::refused::{RefusedPart, refused_of};
use super::write::{Slice, With, Written, stage_text};
use crate::engine::{Claim, Content, SealedSet};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;
use crate::manifest::{OutputRow, StageRow, Write};
use crate::protection::Protection;
use crate::staging::Stage;
use crate::staging::describing::Said;
use crate::vfs::Step;

/// How often the stage's schema may move on under a publication before it gives up.
const TRIES_MAX: usize = 64;

/// What the rows of an output will say.
struct Output {
    rows: u64,
    len: u64,
    form: String,
    schema: Vec<u8>,
}

/// What is published of a group.
#[derive(Default)]
struct Publication {
    outputs: Vec<Output>,
    used: Vec<Used>,
    /// What is put aside, each with as many of its bytes as are there; behind the outputs in the set.
    aside: Vec<Aside>,
    /// What the converter refused; behind those in the set.
    refused: Vec<RefusedPart>,
}

impl Publication {
    /// Whether it changes nothing: parts without a batch go, and are no rows.
    fn is_nothing(&self) -> bool {
        self.outputs.is_empty()
            && self.aside.is_empty()
            && self.refused.is_empty()
            && self.used.iter().all(|used| used.row.batches > 0)
    }
}

/// Publishes what a group became; an error comes with its claim.
pub(super) fn publish_group(
    with: &With<'_>,
    group: &Planned,
    claim: Claim,
    slices: Vec<Slice>,
) -> std::result::Result<Made, (Error, Claim)> {
    match prepare(with, group, slices).and_then(|(mut set, publication)| {
        if publication.is_nothing() {
            return Ok(None);
        }
        commit(with, group, &claim, &mut set, &publication).map(Some)
    }) {
        Ok(Some(made)) => {
            claim.released();
            Ok(made)
        }
        // STG23: nothing is published, and all rows stay.
        Ok(None) => {
            note_no_rows(with.stage, group, claim);
            Ok(Made { rows_left: group.row.rows, ..Made::default() })
        }
        Err(e) => Err((e, claim)),
    }
}

/// One set of everything that the transaction will name, durable.
fn prepare(
    with: &With<'_>,
    group: &Planned,
    slices: Vec<Slice>,
) -> Result<(SealedSet, Publication)> {
    let mut publication = Publication::default();
    let (mut whole, mut refused): (Option<SealedSet>, _) = (None, Vec::new());
    for slice in slices {
        // Without an output, what was refused goes only if nothing else was taken.
        let is_published = slice.output.is_some() || slice.used.iter().all(Used::is_all_refused);
        if let Some(Written { set, rows, len, form, schema }) = slice.output {
            publication.outputs.push(Output { rows, len, form, schema });
            match &mut whole {
                None => whole = Some(set),
                Some(whole) => whole.join(set),
            }
        }
        for mut used in slice.used {
            if !is_published {
                // What was read went nowhere.
                used.waiting += used.batches;
                (used.batches, used.rows, used.len) = (0, 0, 0);
                used.refused.clear();
            }
            if let Some((part, bytes)) = refused_of(with.stage, &used)? {
                let mut content = Content::new(bytes, Some(part.text(with.stage, group)?));
                content.context = [stage_text(with.stage)?].into();
                refused.push(content);
                publication.refused.push(part);
            }
            match used.fault.take_if(|_| used.waiting == 0) {
                Some(fault) => publication.aside.push(Aside::new(used, fault)),
                None => publication.used.push(used),
            }
        }
    }
    let mut contents = Vec::new();
    for aside in &mut publication.aside {
        let bytes = with.stage.store.remains(aside.used.row.object, true)?;
        aside.has_bytes = !bytes.is_empty();
        contents.extend(aside.has_bytes.then(|| Content::new(bytes, None)));
    }
    contents.append(&mut refused);
    let aside = with.stage.store.seal_contents(contents)?;
    match whole {
        None => Ok((aside, publication)),
        Some(mut whole) => {
            whole.join(aside);
            Ok((whole, publication))
        }
    }
}

fn commit(
    with: &With<'_>,
    group: &Planned,
    claim: &Claim,
    set: &mut SealedSet,
    publication: &Publication,
) -> Result<Made> {
    let stage = with.stage;
    let place = || format!("group {} of {}", group.id, stage.place());
    if !Protection::StageReleaseInCommit.is_on() {
        stage.store.transact(Step::ClaimCommit, |w| claim.release_in(w))?;
    }
    for _ in 0..TRIES_MAX {
        let before = stage.row(&stage.store.snapshot()?)?.schema;
        // The converter's own code: before the transaction, never inside.
        let schema = union(with, &before, publication)?;
        let has_moved = Cell::new(false);
        let step = match publication.outputs.is_empty() {
            true => Step::QuarantineCommit,
            false => Step::OutputCommit,
        };
        let committed = stage.store.publish_again(set, step, |w, objects| {
            if Protection::StageReleaseInCommit.is_on() {
                release(w, claim)?;
            }
            let mut row = stage.row(w)?;
            if row.schema != before && !publication.outputs.is_empty() {
                has_moved.set(true);
                return Err(Error::new(ErrorKind::Conflict, "convert", place(), "asked again"));
            }
            // What adds no output has nothing to say of it: it may have moved on.
            if row.schema != schema && !publication.outputs.is_empty() {
                row.schema.clone_from(&schema);
                w.put::<StageRow>(&stage.name().to_owned(), &row)?;
            }
            change(w, stage, group, publication, objects)
        });
        match committed {
            Err(_) if has_moved.get() => {}
            committed => return committed,
        }
    }
    let cause = format!("the schema of the stage moved on {TRIES_MAX} times; convert it again");
    Err(Error::new(ErrorKind::Conflict, "convert", place(), cause))
}

/// The schema of the stage with those of the outputs.
fn union(with: &With<'_>, before: &[u8], publication: &Publication) -> Result<Vec<u8>> {
    let mut schema = before.to_vec();
    for output in publication.outputs.iter().filter(|output| !output.schema.is_empty()) {
        let merge = || with.converter.merge_schema(&schema, &output.schema);
        schema = catch_unwind(AssertUnwindSafe(merge)).unwrap_or_else(|_| {
            let cause = "merging schemas panicked; nothing was published";
            Err(Error::new(ErrorKind::CallerPanicked, "convert", "schema", cause))
        })?;
        Said::Schema.check("convert", schema.len())?;
    }
    Ok(schema)
}

/// STG18: the right to the group ends with what it was for; without it nothing happens.
fn release(w: &mut Write<'_>, claim: &Claim) -> Result<()> {
    match claim.release_in(w) {
        Err(e) if e.kind() == ErrorKind::Fenced && !Protection::StageClaimChecked.is_on() => Ok(()),
        released => released,
    }
}

/// Everything that changes with the publication of a group.
fn change(
    w: &mut Write<'_>,
    stage: &Stage,
    group: &Planned,
    publication: &Publication,
    objects: &[ObjectId],
) -> Result<Made> {
    let mut objects = objects.iter().copied();
    let mut made = Made::default();
    let at = stage.store.wall_nanos();
    for output in &publication.outputs {
        let row = OutputRow {
            object: next(&mut objects)?,
            key: group.row.key.clone(),
            groups: vec![group.id],
            merged: Vec::new(),
            rows: output.rows,
            len: output.len,
            form: output.form.clone(),
            schema: output.schema.clone(),
            at,
        };
        let id = w.next_output_id()?;
        w.put::<OutputRow>(&(stage.id(), id), &row)?;
        made.outputs.push(id);
        (made.rows, made.len) = (made.rows + row.rows, made.len.saturating_add(row.len));
    }
    let mut left = Left::of(w, stage, group)?;
    for used in &publication.used {
        left.take(w, used)?;
    }
    for aside in &publication.aside {
        let kept = if aside.has_bytes { vec![next(&mut objects)?] } else { Vec::new() };
        let part = left.set_aside(w, &aside.used)?;
        let (id, row) = aside.put(w, stage, group, part, kept, at)?;
        made.quarantined.push(Quarantined::of(stage.key_shape(), id, &row)?);
    }
    for refused in &publication.refused {
        let (id, row) = refused.put(w, stage, group, next(&mut objects)?, at)?;
        made.quarantined.push(Quarantined::of(stage.key_shape(), id, &row)?);
    }
    left.finish(w, &mut made)?;
    Ok(made)
}

fn next(objects: &mut impl Iterator<Item = ObjectId>) -> Result<ObjectId> {
    objects.next().ok_or_else(|| Error::invalid("convert", "output", "it has no bytes"))
}
