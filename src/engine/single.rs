//! Layouts: where a store lies, and what an opening of it stands on. The engine above sees the same
//! names in both.
//!
//! ```text
//!   directory:   disk ................................ manifest in it
//!   single file: disk <- manifest, the file itself <- BodyDisk, which the engine sees as its disk
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::ballast::Ballast;
use super::enter::{Patience, WriteAccess};
use super::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::StoreId;
use crate::limits::Limits;
use crate::manifest::{Birth, BodyDisk, Manifest, Newborn, Open, OwnerRow, Reading, lock_file};
use crate::protection::Protection;
use crate::vfs::{Access, Disk, EntryKind, File, Held, Meta, Sharing, Step, read_exact_at};

/// How a store lies on disk; chosen when it is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Layout {
    /// A directory: for volume, for several writing processes.
    #[default]
    Directory,
    /// One file and nothing beside it: to embed, to copy, to mail. One process may write; a barrier
    /// is a commit; an older copy put in its place is not noticed.
    SingleFile,
}

impl Layout {
    /// Its name in messages and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::SingleFile => "single-file",
        }
    }

    pub(super) fn of(single_file: bool) -> Self {
        if single_file { Self::SingleFile } else { Self::Directory }
    }
}

/// How what stands at `root` lies there. What is no regular file is judged as a directory.
pub(super) fn layout_of(disk: &Arc<dyn Disk>, root: &Path) -> Result<Layout> {
    let meta = disk.meta(root).map_err(|e| Error::io("open", root.display(), e))?;
    Ok(Layout::of(meta.is_some_and(|meta| meta.kind == EntryKind::File)))
}

/// What an opening stands on.
pub(super) struct Ground {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) manifest: Arc<Manifest>,
    pub(super) limits: Limits,
}

impl Ground {
    pub(super) fn directory(disk: Arc<dyn Disk>, manifest: Manifest, options: &Options) -> Self {
        Self { disk, manifest: Arc::new(manifest), limits: options.limits.clone() }
    }

    fn file(
        disk: Arc<dyn Disk>,
        root: &Path,
        manifest: Manifest,
        options: &Options,
    ) -> Result<Self> {
        let manifest = Arc::new(manifest);
        let disk = Arc::new(BodyDisk::new(disk, root, Arc::clone(&manifest)));
        disk.settle_room()?;
        // Zeros ahead of a journal would be rows for nothing.
        let limits = Limits { journal_prewrite_bytes: 0, ..options.limits.clone() };
        Ok(Self { disk, manifest, limits })
    }
}

/// Makes a store that is one file, without opening it.
pub(super) fn create(disk: &Arc<dyn Disk>, root: &Path, options: &Options) -> Result<()> {
    let (millis, random) = super::core::parts(disk)?;
    let birth = Birth {
        store: StoreId::from_parts(millis, random),
        created: disk.wall_nanos(),
        sealed_folders: options.limits.sealed_folders,
        single_file: true,
    };
    let mut patience = Patience::new(options.wait_millis);
    loop {
        match Manifest::create_file(disk, root, &birth) {
            Err(e) if e.kind() == ErrorKind::InUse && patience.once() => {}
            created => return created,
        }
    }
}

/// A file that others may write is no store to trust. One that they may read is how files travel.
pub(super) fn check_private(
    operation: &'static str,
    root: &Path,
    meta: &Meta,
    options: &Options,
) -> Result<()> {
    if meta.mode & 0o022 != 0 && !options.allow_shared_root {
        let mode = meta.mode & 0o777;
        let cause = format!("other users may write it (mode {mode:o}); close it to them, or allow");
        return Err(Error::invalid(operation, root.display(), cause));
    }
    Ok(())
}

/// One file is written by one process.
pub(super) fn refuse_shared(operation: &'static str, root: &Path, options: &Options) -> Result<()> {
    if options.access == WriteAccess::Single {
        return Ok(());
    }
    let cause = "a store in one file is written by one process; unpack it into a directory, or open \
                 it for single access";
    Err(Error::new(ErrorKind::Unsupported, operation, root.display(), cause))
}

/// The store's lock, or `None` while another holds it.
pub(super) fn try_lock(disk: &Arc<dyn Disk>, root: &Path) -> io::Result<Option<Box<dyn Held>>> {
    match disk.meta(root)? {
        Some(meta) if meta.kind == EntryKind::File => lock_file(disk, root, Sharing::Exclusive),
        _ => disk.lock_dir(root, Sharing::Exclusive),
    }
}

