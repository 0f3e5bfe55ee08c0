//! Closed books: every byte on disk belongs to one class, and the classes are summed apart from
//! each other, none by subtraction.
//!
//! P10: live + dead + condemned + open + orphan bytes = bytes on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::core::Core;
use super::owner::the_living;
use super::store::Store;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{OwnerId, UniqueId};
use crate::manifest::{Books, FileRow, FileState, JournalRow, ObjectRow, Place, Reading};
use crate::vfs::EntryKind;

/// Bytes by class. Strays are not ours and in no class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Objects that rows refer to, and the framing of the files that hold them.
    pub live: u64,
    /// Retired objects in files that still hold live ones.
    pub dead: u64,
    /// Files whose every byte was retired.
    pub condemned: u64,
    /// The manifest, HEAD, ballast, journals, and what living owners lock or build. Of a single file
    /// the manifest is what no file in it takes: rows, indexes, free pages.
    pub open: u64,
    /// Files of ours that no row names: harmless, removed by reclaim.
    pub orphan: u64,
    /// What the disk says of all of them.
    pub on_disk: u64,
}

impl Accounts {
    /// Whether the classes add up to what the disk holds.
    pub fn are_closed(&self) -> bool {
        let classes = [self.live, self.dead, self.condemned, self.open, self.orphan];
        classes.iter().try_fold(0u64, |sum, class| sum.checked_add(*class)) == Some(self.on_disk)
    }
}

impl Store {
    /// Adds up every class of bytes. Of a store that is being written the classes may be from
    /// slightly different instants; of a quiet one they are exact.
    ///
    /// # Errors
    /// `Damage` for a row that does not read; `Io`.
    pub fn accounts(&self) -> Result<Accounts> {
        let core = self.core();
        let mut accounts = Accounts::default();
        // Listed before the rows are read: a file born between is in neither.
        let listed = match core.manifest.meta().single_file {
            false => list_all(core, &mut accounts)?,
            true => list_bodies(core, &mut accounts)?,
        };
        let rows = FileRows::read(core, &listed, &mut accounts)?;
        let journals: BTreeSet<(OwnerId, u64)> = self
            .snapshot()?
            .list::<JournalRow>(.., usize::MAX)?
            .into_iter()
            .map(|(k, _)| k)
            .collect();
        let living = the_living(core)?;
        for (path, len) in listed {
            match class_of(core, &path, &rows, &journals, &living) {
                Class::Named => {}
                Class::Open => accounts.open += len,
                Class::Orphan => accounts.orphan += len,
            }
        }
        Ok(accounts)
    }
}

struct FileRows {
    named: BTreeMap<UniqueId, u64>,
}

impl FileRows {
    /// Live from the objects, dead and condemned from the files.
    fn read(core: &Core, listed: &[(PathBuf, u64)], accounts: &mut Accounts) -> Result<Self> {
        let there: BTreeSet<UniqueId> =
            listed.iter().filter_map(|(path, _)| unique_of(path)).collect();
        let snapshot = core.snapshot()?;
        let mut named = BTreeMap::new();
        snapshot.scan::<ObjectRow>(.., &mut |_, row| {
            if let Place::Extent { .. } = row.place {
                accounts.live += row.stored_len;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        snapshot.scan::<FileRow>(.., &mut |_, row| {
            named.insert(row.unique, row.len);
            match row.state {
                FileState::Sealed => {
                    accounts.live += row.framing;
                    accounts.dead += row.dead;
                }
                FileState::Condemned => accounts.condemned += row.len,
                // A crash may have come between its unlink and the commit that forgets it.
                FileState::Unlinking if there.contains(&row.unique) => {
                    accounts.condemned += row.len;
                }
                FileState::Unlinking => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self { named })
    }
}

enum Class {
    Named,
    Open,
    Orphan,
}

fn class_of(
    core: &Core,
    path: &Path,
    rows: &FileRows,
    journals: &BTreeSet<(OwnerId, u64)>,
    living: &[OwnerId],
) -> Class {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.parent() == Some(&core.root) {
        return Class::Open;
    }
    let open_if = |is_open: bool| if is_open { Class::Open } else { Class::Orphan };
    if let Some((_, unique)) = layout::parse_sealed(name) {
        return if rows.named.contains_key(&unique) { Class::Named } else { Class::Orphan };
    }
    if let Some(key) = layout::parse_journal(name) {
        return open_if(journals.contains(&key));
    }
    if let Some((owner, _)) = layout::parse_tmp(name) {
        return open_if(living.contains(&owner));
    }
    open_if(layout::parse_owner_lock(name).is_some_and(|owner| living.contains(&owner)))
}

/// Every file that lies in the one file. What their pages do not take of it is the manifest's own:
/// pages are counted by themselves, so that one that belongs to no file leaves the books open.
fn list_bodies(core: &Core, accounts: &mut Accounts) -> Result<Vec<(PathBuf, u64)>> {
    let books = Books::read(&core.snapshot()?)?;
    accounts.on_disk = core.manifest.len_bytes()?;
    accounts.open += accounts.on_disk.saturating_sub(books.bytes);
    Ok(books.files.into_iter().map(|(path, len)| (core.root.join(path), len)).collect())
}

/// Every file whose name is ours, with its length.
fn list_all(core: &Core, accounts: &mut Accounts) -> Result<Vec<(PathBuf, u64)>> {
    let mut dirs = vec![
        core.root.clone(),
        layout::journal_dir(&core.root),
        layout::tmp_dir(&core.root),
        layout::owners_dir(&core.root),
    ];
    let folders = core.manifest.meta().sealed_folders;
    dirs.extend((0..folders).map(|folder| layout::sealed_folder(&core.root, folder)));
    let mut found = Vec::new();
    for dir in dirs {
        let entries = core.disk.list(&dir).map_err(|e| Error::io("account", dir.display(), e))?;
        for entry in entries {
            let path = dir.join(&entry.name);
            if entry.kind != EntryKind::File || !is_ours(core, &dir, &entry.name) {
                continue;
            }
            let meta =
                core.disk.meta(&path).map_err(|e| Error::io("account", path.display(), e))?;
            if let Some(meta) = meta {
                accounts.on_disk += meta.len;
                found.push((path, meta.len));
            }
        }
    }
    Ok(found)
}

fn unique_of(path: &Path) -> Option<UniqueId> {
    let name = path.file_name()?.to_str()?;
    layout::parse_sealed(name).map(|(_, unique)| unique)
}

fn is_ours(core: &Core, dir: &Path, name: &str) -> bool {
    if *dir == core.root {
        return layout::TOP.contains(&name);
    }
    layout::parse_sealed(name).is_some()
        || layout::parse_journal(name).is_some()
        || layout::parse_tmp(name).is_some()
        || layout::parse_owner_lock(name).is_some()
}
