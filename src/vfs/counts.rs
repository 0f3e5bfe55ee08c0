//! What an observing disk counts.

/// An operation of a disk or of one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Open an existing file.
    Open,
    /// Create a file.
    Create,
    /// Ask what a path names.
    Meta,
    /// Rename.
    Rename,
    /// Give a second name.
    Link,
    /// Take a name.
    Unlink,
    /// Create a directory.
    Mkdir,
    /// List a directory.
    List,
    /// Sync a directory.
    SyncDir,
    /// Ask for space.
    Space,
    /// Lock a directory.
    LockDir,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Set a file's length.
    SetLen,
    /// Sync a file's content and length.
    SyncData,
    /// Sync a file's content, length and attributes.
    SyncAll,
    /// Evict a file's cached pages.
    Evict,
    /// Take a byte-range lock, waiting or not.
    Lock,
    /// Release a byte-range lock.
    Unlock,
}

impl Operation {
    /// Whether it can change what is on the disk. A sync is one: it changes what survives.
    pub fn is_mutating(self) -> bool {
        matches!(
            self,
            Self::Create
                | Self::Rename
                | Self::Link
                | Self::Unlink
                | Self::Mkdir
                | Self::SyncDir
                | Self::Write
                | Self::SetLen
                | Self::SyncData
                | Self::SyncAll
        )
    }
}

/// How often each operation was called, failed calls included, and what is held now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Files opened, created ones not included.
    pub opens: u64,
    /// Files created.
    pub creates: u64,
    /// Questions what a path names.
    pub metas: u64,
    /// Renames.
    pub renames: u64,
    /// Second names given.
    pub links: u64,
    /// Names taken.
    pub unlinks: u64,
    /// Directories created.
    pub mkdirs: u64,
    /// Directories listed.
    pub lists: u64,
    /// Directories synced.
    pub sync_dir: u64,
    /// Questions for space.
    pub spaces: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Lengths set.
    pub set_lens: u64,
    /// Data syncs.
    pub sync_data: u64,
    /// Full syncs.
    pub sync_all: u64,
    /// Evictions.
    pub evicts: u64,
    /// Attempts to take a lock, of a range or of a directory.
    pub locks: u64,
    /// Ranges unlocked.
    pub unlocks: u64,
    /// Bytes that reads returned.
    pub bytes_read: u64,
    /// Bytes that writes took.
    pub bytes_written: u64,
    /// Handles open now, locked directories included.
    pub open_handles: u64,
    /// Locks held now, of ranges and of directories.
    pub locks_held: u64,
}

impl Counts {
    /// Syncs of every kind.
    pub fn syncs(&self) -> u64 {
        self.sync_data + self.sync_all + self.sync_dir
    }

    /// Calls that can change what is on the disk.
    pub fn mutations(&self) -> u64 {
        let names = self.creates + self.renames + self.links + self.unlinks + self.mkdirs;
        names + self.writes + self.set_lens + self.syncs()
    }

    /// What happened since `earlier`; what is held stays as it is now.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            opens: self.opens - earlier.opens,
            creates: self.creates - earlier.creates,
            metas: self.metas - earlier.metas,
            renames: self.renames - earlier.renames,
            links: self.links - earlier.links,
            unlinks: self.unlinks - earlier.unlinks,
            mkdirs: self.mkdirs - earlier.mkdirs,
            lists: self.lists - earlier.lists,
            sync_dir: self.sync_dir - earlier.sync_dir,
            spaces: self.spaces - earlier.spaces,
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            set_lens: self.set_lens - earlier.set_lens,
            sync_data: self.sync_data - earlier.sync_data,
            sync_all: self.sync_all - earlier.sync_all,
            evicts: self.evicts - earlier.evicts,
            locks: self.locks - earlier.locks,
            unlocks: self.unlocks - earlier.unlocks,
            bytes_read: self.bytes_read - earlier.bytes_read,
            bytes_written: self.bytes_written - earlier.bytes_written,
            open_handles: self.open_handles,
            locks_held: self.locks_held,
        }
    }

    /// Counts one call.
    pub(super) fn add(&mut self, operation: Operation) {
        let counter = match operation {
            Operation::Open => &mut self.opens,
            Operation::Create => &mut self.creates,
            Operation::Meta => &mut self.metas,
            Operation::Rename => &mut self.renames,
            Operation::Link => &mut self.links,
            Operation::Unlink => &mut self.unlinks,
            Operation::Mkdir => &mut self.mkdirs,
            Operation::List => &mut self.lists,
            Operation::SyncDir => &mut self.sync_dir,
            Operation::Space => &mut self.spaces,
            Operation::Read => &mut self.reads,
            Operation::Write => &mut self.writes,
            Operation::SetLen => &mut self.set_lens,
            Operation::SyncData => &mut self.sync_data,
            Operation::SyncAll => &mut self.sync_all,
            Operation::Evict => &mut self.evicts,
            Operation::LockDir | Operation::Lock => &mut self.locks,
            Operation::Unlock => &mut self.unlocks,
        };
        *counter += 1;
    }
}