/// Opens the file for writing; the caller holds its lock.
pub(super) fn open(
    disk: Arc<dyn Disk>,
    root: &Path,
    options: &Options,
    open: &Open,
) -> Result<Ground> {
    if Protection::SyncBeforeTrust.is_on() {
        // G10: who created the store may have died before its name was durable.
        let parent = layout::parent(root);
        match disk.sync_dir(parent) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(|e| Error::io("sync", parent.display(), e))?,
        }
    }
    disk.mark(Step::OpenManifest);
    let manifest = Manifest::open(&disk, root, &Open { single_file: true, ..open.clone() })
        .map_err(|e| of_another_format(&disk, root, e))?;
    let ground = Ground::file(disk, root, manifest, options)?;
    // Opening commits: on a full disk it needs the room that the ballast keeps.
    let ballast = Ballast::open(&ground.disk, root, &ground.limits)?;
    ballast.before_commit(&ground.disk, root, &ground.limits)?;
    Ok(ground)
}

/// What a crash left of the making of the file goes; what is not ours stays, and is in nobody's way.
/// Returns what to warn of: the store itself is sound.
pub(super) fn clear(disk: &Arc<dyn Disk>, root: &Path) -> Option<Error> {
    let cleared = Newborn::clear(disk, root).err();
    cleared.filter(|e| !matches!(e.kind(), ErrorKind::InUse | ErrorKind::Exists))
}

/// Opens the file for reading.
pub(super) fn open_read_only(
    disk: Arc<dyn Disk>,
    root: &Path,
    options: &Options,
    open: &Open,
) -> Result<Ground> {
    let open = Open { single_file: true, ..open.clone() };
    let manifest = Manifest::open_read_only(&disk, root, &open)
        .map_err(|e| of_another_format(&disk, root, e))?;
    Ground::file(disk, root, manifest, options)
}

/// Who holds the file, for the message of a refused opening: it stands in the file itself.
pub(super) fn holder(disk: &Arc<dyn Disk>, root: &Path, open: &Open) -> Option<String> {
    let newest = || -> Result<Option<String>> {
        let open = Open { single_file: true, ..open.clone() };
        let manifest = Manifest::open_read_only(disk, root, &open)?;
        if !manifest.writer_lives()? {
            // Only readers share that lock: the owner whose row stands is dead.
            let shared = lock_file(disk, root, Sharing::Shared);
            let is_read = shared.map_err(|e| Error::io("lock", root.display(), e))?.is_some();
            let reader = "a reader that recovered in memory what a killed writer left";
            return Ok(is_read.then(|| reader.to_owned()));
        }
        let rows = manifest.read()?.list::<OwnerRow>(.., usize::MAX)?;
        let stands = rows.into_iter().filter(|(_, row)| row.ended.is_none());
        Ok(stands.max_by_key(|(_, row)| row.epoch).map(|(owner, row)| {
            let since = crate::ids::unix_millis(&owner);
            let OwnerRow { pid, host, .. } = row;
            format!("process {pid} on {host} (owner {owner}, since {since} ms)")
        }))
    };
    newest().ok().flatten()
}

/// How files of other programs begin that are likely to stand where a store is looked for.
const OTHERS: [(&[u8], &str); 8] = [
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x7fELF", "a program"),
];

/// Bytes by which text is told from anything else.
const TEXT_BYTES: u64 = 512;

/// OBJ31: a file that was never a store is not a damaged one.
fn of_another_format(disk: &Arc<dyn Disk>, root: &Path, told: Error) -> Error {
    if told.kind() != ErrorKind::Damage {
        return told;
    }
    let file = disk.open(root, Access::Read);
    let Ok(beginning) = file.and_then(|file| read_some(&*file)) else { return told };
    let known =
        OTHERS.iter().find(|(magic, _)| beginning.starts_with(magic)).map(|(_, what)| *what);
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
    let is_text = !beginning.is_empty() && beginning.iter().all(is_text);
    let text = std::str::from_utf8(&beginning).map_or_else(|e| e.error_len().is_none(), |_| true);
    match known.or((is_text && text).then_some("a text file")) {
        Some(what) => {
            let cause = format!("it is {what}, and no store; give the path of a store");
            Error::new(ErrorKind::NoStore, "open", root.display(), cause).with_source(told)
        }
        None => told,
    }
}

fn read_some(file: &dyn File) -> io::Result<Vec<u8>> {
    let len = file.len()?.min(TEXT_BYTES);
    let mut beginning = vec![0; len as usize];
    read_exact_at(file, &mut beginning, 0)?;
    Ok(beginning)
}
