//! Rows of the objects face: recipes without a gap, and what belongs together is there.
//!
//! What is looked at of names themselves is in `values`: they are names like those of states.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::files::{file_name, lost};
use super::look::{Look, place_of};
use super::report::Severity;
use super::rows::{Used, each_whole, raise};
use crate::error::Result;
use crate::ids::{LeaseId, ObjectId, ObjectSnapshotId};
use crate::manifest::{
    LeaseRow, LeasedRow, NameHandoffRow, NameRow, Namespace, ObjectRow, ObjectSnapshotRow,
    PREPARATION_HOLDER, Place, PreparationRow, Reading, RecipeRow, RetiringRow, ScrubRow, Snapshot,
    SnapshotNameRow, recipe_of,
};

/// Looks at recipes, preparations, snapshots of names and publications to outside systems.
pub(super) fn check_object_rows(
    look: &mut Look,
    snapshot: &Snapshot,
    used: &mut Used,
) -> Result<()> {
    each_whole::<RecipeRow>(look, snapshot, &mut |look, key, _| {
        if !matches!(snapshot.get::<ObjectRow>(&key.0), Ok(Some(of)) if of.place == Place::Recipe) {
            let what = format!("object {} is no recipe", key.0);
            let means = "its pieces are kept and never given back";
            look.find(Severity::Damage, place_of::<RecipeRow>(key), what, means);
        }
        raise(&mut used.object, key.0)
    })?;
    each_whole::<RetiringRow>(look, snapshot, &mut |look, key, row| {
        if let Ok(None) = snapshot.get::<ObjectRow>(key) {
            let means = "nothing is lost; the next reclaim would look for it";
            let place = place_of::<RetiringRow>(key);
            look.find(Severity::Damage, place, "no such object is there", means);
        }
        raise(&mut used.commit_seq, row.commit)?;
        raise(&mut used.object, *key)
    })?;
    check_leases(look, snapshot, used)?;
    check_snapshots(look, snapshot, used)?;
    each_whole::<NameRow>(look, snapshot, &mut |look, key, _| {
        if key.namespace == Namespace::OBJECTS && file_name(key).is_none() {
            let what = format!("{:?} has no namespace before a name", key.name);
            look.find(Severity::Damage, place_of::<NameRow>(key), what, "nobody finds it");
        }
        Ok(())
    })?;
    each_whole::<NameHandoffRow>(look, snapshot, &mut |look, key, row| {
        for name in &row.names {
            check_len(look, snapshot, &place_of::<NameHandoffRow>(key), name.object, name.len);
        }
        raise(&mut used.commit_seq, row.prepared)?;
        raise(&mut used.handoff, *key)
    })?;
    each_whole::<ScrubRow>(look, snapshot, &mut |_, _, row| raise(&mut used.file, row.after))
}

/// Its pieces follow each other from its first byte to its last, and each is an object of that length.
pub(super) fn check_recipe(
    look: &mut Look,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &ObjectRow,
) {
    let Some(what) = gap_in(look, snapshot, object, Some(row)) else { return };
    let place = place_of::<ObjectRow>(&object);
    look.find(Severity::Damage, place, what, lost(snapshot, &[object]));
}

/// A recipe that is being taken apart: its last rows may be gone, and nothing refers to it.
pub(super) fn check_retiring(
    look: &mut Look,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &ObjectRow,
) {
    look.report.looked_at.objects += 1;
    let what = match row.place {
        Place::Recipe if snapshot.has_edges(object).is_ok_and(|has| has) => {
            Some("it is being taken apart, and something refers to it".to_owned())
        }
        Place::Recipe => gap_in(look, snapshot, object, None),
        _ => Some("it is being taken apart, and is no recipe".to_owned()),
    };
    if let Some(what) = what {
        let means = lost(snapshot, &[object]);
        look.find(Severity::Damage, place_of::<ObjectRow>(&object), what, means);
    }
}

/// The first thing that is wrong with the rows of a recipe; `whole` is its own row, if they must reach its
/// end.
fn gap_in(
    look: &mut Look,
    snapshot: &Snapshot,
    object: ObjectId,
    whole: Option<&ObjectRow>,
) -> Option<String> {
    let (mut at, mut gap) = (0u64, None);
    if let Some(row) = whole.filter(|row| row.stored_len != 0 || row.codec != 0) {
        return Some(format!("{} bytes are said to be its own, and it has none", row.stored_len));
    }
    let scanned = snapshot.scan::<RecipeRow>(recipe_of(object), &mut |(_, begins), recipe| {
        if begins != at || recipe.pieces.is_empty() {
            gap = Some(format!("byte {at} of it is in none of its pieces"));
            return Ok(ControlFlow::Break(()));
        }
        for piece in &recipe.pieces {
            // A piece that is not there is told with the edges of the recipe's row.
            if let Ok(Some(of)) = snapshot.get::<ObjectRow>(&piece.object)
                && (of.place == Place::Recipe || of.len != piece.len)
            {
                gap = Some(format!(
                    "its piece at byte {at} has {} bytes, object {} is no such piece",
                    piece.len, piece.object
                ));
                return Ok(ControlFlow::Break(()));
            }
            at = at.saturating_add(piece.len);
        }
        Ok(ControlFlow::Continue(()))
    });
    if let Err(e) = scanned {
        look.failed(&e, lost(snapshot, &[object]));
        return None;
    }
    gap.or_else(|| {
        let row = whole.filter(|row| row.len != at)?;
        Some(format!("its pieces have {at} bytes, it has {}", row.len))
    })
}

