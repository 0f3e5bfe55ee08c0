//! Whether an object is what its row says: read in portions, and hashed.

use super::core::Core;
use super::fetch::{self, FileCache};
use super::store::Store;
use crate::digest::Hasher;
use crate::error::Result;
use crate::ids::ObjectId;
use crate::manifest::{ObjectRow, Reading};
use crate::protection::Protection;

/// Bytes read at a time.
const PORTION: u64 = 1 << 20;

impl Store {
    /// The row of `object`, if it stands, reads from end to end, and its bytes are those of its digest.
    /// Memory: a portion of 1 MiB.
    ///
    /// # Errors
    /// Those of the disk where rows are read; damage is none, nor is a sealed file that the disk refuses.
    pub(crate) fn reads_whole(&self, object: ObjectId) -> Result<Option<ObjectRow>> {
        reads_whole(self.core(), self.files(), object)
    }
}

/// As [`Store::reads_whole`].
pub(super) fn reads_whole(
    core: &Core,
    cache: &FileCache,
    object: ObjectId,
) -> Result<Option<ObjectRow>> {
    let Some(row) = core.snapshot()?.get::<ObjectRow>(&object)? else {
        return Ok(None);
    };
    if !Protection::DedupeVerified.is_on() {
        return Ok(Some(row));
    }
    let (mut hasher, mut at) = (Hasher::default(), 0);
    while at < row.len {
        let upto = row.len.min(at + PORTION);
        let Some(bytes) = fetch::fetch_unless_lost(core, cache, object, at..upto)? else {
            return Ok(None);
        };
        hasher.update(&bytes);
        at = upto;
    }
    Ok((hasher.finish() == row.digest).then_some(row))
}
