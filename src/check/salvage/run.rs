//! The salvage itself, part by part.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chain::Snapshot;
use super::objects::{Copier, make_folders, unique};
use super::report::{Salvaged, Unconfirmed};
use super::rows::Rows;
use super::source::Source;
use super::tails::Tails;
use super::target::Target;
use crate::check::{CheckOptions, check};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, ObjectId, UniqueId};
use crate::manifest::{StateBytes, edges_of_value};
use crate::vfs::{Disk, Entry, EntryKind, RealDisk, Sharing, Step};

/// How to salvage.
#[derive(Debug, Clone, Default)]
pub struct SalvageOptions {
    /// Another disk than the machine's own.
    pub disk: Option<Arc<dyn Disk>>,
}

/// Folders of the new store when nothing tells how many the old one had.
const FOLDERS: u16 = 256;

/// Makes a new store at `to` from what is left of the one at `from`, whose manifest is not read.
/// Nothing is written to `from`. A failure leaves a directory `<to>.salvage-<id>` without a file in it;
/// the next call of this store takes it, and what a crash left, for its own.
///
/// # Errors
/// `Exists` when something is at `to`; `NoStore` when `from` holds nothing of a store; `InUse`
/// while a process writes it; `Unsupported` for a single-file store; `Io`, `DiskFull`. What is lost
/// is no error: the report lists it.
///
/// # Durability
/// When it returns, the new store is durable and was checked whole.
pub fn salvage(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &SalvageOptions,
) -> Result<Salvaged> {
    let disk = options.disk.clone().unwrap_or_else(|| RealDisk::new());
    let (from, to) = (from.as_ref(), to.as_ref());
    check_free(&disk, to)?;
    let _held = hold(&disk, from)?;
    let mut source = Source::read(&disk, from)?;
    let mut snapshot = Snapshot::newest(&mut source);
    let mut salvaged = begin(&source, &snapshot);
    let meta = snapshot.meta();
    let folders = meta.as_ref().map_or(FOLDERS, |meta| meta.sealed_folders);
    let rows = Rows::of(&mut snapshot, &mut salvaged);
    let tails = Tails::read(&source, &rows, &mut salvaged);

    let beside = beside(&disk, to)?;
    let made = || -> Result<Salvaged> {
        make_folders(&disk, &beside, folders)?;
        let copier = Copier { source: &source, root: &beside, folders };
        let objects = copier.copy_known(&rows, &needed(&rows, &mut salvaged))?;
        let mut target = Target::new(rows, objects, copier, salvaged);
        if !target.salvaged.is_complete {
            target.take_new_files(&tails)?;
            target.take_told_files();
        }
        let mut tails = tails;
        target.take_stages(&mut tails);
        target.take_streams(tails);
        target.settle_rows();
        target.write(meta.and_then(|meta| meta.created))?;
        let salvaged = target.finish()?;
        verify(&disk, &beside)?;
        check_free(&disk, to)?;
        disk.mark(Step::SalvageRename);
        disk.rename(&beside, to).map_err(|e| Error::io("rename", to.display(), e))?;
        Ok(salvaged)
    };
    let mut salvaged = made().inspect_err(|_| {
        // Its folders stay, empty, for the next one.
        let _ = empty(&disk, &beside);
    })?;
    let parent = parent_of(to);
    disk.sync_dir(parent).map_err(|e| Error::io("sync", parent.display(), e))?;
    salvaged.notes.extend(source.notes);
    Ok(salvaged)
}

fn begin(source: &Source, snapshot: &Snapshot) -> Salvaged {
    let covers = snapshot.covers;
    let witnessed = source.witnessed.max(covers.unwrap_or_default());
    let is_complete = source.head.is_some_and(|head| {
        covers.is_some_and(|covers| head.quiet_since <= covers) && head.commit >= witnessed
    });
    let mut unconfirmed = Vec::new();
    if !is_complete {
        let after = covers.unwrap_or_default();
        unconfirmed.push(Unconfirmed::Commits { after, upto: witnessed.max(after) });
    }
    Salvaged {
        store: source.store,
        covers,
        chain: snapshot.chain,
        witnessed,
        is_complete,
        objects: 0,
        bytes: 0,
        streams: 0,
        chunks: 0,
        records: 0,
        unconfirmed,
        lost: Vec::new(),
        notes: Vec::new(),
    }
}

/// Nothing may be at `to`.
fn check_free(disk: &Arc<dyn Disk>, to: &Path) -> Result<()> {
    match disk.meta(to).map_err(|e| Error::io("salvage", to.display(), e))? {
        None => Ok(()),
        Some(_) => {
            let cause = "something is there already, and was left as it is";
            Err(Error::new(ErrorKind::Exists, "salvage", to.display(), cause))
        }
    }
}

