//! The one routine that removes objects (P4), and the books of the files that held them.
//!
//! ```text
//!   an edge goes [put, remove] -> no edge left? -> object row, inline bytes, index rows go
//!                                                 file: live -= stored, dead += stored
//!   no object left in the file -> Sealed becomes Condemned; reclaim gives its bytes back
//! ```
//!
//! It runs at the end of every transaction, on what that transaction touched and nothing else.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::key::Key;
use super::read::Reading;
use super::row::{Row, place_of};
use super::rows::{FileObjectRow, FileRow, FileState, InlineRow, ObjectRow, Place, RecipeRow};
use super::table::Table;
use super::write::Write;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::ids::{FileId, ObjectId};
use crate::protection::Protection;

/// What lost its last reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// Objects condemned.
    pub objects: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Files in which no object is left.
    pub files: Vec<FileId>,
    /// The digests of the first objects condemned, at most 32.
    pub first: Vec<Digest>,
}

const FIRST_MAX: usize = 32;

/// What a transaction touched and has not settled yet.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// Objects that lost an edge.
    pub(super) lost: BTreeSet<ObjectId>,
    born: BTreeSet<ObjectId>,
    placed: BTreeSet<ObjectId>,
    born_files: BTreeSet<FileId>,
    pub(super) left_files: BTreeSet<FileId>,
    /// Recipes without a reference are taken apart later.
    pub(super) is_apart_later: bool,
    total: Settled,
}

