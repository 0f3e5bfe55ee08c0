//! Fetch: an object's bytes, verified. Readers of sealed files are kept open, up to a bound.
//!
//! P6: each byte returned passed the checksum of its block or row. A file that is missing means
//! that the row may have moved on: look again; it is damage only if the row is unchanged.

use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::core::Core;
use crate::digest::Hasher;
use crate::error::{Error, ErrorKind, Result};
use crate::format::footer::CODEC_NONE;
use crate::format::{framed, layout};
use crate::ids::{FileId, ObjectId};
use crate::manifest::{FileRow, InlineRow, ObjectRow, Piece, Place, Reading, RecipeRow, Snapshot};
use crate::sealed::{Expect, Reader, STEP_BYTES, Stored};

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

/// The most bytes that are read at once of pieces, or of compressed content: 1 GiB.
const MADE_BYTES_MAX: u64 = 1 << 30;

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

/// Why bytes did not come.
struct Failed {
    error: Error,
    /// Whether it was the sealed file that was not read, and not a row.
    is_of_file: bool,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, is_of_file: false }
    }
}

impl Failed {
    /// Whether an object of which this was told is as good as none: its bytes are damaged or gone, or the disk
    /// refuses to read them. That rows cannot be read says nothing of it.
    fn is_lost(&self) -> bool {
        match self.error.kind() {
            ErrorKind::Damage | ErrorKind::NotFound => true,
            ErrorKind::Io => self.is_of_file,
            _ => false,
        }
    }
}

fn fetch_part(core: &Core, cache: &FileCache, object: ObjectId, part: &Part) -> Result<Vec<u8>> {
    try_part(core, cache, object, part).map_err(|failed| failed.error)
}

/// As [`fetch_range`]; nothing where they are lost: damaged or gone, or the disk refuses twice to read them.
pub(super) fn fetch_unless_lost(
    core: &Core,
    cache: &FileCache,
    object: ObjectId,
    range: Range<u64>,
) -> Result<Option<Vec<u8>>> {
    match try_part(core, cache, object, &Part::Range(range)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(failed) if failed.is_lost() => Ok(None),
        Err(failed) => Err(failed.error),
    }
}

fn try_part(
    core: &Core,
    cache: &FileCache,
    object: ObjectId,
    part: &Part,
) -> std::result::Result<Vec<u8>, Failed> {
    let mut before: Option<(ObjectId, ObjectRow, Option<FileRow>)> = None;
    loop {
        let snapshot = core.snapshot()?;
        let Some(row) = snapshot.get::<ObjectRow>(&object)? else {
            let cause = "no such object; it may have been retired";
            return Err(Error::new(ErrorKind::NotFound, "fetch", place(object), cause).into());
        };
        let look = Look::new(core, cache, &snapshot, object);
        let error = match look.part(object, &row, part) {
            Ok(bytes) => return Ok(bytes),
            Err(error) => error,
        };
        // Of a recipe it is a piece that may have moved.
        let failed = look.at.get();
        let row = if failed == object { row } else { snapshot.require::<ObjectRow>(&failed)? };
        let file = file_of(&snapshot, failed, &row)?;
        let now = (failed, row, file);
        if before.as_ref() == Some(&now) {
            return Err(Failed { error, is_of_file: look.is_in_file.get() });
        }
        if let Place::Extent { file, .. } = now.1.place {
            cache.forget(file);
        }
        before = Some(now);
    }
}

/// P9: what is asked for may be far longer than what is stored of it, in pieces that repeat and in compressed
/// bytes: at most so much is made of that at once.
fn check_bounded(object: ObjectId, row: &ObjectRow, range: Option<&Range<u64>>) -> Result<()> {
    let len = range.map_or(row.len, |range| range.end.saturating_sub(range.start));
    let is_as_stored = row.codec == CODEC_NONE && row.place != Place::Recipe;
    if is_as_stored || len <= MADE_BYTES_MAX {
        return Ok(());
    }
    let cause =
        format!("{len} bytes, and {MADE_BYTES_MAX} at most are read at once: read it in ranges");
    Err(Error::new(ErrorKind::LimitExceeded, "fetch", place(object), cause))
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

/// Bytes `range` of an object whose rows were kept: they may be gone by now. A recipe has no place of its own:
/// its pieces are kept one by one.
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
            reader.read_raw(&stored(row, offset), range)
        }
        (KeptAt::Inline(bytes), _) => read_inline(object, row, bytes, range),
        (KeptAt::File(..), Place::Inline | Place::Recipe) => {
            Err(Error::damage("fetch", place(object), "its row has no place in a file"))
        }
    }
}

