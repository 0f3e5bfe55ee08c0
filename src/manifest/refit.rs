//! Another length for a file that stays open: redb is closed, the file is cut or given room with
//! storage under it, and redb opens it again. No lock is let go meanwhile.
//!
//! ```text
//!   close redb      its cut of the free end is noted and not made; its locks stay
//!   the new length  where redb's pages end, and as much more as is wanted: with storage, synced
//!   open redb       it takes the length that the file has for its own; locks that it leaves go
//! ```
//! redb makes its file twice as long when it grows, without storage, and fails inside a commit
//! where that is missing. Room that was made before is used first.
//!
//! A crash anywhere leaves a file that was closed, of its own length or longer: both open.

use parking_lot::Mutex;
use redb::Database;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use super::handle::{Handle, Manifest};
use super::open::open_writer;
use crate::error::{Error, Result};
use crate::protection::Protection;
use crate::vfs::LockRange;

/// redb's page: a length is a multiple of it.
const PAGE_BYTES: u64 = 4096;
/// How long readers and transactions that are under way are waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What one backend of a file leaves to the next.
#[derive(Debug, Default)]
pub(super) struct Passing {
    state: Mutex<State>,
    written: AtomicU64,
    /// Held while redb is opened anew.
    gate: Mutex<()>,
    /// Counts each beginning and each end of that: odd while it is.
    turns: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    ending: Ending,
    held: Vec<LockRange>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// As redb says.
    #[default]
    Plain,
    /// The file is cut to so many bytes more than redb says.
    Spare(u64),
    /// The file stays as it is, its locks too; where redb would cut it.
    Passed(Option<u64>),
}

impl Passing {
    /// To which length the file of `now` bytes goes when redb says `len`; `None` leaves it.
    pub(super) fn cut_to(&self, now: u64, len: u64) -> Option<u64> {
        let mut state = self.state.lock();
        match &mut state.ending {
            Ending::Spare(bytes) if len < now => {
                Some(now.min(len.saturating_add(*bytes / PAGE_BYTES * PAGE_BYTES)))
            }
            Ending::Passed(cut) if len < now => {
                *cut = Some(len);
                None
            }
            _ => Some(len),
        }
    }

    pub(super) fn keeps_locks(&self) -> bool {
        matches!(self.state.lock().ending, Ending::Passed(_))
    }

    pub(super) fn leave(&self, held: Vec<LockRange>) {
        self.state.lock().held = held;
    }

    pub(super) fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that redb wrote so far: it never takes more pages than it writes.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// What `take` gives, which waits for nobody; again where redb is being opened anew, or was
    /// meanwhile. `None` where it was something else that stood in the way.
    pub(super) fn once_open<T>(&self, mut take: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            let before = self.turns.load(Ordering::SeqCst);
            let taken = take();
            fence(Ordering::SeqCst);
            let is_still = before.is_multiple_of(2) && before == self.turns.load(Ordering::SeqCst);
            if taken.is_some() || is_still || !Protection::AskedOnceOpen.is_on() {
                return taken;
            }
            drop(self.gate.lock());
        }
    }

    /// Redb begins or ends to be opened anew; whoever calls holds the gate.
    fn turn(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    fn set(&self, ending: Ending) {
        self.state.lock().ending = ending;
    }

    /// Leaves `bytes` of free pages at the end of the file when redb closes it.
    pub(super) fn spare(&self, bytes: u64) {
        self.set(Ending::Spare(bytes));
    }
}

/// What there is behind the end of the pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind {
    /// Space for it: on the disk, and under the file already.
    pub(super) free: u64,
    /// What the file had there, with storage or without.
    pub(super) had: u64,
}

/// What a file came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refitted {
    /// It ends where redb's pages end, and so many bytes behind them, all with storage.
    To(u64),
    /// Somebody reads it or writes it; nothing was done.
    Busy,
}

impl Manifest {
    /// Ends the file where its pages end, and gives it as much more as `more` says: of the space that
    /// is free then, and of what the file had behind that end until now. Snapshots of this handle
    /// stand in the way; those of other processes do not.
    ///
    /// # Errors
    /// Those of closing and opening, and of the disk: the handle halted, and reopening finds
    /// everything. `Halted`, `Forked`, `Closed`.
    pub(super) fn refit(&self, more: impl FnOnce(Behind) -> u64) -> Result<Refitted> {
        self.halt().check("write")?;
        let _alone = self.passing().gate.lock();
        self.passing().turn();
        let done = self.refit_alone(more);
        self.passing().turn();
        done
    }

    fn refit_alone(&self, more: impl FnOnce(Behind) -> u64) -> Result<Refitted> {
        let Some(mut handle) = self.handle().try_write_for(PATIENCE) else {
            return Ok(Refitted::Busy);
        };
        if self.is_read_here() || self.is_shared() {
            return Ok(Refitted::Busy);
        }
        let db = match handle.take() {
            Some(Handle::Writer(db)) => db,
            other => {
                *handle = other;
                return Ok(Refitted::Busy);
            }
        };
        let passing = self.passing();
        passing.set(Ending::Passed(None));
        let opened = self.reopened(db, more);
        passing.set(Ending::Plain);
        let (db, room) = opened?;
        *handle = Some(Handle::Writer(db));
        Ok(Refitted::To(room))
    }

