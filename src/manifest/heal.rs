//! Heal: an object whose bytes do not read gets others in their place. All that refers to it reads again.

use std::ops::ControlFlow;

use super::key::{EdgeKey, Key};
use super::read::Reading;
use super::row::Row;
use super::rows::{EdgeRow, FileRow, InlineRow, LeasedRow, ObjectRow, Place, RecipeRow};
use super::settle::recipe_of;
use super::table::Table;
use super::write::Write;
use crate::error::Result;
use crate::ids::ObjectId;

impl Write<'_> {
    /// Makes `damaged`, the row of `object` and bytes that do not read, into `sound`: of the same digest and
    /// length, whose bytes are durable and verified. Its bytes in the file that it leaves become dead, those
    /// in the file that it enters live. Whoever calls this writes the [`InlineRow`], or the rows of the
    /// recipe, that `sound` stands for, in the same transaction. False, and nothing was changed, where the
    /// object is no longer so, where it is to be a recipe and is a piece, or where rows that its place needs are not there or do not read.
    ///
    /// # Errors
    /// `Damage` when the books of a file do not close.
    pub fn heal_object(
        &mut self,
        object: ObjectId,
        damaged: &ObjectRow,
        sound: &ObjectRow,
    ) -> Result<bool> {
        if self.get::<ObjectRow>(&object)?.as_ref() != Some(damaged)
            || (damaged.digest, damaged.len) != (sound.digest, sound.len)
        {
            return Ok(false);
        }
        if sound.place == Place::Recipe && (self.is_piece(object)? || self.awaits(object)?) {
            return Ok(false);
        }
        match damaged.place {
            Place::Extent { file, .. } => {
                if self.get::<FileRow>(&file)?.is_none() {
                    return Ok(false);
                }
                self.leave_file(file, damaged.stored_len)?;
            }
            Place::Inline => self.erase(InlineRow::TABLE, &object.to_bytes())?,
            Place::Recipe => {
                let rows = self.list_each::<RecipeRow>(recipe_of(object), usize::MAX)?;
                if rows.iter().any(|(_, row)| row.is_err()) {
                    return Ok(false);
                }
                for (key, row) in rows {
                    self.change(&key, row.ok().as_ref(), None)?;
                }
            }
        }
        if let Place::Extent { file, .. } = sound.place {
            self.enter_file(file, sound.stored_len)?;
        }
        self.put(&object, sound).map(|()| true)
    }

    /// Whether `object` is leased as a piece of something whose recipe is not written yet.
    fn awaits(&self, object: ObjectId) -> Result<bool> {
        let first = EdgeKey { object, table: Table::Leased, key: Vec::new() };
        let mut awaits = false;
        self.scan::<EdgeRow>(first.., &mut |edge, _| {
            if edge.object != object || edge.table != Table::Leased {
                return Ok(ControlFlow::Break(()));
            }
            let key = <LeasedRow as Row>::Key::from_bytes(&edge.key)?;
            awaits = self.get::<LeasedRow>(&key)?.is_some_and(|leased| leased.is_piece);
            Ok(if awaits { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(awaits)
    }

    /// Whether a recipe names `object`.
    fn is_piece(&self, object: ObjectId) -> Result<bool> {
        let edges = EdgeKey { object, table: Table::Recipes, key: Vec::new() };
        let found = self.list::<EdgeRow>(edges.., 1)?;
        Ok(found.iter().any(|(edge, _)| edge.object == object && edge.table == Table::Recipes))
    }
}
