//! Pin: what a view of this process reads stays where it is, also when its rows are gone meanwhile.
//!
//! ```text
//!   [pin]: nothing is unlinked --- [keep] what the view names, [narrow] ---> the files of those stay
//!                                                                  \--- dropped: reclaim goes on
//! ```
//! A pin is in memory alone: it reaches no other process, and ends with this one. Where another one
//! writes, what it reclaims meanwhile is a typed error here, and never another object's bytes.
//!
//! Its memory is bounded by the number of objects, not by their pieces: see `pin_recipe`.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::append::{JOURNAL_LEASES, stream_of_payload};
use super::fetch;
use super::pin_recipe::{KeptRecipe, PieceTold, Run};
use super::store::Store;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{FileId, LeaseId, ObjectId, StreamId};
use crate::journal::Payload;
use crate::manifest::{FileRow, InlineRow, LeaseRow, ObjectRow, Place, Reading, Snapshot};
use crate::protection::Protection;

/// Which files of this process's store may not be unlinked.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pinned: Mutex<Pinned>,
}

#[derive(Debug, Default)]
struct Pinned {
    /// Pins that have not told yet what they need.
    wide: u64,
    /// How many pins need a file.
    files: BTreeMap<FileId, u64>,
}

impl Pins {
    /// Whether `file` may be unlinked.
    pub(super) fn allow(&self, file: FileId) -> bool {
        let pinned = self.pinned.lock();
        (pinned.wide == 0 && !pinned.files.contains_key(&file)) || !Protection::PinHolds.is_on()
    }
}

/// Where the bytes of an object were.
#[derive(Debug)]
struct Kept {
    row: ObjectRow,
    /// Its file, its bytes, or its pieces.
    at: At,
}

#[derive(Debug)]
enum At {
    File(FileId, FileRow),
    Inline(Vec<u8>),
    Recipe(KeptRecipe),
}

/// While it stands, reclaim and compaction of this process unlink no file that it needs.
#[derive(Debug)]
pub(crate) struct Pin {
    store: Store,
    kept: Mutex<BTreeMap<ObjectId, Arc<Kept>>>,
    is_wide: Mutex<bool>,
}

impl Store {
    /// Pins every file that stands. Take it before the snapshot whose objects are to be kept, and narrow
    /// it once they are: until then nothing is given back.
    pub(crate) fn pin(&self) -> Pin {
        self.core().pins.pinned.lock().wide += 1;
        Pin { store: self.clone(), kept: Mutex::default(), is_wide: Mutex::new(true) }
    }
}

impl Pin {
    /// Whose bytes it keeps.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The digest of an object that it keeps.
    pub(crate) fn digest_of(&self, object: ObjectId) -> Option<Digest> {
        self.kept.lock().get(&object).map(|kept| kept.row.digest)
    }

    /// The length of an object that it keeps.
    pub(crate) fn len_of(&self, object: ObjectId) -> Option<u64> {
        self.kept.lock().get(&object).map(|kept| kept.row.len)
    }

    /// Where the bytes of an object that it keeps are, or what it is; for messages.
    pub(crate) fn place_of(&self, object: ObjectId) -> String {
        let kept = self.kept.lock().get(&object).cloned();
        match kept.as_deref() {
            Some(Kept {
                row: ObjectRow { place: Place::Extent { offset, .. }, .. },
                at: At::File(_, file),
            }) => {
                let core = self.store.core();
                let folders = core.manifest.meta().sealed_folders;
                let path = layout::sealed(&core.root, &file.digest, file.unique, folders);
                format!("{} at {offset}", path.display())
            }
            _ => format!("object {object}"),
        }
    }

