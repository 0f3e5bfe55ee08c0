//! Scrub: reads sealed files from the medium, a budget at a time, and compares each object with its digest.
//!
//! ```text
//!   no row --- [scrub] ---> how far it came, which files are damaged --- [scrub] ---> ...
//!          <--- the last file was read, none is damaged ---/   \--- damaged: the row stays until the
//!                                                                  next pass begins
//! ```
//! Nothing is changed but that row: what does not read is told, and left where it is (P7).

use std::path::{Path, PathBuf};

use super::store::Store;
use super::why::Keeper;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{FileId, ObjectId};
use crate::manifest::{FileObjectRow, FileRow, FileState, ObjectRow, Place, Reading, ScrubRow};
use crate::sealed::{Expect, Reader};
use crate::vfs::Step;

/// The key of the one row.
const PASS: u64 = 0;
/// Bytes of an object that are read at a time.
const READ_BYTES: u64 = 1 << 20;
/// Damaged files that the row tells.
const DAMAGED_MAX: usize = 1000;
/// Objects that one finding names.
const OBJECTS_MAX: usize = 64;
/// Where a pass is that came to its end.
const BEHIND_ALL: FileId = FileId(u64::MAX);

/// How much one call of [`Store::scrub`] may do.
#[derive(Debug, Clone, Copy)]
pub struct ScrubBudget {
    /// Bytes of files that are read at most; the last file may pass it.
    pub bytes: u64,
}

impl Default for ScrubBudget {
    fn default() -> Self {
        Self { bytes: 1 << 30 }
    }
}

/// What a scrub found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Scrubbed {
    /// Files that this call read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What this call found.
    pub findings: Vec<ScrubFinding>,
    /// Files in which something did not read, in the whole pass so far; at most 1,000 of them.
    pub damaged: Vec<FileId>,
    /// Whether the pass came to its end: the next call begins another one.
    pub is_done: bool,
}

/// A file in which something does not read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScrubFinding {
    /// Which.
    pub file: FileId,
    /// What did not read, with path and offset.
    pub error: Error,
    /// The objects that do not read, at most 64 of them; none where only bytes are concerned that belong to
    /// no object that stands.
    pub objects: Vec<(ObjectId, Digest)>,
    /// Names and others that lose by it.
    pub losers: Vec<Keeper>,
}

impl Store {
    /// Reads sealed files, from where the last call ended, until the budget's bytes are read: every object
    /// in them against the checksums of its blocks and its digest, then the whole file against its own.
    ///
    /// # Errors
    /// `Io` when the disk refuses something else than to read a sealed file; as [`Store::transact`]. Damage is
    /// no error here, but a finding, and so is a sector that the disk does not read.
    ///
    /// # Durability
    /// How far it came is *durable* when it returns.
    pub fn scrub(&self, budget: ScrubBudget) -> Result<Scrubbed> {
        self.writer("scrub")?;
        self.core().check_write("scrub")?;
        let stands = self.snapshot()?.get::<ScrubRow>(&PASS)?;
        let began = self.core().disk.wall_nanos();
        let fresh = ScrubRow { after: FileId(0), began, files: 0, bytes: 0, damaged: Vec::new() };
        let mut row = stands.filter(|row| row.after != BEHIND_ALL).unwrap_or(fresh);
        let mut done = Scrubbed::default();
        while done.bytes < budget.bytes.max(1) {
            let Some((file, of)) = self.next_sealed(row.after)? else {
                done.is_done = true;
                break;
            };
            row.after = file;
            let found = self.scrub_file(file, &of)?;
            done.files += 1;
            done.bytes = done.bytes.saturating_add(of.len);
            let Some(finding) = found else { continue };
            if row.damaged.len() < DAMAGED_MAX {
                row.damaged.push(file);
            }
            done.findings.push(finding);
        }
        row.files = row.files.saturating_add(done.files);
        row.bytes = row.bytes.saturating_add(done.bytes);
        done.damaged.clone_from(&row.damaged);
        if done.is_done {
            row.after = BEHIND_ALL;
        }
        self.transact(Step::ScrubCommit, |w| match done.is_done && row.damaged.is_empty() {
            true => w.remove::<ScrubRow>(&PASS).map(drop),
            false => w.put(&PASS, &row),
        })?;
        Ok(done)
    }

    fn next_sealed(&self, after: FileId) -> Result<Option<(FileId, FileRow)>> {
        let snapshot = self.snapshot()?;
        let mut from = after;
        while let Some(next) = from.next() {
            let Some((file, row)) = snapshot.list::<FileRow>(next.., 1)?.pop() else { break };
            if row.state == FileState::Sealed {
                return Ok(Some((file, row)));
            }
            from = file;
        }
        Ok(None)
    }

