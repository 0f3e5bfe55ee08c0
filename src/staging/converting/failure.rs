//! What is left of a conversion that failed, or gave nothing: a note, and a group that is free again.

use super::plan::Planned;
use crate::engine::Claim;
use crate::error::{Error, ErrorKind};
use crate::manifest::{GroupRow, Reading};
use crate::staging::Stage;
use crate::staging::describing::shortened;
use crate::vfs::Step;

/// Why a group that gave no rows is still there.
const NO_ROWS: &str = "its converter wrote no rows";

/// STG20: notes that converting `group` failed and releases its claim, in ONE transaction. What was
/// cancelled is not noted. Where nothing can be written now the claim
/// ends with the next that is taken.
pub(super) fn note_failure(stage: &Stage, group: &Planned, claim: Claim, error: &Error) {
    match error.kind() {
        ErrorKind::Cancelled => release(stage, claim),
        _ => note(stage, group, claim, shortened(error.chain())),
    }
}

/// STG23: notes that `group` gave no rows, as a try that led to nothing: others come first then.
pub(super) fn note_no_rows(stage: &Stage, group: &Planned, claim: Claim) {
    note(stage, group, claim, NO_ROWS.to_owned());
}

/// Whether the last try of a group failed, and did not only give no rows.
pub(super) fn failed_last(row: &GroupRow) -> bool {
    row.failure.as_deref().is_some_and(|failure| failure != NO_ROWS)
}

fn note(stage: &Stage, group: &Planned, claim: Claim, why: String) {
    let noted = stage.store.transact(Step::GroupFail, |w| {
        claim.release_in(w)?;
        let key = (stage.id(), group.id);
        if let Some(mut row) = w.get::<GroupRow>(&key)? {
            row.failures = row.failures.saturating_add(1);
            row.failure = Some(why);
            w.put(&key, &row)?;
        }
        Ok(())
    });
    match noted {
        Ok(_) => claim.released(),
        // The claim's own end is tried once more; its failure is told by health.
        Err(e) => {
            if !matches!(e.kind(), ErrorKind::Fenced | ErrorKind::Halted | ErrorKind::Closed) {
                stage.memory.keep_trouble(e);
            }
        }
    }
}

fn release(stage: &Stage, claim: Claim) {
    if let Err(e) = stage.store.release_claims(vec![claim]) {
        stage.memory.keep_trouble(e);
    }
}