    /// Keeps `objects`, as the rows of `snapshot` have them.
    ///
    /// # Errors
    /// `NotFound` for an object without a row; `Damage` for a row that does not read; `Conflict` for one
    /// that was retired after the snapshot was taken, and whose pieces are too many to be kept one by one.
    pub(crate) fn keep(
        &self,
        snapshot: &Snapshot,
        objects: impl IntoIterator<Item = ObjectId>,
    ) -> Result<()> {
        let mut kept = self.kept.lock();
        for object in objects {
            if kept.contains_key(&object) {
                continue;
            }
            let Some(row) = snapshot.get::<ObjectRow>(&object)? else {
                let (place, cause) = (format!("object {object}"), "no such object");
                return Err(Error::new(ErrorKind::NotFound, "read", place, cause));
            };
            let at = match row.place {
                Place::Inline => At::Inline(snapshot.require::<InlineRow>(&object)?.bytes),
                Place::Recipe => At::Recipe(KeptRecipe::keep(&self.store, snapshot, object, &row)?),
                Place::Extent { file, .. } => {
                    let file_row = snapshot.require::<FileRow>(&file)?;
                    *self.store.core().pins.pinned.lock().files.entry(file).or_default() += 1;
                    At::File(file, file_row)
                }
            };
            kept.insert(object, Arc::new(Kept { row, at }));
        }
        Ok(())
    }

    /// Keeps the large payloads of the unsealed records of `streams`.
    ///
    /// # Errors
    /// As [`Pin::keep`].
    pub(crate) fn keep_payloads(&self, snapshot: &Snapshot, streams: &[StreamId]) -> Result<()> {
        for (_, row) in snapshot.list::<LeaseRow>(LeaseId(JOURNAL_LEASES).., usize::MAX)? {
            if stream_of_payload(&row).is_some_and(|stream| streams.contains(&stream)) {
                self.keep(snapshot, row.objects)?;
            }
        }
        Ok(())
    }

    /// Everything that is needed is kept: all other files may go.
    pub(crate) fn narrow(&self) {
        let mut is_wide = self.is_wide.lock();
        if std::mem::take(&mut *is_wide) {
            self.store.core().pins.pinned.lock().wide -= 1;
        }
    }

    /// An object's bytes, verified.
    ///
    /// # Errors
    /// As [`Pin::fetch_range`].
    pub(crate) fn fetch(&self, object: ObjectId) -> Result<Vec<u8>> {
        let len = self.kept.lock().get(&object).map(|kept| kept.row.len);
        match len {
            Some(len) => self.fetch_range(object, 0..len),
            None => self.store.fetch(object),
        }
    }

    /// Bytes `range` of an object, verified; of one that was kept as its rows were then.
    ///
    /// # Errors
    /// `Invalid` for a range beyond its end; `Damage`; `Conflict` when another process gave them back
    /// meanwhile: take a fresh view.
    pub(crate) fn fetch_range(&self, object: ObjectId, range: Range<u64>) -> Result<Vec<u8>> {
        self.fetch_run(object, range, &mut Run::default())
    }

    /// As [`Pin::fetch_range`]; `run` is what the last call left of a recipe's pieces, for those who read
    /// on.
    pub(crate) fn fetch_run(
        &self,
        object: ObjectId,
        range: Range<u64>,
        run: &mut Run,
    ) -> Result<Vec<u8>> {
        let Some(kept) = self.kept.lock().get(&object).cloned() else {
            return self.store.fetch_range(object, range);
        };
        let (core, files) = (self.store.core(), self.store.files());
        core.check_read("read")?;
        let (row, at) = (&kept.row, &kept.at);
        let read = match at {
            At::File(file, file_row) => {
                let at = fetch::KeptAt::File(*file, file_row);
                fetch::fetch_kept(core, files, object, row, &at, &range)
            }
            At::Inline(bytes) => {
                fetch::fetch_kept(core, files, object, row, &fetch::KeptAt::Inline(bytes), &range)
            }
            At::Recipe(recipe) => {
                fetch::check_range(object, row, &range)?;
                recipe.read(&self.store, object, &range, run)
            }
        };
        let failed = match read {
            Err(e) if e.kind() == ErrorKind::Damage => e,
            // A sector that the disk refuses: the same content may have been stored again.
            Err(e) if e.kind() == ErrorKind::Io => {
                return self.fetch_twin(object, row, range).ok_or(e);
            }
            done => return done,
        };
        if let At::File(file, _) = at {
            files.forget(*file);
        }
        match self.store.fetch_range(object, range.clone()) {
            Err(e) if e.kind() == ErrorKind::NotFound && is_alone(&self.store) => {
                self.fetch_twin(object, row, range).ok_or(failed)
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                match self.fetch_twin(object, row, range) {
                    Some(bytes) => Ok(bytes),
                    None => Err(given_back(object).with_source(failed)),
                }
            }
            Err(e) if matches!(e.kind(), ErrorKind::Damage | ErrorKind::Io) => {
                self.fetch_twin(object, row, range).ok_or(e)
            }
            done => done,
        }
    }

