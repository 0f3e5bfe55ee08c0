//! How many records of a stream were left out before a cursor: what a run that goes on there, and a
//! fork, begin with. Unsealed records tell what was left out before them; all else is in the stream's
//! row, and what was before a checkpoint is in that.

use super::resume_from::Target;
use crate::engine::{Store, StreamView};
use crate::error::Result;
use crate::format::column::split_dropped;
use crate::ids::Sequence;
use crate::protection::Protection;
use crate::recording::reading::Restored;

/// What the unsealed records below `end` tell of.
pub(super) fn told_below(store: &Store, view: &StreamView, end: Sequence) -> Result<u64> {
    let mut told = 0u64;
    for (_, payload) in view.tail.iter().take_while(|(at, _)| *at < end) {
        let mut fetched = Vec::new();
        let bytes = store.payload_slice(payload, &mut fetched)?;
        told = told.saturating_add(split_dropped(bytes)?.0);
    }
    Ok(told)
}

/// For each stream, by position: how many were left out before its cursor, over all of it, and how
/// many of them its unsealed records there tell of.
pub(super) fn left_out(store: &Store, target: &Target) -> Result<Vec<(u64, u64)>> {
    let ats = target.restored.as_ref().map(Restored::streams);
    let each = target.views.iter().zip(&target.cursors).enumerate();
    let count = each.map(|(position, (view, cursor))| {
        let told = told_below(store, view, cursor.end)?;
        let kept = ats.and_then(|ats| ats.get(position)).map(|at| at.dropped);
        let kept = kept.filter(|_| Protection::DroppedAtCursor.is_on());
        Ok((kept.unwrap_or_else(|| view.row.dropped.saturating_add(told)), told))
    });
    count.collect()
}