/// A preparation has its lease, a lease of one has its preparation, and what is leased has its lease.
fn check_leases(look: &mut Look, snapshot: &Snapshot, used: &mut Used) -> Result<()> {
    let mut prepared: HashMap<LeaseId, String> = HashMap::new();
    each_whole::<PreparationRow>(look, snapshot, &mut |look, key, row| {
        let place = place_of::<PreparationRow>(key);
        let what = match snapshot.get::<LeaseRow>(&row.lease) {
            Ok(Some(lease)) if lease.holder == PREPARATION_HOLDER => None,
            Ok(Some(_)) => Some(format!("lease {} is of something else", row.lease)),
            Ok(None) => Some(format!("lease {} of it is not there", row.lease)),
            Err(_) => None,
        };
        if let Some(what) = what {
            let means = "nothing keeps what was put into it";
            look.find(Severity::Damage, place.as_str(), what, means);
        }
        if let Some(other) = prepared.insert(row.lease, key.clone()) {
            let what = format!("preparation {other:?} has lease {} as well", row.lease);
            let means = "ending one of them takes what the other needs";
            look.find(Severity::Damage, place, what, means);
        }
        raise(&mut used.lease, row.lease)
    })?;
    super::rows::each_again::<LeaseRow>(snapshot, &mut |key, row| {
        if row.holder == PREPARATION_HOLDER && !prepared.contains_key(key) {
            let means = "what it keeps is never given back: nobody goes on with it";
            let what = "no preparation has it";
            look.find(Severity::Damage, place_of::<LeaseRow>(key), what, means);
        }
        Ok(())
    })?;
    each_whole::<LeasedRow>(look, snapshot, &mut |look, key, row| {
        let place = place_of::<LeasedRow>(key);
        if let Ok(None) = snapshot.get::<LeaseRow>(&key.0) {
            let means = "the object is never given back";
            look.find(Severity::Damage, place.as_str(), "its lease is not there", means);
        }
        if key.1 != row.object {
            let what = format!("it keeps object {}", row.object);
            look.find(Severity::Damage, place, what, "its key tells of another one");
        }
        raise(&mut used.lease, key.0)
    })
}

/// Names in a snapshot, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    names: u64,
    bytes: u64,
}

fn check_snapshots(look: &mut Look, snapshot: &Snapshot, used: &mut Used) -> Result<()> {
    let mut sums: HashMap<ObjectSnapshotId, Sum> = HashMap::new();
    each_whole::<SnapshotNameRow>(look, snapshot, &mut |look, key, row| {
        check_len(look, snapshot, &place_of::<SnapshotNameRow>(key), row.object, row.len);
        let sum = sums.entry(key.snapshot).or_default();
        sum.names += 1;
        sum.bytes = sum.bytes.saturating_add(row.len);
        raise(&mut used.object_snapshot, key.snapshot)
    })?;
    each_whole::<ObjectSnapshotRow>(look, snapshot, &mut |look, key, row| {
        let sum = sums.remove(&row.snapshot).unwrap_or_default();
        let said = Sum { names: row.names, bytes: row.bytes };
        if said != sum {
            let what = format!(
                "it says {} names of {} bytes, {} of {} are in it",
                said.names, said.bytes, sum.names, sum.bytes
            );
            let means = "a name is missing, or one too many";
            look.find(Severity::Damage, place_of::<ObjectSnapshotRow>(key), what, means);
        }
        raise(&mut used.commit_seq, row.committed.unwrap_or_default())?;
        raise(&mut used.object_snapshot, row.snapshot)
    })?;
    let mut left: Vec<_> = sums.into_iter().collect();
    left.sort_by_key(|(id, _)| id.0);
    for (id, sum) in left {
        let what = format!("{} names are of snapshot {id}, which has no row", sum.names);
        let means = "what they stand for is never given back";
        look.find(Severity::Damage, "snapshot_names", what, means);
    }
    Ok(())
}

fn check_len(look: &mut Look, snapshot: &Snapshot, place: &str, object: ObjectId, len: u64) {
    // An object that is not there was told with the row's edges.
    if let Ok(Some(row)) = snapshot.get::<ObjectRow>(&object)
        && row.len != len
    {
        let what = format!("it says {len} bytes, its object {object} has {}", row.len);
        look.find(Severity::Damage, place, what, "the file is another one than was published");
    }
}
