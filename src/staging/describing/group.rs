//! GroupView: the batches of one key between two flushes, as far as they are known.

use super::key::Key;
use super::shape::KeyShape;
use crate::error::Result;
use crate::ids::GroupId;
use crate::manifest::{GroupRow, GroupState};

/// The batches of one key between two flushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// Its number, which is its generation: of two groups of a key the later one has the higher. `None`
    /// while no batch of it is sealed.
    pub id: Option<GroupId>,
    /// What its batches have in common.
    pub key: Key,
    /// Whether nothing comes to it any more, and it may be converted.
    pub is_detached: bool,
    /// Rows of its batches.
    pub rows: u64,
    /// Its batches.
    pub batches: u64,
    /// Bytes of its batches.
    pub len: u64,
    /// Of its rows, those in batches that are not sealed yet.
    pub unsealed_rows: u64,
    /// Wall-clock nanoseconds of its first batch.
    pub first_at: Option<i64>,
    /// And of its last.
    pub last_at: Option<i64>,
    /// How often its conversion failed, or wrote no rows.
    pub failures: u32,
    /// Why, the last time.
    pub failure: Option<String>,
}

impl GroupView {
    /// A group without batches.
    pub(crate) fn empty(key: Key) -> Self {
        Self {
            id: None,
            key,
            is_detached: false,
            rows: 0,
            batches: 0,
            len: 0,
            unsealed_rows: 0,
            first_at: None,
            last_at: None,
            failures: 0,
            failure: None,
        }
    }

    /// Adds batches that are not sealed yet.
    pub(crate) fn add_unsealed(
        &mut self,
        rows: u64,
        batches: u64,
        len: u64,
        first_at: Option<i64>,
        last_at: Option<i64>,
    ) {
        self.rows = self.rows.saturating_add(rows);
        self.unsealed_rows = self.unsealed_rows.saturating_add(rows);
        self.batches += batches;
        self.len = self.len.saturating_add(len);
        self.first_at = match (self.first_at, first_at) {
            (Some(first), Some(at)) => Some(first.min(at)),
            (first, at) => first.or(at),
        };
        self.last_at = self.last_at.max(last_at);
    }

    /// The group of a row.
    ///
    /// # Errors
    /// `Damage` for a key that does not read.
    pub(crate) fn of(shape: &KeyShape, id: GroupId, row: &GroupRow) -> Result<Self> {
        Ok(Self {
            id: Some(id),
            key: shape.key_of(&row.key)?,
            is_detached: row.state != GroupState::Open,
            rows: row.rows,
            batches: row.batches,
            len: row.len,
            unsealed_rows: 0,
            first_at: row.first_at,
            last_at: row.last_at,
            failures: row.failures,
            failure: row.failure.clone(),
        })
    }
}
