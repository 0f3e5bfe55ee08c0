//! A disk on which a finished draft has the manifest's name already: what a reader will see after
//! the switch is looked at before it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::vfs::{Access, DirectIo, Disk, Entry, File, Held, Meta, Sharing, Space};

#[derive(Debug)]
pub(super) struct Staged {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) manifest: PathBuf,
    pub(super) draft: PathBuf,
}

impl Staged {
    fn at<'p>(&'p self, path: &'p Path) -> &'p Path {
        if path == self.manifest { &self.draft } else { path }
    }
}

/// Nothing may be changed through it.
fn refuse<T>() -> io::Result<T> {
    Err(io::ErrorKind::PermissionDenied.into())
}

impl Disk for Staged {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        match access {
            Access::Read => self.disk.open(self.at(path), access),
            _ => refuse(),
        }
    }
    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        self.disk.meta(self.at(path))
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refuse()
    }
    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refuse()
    }
    fn unlink(&self, _: &Path) -> io::Result<()> {
        refuse()
    }
    fn mkdir(&self, _: &Path) -> io::Result<()> {
        refuse()
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.disk.list(path)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refuse()
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.disk.space(path)
    }
    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        self.disk.lock_dir(path, sharing)
    }
    fn direct_io(&self, path: &Path) -> DirectIo {
        self.disk.direct_io(path)
    }
    fn wall_nanos(&self) -> Option<i64> {
        self.disk.wall_nanos()
    }
    fn monotonic_nanos(&self) -> u64 {
        self.disk.monotonic_nanos()
    }
    fn pid(&self) -> u32 {
        self.disk.pid()
    }
    fn boot_id(&self) -> String {
        self.disk.boot_id()
    }
    fn host(&self) -> String {
        self.disk.host()
    }
    fn entropy(&self, into: &mut [u8]) -> io::Result<()> {
        self.disk.entropy(into)
    }
}
