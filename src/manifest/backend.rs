//! redb's storage on a file of the disk: bytes, length, syncs, and the locks with their ranges.
//! Nothing is written once the handle halted, and nothing at all in a forked child.

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};
use std::io;
use std::ops::Bound;
use std::sync::Arc;

use super::halt::Halt;
use super::refit::Passing;
use crate::protection::Protection;
use crate::vfs::{File, LockRange, Sharing, read_exact_at, write_all_at};

/// What a file of redb begins with.
const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1a, 0x0a, 0xa9, 0x0d, 0x0a];
/// Where its flags are: one byte, which no crash tears.
const FLAGS_AT: usize = MAGIC.len();
/// Among them: whoever wrote last did not close it.
const RECOVERY_REQUIRED: u8 = 2;
/// Up to the first of its two commits: sizes and numbers of pages and regions.
const SUPER_HEADER_BYTES: usize = 64;

/// The ranges that a backend has locked.
pub(super) type Taken = Arc<Mutex<Vec<LockRange>>>;

/// redb's view of the manifest file.
#[derive(Debug)]
pub(super) struct Backend {
    file: Arc<dyn File>,
    halt: Arc<Halt>,
    held: Taken,
    passing: Arc<Passing>,
}

impl Backend {
    pub(super) fn new(file: Arc<dyn File>, halt: Arc<Halt>) -> Self {
        Self::passed(file, halt, Arc::default())
    }

    /// One that leaves to `passing` what the next one of the same file takes over.
    pub(super) fn passed(file: Arc<dyn File>, halt: Arc<Halt>, passing: Arc<Passing>) -> Self {
        Self { file, halt, held: Taken::default(), passing }
    }

    /// The ranges that it has locked, also once redb has it.
    pub(super) fn taken(&self) -> Taken {
        Arc::clone(&self.held)
    }

    /// Before a header is written that has another layout than the one that stands: makes the one that
    /// stands say that it was not closed, and the new one too as long as it is not durable. redb takes the
    /// layout of a closed file as the header has it, without a checksum, and that of any other from the
    /// file's length; it writes flags and layout together, and a torn write of both would be a layout
    /// that never was.
    fn flag_first(&self, header: &[u8]) -> io::Result<()> {
        let mut stands = [0; SUPER_HEADER_BYTES];
        let Some(new) = header.first_chunk::<SUPER_HEADER_BYTES>() else { return Ok(()) };
        if self.file.len()? < SUPER_HEADER_BYTES as u64 || !Protection::FlagBeforeLayout.is_on() {
            return Ok(());
        }
        read_exact_at(&*self.file, &mut stands, 0)?;
        let is_header = stands.starts_with(&MAGIC) && new.starts_with(&MAGIC);
        if !is_header || stands[FLAGS_AT + 1..] == new[FLAGS_AT + 1..] {
            return Ok(());
        }
        if stands[FLAGS_AT] & RECOVERY_REQUIRED == 0 {
            write_all_at(&*self.file, &[stands[FLAGS_AT] | RECOVERY_REQUIRED], FLAGS_AT as u64)?;
            self.file.sync_data()?;
        }
        if new[FLAGS_AT] & RECOVERY_REQUIRED == 0 {
            let mut open = header.to_vec();
            open[FLAGS_AT] |= RECOVERY_REQUIRED;
            write_all_at(&*self.file, &open, 0)?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn take(&self, range: LockRange, sharing: Sharing, wait: bool) -> Result<bool, BackendError> {
        self.halt.may_read()?;
        let taken = uninterrupted(|| match wait {
            true => self.file.lock(range, sharing).map(|()| true),
            false => self.file.try_lock(range, sharing),
        })?;
        if taken {
            self.held.lock().push(range);
        }
        Ok(taken)
    }
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Our form of redb's bounds.
pub(super) fn lock_range(start: Bound<u64>, end: Bound<u64>) -> LockRange {
    let start = match start {
        Bound::Included(at) => at,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match end {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(end),
        Bound::Unbounded => None,
    };
    LockRange { start, end }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.halt.may_read()?;
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.halt.may_read()?;
        read_exact_at(&*self.file, out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.halt.may_write()?;
        let now = self.file.len()?;
        match self.passing.cut_to(now, len) {
            Some(len) if len != now || len == 0 => self.file.set_len(len),
            _ => Ok(()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.halt.may_write()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.halt.may_write()?;
        if offset == 0 {
            self.flag_first(data)?;
        }
        self.passing.wrote(data.len() as u64);
        write_all_at(&*self.file, data, offset)
    }

    fn close(&self) -> io::Result<()> {
        // G18: the parent's locks are the same open file's; a child that let go would free them.
        if self.halt.may_read().is_err() {
            return Ok(());
        }
        if self.passing.keeps_locks() {
            self.passing.leave(std::mem::take(&mut *self.held.lock()));
            return Ok(());
        }
        let mut first = Ok(());
        for range in self.held.lock().drain(..) {
            let unlocked = uninterrupted(|| self.file.unlock(range));
            if first.is_ok() {
                first = unlocked;
            }
        }
        first
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.take(lock_range(start, end), Sharing::Exclusive, false)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.take(lock_range(start, end), Sharing::Shared, false)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.take(lock_range(start, end), Sharing::Exclusive, true).map(|_| ())
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.take(lock_range(start, end), Sharing::Shared, true).map(|_| ())
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.halt.may_read()?;
        let range = lock_range(start, end);
        uninterrupted(|| self.file.unlock(range))?;
        let mut held = self.held.lock();
        if let Some(at) = held.iter().position(|held| *held == range) {
            held.swap_remove(at);
        }
        Ok(())
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.halt.may_read()?;
        Ok(uninterrupted(|| self.file.is_locked(lock_range(start, end)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the last byte of a range inside it? Off by one would lock a neighbour's byte.
    #[test]
    fn bounds_keep_their_edges() {
        let range = lock_range(Bound::Included(3), Bound::Included(3));
        assert_eq!(range, LockRange { start: 3, end: Some(4) });
        let range = lock_range(Bound::Excluded(3), Bound::Excluded(9));
        assert_eq!(range, LockRange { start: 4, end: Some(9) });
        assert_eq!(lock_range(Bound::Unbounded, Bound::Unbounded), LockRange::WHOLE);
        assert_eq!(lock_range(Bound::Unbounded, Bound::Included(u64::MAX)), LockRange::WHOLE);
    }
}
