//! The handle of an opened store. Cheap to clone, usable from any thread; the last one to go ends
//! the opening.

use parking_lot::{Mutex, RwLock};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::close::Last;
use super::condition::Outcome;
use super::core::Core;
use super::fetch::{self, FileCache};
use super::journals::Adopted;
use super::kept::Kept;
use super::left::Left;
use super::options::Options;
use super::owner::OwnLock;
use super::recover::Recovery;
use super::seal::Building;
use super::streams::Streams;
use super::worker::{Linger, Reclaimer};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Epoch, ObjectId, OwnerId, StoreId, StreamId};
use crate::journal::Journal;
use crate::limits::Limits;
use crate::manifest::{Committed, OwnerRow, Reading, Snapshot, StreamRow, Write};
use crate::vfs::{Disk, Held, Step};

/// An opened store.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) inner: Arc<Inner>,
    /// Absent in the engine's own short-lived handles: those keep no opening alive.
    _last: Option<Arc<Last>>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    pub(super) files: FileCache,
    pub(super) writer: Option<Writer>,
    pub(super) kept: Kept,
}

/// What only the writing opening has.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) journal: Journal,
    pub(super) streams: Mutex<Streams>,
    pub(super) adopted: Mutex<Vec<Adopted>>,
    /// Journals left by others that the tails of streams we hold lie in.
    pub(super) left: Mutex<BTreeSet<Left>>,
    /// Held by those who append; alone, by who lets go of a stream.
    pub(super) releasing: RwLock<()>,
    pub(super) building: Building,
    pub(super) recovery: Recovery,
    /// Publications since the newest snapshot; locked while one is written.
    pub(super) published: Mutex<u64>,
    pub(super) linger: Mutex<Option<Linger>>,
    pub(super) reclaimer: Mutex<Option<Reclaimer>>,
    /// Released in this order at the end: our own lock, then the store's.
    pub(super) locks: Mutex<Option<(OwnLock, Box<dyn Held>)>>,
}

impl Inner {
    pub(super) fn new(core: Arc<Core>, writer: Option<Writer>) -> Self {
        Self { core, files: FileCache::default(), writer, kept: Kept::default() }
    }
}

impl Store {
    /// How to open or create: see [`Options`].
    pub fn options() -> Options {
        Options::default()
    }

    /// Creates a store with default options and opens it.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().create(path)
    }

    /// Opens a store with default options.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a store for reading with default options.
    ///
    /// # Errors
    /// As [`Options::open_read_only`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open_read_only(path)
    }

    /// The store's name, given at birth.
    pub fn id(&self) -> StoreId {
        self.core().manifest.meta().store
    }

    /// Where it stands, as the path was given.
    pub fn path(&self) -> &Path {
        &self.core().root
    }

    /// The disk on which the names below [`Store::path`] lie: of a store that is one file, its own.
    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.core().disk)
    }

    /// This opening, or `None` when it is for reading.
    pub fn owner(&self) -> Option<(OwnerId, Epoch)> {
        self.core().me.map(|me| (me.owner, me.epoch))
    }

    /// What recovery found when this store was opened.
    pub fn recovery(&self) -> Recovery {
        self.inner.writer.as_ref().map(|w| w.recovery.clone()).unwrap_or_default()
    }

    /// The bounds that it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.core().limits
    }

    /// A consistent view of all rows. Drop it soon: while it lives, later commits cannot give
    /// back what it sees.
    ///
    /// # Errors
    /// `Halted`, `Closed`, `Damage`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.core().snapshot()
    }

    /// Changes rows in ONE transaction; `step` names it. For the faces: `change` may do no I/O and
    /// call no code of a caller. An error from `change` changes nothing.
    ///
    /// # Errors
    /// What `change` returns; `Fenced`; `OutcomeUnknown` after which the store has halted.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn transact<T>(
        &self,
        step: Step,
        change: impl FnOnce(&mut Write) -> Result<T>,
    ) -> Result<Committed<T>> {
        let committed = self.core().transact(step, change)?;
        if !committed.settled.files.is_empty() {
            self.ask_to_reclaim();
        }
        Ok(committed)
    }

    /// Creates a stream that belongs to no recording.
    ///
    /// # Errors
    /// `Invalid` for an empty or blank name; `DiskFull`.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn create_stream(&self, name: &str) -> Result<StreamId> {
        if name.trim().is_empty() {
            return Err(Error::invalid("create", "stream", "its name is blank"));
        }
        self.core().check_intake("create")?;
        let row = StreamRow { name: name.to_owned(), ..StreamRow::default() };
        let committed = self.transact(Step::PublishCommit, |w| {
            let stream = w.next_stream_id()?;
            w.put(&stream, &row)?;
            Ok(stream)
        })?;
        Ok(committed.value)
    }

    /// An object's bytes, verified.
    ///
    /// # Errors
    /// `NotFound`; `Damage` with file and offset.
    pub fn fetch(&self, object: ObjectId) -> Result<Vec<u8>> {
        fetch::fetch(self.core(), self.files(), object)
    }

    /// Bytes `range` of an object, verified; only the blocks that hold them are read.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a range beyond its end; `Damage` with file and offset.
    pub fn fetch_range(&self, object: ObjectId, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        fetch::fetch_range(self.core(), self.files(), object, range)
    }

    /// Bytes `range` of an object whose content checks itself; no others are read, and none verified.
    pub(crate) fn fetch_self_checked(
        &self,
        object: ObjectId,
        range: std::ops::Range<u64>,
    ) -> Result<Vec<u8>> {
        fetch::fetch_self_checked(self.core(), self.files(), object, range)
    }

    /// What became of a commit whose outcome was unknown, learnt from its owner's own counter.
    ///
    /// # Errors
    /// `Halted`, `Closed`, `Damage`.
    pub fn outcome_of(&self, attempt: super::Attempt) -> Result<Outcome> {
        Ok(match self.snapshot()?.get::<OwnerRow>(&attempt.owner)? {
            None => Outcome::Forgotten,
            Some(row) if row.commits >= attempt.count => Outcome::Committed,
            Some(_) => Outcome::NotCommitted,
        })
    }

    /// The handle of a caller.
    pub(super) fn new(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        let last = Arc::new(Last { inner: Arc::clone(&inner) });
        Self { inner, _last: Some(last) }
    }

    /// A handle of the engine's own.
    pub(super) fn within(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::clone(inner), _last: None }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    pub(super) fn files(&self) -> &FileCache {
        &self.inner.files
    }

    pub(super) fn writer(&self, operation: &'static str) -> Result<&Writer> {
        self.core().condition.check(operation)?;
        self.writer_even_halted()
    }

    pub(super) fn writer_even_halted(&self) -> Result<&Writer> {
        self.inner.writer.as_ref().ok_or_else(|| {
            let cause = "it was opened for reading; open it for writing";
            Error::new(ErrorKind::ReadOnly, "open", self.core().root.display(), cause)
        })
    }
}
