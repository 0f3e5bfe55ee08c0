//! The real disk, with the protocol step in progress written where another process can read it.

use std::fs::{File as StdFile, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sealstone::vfs::{
    Access, DirectIo, Disk, Entry, File, Held, Meta, RealDisk, Sharing, Space, Step,
};

/// Passes every call on.
#[derive(Debug)]
pub struct MarkDisk {
    inner: Arc<RealDisk>,
    marks: StdFile,
    /// A step at which the process stands still, to be killed there.
    stop_at: Option<Step>,
    passes: AtomicU64,
}

impl MarkDisk {
    /// Writes the steps to the file `marks`; at the `passes`-th pass of `stop_at` it stands still.
    pub fn new(marks: &Path, stop_at: Option<Step>, passes: u64) -> Self {
        let marks = OpenOptions::new().write(true).create(true).truncate(true).open(marks).unwrap();
        marks.write_all_at(&[0, 0, 0], 0).unwrap();
        Self { inner: RealDisk::new(), marks, stop_at, passes: AtomicU64::new(passes) }
    }
}

/// What a marks file says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    /// The step in progress.
    pub step: Option<Step>,
    /// The process stands still at it.
    pub is_stopped: bool,
    /// The store was opened once.
    pub was_ready: bool,
}

pub fn read_marks(path: &Path) -> Marks {
    let bytes = std::fs::read(path).unwrap_or_default();
    let step =
        bytes.first().and_then(|at| Step::ALL.get(usize::from(*at).checked_sub(1)?)).copied();
    let is_set = |at| bytes.get(at) == Some(&1);
    Marks { step, is_stopped: is_set(1), was_ready: is_set(2) }
}

impl Disk for MarkDisk {
    fn mark(&self, step: Step) {
        let at = Step::ALL.iter().position(|other| *other == step).unwrap() as u8 + 1;
        self.marks.write_all_at(&[at], 0).unwrap();
        if step == Step::OpenReady {
            self.marks.write_all_at(&[1], 2).unwrap();
        }
        if self.stop_at == Some(step) && self.passes.fetch_sub(1, Ordering::Relaxed) <= 1 {
            self.marks.write_all_at(&[at, 1], 0).unwrap();
            loop {
                std::thread::park();
            }
        }
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.inner.open(path, access)
    }
    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        self.inner.meta(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.link(from, to)
    }
    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.inner.unlink(path)
    }
    fn mkdir(&self, path: &Path) -> io::Result<()> {
        self.inner.mkdir(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.inner.list(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.inner.space(path)
    }
    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        self.inner.lock_dir(path, sharing)
    }
    fn direct_io(&self, path: &Path) -> DirectIo {
        self.inner.direct_io(path)
    }
    fn wall_nanos(&self) -> Option<i64> {
        self.inner.wall_nanos()
    }
    fn monotonic_nanos(&self) -> u64 {
        self.inner.monotonic_nanos()
    }
    fn pid(&self) -> u32 {
        self.inner.pid()
    }
    fn boot_id(&self) -> String {
        self.inner.boot_id()
    }
    fn host(&self) -> String {
        self.inner.host()
    }
    fn entropy(&self, into: &mut [u8]) -> io::Result<()> {
        self.inner.entropy(into)
    }
}
