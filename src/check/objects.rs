//! Rows of the objects face: each is whole, and what it belongs to is there.

use super::look::Look;
use super::rows::{Used, each_whole, raise};
use crate::error::Result;
use crate::ids::LeaseId;
use crate::manifest::{
    LeasedRow, NameHandoffRow, ObjectSnapshotRow, PreparationRow, RecipeRow, RetiringRow, ScrubRow,
    Snapshot, SnapshotNameRow,
};

/// Looks at recipes, preparations, snapshots of names and publications to outside systems.
pub(super) fn check_object_rows(
    look: &mut Look,
    snapshot: &Snapshot,
    used: &mut Used,
) -> Result<()> {
    each_whole::<RecipeRow>(look, snapshot, &mut |_, key, _| raise(&mut used.object, key.0))?;
    each_whole::<RetiringRow>(look, snapshot, &mut |_, key, _| raise(&mut used.object, *key))?;
    each_whole::<LeasedRow>(look, snapshot, &mut |_, key, _| raise(&mut used.lease, key.0))?;
    each_whole::<PreparationRow>(look, snapshot, &mut |_, _, row| {
        raise(&mut used.lease, LeaseId(row.lease.0))
    })?;
    each_whole::<ObjectSnapshotRow>(look, snapshot, &mut |_, _, row| {
        raise(&mut used.object_snapshot, row.snapshot)
    })?;
    each_whole::<SnapshotNameRow>(look, snapshot, &mut |_, key, _| {
        raise(&mut used.object_snapshot, key.snapshot)
    })?;
    each_whole::<NameHandoffRow>(look, snapshot, &mut |_, key, _| raise(&mut used.handoff, *key))?;
    each_whole::<ScrubRow>(look, snapshot, &mut |_, _, _| Ok(()))
}