/// The extent of an object in a file.
pub(crate) fn stored(row: &ObjectRow, offset: u64) -> Stored {
    Stored { offset, stored_len: row.stored_len, len: row.len, codec: row.codec }
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
    if row.codec > framed::CODEC {
        let cause = format!("its bytes have codec {}, which this release does not know", row.codec);
        return Err(Error::new(ErrorKind::NewerFormat, "fetch", place(object), cause));
    }
    if row.codec == CODEC_NONE && row.stored_len != row.len && row.place != Place::Recipe {
        return Err(Error::damage("fetch", place(object), "it is stored raw in another length"));
    }
    Ok(())
}

/// Bytes `range` of an object that lies in the manifest.
fn read_inline(
    object: ObjectId,
    row: &ObjectRow,
    stored: &[u8],
    range: &Range<u64>,
) -> Result<Vec<u8>> {
    if stored.len() as u64 != row.stored_len {
        return Err(Error::damage("fetch", place(object), "its inline row is too short"));
    }
    let part = |range: &Range<u64>| {
        let bytes = stored.get(range.start as usize..range.end as usize).map(<[u8]>::to_vec);
        bytes.ok_or_else(|| Error::damage("fetch", place(object), "its inline row is too short"))
    };
    match row.codec {
        CODEC_NONE => part(range),
        _ => framed::read_range(row.stored_len, row.len, range, &mut |stored| part(&stored))
            .map_err(|e| Error::new(e.kind(), "fetch", place(object), e.cause())),
    }
}

/// Reads objects as the rows of one snapshot have them.
struct Look<'l> {
    core: &'l Core,
    cache: &'l FileCache,
    snapshot: &'l Snapshot,
    /// The object whose bytes are being read: of a recipe, its piece.
    at: Cell<ObjectId>,
    /// Whether a sealed file is being read.
    is_in_file: Cell<bool>,
}

impl<'l> Look<'l> {
    fn new(core: &'l Core, cache: &'l FileCache, snapshot: &'l Snapshot, object: ObjectId) -> Self {
        Self { core, cache, snapshot, at: Cell::new(object), is_in_file: Cell::new(false) }
    }

    fn part(&self, object: ObjectId, row: &ObjectRow, part: &Part) -> Result<Vec<u8>> {
        let range = match part {
            Part::Whole => None,
            Part::Range(range) | Part::SelfChecked(range) => Some(range),
        };
        check_plain(object, row, range)?;
        check_bounded(object, row, range)?;
        match row.place {
            Place::Inline => {
                let Some(inline) = self.snapshot.get::<InlineRow>(&object)? else {
                    return Err(Error::damage("fetch", place(object), "its inline row is missing"));
                };
                match range {
                    None if row.codec == CODEC_NONE && inline.bytes.len() as u64 == row.len => {
                        Ok(inline.bytes)
                    }
                    range => {
                        let whole = 0..row.len;
                        read_inline(object, row, &inline.bytes, range.unwrap_or(&whole))
                    }
                }
            }
            Place::Extent { file, offset } => {
                let Some(file_row) = file_of(self.snapshot, object, row)? else {
                    return Err(Error::damage("fetch", place(object), "it has no file"));
                };
                self.is_in_file.set(true);
                let reader = self.cache.get(self.core, file, &file_row).map_err(missing)?;
                let bytes = match part {
                    Part::SelfChecked(range) if row.codec == CODEC_NONE => {
                        reader.read_unchecked(offset, row.stored_len, range.clone())?
                    }
                    _ => {
                        let whole = 0..row.len;
                        reader.read_raw(&stored(row, offset), range.unwrap_or(&whole))?
                    }
                };
                self.is_in_file.set(false);
                Ok(bytes)
            }
            Place::Recipe => self.recipe(object, row, range, part),
        }
    }

