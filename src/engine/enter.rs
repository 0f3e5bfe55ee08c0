//! Enter: who may write, and the locks that an opening takes before it looks at anything.
//!
//! ```text
//!   Single:  the directory, alone ------------------------------------------> until it ends
//!   Shared:  the directory, with others ------------------------------------> until it ends
//!            owners/, alone --- [gate] ---> opened, recovered, swept
//! ```
//! One process opens at a time: beside it no owner comes into being, so what belongs to none may be
//! swept.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::open::manifest_options;
use super::options::Options;
use super::owner::holders;
use super::single::{self, Layout};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::vfs::{Disk, Held, Sharing, Step};

/// Who may write into a store while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum WriteAccess {
    /// This process alone; others may read.
    #[default]
    Single,
    /// Any number of processes that all ask for it. Each stream is written by the one that claimed
    /// it.
    Shared,
}

impl WriteAccess {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Shared => "shared",
        }
    }
}

/// How long an opening waits for another one that is under way: it takes milliseconds.
pub(super) const OPENING_MILLIS_MAX: u64 = 10_000;

/// How long one look at a store in use waits for the next.
const STEP_MILLIS: u64 = 5;

/// Waits in small steps, up to a bound.
#[derive(Debug)]
pub(super) struct Patience {
    waited: u64,
    most: u64,
}

impl Patience {
    pub(super) fn new(millis: u64) -> Self {
        Self { waited: 0, most: millis }
    }

    /// Waits once more; whether there was patience left.
    pub(super) fn once(&mut self) -> bool {
        if self.waited >= self.most {
            return false;
        }
        let step = STEP_MILLIS.min(self.most - self.waited);
        std::thread::sleep(Duration::from_millis(step));
        self.waited += step;
        true
    }
}

fn lock_once(
    disk: &Arc<dyn Disk>,
    path: &Path,
    sharing: Sharing,
    access: WriteAccess,
) -> Result<Option<Box<dyn Held>>> {
    told(disk.lock_dir(path, sharing), path, access)
}

fn told<T>(locked: io::Result<T>, path: &Path, access: WriteAccess) -> Result<T> {
    locked.map_err(|e| {
        if e.kind() == io::ErrorKind::Unsupported {
            return no_locks(path, access).with_source(e);
        }
        Error::io("lock", path.display(), e)
    })
}

/// What is said where locks do not work.
pub(super) fn no_locks(path: &Path, access: WriteAccess) -> Error {
    let cause = match access {
        WriteAccess::Single => {
            "this file system gives no locks; a store needs a local one that does"
        }
        WriteAccess::Shared => {
            "the locks of this file system do not keep processes apart; open it for single access \
             from one process, or move it to a local file system"
        }
    };
    Error::new(ErrorKind::Unsupported, "lock", path.display(), cause)
}

/// The store's own lock: ends with the process.
pub(super) fn lock(disk: &Arc<dyn Disk>, root: &Path, options: &Options) -> Result<Box<dyn Held>> {
    disk.mark(Step::OpenLock);
    let mut patience = Patience::new(options.wait_millis);
    // Who creates the store holds it alone for a moment.
    let mut more = Patience::new(match options.access {
        WriteAccess::Single => 0,
        WriteAccess::Shared => OPENING_MILLIS_MAX,
    });
    loop {
        let held = match options.access {
            WriteAccess::Single => told(single::try_lock(disk, root), root, options.access)?,
            WriteAccess::Shared => lock_once(disk, root, Sharing::Shared, options.access)?,
        };
        if let Some(held) = held {
            return Ok(held);
        }
        if patience.once() {
            continue;
        }
        let holders = match single::layout_of(disk, root)? {
            Layout::Directory => holders(disk, root),
            Layout::SingleFile => {
                let how = manifest_options(options, Vec::new());
                single::holder(disk, root, &how).into_iter().collect()
            }
        };
        if !holders.is_empty() || !more.once() {
            return Err(in_use(root, &holders, options.access));
        }
    }
}

fn in_use(root: &Path, holders: &[String], wanted: WriteAccess) -> Error {
    let cause = match (holders, wanted) {
        ([], _) => "another process holds it".to_owned(),
        (holders, WriteAccess::Single) => format!("{} holds it", holders.join(", ")),
        (holders, WriteAccess::Shared) => {
            format!("{} holds it and admits no other writer", holders.join(", "))
        }
    };
    Error::new(ErrorKind::InUse, "open", root.display(), cause)
}

/// Locks the directory of a store that is to be born, alone. `is_born` ends the wait.
pub(super) fn lock_birthplace(
    disk: &Arc<dyn Disk>,
    root: &Path,
    options: &Options,
    is_born: &dyn Fn() -> Result<bool>,
) -> Result<Box<dyn Held>> {
    if options.access == WriteAccess::Single {
        return lock(disk, root, options);
    }
    disk.mark(Step::OpenLock);
    let mut patience = Patience::new(options.wait_millis.max(OPENING_MILLIS_MAX));
    loop {
        if is_born()? {
            let cause = "a store is there already, and was left as it is";
            return Err(Error::new(ErrorKind::Exists, "create", root.display(), cause));
        }
        if let Some(held) = lock_once(disk, root, Sharing::Exclusive, options.access)? {
            return Ok(held);
        }
        if !patience.once() {
            return Err(in_use(root, &holders(disk, root), WriteAccess::Single));
        }
    }
}

/// One opening at a time, where several processes write. Nothing to hold where one does.
pub(super) fn gate(
    disk: &Arc<dyn Disk>,
    root: &Path,
    options: &Options,
) -> Result<Option<Box<dyn Held>>> {
    if options.access == WriteAccess::Single {
        return Ok(None);
    }
    let dir = layout::owners_dir(root);
    let fail = |e| Error::io("open", dir.display(), e);
    if disk.meta(&dir).map_err(fail)?.is_none() {
        match disk.mkdir(&dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
            _ => {}
        }
    }
    let mut patience = Patience::new(options.wait_millis.max(OPENING_MILLIS_MAX));
    let held = loop {
        if let Some(held) = lock_once(disk, &dir, Sharing::Exclusive, options.access)? {
            break held;
        }
        if !patience.once() {
            let cause = format!(
                "another process began to open it and did not finish for {} s; it may be suspended",
                OPENING_MILLIS_MAX / 1000
            );
            return Err(Error::new(ErrorKind::InUse, "open", root.display(), cause));
        }
    };
    // A lock that a second handle gets as well keeps nobody away.
    match lock_once(disk, &dir, Sharing::Exclusive, options.access)? {
        None => Ok(Some(held)),
        Some(_) => Err(no_locks(&dir, options.access)),
    }
}
