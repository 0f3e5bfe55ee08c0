//! A store that is one file, until it is whole: under another name beside its own, locked, and
//! named by a link at the end, which replaces nothing.
//!
//! ```text
//!   nothing --- [begin] ---> newborn, locked --- filled, synced --- [name] ---> named, alone
//!                  ^              \--- the process died ---> left over
//!                  \------------------ [clear], by the next creation or opening
//! ```
//! The lock stands before the name is trusted: nobody takes the name from a file that is locked, and
//! whoever holds the lock looks once more whether the name is still its file's.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::birth::{exists, link_failed, name_unsure};
use super::body::lock_open_file;
use super::examine::MAGIC;
use super::switch::switch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::vfs::{Access, Disk, EntryKind, File, Held, Identity, Sharing, Step, read_exact_at};

/// How often the name may be lost to another before this gives up.
const TRIES_MAX: usize = 64;

/// A file that is being made.
#[derive(Debug)]
pub struct Newborn {
    disk: Arc<dyn Disk>,
    tmp: PathBuf,
    target: PathBuf,
    file: Arc<dyn File>,
    is_done: bool,
    _held: Box<dyn Held>,
}

impl Newborn {
    /// Begins an empty file that is to become `target`; what a crash left of an earlier one goes.
    ///
    /// # Errors
    /// `Exists` when something has that name, or when something that is not ours has the name in
    /// which it is made; `InUse` while another process makes it; `Invalid` for a name too long to
    /// be made; `Unsupported` without locks; `Io`.
    pub fn begin(disk: &Arc<dyn Disk>, target: &Path) -> Result<Self> {
        let named = disk.meta(target).map_err(|e| Error::io("create", target.display(), e))?;
        if named.is_some() {
            return Err(exists(target));
        }
        Self::beside(disk, target)
    }

    /// As [`begin`](Self::begin), whether or not something has the name.
    ///
    /// # Errors
    /// As there.
    pub fn beside(disk: &Arc<dyn Disk>, target: &Path) -> Result<Self> {
        let tmp = layout::newborn(target);
        let fail = |e| Error::io("create", tmp.display(), e);
        for _ in 0..TRIES_MAX {
            let file = match disk.open(&tmp, Access::CreateNew) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    clear(disk, target)?;
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::InvalidFilename => {
                    let cause = "its name is too long: while it is made, it has a longer one";
                    return Err(Error::invalid("create", target.display(), cause).with_source(e));
                }
                Err(e) => return Err(fail(e)),
            };
            let lock = lock_open_file(disk, Arc::clone(&file), Sharing::Exclusive);
            let Some(held) = lock.map_err(|e| {
                // Nobody could ever take it away safely again, where no lock tells whose it is.
                let _ = disk.unlink(&tmp);
                no_locks(&tmp, e)
            })?
            else {
                return Err(busy(&tmp));
            };
            if identity(disk, &tmp)? == Some(file.identity().map_err(fail)?) {
                let (disk, target) = (Arc::clone(disk), target.to_owned());
                return Ok(Self { disk, tmp, target, file, is_done: false, _held: held });
            }
        }
        Err(busy(&tmp))
    }

    /// Takes away what a crash left of the making of `target`.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn clear(disk: &Arc<dyn Disk>, target: &Path) -> Result<()> {
        clear(disk, target)
    }

    /// Where it is meanwhile.
    pub fn path(&self) -> &Path {
        &self.tmp
    }

    /// The disk on which it lies.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The file, open.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Puts it in the place of what has its name, which the caller has locked; its content is synced.
    /// The two steps are the rename and the sync.
    ///
    /// # Durability
    /// As [`switch`].
    ///
    /// # Errors
    /// As there.
    pub fn replace(mut self, steps: [Step; 2]) -> Result<()> {
        switch(&self.disk, &self.tmp, &self.target, steps)?;
        self.is_done = true;
        Ok(())
    }

    /// Gives it its own name; its content is synced. `sync` names the sync of the directory.
    ///
    /// # Durability
    /// The name is durable when this returns. The other one is gone, or the next opening takes it.
    ///
    /// # Errors
    /// `Exists` when somebody else took the name: that file was left as it is. `OutcomeUnknown`
    /// when the directory could not be synced: it has its name, which may not be durable. `Io`.
    pub fn name(mut self, sync: Step) -> Result<()> {
        self.disk.link(&self.tmp, &self.target).map_err(|e| link_failed(&self.target, e))?;
        self.disk.mark(sync);
        let parent = layout::parent(&self.target);
        self.disk.sync_dir(parent).map_err(|e| name_unsure(&self.target, e))?;
        self.is_done = true;
        // The store is born, whoever takes this name: an opening may have done so already.
        let _ = self.disk.unlink(&self.tmp);
        Ok(())
    }
}

