//! Removing: one function for each kind of row that goes with a name, a snapshot of names, a publication
//! that is not decided, a lease or a preparation. Replacing, releasing, rolling back, abandoning and
//! retiring all come here; what the rows referred to is left to the settlement (OBJ17).

use std::ops::ControlFlow;

use crate::engine::append::JOURNAL_HOLDER;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{HandoffId, LeaseId, ObjectId, ObjectSnapshotId};
use crate::manifest::{
    LeaseRow, LeasedRow, NameHandoffRow, NameKey, NameRow, Namespace, ObjectRow, ObjectSnapshotRow,
    ObjectSnapshotState, PREPARATION_HOLDER, PreparationRow, Reading, SnapshotNameKey,
    SnapshotNameRow, Write,
};
use crate::protection::Protection;

/// Rows that are gathered before they go.
const PAGE: usize = 1024;

/// Takes a name away; what stood there.
///
/// # Errors
/// As [`Write::remove`].
pub(crate) fn remove_name(w: &mut Write<'_>, name: &NameKey) -> Result<Option<NameRow>> {
    w.remove::<NameRow>(name)
}

/// Takes a committed snapshot of names away, with all names in it.
///
/// # Errors
/// `Conflict` for one that is open.
pub(crate) fn remove_object_snapshot(
    w: &mut Write<'_>,
    name: &str,
) -> Result<Option<ObjectSnapshotRow>> {
    let key = name.to_owned();
    let Some(row) = w.get::<ObjectSnapshotRow>(&key)? else { return Ok(None) };
    // OBJ11: from open to committed, and from there away.
    if row.state == ObjectSnapshotState::Open {
        let (place, cause) = (format!("snapshot {name:?}"), "it is open; commit it first");
        return Err(Error::new(ErrorKind::Conflict, "retire", place, cause));
    }
    loop {
        let page = w.list::<SnapshotNameRow>(names_of_snapshot(row.snapshot), PAGE)?;
        if page.is_empty() {
            break;
        }
        for (key, _) in page {
            w.remove::<SnapshotNameRow>(&key)?;
        }
    }
    w.remove::<ObjectSnapshotRow>(&key)
}

/// The keys of all names in a snapshot.
pub(crate) fn names_of_snapshot(snapshot: ObjectSnapshotId) -> std::ops::Range<SnapshotNameKey> {
    let at = |snapshot, namespace| SnapshotNameKey {
        snapshot,
        name: NameKey { namespace, name: String::new() },
    };
    at(snapshot, Namespace(0))..at(snapshot, Namespace(u16::MAX))
}

/// Takes a publication to an outside system away, however it was decided; the names that it was to change
/// are the caller's.
///
/// # Errors
/// As [`Write::remove`].
pub(crate) fn remove_name_handoff(
    w: &mut Write<'_>,
    handoff: HandoffId,
) -> Result<Option<NameHandoffRow>> {
    w.remove::<NameHandoffRow>(&handoff)
}

/// Takes a lease away, with its hold on objects in its own row and in rows of theirs.
///
/// # Errors
/// `Conflict` for one that keeps what a journal names, and for that of a preparation.
pub(crate) fn remove_lease(w: &mut Write<'_>, lease: LeaseId) -> Result<Option<LeaseRow>> {
    let Some(row) = w.get::<LeaseRow>(&lease)? else { return Ok(None) };
    let refused = |cause: String| {
        Err(Error::new(ErrorKind::Conflict, "retire", format!("lease {lease}"), cause))
    };
    if row.holder == JOURNAL_HOLDER {
        return refused("it keeps a payload that a journal names".to_owned());
    }
    if row.holder == PREPARATION_HOLDER
        && let Some(name) = preparation_of(w, lease)?
    {
        return refused(format!("it is that of preparation {name:?}; abandon that"));
    }
    take_lease(w, lease)
}

/// The preparation that `lease` belongs to.
fn preparation_of(w: &Write<'_>, lease: LeaseId) -> Result<Option<String>> {
    let mut found = None;
    w.scan::<PreparationRow>(.., &mut |name, row| {
        Ok(match row.lease == lease {
            true => {
                found = Some(name);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        })
    })?;
    Ok(found)
}

fn take_lease(w: &mut Write<'_>, lease: LeaseId) -> Result<Option<LeaseRow>> {
    let leased = (lease, ObjectId(0))..=(lease, ObjectId(u64::MAX));
    loop {
        let page = w.list::<LeasedRow>(leased.clone(), PAGE)?;
        if page.is_empty() {
            break;
        }
        for (key, _) in page {
            w.remove::<LeasedRow>(&key)?;
        }
    }
    w.remove::<LeaseRow>(&lease)
}

/// Ends the hold of a lease on `objects` and on others of the same content, wherever it is written, and on
/// nothing else. What it keeps as a piece of something that is not complete yet it keeps on as that (OBJ7).
///
/// # Errors
/// As [`Write::remove`].
pub(crate) fn remove_leased(
    w: &mut Write<'_>,
    lease: LeaseId,
    objects: impl IntoIterator<Item = ObjectId>,
) -> Result<()> {
    let Some(mut row) = w.get::<LeaseRow>(&lease)? else { return Ok(()) };
    let mut named: std::collections::BTreeSet<ObjectId> = row.objects.iter().copied().collect();
    let mut going = std::collections::BTreeSet::new();
    for object in objects {
        going.insert(object);
        if let Some(row) = w.get::<ObjectRow>(&object)? {
            going.extend(w.object_of(&row.digest)?.into_iter().map(|(twin, _)| twin));
        }
    }
    for object in going {
        named.remove(&object);
        let key = (lease, object);
        match w.get::<LeasedRow>(&key)? {
            Some(leased) if leased.is_piece && Protection::PieceLeases.is_on() => {
                w.put(&key, &LeasedRow { is_whole: false, ..leased })?;
            }
            _ => {
                w.remove::<LeasedRow>(&key)?;
            }
        }
    }
    let before = row.objects.len();
    row.objects.retain(|object| named.contains(object));
    match row.objects.len() == before {
        true => Ok(()),
        false => w.put(&lease, &row),
    }
}

/// Takes a preparation away, with its lease.
///
/// # Errors
/// As [`Write::remove`].
pub(crate) fn remove_preparation(w: &mut Write<'_>, name: &str) -> Result<Option<PreparationRow>> {
    let Some(row) = w.remove::<PreparationRow>(&name.to_owned())? else { return Ok(None) };
    take_lease(w, row.lease)?;
    Ok(Some(row))
}
