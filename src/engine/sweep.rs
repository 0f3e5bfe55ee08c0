//! Sweep: files of ours that no row names are rubbish, and removed. A name that is not ours is a
//! stray, and never touched.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::core::{Core, TAG_BYTES, tag_in, tag_of};
use super::owner::the_living;
use super::reclaim::Reclaimed;
use super::seal::Building;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{OwnerId, UniqueId};
use crate::manifest::{FileRow, JournalRow, Reading};
use crate::protection::Protection;
use crate::vfs::{Entry, EntryKind, Step};

/// Removes sealed files that no row names and that no publication of ours is about to name.
pub(super) fn sweep_sealed(core: &Core, building: &Building, done: &mut Reclaimed) -> Result<()> {
    for (path, len) in orphans(core, Some(building))? {
        core.disk.mark(Step::ReclaimSweep);
        match unlink_quietly(core, &path) {
            Ok(()) => {
                done.orphans += 1;
                done.orphan_bytes += len;
            }
            // One that the disk does not let go of stops nothing else: the next reclaim tries again.
            Err(e) => {
                core.condition.warn(e);
                done.not_unlinked += 1;
                done.is_more_left = true;
            }
        }
    }
    Ok(())
}

/// Those files, with their lengths; whoever opened for reading builds none.
pub(super) fn orphans(core: &Core, building: Option<&Building>) -> Result<Vec<(PathBuf, u64)>> {
    let mut orphans = Vec::new();
    let mut found = Vec::new();
    for folder in 0..core.manifest.meta().sealed_folders {
        let path = layout::sealed_folder(&core.root, folder);
        for entry in list(core, &path)? {
            if let Some((digest, unique)) = layout::parse_sealed(&entry.name) {
                found.push((path.join(&entry.name), digest, unique));
            }
        }
    }
    // In this order: what is published after we listed is in neither set, and not in the list.
    let in_flight: BTreeSet<UniqueId> =
        building.map(|building| building.lock().clone()).unwrap_or_default();
    let theirs = tags_of_living_peers(core)?;
    let named = named_files(core)?;
    for (path, digest, unique) in found {
        let is_theirs = theirs.contains(&tag_in(unique));
        if is_theirs || in_flight.contains(&unique) || named.contains(&(digest, unique)) {
            continue;
        }
        match core.disk.meta(&path) {
            Ok(meta) => orphans.extend(meta.map(|meta| (path, meta.len))),
            // Its length is not known; that it is an orphan is.
            Err(e) => {
                core.condition.warn(Error::io("sweep", path.display(), e));
                orphans.push((path, 0));
            }
        }
    }
    Ok(orphans)
}

/// The marks on the files of owners that live, ours not among them. Who is dead by now names nothing
/// any more, so this comes before the look at the rows.
fn tags_of_living_peers(core: &Core) -> Result<BTreeSet<[u8; TAG_BYTES]>> {
    // Who writes alone has no peer; who reads has.
    let is_alone = core.me.is_some() && !core.is_shared();
    if is_alone || !Protection::SweepTag.is_on() {
        return Ok(BTreeSet::new());
    }
    let me = core.me.map(|me| me.owner);
    let living = the_living(core)?.into_iter().filter(|owner| Some(*owner) != me);
    Ok(living.map(tag_of).collect())
}

fn named_files(core: &Core) -> Result<BTreeSet<(crate::digest::Digest, UniqueId)>> {
    let mut named = BTreeSet::new();
    core.snapshot()?.scan::<FileRow>(.., &mut |_, row| {
        named.insert((row.digest, row.unique));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(named)
}

/// Removes what ended owners were building, their lock files, and journals that no row names:
/// nothing in those was ever acknowledged, or all of it is sealed.
pub(super) fn sweep_ended(core: &Core, living: &[OwnerId]) -> Result<u64> {
    let mut swept = 0;
    core.disk.mark(Step::OpenSweep);
    let tmp = layout::tmp_dir(&core.root);
    for entry in list(core, &tmp)? {
        if layout::parse_tmp(&entry.name).is_some_and(|(owner, _)| !living.contains(&owner)) {
            unlink_quietly(core, &tmp.join(&entry.name))?;
            swept += 1;
        }
    }
    let journals = layout::journal_dir(&core.root);
    let files = list(core, &journals)?;
    let snapshot = core.snapshot()?;
    for entry in files {
        if let Some(key) = layout::parse_journal(&entry.name)
            && !living.contains(&key.0)
            && snapshot.get::<JournalRow>(&key)?.is_none()
        {
            unlink_quietly(core, &journals.join(&entry.name))?;
            swept += 1;
        }
    }
    drop(snapshot);
    let owners = layout::owners_dir(&core.root);
    for entry in list(core, &owners)? {
        if layout::parse_owner_lock(&entry.name).is_some_and(|owner| !living.contains(&owner)) {
            unlink_quietly(core, &owners.join(&entry.name))?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Removes what owners that have just been ended were building, and their journals without a row.
pub(super) fn sweep_of(core: &Core, ended: &[OwnerId]) -> Result<u64> {
    let mut swept = 0;
    if ended.is_empty() {
        return Ok(swept);
    }
    core.disk.mark(Step::OpenSweep);
    let tmp = layout::tmp_dir(&core.root);
    for entry in list(core, &tmp)? {
        if layout::parse_tmp(&entry.name).is_some_and(|(owner, _)| ended.contains(&owner)) {
            unlink_quietly(core, &tmp.join(&entry.name))?;
            swept += 1;
        }
    }
    let journals = layout::journal_dir(&core.root);
    for entry in list(core, &journals)? {
        if let Some(key) = layout::parse_journal(&entry.name)
            && ended.contains(&key.0)
            && core.snapshot()?.get::<JournalRow>(&key)?.is_none()
        {
            unlink_quietly(core, &journals.join(&entry.name))?;
            swept += 1;
        }
    }
    Ok(swept)
}

fn list(core: &Core, path: &Path) -> Result<Vec<Entry>> {
    let entries = core.disk.list(path).map_err(|e| Error::io("sweep", path.display(), e))?;
    Ok(entries.into_iter().filter(|entry| entry.kind == EntryKind::File).collect())
}

fn unlink_quietly(core: &Core, path: &Path) -> Result<()> {
    match core.disk.unlink(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::io("sweep", path.display(), e)),
    }
}
