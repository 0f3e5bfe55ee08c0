//! The switch that stops a handle (P8), the check that it is not in a forked child, and the guard
//! around every call of redb: whatever redb answers, even a panic, comes out as a typed error.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, ErrorKind, Result};
use crate::vfs::Disk;

/// Shared by a handle, its snapshots, and the backend under its redb.
#[derive(Debug)]
pub(super) struct Halt {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    pid: u32,
    cause: OnceLock<Error>,
    frozen: AtomicBool,
}

impl Halt {
    pub(super) fn new(disk: &Arc<dyn Disk>, path: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            disk: disk.clone(),
            path,
            pid: disk.pid(),
            cause: OnceLock::new(),
            frozen: AtomicBool::new(false),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The first failure, if there was one.
    pub(super) fn cause(&self) -> Option<Error> {
        self.cause.get().cloned()
    }

    /// Stops everything from here on; the first cause stays.
    pub(super) fn halt(&self, error: Error) -> Error {
        let _ = self.cause.set(error.clone());
        error
    }

    /// From here on not a byte is written, though nothing failed.
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::Release);
    }

    fn forked(&self, operation: &'static str) -> Result<()> {
        // G18: a forked child shares the parent's file and locks, but not its knowledge.
        if self.disk.pid() == self.pid {
            return Ok(());
        }
        let cause = "the handle was carried into a forked child; open the store there";
        Err(Error::new(ErrorKind::Forked, operation, self.path.display(), cause))
    }

    /// Whether `operation` may begin.
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        self.forked(operation)?;
        match self.cause.get() {
            // P8: the first cause is told to every later caller.
            Some(cause) => Err(cause.clone().as_kind(ErrorKind::Halted)),
            None => Ok(()),
        }
    }

    /// Whether the backend may look at the file.
    pub(super) fn may_read(&self) -> io::Result<()> {
        self.forked("read").map_err(io::Error::other)
    }

    /// Whether the backend may change the file.
    pub(super) fn may_write(&self) -> io::Result<()> {
        if self.frozen.load(Ordering::Acquire) {
            let cause = "nothing may be written any more";
            let frozen = Error::new(ErrorKind::Closed, "write", self.path.display(), cause);
            return Err(io::Error::other(frozen));
        }
        // P8: after a failure this opening never writes to the file again.
        self.check("write").map_err(io::Error::other)
    }

    /// Calls redb. Any error, and any panic, halts the handle.
    pub(super) fn guard<T, E>(
        &self,
        operation: &'static str,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T>
    where
        redb::Error: From<E>,
    {
        match catch(call) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.halt(from_redb(operation, &self.path, error.into()))),
            Err(panic) => Err(self.halt(from_panic(operation, &self.path, &panic))),
        }
    }
}

/// Runs `call`; a panic comes back as its message.
pub(super) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("no message").to_owned()
    })
}

/// Drops what redb may panic on.
pub(super) fn drop_quietly<T>(value: T) {
    let _ = catch(|| drop(value));
}

/// A panic inside redb: the bytes led it where it never meant to be.
pub(super) fn from_panic(operation: &'static str, path: &Path, panic: &str) -> Error {
    Error::damage(
        operation,
        path.display(),
        format!("redb met bytes it cannot have written ({panic})"),
    )
}

/// An error of the disk as it went through redb.
pub(super) fn from_io(operation: &'static str, path: &Path, error: io::Error) -> Error {
    if let Some(ours) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return ours.clone();
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::damage(operation, path.display(), "it is truncated: a page lies behind its end")
        }
        io::ErrorKind::InvalidData => {
            Error::damage(operation, path.display(), "it is not a redb file").with_source(error)
        }
        io::ErrorKind::Unsupported => {
            let cause =
                "the file system has no byte-range locks; a store needs a local one that has";
            Error::new(ErrorKind::Unsupported, operation, path.display(), cause).with_source(error)
        }
        _ => Error::io(operation, path.display(), error),
    }
}

/// An error of redb as one of ours.
pub(super) fn from_redb(operation: &'static str, path: &Path, error: redb::Error) -> Error {
    let place = path.display();
    match error {
        redb::Error::Io(error) => from_io(operation, path, error),
        redb::Error::DatabaseAlreadyOpen => {
            Error::new(ErrorKind::InUse, operation, place, "another process has it open")
        }
        redb::Error::LockProtocolMismatch => {
            let cause = "a process with another release's lock protocol has it open";
            Error::new(ErrorKind::InUse, operation, place, cause)
        }
        redb::Error::UpgradeRequired(version) => {
            let cause = format!("redb's file format {version} is not the one of this release");
            Error::new(ErrorKind::NewerFormat, operation, place, cause)
        }
        redb::Error::Unsupported => {
            let cause = "the file system lacks the locks that redb needs; put it on a local one";
            Error::new(ErrorKind::Unsupported, operation, place, cause)
        }
        redb::Error::DatabaseClosed => {
            Error::new(ErrorKind::Closed, operation, place, "the manifest was closed")
        }
        redb::Error::PreviousIo => {
            Error::new(ErrorKind::Io, operation, place, "the disk failed earlier")
        }
        redb::Error::ValueTooLarge(bytes) => {
            let cause = format!("a value of {bytes} bytes is too large for redb");
            Error::new(ErrorKind::LimitExceeded, operation, place, cause)
        }
        other => Error::damage(operation, place, format!("redb: {other}")),
    }
}
