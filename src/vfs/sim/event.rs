//! What happens to a simulated disk, one event for each call that can change what survives.

use std::sync::Arc;

use super::tree::Inode;
use crate::vfs::step::Step;

/// What a failed sync of a file leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncFailure {
    /// Nothing persisted. The cache keeps the new bytes and takes them for clean, so that a second
    /// sync succeeds without having done anything; an eviction brings the old ones back.
    NothingKept,
    /// A random part persisted; the cache as with `NothingKept`.
    RandomPart,
    /// Nothing persisted, and the cache shows the old bytes again.
    CacheReverted,
    /// Nothing persisted, the cache as with `NothingKept`, and each later sync of the file fails.
    NeverAgain,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The directory.
    pub directory: Inode,
    /// The name in it.
    pub name: Arc<str>,
}

/// One event. Files and directories go by their inode, as names change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Bytes were written.
    Write {
        /// The file.
        inode: Inode,
        /// Where.
        offset: u64,
        /// What.
        bytes: Arc<[u8]>,
    },
    /// A length was set.
    SetLen {
        /// The file.
        inode: Inode,
        /// Its new length.
        len: u64,
    },
    /// A file was synced.
    SyncFile {
        /// The file.
        inode: Inode,
        /// Whether attributes were asked for as well.
        all: bool,
        /// How the sync failed, if it did, and the pick of what persisted all the same.
        failed: Option<(SyncFailure, u32)>,
    },
    /// A file was created.
    Create {
        /// Its name.
        at: Place,
        /// The new file.
        inode: Inode,
    },
    /// A directory was created.
    Mkdir {
        /// Its name.
        at: Place,
        /// The new directory.
        inode: Inode,
    },
    /// A file or directory was renamed.
    Rename {
        /// The name it had.
        from: Place,
        /// The name it has.
        to: Place,
        /// What was renamed.
        inode: Inode,
        /// What had the new name before.
        replaced: Option<Inode>,
    },
    /// A file got a second name.
    Link {
        /// The new name.
        at: Place,
        /// The file.
        inode: Inode,
    },
    /// A name was taken.
    Unlink {
        /// The name.
        at: Place,
        /// The file that had it.
        inode: Inode,
    },
    /// A directory was synced.
    SyncDir {
        /// The directory.
        inode: Inode,
        /// Whether the sync failed: its names stay on their way.
        failed: bool,
    },
    /// A step of a protocol began.
    Mark(Step),
    /// The workload wrote down what it knows, for instance what was acknowledged.
    Note(Arc<[u8]>),
}
