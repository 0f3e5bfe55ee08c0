//! Left: a group inside the transaction that takes parts of it away.

use super::convert::Made;
use super::input::Used;
use super::plan::Planned;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{GroupId, PartId, StageId};
use crate::manifest::{GroupRow, PartRow, Reading, Write};
use crate::protection::Protection;
use crate::staging::Stage;

/// A group while its parts go, and what is left of it.
pub(super) struct Left {
    key: (StageId, GroupId),
    place: String,
    row: GroupRow,
}

impl Left {
    /// The group as it stands.
    pub(super) fn of(w: &Write<'_>, stage: &Stage, group: &Planned) -> Result<Self> {
        let key = (stage.id(), group.id);
        let place = format!("group {} of {}", group.id, stage.place());
        let row = match w.get::<GroupRow>(&key)? {
            Some(row) => row,
            None if !Protection::StageClaimChecked.is_on() => group.row.clone(),
            None => {
                let cause = "it is gone: somebody else converted it, or removed the stage";
                return Err(Error::new(ErrorKind::Conflict, "convert", place, cause));
            }
        };
        Ok(Self { key, place, row })
    }

    /// What of a part an output holds goes; the rest of it stays.
    pub(super) fn take(&mut self, w: &mut Write<'_>, used: &Used) -> Result<()> {
        let key = self.check(w, used)?;
        self.count_down(used.rows, used.batches, used.len)?;
        let rest = self.rest(used)?;
        if rest.batches == 0 {
            w.remove::<PartRow>(&key).map(drop)
        } else if used.batches > 0 {
            w.put(&key, &rest)
        } else {
            Ok(())
        }
    }

    /// All of a part goes; returns what of it no output holds.
    pub(super) fn set_aside(&mut self, w: &mut Write<'_>, used: &Used) -> Result<PartRow> {
        let key = self.check(w, used)?;
        self.count_down(used.row.rows, used.row.batches, used.row.len)?;
        w.remove::<PartRow>(&key)?;
        self.rest(used)
    }

    /// What is left of the group is written; nothing, if nothing is.
    pub(super) fn finish(mut self, w: &mut Write<'_>, made: &mut Made) -> Result<()> {
        let range = (self.key.1, PartId(0))..=(self.key.1, PartId(u64::MAX));
        // STG24: only what an output holds goes.
        if !Protection::StageRetireConsumed.is_on() {
            for (key, _) in w.list::<PartRow>(range.clone(), usize::MAX)? {
                w.remove::<PartRow>(&key)?;
            }
        }
        if w.list::<PartRow>(range, 1)?.is_empty() {
            return w.remove::<GroupRow>(&self.key).map(drop);
        }
        (self.row.failures, self.row.failure) = (0, None);
        made.rows_left = self.row.rows;
        w.put(&self.key, &self.row)
    }

    /// The part stands as it was when its group was claimed.
    fn check(&self, w: &Write<'_>, used: &Used) -> Result<(GroupId, PartId)> {
        let key = (self.key.1, used.part);
        if Protection::StageClaimChecked.is_on()
            && w.get::<PartRow>(&key)?.as_ref() != Some(&used.row)
        {
            let cause = format!("part {} is not as it was when it was claimed", used.part);
            return Err(Error::new(ErrorKind::Conflict, "convert", &self.place, cause));
        }
        Ok(key)
    }

    fn rest(&self, used: &Used) -> Result<PartRow> {
        let row = &used.row;
        let rest = row.rows.checked_sub(used.rows).and_then(|rows| {
            let batches = row.batches.checked_sub(used.batches)?;
            Some((rows, batches, row.len.checked_sub(used.len)?))
        });
        let Some((rows, batches, len)) = rest else { return Err(self.uneven()) };
        Ok(PartRow { rows, batches, len, skip: row.skip + used.batches, ..row.clone() })
    }

    fn count_down(&mut self, rows: u64, batches: u64, len: u64) -> Result<()> {
        let left = self.row.rows.checked_sub(rows).and_then(|rows| {
            Some((rows, self.row.batches.checked_sub(batches)?, self.row.len.checked_sub(len)?))
        });
        let Some(left) = left else { return Err(self.uneven()) };
        (self.row.rows, self.row.batches, self.row.len) = left;
        Ok(())
    }

    fn uneven(&self) -> Error {
        Error::damage("convert", &self.place, "its parts hold more than its rows say; run check")
    }
}
