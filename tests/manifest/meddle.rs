//! A disk that meddles: it changes its process, fails an operation, or lets something happen just
//! before a link.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, AroundDisk, AroundFile, Disk, File};

/// Which operations count, and fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Reads of a file.
    Read,
    /// Writes, lengths and syncs of a file: nothing of the operation happens.
    Change,
    /// Syncs of a file: what was written stays pending.
    Sync,
    /// One write of a file: it is said to have happened, and did not.
    LostWrite,
}

#[derive(Debug)]
struct Plan {
    /// Operations of the kind until one fails; negative for none. From then on all fail.
    left: AtomicI64,
    kind: Mutex<Fault>,
}

impl Plan {
    fn loses_write(&self) -> bool {
        *self.kind.lock().unwrap() == Fault::LostWrite
            && self.left.load(Ordering::SeqCst) >= 0
            && self.left.fetch_sub(1, Ordering::SeqCst) == 0
    }

    fn meet(&self, kinds: &[Fault]) -> io::Result<()> {
        let armed = self.left.load(Ordering::SeqCst) >= 0;
        if armed && kinds.contains(&self.kind.lock().unwrap()) {
            let left = self.left.load(Ordering::SeqCst);
            if left == 0 {
                return Err(io::Error::other("the test pulled the cable"));
            }
            self.left.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

type Event = Box<dyn FnOnce() + Send>;

pub struct Meddled {
    inner: SimDisk,
    pid: Arc<AtomicU32>,
    plan: Arc<Plan>,
    before_link: Mutex<Option<Event>>,
}

impl std::fmt::Debug for Meddled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Meddled")
    }
}

impl Meddled {
    pub fn new(inner: SimDisk) -> Arc<Self> {
        let pid = Arc::new(AtomicU32::new(inner.pid()));
        let plan = Plan { left: AtomicI64::new(-1), kind: Mutex::new(Fault::Read) };
        Arc::new(Self { inner, pid, plan: Arc::new(plan), before_link: Mutex::new(None) })
    }

    /// From now on every caller is in another process, as after a fork.
    pub fn fork(&self, pid: u32) {
        self.pid.store(pid, Ordering::SeqCst);
    }

    /// Lets `after` operations of a kind pass, and fails all that follow.
    pub fn fail(&self, kind: Fault, after: i64) {
        *self.plan.kind.lock().unwrap() = kind;
        self.plan.left.store(after, Ordering::SeqCst);
    }

    /// Whether what was planned has not happened yet.
    pub fn is_armed(&self) -> bool {
        self.plan.left.load(Ordering::SeqCst) >= 0
    }

    /// Fails nothing more.
    pub fn mend(&self) {
        self.plan.left.store(-1, Ordering::SeqCst);
    }

    pub fn before_link(&self, event: impl FnOnce() + Send + 'static) {
        *self.before_link.lock().unwrap() = Some(Box::new(event));
    }
}

#[derive(Debug)]
struct MeddledFile {
    inner: Arc<dyn File>,
    plan: Arc<Plan>,
}

impl AroundFile for MeddledFile {
    fn inner(&self) -> &dyn File {
        &*self.inner
    }
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.plan.meet(&[Fault::Read])?;
        self.inner.read_at(into, offset)
    }
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.plan.meet(&[Fault::Change])?;
        if self.plan.loses_write() {
            return Ok(from.len());
        }
        self.inner.write_at(from, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.plan.meet(&[Fault::Change])?;
        self.inner.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.plan.meet(&[Fault::Change, Fault::Sync])?;
        self.inner.sync_data()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.plan.meet(&[Fault::Change, Fault::Sync])?;
        self.inner.sync_all()
    }
}

impl AroundDisk for Meddled {
    fn inner(&self) -> &dyn Disk {
        &self.inner
    }
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, access)?;
        Ok(Arc::new(MeddledFile { inner, plan: self.plan.clone() }))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let event = self.before_link.lock().unwrap().take();
        if let Some(event) = event {
            event();
        }
        self.inner.link(from, to)
    }
    fn pid(&self) -> u32 {
        self.pid.load(Ordering::SeqCst)
    }
}
