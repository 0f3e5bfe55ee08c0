//! Room: what a full disk leaves to a store that is one file. Pages that were given back lie inside
//! the file, and are room as well, where the file system has blocks under them.
//!
//! ```text
//!   free on the file system
//! + blocks under the file - what its rows take - what redb keeps for itself   [`Room::inside`]
//! ```
//! redb gives a page out again after the commit that follows the one that let go of it: where much
//! goes at once, an empty commit follows at once.

use parking_lot::Mutex;

use crate::error::Result;
use crate::ids::CommitSeq;
use crate::manifest::handle::Manifest;
use crate::manifest::read::Reading;
use crate::manifest::table::Table;

/// Space that a commit may take besides the bytes that it carries.
const COMMIT_BYTES: u64 = 256 << 10;
/// Each commit writes redb's record of free pages anew: 64 KiB for each GiB of file; twice that, since
/// the one before stays meanwhile.
const ALLOCATOR_SHIFT: u32 = 13;
/// What a page of a file takes, with its share of the branches above it.
const PAGE_BYTES: u64 = (64 << 10) + 128;
/// The same for a page of a journal.
const FRAME_BYTES: u64 = (4 << 10) + 128;
/// For so many commits the measure of the small tables is kept.
const COMMITS_KEPT: u64 = 256;
/// A part of what lies inside is in pieces too small to be of use.
const PIECES: u64 = 8;

/// What the small tables took when it was last measured.
#[derive(Debug, Default)]
pub(super) struct Room {
    small: Mutex<Option<(CommitSeq, u64)>>,
}

impl Room {
    /// Space that is to stay when a commit begins.
    pub(super) fn reserve(len: u64) -> u64 {
        COMMIT_BYTES.saturating_add(len >> ALLOCATOR_SHIFT)
    }

    /// Bytes of the file that have no blocks: redb makes it twice as long when it grows. Pages there
    /// may be given out before any that have blocks.
    ///
    /// # Errors
    /// Those of measuring.
    pub(super) fn holes(manifest: &Manifest) -> Result<u64> {
        Ok(manifest.len_bytes()?.saturating_sub(manifest.allocated_bytes()?))
    }

    /// Room inside the file, rather too little than too much. The time follows the small tables once
    /// in so many commits, and never the volume.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn inside(&self, manifest: &Manifest) -> Result<u64> {
        let (len, allocated) = (manifest.len_bytes()?, manifest.allocated_bytes()?);
        let snapshot = manifest.read()?;
        let at = manifest.commit_seq();
        let known = *self.small.lock();
        let small = match known {
            Some((then, bytes)) if at.0.saturating_sub(then.0) < COMMITS_KEPT => bytes,
            _ => {
                let is_small = |table: &&Table| !matches!(table, Table::Pages | Table::Frames);
                let mut bytes = 0u64;
                for table in Table::ALL.iter().filter(is_small) {
                    bytes = bytes.saturating_add(snapshot.table_bytes(*table)?);
                }
                *self.small.lock() = Some((at, bytes));
                bytes
            }
        };
        let pages = snapshot.count(Table::Pages)?.saturating_mul(PAGE_BYTES);
        let frames = snapshot.count(Table::Frames)?.saturating_mul(FRAME_BYTES);
        let taken = pages.saturating_add(frames).saturating_add(small);
        let inside = allocated.min(len).saturating_sub(taken);
        let usable = inside - inside / PIECES;
        Ok(usable.saturating_sub(Self::reserve(len)))
    }
}
