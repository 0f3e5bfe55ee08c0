//! A disk, or a file, in front of another one: it passes every call on, but for those that it writes down
//! itself.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::disk::{
    Access, DirectIo, Disk, Entry, File, Held, Identity, LockRange, Meta, Sharing, Space,
};
use super::step::Step;

/// Writes each call twice: passed on by default, and taken for the one that it stands for.
macro_rules! in_front {
    ($(#[$doc:meta])* $around:ident of $of:ident: $(
        $(#[$about:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $out:ty)?;
    )*) => {
        $(#[$doc])*
        pub trait $around: Debug + Send + Sync {
            /// What calls are passed on to.
            fn inner(&self) -> &dyn $of;
            $(
                $(#[$about])*
                fn $name(&self, $($arg: $ty),*) $(-> $out)? {
                    self.inner().$name($($arg),*)
                }
            )*
        }

        impl<T: $around> $of for T {
            $(fn $name(&self, $($arg: $ty),*) $(-> $out)? {
                $around::$name(self, $($arg),*)
            })*
        }
    };
}

in_front! {
    /// A disk in front of another one, and a [`Disk`] by that. Each call does what [`Disk`] says.
    AroundDisk of Disk:
    /// Opens a file.
    fn open(path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// What a path names.
    fn meta(path: &Path) -> io::Result<Option<Meta>>;
    /// Gives a file another name.
    fn rename(from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name.
    fn link(from: &Path, to: &Path) -> io::Result<()>;
    /// Takes a name.
    fn unlink(path: &Path) -> io::Result<()>;
    /// Gives a file permission bits.
    fn set_mode(path: &Path, mode: u32) -> io::Result<()>;
    /// Creates a directory.
    fn mkdir(path: &Path) -> io::Result<()>;
    /// Names in a directory.
    fn list(path: &Path) -> io::Result<Vec<Entry>>;
    /// Makes the names in a directory durable.
    fn sync_dir(path: &Path) -> io::Result<()>;
    /// Space on a file system.
    fn space(path: &Path) -> io::Result<Space>;
    /// Locks a directory.
    fn lock_dir(path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>>;
    /// Whether files may be written directly.
    fn direct_io(path: &Path) -> DirectIo;
    /// The wall clock.
    fn wall_nanos() -> Option<i64>;
    /// The clock that never steps back.
    fn monotonic_nanos() -> u64;
    /// The process that acts.
    fn pid() -> u32;
    /// This boot of the machine.
    fn boot_id() -> String;
    /// The name of the machine.
    fn host() -> String;
    /// Bytes that nobody predicts.
    fn entropy(into: &mut [u8]) -> io::Result<()>;
    /// A step of a protocol begins.
    fn mark(step: Step);
}

in_front! {
    /// A file in front of another one, and a [`File`] by that. Each call does what [`File`] says.
    AroundFile of File:
    /// Its length.
    fn len() -> io::Result<u64>;
    /// Bytes of storage.
    fn allocated() -> io::Result<u64>;
    /// Gives storage.
    fn allocate(offset: u64, len: u64) -> io::Result<bool>;
    /// Who it is.
    fn identity() -> io::Result<Identity>;
    /// Reads.
    fn read_at(into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes.
    fn write_at(from: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts or grows.
    fn set_len(len: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync_data() -> io::Result<()>;
    /// Makes all of it durable.
    fn sync_all() -> io::Result<()>;
    /// Drops cached pages.
    fn evict() -> io::Result<()>;
    /// Drops cached pages of a part.
    fn evict_range(offset: u64, len: u64) -> io::Result<()>;
    /// Takes a lock, or not.
    fn try_lock(range: LockRange, sharing: Sharing) -> io::Result<bool>;
    /// Waits for a lock.
    fn lock(range: LockRange, sharing: Sharing) -> io::Result<()>;
    /// Releases a lock.
    fn unlock(range: LockRange) -> io::Result<()>;
    /// Whether another one holds a lock.
    fn is_locked(range: LockRange) -> io::Result<bool>;
}
