//! Inside the transaction: sealed bytes become objects, or turn out to be stored already.
//!
//! P4: "already stored" counts only together with taking the reference, so it is decided here, in
//! the transaction that writes the referring row.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::fetch::{self, FileCache};
use super::reads_whole::reads_whole;
use super::seal::{Part, SealedSet};
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, FileId, ObjectId};
use crate::manifest::{Committed, FileRow, FileState, InlineRow, ObjectRow, Place, Reading, Write};
use crate::protection::Protection;
use crate::sealed::Built;
use crate::vfs::Step;

/// Why a transaction was given up, to be tried again.
#[derive(Debug, Clone, Copy)]
enum Again {
    /// The object that held this content went meanwhile: store our own copy.
    Gone(usize),
    /// Another publication stored this content meanwhile: read and verify it first.
    Stored(usize, ObjectId),
}

/// What has to be done before a transaction is tried again, of all its contents.
type Agains = RefCell<Vec<Again>>;

/// How often contents may come and go under a publication before it gives up.
const TRIES_MAX: usize = 64;

impl SealedSet {
    /// Publishes: ONE transaction takes the contents in and lets `refer` write the rows that refer
    /// to them, object by object in the order of the contents.
    pub(crate) fn publish<T>(
        mut self,
        cache: &FileCache,
        step: Step,
        refer: impl Fn(&mut Write, &[ObjectId]) -> Result<T>,
    ) -> Result<Committed<T>> {
        self.publish_again(cache, step, refer)
    }

    /// As [`SealedSet::publish`]: after an error of `refer` it can be tried again.
    pub(super) fn publish_again<T>(
        &mut self,
        cache: &FileCache,
        step: Step,
        refer: impl Fn(&mut Write, &[ObjectId]) -> Result<T>,
    ) -> Result<Committed<T>> {
        for _ in 0..TRIES_MAX {
            let again = Agains::default();
            let core = self.core.clone();
            let tried = core.transact(step, |w| {
                let (objects, used) = self.take_in(w, &again)?;
                Ok((refer(w, &objects)?, used))
            });
            match (tried, again.into_inner()) {
                (Ok(committed), _) => {
                    let (value, used) = committed.value;
                    self.committed = used;
                    let Committed { settled, commit, count, .. } = committed;
                    return Ok(Committed { value, settled, commit, count });
                }
                (Err(_), again) if !again.is_empty() => self.look_again(cache, again)?,
                (Err(e), _) => {
                    if e.kind() == ErrorKind::OutcomeUnknown {
                        // P8: a row may name these files: delete nothing.
                        self.committed = (0..self.files.len()).collect();
                    }
                    return Err(e);
                }
            }
        }
        let cause = format!("its content came and went {TRIES_MAX} times; call again");
        Err(Error::new(ErrorKind::Conflict, "publish", "objects", cause))
    }

    /// Looks at everything again that came or went; what has to be stored after all is built together.
    fn look_again(&mut self, cache: &FileCache, again: Vec<Again>) -> Result<()> {
        let mut to_build = Vec::new();
        for again in again {
            match (again, &self.streamed) {
                (Again::Stored(index, object), _) => self.verify_stored(cache, index, object)?,
                (Again::Gone(index), Some(streamed)) => self.parts[index] = streamed.clone(),
                (Again::Gone(index), None) => {
                    let part = self.look_up(cache, index)?;
                    if matches!(part, Part::Extent { .. }) {
                        to_build.push(index);
                    }
                    self.parts[index] = part;
                }
            }
        }
        self.build(&to_build)
    }

