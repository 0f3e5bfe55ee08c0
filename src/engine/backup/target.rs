//! The target: what it may be, what it is made into first, and what goes from it in the end.
//!
//! ```text
//!   nothing, empty --- [prepare] ---> BACKUP, no manifest --- [switch] ---> a backup
//!   a backup of this store, not newer, not written to since --- [switch] ---> the newer backup
//! ```
//! Anything else is refused and left as it is.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::run::BackupOptions;
use crate::digest::Digest;
use crate::engine::core::{Core, unique};
use crate::engine::open::make_folders;
use crate::engine::owner::holders;
use crate::engine::store::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{CommitSeq, Epoch, OwnerId, StoreId, UniqueId};
use crate::manifest::{
    CheckIntegrity, FileRow, JournalRow, Manifest, Open, OwnerRow, Reading, Snapshot, lock_file,
    lock_out, switch, write_head,
};
use crate::vfs::{Access, Disk, EntryKind, Held, Sharing, Step, read_whole, write_all_at};

#[derive(Debug)]
pub(super) struct Target {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) root: PathBuf,
    pub(super) folders: u16,
    pub(super) store: StoreId,
    /// What the earlier backup is, where there is one.
    pub(super) earlier: Option<Earlier>,
    is_there: bool,
    _lock: Option<Box<dyn Held>>,
}

#[derive(Debug)]
pub(super) struct Earlier {
    pub(super) commit: CommitSeq,
    /// Its newest owner: by that it is known to be of our past.
    newest: Option<(OwnerId, OwnerRow)>,
    /// Whether nobody wrote to it since it was made.
    is_untouched: bool,
}

fn refuse<T>(kind: ErrorKind, root: &Path, cause: impl std::fmt::Display) -> Result<T> {
    Err(Error::new(kind, "back up", root.display(), cause))
}

fn in_use(disk: &Arc<dyn Disk>, root: &Path) -> String {
    match holders(disk, root).join("; ") {
        none if none.is_empty() => "another process holds it".to_owned(),
        holders => holders,
    }
}

impl Target {
    /// Looks at the target, locks it, and refuses what it may not be. Changes nothing.
    pub(super) fn open(core: &Core, to: &Path, options: &BackupOptions) -> Result<Self> {
        let disk = options.disk.clone().unwrap_or_else(|| Arc::clone(&core.disk));
        let mut target = Self::new(core, disk, to);
        if options.disk.is_none() {
            target.refuse_the_store(core)?;
        }
        let fail = |e| Error::io("look at", to.display(), e);
        let is_private = match target.kind_and_mode()? {
            None => return Ok(target),
            Some((EntryKind::Directory, mode)) => mode & 0o077 == 0,
            Some(_) => return refuse(ErrorKind::Exists, to, "a file is there, and was left alone"),
        };
        if !is_private && !options.allow_shared_root {
            let cause = "other users may enter it; close it to them, or allow a shared root";
            return refuse(ErrorKind::Invalid, to, cause);
        }
        target.is_there = true;
        target._lock = target.disk.lock_dir(to, Sharing::Exclusive).map_err(fail)?;
        if target._lock.is_none() {
            return refuse(ErrorKind::InUse, to, in_use(&target.disk, to));
        }
        target.look()?;
        Ok(target)
    }

    fn new(core: &Core, disk: Arc<dyn Disk>, to: &Path) -> Self {
        let meta = core.manifest.meta();
        Self {
            disk,
            root: to.to_owned(),
            folders: meta.sealed_folders,
            store: meta.store,
            earlier: None,
            is_there: false,
            _lock: None,
        }
    }

