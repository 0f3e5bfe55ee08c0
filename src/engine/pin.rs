//! Pin: what a view of this process reads stays where it is, also when its rows are gone meanwhile.
//!
//! ```text
//!   [pin]: nothing is unlinked --- [keep] what the view names, [narrow] ---> the files of those stay
//!                                                                  \--- dropped: reclaim goes on
//! ```
//! A pin is in memory alone: it reaches no other process, and ends with this one. Where another one
//! writes, what it reclaims meanwhile is a typed error here, and never another object's bytes.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;

use super::append::{JOURNAL_LEASES, stream_of_payload};
use super::fetch;
use super::store::Store;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
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
#[derive(Debug, Clone)]
struct Kept {
    row: ObjectRow,
    /// Its file, or its bytes.
    at: At,
}

#[derive(Debug, Clone)]
enum At {
    File(FileId, FileRow),
    Inline(Vec<u8>),
}

/// While it stands, reclaim and compaction of this process unlink no file that it needs.
#[derive(Debug)]
pub(crate) struct Pin {
    store: Store,
    kept: Mutex<BTreeMap<ObjectId, Kept>>,
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

    /// Keeps `objects`, as the rows of `snapshot` have them.
    ///
    /// # Errors
    /// `NotFound` for an object without a row; `Damage` for a row that does not read.
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
                Place::Recipe => {
                    let (place, cause) = (format!("object {object}"), "it consists of others");
                    return Err(Error::new(ErrorKind::Unsupported, "read", place, cause));
                }
                Place::Extent { file, .. } => {
                    let file_row = snapshot.require::<FileRow>(&file)?;
                    *self.store.core().pins.pinned.lock().files.entry(file).or_default() += 1;
                    At::File(file, file_row)
                }
            };
            kept.insert(object, Kept { row, at });
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
        let Some(kept) = self.kept.lock().get(&object).cloned() else {
            return self.store.fetch_range(object, range);
        };
        let (core, files) = (self.store.core(), self.store.files());
        core.check_read("read")?;
        let failed =
            match fetch::fetch_kept(core, files, object, &kept.row, &kept.at.rows(), &range) {
                Err(e) if e.kind() == ErrorKind::Damage => e,
                done => return done,
            };
        if let At::File(file, _) = kept.at {
            files.forget(file);
        }
        match self.store.fetch_range(object, range) {
            Err(e) if e.kind() == ErrorKind::NotFound && self.is_alone() => Err(failed),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let cause = "another process gave it back meanwhile; take a fresh view";
                let place = format!("object {object}");
                Err(Error::new(ErrorKind::Conflict, "read", place, cause).with_source(failed))
            }
            done => done,
        }
    }

    /// Whether no other process gives anything back.
    fn is_alone(&self) -> bool {
        self.store.inner.writer.is_some() && !self.store.is_shared()
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

impl At {
    fn rows(&self) -> fetch::KeptAt<'_> {
        match self {
            Self::File(file, row) => fetch::KeptAt::File(*file, row),
            Self::Inline(bytes) => fetch::KeptAt::Inline(bytes),
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.narrow();
        let mut pinned = self.store.core().pins.pinned.lock();
        for kept in self.kept.get_mut().values() {
            let At::File(file, _) = kept.at else { continue };
            if let Some(count) = pinned.files.get_mut(&file) {
                *count -= 1;
                if *count == 0 {
                    pinned.files.remove(&file);
                }
            }
        }
    }
}