impl Drop for Newborn {
    fn drop(&mut self) {
        if !self.is_done {
            // Locked still: the name is this file's. Left over, the next creation takes it.
            let _ = self.disk.unlink(&self.tmp);
        }
    }
}

/// Takes away what a crash left of the making of `target`: a second name of it, or a file that
/// nobody has locked and that holds the beginning of a manifest or nothing. Whatever else has that
/// name is not ours.
///
/// # Errors
/// `InUse` while a process makes it; `Exists` for what is not ours; `Io`.
fn clear(disk: &Arc<dyn Disk>, target: &Path) -> Result<()> {
    let tmp = layout::newborn(target);
    let fail = |e| Error::io("clear", tmp.display(), e);
    let Some(meta) = disk.meta(&tmp).map_err(fail)? else { return Ok(()) };
    if meta.kind != EntryKind::File {
        return Err(stranger(&tmp));
    }
    let unlink = || match disk.unlink(&tmp) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(fail(e)),
        _ => Ok(()),
    };
    if identity(disk, target)? == Some(meta.identity) {
        return unlink();
    }
    let file = match disk.open(&tmp, Access::ReadWrite) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(fail(e)),
    };
    let lock = lock_open_file(disk, Arc::clone(&file), Sharing::Exclusive);
    let Some(_held) = lock.map_err(|e| no_locks(&tmp, e))? else { return Err(busy(&tmp)) };
    if !is_begun(&*file).map_err(fail)? {
        return Err(stranger(&tmp));
    }
    match identity(disk, &tmp)? == Some(file.identity().map_err(fail)?) {
        true => unlink(),
        false => Ok(()),
    }
}

/// Whether a file is what a crash may leave of a manifest that was being made.
fn is_begun(file: &dyn File) -> io::Result<bool> {
    let len = file.len()?.min(MAGIC.len() as u64) as usize;
    let mut head = [0; MAGIC.len()];
    read_exact_at(file, &mut head[..len], 0)?;
    let is_torn = head[..len].iter().zip(MAGIC).all(|(byte, magic)| *byte == 0 || *byte == magic);
    Ok(is_torn)
}

fn identity(disk: &Arc<dyn Disk>, path: &Path) -> Result<Option<Identity>> {
    let meta = disk.meta(path).map_err(|e| Error::io("look at", path.display(), e))?;
    Ok(meta.map(|meta| meta.identity))
}

fn busy(tmp: &Path) -> Error {
    Error::new(ErrorKind::InUse, "create", tmp.display(), "another process is making a store there")
}

fn stranger(tmp: &Path) -> Error {
    let cause = "it is in the way, and no part of a store; move it away";
    Error::new(ErrorKind::Exists, "create", tmp.display(), cause)
}

fn no_locks(tmp: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::Unsupported {
        let cause = "this file system gives no locks; a store needs a local one that does";
        return Error::new(ErrorKind::Unsupported, "lock", tmp.display(), cause).with_source(error);
    }
    Error::io("lock", tmp.display(), error)
}
