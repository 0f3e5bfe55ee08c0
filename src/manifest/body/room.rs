//! Room: what a full disk leaves to a store that is one file. Every page inside the file has storage
//! under it, and free pages are kept there: what gives space back commits into them when the disk
//! has not a byte left. (G16)
//!
//! ```text
//!   storage under the file - what its rows take - what redb keeps for itself   [`Room::inside`]
//!   too little --> the file is given more, with storage [`Manifest::refit`] --> or `DiskFull`
//! ```
//! redb gives a page out again after the commit that follows the one that let go of it: where much
//! goes at once, an empty commit follows at once.

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::ids::CommitSeq;
use crate::manifest::handle::Manifest;
use crate::manifest::read::Reading;
use crate::manifest::refit::{Behind, Refitted};
use crate::manifest::table::Table;
use crate::protection::Protection;

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
/// Bytes of a file without storage that are a matter of measuring.
const HOLES_MAX: u64 = 16 << 10;
/// What a file is given at once, where there is plenty.
const STEP_BYTES: (u64, u64) = (1 << 20, 1 << 30);
/// What is left to the file system, for its own books.
const LEFT_BYTES: u64 = 64 << 10;

/// What is free inside, as it was last measured.
#[derive(Debug, Default)]
pub(super) struct Room {
    small: Mutex<Option<(CommitSeq, u64)>>,
    /// Bytes inside, and what redb had written by then: it takes no page that it does not write.
    known: Mutex<Option<(u64, u64)>>,
}

/// Space that is to stay when a commit begins.
fn reserve(len: u64) -> u64 {
    COMMIT_BYTES.saturating_add(len >> ALLOCATOR_SHIFT)
}

/// Free pages that a closed file keeps at its end: the next opening commits into them.
pub(in crate::manifest) fn spare_bytes(len: u64) -> u64 {
    reserve(len).saturating_mul(2)
}

impl Room {
    /// Whether `wanted` bytes find room inside the file, for which it is given more where the disk
    /// has any. Where that cannot be now, what the disk has left counts.
    ///
    /// # Errors
    /// Those of measuring, and of giving the file another length.
    pub(super) fn find(&self, manifest: &Manifest, wanted: u64) -> Result<bool> {
        if !Protection::RoomAhead.is_on() {
            // What redb may do by itself: where the file has holes, what is inside does not count.
            let (free, holes) = (free(manifest)?, holes(manifest)?);
            let inside = if holes <= free { self.inside(manifest)? } else { 0 };
            return Ok(free.saturating_add(inside) >= wanted);
        }
        if let Some((inside, then)) = *self.known.lock()
            && inside.saturating_sub(manifest.passing().written() - then) >= wanted
        {
            return Ok(true);
        }
        if holes(manifest)? <= HOLES_MAX && self.measured(manifest)? >= wanted {
            return Ok(true);
        }
        let (free, inside) = (free(manifest)?, self.inside(manifest)?);
        let len = manifest.len_bytes()?;
        let has_room = free.saturating_add(inside) >= wanted.saturating_add(LEFT_BYTES);
        if !has_room {
            return Ok(false);
        }
        let refitted = manifest.refit(|behind| step(behind, len, wanted.saturating_sub(inside)))?;
        if matches!(refitted, Refitted::To(_))
            && self.measured(manifest)? >= wanted
            && is_backed(manifest)?
        {
            return Ok(true);
        }
        // As long as somebody reads, and where many short rows are taken for long ones, redb may let
        // the file grow if the disk has what that takes.
        let (len, holes) = (manifest.len_bytes()?, holes(manifest)?);
        let wanted = wanted.saturating_add(reserve(len)).saturating_add(holes);
        Ok(self::free(manifest)? >= wanted)
    }

    /// See [`BodyDisk::settle_room`](super::BodyDisk::settle_room).
    pub(super) fn settle(&self, manifest: &Manifest) -> Result<()> {
        let (len, holes) = (manifest.len_bytes()?, holes(manifest)?);
        if holes > HOLES_MAX {
            let keep = spare_bytes(len);
            let refitted = manifest.refit(|Behind { free, had }| {
                had.min(free / 2).max(keep).min(free.saturating_sub(LEFT_BYTES))
            })?;
            if refitted == Refitted::Busy {
                return Ok(());
            }
        }
        self.measured(manifest).map(drop)
    }

    /// Measures what lies inside, and remembers it.
    fn measured(&self, manifest: &Manifest) -> Result<u64> {
        let written = manifest.passing().written();
        let inside = self.inside(manifest)?;
        *self.known.lock() = Some((inside, written));
        Ok(inside)
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
        Ok(usable.saturating_sub(reserve(len)))
    }
}

/// What a file of `len` bytes is given behind its pages, when it needs `needed` more at least.
fn step(Behind { free, had }: Behind, len: u64, needed: u64) -> u64 {
    let free = free.saturating_sub(LEFT_BYTES);
    let plenty = (len / 2).clamp(STEP_BYTES.0, STEP_BYTES.1).min(free / 2);
    // What is inside is measured with a part of it and a reserve left out.
    let needed = needed.saturating_add(needed / (PIECES - 1));
    let needed = needed.saturating_add(reserve(len.saturating_add(needed)).saturating_mul(2));
    had.saturating_add(plenty.max(needed)).min(free)
}

/// Bytes of the file that have no storage.
fn holes(manifest: &Manifest) -> Result<u64> {
    Ok(manifest.len_bytes()?.saturating_sub(manifest.allocated_bytes()?))
}

fn is_backed(manifest: &Manifest) -> Result<bool> {
    Ok(holes(manifest)? <= HOLES_MAX)
}

fn free(manifest: &Manifest) -> Result<u64> {
    let space = manifest.disk().space(manifest.path());
    space.map(|space| space.free).map_err(|e| Error::io("measure", manifest.path().display(), e))
}
