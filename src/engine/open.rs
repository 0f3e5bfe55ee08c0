//! Open and create.
//!
//! ```text
//!   create: folders -> manifest under a temporary name -> link -> sync -> sync the parent
//!   open:   lock -> witnesses -> sync, evict, open the manifest -> own lock -> epoch
//!           -> replay, take over the dead -> sweep -> finish unlinks -> ready
//! ```

use parking_lot::{Mutex, RwLock};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::ballast::Ballast;
use super::condition::Condition;
use super::core::{Core, Me};
use super::enter::{OPENING_MILLIS_MAX, Patience, WriteAccess, gate, lock, lock_birthplace};
use super::journals::Rowkeeper;
use super::options::Options;
use super::owner::OwnLock;
use super::recover;
use super::single::{self, Ground, Layout};
use super::store::{Inner, Store, Writer};
use super::take_over::recover_shared;
use super::worker::Linger;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{CommitSeq, Epoch, OwnerId, StoreId};
use crate::journal::{self, Journal, JournalConfig};
use crate::manifest::{
    Birth, CheckIntegrity, Manifest, Open, OwnerRow, Reading, SnapshotRow, Table, Witness, Write,
    read_head,
};
use crate::protection::Protection;
use crate::vfs::{Disk, EntryKind, Held, Step};

/// Brings a store into being, without opening it.
pub(super) fn create(root: &Path, options: &Options) -> Result<()> {
    let disk = options.disk_or_real();
    let fail = |e| Error::io("create", root.display(), e);
    if options.layout == Layout::SingleFile {
        single::refuse_shared("create", root, options)?;
        return single::create(&disk, root, options);
    }
    if single::layout_of(&disk, root)? == Layout::SingleFile {
        let cause = "a file is there already, and was left as it is";
        return Err(Error::new(ErrorKind::Exists, "create", root.display(), cause));
    }
    disk.mark(Step::BirthFolders);
    match disk.mkdir(root) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(fail(e)),
    }
    let is_born = || {
        let manifest = layout::manifest(root);
        let found = disk.meta(&manifest);
        Ok(found.map_err(|e| Error::io("create", manifest.display(), e))?.is_some())
    };
    let _lock = lock_birthplace(&disk, root, options, &is_born)?;
    check_private("create", &disk, root, options)?;
    check_birthplace(&disk, root)?;
    let folders = options.limits.sealed_folders;
    make_folders(&disk, root, folders)?;
    // Also those that an interrupted creation made and never synced.
    sync_folders(&disk, root)?;
    let (millis, random) = super::core::parts(&disk)?;
    let birth = Birth {
        store: StoreId::from_parts(millis, random),
        created: disk.wall_nanos(),
        sealed_folders: folders,
        single_file: false,
    };
    let unique = super::core::unique(&disk)?;
    let nobody = OwnerId::from_parts(0, [0; 10]);
    let tmp = layout::tmp(root, nobody, unique);
    let name = tmp.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Manifest::create(&disk, root, &birth, name)?;
    disk.mark(Step::BirthParent);
    let parent = layout::parent(root);
    disk.sync_dir(parent).map_err(|e| Error::io("sync", parent.display(), e))
}

/// G10: who created the store may have died before its names were durable. What is about to be
/// shown must not go with them.
pub(super) fn sync_names(disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
    if !Protection::SyncBeforeTrust.is_on() {
        return Ok(());
    }
    disk.sync_dir(root).map_err(|e| Error::io("sync", root.display(), e))?;
    let parent = layout::parent(root);
    match disk.sync_dir(parent) {
        // A directory that we may pass and not read: its owner answers for what is in it.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced.map_err(|e| Error::io("sync", parent.display(), e)),
    }
}

