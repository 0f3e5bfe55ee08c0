//! Opening the manifest, for writing or for reading: what is asked first, what is locked, and what
//! is read in whose company.

use redb::{Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::backend::{Backend, Taken, lock_range};
use super::body::lock_file;
use super::copy::Copy;
use super::examine::{Facts, Served, check_header, classify, examine, find};
use super::halt::{Halt, catch, from_panic, from_redb};
use super::handle::{Handle, Manifest};
use super::head::Witness;
use super::read::Snapshot;
use super::refit::Passing;
use super::turn::{LockedOut, Turns};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::protection::Protection;
use crate::vfs::{Access, Disk, File, FreshFile, Sharing, Step};

/// The format of the manifest's rows and of everything that they describe.
pub const FORMAT: u16 = 1;
/// Features of a store, one bit each, that this release can read.
pub const FEATURES_READ: u64 = 0;
/// Features of a store, one bit each, that this release can write.
pub const FEATURES_WRITE: u64 = 0;

// How often the file may be replaced while a reader opens it.
const REPLACED_MAX: usize = 8;

// redb's lock byte that a writing process holds while it has the database open.
const WRITER_BYTE: u64 = (1 << 62) + 1;

/// When redb verifies every page at opening: about 1 ms for each MiB. Without it a damaged page
/// may make redb panic, which becomes an error, or abort the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckIntegrity {
    /// Up to this length of manifest, in bytes.
    UpTo(u64),
    /// Always.
    Always,
    /// Never.
    Never,
}

impl CheckIntegrity {
    /// Whether a manifest of `len` bytes is checked.
    pub fn applies(self, len: u64) -> bool {
        match self {
            Self::UpTo(bytes_max) => len <= bytes_max,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How a manifest is opened.
#[derive(Debug, Clone)]
pub struct Open {
    /// redb's cache.
    pub cache_bytes: u64,
    /// When every page is verified.
    pub check_integrity: CheckIntegrity,
    /// What else knows of commits, read before the manifest.
    pub witnesses: Vec<Witness>,
    /// The manifest is the whole store: the path is its own.
    pub single_file: bool,
    /// Whether other processes may write as well. The caller sees to it that one opens at a time.
    pub is_shared: bool,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            check_integrity: CheckIntegrity::UpTo(64 << 20),
            witnesses: Vec::new(),
            single_file: false,
            is_shared: false,
        }
    }
}

impl Open {
    /// Where the manifest of the store at `root` lies.
    pub(super) fn path(&self, root: &Path) -> PathBuf {
        if self.single_file { root.to_owned() } else { layout::manifest(root) }
    }

    fn cache(&self) -> usize {
        usize::try_from(self.cache_bytes).unwrap_or(usize::MAX)
    }
}

impl Manifest {
    /// Opens the manifest of the store at `root` for writing; the caller holds the store's lock.
    ///
    /// The file is synced, its cached pages are dropped, and it is examined on a copy in memory,
    /// before redb may write to it.
    ///
    /// # Errors
    /// `NoStore`, `ManifestLost`, `Foreign`, `NewerFormat`, `RolledBack`, `Damage` say what the
    /// file is; nothing was written to it. `InUse` when another process writes. `Io`.
    pub fn open(disk: &Arc<dyn Disk>, root: &Path, open: &Open) -> Result<Self> {
        let file = find(disk, root, Access::ReadWrite, open)?;
        let path = open.path(root);
        let place = path.display().to_string();
        let fail = |operation| move |e| Error::io(operation, &place, e);
        disk.mark(Step::OpenManifest);
        let turns = if open.is_shared { Some(Turns::enter(&file, &path)?) } else { None };
        if writer_lives(&*file, &path)? {
            return match turns {
                Some(turns) => Self::join(file, Halt::new(disk, path), turns, root, open),
                None => Err(in_use(&path)),
            };
        }
        // G14: after a failed write the cache may hold what the medium does not.
        if Protection::SyncBeforeTrust.is_on() {
            file.sync_data().map_err(fail("sync"))?;
        }
        // Nothing of it is read but from the medium.
        let file: Arc<dyn File> = match Protection::SyncBeforeTrust.is_on() {
            true => Arc::new(FreshFile::new(file)),
            false => file,
        };
        let len = check_header(&*file, &path)?;
        let halt = Halt::new(disk, path);
        let check = open.check_integrity.applies(len);
        let facts = examine(&file, &halt, open, check, false, Served::Written)?;
        let passing = Arc::default();
        let (db, _) = open_writer(&file, &halt, turns.as_ref(), open.cache(), &passing)?;
        let made = Self::new(Handle::Writer(db), halt, file, facts);
        Ok(made.with_turns(turns).with_passing(passing, open.cache()))
    }

