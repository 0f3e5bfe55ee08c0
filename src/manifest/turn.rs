//! Turns: how processes that write into one manifest wait for each other, and how readers that
//! recover a copy in memory keep writers out.
//!
//! ```text
//!   threads --- [Turns::begin] ---> one of this process --- NEXT ---> one of all --- WRITER ---> writes
//! ```
//! The system's own locks wake all who wait, and whoever is running already gets there first: a
//! writer that commits in a loop would starve the others. So whoever wants to write first has to be
//! *next*, of whom there is one; who has just written has to queue behind that one.
//!
//! The bytes are of the range that redb leaves to its backends.

use parking_lot::{Mutex, MutexGuard};
use redb::{Database, TransactionError, WriteTransaction};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::halt::{Halt, catch, from_io, from_panic, from_redb};
use crate::error::{Error, ErrorKind, Result};
use crate::vfs::{File, Held, LockRange, Sharing};

// redb's lock bytes begin here; it leaves those from 896 to 1024 behind it to backends.
const LOCK_BASE: u64 = 1 << 62;
/// Held by a transaction that writes, where several processes may.
const WRITER: LockRange = byte(LOCK_BASE);
const NEXT: LockRange = byte(LOCK_BASE + 900);
/// Shared by readers of a copy in memory: the file may not change under them.
const COPIED: LockRange = byte(LOCK_BASE + 901);
/// Shared by those who write, or are about to, where several processes may.
const WRITING: LockRange = byte(LOCK_BASE + 902);

const fn byte(at: u64) -> LockRange {
    LockRange { start: at, end: Some(at + 1) }
}

/// The longest wait for a turn. A transaction takes milliseconds: who holds it for so long was
/// suspended inside it.
pub const TURN_MILLIS_MAX: u64 = 30_000;

const PAUSE_MICROS_MIN: u64 = 50;
const PAUSE_MICROS_MAX: u64 = 1_000;

/// How often and how long this opening waited for other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Transactions that had to wait.
    pub count: u64,
    /// All their waiting, in nanoseconds.
    pub total_nanos: u64,
    /// The longest, in nanoseconds.
    pub longest_nanos: u64,
}

/// The turns of one opening.
#[derive(Debug)]
pub(super) struct Turns {
    file: Arc<dyn File>,
    entry: Mutex<()>,
    count: AtomicU64,
    total: AtomicU64,
    longest: AtomicU64,
}

/// Held while this process writes.
pub(super) type Turn<'t> = MutexGuard<'t, ()>;

impl Turns {
    /// Says that this process writes, for as long as the file is open or until [`Turns::leave`].
    ///
    /// # Errors
    /// `InUse` while a reader holds a copy of what a killed writer left.
    pub(super) fn enter(file: &Arc<dyn File>, path: &Path) -> Result<Self> {
        let fail = |e| from_io("open", path, e);
        let is_shared = file.try_lock(WRITING, Sharing::Shared).map_err(fail)?;
        if !is_shared || file.is_locked(COPIED).map_err(fail)? {
            let cause = "a reader holds a copy of what a killed writer left; try again";
            return Err(Error::new(ErrorKind::InUse, "open", path.display(), cause));
        }
        Ok(Self {
            file: Arc::clone(file),
            entry: Mutex::new(()),
            count: AtomicU64::new(0),
            total: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        })
    }

    /// The end of [`Turns::enter`].
    pub(super) fn leave(&self) {
        let _ = self.file.unlock(WRITING);
    }

    /// Waits until no other process writes, and keeps it so for redb's opening, which ends it.
    pub(super) fn admit(&self, path: &Path) -> Result<()> {
        let mut pause = Pause::default();
        for range in [NEXT, WRITER] {
            while !self
                .file
                .try_lock(range, Sharing::Exclusive)
                .map_err(|e| from_io("lock", path, e))?
            {
                if let Err(e) = pause.once(path) {
                    let _ = self.file.unlock(NEXT);
                    return Err(e);
                }
            }
        }
        self.file.unlock(NEXT).map_err(|e| from_io("lock", path, e))
    }