impl Unsettled {
    /// Takes note of a row that is put; `new` when none was there.
    pub(super) fn note_put(&mut self, table: Table, key: &[u8], new: bool) -> Result<()> {
        match table {
            Table::Objects => {
                let object = ObjectId::from_bytes(key)?;
                self.placed.insert(object);
                if new {
                    self.born.insert(object);
                }
            }
            Table::Files if new => {
                self.born_files.insert(FileId::from_bytes(key)?);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn take_total(&mut self) -> Settled {
        std::mem::take(&mut self.total)
    }
}

impl Write<'_> {
    /// Condemns each object that this transaction left without a reference, now instead of at the
    /// end; returns what it condemned. Objects born in the transaction must be referred to by now.
    ///
    /// # Errors
    /// `Invalid` when an object was born and nothing refers to it, or its bytes are in no row;
    /// `Damage` when the books of a file do not close.
    pub fn settle(&mut self) -> Result<Settled> {
        let mut settled = Settled::default();
        let born = std::mem::take(&mut self.unsettled.born);
        let mut left = std::mem::take(&mut self.unsettled.lost);
        left.extend(&born);
        // A recipe that goes takes references of its pieces with it: they are looked at in turn.
        while !left.is_empty() {
            let mut going = Vec::new();
            for object in std::mem::take(&mut left) {
                if self.has_edges(object)? && Protection::RetireEdges.is_on() {
                    continue;
                }
                // It keeps itself until it is taken apart.
                if self.is_retiring(object)? {
                    continue;
                }
                if born.contains(&object) {
                    let cause = "the object is new, and nothing refers to it";
                    return Err(Error::invalid("write", place_of::<ObjectRow>(&object), cause));
                }
                let row = self.require::<ObjectRow>(&object)?;
                settled.objects += 1;
                settled.bytes = settled.bytes.saturating_add(row.stored_len);
                if settled.first.len() < FIRST_MAX {
                    settled.first.push(row.digest);
                }
                going.push((object, row));
            }
            self.condemn(going)?;
            left = std::mem::take(&mut self.unsettled.lost);
        }
        for object in std::mem::take(&mut self.unsettled.placed) {
            self.check_place(object)?;
        }
        let born_files = std::mem::take(&mut self.unsettled.born_files);
        for file in &born_files {
            self.check_books(*file)?;
        }
        for file in std::mem::take(&mut self.unsettled.left_files).union(&born_files) {
            if self.condemn_file(*file)? {
                settled.files.push(*file);
            }
        }
        let total = &mut self.unsettled.total;
        total.objects += settled.objects;
        total.bytes = total.bytes.saturating_add(settled.bytes);
        total.files.extend(&settled.files);
        let room = FIRST_MAX.saturating_sub(total.first.len());
        total.first.extend(settled.first.iter().take(room));
        Ok(settled)
    }

    /// Moves `object` from one place to another whose bytes are durable and verified: only if it
    /// still is at `from`, and returns whether it was. Its bytes in the file that it leaves become
    /// dead; those in the file that it enters, counted as dead until now, become live.
    ///
    /// # Errors
    /// `Damage` when the books of either file do not close.
    pub fn move_object(&mut self, object: ObjectId, from: Place, to: Place) -> Result<bool> {
        let Some(mut row) = self.get::<ObjectRow>(&object)? else { return Ok(false) };
        if row.place != from || from == to {
            return Ok(false);
        }
        row.place = to;
        self.put(&object, &row)?;
        if from == Place::Inline {
            self.erase(Table::Inline, &object.to_bytes())?;
        }
        if let Place::Extent { file, .. } = from {
            self.leave_file(file, row.stored_len)?;
        }
        if let Place::Extent { file, .. } = to {
            self.enter_file(file, row.stored_len)?;
        }
        Ok(true)
    }

    /// Bytes of a file that were live are dead.
    pub(super) fn leave_file(&mut self, file: FileId, bytes: u64) -> Result<()> {
        self.book(file, bytes, |file, bytes| {
            file.live = file.live.checked_sub(bytes)?;
            file.dead = file.dead.checked_add(bytes)?;
            Some(())
        })?;
        self.unsettled.left_files.insert(file);
        Ok(())
    }

    /// Bytes of a file that were dead are live.
    pub(super) fn enter_file(&mut self, file: FileId, bytes: u64) -> Result<()> {
        self.book(file, bytes, |file, bytes| {
            file.dead = file.dead.checked_sub(bytes)?;
            file.live = file.live.checked_add(bytes)?;
            Some(())
        })
    }

    pub(super) fn book(
        &mut self,
        file: FileId,
        bytes: u64,
        change: impl FnOnce(&mut FileRow, u64) -> Option<()>,
    ) -> Result<()> {
        let mut row = self.require::<FileRow>(&file)?;
        if change(&mut row, bytes).is_none() {
            let cause = format!("{bytes} bytes change their class, and it has not so many");
            return Err(Error::damage("settle", place_of::<FileRow>(&file), cause));
        }
        self.set_row(&file, &row)
    }

    /// G6: the bytes of an object are where its row says, as far as rows can tell.
    fn check_place(&self, object: ObjectId) -> Result<()> {
        let Some(row) = self.get::<ObjectRow>(&object)? else { return Ok(()) };
        let refuse =
            |cause: String| Err(Error::invalid("write", place_of::<ObjectRow>(&object), cause));
        match row.place {
            Place::Inline => match self.get::<InlineRow>(&object)? {
                Some(inline) if inline.bytes.len() as u64 == row.stored_len => Ok(()),
                Some(inline) => refuse(format!(
                    "{} inline bytes, {} stored",
                    inline.bytes.len(),
                    row.stored_len
                )),
                None => refuse("it is inline, and its bytes have no row".to_owned()),
            },
            Place::Extent { file, offset } => match self.get::<FileRow>(&file)? {
                Some(to) if to.state != FileState::Sealed => {
                    refuse(format!("file {file} is going"))
                }
                Some(to) if offset.checked_add(row.stored_len).is_none_or(|end| end > to.len) => {
                    refuse(format!("it would reach past the end of file {file}"))
                }
                Some(_) => Ok(()),
                None => refuse(format!("file {file} has no row")),
            },
            // What is being taken apart is whole no more.
            Place::Recipe if self.is_retiring(object)? => Ok(()),
            Place::Recipe if !Protection::RecipeWhole.is_on() => Ok(()),
            Place::Recipe => match self.gap_in_recipe(object, &row)? {
                Some(gap) => refuse(gap),
                None => Ok(()),
            },
        }
    }

    /// What is wrong with the recipe of `object`, if anything is.
    fn gap_in_recipe(&self, object: ObjectId, row: &ObjectRow) -> Result<Option<String>> {
        if row.stored_len != 0 || row.codec != 0 {
            return Ok(Some("its bytes are those of others, and it calls some its own".to_owned()));
        }
        let (mut end, mut gap) = (0u64, None);
        self.scan::<RecipeRow>(recipe_of(object), &mut |(_, begins), recipe| {
            if begins != end || recipe.pieces.is_empty() {
                gap = Some(format!("byte {end} of it is in none of its pieces"));
            }
            for piece in &recipe.pieces {
                let of = self.get::<ObjectRow>(&piece.object)?;
                if of.is_none_or(|of| of.len != piece.len || of.place == Place::Recipe) {
                    gap = Some(format!("object {} is no piece of it", piece.object));
                }
            }
            end = end.saturating_add(recipe.bytes().unwrap_or(u64::MAX));
            Ok(if gap.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(gap.or_else(|| {
            (end != row.len).then(|| format!("its pieces have {end} bytes, it has {}", row.len))
        }))
    }

    /// P10: what a new file calls live is what its objects take in it.
    fn check_books(&self, file: FileId) -> Result<()> {
        let Some(row) = self.get::<FileRow>(&file)? else { return Ok(()) };
        let mut live = 0u64;
        self.scan::<FileObjectRow>(objects_in(file), &mut |(_, object), _| {
            live = live.saturating_add(self.require::<ObjectRow>(&object)?.stored_len);
            Ok(ControlFlow::Continue(()))
        })?;
        if live != row.live {
            let cause = format!("it calls {} bytes live, its objects take {live}", row.live);
            return Err(Error::invalid("write", place_of::<FileRow>(&file), cause));
        }
        Ok(())
    }

    fn condemn_file(&mut self, file: FileId) -> Result<bool> {
        let Some(mut row) = self.get::<FileRow>(&file)? else { return Ok(false) };
        if row.state != FileState::Sealed
            || !self.list::<FileObjectRow>(objects_in(file), 1)?.is_empty()
        {
            return Ok(false);
        }
        if row.live != 0 {
            let cause = format!("no object is left in it, and {} bytes are live", row.live);
            return Err(Error::damage("settle", place_of::<FileRow>(&file), cause));
        }
        let old = row.clone();
        row.state = FileState::Condemned;
        self.change(&file, Some(&old), Some(&row))?;
        Ok(true)
    }
}

/// The rows of a recipe, in order.
pub fn recipe_of(object: ObjectId) -> std::ops::RangeInclusive<(ObjectId, u64)> {
    (object, 0)..=(object, u64::MAX)
}

fn objects_in(file: FileId) -> impl std::ops::RangeBounds<<FileObjectRow as Row>::Key> {
    (file, ObjectId(0))..=(file, ObjectId(u64::MAX))
}