    /// What does not read in a file, if anything does not, and the file is what it was when that is told.
    fn scrub_file(&self, file: FileId, row: &FileRow) -> Result<Option<ScrubFinding>> {
        let found = match self.open_from_medium(row) {
            Ok(reader) => self.scrub_objects(file, row, &reader)?,
            Err(e) if is_damage(&e, &self.sealed_path(row)) => {
                let objects = self.objects_in(file)?.into_iter().map(|(o, row)| (o, row.digest));
                Some((e, objects.collect()))
            }
            Err(e) => return Err(e),
        };
        let Some((error, mut objects)) = found else { return Ok(None) };
        // It may have been rewritten or given back under our hands.
        let now = self.snapshot()?.get::<FileRow>(&file)?;
        if now.is_none_or(|now| now.state != FileState::Sealed || now.unique != row.unique) {
            return Ok(None);
        }
        objects.truncate(OBJECTS_MAX);
        let mut losers: Vec<Keeper> = Vec::new();
        for (object, _) in &objects {
            for one in self.who_loses(*object)? {
                if !losers.contains(&one) {
                    losers.push(one);
                }
            }
        }
        Ok(Some(ScrubFinding { file, error, objects, losers }))
    }

    fn sealed_path(&self, row: &FileRow) -> PathBuf {
        let folders = self.core().manifest.meta().sealed_folders;
        layout::sealed(&self.core().root, &row.digest, row.unique, folders)
    }

    fn open_from_medium(&self, row: &FileRow) -> Result<Reader> {
        let core = self.core();
        let store = Some(core.manifest.meta().store);
        let expect = Expect { len: Some(row.len), digest: Some(row.digest), store };
        let reader = Reader::open(&core.disk, &self.sealed_path(row), &expect)?;
        // What the page cache holds is not what the medium does.
        reader.sync().inspect_err(|e| core.halt_if_sync_failed(e))?;
        Ok(reader)
    }

    #[expect(clippy::type_complexity, reason = "an error, and what it is about")]
    fn scrub_objects(
        &self,
        file: FileId,
        row: &FileRow,
        reader: &Reader,
    ) -> Result<Option<(Error, Vec<(ObjectId, Digest)>)>> {
        let (mut first, mut damaged) = (None, Vec::new());
        let path = self.sealed_path(row);
        for (object, of) in self.objects_in(file)? {
            match self.read_object(object, &of) {
                Ok(()) => {}
                // It went, or another process took its place.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) if is_damage(&e, &path) => {
                    damaged.push((object, of.digest));
                    first.get_or_insert(e);
                }
                Err(e) => return Err(e),
            }
        }
        match (first, reader.verify(&row.digest)) {
            (Some(e), _) => Ok(Some((e, damaged))),
            (None, Err(e)) if is_damage(&e, &path) => Ok(Some((e, damaged))),
            (None, Err(e)) => Err(e),
            (None, Ok(())) => Ok(None),
        }
    }

    fn objects_in(&self, file: FileId) -> Result<Vec<(ObjectId, ObjectRow)>> {
        let snapshot = self.snapshot()?;
        let within = (file, ObjectId(0))..=(file, ObjectId(u64::MAX));
        let mut found = Vec::new();
        for ((_, object), _) in snapshot.list::<FileObjectRow>(within, usize::MAX)? {
            let row = snapshot.get::<ObjectRow>(&object)?;
            found.extend(row.filter(|row| row.place != Place::Inline).map(|row| (object, row)));
        }
        Ok(found)
    }

    fn read_object(&self, object: ObjectId, row: &ObjectRow) -> Result<()> {
        let mut hasher = Hasher::default();
        let mut from = 0;
        while from < row.len {
            let to = from.saturating_add(READ_BYTES).min(row.len);
            hasher.update(&self.fetch_range(object, from..to)?);
            from = to;
        }
        let found = hasher.finish();
        if found == row.digest {
            return Ok(());
        }
        let cause = format!("its bytes are {found}, its row says {}", row.digest);
        Err(Error::damage("scrub", format!("object {object}"), cause))
    }
}

/// Whether the file at `path` does not read: a sector that the disk refuses is one with other bytes.
fn is_damage(e: &Error, path: &Path) -> bool {
    let is_damage =
        matches!(e.kind(), ErrorKind::Damage | ErrorKind::NotFound | ErrorKind::Foreign);
    is_damage || is_refused(e, path)
}

/// Whether it is the disk that refuses bytes of the sealed file at `path`, and not, say, a lack of handles or
/// a row that does not read.
pub(super) fn is_refused(e: &Error, path: &Path) -> bool {
    e.kind() == ErrorKind::Io
        && e.operation() == "read"
        && e.place().starts_with(&*path.to_string_lossy())
}