    /// Begins a transaction when it is our turn.
    ///
    /// # Errors
    /// `InUse` when another process did not end its own for [`TURN_MILLIS_MAX`]: nothing was
    /// changed, and the handle goes on.
    pub(super) fn begin<'t>(
        &'t self,
        db: &Database,
        halt: &Halt,
    ) -> Result<(WriteTransaction, Turn<'t>)> {
        let turn = self.entry.lock();
        let began = halt.disk().monotonic_nanos();
        let mut pause = Pause::default();
        let fail = |e| from_io("lock", halt.path(), e);
        while !self.file.try_lock(NEXT, Sharing::Exclusive).map_err(fail)? {
            pause.once(halt.path())?;
        }
        let begun = self.begin_next(db, halt, &mut pause);
        self.file.unlock(NEXT).map_err(fail)?;
        if pause.times > 0 {
            self.note(halt.disk().monotonic_nanos().saturating_sub(began));
        }
        Ok((begun?, turn))
    }

    fn begin_next(
        &self,
        db: &Database,
        halt: &Halt,
        pause: &mut Pause,
    ) -> Result<WriteTransaction> {
        loop {
            halt.check("write")?;
            match catch(|| db.try_begin_write()) {
                Ok(Ok(txn)) => return Ok(txn),
                Ok(Err(TransactionError::WouldBlock)) => pause.once(halt.path())?,
                Ok(Err(e)) => return Err(halt.halt(from_redb("write", halt.path(), e.into()))),
                Err(panic) => return Err(halt.halt(from_panic("write", halt.path(), &panic))),
            }
        }
    }

    fn note(&self, nanos: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(nanos, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(super) fn waits(&self) -> Waits {
        Waits {
            count: self.count.load(Ordering::Relaxed),
            total_nanos: self.total.load(Ordering::Relaxed),
            longest_nanos: self.longest.load(Ordering::Relaxed),
        }
    }
}

/// One wait, in pauses that grow.
#[derive(Debug, Default)]
struct Pause {
    times: u32,
    micros: u64,
}

impl Pause {
    fn once(&mut self, path: &Path) -> Result<()> {
        if self.micros >= TURN_MILLIS_MAX * 1000 {
            let cause = format!(
                "another process did not end its transaction for {} s; it may be suspended: \
                 resume it, or end it",
                TURN_MILLIS_MAX / 1000
            );
            return Err(Error::new(ErrorKind::InUse, "write", path.display(), cause));
        }
        let micros = (PAUSE_MICROS_MIN << self.times.min(10)).min(PAUSE_MICROS_MAX);
        std::thread::sleep(Duration::from_micros(micros));
        self.times += 1;
        self.micros += micros;
        Ok(())
    }
}

/// Keeps the writers of a store away while it is held. Several readers may hold it at once.
#[derive(Debug)]
pub(super) struct LockedOut {
    file: Arc<dyn File>,
    halt: Arc<Halt>,
    /// The store's own lock, which keeps a single writer away.
    _store: Box<dyn Held>,
}

impl Held for LockedOut {}

impl LockedOut {
    /// `None` while a process writes, or is about to. `store` is held as well.
    pub(super) fn all(
        file: &Arc<dyn File>,
        halt: &Arc<Halt>,
        store: Box<dyn Held>,
    ) -> Result<Option<Self>> {
        let fail = |e| from_io("lock", halt.path(), e);
        // Each side first says that it is there, then looks for the other: never do both go on.
        if !file.try_lock(COPIED, Sharing::Shared).map_err(fail)? {
            return Ok(None);
        }
        let out = Self { file: Arc::clone(file), halt: Arc::clone(halt), _store: store };
        Ok((!file.is_locked(WRITING).map_err(fail)?).then_some(out))
    }
}

impl Drop for LockedOut {
    fn drop(&mut self) {
        // G18: a forked child would free its parent's lock.
        if self.halt.may_read().is_ok() {
            let _ = self.file.unlock(COPIED);
        }
    }
}
