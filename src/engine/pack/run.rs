//! Pack and unpack, as a caller sees them.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::files::{self, Item};
use super::source::Source;
use super::{into_directory, into_file, verify};
use crate::engine::options::Options;
use crate::engine::single::Layout;
use crate::engine::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::CommitSeq;
use crate::vfs::Disk;

/// How far packing or unpacking is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// "copy" or "verify".
    pub part: &'static str,
    /// Bytes of files done in this part.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// What packing or unpacking made, or would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The commit at which source and target stand.
    pub commit: CommitSeq,
    /// Journals and sealed files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects whose digests were compared.
    pub objects: u64,
    /// The target stood already, made by an earlier call that did not return; it was verified.
    pub was_there: bool,
}

/// Told how far it is; ends it by breaking.
pub(super) type Told<'p> = &'p mut dyn FnMut(Packing) -> ControlFlow<()>;

/// Everything that the copying of one store needs.
pub(super) struct Job<'j> {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: &'j Options,
    pub(super) source: Source,
    pub(super) items: Vec<Item>,
    pub(super) target: &'j Path,
    pub(super) told: Told<'j>,
    at: Packing,
}

impl Job<'_> {
    pub(super) fn begin(&mut self, part: &'static str) -> Result<()> {
        let total = self.items.iter().map(|item| item.len).sum();
        self.at = Packing { part, done: 0, total };
        self.did(0)
    }

    pub(super) fn did(&mut self, bytes: u64) -> Result<()> {
        self.at.done += bytes;
        match (self.told)(self.at) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                let cause = "the caller ended it; the source is as it was";
                let place = self.target.display();
                Err(Error::new(ErrorKind::Cancelled, "pack", place, cause))
            }
        }
    }

    fn packed(&self, objects: u64, was_there: bool) -> Packed {
        Packed {
            commit: self.source.store.core().manifest.commit_seq(),
            files: self.items.len() as u64,
            bytes: self.items.iter().map(|item| item.len).sum(),
            objects,
            was_there,
        }
    }
}

impl Options {
    /// Makes the store directory at `from` into a store that is one file, at `to`. The source is
    /// recovered and closed first if its writer was killed, then locked, and only read.
    ///
    /// # Errors
    /// `Exists` when something stands at `to` that is not this store at this commit; `InUse` while
    /// `from` is written; `Invalid` when `from` is one file already; `Damage` when something does not
    /// read; `DiskFull`, `Io`; `Cancelled`. Nothing has the name `to` then, unless the directory
    /// could not be synced.
    ///
    /// # Durability
    /// *Durable* when it returns, name included. A crash leaves the whole of it, or nothing at `to`;
    /// what else it leaves beside `to` is taken by the next call.
    pub fn pack(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        progress: &mut dyn FnMut(Packing) -> ControlFlow<()>,
    ) -> Result<Packed> {
        change_layout(&self, from.as_ref(), to.as_ref(), Layout::SingleFile, progress)
    }

    /// Makes the single-file store at `from` into a store directory at `to`, as [`Options::pack`]
    /// does the other way.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub fn unpack(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        progress: &mut dyn FnMut(Packing) -> ControlFlow<()>,
    ) -> Result<Packed> {
        change_layout(&self, from.as_ref(), to.as_ref(), Layout::Directory, progress)
    }

    /// What packing or unpacking the store at `from` would copy; changes nothing.
    ///
    /// # Errors
    /// As [`Options::open_read_only`].
    pub fn pack_estimate(self, from: impl AsRef<Path>) -> Result<Packed> {
        let store = self.open_read_only(from)?;
        let items = files::items(&store)?;
        Ok(Packed {
            commit: store.core().manifest.commit_seq(),
            files: items.len() as u64,
            bytes: items.iter().map(|item| item.len).sum(),
            objects: verify::count_objects(&store)?,
            was_there: false,
        })
    }
}

fn change_layout(
    options: &Options,
    from: &Path,
    to: &Path,
    wanted: Layout,
    told: Told<'_>,
) -> Result<Packed> {
    options.limits.check()?;
    let disk = options.disk_or_real();
    let source = Source::open(&disk, from, options)?;
    if Layout::of(source.store.core().manifest.meta().single_file) == wanted {
        let cause = format!("it is a {} store already: copy it", wanted.name());
        return Err(Error::invalid("pack", from.display(), cause));
    }
    let items = files::items(&source.store)?;
    let at = Packing { part: "copy", done: 0, total: 0 };
    let mut job = Job { disk, options, source, items, target: to, told, at };
    if let Some(store) = finished(&job, wanted)? {
        // It was named, and perhaps not durably: the call that did it never returned.
        let parent = layout::parent(to);
        job.disk.sync_dir(parent).map_err(|e| Error::io("sync", parent.display(), e))?;
        let objects = verify::verify(&mut job, &store)?;
        if wanted == Layout::SingleFile {
            crate::manifest::Newborn::clear(&job.disk, to)?;
        }
        return Ok(job.packed(objects, true));
    }
    let objects = match wanted {
        Layout::SingleFile => into_file::make(&mut job)?,
        Layout::Directory => into_directory::make(&mut job)?,
    };
    Ok(job.packed(objects, false))
}

/// The target, if it stands already and is this store at this commit.
fn finished(job: &Job<'_>, wanted: Layout) -> Result<Option<Store>> {
    let to = job.target;
    let named = job.disk.meta(to).map_err(|e| Error::io("pack", to.display(), e))?;
    if named.is_none() {
        return Ok(None);
    }
    let cause = "something else stands there, and was left as it is";
    let exists = Error::new(ErrorKind::Exists, "pack", to.display(), cause);
    let Ok(store) = job.options.clone().open_read_only(to) else { return Err(exists) };
    let (ours, theirs) = (&job.source.store.core().manifest, &store.core().manifest);
    let is_it = ours.meta().store == theirs.meta().store
        && ours.commit_seq() == theirs.commit_seq()
        && Layout::of(theirs.meta().single_file) == wanted;
    if is_it { Ok(Some(store)) } else { Err(exists) }
}
