//! Lists: the stages of a store, and the groups of a stage.

use super::stage::Stage;
use crate::engine::Store;
use crate::error::Result;
use crate::ids::{GroupId, StageId};
use crate::manifest::{GroupRow, Reading, StageRow};
use crate::staging::describing::{GroupView, KeyShape};

/// What is told of a stage in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageAbout {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: StageId,
    /// Which parts its keys have.
    pub key_shape: KeyShape,
    /// Wall-clock nanoseconds when it was made.
    pub created: Option<i64>,
}

impl Store {
    /// The stages, by name.
    ///
    /// # Errors
    /// `Halted`, `Closed`, `Damage`.
    pub fn stages(&self) -> Result<Vec<StageAbout>> {
        let rows = self.snapshot()?.list::<StageRow>(.., usize::MAX)?;
        rows.into_iter()
            .map(|(name, row)| {
                let key_shape = KeyShape::decode(&row.about)?;
                Ok(StageAbout { name, id: row.stage, key_shape, created: row.created })
            })
            .collect()
    }
}

impl Stage {
    /// Its groups, in the order of their numbers.
    ///
    /// # Errors
    /// `NotFound` once it was removed; `Halted`, `Closed`, `Damage`.
    pub fn groups(&self) -> Result<Vec<GroupView>> {
        self.check("list")?;
        let snapshot = self.store.snapshot()?;
        self.row(&snapshot)?;
        let range = (self.id(), GroupId(0))..=(self.id(), GroupId(u64::MAX));
        let rows = snapshot.list::<GroupRow>(range, usize::MAX)?;
        rows.iter().map(|((_, id), row)| GroupView::of(self.key_shape(), *id, row)).collect()
    }
}