/// Makes the folders that are missing: all of them at birth, and those that a copy of the store left
/// out because they were empty.
pub(super) fn make_folders(disk: &Arc<dyn Disk>, root: &Path, folders: u16) -> Result<()> {
    let mut wanted =
        vec![layout::journal_dir(root), layout::tmp_dir(root), layout::owners_dir(root)];
    wanted.push(layout::sealed_dir(root));
    wanted.extend((0..folders).map(|folder| layout::sealed_folder(root, folder)));
    let mut any = false;
    for path in wanted {
        let fail = |e| Error::io("create", path.display(), e);
        if disk.meta(&path).map_err(fail)?.is_none() {
            match disk.mkdir(&path) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e)),
                _ => {}
            }
            any = true;
        }
    }
    if any { sync_folders(disk, root) } else { Ok(()) }
}

fn sync_folders(disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
    for path in [layout::sealed_dir(root), root.to_owned()] {
        disk.sync_dir(&path).map_err(|e| Error::io("sync", path.display(), e))?;
    }
    Ok(())
}

/// Nothing may be there but what an interrupted creation left.
fn check_birthplace(disk: &Arc<dyn Disk>, root: &Path) -> Result<()> {
    let entries = disk.list(root).map_err(|e| Error::io("create", root.display(), e))?;
    if entries.iter().any(|entry| entry.name == layout::MANIFEST) {
        let cause = "a store is there already, and was left as it is";
        return Err(Error::new(ErrorKind::Exists, "create", root.display(), cause));
    }
    for entry in &entries {
        if entry.name == layout::BACKUP || !layout::TOP.contains(&entry.name.as_str()) {
            let cause = format!("it holds {:?}, which is no part of a store", entry.name);
            return Err(Error::invalid("create", root.display(), cause));
        }
    }
    if has_evidence(disk, root)? {
        let cause = "a store without its manifest is there; put it back, or salvage";
        return Err(Error::new(ErrorKind::ManifestLost, "create", root.display(), cause));
    }
    Ok(())
}

/// Whether a store was at work here: HEAD or a journal is there.
fn has_evidence(disk: &Arc<dyn Disk>, root: &Path) -> Result<bool> {
    let head = layout::head(root);
    if disk.meta(&head).map_err(|e| Error::io("open", head.display(), e))?.is_some() {
        return Ok(true);
    }
    let journals = layout::journal_dir(root);
    match disk.list(&journals) {
        Ok(entries) => Ok(entries.iter().any(|e| layout::parse_journal(&e.name).is_some())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("open", journals.display(), e)),
    }
}

/// The path must hold a directory, or a link to one, that no other user may enter; or a file that
/// no other user may write.
fn check_private(
    operation: &'static str,
    disk: &Arc<dyn Disk>,
    root: &Path,
    options: &Options,
) -> Result<()> {
    let fail = |e| Error::io(operation, root.display(), e);
    let none = |cause| Err(Error::new(ErrorKind::NoStore, operation, root.display(), cause));
    let named = disk.meta(root).map_err(fail)?;
    let meta = match named {
        // What a link leads to: `link/.` is looked at in its place.
        Some(meta) if meta.kind == EntryKind::Other => match disk.meta(&root.join(".")) {
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                let cause = "it is a link, and to no directory; give the path of the file itself";
                return Err(Error::invalid(operation, root.display(), cause));
            }
            seen => seen.map_err(fail)?.or(Some(meta)),
        },
        named => named,
    };
    match meta {
        None => none("nothing is there"),
        Some(meta) if meta.kind == EntryKind::File => {
            single::check_private(operation, root, &meta, options)
        }
        Some(meta) if meta.kind != EntryKind::Directory => {
            none("it is neither a directory nor a file")
        }
        Some(meta) if meta.mode & 0o077 != 0 && !options.allow_shared_root => {
            let cause = format!(
                "other users may enter it (mode {:o}); close it to them, or allow a shared root",
                meta.mode & 0o777
            );
            Err(Error::invalid(operation, root.display(), cause))
        }
        Some(_) => Ok(()),
    }
}

