//! Fetch: an object's bytes, verified. Readers of sealed files are kept open, up to a bound.
//!
//! P6: each byte returned passed the checksum of its block or row. A file that is missing means
//! that the row may have moved on: look again; it is damage only if the row is unchanged.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{FileId, ObjectId};
use crate::manifest::{FileRow, InlineRow, ObjectRow, Place, Reading, RecipeRow, Snapshot};
use crate::sealed::{Expect, Reader};

/// Sealed files kept open for reading: also the bound on their descriptors.
pub const OPEN_FILES_MAX: usize = 64;

/// Sealed files that are open, the most recently used last.
#[derive(Debug, Default)]
pub(crate) struct FileCache {
    open: Mutex<VecDeque<(FileId, Arc<Reader>)>>,
}

impl FileCache {
    fn get(&self, core: &Core, id: FileId, row: &FileRow) -> Result<Arc<Reader>> {
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(known, _)| *known == id)
            && let Some(found) = open.remove(at)
        {
            let reader = Arc::clone(&found.1);
            open.push_back(found);
            return Ok(reader);
        }
        drop(open);
        let folders = core.manifest.meta().sealed_folders;
        let path = layout::sealed(&core.root, &row.digest, row.unique, folders);
        let store = Some(core.manifest.meta().store);
        let expect = Expect { len: Some(row.len), digest: Some(row.digest), store };
        let reader = Arc::new(Reader::open(&core.disk, &path, &expect)?);
        let mut open = self.open.lock();
        if open.len() >= OPEN_FILES_MAX {
            open.pop_front();
        }
        open.push_back((id, Arc::clone(&reader)));
        Ok(reader)
    }

    /// Closes a file that is about to go.
    pub(crate) fn forget(&self, id: FileId) {
        self.open.lock().retain(|(known, _)| *known != id);
    }
}

/// What to read of an object.
#[derive(Debug, Clone)]
enum Part {
    Whole,
    Range(Range<u64>),
    /// As a range, of content that checks itself: the checksums of its blocks are not read.
    SelfChecked(Range<u64>),
}

/// The whole of an object.
pub(crate) fn fetch(core: &Core, cache: &FileCache, object: ObjectId) -> Result<Vec<u8>> {
    fetch_part(core, cache, object, &Part::Whole)
}

/// Bytes `range` of an object; only the blocks that hold them are read.
pub(crate) fn fetch_range(
    core: &Core,
    cache: &FileCache,
    object: ObjectId,
    range: Range<u64>,
) -> Result<Vec<u8>> {
    fetch_part(core, cache, object, &Part::Range(range))
}

/// Bytes `range` of an object whose content checks itself, and no others are read. P6: whoever calls
/// this passes nothing on that did not pass a checksum inside the content.
pub(crate) fn fetch_self_checked(
    core: &Core,
    cache: &FileCache,
    object: ObjectId,
    range: Range<u64>,
) -> Result<Vec<u8>> {
    fetch_part(core, cache, object, &Part::SelfChecked(range))
}

fn fetch_part(core: &Core, cache: &FileCache, object: ObjectId, part: &Part) -> Result<Vec<u8>> {
    let mut before: Option<(ObjectRow, Option<FileRow>)> = None;
    loop {
        let snapshot = core.snapshot()?;
        let Some(row) = snapshot.get::<ObjectRow>(&object)? else {
            let cause = "no such object; it may have been retired";
            return Err(Error::new(ErrorKind::NotFound, "fetch", place(object), cause));
        };
        let error = match read_part(core, cache, &snapshot, object, &row, part) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => error,
        };
        let file = file_of(&snapshot, object, &row)?;
        let now = (row, file);
        if before.as_ref() == Some(&now) {
            return Err(error);
        }
        if let Place::Extent { file, .. } = now.0.place {
            cache.forget(file);
        }
        before = Some(now);
    }
}

fn place(object: ObjectId) -> String {
    format!("object {object}")
}

fn file_of(snapshot: &Snapshot, object: ObjectId, row: &ObjectRow) -> Result<Option<FileRow>> {
    let Place::Extent { file, .. } = row.place else { return Ok(None) };
    match snapshot.get::<FileRow>(&file)? {
        Some(row) => Ok(Some(row)),
        None => Err(Error::damage("fetch", place(object), format!("file {file} has no row"))),
    }
}

