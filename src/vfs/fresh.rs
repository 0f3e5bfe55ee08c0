//! A file whose every byte is first read from the medium: cached pages are dropped where they are
//! about to be read for the first time.
//!
//! After a write error the page cache can hold what the disk does not. Dropping all of a large
//! file's pages at once costs more than the few pages that an opening reads.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::disk::{File, Identity, LockRange, Sharing};

/// Pages are dropped in pieces of this length.
const PIECE_BYTES: u64 = 64 << 10;

/// Reads through to the medium, once for each piece. The file must be synced before.
#[derive(Debug)]
pub struct FreshFile {
    file: Arc<dyn File>,
    seen: Mutex<HashSet<u64>>,
}

impl FreshFile {
    /// Wraps `file`, none of whose cached pages is trusted.
    pub fn new(file: Arc<dyn File>) -> Self {
        Self { file, seen: Mutex::new(HashSet::new()) }
    }
}

impl File for FreshFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.file.allocate(offset, len)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.file.identity()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(into.len() as u64);
        for piece in offset / PIECE_BYTES..end.div_ceil(PIECE_BYTES) {
            // Noted only once dropped: a failed attempt is made again.
            if !self.seen.lock().contains(&piece) {
                self.file.evict_range(piece * PIECE_BYTES, PIECE_BYTES)?;
                self.seen.lock().insert(piece);
            }
        }
        self.file.read_at(into, offset)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn evict(&self) -> io::Result<()> {
        self.file.evict()
    }

    fn evict_range(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.evict_range(offset, len)
    }

    fn try_lock(&self, range: LockRange, sharing: Sharing) -> io::Result<bool> {
        self.file.try_lock(range, sharing)
    }

    fn lock(&self, range: LockRange, sharing: Sharing) -> io::Result<()> {
        self.file.lock(range, sharing)
    }

    fn unlock(&self, range: LockRange) -> io::Result<()> {
        self.file.unlock(range)
    }

    fn is_locked(&self, range: LockRange) -> io::Result<bool> {
        self.file.is_locked(range)
    }
}
