//! Compact the manifest: its rows move to a smaller file, while nobody has the store open.
//!
//! ```text
//!   store's lock -> witnesses -> open, examine -> copy into tmp, read back -> rename, sync
//! ```
//! Rows, counters and the commit number stay as they are, and so does everything beside the
//! manifest: what a killed writer left is recovered by the next opening, as ever.

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use super::enter::{WriteAccess, lock};
use super::open::{check_root, make_folders, manifest_options, sync_names, witnesses};
use super::options::Options;
use super::single::{Layout, layout_of};
use crate::error::Result;
use crate::format::layout;
use crate::ids::OwnerId;
use crate::manifest::{Compacted, Manifest, Newborn, Open, Raw, Table, lock_out};

impl Options {
    /// Copies the rows of a store's manifest into a smaller file, which takes its place. A manifest
    /// does not shrink by itself: rows that went leave room for others.
    ///
    /// # Errors
    /// As [`Options::open`]; `InUse` while anybody has the store open, readers included; `Damage`
    /// when a row does not read; `DiskFull` when there is no room for the copy. The store is then
    /// as it was.
    ///
    /// # Durability
    /// *Durable* when it returns; a crash leaves the old manifest or the new one, with the same
    /// rows.
    pub fn compact(mut self, path: impl AsRef<Path>) -> Result<Compacted> {
        self.access = WriteAccess::Single;
        self.limits.check()?;
        let (root, disk) = (path.as_ref(), self.disk_or_real());
        check_root(&disk, root, &self)?;
        let _lock = lock(&disk, root, &self)?;
        let is_one_file = layout_of(&disk, root)? == Layout::SingleFile;
        let manifest = if is_one_file { root.to_owned() } else { layout::manifest(root) };
        // Who reads it would refuse the switch: better told before the copy is made.
        drop(lock_out(&disk, &manifest)?);
        if is_one_file {
            let newborn = Newborn::beside(&disk, root)?;
            let options = manifest_options(&self, Vec::new());
            let manifest = Manifest::open(&disk, root, &Open { single_file: true, ..options })?;
            return manifest.compact_file(newborn);
        }
        let seen = witnesses(&disk, root)?;
        sync_names(&disk, root)?;
        let manifest = Manifest::open(&disk, root, &manifest_options(&self, seen))?;
        // A copy of the store may have left out what was empty.
        make_folders(&disk, root, manifest.meta().sealed_folders)?;
        // Nobody's: the next opening sweeps what a crash leaves of it.
        let nobody = OwnerId::from_parts(0, [0; 10]);
        let tmp = layout::tmp(root, nobody, super::core::unique(&disk)?);
        let compacted = manifest.compact(&tmp);
        if compacted.is_err() {
            let _ = disk.unlink(&tmp);
        }
        compacted
    }

    /// What [`Options::compact`] would begin with and, about, end with; changes nothing.
    ///
    /// # Errors
    /// As [`Options::open_read_only`].
    pub fn compact_estimate(self, path: impl AsRef<Path>) -> Result<Compacted> {
        let store = self.open_read_only(path)?;
        let snapshot = store.snapshot()?;
        let (mut rows, mut bytes_after) = (0, 0);
        for table in Table::ALL {
            let all = (Bound::Unbounded, Bound::Unbounded);
            snapshot.raw_scan(*table, all, false, &mut |key, value| {
                rows += 1;
                bytes_after += (key.len() + value.len()) as u64;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let commit = store.core().manifest.commit_seq();
        let bytes_before = store.core().manifest.len_bytes()?;
        Ok(Compacted { commit, rows, bytes_before, bytes_after })
    }
}