/// Where the bytes of an object were when they were kept.
pub(super) enum KeptAt<'a> {
    File(FileId, &'a FileRow),
    Inline(&'a [u8]),
}

/// Bytes `range` of an object whose rows were kept: they may be gone by now.
pub(super) fn fetch_kept(
    core: &Core,
    cache: &FileCache,
    object: ObjectId,
    row: &ObjectRow,
    at: &KeptAt<'_>,
    range: &Range<u64>,
) -> Result<Vec<u8>> {
    check_plain(object, row, Some(range))?;
    match (at, row.place) {
        (KeptAt::File(file, file_row), Place::Extent { offset, .. }) => {
            let reader = cache.get(core, *file, file_row).map_err(missing)?;
            reader.read_range(offset, row.stored_len, range.clone())
        }
        (KeptAt::Inline(bytes), _) => {
            let held = bytes.get(range.start as usize..range.end as usize).map(<[u8]>::to_vec);
            held.ok_or_else(|| Error::damage("fetch", place(object), "its inline row is too short"))
        }
        (KeptAt::File(..), Place::Inline | Place::Recipe) => {
            Err(Error::damage("fetch", place(object), "its row has no place in a file"))
        }
    }
}

/// The range must be one of the object.
pub(super) fn check_range(object: ObjectId, row: &ObjectRow, range: &Range<u64>) -> Result<()> {
    if range.start > range.end || range.end > row.len {
        let cause = format!("bytes {}..{} of {} were asked for", range.start, range.end, row.len);
        return Err(Error::invalid("fetch", place(object), cause));
    }
    Ok(())
}

/// What must be so of a row and of the range that is asked for.
fn check_plain(object: ObjectId, row: &ObjectRow, range: Option<&Range<u64>>) -> Result<()> {
    if let Some(range) = range {
        check_range(object, row, range)?;
    }
    if row.codec != 0 {
        let cause = format!("its bytes have codec {}, which this release does not know", row.codec);
        return Err(Error::new(ErrorKind::NewerFormat, "fetch", place(object), cause));
    }
    if row.stored_len != row.len && row.place != Place::Recipe {
        return Err(Error::damage("fetch", place(object), "it is stored raw in another length"));
    }
    Ok(())
}

fn read_part(
    core: &Core,
    cache: &FileCache,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &ObjectRow,
    part: &Part,
) -> Result<Vec<u8>> {
    let range = match part {
        Part::Whole => None,
        Part::Range(range) | Part::SelfChecked(range) => Some(range),
    };
    check_plain(object, row, range)?;
    match row.place {
        Place::Inline => {
            let Some(inline) = snapshot.get::<InlineRow>(&object)? else {
                return Err(Error::damage("fetch", place(object), "its inline row is missing"));
            };
            if inline.bytes.len() as u64 != row.len {
                return Err(Error::damage("fetch", place(object), "its inline row is too short"));
            }
            match part {
                Part::Whole => Ok(inline.bytes),
                Part::Range(r) | Part::SelfChecked(r) => {
                    Ok(inline.bytes[r.start as usize..r.end as usize].to_vec())
                }
            }
        }
        Place::Extent { file, offset } => {
            let Some(file_row) = file_of(snapshot, object, row)? else {
                return Err(Error::damage("fetch", place(object), "it has no file"));
            };
            let reader = cache.get(core, file, &file_row).map_err(missing)?;
            match part {
                Part::Whole => reader.read(offset, row.stored_len),
                Part::Range(range) => reader.read_range(offset, row.stored_len, range.clone()),
                Part::SelfChecked(range) => {
                    reader.read_unchecked(offset, row.stored_len, range.clone())
                }
            }
        }
        Place::Recipe => read_recipe(core, cache, snapshot, object, row, range),
    }
}

/// Bytes of an object that consists of others.
fn read_recipe(
    core: &Core,
    cache: &FileCache,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &ObjectRow,
    range: Option<&Range<u64>>,
) -> Result<Vec<u8>> {
    let range = range.cloned().unwrap_or(0..row.len);
    let mut bytes = Vec::new();
    if range.is_empty() {
        return Ok(bytes);
    }
    let damage = |cause: String| Err(Error::damage("fetch", place(object), cause));
    let Some((first, _)) = snapshot.last::<RecipeRow>((object, 0)..=(object, range.start))? else {
        return damage("its recipe has no first row".to_owned());
    };
    let mut at = first.1;
    for ((_, begins), recipe) in
        snapshot.list::<RecipeRow>(first..=(object, range.end), usize::MAX)?
    {
        if begins != at {
            return damage(format!("byte {at} of it is in none of its pieces"));
        }
        for piece in &recipe.pieces {
            let (from, to) = (range.start.max(at), range.end.min(at.saturating_add(piece.len)));
            if from < to {
                let of = snapshot.require::<ObjectRow>(&piece.object)?;
                if of.place == Place::Recipe || of.len != piece.len {
                    return damage(format!("object {} is no piece of it", piece.object));
                }
                let wanted = Part::Range(from - at..to - at);
                bytes.extend(read_part(core, cache, snapshot, piece.object, &of, &wanted)?);
            }
            at = at.saturating_add(piece.len);
        }
    }
    match bytes.len() as u64 == range.end - range.start {
        true => Ok(bytes),
        false => damage(format!("byte {at} of it is in none of its pieces")),
    }
}

/// A file that a row names and that is not there is damage, not an error of the disk.
fn missing(error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return Error::damage("fetch", error.place(), "the file is missing");
    }
    error
}

/// Whether a stored object gives back exactly `bytes`. Damage means no; an error of the disk is
/// an error.
pub(super) fn holds(
    core: &Core,
    cache: &FileCache,
    snapshot: &Snapshot,
    object: ObjectId,
    row: &ObjectRow,
    bytes: &[u8],
) -> Result<bool> {
    if row.len != bytes.len() as u64 {
        return Ok(false);
    }
    match read_part(core, cache, snapshot, object, row, &Part::Whole) {
        Ok(stored) => Ok(stored == bytes),
        Err(e) if e.kind() == ErrorKind::Damage => Ok(false),
        Err(e) => Err(e),
    }
}