    /// Opens beside processes that write. They vouch for the file: what the first of them synced
    /// and examined is not examined under their hands, and nothing is repaired but by redb, in a
    /// turn of its own.
    fn join(
        file: Arc<dyn File>,
        halt: Arc<Halt>,
        turns: Turns,
        root: &Path,
        open: &Open,
    ) -> Result<Self> {
        check_header(&*file, halt.path())?;
        // As a reader first: a store that is not for us is not written to.
        let reader = Self::open_read_only(halt.disk(), root, open)?;
        let (meta, unwritable) = (reader.meta().clone(), FEATURES_WRITE);
        drop(reader);
        if meta.features_write & !unwritable != 0 {
            let cause = format!(
                "the store needs features that this release lacks: bits {:#x}",
                meta.features_write
            );
            return Err(Error::new(ErrorKind::NewerFormat, "open", halt.path().display(), cause));
        }
        // G14: an error that only they were told of may have left pages that the medium has not.
        let file: Arc<dyn File> = match Protection::SyncBeforeTrust.is_on() {
            true => Arc::new(FreshFile::new(file)),
            false => file,
        };
        let (db, _) = open_writer(&file, &halt, Some(&turns), open.cache(), &Arc::default())?;
        let txn = halt.guard("open", || db.begin_read())?;
        let facts = classify(&Snapshot::new(txn, halt.clone()), open, false, halt.path())?;
        Ok(Self::new(Handle::Writer(db), halt, file, facts).with_turns(Some(turns)))
    }

    /// Opens the manifest of the store at `root` for reading, beside a writer in any process or
    /// alone. What a killed writer left is recovered in memory, and writers are locked out while
    /// such a handle lives. No mutating call is made (G20).
    ///
    /// # Errors
    /// As [`open`](Self::open). `InUse` while a writer is still opening the store: try again.
    pub fn open_read_only(disk: &Arc<dyn Disk>, root: &Path, open: &Open) -> Result<Self> {
        for _ in 1..REPLACED_MAX {
            let manifest = Self::open_found(disk, root, open)?;
            // Replaced by a compacted one, or a newer backup, before we held anything of it.
            if manifest.is_named()? {
                return Ok(manifest);
            }
        }
        Self::open_found(disk, root, open)
    }

    fn open_found(disk: &Arc<dyn Disk>, root: &Path, open: &Open) -> Result<Self> {
        let file = find(disk, root, Access::Read, open)?;
        let path = open.path(root);
        let len = check_header(&*file, &path)?;
        let check = open.check_integrity.applies(len);
        let halt = Halt::new(disk, path);
        let Some(db) = open_shared(&file, &halt, open)? else {
            return Self::open_copied(file, halt, root, open, check);
        };
        if check && !writer_lives(&*file, halt.path())? {
            check_shared(&file, &halt, root, open)?;
        }
        let txn = halt.guard("open", || db.begin_read())?;
        let facts = classify(&Snapshot::new(txn, halt.clone()), open, true, halt.path())?;
        Ok(Self::new(Handle::Shared(db), halt, file, facts))
    }

