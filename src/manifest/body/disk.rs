//! The disk that a single-file store lies on: its own paths are rows, all else is delegated.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::content::Stored;
use super::file::{BodyFile, OwnerLock};
use super::names::{Body, Target, body_of, target};
use super::pending::{PENDING_BYTES_MAX, Pending};
use super::room::Room;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{OwnerId, UniqueId};
use crate::manifest::handle::Manifest;
use crate::manifest::read::{Reading, Snapshot};
use crate::manifest::rows::{BodyRow, FrameRow, OwnerRow};
use crate::manifest::table::Table;
use crate::vfs::{
    Access, DirectIo, Disk, Entry, EntryKind, File, Held, Identity, Meta, Sharing, Space, Step,
};

/// What the handles of one opening share.
#[derive(Debug)]
pub(super) struct Bodies {
    under: Arc<dyn Disk>,
    root: PathBuf,
    pub(super) manifest: Arc<Manifest>,
    pub(super) pending: Arc<Pending>,
    /// Whose lock was made here: who commits.
    owner: OnceLock<OwnerId>,
    locks: Mutex<BTreeSet<OwnerId>>,
    may_write: bool,
    room: Room,
    /// Everything is shown as this snapshot has it.
    as_of: Option<Arc<Snapshot>>,
}

impl Bodies {
    pub(super) fn may_write(&self) -> io::Result<()> {
        match self.may_write {
            true => Ok(()),
            false => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }

    /// The files that commits hold now, or held then.
    pub(super) fn stored(&self) -> Stored<'_> {
        Stored::then(&self.manifest, self.as_of.clone())
    }

    /// The snapshot that a reader of a journal sees.
    pub(super) fn pin(&self) -> Result<Arc<Snapshot>> {
        self.as_of.clone().map_or_else(|| self.manifest.read().map(Arc::new), Ok)
    }

    /// Commits all that waits.
    pub(super) fn commit(&self, step: Step) -> io::Result<()> {
        let owner = self.owner.get().copied();
        self.manifest.write(owner, step, |_| Ok(())).map(drop).map_err(io::Error::other)
    }

