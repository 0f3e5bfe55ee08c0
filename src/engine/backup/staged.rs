//! A disk on which a finished draft has the manifest's name already: what a reader will see after
//! the switch is looked at before it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::vfs::{Access, AroundDisk, Disk, File, Meta};

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

impl AroundDisk for Staged {
    fn inner(&self) -> &dyn Disk {
        &*self.disk
    }
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
    fn set_mode(&self, _: &Path, _: u32) -> io::Result<()> {
        refuse()
    }
    fn mkdir(&self, _: &Path) -> io::Result<()> {
        refuse()
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refuse()
    }
}
