//! What a store is, for people: its layout, its age, and the choices made for it.

use super::single::Layout;
use super::snapshot::SnapshotAge;
use super::store::Store;
use crate::error::Result;
use crate::ids::{CommitSeq, Epoch, StoreId};
use crate::manifest::{CheckIntegrity, Reading, Table, read_head};
use crate::vfs::DirectIo;

/// What a store is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Info {
    /// Its name, given at birth.
    pub store: StoreId,
    /// Version of the format.
    pub format: u16,
    /// How it lies on disk.
    pub layout: Layout,
    /// Who may write while this handle is open: `single` or `shared`.
    pub access: &'static str,
    /// Wall-clock nanoseconds since 1970 at birth, where the clock could be represented.
    pub created: Option<i64>,
    /// Folders under `sealed/`.
    pub sealed_folders: u16,
    /// How often it was opened for writing.
    pub epoch: Epoch,
    /// The newest commit.
    pub commit: CommitSeq,
    /// What HEAD witnesses; `None` where it does not read, and a rolled-back manifest would be
    /// noticed by journal headers alone.
    pub witness: Option<CommitSeq>,
    /// Whether sealed files are written past the page cache, or why not.
    pub direct_io: DirectIo,
    /// When the manifest's integrity is checked at opening.
    pub check_integrity: CheckIntegrity,
    /// Length of the manifest in bytes.
    pub manifest_bytes: u64,
    /// Whether this handle reads what was recovered in memory from a killed writer's store.
    pub is_recovered_copy: bool,
    /// The newest snapshot of the rows, from which a lost manifest is salvaged; `None` when there is
    /// none.
    pub snapshot: Option<SnapshotAge>,
    /// Rows by table.
    pub rows: Vec<(Table, u64)>,
}

impl Store {
    /// What the store is.
    ///
    /// # Errors
    /// `Halted`, `Closed`, `Damage`.
    pub fn info(&self) -> Result<Info> {
        let core = self.core();
        let meta = core.manifest.meta();
        let snapshot = self.snapshot()?;
        let count = |table: &Table| Ok((*table, snapshot.count(*table)?));
        Ok(Info {
            store: meta.store,
            format: meta.format,
            layout: Layout::of(meta.single_file),
            access: core.access.name(),
            created: meta.created,
            sealed_folders: meta.sealed_folders,
            epoch: snapshot.counters()?.epoch,
            commit: snapshot.counters()?.commit_seq,
            witness: read_head(&core.disk, &core.root).map(|witness| witness.commit),
            direct_io: core.disk.direct_io(&core.root),
            check_integrity: core.check_integrity,
            manifest_bytes: core.manifest.len_bytes()?,
            is_recovered_copy: core.manifest.is_recovered_copy(),
            snapshot: self.snapshot_age(&snapshot)?,
            rows: Table::ALL.iter().map(count).collect::<Result<Vec<_>>>()?,
        })
    }
}
