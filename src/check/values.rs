//! Values of names: each earlier one belongs to a name, and came before its present value.

use super::look::{Look, place_of};
use super::report::Severity;
use super::rows::{each_whole, raise};
use crate::error::Result;
use crate::ids::CommitSeq;
use crate::manifest::{HistoryRow, NameKey, NameRow, Reading, Snapshot};

/// Looks at names and history.
pub(super) fn check_values(
    look: &mut Look,
    snapshot: &Snapshot,
    highest: &mut CommitSeq,
) -> Result<()> {
    each_whole::<NameRow>(look, snapshot, &mut |look, key, row| {
        check_len(look, snapshot, &place_of::<NameRow>(key), row.object, row.len);
        raise(highest, row.commit)
    })?;
    each_whole::<HistoryRow>(look, snapshot, &mut |look, key, row| {
        let place = place_of::<HistoryRow>(key);
        check_len(look, snapshot, &place, row.object, row.len);
        let of = NameKey { namespace: key.namespace, name: key.name.clone() };
        let what = match snapshot.get::<NameRow>(&of) {
            Ok(Some(now)) if now.generation > key.generation => None,
            Ok(Some(_)) => Some("it is as new as the value that replaced it"),
            Ok(None) => Some("its name has no value"),
            // The table of names tells of it.
            Err(_) => None,
        };
        if let Some(what) = what {
            let means = "an earlier value is kept that nobody asks for";
            look.find(Severity::Damage, place, what, means);
        }
        raise(highest, row.commit)
    })
}

fn check_len(
    look: &mut Look,
    snapshot: &Snapshot,
    place: &str,
    object: crate::ids::ObjectId,
    len: u64,
) {
    // An object that is not there was told with the row's edges.
    if let Ok(Some(row)) = snapshot.get::<crate::manifest::ObjectRow>(&object)
        && row.len != len
    {
        let what = format!("it says {len} bytes, its object {object} has {}", row.len);
        look.find(Severity::Damage, place, what, "the value is another one than was put");
    }
}
