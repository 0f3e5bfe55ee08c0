//! What was handed off, is being handed off, and was taken back.

use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{HandoffId, OutputId, StageId};
use crate::manifest::{HandoffOrderKey, HandoffOrderRow, HandoffRow, HandoffState, Reading, Write};

/// A hand-off, as it stood when it was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandoffView {
    /// Which.
    pub id: HandoffId,
    /// Of which output.
    pub output: OutputId,
    /// The outside system, by the name that it gave itself.
    pub target: String,
    /// How far it is. One that is not decided pins the bytes of its output.
    pub state: HandoffState,
    /// Attempts so far, those of a roll back as well.
    pub attempts: u32,
    /// Why the last attempt failed, if it did.
    pub failure: Option<String>,
    /// What is to be there, as the target put it.
    pub intent: Vec<u8>,
    /// What showed that it is there, as the target put it.
    pub evidence: Vec<u8>,
    /// Wall-clock nanoseconds when it was prepared.
    pub at: Option<i64>,
}

impl HandoffView {
    pub(super) fn new(id: HandoffId, row: HandoffRow) -> Self {
        Self {
            id,
            output: row.output,
            target: row.target,
            state: row.state,
            attempts: row.tries,
            failure: row.failure,
            intent: row.intent,
            evidence: row.evidence,
            at: row.at,
        }
    }
}

/// The numbers of hand-offs of `stage` that are decided or not; of one output, or of all.
fn order(
    rows: &impl Reading,
    stage: StageId,
    is_decided: bool,
    output: Option<OutputId>,
) -> Result<Vec<HandoffId>> {
    let key = |output, handoff| HandoffOrderKey { stage, is_decided, output, handoff };
    let (least, most) = (OutputId(0), OutputId(u64::MAX));
    let range = key(output.unwrap_or(least), HandoffId(0))
        ..=key(output.unwrap_or(most), HandoffId(u64::MAX));
    let found = rows.list::<HandoffOrderRow>(range, usize::MAX)?;
    Ok(found.into_iter().map(|(key, _)| key.handoff).collect())
}

/// Those of `stage` that are not decided.
pub(super) fn undecided(
    rows: &impl Reading,
    stage: StageId,
) -> Result<Vec<(HandoffId, HandoffRow)>> {
    let ids = order(rows, stage, false, None)?;
    ids.into_iter().map(|id| Ok((id, rows.require::<HandoffRow>(&id)?))).collect()
}

/// All of `stage`, in the order in which they were prepared.
pub(super) fn all(store: &Store, stage: StageId) -> Result<Vec<HandoffView>> {
    let snapshot = store.snapshot()?;
    let mut ids = order(&snapshot, stage, false, None)?;
    ids.extend(order(&snapshot, stage, true, None)?);
    ids.sort_unstable();
    ids.into_iter()
        .map(|id| Ok(HandoffView::new(id, snapshot.require::<HandoffRow>(&id)?)))
        .collect()
}

/// The hand-off of an output to `target` that counts: the one that is done, else the one that is not
/// decided.
pub(super) fn standing(
    rows: &impl Reading,
    stage: StageId,
    output: OutputId,
    target: &str,
) -> Result<Option<(HandoffId, HandoffRow)>> {
    for is_decided in [true, false] {
        for id in order(rows, stage, is_decided, Some(output))? {
            let row = rows.require::<HandoffRow>(&id)?;
            if row.target == target && row.state != HandoffState::RolledBack {
                return Ok(Some((id, row)));
            }
        }
    }
    Ok(None)
}

/// Removes the rows of the decided hand-offs of an output that is about to go.
///
/// # Errors
/// `Conflict` while one is not decided: what it names has to stay.
pub(in crate::staging) fn forget_handoffs(
    w: &mut Write<'_>,
    stage: StageId,
    output: OutputId,
) -> Result<()> {
    if let Some(id) = order(w, stage, false, Some(output))?.first() {
        let cause = format!("its hand-off {id} is not decided; resume it or roll it back first");
        return Err(Error::new(ErrorKind::Conflict, "retire", format!("output {output}"), cause));
    }
    for id in order(w, stage, true, Some(output))? {
        w.remove::<HandoffRow>(&id)?;
    }
    Ok(())
}