    fn open_copied(
        file: Arc<dyn File>,
        halt: Arc<Halt>,
        root: &Path,
        open: &Open,
        check: bool,
    ) -> Result<Self> {
        let Some(held) = lock_out_writers(&file, &halt, root, open)? else {
            return Err(in_use(halt.path()));
        };
        let fail = |e| Error::io("read", halt.path().display(), e);
        file.evict().map_err(fail)?;
        check_header(&*file, halt.path())?;
        let mut facts = examine(&file, &halt, open, check, true, Served::Written)?;
        let served = served(&facts, &halt);
        if served == Served::Flushed {
            facts = examine(&file, &halt, open, check, true, served)?;
        }
        let copy = Copy::new(file.clone(), halt.clone(), false, served).map_err(fail)?;
        let db = halt.guard("open", || {
            Builder::new().set_cache_size(open.cache()).create_with_backend(copy)
        })?;
        Ok(Self::new(Handle::Copied(db, Box::new(held)), halt, file, facts))
    }
}

fn in_use(path: &Path) -> Error {
    Error::new(ErrorKind::InUse, "open", path.display(), "another process has it open for writing")
}

/// Which commit a reader may be shown of what a killed writer left.
///
/// The mark on a commit goes after its flush, by a write that a power failure may take. If the
/// machine went down since, all that is there is durable, and the last commit may have been
/// acknowledged. If it did not, a mark that stands means that the flush never returned: the commit
/// was not acknowledged, power may still take it, and what was shown must not be taken back (G10).
fn served(facts: &Facts, halt: &Halt) -> Served {
    let boot = halt.disk().boot_id();
    match !boot.is_empty() && facts.unflushed_in.as_ref() == Some(&boot) {
        true => Served::Flushed,
        false => Served::Written,
    }
}

pub(super) fn writer_lives(file: &dyn File, path: &Path) -> Result<bool> {
    let byte = Bound::Included(WRITER_BYTE);
    file.is_locked(lock_range(byte, byte)).map_err(|e| super::halt::from_io("open", path, e))
}

fn lock_out_writers(
    file: &Arc<dyn File>,
    halt: &Arc<Halt>,
    root: &Path,
    open: &Open,
) -> Result<Option<LockedOut>> {
    let held = match open.single_file {
        true => lock_file(halt.disk(), root, Sharing::Shared),
        false => halt.disk().lock_dir(root, Sharing::Shared),
    };
    match held.map_err(|e| Error::io("lock", root.display(), e))? {
        Some(held) => LockedOut::all(file, halt, held),
        None => Ok(None),
    }
}

/// Opens for writing; also returns what was locked for it.
pub(super) fn open_writer(
    file: &Arc<dyn File>,
    halt: &Arc<Halt>,
    turns: Option<&Turns>,
    cache: usize,
    passing: &Arc<Passing>,
) -> Result<(Database, Taken)> {
    let mode = match turns {
        Some(turns) => {
            turns.admit(halt.path())?;
            ConcurrencyMode::MultiWriter
        }
        None => ConcurrencyMode::SingleWriter,
    };
    let backend = Backend::passed(file.clone(), halt.clone(), Arc::clone(passing));
    let taken = backend.taken();
    let db = halt.guard("open", || {
        Builder::new().set_cache_size(cache).set_concurrency_mode(mode).create_with_backend(backend)
    })?;
    Ok((db, taken))
}

/// Opens beside a writer; `None` when a killed one left the file, and nobody has recovered it.
fn open_shared(
    file: &Arc<dyn File>,
    halt: &Arc<Halt>,
    open: &Open,
) -> Result<Option<ReadOnlyDatabase>> {
    let opened = catch(|| {
        Builder::new()
            .set_cache_size(open.cache())
            .set_concurrency_mode(ConcurrencyMode::SingleWriter)
            .open_read_only_with_backend(Backend::new(file.clone(), halt.clone()))
    });
    match opened {
        Ok(Ok(db)) => Ok(Some(db)),
        Ok(Err(DatabaseError::RepairAborted)) => Ok(None),
        Ok(Err(error)) => Err(halt.halt(from_redb("open", halt.path(), error.into()))),
        Err(panic) => Err(halt.halt(from_panic("open", halt.path(), &panic))),
    }
}

/// Has redb check every page of a file that nobody writes. Taking the store's lock for it would
/// get in the way of a writer that comes, so it is taken only when something seems wrong.
fn check_shared(file: &Arc<dyn File>, halt: &Arc<Halt>, root: &Path, open: &Open) -> Result<()> {
    let look = || examine(file, halt, open, true, true, Served::Written);
    match look() {
        Err(error) if error.kind() == ErrorKind::Damage => {
            match lock_out_writers(file, halt, root, open)? {
                Some(_held) => look().map(|_| ()),
                None => Ok(()),
            }
        }
        looked => looked.map(|_| ()),
    }
}