    /// Keeps what waits within its bound, and refuses what the next commit would not find room for:
    /// running out of space inside a commit halts the store.
    pub(super) fn make_room(&self, more: u64) -> io::Result<()> {
        if self.pending.bytes().saturating_add(more) > PENDING_BYTES_MAX {
            self.commit(Step::BodyCommit)?;
        }
        let wanted = self.pending.bytes().saturating_add(more).saturating_mul(2);
        match self.room.find(&self.manifest, wanted).map_err(io::Error::other)? {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// G16: pages that were given back are free, although the file system does not know.
    fn with_room_inside(&self, space: Space) -> io::Result<Space> {
        let inside = self.room.inside(&self.manifest).map_err(io::Error::other)?;
        Ok(Space { free: space.free.saturating_add(inside), ..space })
    }

    /// Whether a name stands directly in the store: nothing will ever name it.
    pub(super) fn is_top(&self, name: &str) -> bool {
        !name.contains('/')
    }

    pub(super) fn store_identity(&self) -> io::Result<Identity> {
        let meta = self.under.meta(&self.root)?;
        meta.map(|meta| meta.identity).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn identity_of(&self, body: Body) -> io::Result<Identity> {
        let device = self.store_identity()?.inode;
        let (id, n) = match body {
            Body::Frames(owner, n) => (owner.0, n),
            Body::Pages(unique) => (unique.0, u64::MAX),
        };
        let (high, low) = (u128::from_be_bytes(id) >> 64, u128::from_be_bytes(id));
        Ok(Identity { device, inode: (high as u64) ^ (low as u64).rotate_left(17) ^ n })
    }

    fn file_len(&self, name: &str) -> io::Result<Option<u64>> {
        let stored = self.stored();
        self.pending.len(name, &stored).map_err(io::Error::other)
    }

    /// Every name that starts with `prefix`, as it is now.
    fn names(&self, prefix: &str) -> Result<BTreeMap<String, u64>> {
        // Asked first: what is no longer in there was committed before the rows are read.
        let waiting = self.pending.names();
        let mut names = BTreeMap::new();
        let stored = self.stored();
        stored.snapshot()?.scan::<BodyRow>(prefix.to_owned().., &mut |name, row| {
            if !name.starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            names.insert(name, row.len);
            Ok(ControlFlow::Continue(()))
        })?;
        for (name, len) in waiting.into_iter().filter(|(name, _)| name.starts_with(prefix)) {
            match len {
                Some(len) => names.insert(name, len),
                None => names.remove(&name),
            };
        }
        Ok(names)
    }

    /// Whether a writer in another process holds the store as `owner`.
    fn is_held_elsewhere(&self, owner: OwnerId) -> Result<bool> {
        if self.may_write || !self.manifest.writer_lives()? {
            return Ok(false);
        }
        let row = self.manifest.read()?.get::<OwnerRow>(&owner)?;
        Ok(row.is_some_and(|row| row.ended.is_none()))
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        let file = |name: &str| Entry { name: name.to_owned(), kind: EntryKind::File };
        let dir = |name: &str| Entry { name: name.to_owned(), kind: EntryKind::Directory };
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut entries: Vec<Entry> = match folder {
            "" => [layout::JOURNAL, layout::SEALED, layout::TMP, layout::OWNERS].map(dir).into(),
            layout::SEALED => {
                let folders = 0..self.manifest.meta().sealed_folders;
                folders.map(|folder| dir(&format!("{folder:02x}"))).collect()
            }
            layout::OWNERS => {
                let name = |owner: &OwnerId| {
                    let path = layout::owner_lock(Path::new(""), *owner);
                    path.file_name().and_then(|name| name.to_str()).map(file)
                };
                self.locks.lock().iter().filter_map(name).collect()
            }
            _ => Vec::new(),
        };
        for name in self.names(&prefix)?.keys() {
            let below = &name[prefix.len()..];
            if !below.contains('/') {
                entries.push(file(below));
            }
        }
        Ok(entries)
    }
}

/// A disk over the tables of a manifest that is a whole store.
#[derive(Debug)]
pub struct BodyDisk {
    bodies: Arc<Bodies>,
}

impl BodyDisk {
    /// The disk of the store that `manifest` is, at `root` of `under`; a manifest that was opened
    /// for reading makes one that changes nothing.
    pub fn new(under: Arc<dyn Disk>, root: &Path, manifest: Arc<Manifest>) -> Self {
        let bodies = Bodies {
            under,
            root: root.to_owned(),
            pending: manifest.pending(),
            may_write: manifest.is_writer(),
            manifest,
            owner: OnceLock::new(),
            locks: Mutex::new(BTreeSet::new()),
            room: Room::default(),
            as_of: None,
        };
        Self { bodies: Arc::new(bodies) }
    }

    /// A disk that shows the files as `snapshot` of `manifest` has them, and changes nothing.
    pub fn at(
        under: Arc<dyn Disk>,
        root: &Path,
        manifest: &Arc<Manifest>,
        snapshot: &Arc<Snapshot>,
    ) -> Self {
        let bodies = Bodies {
            under,
            root: root.to_owned(),
            pending: Arc::default(),
            may_write: false,
            manifest: Arc::clone(manifest),
            owner: OnceLock::new(),
            locks: Mutex::new(BTreeSet::new()),
            room: Room::default(),
            as_of: Some(Arc::clone(snapshot)),
        };
        Self { bodies: Arc::new(bodies) }
    }

    /// Gives storage to every page that the file has, or cuts off what finds none: after a crash in
    /// a growth, and before the first commit of an opening.
    ///
    /// # Durability
    /// The length is durable; no row changes.
    ///
    /// # Errors
    /// Those of the disk and of opening the manifest anew.
    pub fn settle_room(&self) -> Result<()> {
        match self.bodies.may_write {
            true => self.bodies.room.settle(&self.bodies.manifest),
            false => Ok(()),
        }
    }

    fn target(&self, path: &Path) -> Target {
        target(&self.bodies.root, path)
    }

    fn open_lock(&self, owner: OwnerId, access: Access) -> io::Result<Arc<dyn File>> {
        let bodies = &self.bodies;
        let is_ours = match access {
            Access::CreateNew | Access::CreateNewDirect => {
                bodies.may_write()?;
                if bodies.owner.set(owner).is_err() || !bodies.locks.lock().insert(owner) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                let lock = OwnerLock { bodies: Arc::clone(bodies), is_held: false };
                return Ok(Arc::new(lock));
            }
            Access::Read | Access::ReadWrite => bodies.locks.lock().contains(&owner),
        };
        if is_ours || bodies.is_held_elsewhere(owner).map_err(io::Error::other)? {
            return Ok(Arc::new(OwnerLock { bodies: Arc::clone(bodies), is_held: true }));
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn open_body(&self, name: String, body: Body, access: Access) -> io::Result<Arc<dyn File>> {
        let bodies = &self.bodies;
        match access {
            Access::CreateNew | Access::CreateNewDirect => {
                bodies.may_write()?;
                bodies.make_room(0)?;
                bodies.pending.create(&name, &bodies.stored())?;
            }
            Access::Read | Access::ReadWrite => {
                if access == Access::ReadWrite {
                    bodies.may_write()?;
                }
                bodies.file_len(&name)?.ok_or(io::ErrorKind::NotFound)?;
            }
        }
        Ok(Arc::new(BodyFile::open(Arc::clone(bodies), name, body, access)?))
    }
}

fn nothing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn no_place() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the single-file layout has no such file")
}

impl Disk for BodyDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        match self.target(path) {
            Target::Outside | Target::Store => self.bodies.under.open(path, access),
            Target::File(name, body) => self.open_body(name, body, access),
            Target::Lock(owner) => self.open_lock(owner, access),
            Target::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
            Target::Nothing => match access {
                Access::Read | Access::ReadWrite => Err(nothing()),
                Access::CreateNew | Access::CreateNewDirect => Err(no_place()),
            },
        }
    }

    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        let bodies = &self.bodies;
        let (kind, len, identity) = match self.target(path) {
            Target::Outside | Target::Store => return bodies.under.meta(path),
            Target::Nothing => return Ok(None),
            Target::Folder(_) => (EntryKind::Directory, 0, bodies.store_identity()?),
            Target::File(name, body) => match bodies.file_len(&name)? {
                Some(len) => (EntryKind::File, len, bodies.identity_of(body)?),
                None => return Ok(None),
            },
            Target::Lock(owner) => match bodies.locks.lock().contains(&owner) {
                true => (EntryKind::File, 0, bodies.store_identity()?),
                false => return Ok(None),
            },
        };
        let mode = if kind == EntryKind::File { 0o600 } else { 0o700 };
        Ok(Some(Meta { kind, len, mode, identity }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let bodies = &self.bodies;
        match (self.target(from), self.target(to)) {
            (Target::File(from, body), Target::File(to, other)) => {
                bodies.may_write()?;
                // Pages are found by what makes a name unique: that may not change.
                if body != other {
                    return Err(no_place());
                }
                bodies.pending.rename(&from, &to, &bodies.stored())
            }
            (Target::Outside, Target::Outside) => bodies.under.rename(from, to),
            _ => Err(no_place()),
        }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        match (self.target(from), self.target(to)) {
            (Target::Outside | Target::Store, Target::Outside) => self.bodies.under.link(from, to),
            _ => Err(no_place()),
        }
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let bodies = &self.bodies;
        match self.target(path) {
            Target::Outside => bodies.under.unlink(path),
            Target::File(name, body) => {
                bodies.may_write()?;
                bodies.pending.unlink(&name, body, &bodies.stored())?;
                // What stands for itself is given up to make room now.
                if bodies.is_top(&name) || bodies.pending.bytes() > PENDING_BYTES_MAX {
                    bodies.commit(Step::BodyCommit)?;
                }
                Ok(())
            }
            Target::Lock(owner) => match bodies.locks.lock().remove(&owner) {
                true => Ok(()),
                false => Err(nothing()),
            },
            Target::Store | Target::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
            Target::Nothing => Err(nothing()),
        }
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        match self.target(path) {
            Target::Outside => self.bodies.under.mkdir(path),
            Target::Nothing => Err(no_place()),
            _ => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        match self.target(path) {
            Target::Outside => self.bodies.under.list(path),
            Target::Store => self.bodies.list("").map_err(io::Error::other),
            Target::Folder(name) => self.bodies.list(&name).map_err(io::Error::other),
            Target::File(..) | Target::Lock(_) => Err(io::ErrorKind::NotADirectory.into()),
            Target::Nothing => Err(nothing()),
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match self.target(path) {
            Target::Outside => self.bodies.under.sync_dir(path),
            // P3: a name is carried with what it names.
            Target::Store | Target::Folder(_) => Ok(()),
            _ => Err(nothing()),
        }
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        match self.target(path) {
            Target::Outside => self.bodies.under.space(path),
            _ => self.bodies.with_room_inside(self.bodies.under.space(&self.bodies.root)?),
        }
    }

    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        match self.target(path) {
            Target::Outside => self.bodies.under.lock_dir(path, sharing),
            _ => super::lock::lock_file(&self.bodies.under, &self.bodies.root, sharing),
        }
    }

    fn direct_io(&self, path: &Path) -> DirectIo {
        match self.target(path) {
            Target::Outside => self.bodies.under.direct_io(path),
            _ => DirectIo::Buffered("sealed files are pages of the one file".to_owned()),
        }
    }

    fn wall_nanos(&self) -> Option<i64> {
        self.bodies.under.wall_nanos()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.bodies.under.monotonic_nanos()
    }

    fn pid(&self) -> u32 {
        self.bodies.under.pid()
    }

    fn boot_id(&self) -> String {
        self.bodies.under.boot_id()
    }

    fn host(&self) -> String {
        self.bodies.under.host()
    }

    fn entropy(&self, into: &mut [u8]) -> io::Result<()> {
        self.bodies.under.entropy(into)
    }

    fn mark(&self, step: Step) {
        self.bodies.under.mark(step);
    }
}

/// What of a single-file store belongs to its files, and what to the manifest itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Books {
    /// Every committed file: path below the store, and length.
    pub files: Vec<(PathBuf, u64)>,
    /// Bytes of files that the rows hold, counted by their own pages and not by the files' lengths.
    pub bytes: u64,
}

impl Books {
    /// Reads them from a snapshot. The time follows the number of files and the journals.
    ///
    /// # Errors
    /// `Damage` for a row that does not read.
    pub fn read(snapshot: &Snapshot) -> Result<Self> {
        let (mut files, mut bytes, mut pages) = (Vec::new(), 0u64, 0u64);
        snapshot.scan::<BodyRow>(.., &mut |name, row| {
            match body_of(&name) {
                Some(body @ Body::Pages(_)) => {
                    bytes = bytes.saturating_add(row.len);
                    pages = pages.saturating_add(body.pages(row.len));
                }
                Some(Body::Frames(..)) => {}
                None => {
                    let cause = "no file of a store has this name";
                    return Err(Error::damage("read", format!("bodies {name:?}"), cause));
                }
            }
            files.push((PathBuf::from(name), row.len));
            Ok(ControlFlow::Continue(()))
        })?;
        // A page too many or too few is no page of a file: the books do not close.
        let page_bytes = Body::Pages(UniqueId([0; 16])).page_bytes();
        let strays = snapshot.count(Table::Pages)?.abs_diff(pages);
        bytes = bytes.saturating_add(strays.saturating_mul(page_bytes));
        snapshot.scan::<FrameRow>(.., &mut |_, row| {
            bytes = bytes.saturating_add(row.bytes.len() as u64);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Self { files, bytes })
    }
}
