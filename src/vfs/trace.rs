//! A disk that passes every call on to another one, and writes down what it saw.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::counts::{Counts, Operation};
use super::disk::{
    Access, DirectIo, Disk, Entry, File, Held, Identity, LockRange, Meta, Sharing, Space,
};
use super::step::Step;

/// One call that was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// What was called.
    pub operation: Operation,
    /// The path; for an open file the one it was opened by.
    pub path: PathBuf,
    /// The new name of a rename or link.
    pub to: Option<PathBuf>,
    /// The offset of a read or write, the length set, the start of a range to lock.
    pub offset: u64,
    /// Bytes asked for or given.
    pub len: u64,
    /// Bytes read or written, names listed, 1 or 0 for a lock got or refused; or the error.
    pub result: Result<u64, io::ErrorKind>,
    /// The step of a protocol in progress.
    pub step: Option<Step>,
}

type OnMark = Arc<dyn Fn(Step) + Send + Sync>;

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    counts: Counts,
    step: Option<Step>,
    steps: BTreeMap<Step, u64>,
    on_mark: Option<OnMark>,
}

struct Trace {
    inner: Arc<dyn Disk>,
    keep_calls: bool,
    seen: Mutex<Seen>,
}

impl Trace {
    /// Counts a call that returned, and keeps it if wanted.
    fn saw(
        &self,
        operation: Operation,
        path: &Path,
        detail: Detail,
        result: Result<u64, io::ErrorKind>,
    ) {
        let mut seen = self.seen.lock();
        seen.counts.add(operation);
        match operation {
            Operation::Read => seen.counts.bytes_read += result.unwrap_or(0),
            Operation::Write => seen.counts.bytes_written += result.unwrap_or(0),
            _ => {}
        }
        if self.keep_calls {
            let Detail { to, offset, len } = detail;
            let (path, step) = (path.to_owned(), seen.step);
            seen.calls.push(Call { operation, path, to, offset, len, result, step });
        }
    }
}

#[derive(Default)]
struct Detail {
    to: Option<PathBuf>,
    offset: u64,
    len: u64,
}

fn told<T>(result: &io::Result<T>, value: impl FnOnce(&T) -> u64) -> Result<u64, io::ErrorKind> {
    result.as_ref().map(value).map_err(io::Error::kind)
}

/// Passes every call on to another disk; counts them, keeps them, and tells of each step. Clones
/// write into the same trace.
#[derive(Clone)]
pub struct TraceDisk {
    trace: Arc<Trace>,
}

impl fmt::Debug for TraceDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceDisk({:?})", self.trace.inner)
    }
}

impl TraceDisk {
    /// Traces `inner` and keeps every call.
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self::over(inner, true)
    }

    /// Traces `inner` and only counts.
    pub fn counting(inner: Arc<dyn Disk>) -> Self {
        Self::over(inner, false)
    }

    fn over(inner: Arc<dyn Disk>, keep_calls: bool) -> Self {
        Self { trace: Arc::new(Trace { inner, keep_calls, seen: Mutex::default() }) }
    }

    /// Calls `callback` at each mark, before the step's first operation, on the marking thread.
    pub fn on_mark(&self, callback: impl Fn(Step) + Send + Sync + 'static) {
        self.trace.seen.lock().on_mark = Some(Arc::new(callback));
    }

    /// The calls so far, in the order in which they returned.
    pub fn calls(&self) -> Vec<Call> {
        self.trace.seen.lock().calls.clone()
    }

    /// The calls so far; the trace goes on without them.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.trace.seen.lock().calls)
    }

    /// What was called so far, and what is held now.
    pub fn counts(&self) -> Counts {
        self.trace.seen.lock().counts
    }

    /// How often each step was marked.
    pub fn steps(&self) -> BTreeMap<Step, u64> {
        self.trace.seen.lock().steps.clone()
    }

    fn pass<T>(
        &self,
        operation: Operation,
        path: &Path,
        to: Option<&Path>,
        call: impl FnOnce(&dyn Disk) -> io::Result<T>,
        value: impl FnOnce(&T) -> u64,
    ) -> io::Result<T> {
        let result = call(&*self.trace.inner);
        let detail = Detail { to: to.map(Path::to_owned), ..Detail::default() };
        self.trace.saw(operation, path, detail, told(&result, value));
        result
    }
}

fn nothing<T>(_: &T) -> u64 {
    0
}

