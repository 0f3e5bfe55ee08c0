//! What goes with an object that nothing refers to: its rows and index rows, its bytes in the books of
//! files, and of a recipe the references to its pieces, at once or in bounded transactions.
//!
//! ```text
//!   no edge left [settle] --------------------------------------> every row of it goes
//!        \-- a recipe, [take_apart_later] or pinned by a reader --> retiring: found by nobody
//!   retiring --[take_apart]--> its rows go, the last ones first, then itself
//! ```

use std::collections::BTreeMap;
use std::ops::Bound;

use super::key::Key;
use super::read::Reading;
use super::row::Row;
use super::rows::{ObjectRow, Place, RecipeRow, RetiringRow};
use super::settle::recipe_of;
use super::table::Table;
use super::write::Write;
use crate::error::Result;
use crate::ids::{FileId, ObjectId};
use crate::protection::Protection;

/// Edges of recipes that are gathered before they are taken away: bounds memory.
const EDGES_AT_ONCE: usize = 1 << 20;

/// An edge from a row of a recipe to one of its pieces, as bytes.
type PieceEdge = [u8; 25];

/// What one call of [`Write::take_apart`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenApart {
    /// Recipes of which nothing is left.
    pub recipes: u64,
    /// References to pieces that went.
    pub references: u64,
    /// Whether recipes that retire are left.
    pub is_more_left: bool,
    /// Whether some of them were left because a reader of this process is in the middle of them.
    pub is_held: bool,
    /// Those that were left because other rows contradict: something still refers to them, or they are no
    /// recipes.
    pub contradicted: u64,
}

