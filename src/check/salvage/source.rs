//! The store that is salvaged, read file by file and never written.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::format::head::Head;
use crate::format::layout;
use crate::ids::{CommitSeq, Epoch, OwnerId, StoreId, UniqueId};
use crate::journal::read_header;
use crate::manifest::read_whole_head;
use crate::sealed::{Described, Expect, ExtentAt, Label, Reader, Stored};
use crate::vfs::{Disk, EntryKind};

/// A sealed file that opens.
#[derive(Debug)]
pub(super) struct SealedFile {
    pub(super) path: PathBuf,
    pub(super) unique: UniqueId,
    /// What its footer says is in it; empty where that does not read.
    pub(super) extents: Vec<Described>,
    pub(super) label: Option<Label>,
}

/// Where the bytes of an extent are.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) file: usize,
    pub(super) extent: Stored,
}

/// A journal whose header reads.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) path: PathBuf,
    pub(super) owner: OwnerId,
    pub(super) n: u64,
    epoch: Epoch,
    store: StoreId,
    commit: CommitSeq,
}

/// All that can be read of a store without its manifest.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) store: StoreId,
    pub(super) head: Option<Head>,
    pub(super) files: Vec<SealedFile>,
    /// Files by the unique part of their names.
    pub(super) by_unique: HashMap<UniqueId, usize>,
    /// Every extent, by the digest of its content.
    pub(super) by_digest: HashMap<Digest, Vec<At>>,
    /// In the order in which they were written.
    pub(super) journals: Vec<JournalFile>,
    /// The newest commit that HEAD, a label or a journal tells of.
    pub(super) witnessed: CommitSeq,
    pub(super) notes: Vec<String>,
}

impl Source {
    pub(super) fn read(disk: &Arc<dyn Disk>, root: &Path) -> Result<Self> {
        let mut notes = Vec::new();
        let files = sealed_files(disk, root, &mut notes)?;
        let journals = journal_files(disk, root, &mut notes)?;
        let head = read_whole_head(disk, root);
        let Some(store) = whose(head.as_ref(), &files, &journals) else {
            let cause = "no HEAD, label or journal of a store reads here";
            return Err(Error::new(ErrorKind::NoStore, "salvage", root.display(), cause));
        };
        let mut source = Self {
            disk: Arc::clone(disk),
            store,
            head: head.filter(|head| head.store == store),
            files: Vec::new(),
            by_unique: HashMap::new(),
            by_digest: HashMap::new(),
            journals: Vec::new(),
            witnessed: CommitSeq(0),
            notes,
        };
        source.take(files, journals);
        Ok(source)
    }

    fn take(&mut self, files: Vec<SealedFile>, journals: Vec<JournalFile>) {
        let mut newest = self.head.map_or(CommitSeq(0), |head| head.commit);
        for file in files {
            if let Some(label) = &file.label {
                if label.store != self.store {
                    self.notes.push(format!("{}: of another store", file.path.display()));
                    continue;
                }
                newest = newest.max(label.commit);
            }
            let at = self.files.len();
            for described in &file.extents {
                let extent = &described.extent;
                let places = self.by_digest.entry(extent.digest).or_default();
                places.push(At { file: at, extent: stored(extent) });
            }
            self.by_unique.insert(file.unique, at);
            self.files.push(file);
        }
        for journal in journals {
            if journal.store == self.store {
                newest = newest.max(journal.commit);
                self.journals.push(journal);
            } else {
                self.notes.push(format!("{}: of another store", journal.path.display()));
            }
        }
        self.journals.sort_by_key(|journal| (journal.epoch, journal.n));
        self.witnessed = newest;
    }

    /// The file of a place.
    pub(super) fn reader(&self, at: &At) -> Result<Reader> {
        let file = self.files.get(at.file).map(|file| &file.path);
        let path = file.ok_or_else(|| Error::invalid("salvage", "file", "there is none"))?;
        Reader::open(&self.disk, path, &Expect::default())
    }

    /// The raw bytes at a place, every block verified.
    pub(super) fn bytes(&self, at: At) -> Result<Vec<u8>> {
        self.reader(&at)?.read_raw(&at.extent, &(0..at.extent.len))
    }

