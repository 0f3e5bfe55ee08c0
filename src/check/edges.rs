//! The rows that follow from others, looked at from their side: does the row that they follow from
//! stand, and do they follow from it?

use super::look::{Look, place_of};
use super::report::Severity;
use super::rows::each;
use crate::error::{ErrorKind, Result};
use crate::ids::ObjectId;
use crate::manifest::{
    DigestRow, EdgeKey, EdgeRow, FileObjectRow, ObjectRow, Place, Raw, Reading, Snapshot,
    edges_of_value,
};

/// Looks at edges, digests and file_objects.
pub(super) fn check_edges(look: &mut Look, snapshot: &Snapshot) -> Result<()> {
    each::<EdgeRow>(look, snapshot, &mut |look, key, _| {
        look.report.looked_at.edges += 1;
        if refers(snapshot, key) == Some(false) {
            let EdgeKey { object, table, .. } = key;
            let what = format!("a row of {} that does not refer to object {object}", table.name());
            let means = "the object is never given back";
            look.find(Severity::Damage, place_of::<EdgeRow>(key), what, means);
        }
        Ok(())
    })?;
    each::<DigestRow>(look, snapshot, &mut |look, key, _| {
        let (prefix, object) = *key;
        let fits = follows(snapshot, object, &|row| row.digest.prefix() == prefix);
        if fits == Some(false) {
            let what = format!("object {object} has no such digest");
            let means = "nothing is lost; the index has a row too many";
            look.find(Severity::Damage, place_of::<DigestRow>(key), what, means);
        }
        Ok(())
    })?;
    each::<FileObjectRow>(look, snapshot, &mut |look, key, _| {
        let (in_file, object) = *key;
        let lies_there =
            |row: &ObjectRow| matches!(row.place, Place::Extent { file, .. } if file == in_file);
        if follows(snapshot, object, &lies_there) == Some(false) {
            let what = format!("object {object} does not lie in file {in_file}");
            let means = "the file is never given back";
            look.find(Severity::Damage, place_of::<FileObjectRow>(key), what, means);
        }
        Ok(())
    })
}

/// Whether the object stands and is as `fits` says; `None` when its row does not read.
fn follows(
    snapshot: &Snapshot,
    object: ObjectId,
    fits: &dyn Fn(&ObjectRow) -> bool,
) -> Option<bool> {
    Some(snapshot.get::<ObjectRow>(&object).ok()?.is_some_and(|row| fits(&row)))
}

/// Whether the row that an edge names is there and refers to the object; `None` when that row
/// does not read, which its own table tells.
fn refers(snapshot: &Snapshot, edge: &EdgeKey) -> Option<bool> {
    let value = match snapshot.raw_get(edge.table, &edge.key).ok()? {
        Some(value) => value,
        None => return Some(false),
    };
    match edges_of_value(edge.table, &edge.key, &value) {
        Ok(objects) => Some(objects.contains(&edge.object)),
        Err(e) if e.kind() == ErrorKind::Unsupported => Some(false),
        Err(_) => None,
    }
}
