//! Copies files into the target: under a temporary name, synced, then by rename to their own.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::run::Job;
use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::{HEADER_BYTES, Header};
use crate::format::layout;
use crate::ids::{CommitSeq, OwnerId};
use crate::manifest::{FileRow, JournalRow, JournalState};
use crate::vfs::{Access, File, Step, read_exact_at, write_all_at};

/// Bytes read and written at a time.
const PIECE_BYTES: u64 = 1 << 20;

impl Job<'_, '_> {
    /// Copies a sealed file unless one of its name and length is there. Returns whether it did.
    pub(super) fn copy_file(&mut self, row: &FileRow) -> Result<bool> {
        let folders = self.target.folders;
        let to = layout::sealed(&self.target.root, &row.digest, row.unique, folders);
        let there =
            self.target.disk.meta(&to).map_err(|e| Error::io("look at", to.display(), e))?;
        if there.is_some_and(|meta| meta.len == row.len) {
            return Ok(false);
        }
        self.copy_file_anew(row)?;
        Ok(true)
    }

    /// Copies a sealed file, whatever has its name in the target.
    pub(super) fn copy_file_anew(&mut self, row: &FileRow) -> Result<()> {
        let folders = self.target.folders;
        let from = layout::sealed(&self.core.root, &row.digest, row.unique, folders);
        let to = layout::sealed(&self.target.root, &row.digest, row.unique, folders);
        let source = self.open_source(&from)?;
        let len = source.len().map_err(|e| Error::io("read", from.display(), e))?;
        if len != row.len {
            let cause = format!("it has {len} bytes, its row says {}", row.len);
            return Err(Error::damage("back up", from.display(), cause));
        }
        self.target.disk.mark(Step::BackupCopy);
        self.copy_bytes(&*source, &from, &to, row.len, None)
    }

    fn open_source(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.core.disk.open(path, Access::Read).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Error::damage("back up", path.display(), "the file is missing")
            }
            _ => Error::io("open", path.display(), e),
        })
    }

    /// Copies the first `len` bytes, beginning with `head` where that is given instead.
    fn copy_bytes(
        &mut self,
        source: &dyn File,
        from: &Path,
        to: &Path,
        len: u64,
        head: Option<&[u8]>,
    ) -> Result<()> {
        let tmp = self.target.tmp()?;
        let copied = self.write(source, from, &tmp, len, head).and_then(|()| {
            self.target.disk.mark(Step::BackupPlace);
            let renamed = self.target.disk.rename(&tmp, to);
            renamed.map_err(|e| Error::io("rename", to.display(), e))
        });
        if copied.is_err() {
            let _ = self.target.disk.unlink(&tmp);
        }
        copied
    }

    fn write(
        &mut self,
        source: &dyn File,
        from: &Path,
        tmp: &Path,
        len: u64,
        head: Option<&[u8]>,
    ) -> Result<()> {
        let fail = |operation| move |e| Error::io(operation, tmp.display(), e);
        let file = self.target.disk.open(tmp, Access::CreateNew).map_err(fail("create"))?;
        let mut piece = vec![0; PIECE_BYTES.min(len) as usize];
        let mut at = 0;
        while at < len {
            let part = &mut piece[..PIECE_BYTES.min(len - at) as usize];
            read_exact_at(source, part, at).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Error::damage("back up", from.display(), format!("it ends before byte {len}"))
                }
                _ => Error::io("read", from.display(), e),
            })?;
            if let Some(head) = head.filter(|_| at == 0) {
                part[..head.len()].copy_from_slice(head);
            }
            write_all_at(&*file, part, at).map_err(fail("write"))?;
            at += part.len() as u64;
            self.did(part.len() as u64)?;
        }
        file.sync_data().map_err(fail("sync"))
    }

    /// Copies a journal up to the end that its row in the copy states.
    pub(super) fn copy_journal(&mut self, key: (OwnerId, u64), row: &JournalRow) -> Result<()> {
        let from = layout::journal(&self.core.root, key.0, key.1);
        let to = layout::journal(&self.target.root, key.0, key.1);
        let source = self.open_source(&from)?;
        let len = match row.state {
            JournalState::Finished { end } | JournalState::Adopted { end } => end,
            // P7: what does not read is kept with all its bytes.
            JournalState::SetAside { .. } | JournalState::Open => {
                source.len().map_err(|e| Error::io("read", from.display(), e))?
            }
        };
        let head = head_of(&*source, &from)?;
        if self.is_there(&*source, &to, len, head.as_deref())? {
            return Ok(());
        }
        self.target.disk.mark(Step::BackupCopy);
        self.copy_bytes(&*source, &from, &to, len, head.as_deref())?;
        self.done.bytes_copied += len;
        Ok(())
    }

    /// Whether the target has a journal that begins with the first `len` bytes.
    ///
    /// An earlier backup may name a shorter one: until the switch it must find there what it named,
    /// so only a file that goes on where that one ended may take its place.
    fn is_there(
        &self,
        source: &dyn File,
        to: &Path,
        len: u64,
        head: Option<&[u8]>,
    ) -> Result<bool> {
        let fail = |e| Error::io("read", to.display(), e);
        let earlier = match self.target.disk.open(to, Access::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(fail(e)),
        };
        let both = earlier.len().map_err(fail)?.min(len);
        let (mut ours, mut theirs) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        let mut at = 0;
        while at < both {
            let part = (both - at).min(ours.len() as u64) as usize;
            read_exact_at(source, &mut ours[..part], at).map_err(fail)?;
            read_exact_at(&*earlier, &mut theirs[..part], at).map_err(fail)?;
            if let Some(head) = head.filter(|head| at == 0 && head.len() <= part) {
                ours[..head.len()].copy_from_slice(head);
            }
            if ours[..part] != theirs[..part] {
                let cause = "the earlier backup has another journal of this name than the store; \
                             back up to a new place";
                return Err(Error::new(ErrorKind::Conflict, "back up", to.display(), cause));
            }
            at += part as u64;
        }
        Ok(both == len)
    }

    /// Makes the names of all that was copied, or found, durable.
    pub(super) fn sync_names(&self, folders: &BTreeSet<u16>) -> Result<()> {
        let sealed = folders.iter().map(|folder| layout::sealed_folder(&self.target.root, *folder));
        for dir in sealed.chain([layout::journal_dir(&self.target.root)]) {
            let synced = self.target.disk.sync_dir(&dir);
            synced.map_err(|e| Error::io("sync", dir.display(), e))?;
        }
        Ok(())
    }
}

/// The header of a journal as the copy has it: no witness, for the earlier backup has not come so
/// far. `None` where it does not read.
fn head_of(source: &dyn File, path: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = [0; HEADER_BYTES];
    match read_exact_at(source, &mut bytes, 0) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(Error::io("read", path.display(), e)),
    }
    let header = Header::decode(&bytes).ok();
    Ok(header.map(|header| Header { commit: CommitSeq(0), ..header }.encode().to_vec()))
}
