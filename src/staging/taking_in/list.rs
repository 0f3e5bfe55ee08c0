//! Lists: the stages of a store, and the groups of a stage.

use std::collections::BTreeMap;

use super::stage::Stage;
use super::tail::each_batch;
use crate::engine::Store;
use crate::error::Result;
use crate::ids::{GroupId, StageId};
use crate::manifest::{GroupRow, GroupState, Reading, Snapshot, StageRow};
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
    /// Its groups in the order of their numbers, then keys of which nothing is sealed yet, in their order:
    /// all at one instant, with what is unsealed.
    ///
    /// # Errors
    /// `NotFound` once it was removed; `Halted`, `Closed`, `Damage`.
    pub fn groups(&self) -> Result<Vec<GroupView>> {
        self.check("list")?;
        self.with_tails(|| {
            let streams = |snapshot: &Snapshot| Ok(self.row(snapshot)?.intakes);
            let (views, rows) = self.store.views_with(streams, |snapshot| {
                let range = (self.id(), GroupId(0))..=(self.id(), GroupId(u64::MAX));
                snapshot.list::<GroupRow>(range, usize::MAX)
            })?;
            let (mut groups, mut open) = (Vec::with_capacity(rows.len()), BTreeMap::new());
            for ((_, id), row) in &rows {
                if row.state == GroupState::Open {
                    open.insert(row.key.clone(), groups.len());
                }
                groups.push(GroupView::of(self.key_shape(), *id, row)?);
            }
            let sealed = groups.len();
            for view in &views {
                each_batch(self, view.stream, &view.tail, &mut |batch| {
                    // A record that does not read has no key; a view tells it.
                    let Ok(batch) = batch else { return Ok(()) };
                    let (head, len) = (&batch.head, batch.len());
                    if !open.contains_key(head.key) {
                        open.insert(head.key.to_vec(), groups.len());
                        groups.push(GroupView::empty(self.key_shape().key_of(head.key)?));
                    }
                    let group = open.get(head.key).and_then(|at| groups.get_mut(*at));
                    if let Some(group) = group {
                        group.add_unsealed(head.rows, 1, len, head.at, head.at);
                    }
                    Ok(())
                })?;
            }
            if let Some(unsealed) = groups.get_mut(sealed..) {
                unsealed.sort_by(|one, other| one.key.cmp(&other.key));
            }
            Ok(groups)
        })
    }
}