    /// The same for a store that is one file: the target is one, or nothing yet.
    pub(super) fn open_file(core: &Core, to: &Path, options: &BackupOptions) -> Result<Self> {
        let disk = options.disk.clone().unwrap_or_else(|| Arc::clone(&core.disk));
        let mut target = Self::new(core, disk, to);
        let fail = |e| Error::io("look at", to.display(), e);
        let there = target.disk.meta(to).map_err(fail)?;
        let own = core.disk.meta(&core.root).map_err(fail)?;
        if options.disk.is_none()
            && (to == core.root
                || there.zip(own).is_some_and(|(there, own)| there.identity == own.identity))
        {
            return refuse(ErrorKind::Invalid, to, "it is the store itself");
        }
        let Some(there) = there else { return Ok(target) };
        if there.kind != EntryKind::File {
            let cause = "the store is one file, and so is its backup: something else is there";
            return refuse(ErrorKind::Exists, to, cause);
        }
        if there.mode & 0o022 != 0 && !options.allow_shared_root {
            let cause = "other users may write it; close it to them, or allow a shared root";
            return refuse(ErrorKind::Invalid, to, cause);
        }
        target.is_there = true;
        target._lock = lock_file(&target.disk, to, Sharing::Exclusive).map_err(fail)?;
        if target._lock.is_none() {
            return refuse(ErrorKind::InUse, to, "another process holds it");
        }
        let how = Open { single_file: true, ..Open::default() };
        target.earlier = Some(target.earlier_in(&target.root, &how)?);
        Ok(target)
    }

    /// Whether what was made is what was copied.
    pub(super) fn compare(&self, opened: &Store, wanted: CommitSeq) -> Result<()> {
        let found = opened.core().manifest.commit_seq();
        if found == wanted && opened.id() == self.store {
            return Ok(());
        }
        let cause = format!("it opens at commit {found}, {wanted} was copied");
        Err(Error::damage("verify", self.root.display(), cause))
    }

    /// What the path holds; a link is followed.
    fn kind_and_mode(&self) -> Result<Option<(EntryKind, u32)>> {
        let look = |path: &Path| {
            let found = self.disk.meta(path);
            found.map_err(|e| Error::io("look at", path.display(), e))
        };
        let mut found = look(&self.root)?;
        if found.is_some_and(|meta| meta.kind == EntryKind::Other) {
            found = look(&self.root.join("."))?.or(found);
        }
        Ok(found.map(|meta| (meta.kind, meta.mode)))
    }

    /// By any spelling of the path, and inside of it.
    fn refuse_the_store(&self, core: &Core) -> Result<()> {
        let identity = |path: &Path| {
            let found = self.disk.meta(&path.join("."));
            found.ok().flatten().map(|meta| meta.identity)
        };
        let own = identity(&core.root);
        let inside = self.root.ancestors().any(|path| {
            path == core.root || (!path.as_os_str().is_empty() && identity(path) == own)
        });
        let is_own = own.is_some() && identity(&self.root) == own;
        match (is_own || self.root == core.root, inside && own.is_some()) {
            (true, _) => refuse(ErrorKind::Invalid, &self.root, "it is the store itself"),
            (_, true) => refuse(ErrorKind::Invalid, &self.root, "it lies inside the store"),
            _ => Ok(()),
        }
    }

    fn look(&mut self) -> Result<()> {
        let root = self.root.clone();
        let entries = self.disk.list(&root).map_err(|e| Error::io("list", root.display(), e))?;
        let is_ours = |name: &str| layout::TOP.contains(&name);
        if let Some(stray) = entries.iter().find(|entry| !is_ours(&entry.name)) {
            let cause = format!("it holds {:?}, which is no part of a store", stray.name);
            return refuse(ErrorKind::Exists, &root, cause);
        }
        if entries.iter().any(|entry| entry.name == layout::MANIFEST) {
            self.earlier = Some(self.earlier_in(&layout::manifest(&self.root), &Open::default())?);
            return Ok(());
        }
        match self.marker()? {
            Some((store, _)) if store == self.store && !self.has(layout::HEAD)? => Ok(()),
            Some((store, _)) if store != self.store => {
                let cause = format!("an unfinished backup of store {store} is there");
                refuse(ErrorKind::Foreign, &root, cause)
            }
            _ if self.is_used()? => {
                let cause = "a store without its manifest is there, and was left as it is";
                refuse(ErrorKind::Exists, &root, cause)
            }
            _ => Ok(()),
        }
    }

    fn has(&self, name: &str) -> Result<bool> {
        let path = self.root.join(name);
        let found = self.disk.meta(&path).map_err(|e| Error::io("look at", path.display(), e))?;
        Ok(found.is_some())
    }

