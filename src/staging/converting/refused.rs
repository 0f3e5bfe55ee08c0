//! Refused: batches that a converter does not take. They go to quarantine as a part of their own, in the
//! transaction that publishes the others.
//!
//! ```text
//!   part ──[Input::refuse]──▶ batches that were refused ──[refused_of]──▶ one part of them, sealed
//!                                                              ╰─[put]─▶ in quarantine, with the reasons
//! ```
//! P7: their bytes are those that were accepted: given back they are what they were.

use std::collections::BTreeSet;

use super::input::Used;
use super::plan::Planned;
use super::quarantine::put_aside;
use crate::digest::Digest;
use crate::engine::RowText;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::{
    Content as Body, PartBuilder, PartEnd, PartFrame, encode_batch, scan_part,
};
use crate::ids::{ObjectId, QuarantineId, Sequence};
use crate::manifest::{
    Key as _, ObjectRow, PartRow, QuarantineRow, Reading, Table, Write, to_value,
};
use crate::staging::Stage;
use crate::staging::describing::shortened;

/// A batch that a converter does not take.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) sequence: Sequence,
    pub(super) rows: u64,
    pub(super) len: u64,
    /// In the converter's words.
    pub(super) why: String,
}

/// Those of one part, as a part of their own.
#[derive(Debug)]
pub(super) struct RefusedPart {
    part: PartRow,
    reason: String,
}

/// What was refused of `used`, and the bytes of the part that it becomes.
///
/// # Errors
/// `Damage` when the part does not give those batches any more; `Io`.
pub(super) fn refused_of(stage: &Stage, used: &Used) -> Result<Option<(RefusedPart, Vec<u8>)>> {
    let Some(first) = used.refused.first() else { return Ok(None) };
    let wanted: BTreeSet<Sequence> = used.refused.iter().map(|one| one.sequence).collect();
    let row = &used.row;
    let bytes = match stage.store.fetch(row.object) {
        Err(e) if e.kind() == ErrorKind::Damage => stage.store.remains(row.object, true)?,
        fetched => fetched?,
    };
    let scan = scan_part(&bytes);
    let is_whole = !matches!(scan.end, PartEnd::Damaged { .. });
    // Of records of its own: salvage knows a part by these.
    let (from, last) = (wanted.first().copied(), wanted.last().copied());
    let (Some(from), Some(last)) = (from, last) else { return Ok(None) };
    let upto = Sequence(last.0.saturating_add(1));
    let mut builder = PartBuilder::new(stage.id(), row.intake, from, upto);
    let (mut named, mut found) = (BTreeSet::new(), 0usize);
    for frame in scan.frames.iter().filter(|frame| is_whole && wanted.contains(&frame.sequence)) {
        named.extend(push(&mut builder, frame)?);
        found += 1;
    }
    if found != wanted.len() {
        let place = format!("part {} of {}", used.part, stage.place());
        let cause = "a batch of it that was refused does not read any more; nothing was changed";
        return Err(Error::damage("convert", place, cause));
    }
    let total = |of: fn(&Refused) -> u64| {
        used.refused.iter().fold(0u64, |sum, one| sum.saturating_add(of(one)))
    };
    let part = PartRow {
        object: ObjectId(0),
        payloads: payloads(stage, row, &named)?,
        rows: total(|one| one.rows),
        batches: found as u64,
        skip: 0,
        len: total(|one| one.len),
        intake: row.intake,
        first: from,
        upto,
    };
    let reason = match found {
        1 => first.why.clone(),
        _ => shortened(format!("{} (and {} batches more were refused)", first.why, found - 1)),
    };
    Ok(Some((RefusedPart { part, reason }, builder.finish())))
}

/// Puts a batch into the part as it was accepted; the object that it lies in, if it lies in one.
fn push(builder: &mut PartBuilder, frame: &PartFrame<'_>) -> Result<Option<Digest>> {
    match frame.content {
        Body::Inline(bytes) => {
            builder.push(frame.sequence, &encode_batch(&frame.head, bytes)?)?;
            Ok(None)
        }
        Body::Object { digest, len, .. } => {
            let head = encode_batch(&frame.head, &[])?;
            builder.push_named(frame.sequence, &digest, len, &head)?;
            Ok(Some(digest))
        }
    }
}

/// The objects of `row` that have these digests.
fn payloads(stage: &Stage, row: &PartRow, named: &BTreeSet<Digest>) -> Result<Vec<ObjectId>> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let snapshot = stage.store.snapshot()?;
    let mut objects = Vec::new();
    for object in &row.payloads {
        let found = snapshot.get::<ObjectRow>(object)?;
        objects.extend(found.filter(|found| named.contains(&found.digest)).map(|_| *object));
    }
    Ok(objects)
}

impl RefusedPart {
    /// What the label of its file says of it.
    pub(super) fn text(&self, stage: &Stage, group: &Planned) -> Result<RowText> {
        let (key, reason) = (group.row.key.clone(), self.reason.clone());
        let (part, objects) = (self.part.clone(), Vec::new());
        let row = QuarantineRow { group: group.id, key, reason, objects, part, at: None };
        let key = (stage.id(), QuarantineId(0)).to_bytes();
        let value = to_value(&key, &row)?;
        Ok((Table::Quarantine.number(), key, value))
    }

    /// Writes its row, inside the transaction.
    pub(super) fn put(
        &self,
        w: &mut Write<'_>,
        stage: &Stage,
        group: &Planned,
        object: ObjectId,
        at: Option<i64>,
    ) -> Result<(QuarantineId, QuarantineRow)> {
        let id = w.next_quarantine_id()?;
        let part = PartRow { object, ..self.part.clone() };
        let (key, reason) = (group.row.key.clone(), self.reason.clone());
        let row = QuarantineRow { group: group.id, key, reason, objects: vec![object], part, at };
        put_aside(w, stage, id, &row)?;
        Ok((id, row))
    }
}