impl Disk for TraceDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let operation = match access {
            Access::Read | Access::ReadWrite => Operation::Open,
            Access::CreateNew | Access::CreateNewDirect => Operation::Create,
        };
        let inner = self.pass(operation, path, None, |disk| disk.open(path, access), nothing)?;
        self.trace.seen.lock().counts.open_handles += 1;
        let (trace, path) = (Arc::clone(&self.trace), path.to_owned());
        Ok(Arc::new(TraceFile { trace, path, inner, locked: Mutex::default() }))
    }

    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        self.pass(Operation::Meta, path, None, |disk| disk.meta(path), |m| u64::from(m.is_some()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Operation::Rename, from, Some(to), |disk| disk.rename(from, to), nothing)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Operation::Link, from, Some(to), |disk| disk.link(from, to), nothing)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.pass(Operation::Unlink, path, None, |disk| disk.unlink(path), nothing)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.trace.inner.set_mode(path, mode)
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        self.pass(Operation::Mkdir, path, None, |disk| disk.mkdir(path), nothing)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.pass(Operation::List, path, None, |disk| disk.list(path), |names| names.len() as u64)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.pass(Operation::SyncDir, path, None, |disk| disk.sync_dir(path), nothing)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.pass(Operation::Space, path, None, |disk| disk.space(path), |space| space.free)
    }

    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        let lock = |disk: &dyn Disk| disk.lock_dir(path, sharing);
        let got = |held: &Option<_>| u64::from(held.is_some());
        let Some(inner) = self.pass(Operation::LockDir, path, None, lock, got)? else {
            return Ok(None);
        };
        let mut seen = self.trace.seen.lock();
        seen.counts.open_handles += 1;
        seen.counts.locks_held += 1;
        Ok(Some(Box::new(TraceHeld { trace: Arc::clone(&self.trace), _inner: inner })))
    }

    fn direct_io(&self, path: &Path) -> DirectIo {
        self.trace.inner.direct_io(path)
    }

    fn wall_nanos(&self) -> Option<i64> {
        self.trace.inner.wall_nanos()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.trace.inner.monotonic_nanos()
    }

    fn pid(&self) -> u32 {
        self.trace.inner.pid()
    }

    fn boot_id(&self) -> String {
        self.trace.inner.boot_id()
    }

    fn host(&self) -> String {
        self.trace.inner.host()
    }

    fn entropy(&self, into: &mut [u8]) -> io::Result<()> {
        self.trace.inner.entropy(into)
    }

    fn mark(&self, step: Step) {
        let callback = {
            let mut seen = self.trace.seen.lock();
            seen.step = Some(step);
            *seen.steps.entry(step).or_default() += 1;
            seen.on_mark.clone()
        };
        self.trace.inner.mark(step);
        // Outside the lock: the callback may look at the trace.
        if let Some(callback) = callback {
            callback(step);
        }
    }
}

struct TraceHeld {
    trace: Arc<Trace>,
    _inner: Box<dyn Held>,
}

impl fmt::Debug for TraceHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceHeld")
    }
}

impl Held for TraceHeld {}

impl Drop for TraceHeld {
    fn drop(&mut self) {
        let mut seen = self.trace.seen.lock();
        seen.counts.open_handles -= 1;
        seen.counts.locks_held -= 1;
    }
}

struct TraceFile {
    trace: Arc<Trace>,
    path: PathBuf,
    inner: Arc<dyn File>,
    /// Ranges taken and not released by their own name; enough to see a lock that is left over.
    locked: Mutex<Vec<LockRange>>,
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceFile({}, {:?})", self.path.display(), self.inner)
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        let locked = self.locked.lock().len() as u64;
        let mut seen = self.trace.seen.lock();
        seen.counts.open_handles -= 1;
        seen.counts.locks_held -= locked;
    }
}

impl TraceFile {
    fn saw(&self, operation: Operation, offset: u64, len: u64, result: Result<u64, io::ErrorKind>) {
        self.trace.saw(operation, &self.path, Detail { to: None, offset, len }, result);
    }

    fn plain(&self, operation: Operation, offset: u64, result: io::Result<()>) -> io::Result<()> {
        self.saw(operation, offset, 0, told(&result, nothing));
        result
    }

    fn took(&self, range: LockRange) {
        let mut locked = self.locked.lock();
        if !locked.contains(&range) {
            locked.push(range);
            self.trace.seen.lock().counts.locks_held += 1;
        }
    }
}

impl File for TraceFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.inner.allocated()
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.inner.allocate(offset, len)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.inner.identity()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let result = self.inner.read_at(into, offset);
        self.saw(Operation::Read, offset, into.len() as u64, told(&result, |n| *n as u64));
        result
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let result = self.inner.write_at(from, offset);
        self.saw(Operation::Write, offset, from.len() as u64, told(&result, |n| *n as u64));
        result
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.plain(Operation::SetLen, len, self.inner.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.plain(Operation::SyncData, 0, self.inner.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.plain(Operation::SyncAll, 0, self.inner.sync_all())
    }

    fn evict(&self) -> io::Result<()> {
        self.plain(Operation::Evict, 0, self.inner.evict())
    }

    fn evict_range(&self, offset: u64, len: u64) -> io::Result<()> {
        self.plain(Operation::Evict, offset, self.inner.evict_range(offset, len))
    }

    fn try_lock(&self, range: LockRange, sharing: Sharing) -> io::Result<bool> {
        let result = self.inner.try_lock(range, sharing);
        self.saw(Operation::Lock, range.start, 0, told(&result, |got| u64::from(*got)));
        if matches!(result, Ok(true)) {
            self.took(range);
        }
        result
    }

    fn lock(&self, range: LockRange, sharing: Sharing) -> io::Result<()> {
        let result = self.inner.lock(range, sharing);
        self.saw(Operation::Lock, range.start, 0, told(&result, |()| 1));
        if result.is_ok() {
            self.took(range);
        }
        result
    }

    fn unlock(&self, range: LockRange) -> io::Result<()> {
        let result = self.plain(Operation::Unlock, range.start, self.inner.unlock(range));
        if result.is_ok() {
            let within = |held: &LockRange| {
                held.start >= range.start
                    && range.end.is_none_or(|end| held.end.is_some_and(|held| held <= end))
            };
            let mut locked = self.locked.lock();
            let before = locked.len();
            locked.retain(|held| !within(held));
            self.trace.seen.lock().counts.locks_held -= (before - locked.len()) as u64;
        }
        result
    }

    fn is_locked(&self, range: LockRange) -> io::Result<bool> {
        self.inner.is_locked(range)
    }
}