    fn verify_stored(&mut self, cache: &FileCache, index: usize, object: ObjectId) -> Result<()> {
        let snapshot = self.core.snapshot()?;
        let Some(row) = snapshot.get::<ObjectRow>(&object)? else { return Ok(()) };
        let bytes = &self.contents[index].bytes;
        let holds = match self.streamed {
            _ if !Protection::DedupeVerified.is_on() => true,
            Some(_) => reads_whole(&self.core, cache, object)?.as_ref() == Some(&row),
            None => fetch::holds(&self.core, cache, &snapshot, object, &row, bytes)?,
        };
        if holds {
            self.parts[index] = Part::Known { object, row };
        } else if self.is_still(object, &row)? {
            self.unreadable[index].push(object);
        }
        Ok(())
    }

    /// Whether an object is where it was: one that moved is looked at again.
    pub(super) fn is_still(&self, object: ObjectId, row: &ObjectRow) -> Result<bool> {
        Ok(self.core.snapshot()?.get::<ObjectRow>(&object)?.as_ref() == Some(row))
    }

    /// Gives each content its object. Returns the objects, and which of our files are named now. Where one has to
    /// be looked at again, nothing is written behind it, and all others that have to are told with it.
    fn take_in(&self, w: &mut Write, again: &Agains) -> Result<(Vec<ObjectId>, BTreeSet<usize>)> {
        again.borrow_mut().clear();
        let mut objects: Vec<ObjectId> = Vec::with_capacity(self.parts.len());
        let mut files: BTreeMap<usize, FileId> = BTreeMap::new();
        for (index, part) in self.parts.iter().enumerate() {
            let object = match part {
                Part::Same(earlier) => objects[*earlier],
                Part::Known { object, row } => {
                    let stands = w.get::<ObjectRow>(object)?.as_ref() == Some(row)
                        && !w.is_retiring(*object)?;
                    if !stands && Protection::DedupeInTransaction.is_on() {
                        again.borrow_mut().push(Again::Gone(index));
                    }
                    *object
                }
                Part::Inline | Part::Extent { .. } => match self.newly_stored(w, index)? {
                    Some(object) => {
                        again.borrow_mut().push(Again::Stored(index, object));
                        object
                    }
                    None if !again.borrow().is_empty() => ObjectId(0),
                    None => self.store(w, index, &mut files)?,
                },
            };
            objects.push(object);
        }
        if !again.borrow().is_empty() {
            let cause = "looked up again";
            return Err(Error::new(ErrorKind::Conflict, "publish", "objects", cause));
        }
        Ok((objects, files.into_keys().collect()))
    }

    /// An object that may be this content, and was stored since that was looked up.
    fn newly_stored(&self, w: &Write, index: usize) -> Result<Option<ObjectId>> {
        for (object, row) in w.object_of(&self.digests[index])? {
            match row.place {
                // Compared where it is.
                Place::Inline if self.is_inline(w, index, object)? => return Ok(None),
                Place::Inline => {}
                _ if !self.is_new_since(index, object) => {}
                Place::Recipe if !self.contents[index].suits(&row) => {}
                Place::Extent { .. } | Place::Recipe => return Ok(Some(object)),
            }
        }
        Ok(None)
    }

    /// Writes the rows of one content that is not stored yet.
    fn store(
        &self,
        w: &mut Write,
        index: usize,
        files: &mut BTreeMap<usize, FileId>,
    ) -> Result<ObjectId> {
        for (object, row) in w.object_of(&self.digests[index])? {
            let is_here = match row.place {
                Place::Inline => self.is_inline(w, index, object)?,
                // A recipe that reads, and is none for what recipes name.
                _ if self.is_new_since(index, object) => continue,
                Place::Extent { .. } | Place::Recipe => false,
            };
            // One that does not give these bytes back gets ours, so that everything that refers to it
            // reads again; where that cannot be, ours stands beside it.
            if is_here || self.heal(w, index, object, &row, files)? {
                return Ok(object);
            }
        }
        let object = w.next_object_id()?;
        let row = self.row(w, index, object, files)?;
        w.put(&object, &row)?;
        if let Place::Extent { file, .. } = row.place {
            count_live(w, file, row.stored_len)?;
        }
        Ok(object)
    }