    fn reopened(&self, db: Database, more: impl FnOnce(Behind) -> u64) -> Result<(Database, u64)> {
        self.halt().guard("close", || db.close())?;
        let room = self.relength(more).inspect_err(|e| self.stop(e))?;
        let left = std::mem::take(&mut self.passing().state.lock().held);
        // What the next one takes it has already; what it does not take goes.
        self.passing().set(Ending::Plain);
        let (db, taken) =
            open_writer(self.file(), self.halt(), None, self.cache(), self.passing())?;
        for range in left.into_iter().filter(|range| !taken.lock().contains(range)) {
            self.file().unlock(range).map_err(|e| {
                let error = Error::io("unlock", self.path().display(), e);
                self.stop(&error);
                error
            })?;
        }
        Ok((db, room))
    }

    /// Gives the closed file its length.
    fn relength(&self, more: impl FnOnce(Behind) -> u64) -> Result<u64> {
        let fail = |operation| move |e| Error::io(operation, self.path().display(), e);
        let (file, now) = (self.file(), self.len_bytes()?);
        let ends = match self.passing().state.lock().ending {
            Ending::Passed(Some(cut)) => cut,
            _ => now,
        };
        let space = self.disk().space(self.path()).map_err(fail("measure"))?;
        // What lies behind the end has storage already, or gives back none.
        let holes = now.saturating_sub(self.allocated_bytes()?);
        let had = now.saturating_sub(ends);
        let free = space.free.saturating_add(had.saturating_sub(holes));
        let room = more(Behind { free, had }).min(free) / PAGE_BYTES * PAGE_BYTES;
        let target = ends.saturating_add(room);
        if target != now {
            file.set_len(target).map_err(fail("resize"))?;
        }
        let room = match file.allocate(0, target) {
            Ok(true) => room,
            // Pages without storage are worse than none: a commit would count on them.
            Ok(false) | Err(_) => {
                file.set_len(ends).map_err(fail("resize"))?;
                0
            }
        };
        // A header that tells of a length may not be durable before it is.
        file.sync_data().map_err(fail("sync"))?;
        Ok(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::StoreId;
    use crate::manifest::{Birth, Open};
    use crate::vfs::{Disk, RealDisk, Step};
    use std::sync::Arc;

    /// Does a caller that met a reopening try again, although it ended before the caller looked why
    /// nothing was open? Is it told so where nothing is open at all?
    #[test]
    fn a_reopening_that_just_ended_is_no_end() {
        let passing = Passing::default();
        let mut tries = 0;
        let met = passing.once_open(|| {
            tries += 1;
            if tries == 1 {
                let _alone = passing.gate.lock();
                passing.turn();
                passing.turn();
                return None;
            }
            Some(tries)
        });
        assert_eq!(met, Some(2));
        assert_eq!(passing.once_open(|| None::<u8>), None);
    }

    /// Reads and commits beside up to `refits` reopenings, until one of those is told an error; how many
    /// reopenings there were.
    fn beside_reopenings<T>(refits: u32, begin: &(dyn Fn() -> T + Sync)) -> Result<u32> {
        let dir = tempfile::tempdir().unwrap();
        let (disk, path): (Arc<dyn Disk>, _) = (RealDisk::new(), dir.path().join("s"));
        let store = StoreId::from_parts(1, [1; 10]);
        let birth = Birth { store, created: None, sealed_folders: 1, single_file: true };
        Manifest::create_file(&disk, &path, &birth).unwrap();
        let open = Open { single_file: true, ..Open::default() };
        let manifest = Manifest::open(&disk, &path, &open).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let beside = |work: &dyn Fn() -> Result<()>| {
            let _begun = begin();
            let mut told = Ok(());
            while told.is_ok() && !is_over.load(Ordering::Relaxed) {
                told = work();
            }
            is_over.store(true, Ordering::Relaxed);
            told
        };
        std::thread::scope(|threads| {
            let reads = || beside(&|| manifest.read().map(drop));
            let writes =
                || beside(&|| manifest.write(None, Step::BodyCommit, |_| Ok(())).map(drop));
            let theirs = [threads.spawn(reads), threads.spawn(writes)];
            let (mut refitted, mut tried) = (0, 0);
            while tried < refits && !is_over.load(Ordering::Relaxed) {
                refitted += u32::from(manifest.refit(|_| 0).unwrap() != Refitted::Busy);
                tried += 1;
            }
            is_over.store(true, Ordering::Relaxed);
            theirs.map(|one| one.join().unwrap()).into_iter().collect::<Result<()>>()?;
            Ok(refitted)
        })
    }

    /// Do those who read and commit beside many reopenings ever hear that the manifest was closed?
    #[test]
    fn nobody_beside_a_reopening_is_told_closed() {
        assert!(beside_reopenings(60, &|| ()).unwrap() > 0);
    }

    /// (mutant) And if they did not ask again?
    #[cfg(feature = "sim")]
    #[test]
    fn who_does_not_ask_again_is_told_closed() {
        let off = || crate::protection::switch_off(Protection::AskedOnceOpen);
        let told = beside_reopenings(5000, &off).unwrap_err();
        assert_eq!(told.kind(), crate::error::ErrorKind::Closed, "{told}");
    }
}