    /// Bytes of an object that consists of others. Of its rows one is held at a time.
    fn recipe(
        &self,
        object: ObjectId,
        row: &ObjectRow,
        range: Option<&Range<u64>>,
        part: &Part,
    ) -> Result<Vec<u8>> {
        let range = range.cloned().unwrap_or(0..row.len);
        let mut bytes = Vec::new();
        let damage = |cause: String| Err(Error::damage("fetch", place(object), cause));
        let mut at = range.start;
        while at < range.end {
            let found = self.snapshot.last::<RecipeRow>((object, 0)..=(object, at))?;
            let Some(((_, begins), recipe)) = found else {
                return damage("its recipe has no first row".to_owned());
            };
            let (before, mut begins) = (at, begins);
            for piece in &recipe.pieces {
                let end = begins.saturating_add(piece.len);
                let to = range.end.min(end);
                if at < to {
                    let inner = at - begins..to - begins;
                    let wanted = match part {
                        Part::SelfChecked(_) => Part::SelfChecked(inner),
                        _ => Part::Range(inner),
                    };
                    bytes.extend(self.piece(object, piece, &wanted)?);
                    at = to;
                }
                begins = end;
            }
            if at == before {
                return damage(format!("byte {at} of it is in none of its pieces"));
            }
        }
        Ok(bytes)
    }

    fn piece(&self, whole: ObjectId, piece: &Piece, wanted: &Part) -> Result<Vec<u8>> {
        let row = self.snapshot.get::<ObjectRow>(&piece.object)?;
        match row {
            Some(row) if row.place != Place::Recipe && row.len == piece.len => {
                self.at.set(piece.object);
                let bytes = self.part(piece.object, &row, wanted)?;
                self.at.set(whole);
                Ok(bytes)
            }
            _ => {
                let cause = format!("object {} is no piece of it", piece.object);
                Err(Error::damage("fetch", place(whole), cause))
            }
        }
    }
}

/// A file that a row names and that is not there is damage, not an error of the disk.
fn missing(error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return Error::damage("fetch", error.place(), "the file is missing");
    }
    error
}

/// Whether a stored object gives back exactly `bytes`; no more of it is held than a step. Damage means no, and
/// so does a disk that refuses its file twice; that a row cannot be read is an error.
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
    let look = Look::new(core, cache, snapshot, object);
    let mut at = 0;
    for step in bytes.chunks(STEP_BYTES as usize) {
        let part = Part::Range(at..at + step.len() as u64);
        let read = match look.part(object, row, &part) {
            Err(e) if e.kind() == ErrorKind::Io && look.is_in_file.get() => {
                look.is_in_file.set(false);
                look.part(object, row, &part)
            }
            read => read,
        };
        match read {
            Ok(stored) if stored == step => at += step.len() as u64,
            Ok(_) => return Ok(false),
            Err(error) => {
                let failed = Failed { error, is_of_file: look.is_in_file.get() };
                return if failed.is_lost() { Ok(false) } else { Err(failed.error) };
            }
        }
    }
    Ok(true)
}

/// Compares an object with its digest, in steps. Of compressed ones a step is a frame.
///
/// # Errors
/// `Damage` where it does not read or is another.
pub(super) fn verify_object(core: &Core, cache: &FileCache, object: ObjectId) -> Result<()> {
    let Some(row) = core.snapshot()?.get::<ObjectRow>(&object)? else { return Ok(()) };
    let (mut hasher, mut at) = (Hasher::default(), 0);
    while at < row.len {
        let end = at.saturating_add(STEP_BYTES).min(row.len);
        hasher.update(&fetch_range(core, cache, object, at..end)?);
        at = end;
    }
    match hasher.finish() == row.digest {
        true => Ok(()),
        false => {
            let cause = "its bytes have another digest than its row says";
            Err(Error::damage("verify", place(object), cause))
        }
    }
}