    /// Whether an object is in the manifest with the bytes of a content.
    fn is_inline(&self, w: &Write, index: usize, object: ObjectId) -> Result<bool> {
        match w.get::<InlineRow>(&object) {
            Ok(Some(inline)) if self.streamed.is_some() => {
                Ok(Digest::of(&inline.bytes) == self.digests[index])
            }
            Ok(inline) => Ok(inline.is_some_and(|row| row.bytes == *self.contents[index].bytes)),
            Err(e) if e.kind() == ErrorKind::Damage => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The row of a content that becomes `object`, and what it needs beside it.
    fn row(
        &self,
        w: &mut Write,
        index: usize,
        object: ObjectId,
        files: &mut BTreeMap<usize, FileId>,
    ) -> Result<ObjectRow> {
        if let Some(row) = self.extent_row(w, index, files)? {
            return Ok(row);
        }
        w.put(&object, &InlineRow { bytes: self.contents[index].bytes.to_vec() })?;
        Ok(self.inline_row(index))
    }

    fn inline_row(&self, index: usize) -> ObjectRow {
        let (digest, len) = (self.digests[index], self.lens[index]);
        ObjectRow { digest, len, stored_len: len, codec: 0, place: Place::Inline }
    }

    /// The row of a content that lies in one of our files; gives that file its id and its row.
    fn extent_row(
        &self,
        w: &mut Write,
        index: usize,
        files: &mut BTreeMap<usize, FileId>,
    ) -> Result<Option<ObjectRow>> {
        let Part::Extent { file, offset, stored_len, codec } = self.parts[index] else {
            return Ok(None);
        };
        let id = match files.get(&file) {
            Some(id) => *id,
            None => {
                let id = w.next_file_id()?;
                files.insert(file, id);
                w.put(&id, &file_row(&self.files[file], w.commit_seq()))?;
                id
            }
        };
        Ok(Some(ObjectRow {
            digest: self.digests[index],
            len: self.lens[index],
            stored_len,
            codec,
            place: Place::Extent { file: id, offset },
        }))
    }

    /// Gives a damaged object our copy of its bytes.
    fn heal(
        &self,
        w: &mut Write,
        index: usize,
        object: ObjectId,
        damaged: &ObjectRow,
        files: &mut BTreeMap<usize, FileId>,
    ) -> Result<bool> {
        if self.lens[index] != damaged.len {
            return Ok(false);
        }
        let ours = match self.extent_row(w, index, files)? {
            Some(ours) => ours,
            None => self.inline_row(index),
        };
        let is_healed = w.heal_object(object, damaged, &ours)?;
        if is_healed && ours.place == Place::Inline {
            w.put(&object, &InlineRow { bytes: self.contents[index].bytes.to_vec() })?;
        }
        Ok(is_healed)
    }

    /// Whether an object was born after this set looked for its content.
    fn is_new_since(&self, index: usize, object: ObjectId) -> bool {
        !self.unreadable[index].contains(&object)
    }
}

/// The row of a file that is just being named: all of its extents are dead until an object enters.
pub(super) fn file_row(built: &Built, sealed: CommitSeq) -> FileRow {
    FileRow {
        digest: built.digest,
        unique: built.unique,
        len: built.len,
        framing: built.framing,
        live: 0,
        dead: built.len.saturating_sub(built.framing),
        state: FileState::Sealed,
        sealed,
    }
}

/// A new object entered `file`: bytes that were dead there are live.
fn count_live(w: &mut Write, file: FileId, bytes: u64) -> Result<()> {
    let mut row = w.require::<FileRow>(&file)?;
    let Some(dead) = row.dead.checked_sub(bytes) else {
        let cause = "its objects take more than its extents";
        return Err(Error::damage("publish", format!("file {file}"), cause));
    };
    row.dead = dead;
    row.live += bytes;
    w.put(&file, &row)
}
