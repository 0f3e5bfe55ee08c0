//! Names: HEAD, and everything in the store's directory that no row names.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use super::look::Look;
use super::report::Severity;
use crate::digest::Digest;
use crate::error::Result;
use crate::format::layout;
use crate::ids::{OwnerId, UniqueId};
use crate::manifest::{FileRow, Reading, read_head};
use crate::vfs::{Entry, EntryKind};

/// Looks at every name. What a row names was looked at already.
pub(super) fn check_names(look: &mut Look, living: &[OwnerId]) -> Result<()> {
    look.begin("names", u64::from(look.meta.sealed_folders) + 4)?;
    if !look.meta.single_file {
        check_head(look);
    }
    for entry in list(look, &look.root.clone()) {
        if !layout::TOP.contains(&entry.name.as_str()) {
            stray(look, &look.root.clone(), &entry);
        } else if entry.name == layout::HEAD_NEXT && living.is_empty() {
            let path = layout::head_next(&look.root);
            orphan(look, &path, "the next HEAD replaces it");
        }
    }
    look.did(1)?;
    let (tmp, owners) = (layout::tmp_dir(&look.root), layout::owners_dir(&look.root));
    for entry in list(look, &tmp) {
        match layout::parse_tmp(&entry.name).filter(|_| entry.kind == EntryKind::File) {
            None => stray(look, &tmp, &entry),
            Some((owner, _)) if living.contains(&owner) => {}
            Some(_) => orphan(look, &tmp.join(&entry.name), "the next opening removes it"),
        }
    }
    look.did(1)?;
    for entry in list(look, &owners) {
        // Whose owner died is told with its row.
        if layout::parse_owner_lock(&entry.name).is_none() || entry.kind != EntryKind::File {
            stray(look, &owners, &entry);
        }
    }
    look.did(1)?;
    check_sealed(look, living)
}

fn check_head(look: &mut Look) {
    if read_head(&look.disk, &look.root).is_some() {
        return;
    }
    let path = layout::head(&look.root);
    let what = match look.disk.meta(&path) {
        Ok(None) => "it is not there",
        _ => "it does not read",
    };
    let means =
        "nothing is lost; an older manifest in place of this one would not be noticed by it";
    look.find(Severity::Warning, path.display(), what, means);
}

fn check_sealed(look: &mut Look, living: &[OwnerId]) -> Result<()> {
    let folders = look.meta.sealed_folders;
    let dir = layout::sealed_dir(&look.root);
    for entry in list(look, &dir) {
        let is_ours = (0..folders)
            .any(|folder| layout::sealed_folder(&look.root, folder) == dir.join(&entry.name));
        if !is_ours || entry.kind != EntryKind::Directory {
            stray(look, &dir, &entry);
        }
    }
    let mut found = Vec::new();
    for folder in 0..folders {
        let path = layout::sealed_folder(&look.root, folder);
        for entry in list(look, &path) {
            let parsed = layout::parse_sealed(&entry.name).filter(|(digest, _)| {
                entry.kind == EntryKind::File && layout::folder_of(digest, folders) == folder
            });
            match parsed {
                Some(named) => found.push((path.join(&entry.name), named)),
                None => stray(look, &path, &entry),
            }
        }
        look.did(1)?;
    }
    // Read after the listing: what was published meanwhile is named.
    let mut named: HashSet<(Digest, UniqueId)> = HashSet::new();
    let read = look.store.snapshot()?.scan::<FileRow>(.., &mut |_, row| {
        named.insert((row.digest, row.unique));
        Ok(ControlFlow::Continue(()))
    });
    if read.is_err() || !living.is_empty() {
        // A row that did not read was told; a living writer may be about to name them.
        return Ok(());
    }
    for (path, one) in found {
        if !named.contains(&one) {
            orphan(look, &path, "no row names it; reclaim removes it");
        }
    }
    Ok(())
}

fn list(look: &mut Look, dir: &Path) -> Vec<Entry> {
    match look.disk.list(dir) {
        Ok(entries) => entries,
        Err(e) => {
            let kind = if e.kind() == io::ErrorKind::NotFound { "missing" } else { "unreadable" };
            let means = "what should be written there cannot be";
            look.find(Severity::Warning, dir.display(), format!("the folder is {kind}"), means);
            Vec::new()
        }
    }
}

fn stray(look: &mut Look, dir: &Path, entry: &Entry) {
    let place = dir.join(&entry.name);
    look.find(Severity::Note, place.display(), "a stray", "it is not ours, and left alone");
}

fn orphan(look: &mut Look, path: &Path, means: &str) {
    look.find(Severity::Note, path.display(), "an orphan: none of our rows needs it", means);
}
