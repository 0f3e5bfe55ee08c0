//! Which preparations stand.

use std::ops::ControlFlow;

use super::prepare::leased_of;
use crate::error::Result;
use crate::ids::LeaseId;
use crate::manifest::{LeaseRow, LeasedRow, ObjectRow, PreparationRow, Reading, ResourceKey};
use crate::objects::describing::Objects;

/// A preparation as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparationView {
    /// Its name.
    pub name: String,
    /// What keeps its objects.
    pub lease: LeaseId,
    /// Wall-clock nanoseconds since 1970 when it began, where the clock could say.
    pub created: Option<i64>,
    /// What it is for.
    pub purpose: String,
    /// Wall-clock nanoseconds since 1970 after which it is late.
    pub deadline: Option<i64>,
    /// Objects that it keeps, each counted once, pieces of unfinished ones not among them.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pieces of what was not put to its end.
    pub pieces: u64,
    /// Who has it open, in words.
    pub open_by: Option<String>,
}

impl Objects {
    /// Every preparation that stands, in order of their names. The time follows what they keep.
    ///
    /// # Errors
    /// `Damage` for a row that does not read.
    pub fn preparations(&self) -> Result<Vec<PreparationView>> {
        let snapshot = self.store().snapshot()?;
        let mut views = Vec::new();
        for (name, row) in snapshot.list::<PreparationRow>(.., usize::MAX)? {
            let lease = snapshot.require::<LeaseRow>(&row.lease)?;
            let (mut objects, mut bytes, mut pieces) = (0, 0u64, 0);
            snapshot.scan::<LeasedRow>(leased_of(row.lease), &mut |_, leased| {
                if leased.is_whole {
                    let of = snapshot.require::<ObjectRow>(&leased.object)?;
                    objects += 1;
                    bytes = bytes.saturating_add(of.len);
                }
                pieces += u64::from(leased.is_piece);
                Ok(ControlFlow::Continue(()))
            })?;
            views.push(PreparationView {
                lease: row.lease,
                created: row.created,
                purpose: lease.purpose,
                deadline: lease.deadline,
                objects,
                bytes,
                pieces,
                open_by: self.store().holder_of(&ResourceKey::of_preparation(&name))?,
                name,
            });
        }
        Ok(views)
    }
}