    /// The first place that gives back the bytes that a digest names.
    pub(super) fn place_of(&self, digest: &Digest) -> Option<At> {
        let places = self.by_digest.get(digest)?;
        places.iter().copied().find(|at| self.holds(at, digest))
    }

    /// Whether the bytes at a place are those that a digest names; no more of them is held than a step.
    pub(super) fn holds(&self, at: &At, digest: &Digest) -> bool {
        let found = self.reader(at).and_then(|reader| reader.digest_of(&at.extent));
        found.is_ok_and(|found| found == *digest)
    }

    /// The bytes that a digest names, from whichever file has them.
    pub(super) fn by_digest(&self, digest: &Digest) -> Option<(At, Vec<u8>)> {
        let places = self.by_digest.get(digest)?;
        places.iter().find_map(|at| {
            let bytes = self.bytes(*at).ok()?;
            (Digest::of(&bytes) == *digest).then_some((*at, bytes))
        })
    }
}

/// An extent as a footer tells it.
pub(super) fn stored(of: &ExtentAt) -> Stored {
    Stored { offset: of.offset, stored_len: of.stored_len, len: of.len, codec: of.codec }
}

/// Whose store it is: the id that most files tell.
fn whose(head: Option<&Head>, files: &[SealedFile], journals: &[JournalFile]) -> Option<StoreId> {
    let mut votes: HashMap<StoreId, u64> = HashMap::new();
    let labels = files.iter().filter_map(|file| file.label.as_ref().map(|label| label.store));
    let told = head.map(|head| head.store).into_iter().chain(labels);
    for store in told.chain(journals.iter().map(|journal| journal.store)) {
        *votes.entry(store).or_default() += 1;
    }
    votes.into_iter().max_by_key(|(store, votes)| (*votes, *store)).map(|(store, _)| store)
}

fn list(disk: &Arc<dyn Disk>, path: &Path, kind: EntryKind) -> Result<Vec<String>> {
    let mut names: Vec<String> = match disk.list(path) {
        Ok(entries) => entries.into_iter().filter(|e| e.kind == kind).map(|e| e.name).collect(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(Error::io("salvage", path.display(), e)),
    };
    names.sort();
    Ok(names)
}

fn sealed_files(
    disk: &Arc<dyn Disk>,
    root: &Path,
    notes: &mut Vec<String>,
) -> Result<Vec<SealedFile>> {
    let mut files = Vec::new();
    let sealed = layout::sealed_dir(root);
    for folder in list(disk, &sealed, EntryKind::Directory)? {
        let folder = sealed.join(folder);
        for name in list(disk, &folder, EntryKind::File)? {
            let Some((_, unique)) = layout::parse_sealed(&name) else { continue };
            let path = folder.join(&name);
            let reader = match Reader::open(disk, &path, &Expect::default()) {
                Ok(reader) => reader,
                Err(e) => {
                    notes.push(format!("passed over: {e}"));
                    continue;
                }
            };
            let mut note = |e: Error| notes.push(format!("passed over: {e}"));
            let extents = reader.footer().map(|f| f.extents).map_err(&mut note).unwrap_or_default();
            let label = reader.label().map_err(&mut note).ok();
            files.push(SealedFile { path, unique, extents, label });
        }
    }
    Ok(files)
}

fn journal_files(
    disk: &Arc<dyn Disk>,
    root: &Path,
    notes: &mut Vec<String>,
) -> Result<Vec<JournalFile>> {
    let dir = layout::journal_dir(root);
    let mut journals = Vec::new();
    for name in list(disk, &dir, EntryKind::File)? {
        let Some((owner, n)) = layout::parse_journal(&name) else { continue };
        let path = dir.join(&name);
        match read_header(&**disk, &path) {
            Ok(header) => journals.push(JournalFile {
                path,
                owner,
                n,
                epoch: header.epoch,
                store: header.store,
                commit: header.commit,
            }),
            Err(e) => notes.push(format!("passed over: {e}")),
        }
    }
    Ok(journals)
}
