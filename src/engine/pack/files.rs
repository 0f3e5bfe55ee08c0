//! The files of a store that rows name: what is copied, byte for byte.

use std::io;
use std::path::{Path, PathBuf};

use super::run::Job;
use crate::engine::store::Store;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::manifest::{FileRow, FileState, JournalRow, JournalState, Reading};
use crate::vfs::{Access, Disk, File, read_exact_at};

/// Bytes read at a time.
const PIECE_BYTES: u64 = 512 << 10;

/// A file to copy.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Its path below the store.
    pub(super) name: PathBuf,
    /// What of it counts: the whole, or up to the end that a journal's row states.
    pub(super) len: u64,
}

/// Every file that a row of `store` names and that is there.
pub(super) fn items(store: &Store) -> Result<Vec<Item>> {
    let core = store.core();
    let snapshot = core.snapshot()?;
    let none = Path::new("");
    let mut items = Vec::new();
    for ((owner, n), row) in snapshot.list::<JournalRow>(.., usize::MAX)? {
        let name = layout::journal(none, owner, n);
        let Some(len) = len_of(&*core.disk, &core.root.join(&name))? else {
            let cause = "the file is missing although its row stands";
            return Err(Error::damage("pack", name.display(), cause));
        };
        let len = match row.state {
            JournalState::Finished { end } | JournalState::Adopted { end } => end.min(len),
            // P7: with all that does not read.
            JournalState::SetAside { .. } | JournalState::Open => len,
        };
        items.push(Item { name, len });
    }
    let folders = core.manifest.meta().sealed_folders;
    for (_, row) in snapshot.list::<FileRow>(.., usize::MAX)? {
        let name = layout::sealed(none, &row.digest, row.unique, folders);
        match len_of(&*core.disk, &core.root.join(&name))? {
            Some(len) => items.push(Item { name, len }),
            // Its every byte was retired, and it went before its row.
            None if row.state != FileState::Sealed => {}
            None => {
                let cause = "the file is missing although its row stands";
                return Err(Error::damage("pack", name.display(), cause));
            }
        }
    }
    Ok(items)
}

fn len_of(disk: &dyn Disk, path: &Path) -> Result<Option<u64>> {
    let meta = disk.meta(path).map_err(|e| Error::io("pack", path.display(), e))?;
    Ok(meta.map(|meta| meta.len))
}

/// A file of a store, open for reading.
pub(super) struct Opened {
    file: std::sync::Arc<dyn File>,
    path: PathBuf,
}

impl Opened {
    pub(super) fn of(store: &Store, item: &Item) -> Result<Self> {
        let core = store.core();
        let path = core.root.join(&item.name);
        let file = core.disk.open(&path, Access::Read).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Error::damage("pack", path.display(), "the file is missing").with_source(e)
            }
            _ => Error::io("pack", path.display(), e),
        })?;
        Ok(Self { file, path })
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        read_exact_at(&*self.file, into, at).map_err(|e| Error::io("read", self.path.display(), e))
    }
}

/// Reads a file of `store`, and hands each piece to `take`.
pub(super) fn read_whole(
    job: &mut Job<'_>,
    store: &Store,
    item: &Item,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let opened = Opened::of(store, item)?;
    let mut at = 0;
    let mut piece = vec![0; PIECE_BYTES.min(item.len) as usize];
    while at < item.len {
        let part = &mut piece[..PIECE_BYTES.min(item.len - at) as usize];
        opened.read(at, part)?;
        take(at, part)?;
        at += part.len() as u64;
        job.did(part.len() as u64)?;
    }
    Ok(())
}
