//! HEAD on disk: read before the manifest, replaced by rename. It lets an older manifest be known
//! for what it is.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::head::{BYTES, Head};
use crate::format::layout;
use crate::ids::{CommitSeq, StoreId};
use crate::vfs::{Access, Disk, Step, read_whole, write_all_at};

/// Something outside the manifest that knows of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// What it is, for messages.
    pub place: String,
    /// The store that it belongs to.
    pub store: StoreId,
    /// A commit that was durable when it was written.
    pub commit: CommitSeq,
}

/// What HEAD says; `None` when it is not there or cannot be read, which only means no witness.
pub fn read_head(disk: &Arc<dyn Disk>, root: &Path) -> Option<Witness> {
    let head = read_whole_head(disk, root)?;
    Some(Witness { place: layout::HEAD.to_owned(), store: head.store, commit: head.commit })
}

/// All that HEAD says; `None` when it is not there or cannot be read.
pub fn read_whole_head(disk: &Arc<dyn Disk>, root: &Path) -> Option<Head> {
    let path = layout::head(root);
    let file = disk.open(&path, Access::Read).ok()?;
    let bytes = read_whole(&*file, 2 * BYTES as u64).ok()?;
    Head::from_bytes(&bytes, layout::HEAD).ok()
}

/// Replaces HEAD: `commit` is durable.
///
/// # Durability
/// What HEAD holds is durable; that it is the new one is not, until the directory is synced. A
/// crash may leave the HEAD before.
///
/// # Errors
/// `Io` or `DiskFull`; HEAD is then as it was, or new.
pub fn write_head(
    disk: &Arc<dyn Disk>,
    root: &Path,
    store: StoreId,
    commit: CommitSeq,
) -> Result<()> {
    write_head_by(disk, root, &layout::head_next(root), store, commit)
}

/// The same by another temporary name, in the same file system: several processes may write, and
/// HEAD.next would be everybody's.
///
/// # Errors
/// As [`write_head`].
pub fn write_head_by(
    disk: &Arc<dyn Disk>,
    root: &Path,
    next: &Path,
    store: StoreId,
    commit: CommitSeq,
) -> Result<()> {
    replace_head(disk, root, next, &Head { store, commit, quiet_since: commit })
}

/// Replaces HEAD, as [`write_head_by`] does.
///
/// # Durability
/// As there.
///
/// # Errors
/// As there.
pub fn replace_head(disk: &Arc<dyn Disk>, root: &Path, next: &Path, head: &Head) -> Result<()> {
    let place = layout::head(root);
    let fail = |operation| move |e: io::Error| Error::io(operation, layout::HEAD, e);
    disk.mark(Step::HeadWrite);
    let file = match disk.open(next, Access::CreateNew) {
        // A crash left it; what it holds counts for nothing.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            disk.unlink(next).and_then(|()| disk.open(next, Access::CreateNew))
        }
        opened => opened,
    }
    .map_err(fail("create"))?;
    let bytes = head.to_bytes();
    write_all_at(&*file, &bytes, 0).map_err(fail("write"))?;
    file.sync_data().map_err(fail("sync"))?;
    disk.mark(Step::HeadRename);
    disk.rename(next, &place).map_err(fail("rename"))
}