    /// The store that a backup here is, or was to be, one of, and the commit at which it was made; 0
    /// while the first is under way. What does not read says nothing.
    fn marker(&self) -> Result<Option<(StoreId, CommitSeq)>> {
        let path = layout::backup(&self.root);
        let file = match self.disk.open(&path, Access::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("open", path.display(), e)),
        };
        let bytes = read_whole(&*file, 4096).map_err(|e| Error::io("read", path.display(), e))?;
        let text = String::from_utf8_lossy(&bytes);
        let parsed = text.trim_end().split_once(' ').and_then(|(store, commit)| {
            Some((store.parse().ok()?, CommitSeq(commit.parse().ok()?)))
        });
        Ok(parsed)
    }

    /// Says of which store this is a backup, made at `commit`.
    fn put_marker(&self, commit: CommitSeq) -> Result<()> {
        let tmp = self.tmp()?;
        let fail = |operation| move |e| Error::io(operation, layout::BACKUP, e);
        let file = self.disk.open(&tmp, Access::CreateNew).map_err(fail("create"))?;
        let text = format!("{} {commit}\n", self.store);
        write_all_at(&*file, text.as_bytes(), 0).map_err(fail("write"))?;
        file.sync_data().map_err(fail("sync"))?;
        self.disk.rename(&tmp, &layout::backup(&self.root)).map_err(fail("rename"))?;
        self.disk.sync_dir(&self.root).map_err(fail("sync"))
    }

    /// Whether a store was at work here.
    fn is_used(&self) -> Result<bool> {
        if self.has(layout::HEAD)? {
            return Ok(true);
        }
        for dir in self.folders().into_iter().chain([layout::journal_dir(&self.root)]) {
            if !self.list(&dir)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn folders(&self) -> Vec<PathBuf> {
        (0..self.folders).map(|folder| layout::sealed_folder(&self.root, folder)).collect()
    }

    /// The files of a folder; none where the folder is not there.
    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        match self.disk.list(dir) {
            Ok(entries) => {
                let files = entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
                Ok(files.map(|entry| entry.name).collect())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(Error::io("list", dir.display(), e)),
        }
    }

    fn earlier_in(&self, manifest: &Path, how: &Open) -> Result<Earlier> {
        drop(lock_out(&self.disk, manifest)?);
        let manifest = match Manifest::open_read_only(&self.disk, &self.root, how) {
            // We hold the lock: nobody has it open, and its last writer did not close it.
            Err(e) if e.kind() == ErrorKind::InUse => {
                let cause =
                    "it was opened for writing since it was made, and is a store of its own";
                return refuse(ErrorKind::Conflict, &self.root, cause);
            }
            opened => opened?,
        };
        let meta = manifest.meta();
        if meta.store != self.store {
            let cause = format!("store {} is there, not {}", meta.store, self.store);
            return refuse(ErrorKind::Foreign, &self.root, cause);
        }
        let snapshot = manifest.read()?;
        let mut newest: Option<(OwnerId, OwnerRow)> = None;
        snapshot.scan::<OwnerRow>(.., &mut |owner, row| {
            if newest.as_ref().is_none_or(|(_, newest)| row.epoch > newest.epoch) {
                newest = Some((owner, row));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let commit = snapshot.counters()?.commit_seq;
        // Whoever opens a store for writing commits at once.
        let is_untouched = !how.single_file && self.marker()? == Some((self.store, commit));
        Ok(Earlier { commit, newest, is_untouched })
    }

    /// The earlier backup has to be of this store's past.
    pub(super) fn check_past(&self, ours: &Snapshot) -> Result<()> {
        let Some(earlier) = &self.earlier else { return Ok(()) };
        let commit = ours.counters()?.commit_seq;
        if earlier.commit > commit {
            let cause = format!("it stands at commit {}, the store at {commit}", earlier.commit);
            return refuse(ErrorKind::Conflict, &self.root, cause);
        }
        let Some((owner, row)) = &earlier.newest else { return Ok(()) };
        let is_past = match ours.get::<OwnerRow>(owner)? {
            Some(known) => known.epoch == row.epoch && known.commits >= row.commits,
            // Rows of owners that ended long ago go.
            None => earlier.is_untouched && is_before_all(ours, row.epoch)?,
        };
        if is_past {
            return Ok(());
        }
        let cause = format!(
            "owner {owner} wrote to it, which the store does not know, or knows no more; back up to \
             a new place"
        );
        refuse(ErrorKind::Conflict, &self.root, cause)
    }

    /// Makes the directory, says that a backup is under way, makes the folders, and takes away what
    /// an interrupted backup was building.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let (disk, root) = (Arc::clone(&self.disk), self.root.clone());
        let fail = |e| Error::io("create", root.display(), e);
        disk.mark(Step::BackupFolders);
        if !self.is_there {
            disk.mkdir(&root).map_err(fail)?;
            self._lock = disk.lock_dir(&root, Sharing::Exclusive).map_err(fail)?;
            if self._lock.is_none() {
                return refuse(ErrorKind::InUse, &root, in_use(&disk, &root));
            }
        }
        let parent = layout::parent(&root);
        match disk.sync_dir(parent) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(|e| Error::io("sync", parent.display(), e))?,
        }
        if self.earlier.is_none() && self.marker()?.is_none() {
            // Before anything else is there, so that what is there later is known for ours.
            if disk.meta(&layout::tmp_dir(&root)).map_err(fail)?.is_none() {
                disk.mkdir(&layout::tmp_dir(&root)).map_err(fail)?;
            }
            self.put_marker(CommitSeq(0))?;
        }
        make_folders(&disk, &root, self.folders)?;
        // Also those that an interrupted backup made and never synced.
        disk.sync_dir(&layout::sealed_dir(&root)).map_err(fail)?;
        disk.sync_dir(&root).map_err(fail)?;
        self.sweep_tmp()
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        match self.disk.unlink(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("unlink", path.display(), e))
            }
            _ => Ok(()),
        }
    }

    fn sweep_tmp(&self) -> Result<()> {
        let dir = layout::tmp_dir(&self.root);
        for name in self.list(&dir)? {
            if layout::parse_tmp(&name).is_some() {
                self.unlink(&dir.join(name))?;
            }
        }
        Ok(())
    }

    /// A name in `tmp` that nobody has.
    pub(super) fn tmp(&self) -> Result<PathBuf> {
        let nobody = OwnerId::from_parts(0, [0; 10]);
        Ok(layout::tmp(&self.root, nobody, unique(&self.disk)?))
    }

    /// From here on the target is the new backup.
    pub(super) fn switch(&self, draft: &Path, commit: CommitSeq) -> Result<()> {
        let manifest = layout::manifest(&self.root);
        switch(&self.disk, draft, &manifest, [Step::BackupSwitch, Step::BackupSyncDir])?;
        // Only now: a witness of what is not there yet would make the earlier one rolled back.
        write_head(&self.disk, &self.root, self.store, commit)?;
        self.put_marker(commit)
    }

    /// Removes what the rows of the new backup, opened as `made`, do not name. Returns the number of
    /// sealed files.
    pub(super) fn sweep(&self, made: &Store) -> Result<u64> {
        let snapshot = made.snapshot()?;
        let mut named: BTreeSet<(Digest, UniqueId)> = BTreeSet::new();
        snapshot.scan::<FileRow>(.., &mut |_, row| {
            named.insert((row.digest, row.unique));
            Ok(ControlFlow::Continue(()))
        })?;
        self.disk.mark(Step::BackupSweep);
        let mut removed = 0;
        for dir in self.folders() {
            for name in self.list(&dir)? {
                if layout::parse_sealed(&name).is_some_and(|file| !named.contains(&file)) {
                    self.unlink(&dir.join(name))?;
                    removed += 1;
                }
            }
        }
        let dir = layout::journal_dir(&self.root);
        for name in self.list(&dir)? {
            if let Some(key) = layout::parse_journal(&name)
                && snapshot.get::<JournalRow>(&key)?.is_none()
            {
                self.unlink(&dir.join(name))?;
            }
        }
        self.sweep_tmp()?;
        Ok(removed)
    }

    /// How the target is opened for a look; its manifest was read back whole.
    pub(super) fn opening(&self, disk: Arc<dyn Disk>, core: &Core) -> crate::engine::Options {
        Store::options()
            .limits(core.limits.clone())
            .disk(disk)
            .allow_shared_root(true)
            .check_integrity(CheckIntegrity::Never)
    }
}

/// Whether every owner that the store still knows came later.
fn is_before_all(ours: &Snapshot, epoch: Epoch) -> Result<bool> {
    let mut is_before = true;
    ours.scan::<OwnerRow>(.., &mut |_, row| {
        is_before &= epoch < row.epoch;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(is_before)
}
