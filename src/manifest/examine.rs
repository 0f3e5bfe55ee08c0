//! What a manifest file is, found out on a copy in memory before redb may write a byte to it:
//! ours or foreign, of this release or a newer one, of now or of before, whole or damaged.

use redb::{Builder, ReadableDatabase, ReadableTableMetadata};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::copy::Copy;
use super::halt::{Halt, drop_quietly};
use super::key::StoreKey;
use super::open::{FEATURES_READ, FEATURES_WRITE, FORMAT, Open};
use super::read::{Reading, Snapshot};
use super::rows::{CountersRow, MetaRow, OwnerRow};
use super::table::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::protection::Protection;
use crate::vfs::{Access, Disk, EntryKind, File, read_exact_at};

/// What every opening has to know.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) meta: MetaRow,
    pub(super) counters: CountersRow,
    /// If the last commit is not marked as flushed: the boot in which its writer opened the store.
    pub(super) unflushed_in: Option<String>,
}

/// Opens the file, or says what its absence means.
pub(super) fn find(
    disk: &Arc<dyn Disk>,
    root: &Path,
    access: Access,
    open: &Open,
) -> Result<Arc<dyn File>> {
    let path = open.path(root);
    let fail = |e| Error::io("open", path.display(), e);
    match disk.meta(&path) {
        Ok(Some(meta)) if meta.kind == EntryKind::File => disk.open(&path, access).map_err(fail),
        Ok(Some(_)) => Err(Error::damage("open", path.display(), "it is not a regular file")),
        Ok(None) => Err(absent(disk, root, open)?),
        Err(e) => Err(fail(e)),
    }
}

fn absent(disk: &Arc<dyn Disk>, root: &Path, open: &Open) -> Result<Error> {
    if open.single_file {
        return Ok(Error::new(ErrorKind::NoStore, "open", root.display(), "nothing is there"));
    }
    let path = layout::manifest(root);
    let lost = |evidence: &str| {
        let cause = format!("it is gone, though {evidence} says that there was one");
        Error::new(ErrorKind::ManifestLost, "open", path.display(), cause)
    };
    if let Some(witness) = open.witnesses.first() {
        return Ok(lost(&witness.place));
    }
    if disk.meta(&layout::head(root)).map_err(|e| Error::io("look at", layout::HEAD, e))?.is_some()
    {
        return Ok(lost(layout::HEAD));
    }
    let journal = |name: &str| layout::parse_journal(name).is_some();
    let owner = |name: &str| layout::parse_owner_lock(name).is_some();
    for (dir, ours) in [
        (layout::journal_dir(root), &journal as &dyn Fn(&str) -> bool),
        (layout::owners_dir(root), &owner),
    ] {
        let names = match disk.list(&dir) {
            Ok(names) => names,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("list", dir.display(), e)),
        };
        if let Some(entry) = names.iter().find(|entry| ours(&entry.name)) {
            return Ok(lost(&entry.name));
        }
    }
    Ok(Error::new(ErrorKind::NoStore, "open", root.display(), "no store is here"))
}

// redb's header, as its design document has it.
pub(super) const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";
const HEADER_BYTES: usize = 320;
const SLOT_VERSIONS_AT: [usize; 2] = [64, 192];
const REDB_VERSION: u8 = 3;
// A version beyond this is no version but damage.
const REDB_VERSION_MAX: u8 = 31;

/// Tells files apart that redb would not name: empty, cut short, zeroed, garbage, newer.
///
/// redb takes an empty file for a new database, so this comes before it.
pub(super) fn check_header(file: &dyn File, path: &Path) -> Result<u64> {
    let damage = |cause: &str| Err(Error::damage("open", path.display(), cause));
    let read = |e| Error::io("read", path.display(), e);
    let len = file.len().map_err(read)?;
    if len == 0 {
        return damage("it is empty");
    }
    if len < HEADER_BYTES as u64 {
        return damage(&format!("it is truncated to {len} bytes"));
    }
    let mut header = [0; HEADER_BYTES];
    read_exact_at(file, &mut header, 0).map_err(read)?;
    if header.iter().all(|byte| *byte == 0) {
        return damage("its header is zeroed");
    }
    if !header.starts_with(&MAGIC) {
        return damage("it begins with garbage, not as a manifest does");
    }
    let [one, other] = SLOT_VERSIONS_AT.map(|at| header[at]);
    if one == other && one != REDB_VERSION && (1..=REDB_VERSION_MAX).contains(&one) {
        let cause = format!("it has redb's file format {one}, this release knows {REDB_VERSION}");
        return Err(Error::new(ErrorKind::NewerFormat, "open", path.display(), cause));
    }
    if one != REDB_VERSION || other != REDB_VERSION {
        return damage("a commit slot of its header is damaged");
    }
    Ok(len)
}