impl Write<'_> {
    /// From here on a recipe that loses its last reference in this transaction is found by nobody any more,
    /// and taken apart later ([`take_apart`](Self::take_apart)): the cost of the transaction does not follow
    /// the number of its pieces.
    pub fn take_apart_later(&mut self) {
        self.unsettled.is_apart_later = true;
    }

    /// Whether `object` is being taken apart: nothing may refer to it any more.
    ///
    /// # Errors
    /// As [`Reading::get`].
    pub fn is_retiring(&self, object: ObjectId) -> Result<bool> {
        // Most often there is none, which costs no look.
        Ok(self.count(Table::Retiring)? > 0 && self.get::<RetiringRow>(&object)?.is_some())
    }

    /// Takes recipes apart that retire, until `references_max` references to pieces went, or as many as one
    /// row has; pieces that lose their last reference go at the end of the transaction.
    ///
    /// # Errors
    /// As [`Write::settle`].
    pub fn take_apart(&mut self, references_max: u64) -> Result<TakenApart> {
        let mut done = TakenApart::default();
        let mut from = Bound::Unbounded;
        while done.references < references_max.max(1) {
            let next = self.list::<RetiringRow>((from, Bound::Unbounded), 1)?.pop();
            let Some((object, retiring)) = next else { break };
            from = Bound::Excluded(object);
            if self.is_contradicted(object)? {
                done.contradicted += 1;
            } else if self.may_take_apart(object) {
                self.take_one_apart(object, &retiring, references_max, &mut done)?;
            } else {
                done.is_held = true;
            }
        }
        done.is_more_left = self.count(Table::Retiring)? > 0;
        Ok(done)
    }

    /// Whether other rows say that `object` does not retire: something refers to it, or it has bytes of its own.
    fn is_contradicted(&self, object: ObjectId) -> Result<bool> {
        let row = self.get::<ObjectRow>(&object)?;
        let is_whole = row.is_some_and(|row| row.place != Place::Recipe);
        Ok(is_whole || (Protection::RetiringUnfound.is_on() && self.has_edges(object)?))
    }

    fn take_one_apart(
        &mut self,
        object: ObjectId,
        retiring: &RetiringRow,
        references_max: u64,
        done: &mut TakenApart,
    ) -> Result<()> {
        while let Some((key, row)) = self.last::<RecipeRow>(recipe_of(object))? {
            if done.references >= references_max.max(1) {
                return Ok(());
            }
            done.references = done.references.saturating_add(row.pieces.len() as u64);
            self.erase_recipe_rows(vec![(key, row)])?;
        }
        self.change(&object, Some(retiring), None)?;
        if let Some(row) = self.get::<ObjectRow>(&object)? {
            self.erase_objects(&[(object, row)])?;
        }
        done.recipes += 1;
        Ok(())
    }

    /// P4: rows, index and books change together, in the transaction that took the last edge.
    pub(super) fn condemn(&mut self, mut going: Vec<(ObjectId, ObjectRow)>) -> Result<()> {
        // What a reader of this process is in the middle of stays whole until it has ended.
        let is_later = |object, row: &ObjectRow| {
            row.place == Place::Recipe
                && (self.unsettled.is_apart_later || !self.may_take_apart(object))
        };
        let later: Vec<_> = going.extract_if(.., |(object, row)| is_later(*object, row)).collect();
        self.retire_later(&later)?;
        self.erase_objects(&going)?;
        self.book_as_dead(&going)?;
        let recipes = going.iter().filter(|(_, row)| row.place == Place::Recipe);
        let mut rows = Vec::new();
        let mut edges = 0;
        for (object, _) in recipes {
            for (key, row) in self.list::<RecipeRow>(recipe_of(*object), usize::MAX)? {
                edges += row.pieces.len();
                rows.push((key, row));
                if edges >= EDGES_AT_ONCE {
                    self.erase_recipe_rows(std::mem::take(&mut rows))?;
                    edges = 0;
                }
            }
        }
        self.erase_recipe_rows(rows)
    }

    fn retire_later(&mut self, later: &[(ObjectId, ObjectRow)]) -> Result<()> {
        let commit = self.commit_seq();
        let mut index = Vec::new();
        for (object, row) in later {
            self.change(object, None, Some(&RetiringRow { commit }))?;
            index.push((row.digest.prefix(), *object).to_bytes());
        }
        // Whoever stores this content again stores it anew.
        if Protection::RetiringUnfound.is_on() {
            index.sort_unstable();
            self.erase_all(Table::Digests, &index)?;
        }
        Ok(())
    }

    fn erase_objects(&mut self, going: &[(ObjectId, ObjectRow)]) -> Result<()> {
        let mut gone: BTreeMap<Table, Vec<Vec<u8>>> = BTreeMap::new();
        for (object, row) in going {
            row.derived(object, &mut |table, key| gone.entry(table).or_default().push(key));
            gone.entry(Table::Objects).or_default().push(object.to_bytes());
            if row.place == Place::Inline {
                gone.entry(Table::Inline).or_default().push(object.to_bytes());
            }
        }
        for (table, mut keys) in gone {
            keys.sort_unstable();
            self.erase_all(table, &keys)?;
        }
        Ok(())
    }

    /// Their bytes are live in no file any more.
    fn book_as_dead(&mut self, going: &[(ObjectId, ObjectRow)]) -> Result<()> {
        let mut by_file: BTreeMap<FileId, u64> = BTreeMap::new();
        for (_, row) in going {
            if let Place::Extent { file, .. } = row.place {
                let bytes = by_file.entry(file).or_default();
                *bytes = bytes.saturating_add(row.stored_len);
            }
        }
        for (file, bytes) in by_file {
            self.leave_file(file, bytes)?;
        }
        Ok(())
    }

    fn erase_recipe_rows(&mut self, rows: Vec<((ObjectId, u64), RecipeRow)>) -> Result<()> {
        let mut edges: Vec<PieceEdge> = Vec::new();
        let mut keys = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            for piece in &row.pieces {
                edges.push(edge_of(piece.object, &key));
                self.unsettled.lost.insert(piece.object);
            }
            keys.push(key.to_bytes());
        }
        edges.sort_unstable();
        edges.dedup();
        self.erase_all(Table::Edges, &edges)?;
        keys.sort_unstable();
        self.erase_all(Table::Recipes, &keys)
    }
}

/// As [`EdgeKey`](super::key::EdgeKey) has it, without a place in memory of its own.
fn edge_of(piece: ObjectId, (object, begins): &(ObjectId, u64)) -> PieceEdge {
    let mut edge = [0; 25];
    let (to, rest) = edge.split_at_mut(8);
    to.copy_from_slice(&piece.0.to_be_bytes());
    let (table, key) = rest.split_at_mut(1);
    table.copy_from_slice(&[Table::Recipes.number()]);
    let (of, at) = key.split_at_mut(8);
    of.copy_from_slice(&object.0.to_be_bytes());
    at.copy_from_slice(&begins.to_be_bytes());
    edge
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::key::EdgeKey;

    /// Are the edges of recipes taken away by the keys that they were written with?
    #[test]
    fn edges_of_pieces_are_keys_of_edges() {
        let key = (ObjectId(0x0102_0304_0506_0708), 0x1112_1314_1516_1718);
        let edge = EdgeKey { object: ObjectId(9), table: RecipeRow::TABLE, key: key.to_bytes() };
        assert_eq!(edge_of(ObjectId(9), &key).to_vec(), edge.to_bytes());
    }
}
