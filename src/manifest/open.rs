//! A handle on the manifest: opening it for writing or reading, and what may be asked of it then.

use parking_lot::RwLock;
use redb::{Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadableDatabase};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::backend::{Backend, lock_range};
use super::copy::Copy;
use super::examine::{Facts, Served, check_header, classify, examine, find};
use super::halt::{Halt, catch, drop_quietly, from_panic, from_redb};
use super::head::Witness;
use super::read::Snapshot;
use super::rows::MetaRow;
use super::write::{self, Committed, Write};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{CommitSeq, OwnerId};
use crate::protection::Protection;
use crate::vfs::{Access, Disk, File, Held, Sharing, Step};

/// The format of the manifest's rows and of everything that they describe.
pub const FORMAT: u16 = 1;
/// Features of a store, one bit each, that this release can read.
pub const FEATURES_READ: u64 = 0;
/// Features of a store, one bit each, that this release can write.
pub const FEATURES_WRITE: u64 = 0;

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
}

impl Default for Open {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            check_integrity: CheckIntegrity::UpTo(64 << 20),
            witnesses: Vec::new(),
        }
    }
}

impl Open {
    fn cache(&self) -> usize {
        usize::try_from(self.cache_bytes).unwrap_or(usize::MAX)
    }
}

enum Handle {
    Writer(Database),
    /// Beside a writer, or when none lives.
    Shared(ReadOnlyDatabase),
    /// What a killed writer left, recovered in memory; no writer may come meanwhile.
    Copied(Database, #[expect(dead_code, reason = "held until dropped")] Box<dyn Held>),
}

/// The manifest of an open store.
///
/// Any error of redb or of the disk under it halts the handle: that call returns the error, every
/// later one `Halted` with the same cause, and not a byte is written any more. Reopen it.
pub struct Manifest {
    handle: RwLock<Option<Handle>>,
    halt: Arc<Halt>,
    file: Arc<dyn File>,
    meta: MetaRow,
    last: AtomicU64,
}

impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest").field("path", &self.halt.path()).finish_non_exhaustive()
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
        let path = layout::manifest(root);
        let fail = |operation| move |e| Error::io(operation, layout::MANIFEST, e);
        disk.mark(Step::OpenManifest);
        if writer_lives(&*file, &path)? {
            return Err(in_use(&path));
        }
        // G14: after a failed write the cache may hold what the medium does not.
        if Protection::SyncBeforeTrust.is_on() {
            file.sync_data().map_err(fail("sync"))?;
            file.evict().map_err(fail("evict"))?;
        }
        let len = check_header(&*file, &path)?;
        let halt = Halt::new(disk, path);
        let check = open.check_integrity.applies(len);
        let facts = examine(&file, &halt, open, check, false, Served::Written)?;
        let db = halt.guard("open", || {
            Builder::new()
                .set_cache_size(open.cache())
                .set_concurrency_mode(ConcurrencyMode::SingleWriter)
                .create_with_backend(Backend::new(file.clone(), halt.clone()))
        })?;
        Ok(Self::new(Handle::Writer(db), halt, file, facts))
    }

    /// Opens the manifest of the store at `root` for reading, beside a writer in any process or
    /// alone. What a killed writer left is recovered in memory, and writers are locked out while
    /// such a handle lives. No mutating call is made (G20).
    ///
    /// # Errors
    /// As [`open`](Self::open). `InUse` while a writer is still opening the store: try again.
    pub fn open_read_only(disk: &Arc<dyn Disk>, root: &Path, open: &Open) -> Result<Self> {
        let file = find(disk, root, Access::Read, open)?;
        let path = layout::manifest(root);
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
        let Some(held) = lock_out_writers(halt.disk(), root)? else {
            return Err(in_use(halt.path()));
        };
        let fail = |e| Error::io("read", halt.path().display(), e);
        file.evict().map_err(fail)?;
        check_header(&*file, halt.path())?;
        let facts = examine(&file, &halt, open, check, true, Served::Durable)?;
        let copy = Copy::new(file.clone(), halt.clone(), false, Served::Durable).map_err(fail)?;
        let db = halt.guard("open", || {
            Builder::new().set_cache_size(open.cache()).create_with_backend(copy)
        })?;
        Ok(Self::new(Handle::Copied(db, held), halt, file, facts))
    }

    fn new(handle: Handle, halt: Arc<Halt>, file: Arc<dyn File>, facts: Facts) -> Self {
        if !matches!(handle, Handle::Writer(_)) {
            // G20: whatever redb may try, a reader's backend writes nothing.
            halt.freeze();
        }
        Self {
            handle: RwLock::new(Some(handle)),
            halt,
            file,
            meta: facts.meta,
            last: AtomicU64::new(facts.counters.commit_seq.0),
        }
    }

    /// Takes a snapshot: the manifest as of the last commit. Keep it briefly.
    ///
    /// # Errors
    /// `Halted`, `Forked`, `Closed`; `Io` and `Damage` halt the handle.
    pub fn read(&self) -> Result<Snapshot> {
        self.halt.check("read")?;
        // Not `read`: a snapshot taken inside `write` must not wait for a `close` that waits for it.
        let handle = self.handle.try_read();
        let txn = match handle.as_deref().and_then(Option::as_ref) {
            Some(Handle::Writer(db) | Handle::Copied(db, _)) => {
                self.halt.guard("read", || db.begin_read())
            }
            Some(Handle::Shared(db)) => self.halt.guard("read", || db.begin_read()),
            None => return Err(closed("read", self.halt.path())),
        }?;
        Ok(Snapshot::new(txn, self.halt.clone()))
    }

    /// Runs `change` in a transaction and commits it, as `owner` unless it is `None`. While it
    /// runs, every other writer waits; it must not call this again.
    ///
    /// # Durability
    /// When this returns `Ok`, everything that `change` wrote is durable. After an error nothing
    /// of it is, but for `OutcomeUnknown`.
    ///
    /// # Errors
    /// Whatever `change` returns. `Fenced` when the owner's row does not stand. `CallerPanicked`
    /// when `change` panicked. `OutcomeUnknown` when the commit failed: reopen, and compare the
    /// owner's count with the one in the message. `ReadOnly`, `Halted`, `Forked`, `Closed`.
    pub fn write<T>(
        &self,
        owner: Option<OwnerId>,
        step: Step,
        change: impl FnOnce(&mut Write<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        self.halt.check("write")?;
        let handle = self.handle.try_read();
        let db = match handle.as_deref().and_then(Option::as_ref) {
            Some(Handle::Writer(db)) => db,
            Some(_) => {
                let cause = "the store was opened read-only";
                let place = self.halt.path().display();
                return Err(Error::new(ErrorKind::ReadOnly, "write", place, cause));
            }
            None => return Err(closed("write", self.halt.path())),
        };
        self.halt.disk().mark(step);
        let done = write::run(db, &self.halt, owner, || self.check_name(), change)?;
        self.last.fetch_max(done.commit.0, Ordering::AcqRel);
        Ok(done)
    }

    /// G24: a commit into a file that no longer has the manifest's name would be lost.
    fn check_name(&self) -> Result<()> {
        let path = self.halt.path();
        let fail = |e| Error::io("look at", path.display(), e);
        let named = self.halt.disk().meta(path).map_err(fail)?.map(|meta| meta.identity);
        if named == Some(self.file.identity().map_err(fail)?) {
            return Ok(());
        }
        let cause = match named {
            Some(_) => "another file was put in its place while it was open",
            None => "it was renamed or removed while it was open",
        };
        Err(self.halt.halt(Error::new(ErrorKind::ManifestLost, "commit", path.display(), cause)))
    }

    /// The last commit that this handle knows of.
    pub fn commit_seq(&self) -> CommitSeq {
        CommitSeq(self.last.load(Ordering::Acquire))
    }

    /// What the store is.
    pub fn meta(&self) -> &MetaRow {
        &self.meta
    }

    /// The length of the file.
    ///
    /// # Errors
    /// `Io`.
    pub fn len_bytes(&self) -> Result<u64> {
        self.file.len().map_err(|e| Error::io("measure", self.halt.path().display(), e))
    }

    /// What halted the handle, if anything did.
    pub fn halt_cause(&self) -> Option<Error> {
        self.halt.cause()
    }

    /// Whether a killed writer left the store, and this handle reads what was recovered in memory.
    pub fn is_recovered_copy(&self) -> bool {
        let handle = self.handle.try_read();
        matches!(handle.as_deref(), Some(Some(Handle::Copied(..))))
    }

    /// Closes the manifest: the next opening has nothing to recover. Snapshots end with it. A
    /// second call does nothing.
    ///
    /// # Errors
    /// `Halted` when it had halted: nothing was written. `Forked`. `Io`: what is durable stays so.
    pub fn close(&self) -> Result<()> {
        self.halt.check("close")?;
        match self.handle.write().take() {
            Some(Handle::Writer(db)) => {
                self.halt.disk().mark(Step::CloseManifest);
                self.halt.guard("close", || db.close())
            }
            Some(Handle::Shared(db)) => self.halt.guard("close", || db.close()),
            Some(copied) => {
                drop_quietly(copied);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Drop for Manifest {
    fn drop(&mut self) {
        // A halted or forked handle writes nothing here: its backend refuses.
        drop_quietly(self.handle.get_mut().take());
    }
}

fn in_use(path: &Path) -> Error {
    Error::new(ErrorKind::InUse, "open", path.display(), "another process has it open for writing")
}

fn closed(operation: &'static str, path: &Path) -> Error {
    Error::new(ErrorKind::Closed, operation, path.display(), "the manifest was closed")
}

fn writer_lives(file: &dyn File, path: &Path) -> Result<bool> {
    let byte = Bound::Included(WRITER_BYTE);
    file.is_locked(lock_range(byte, byte)).map_err(|e| super::halt::from_io("open", path, e))
}

fn lock_out_writers(disk: &Arc<dyn Disk>, root: &Path) -> Result<Option<Box<dyn Held>>> {
    disk.lock_dir(root, Sharing::Shared).map_err(|e| Error::io("lock", root.display(), e))
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
    let look = || examine(file, halt, open, true, true, Served::Durable);
    match look() {
        Err(error) if error.kind() == ErrorKind::Damage => {
            match lock_out_writers(halt.disk(), root)? {
                Some(_held) => look().map(|_| ()),
                None => Ok(()),
            }
        }
        looked => looked.map(|_| ()),
    }
}