/// Opens a copy in memory, has redb check every page of it if `check` says so, and classifies it.
/// Nothing of the file changes.
pub(super) fn examine(
    file: &Arc<dyn File>,
    halt: &Halt,
    open: &Open,
    check: bool,
    read_only: bool,
    served: Served,
) -> Result<Facts> {
    let probe = Halt::new(halt.disk(), halt.path().to_owned());
    let fail = |e| Error::io("read", halt.path().display(), e);
    let copy = Copy::new(file.clone(), probe.clone(), true, served).map_err(fail)?;
    let unflushed = copy.is_unflushed().map_err(fail)?;
    if check {
        copy.read_ahead().map_err(fail)?;
    }
    // Without a cache each page that is visited is read, and so counted: time has a bound.
    let db = probe.guard("open", || {
        Builder::new()
            .set_cache_size(0)
            .set_check_integrity_on_open(check)
            .create_with_backend(copy)
    })?;
    let facts = probe.guard("open", || db.begin_read()).and_then(|txn| {
        let snapshot = Snapshot::new(txn, probe.clone());
        let mut facts = classify(&snapshot, open, read_only, halt.path())?;
        if unflushed {
            facts.unflushed_in = last_boot(&snapshot)?;
        }
        Ok(facts)
    });
    probe.freeze();
    drop_quietly(db);
    facts
}

/// Which commit a copy shows, when the last one was written and perhaps not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// The last.
    Written,
    /// The one before.
    Flushed,
}

/// The boot in which the newest owner opened the store.
fn last_boot(snapshot: &Snapshot) -> Result<Option<String>> {
    let mut last: Option<OwnerRow> = None;
    snapshot.scan::<OwnerRow>(.., &mut |_, row| {
        if last.as_ref().is_none_or(|last| row.epoch > last.epoch) {
            last = Some(row);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(last.map(|last| last.boot_id))
}

/// Reads what the manifest says it is. The format comes first: in a newer one nothing else is
/// known to mean what it seems to.
pub(super) fn classify(
    snapshot: &Snapshot,
    open: &Open,
    read_only: bool,
    path: &Path,
) -> Result<Facts> {
    let error = |kind, cause: String| Err(Error::new(kind, "open", path.display(), cause));
    if snapshot.is_of_another_program()? {
        let cause = "it is a database of another program, and no store; give another path";
        return error(ErrorKind::Foreign, cause.to_owned());
    }
    let meta = snapshot.require::<MetaRow>(&StoreKey)?;
    if meta.format != FORMAT {
        let cause = format!("the store has format {}, this release knows {FORMAT}", meta.format);
        return error(ErrorKind::NewerFormat, cause);
    }
    if meta.single_file != open.single_file {
        let cause = match meta.single_file {
            true => "it is a whole store by itself, and no part of a directory: open the file",
            false => "it is the manifest of a store directory: open the directory",
        };
        return error(ErrorKind::Invalid, cause.to_owned());
    }
    let unknown = match read_only {
        true => meta.features_read & !FEATURES_READ,
        false => meta.features_read & !FEATURES_READ | meta.features_write & !FEATURES_WRITE,
    };
    if unknown != 0 {
        let cause = format!("the store needs features that this release lacks: bits {unknown:#x}");
        return error(ErrorKind::NewerFormat, cause);
    }
    if let Some(other) = open.witnesses.iter().find(|witness| witness.store != meta.store) {
        let (place, theirs) = (&other.place, other.store);
        let cause = format!("it belongs to store {}, {place} to store {theirs}", meta.store);
        return error(ErrorKind::Foreign, cause);
    }
    let counters = snapshot.counters()?;
    let newest = open.witnesses.iter().max_by_key(|witness| witness.commit);
    if let Some(newest) = newest.filter(|newest| newest.commit > counters.commit_seq)
        && Protection::RefuseRolledBack.is_on()
    {
        // G13: an acknowledged commit that is not there is an error, never the truth.
        let (place, theirs) = (&newest.place, newest.commit);
        let cause = format!("it ends at commit {}, {place} knows {theirs}", counters.commit_seq);
        return error(ErrorKind::RolledBack, cause);
    }
    for table in Table::ALL {
        let open = snapshot.table(*table)?;
        snapshot.halt().guard("open", || open.len())?;
    }
    Ok(Facts { meta, counters, unflushed_in: None })
}
