//! Parts: the durable pieces of groups, listed.

use crate::error::Result;
use crate::ids::{GroupId, PartId};
use crate::manifest::{GroupRow, PartRow, Reading};
use crate::staging::Stage;

/// A durable piece of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartView {
    /// Its number.
    pub id: PartId,
    /// Its group.
    pub group: GroupId,
    /// Rows that are in no output yet.
    pub rows: u64,
    /// Batches of them.
    pub batches: u64,
    /// Their bytes.
    pub len: u64,
}

impl Stage {
    /// The parts of its groups, group by group.
    ///
    /// # Errors
    /// `NotFound` once the stage was removed; `Halted`, `Closed`, `Damage`.
    pub fn parts(&self) -> Result<Vec<PartView>> {
        self.check("list")?;
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let groups = (self.id(), GroupId(0))..=(self.id(), GroupId(u64::MAX));
        let mut parts = Vec::new();
        for ((_, group), _) in snapshot.list::<GroupRow>(groups, usize::MAX)? {
            let range = (group, PartId(0))..=(group, PartId(u64::MAX));
            for ((_, id), row) in snapshot.list::<PartRow>(range, usize::MAX)? {
                let PartRow { rows, batches, len, .. } = row;
                parts.push(PartView { id, group, rows, batches, len });
            }
        }
        Ok(parts)
    }
}
