//! How a journal file comes to be. Its row is committed when its name and header are durable, and
//! the first acknowledgement comes after that: a row without its file is damage, a file without a
//! row is rubbish, and neither happens by a crash.

use crate::error::Result;
use crate::format::frame::{HEADER_BYTES, Header, Salt};
use crate::format::layout;
use crate::ids::{Generation, Sequence, StreamId};
use crate::protection::Protection;
use crate::vfs::{Access, File, Step, write_all_at};

use super::append::JournalConfig;
use super::open_file::{Failure, OpenFile, fill_with_zeros};

/// Who keeps the rows of journal files.
///
/// Both calls come from whichever thread leads, with no lock of the journal held, and come again
/// with the same arguments after an error: they must be idempotent. They may not wait for the
/// journal, which waits for them.
pub trait Registrar: Send + Sync {
    /// Commits the row of file `n`. Its name and its header are durable.
    ///
    /// # Errors
    /// Any: nothing is acknowledged, and the frames stay queued.
    fn born(&self, n: u64, salt: Salt) -> Result<()>;

    /// File `n` is durable up to `end` and gets no further frame; `first` is the lowest sequence of
    /// each stream and generation in it.
    ///
    /// # Errors
    /// Any: no later file is begun before it succeeds.
    fn finished(&self, n: u64, end: u64, first: &[(StreamId, Generation, Sequence)]) -> Result<()>;
}

/// Makes file `n`, up to where its row may be committed.
pub(super) fn create(config: &JournalConfig, n: u64) -> Result<OpenFile, Failure> {
    let path = layout::journal(&config.root, config.owner, n);
    let mut salt = Salt::default();
    let entropy = config.disk.entropy(&mut salt);
    entropy.map_err(|e| Failure::again("draw a salt for", &path, e))?;
    config.disk.mark(Step::JournalCreate);
    let file = config.disk.open(&path, Access::CreateNew);
    let file = file.map_err(|e| Failure::again("create", &path, e))?;
    let header = Header {
        store: config.store,
        owner: config.owner,
        salt,
        epoch: config.epoch,
        n,
        commit: (config.commit)(),
    };
    match fill(config, &*file, &header, &path) {
        Ok(prewritten) => Ok(OpenFile::new(n, path, file, salt, prewritten)),
        Err(failure) => {
            // No row names it, and a sweep would find it: this only spares a full disk the wait.
            drop(file);
            if !failure.is_fatal() {
                let _ = config.disk.unlink(&path);
            }
            Err(failure)
        }
    }
}

/// Writes header and zeros, then syncs the file and its name. Returns how far zeros were written.
fn fill(
    config: &JournalConfig,
    file: &dyn File,
    header: &Header,
    path: &std::path::Path,
) -> Result<u64, Failure> {
    write_all_at(file, &header.encode(), 0).map_err(|e| Failure::again("write", path, e))?;
    let start = HEADER_BYTES as u64;
    let limits = &config.limits;
    let end = limits.journal_prewrite_bytes.min(limits.journal_file_bytes).max(start);
    config.disk.mark(Step::JournalPrewrite);
    // Zeros are for speed alone: on a full disk the frames themselves may still find room.
    let prewritten = if fill_with_zeros(file, start, end).is_ok() { end } else { start };
    config.disk.mark(Step::JournalSyncDir);
    file.sync_data().map_err(|e| Failure::of_sync("sync", path, e))?;
    if Protection::JournalDirectorySync.is_on() {
        let dir = layout::journal_dir(&config.root);
        config.disk.sync_dir(&dir).map_err(|e| Failure::of_sync("sync", &dir, e))?;
    }
    Ok(prewritten)
}
