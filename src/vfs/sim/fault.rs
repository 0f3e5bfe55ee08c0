//! Faults: what goes wrong, and at which operation.

use std::io;
use std::path::{Path, PathBuf};

use nix::libc;

use super::event::SyncFailure;
use super::tree::refusal;
use crate::vfs::counts::Operation;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The operation fails with EIO and does nothing. A sync that fails so leaves everything
    /// pending, and a second one works: for the ways in which real syncs fail see
    /// [`SyncFails`](Self::SyncFails).
    Eio,
    /// What needs space fails with ENOSPC: write, length, new name.
    Enospc,
    /// From here on what needs new space fails with ENOSPC, until something frees some.
    EnospcUntilFreed,
    /// A first part is written; the next write to that path fails with EIO.
    ShortWrite,
    /// A first part is read. Nothing is wrong with that.
    ShortRead,
    /// A read or write is interrupted and does nothing. For ever means every other time.
    Eintr,
    /// What needs a descriptor fails with EMFILE.
    Emfile,
    /// A lock that nobody holds is refused.
    LockRefused,
    /// The file system knows no locks.
    LockUnsupported,
    /// The file system gives no file a second name: EPERM, as Linux says it.
    LinkUnsupported,
    /// One bit of what was read is flipped; the disk itself is unharmed.
    BitFlip,
    /// What is read is what was there before the last sync of the file.
    StaleRead,
    /// What is read comes from elsewhere, in this file or another one.
    MisdirectedRead,
    /// A sync of a file fails with EIO and leaves this behind; a sync of a directory fails with
    /// EIO, and its names stay pending.
    SyncFails(SyncFailure),
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::Eio,
        Self::Enospc,
        Self::EnospcUntilFreed,
        Self::ShortWrite,
        Self::ShortRead,
        Self::Eintr,
        Self::Emfile,
        Self::LockRefused,
        Self::LockUnsupported,
        Self::LinkUnsupported,
        Self::BitFlip,
        Self::StaleRead,
        Self::MisdirectedRead,
        Self::SyncFails(SyncFailure::NothingKept),
        Self::SyncFails(SyncFailure::RandomPart),
        Self::SyncFails(SyncFailure::CacheReverted),
        Self::SyncFails(SyncFailure::NeverAgain),
    ];

    /// Whether `operation` can fail so.
    pub fn suits(self, operation: Operation) -> bool {
        use Operation as O;
        match self {
            Self::Eio => {
                !matches!(operation, O::Space | O::LockDir | O::Lock | O::Unlock | O::Evict)
            }
            Self::Enospc => matches!(
                operation,
                O::Create | O::Mkdir | O::Link | O::Rename | O::Write | O::SetLen
            ),
            Self::EnospcUntilFreed => {
                matches!(operation, O::Create | O::Mkdir | O::Write)
            }
            Self::ShortWrite => operation == O::Write,
            Self::Eintr => matches!(operation, O::Read | O::Write),
            Self::Emfile => {
                matches!(operation, O::Open | O::Create | O::List | O::SyncDir | O::LockDir)
            }
            Self::LockRefused | Self::LockUnsupported => {
                matches!(operation, O::Lock | O::LockDir)
            }
            Self::LinkUnsupported => operation == O::Link,
            Self::ShortRead | Self::BitFlip | Self::StaleRead | Self::MisdirectedRead => {
                operation == O::Read
            }
            Self::SyncFails(_) => {
                matches!(operation, O::SyncData | O::SyncAll | O::SyncDir)
            }
        }
    }

    /// The error, where the fault is nothing but one.
    fn error(self) -> Option<io::Error> {
        match self {
            Self::Eio => Some(refusal(libc::EIO)),
            Self::Enospc => Some(refusal(libc::ENOSPC)),
            Self::Eintr => Some(refusal(libc::EINTR)),
            Self::Emfile => Some(refusal(libc::EMFILE)),
            Self::LockUnsupported => Some(refusal(libc::EOPNOTSUPP)),
            Self::LinkUnsupported => Some(refusal(libc::EPERM)),
            _ => None,
        }
    }
}

/// A fault to come: it strikes the first operation that it suits, from number `at` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The first operation that it may strike, counted as
    /// [`SimDisk::operations`](super::SimDisk::operations) does.
    pub at: u64,
    /// What goes wrong.
    pub kind: FaultKind,
    /// Whether it strikes every suitable operation from then on, or one.
    pub forever: bool,
    /// Strikes only paths that contain this; an open file has the path it was opened by.
    pub on: Option<String>,
    /// Strikes only this operation.
    pub only: Option<Operation>,
}

impl Fault {
    /// `kind`, once, at the first suitable operation from number `at` on.
    pub fn new(at: u64, kind: FaultKind) -> Self {
        Self { at, kind, forever: false, on: None, only: None }
    }

    /// The same at every suitable operation from then on.
    #[must_use]
    pub fn forever(self) -> Self {
        Self { forever: true, ..self }
    }

    /// The same, only at paths that contain `part`.
    #[must_use]
    pub fn on(self, part: &str) -> Self {
        Self { on: Some(part.to_owned()), ..self }
    }

    /// The same, only at `operation`.
    #[must_use]
    pub fn only(self, operation: Operation) -> Self {
        Self { only: Some(operation), ..self }
    }
}

/// A fault that struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The number of the operation.
    pub operation: u64,
    /// Which one it was.
    pub what: Operation,
    /// What went wrong.
    pub kind: FaultKind,
    /// Where.
    pub path: PathBuf,
}

/// A fault that an operation is about to meet; it has to say whether it had any effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Twist {
    pub(super) kind: FaultKind,
    at: usize,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    /// An interruption for ever lets every other operation pass.
    resting: bool,
}

/// The faults of a world.
#[derive(Debug, Default)]
pub(super) struct Faults {
    armed: Vec<Armed>,
    fired: Vec<Fired>,
    pub(super) operations: u64,
}

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) {
        self.armed.push(Armed { fault, resting: false });
    }

    pub(super) fn disarm(&mut self) {
        self.armed.clear();
    }

    pub(super) fn fired(&self) -> &[Fired] {
        &self.fired
    }

    /// Counts an operation, and finds the fault it meets.
    ///
    /// # Errors
    /// The fault, where it is nothing but an error.
    pub(super) fn meet(&mut self, what: Operation, path: &Path) -> io::Result<Option<Twist>> {
        self.operations += 1;
        if self.armed.is_empty() {
            return Ok(None);
        }
        let number = self.operations;
        for at in 0..self.armed.len() {
            let armed = &mut self.armed[at];
            let fault = &armed.fault;
            let suits = fault.at <= number
                && fault.kind.suits(what)
                && fault.only.is_none_or(|only| only == what)
                && fault.on.as_ref().is_none_or(|part| path.to_string_lossy().contains(part));
            if !suits {
                continue;
            }
            if std::mem::take(&mut armed.resting) {
                continue;
            }
            let twist = Twist { kind: fault.kind, at };
            return match twist.kind.error() {
                Some(error) => {
                    self.fire(twist, what, path);
                    Err(error)
                }
                None => Ok(Some(twist)),
            };
        }
        Ok(None)
    }

    /// The fault had its effect.
    pub(super) fn fire(&mut self, twist: Twist, what: Operation, path: &Path) {
        let kind = twist.kind;
        let operation = self.operations;
        self.fired.push(Fired { operation, what, kind, path: path.to_owned() });
        let Some(armed) = self.armed.get_mut(twist.at) else { return };
        armed.resting = kind == FaultKind::Eintr;
        if !armed.fault.forever {
            self.armed.remove(twist.at);
        }
    }
}
