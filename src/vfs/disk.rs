//! The trait through which every byte and name reaches storage, and through which the store sees
//! the world around it: clocks, process, entropy. There is no way to truncate on open.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::step::Step;

/// How a file is opened. Nothing opens existing bytes with truncation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A file that must not exist yet, mode 0600.
    CreateNew,
    /// As `CreateNew`, for one large sequential write: direct I/O where the file system allows it,
    /// buffered elsewhere. Aligned writes from an [`AlignedBuffer`](super::AlignedBuffer) go
    /// direct; any other write is accepted and buffered.
    CreateNewDirect,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else, symbolic links included: never ours.
    Other,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, as UTF-8; a name that is not UTF-8 is reported lossily and is never ours.
    pub name: String,
    /// What it names.
    pub kind: EntryKind,
}

/// What a path names, without opening it. Symbolic links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: EntryKind,
    /// Length in bytes.
    pub len: u64,
    /// Permission bits, where the platform has them; 0 elsewhere.
    pub mode: u32,
    /// Who it is.
    pub identity: Identity,
}

/// Who a file is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// Space on the file system that holds a path, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What an unprivileged process may still use.
    pub free: u64,
    /// The whole.
    pub total: u64,
}

/// Whether others may hold the same lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// With other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// A range of bytes to lock: from `start` up to `end`, exclusive; `None` reaches past every offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockRange {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: Option<u64>,
}

impl LockRange {
    /// Every byte a file has or may ever have.
    pub const WHOLE: Self = Self { start: 0, end: None };
}

/// Whether large sequential writes bypass the page cache in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectIo {
    /// They do.
    Direct,
    /// They do not, for this reason.
    Buffered(String),
}

/// An open file. A handle owns the locks it takes; they end with it.
pub trait File: Debug + Send + Sync {
    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether it has no byte.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Bytes of storage that it takes: a hole takes none. About, where the platform cannot tell.
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
    /// Gives storage to the `len` bytes from `offset` on where they have none, and changes no byte:
    /// writing there needs no space any more. `false` where the file system cannot promise that.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        let _ = (offset, len);
        Ok(false)
    }
    /// Who it is; fails once the file has been removed only where the platform says so.
    fn identity(&self) -> io::Result<Identity>;
    /// Reads at `offset`; may be short, 0 at the end.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at `offset`; may be short.
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts or grows with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes content, length and attributes durable.
    fn sync_all(&self) -> io::Result<()>;
    /// Drops clean cached pages, so that the next read comes from the medium.
    fn evict(&self) -> io::Result<()>;
    /// The same for a part of the file; more may be dropped.
    fn evict_range(&self, offset: u64, len: u64) -> io::Result<()> {
        let _ = (offset, len);
        self.evict()
    }
    /// Takes a lock if nobody else holds a conflicting one.
    fn try_lock(&self, range: LockRange, sharing: Sharing) -> io::Result<bool>;
    /// Waits for a lock.
    fn lock(&self, range: LockRange, sharing: Sharing) -> io::Result<()>;
    /// Releases exactly `range`.
    fn unlock(&self, range: LockRange) -> io::Result<()>;
    /// Whether an exclusive lock over `range` would conflict with a lock of another handle.
    fn is_locked(&self, range: LockRange) -> io::Result<bool>;
}

/// A lock that ends when this is dropped, or when its process dies.
pub trait Held: Debug + Send + Sync {}

/// The one door to storage.
///
/// Paths are used as given. An operation that returned is visible at once and durable only after
/// the sync that covers it: `sync_data` or `sync_all` of the file, `sync_dir` of the directory
/// that holds the name.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// What `path` names, or `None`.
    fn meta(&self, path: &Path) -> io::Result<Option<Meta>>;
    /// Gives `from` the name `to`, replacing a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives the file `from` a second name; fails with `AlreadyExists` rather than replace.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes the name `path` from its file.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Gives a file these permission bits, where the platform has them. Does nothing elsewhere.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let _ = (path, mode);
        Ok(())
    }
    /// Creates one directory, mode 0700.
    fn mkdir(&self, path: &Path) -> io::Result<()>;
    /// Every name in a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Space on the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// Locks a directory against other processes and other handles; `None` when another holds it.
    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>>;
    /// Whether `CreateNewDirect` in this directory writes directly.
    fn direct_io(&self, path: &Path) -> DirectIo;

    /// Wall-clock nanoseconds since 1970; `None` where the clock cannot be represented.
    fn wall_nanos(&self) -> Option<i64>;
    /// Nanoseconds of a clock that never steps back.
    fn monotonic_nanos(&self) -> u64;
    /// The process that acts now (a forked child differs from its parent).
    fn pid(&self) -> u32;
    /// Names this boot of this machine; empty where unknown.
    fn boot_id(&self) -> String;
    /// The name of this machine; empty where unknown.
    fn host(&self) -> String;
    /// Fills `into` with unpredictable bytes.
    fn entropy(&self, into: &mut [u8]) -> io::Result<()>;

    /// Tells an observing disk that a step of a protocol begins. Does nothing elsewhere.
    fn mark(&self, step: Step) {
        let _ = step;
    }
}

/// The range as a kernel's signed start and length, 0 for a length without end.
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
pub(super) fn signed_range(range: LockRange) -> io::Result<(i64, i64)> {
    let refuse = || io::Error::new(io::ErrorKind::InvalidInput, "an empty or too distant range");
    let start = i64::try_from(range.start).map_err(|_| refuse())?;
    let Some(end) = range.end else {
        return Ok((start, 0));
    };
    let last = end.checked_sub(1).filter(|last| *last >= range.start).ok_or_else(refuse)?;
    let last = i64::try_from(last).map_err(|_| refuse())?;
    // A range over all 2^63 bytes has a length that does not fit, but no end to speak of either.
    Ok((start, (last - start).checked_add(1).unwrap_or(0)))
}