/// The path must hold a store.
pub(super) fn check_root(disk: &Arc<dyn Disk>, root: &Path, options: &Options) -> Result<()> {
    check_private("open", disk, root, options)?;
    if single::layout_of(disk, root)? == Layout::SingleFile {
        return Ok(());
    }
    let none = |cause| Err(Error::new(ErrorKind::NoStore, "open", root.display(), cause));
    let manifest = layout::manifest(root);
    let found = disk.meta(&manifest).map_err(|e| Error::io("open", manifest.display(), e))?;
    if found.is_none() {
        let backup = layout::backup(root);
        let marker = disk.meta(&backup).map_err(|e| Error::io("open", root.display(), e))?;
        if marker.is_some() {
            return none("a backup into it was never finished; make it again");
        }
        if has_evidence(disk, root)? {
            let cause = "the store stands but its manifest is gone; put it back, or salvage";
            return Err(Error::new(ErrorKind::ManifestLost, "open", manifest.display(), cause));
        }
        return none("it holds no manifest; its creation was never finished, or it is no store");
    }
    Ok(())
}

/// What HEAD and the journal headers say, read before the manifest. Unreadable means no witness.
pub(super) fn witnesses(disk: &Arc<dyn Disk>, root: &Path) -> Result<Vec<Witness>> {
    disk.mark(Step::OpenWitness);
    let mut found: Vec<Witness> = read_head(disk, root).into_iter().collect();
    let dir = layout::journal_dir(root);
    let entries = match disk.list(&dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(Error::io("open", dir.display(), e)),
    };
    for entry in entries {
        let path = dir.join(&entry.name);
        if layout::parse_journal(&entry.name).is_none() {
            continue;
        }
        match journal::read_header(&**disk, &path) {
            Ok(header) => {
                let place = path.display().to_string();
                found.push(Witness { place, store: header.store, commit: header.commit });
            }
            // Gone meanwhile, or torn at its birth. A disk that fails to answer is another matter:
            // a witness that was not heard is not a witness that is not there.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Damage) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

fn check_integrity(options: &Options) -> CheckIntegrity {
    let up_to = CheckIntegrity::UpTo(options.limits.check_integrity_bytes_max);
    options.check_integrity.unwrap_or(up_to)
}

pub(super) fn manifest_options(options: &Options, witnesses: Vec<Witness>) -> Open {
    Open {
        cache_bytes: options.limits.manifest_cache_bytes,
        check_integrity: check_integrity(options),
        witnesses,
        single_file: false,
        is_shared: options.access == WriteAccess::Shared,
    }
}

/// The manifest of a store directory, opened for writing; and what is held until the opening is
/// over.
fn open_directory(
    disk: Arc<dyn Disk>,
    root: &Path,
    options: &Options,
) -> Result<(Ground, Option<Box<dyn Held>>)> {
    let gate = gate(&disk, root, options)?;
    // Opening commits: on a full disk it needs the room that the ballast keeps.
    let ballast = Ballast::open(&disk, root, &options.limits)?;
    ballast.before_commit(&disk, root, &options.limits)?;
    let seen = witnesses(&disk, root)?;
    disk.mark(Step::OpenManifest);
    sync_names(&disk, root)?;
    let manifest = open_manifest(&disk, root, options, seen)?;
    make_folders(&disk, root, manifest.meta().sealed_folders)?;
    Ok((Ground::directory(disk, manifest, options), gate))
}

/// Opens for writing.
pub(super) fn open(root: &Path, options: &Options) -> Result<Store> {
    let disk = options.disk_or_real();
    check_root(&disk, root, options)?;
    let layout = single::layout_of(&disk, root)?;
    let mut untidy = None;
    if layout == Layout::SingleFile {
        single::refuse_shared("open", root, options)?;
        untidy = single::clear(&disk, root);
    }
    let store_lock = lock(&disk, root, options)?;
    let (ground, gate) = match layout {
        Layout::Directory => open_directory(disk, root, options)?,
        Layout::SingleFile => {
            (single::open(disk, root, options, &manifest_options(options, Vec::new()))?, None)
        }
    };
    let Ground { disk, manifest, .. } = &ground;
    disk.mark(Step::OpenOwnerLock);
    let (owner, own_lock) = OwnLock::take(disk, root, options.access)?;
    disk.mark(Step::OpenEpoch);
    resume_changes(manifest)?;
    let epoch = commit_epoch(disk, manifest, owner, options)?;
    let mut core = core(ground, root, options, Some(Me { owner, epoch }))?;
    if core.is_shared() {
        core.own_lock = Some(own_lock.identity()?);
    }
    untidy.into_iter().for_each(|e| core.condition.warn(e));
    let core = Arc::new(core);
    let recovered = match options.access {
        WriteAccess::Single => recover::recover(&core, options.set_aside_damage)?,
        WriteAccess::Shared => recover_shared(&core)?,
    };
    let writer = Writer {
        journal: own_journal(&core, owner, epoch),
        streams: Mutex::new(recovered.streams),
        adopted: Mutex::new(recovered.adopted),
        left: Mutex::new(BTreeSet::new()),
        releasing: RwLock::new(()),
        building: Arc::new(Mutex::new(BTreeSet::new())),
        recovery: recovered.recovery,
        published: Mutex::new(0),
        linger: Mutex::new(None),
        reclaimer: Mutex::new(None),
        locks: Mutex::new(Some((own_lock, store_lock))),
    };
    let inner = Inner::new(core, Some(writer));
    let store = Store::new(inner);
    let weak = Arc::downgrade(&store.inner);
    store.core().condition.on_halt(move |cause| {
        // P8: nobody waits for what will not come.
        if let Some(writer) = weak.upgrade().as_ref().and_then(|inner| inner.writer.as_ref()) {
            writer.journal.poison(cause.clone());
        }
    });
    let finished = super::reclaim::finish_unlinks(store.core(), store.files());
    store.core().note_untidy(finished.map(|_| ()));
    store.core().write_head(store.core().manifest.commit_seq());
    sync_head(store.core())?;
    if let Some(ballast) = &store.core().ballast {
        ballast.keep(&store.core().disk, root, &options.limits)?;
    }
    store.core().settle_pending()?;
    store.core().disk.mark(Step::OpenReady);
    drop(gate);
    if options.limits.background {
        let linger = Linger::start(&store.inner, options.limits.linger_millis)?;
        *store.writer("open")?.linger.lock() = Some(linger);
    }
    Ok(store)
}

fn open_manifest(
    disk: &Arc<dyn Disk>,
    root: &Path,
    options: &Options,
    seen: Vec<Witness>,
) -> Result<Manifest> {
    let how = manifest_options(options, seen);
    let most = if how.is_shared { OPENING_MILLIS_MAX } else { 0 };
    let mut patience = Patience::new(most.max(options.wait_millis));
    loop {
        match Manifest::open(disk, root, &how) {
            // A reader that looks at what a killed writer left, or a peer that has just died.
            Err(e) if how.is_shared && e.kind() == ErrorKind::InUse && patience.once() => {}
            opened => return opened,
        }
    }
}

/// Opens for reading: nothing on disk is changed. Waits, where asked to, for a writer that is still
/// opening what a killed one left.
pub(super) fn open_read_only(root: &Path, options: &Options) -> Result<Store> {
    let mut patience = Patience::new(options.wait_millis);
    loop {
        match open_read_only_once(root, options) {
            Err(e) if e.kind() == ErrorKind::InUse && patience.once() => {}
            opened => return opened,
        }
    }
}

fn open_read_only_once(root: &Path, options: &Options) -> Result<Store> {
    let disk = options.disk_or_real();
    check_root(&disk, root, options)?;
    let ground = match single::layout_of(&disk, root)? {
        Layout::Directory => {
            let seen = witnesses(&disk, root)?;
            let open = manifest_options(options, seen);
            let manifest = Manifest::open_read_only(&disk, root, &open)?;
            Ground::directory(disk, manifest, options)
        }
        Layout::SingleFile => {
            single::open_read_only(disk, root, options, &manifest_options(options, Vec::new()))?
        }
    };
    let core = Arc::new(core(ground, root, options, None)?);
    let inner = Inner::new(core, None);
    Ok(Store::new(inner))
}

fn core(ground: Ground, root: &Path, options: &Options, me: Option<Me>) -> Result<Core> {
    let Ground { disk, manifest, limits } = ground;
    let ballast = match me {
        Some(_) => Some(Ballast::open(&disk, root, &limits)?),
        None => None,
    };
    Ok(Core {
        pid: disk.pid(),
        head_at: Mutex::new(manifest.commit_seq()),
        disk,
        root: root.to_owned(),
        limits,
        check_integrity: check_integrity(options),
        manifest,
        me,
        condition: Condition::default(),
        ballast,
        access: options.access,
        own_lock: None,
        bell: Default::default(),
        pins: Default::default(),
        unreleased: Default::default(),
        fresh: Default::default(),
    })
}

fn own_journal(core: &Arc<Core>, owner: OwnerId, epoch: Epoch) -> Journal {
    let witness = Arc::clone(core);
    let config = JournalConfig {
        disk: Arc::clone(&core.disk),
        root: core.root.clone(),
        store: core.manifest.meta().store,
        owner,
        epoch,
        limits: core.limits.clone(),
        commit: Arc::new(move || -> CommitSeq { witness.manifest.commit_seq() }),
        first_n: 0,
        is_written_by_sync: core.manifest.meta().single_file,
    };
    Journal::new(config, Arc::new(Rowkeeper { core: Arc::clone(core) }))
}

/// The next snapshot may be of what changed alone, if the last opening left nothing uncovered.
fn resume_changes(manifest: &Manifest) -> Result<()> {
    if let Some((covers, row)) = manifest.read()?.last::<SnapshotRow>(..)?
        && (row.quiet_upto == manifest.commit_seq() || !Protection::SnapshotGap.is_on())
    {
        manifest.resume_changes(CommitSeq(covers));
    }
    Ok(())
}

/// G25: a HEAD by which nothing followed the newest snapshot must be gone for good before anything
/// does.
fn sync_head(core: &Core) -> Result<()> {
    if core.manifest.meta().single_file || !Protection::HeadSyncedAtOpen.is_on() {
        return Ok(());
    }
    let root = &core.root;
    core.disk.sync_dir(root).map_err(|e| Error::io("sync", root.display(), e))
}

/// Commits our row at once: the epoch is used up even if nothing else happens.
fn commit_epoch(
    disk: &Arc<dyn Disk>,
    manifest: &Manifest,
    owner: OwnerId,
    options: &Options,
) -> Result<Epoch> {
    let (host, boot_id) = (disk.host(), disk.boot_id());
    let (pid, opened) = (disk.pid(), disk.wall_nanos());
    let committed = manifest.write(None, Step::OpenEpoch, |w| {
        let epoch = w.next_epoch()?;
        let row = OwnerRow {
            epoch,
            commits: Default::default(),
            host,
            pid,
            boot_id,
            opened,
            ended: None,
        };
        w.put(&owner, &row)?;
        trim_owners(w, options.limits.owners_max)?;
        Ok(epoch)
    })?;
    Ok(committed.value)
}

/// Reading of ended owners are kept up to a bound, the oldest epochs going first. An owner whose
/// journals still stand keeps its row: their order is its epoch.
fn trim_owners(w: &mut Write, owners_max: u64) -> Result<()> {
    if w.count(Table::Owners)? <= owners_max {
        return Ok(());
    }
    let mut ended: Vec<(Epoch, OwnerId)> = w
        .list::<OwnerRow>(.., usize::MAX)?
        .into_iter()
        .filter(|(_, row)| row.ended.is_some())
        .map(|(owner, row)| (row.epoch, owner))
        .collect();
    ended.sort();
    let surplus = w.count(Table::Owners)?.saturating_sub(owners_max) as usize;
    for (_, owner) in ended.into_iter().take(surplus) {
        let range = (owner, 0)..=(owner, u64::MAX);
        if w.list::<crate::manifest::JournalRow>(range, 1)?.is_empty() {
            w.remove::<OwnerRow>(&owner)?;
        }
    }
    Ok(())
}