/// No writer may be at work meanwhile.
fn hold(disk: &Arc<dyn Disk>, from: &Path) -> Result<Box<dyn crate::vfs::Held>> {
    let fail = |e| Error::io("salvage", from.display(), e);
    match disk.meta(from).map_err(fail)?.map(|meta| meta.kind) {
        None => {
            let cause = "nothing is there";
            return Err(Error::new(ErrorKind::NoStore, "salvage", from.display(), cause));
        }
        Some(EntryKind::Directory) => {}
        Some(_) => {
            let cause = "it is a file; only stores in the directory layout are salvaged";
            return Err(Error::new(ErrorKind::Unsupported, "salvage", from.display(), cause));
        }
    }
    disk.lock_dir(from, Sharing::Exclusive).map_err(fail)?.ok_or_else(|| {
        let cause = "a process has it open, or salvages it; end that process first";
        Error::new(ErrorKind::InUse, "salvage", from.display(), cause)
    })
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where the new store stands until it is whole: a new place, or what an earlier salvage left, emptied.
fn beside(disk: &Arc<dyn Disk>, to: &Path) -> Result<PathBuf> {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".salvage-");
    let parent = parent_of(to);
    let entries = disk.list(parent).map_err(|e| Error::io("list", parent.display(), e))?;
    let prefix = name.to_string_lossy().into_owned();
    let is_ours = |entry: &&Entry| {
        let id = entry.name.strip_prefix(&prefix);
        entry.kind == EntryKind::Directory && id.is_some_and(|id| id.parse::<UniqueId>().is_ok())
    };
    if let Some(left) = entries.iter().find(is_ours) {
        let left = parent.join(&left.name);
        empty(disk, &left)?;
        return Ok(left);
    }
    name.push(unique(disk)?.to_string());
    Ok(parent.join(name))
}

/// Removes every file of a store that a salvage was making.
fn empty(disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match disk.list(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("list", folder.display(), e)),
        };
        for entry in entries {
            let path = folder.join(&entry.name);
            // A store has folders in folders, and no deeper.
            let depth = path.components().count() - root.components().count();
            match entry.kind {
                EntryKind::Directory if depth <= 2 => folders.push(path),
                EntryKind::File => {
                    disk.unlink(&path).map_err(|e| Error::io("unlink", path.display(), e))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Objects that rows refer to.
fn needed(rows: &Rows, salvaged: &mut Salvaged) -> BTreeSet<ObjectId> {
    let mut needed = BTreeSet::new();
    for row in rows.chunks.values() {
        needed.insert(row.object);
        needed.extend(&row.payloads);
    }
    needed.extend(rows.leases.values().flat_map(|row| &row.objects));
    for row in rows.parts.values() {
        needed.insert(row.object);
        needed.extend(&row.payloads);
    }
    needed.extend(rows.outputs.values().map(|row| row.object));
    needed.extend(rows.recipes.values().flat_map(|row| &row.pieces).map(|piece| piece.object));
    needed.extend(rows.snapshot_names.values().map(|row| row.object));
    for row in rows.checkpoints.values() {
        if let StateBytes::Object(object) = row.state {
            needed.insert(object);
        }
    }
    for ((table, key), value) in &rows.others {
        match edges_of_value(*table, key, value) {
            Ok(objects) => needed.extend(objects),
            Err(e) => salvaged.lose(format!("a row of {}", table.name()), 0, e),
        }
    }
    needed
}

/// The new store is opened again and compared with its rows, every byte of it.
fn verify(disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
    let options = CheckOptions { disk: Some(Arc::clone(disk)), ..CheckOptions::default() };
    let report = check(root, &options, &mut |_| ControlFlow::Continue(()))?;
    match report.findings.iter().find(|_| report.damages + report.warnings > 0) {
        None => Ok(()),
        Some(_) => {
            let told = report.findings.iter().find(|f| f.severity > crate::check::Severity::Note);
            let cause = format!("the new store is not whole: {told:?}");
            Err(Error::damage("salvage", root.display(), cause))
        }
    }
}

/// Numbers passed over, so that none that the old store gave out after its snapshot is given again.
pub(super) const NUMBERS_PASSED_OVER: u64 = 1 << 16;

/// The commit from which the new store counts on.
pub(super) fn counts_from(salvaged: &Salvaged) -> CommitSeq {
    CommitSeq(salvaged.witnessed.0.saturating_add(NUMBERS_PASSED_OVER))
}