    /// The piece of a recipe that begins at byte `at`; `None` of an object that is none.
    ///
    /// # Errors
    /// As [`Pin::fetch_range`].
    pub(crate) fn piece_at(
        &self,
        object: ObjectId,
        at: u64,
        run: &mut Run,
    ) -> Result<Option<PieceTold>> {
        let kept = self.kept.lock().get(&object).cloned();
        match kept.as_deref() {
            Some(Kept { at: At::Recipe(recipe), .. }) => {
                recipe.piece_at(&self.store, object, at, run)
            }
            _ => Ok(None),
        }
    }

    /// The same bytes of another object with the same digest: content that did not read may have been
    /// stored again.
    fn fetch_twin(&self, object: ObjectId, row: &ObjectRow, range: Range<u64>) -> Option<Vec<u8>> {
        let pin = self.store.pin();
        let mut twins = self.store.snapshot().ok()?.object_of(&row.digest).ok()?;
        twins.retain(|(twin, other)| *twin != object && other.len == row.len);
        // The last one was stored when those before it did not read.
        let mut read = twins.into_iter().rev();
        let read = read.find_map(|(twin, _)| self.store.fetch_range(twin, range.clone()).ok());
        drop(pin);
        read
    }

    /// The bytes of an unsealed record whose payload was kept, or is in memory.
    ///
    /// # Errors
    /// As [`Pin::fetch_range`].
    pub(crate) fn payload_bytes(&self, payload: &Payload) -> Result<Vec<u8>> {
        let Payload::Object { digest, .. } = payload else {
            return self.store.payload_bytes(payload);
        };
        match self.object_of(digest) {
            Some(object) => self.fetch(object),
            None => self.store.payload_bytes(payload),
        }
    }

    /// The first bytes of an unsealed record, at most `len_max` of them.
    ///
    /// # Errors
    /// As [`Pin::fetch_range`].
    pub(crate) fn payload_beginning(&self, payload: &Payload, len_max: u64) -> Result<Vec<u8>> {
        if let Payload::Object { digest, len } = payload
            && let Some(object) = self.object_of(digest)
        {
            return self.fetch_range(object, 0..len_max.min(*len));
        }
        let mut bytes = self.payload_bytes(payload)?;
        bytes.truncate(usize::try_from(len_max).unwrap_or(usize::MAX));
        Ok(bytes)
    }

    fn object_of(&self, digest: &Digest) -> Option<ObjectId> {
        let kept = self.kept.lock();
        kept.iter().find(|(_, kept)| kept.row.digest == *digest).map(|(object, _)| *object)
    }
}

/// Whether no other process gives anything back.
pub(super) fn is_alone(store: &Store) -> bool {
    store.inner.writer.is_some() && !store.is_shared()
}

/// What is said of something that another process retired under its reader.
pub(super) fn given_back(object: ObjectId) -> Error {
    let cause = "another process gave it back meanwhile; take a fresh view";
    Error::new(ErrorKind::Conflict, "read", format!("object {object}"), cause)
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.narrow();
        let mut pinned = self.store.core().pins.pinned.lock();
        for kept in self.kept.get_mut().values() {
            let At::File(file, _) = &kept.at else { continue };
            if let Some(count) = pinned.files.get_mut(file) {
                *count -= 1;
                if *count == 0 {
                    pinned.files.remove(file);
                }
            }
        }
    }
}
