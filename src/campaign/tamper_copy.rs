//! Scenarios around copies of a whole store: what a drive wrote otherwise than it was told must not
//! become the truth.

use std::sync::Arc;

use super::check::verify_objects;
use super::content::Content;
use super::finding::{Finding, Rule};
use super::liar::{Liar, Lie};
use super::play::{copy_root, root};
use super::tamper::{Told, append, born, create, must, options, read_file, write_file};
use crate::error::ErrorKind;
use crate::format::layout;
use crate::journal::Level;
use crate::manifest::{CheckIntegrity, FileRow, Reading};
use crate::vfs::Disk;

/// Each write to the copy of a manifest is another one in turn, and nobody says so: the copy is
/// refused, or is right all the same.
pub(super) fn bad_manifest_copy(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let (store, stream) = create(&disk)?;
    must("append", append(&store, stream, 1, Level::Durable))?;
    let expected = must("read", Content::read(&store))?;
    must("close", store.close())?;
    let mut looks = 0;
    for skipped in 0.. {
        let liar = Liar::new(&disk, Lie::FlippedWrite("tmp"));
        liar.arm_after(skipped);
        let lying: Arc<dyn Disk> = Arc::new(liar.clone());
        match options(lying).compact(root()) {
            Err(e) if e.kind() != ErrorKind::Damage => {
                return Err(Finding::error(Rule::Damage, "compact a manifest on a bad drive", &e));
            }
            _ => {}
        }
        looks += 1;
        let opened = options(Arc::new(disk.clone())).open_read_only(root());
        let reader = opened.map_err(|e| Finding::error(Rule::Opens, "open what was copied", &e))?;
        let found = Content::read(&reader);
        let found = found.map_err(|e| Finding::error(Rule::Digests, "read what was copied", &e))?;
        if found != expected {
            return Err(Finding::new(Rule::State, "a compacted manifest shows another state"));
        }
        must("close", reader.close())?;
        if !liar.has_lied() {
            return Ok(looks);
        }
    }
    Ok(looks)
}

/// A file of the earlier backup went bad: the next one must notice, and have it whole again.
pub(super) fn bad_backup(seed: u64) -> Told<u64> {
    let disk = born(seed)?;
    let (store, _) = create(&disk)?;
    let lease = must("lease", store.lease("keep", "a scenario", None, &[]))?;
    must("store", store.put_objects(lease, vec![vec![7; 900]]))?;
    must("back up", store.backup(copy_root()))?;
    let snapshot = must("read", store.snapshot())?;
    let mut files = must("list", snapshot.list::<FileRow>(.., usize::MAX))?;
    let Some((_, row)) = files.pop() else {
        return Err(Finding::new(Rule::Acted, "nothing was sealed"));
    };
    let folders = must("ask", store.info())?.sealed_folders;
    let path = layout::sealed(&copy_root(), &row.digest, row.unique, folders);
    let bytes = read_file(&disk, &path)?;
    write_file(&disk, &path, &[bytes[200] ^ 4], 200)?;
    must("back up again", store.backup(copy_root()))?;
    let opening = options(Arc::new(disk.process(7))).check_integrity(CheckIntegrity::Always);
    let copy = must("open the backup", opening.open_read_only(copy_root()))?;
    verify_objects(&copy)?;
    Ok(1)
}
