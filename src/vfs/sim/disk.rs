//! The simulated disk as one of its processes holds it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use nix::libc;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::content::Content;
use super::event::Event;
use super::file::SimFile;
use super::log::EventLog;
use super::world::{Body, HandleId, Names, World, refusal};
use crate::vfs::counts::{Counts, Operation};
use crate::vfs::disk::{
    Access, DirectIo, Disk, Entry, EntryKind, File, Held, Identity, Meta, Sharing, Space,
};
use crate::vfs::step::Step;

/// The device number of everything simulated.
pub(super) const DEVICE: u64 = 0x51;

/// A world and the bell that rings whenever a lock in it is released.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) world: Mutex<World>,
    pub(super) released: Condvar,
}

/// A disk in memory, and the world around it, made from one seed.
///
/// Clones are the same process in the same world; [`process`](Self::process) is another process.
/// Equal seeds and equal calls give equal runs.
#[derive(Clone)]
pub struct SimDisk {
    pub(super) shared: Arc<Shared>,
    pid: u32,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimDisk(process {})", self.pid)
    }
}

impl SimDisk {
    /// An empty disk: the directory `/` and nothing in it.
    pub fn new(seed: u64) -> Self {
        Self::over(World::new(seed), 1000)
    }

    pub(super) fn over(world: World, pid: u32) -> Self {
        let shared = Shared { world: Mutex::new(world), released: Condvar::new() };
        Self { shared: Arc::new(shared), pid }
    }

    /// The same world seen by the process `pid`, which has its own handles and locks.
    pub fn process(&self, pid: u32) -> Self {
        Self { shared: Arc::clone(&self.shared), pid }
    }

    /// Ends this process as SIGKILL would: its handles close, its locks go, each later call of it
    /// fails. What it wrote stays in the cache.
    pub fn kill(&self) {
        self.shared.world.lock().kill(self.pid);
        self.shared.released.notify_all();
    }

    /// Writes down, between two events, what the workload knows.
    pub fn note(&self, note: impl AsRef<[u8]>) {
        self.shared.world.lock().record(Event::Note(note.as_ref().into()));
    }

    /// Everything that happened since the disk was made, crashed or had its log restarted.
    pub fn events(&self) -> EventLog {
        self.shared.world.lock().events()
    }

    /// Begins the log anew: what happened so far is where its crashes start from.
    pub fn restart_log(&self) {
        self.shared.world.lock().restart_log(true);
    }

    /// Ends the log, for runs too long to remember. [`restart_log`](Self::restart_log) begins a
    /// new one.
    pub fn stop_log(&self) {
        self.shared.world.lock().restart_log(false);
    }

    /// What was called so far, by all processes, and what is held now.
    pub fn counts(&self) -> Counts {
        let world = self.shared.world.lock();
        let mut counts = world.counts;
        counts.open_handles = world.handles.len() as u64;
        counts.locks_held = world.locks.len();
        counts
    }

    /// Steps the wall clock, back or forward.
    pub fn step_wall_clock(&self, nanos: i64) {
        let mut world = self.shared.world.lock();
        world.wall_ahead = world.wall_ahead.map(|ahead| ahead.saturating_add(nanos));
    }

    /// Sets the wall clock; `None` makes it one that cannot be represented.
    pub fn set_wall_clock(&self, nanos: Option<i64>) {
        let mut world = self.shared.world.lock();
        let now = i64::try_from(world.monotonic).unwrap_or(i64::MAX);
        world.wall_ahead = nanos.map(|nanos| nanos.saturating_sub(now));
    }

    /// Lets time pass on both clocks.
    pub fn pass_time(&self, nanos: u64) {
        self.shared.world.lock().monotonic += nanos;
    }

    fn begin(&self, operation: Operation) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.shared.world.lock();
        world.begin(self.pid, operation)?;
        Ok(world)
    }

    fn handle(&self, world: &mut World, inode: u64, access: Access) -> Arc<dyn File> {
        let id = world.open(self.pid, inode);
        Arc::new(SimFile::new(Arc::clone(&self.shared), self.pid, inode, id, access))
    }
}

/// A directory lock of a simulated process.
struct HeldDirectory {
    shared: Arc<Shared>,
    handle: HandleId,
}

impl fmt::Debug for HeldDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldDirectory(handle {})", self.handle)
    }
}

impl Held for HeldDirectory {}

impl Drop for HeldDirectory {
    fn drop(&mut self) {
        self.shared.world.lock().close(self.handle);
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        match access {
            Access::Read | Access::ReadWrite => {
                let mut world = self.begin(Operation::Open)?;
                let inode = world.find(path)?;
                world.content(inode)?;
                Ok(self.handle(&mut world, inode, access))
            }
            Access::CreateNew | Access::CreateNewDirect => {
                let mut world = self.begin(Operation::Create)?;
                let (at, _) = world.place(path)?;
                if world.at(&at)?.is_some() {
                    return Err(refusal(libc::EEXIST));
                }
                let inode = world.create(&at, Body::File(Content::default()))?;
                world.record(Event::Create { at, inode });
                Ok(self.handle(&mut world, inode, access))
            }
        }
    }

    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        let world = self.begin(Operation::Meta)?;
        let inode = match world.find(path) {
            Ok(inode) => inode,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let (kind, len, mode) = match world.content(inode) {
            Ok(content) => (EntryKind::File, content.len(), 0o600),
            Err(_) => (EntryKind::Directory, 4096, 0o700),
        };
        Ok(Some(Meta { kind, len, mode, identity: Identity { device: DEVICE, inode } }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.begin(Operation::Rename)?;
        let (from, _) = world.place(from)?;
        let (to, above) = world.place(to)?;
        let inode = world.at(&from)?.ok_or_else(|| refusal(libc::ENOENT))?;
        let replaced = world.at(&to)?;
        // One name or two of the same file: POSIX says that nothing happens.
        if replaced == Some(inode) {
            return Ok(());
        }
        if above.contains(&inode) {
            return Err(refusal(libc::EINVAL));
        }
        if let Some(replaced) = replaced {
            match (world.names(inode).is_ok(), world.names(replaced)) {
                (true, Ok(names)) if !names.is_empty() => return Err(refusal(libc::ENOTEMPTY)),
                (true, Err(_)) => return Err(refusal(libc::ENOTDIR)),
                (false, Ok(_)) => return Err(refusal(libc::EISDIR)),
                _ => {}
            }
        }
        world.put_name(&to, inode)?;
        world.take_name(&from)?;
        world.record(Event::Rename { from, to, inode, replaced });
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.begin(Operation::Link)?;
        let inode = world.find(from)?;
        let (at, _) = world.place(to)?;
        if world.at(&at)?.is_some() {
            return Err(refusal(libc::EEXIST));
        }
        if world.names(inode).is_ok() {
            return Err(refusal(libc::EPERM));
        }
        world.put_name(&at, inode)?;
        world.record(Event::Link { at, inode });
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut world = self.begin(Operation::Unlink)?;
        let (at, _) = world.place(path)?;
        let inode = world.at(&at)?.ok_or_else(|| refusal(libc::ENOENT))?;
        if world.names(inode).is_ok() {
            return Err(refusal(libc::EISDIR));
        }
        world.take_name(&at)?;
        world.record(Event::Unlink { at, inode });
        Ok(())
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.begin(Operation::Mkdir)?;
        let (at, _) = world.place(path)?;
        if world.at(&at)?.is_some() {
            return Err(refusal(libc::EEXIST));
        }
        let inode = world.create(&at, Body::Directory(Names::new()))?;
        world.record(Event::Mkdir { at, inode });
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut world = self.begin(Operation::List)?;
        let names = world.names(world.find(path)?)?;
        let mut entries: Vec<_> = names
            .iter()
            .map(|(name, inode)| {
                let is_file = world.content(*inode).is_ok();
                let kind = if is_file { EntryKind::File } else { EntryKind::Directory };
                Entry { name: name.to_string(), kind }
            })
            .collect();
        world.rng.shuffle(&mut entries);
        Ok(entries)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.begin(Operation::SyncDir)?;
        let inode = world.find(path)?;
        world.names(inode)?;
        world.record(Event::SyncDir { inode, failed: false });
        Ok(())
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let world = self.begin(Operation::Space)?;
        world.find(path)?;
        Ok(Space { free: 1 << 40, total: 1 << 41 })
    }

    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        let mut world = self.begin(Operation::LockDir)?;
        let inode = world.find(path)?;
        world.names(inode)?;
        let handle = world.open(self.pid, inode);
        if !world.locks.take_directory(inode, handle, sharing) {
            world.close(handle);
            return Ok(None);
        }
        Ok(Some(Box::new(HeldDirectory { shared: Arc::clone(&self.shared), handle })))
    }

    fn direct_io(&self, _path: &Path) -> DirectIo {
        DirectIo::Direct
    }

    fn wall_nanos(&self) -> Option<i64> {
        let mut world = self.shared.world.lock();
        world.tick();
        world.wall_ahead?.checked_add(i64::try_from(world.monotonic).ok()?)
    }

    fn monotonic_nanos(&self) -> u64 {
        let mut world = self.shared.world.lock();
        world.tick();
        world.monotonic
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn boot_id(&self) -> String {
        format!("boot-{:016x}", self.shared.world.lock().boot)
    }

    fn host(&self) -> String {
        "simulated".to_owned()
    }

    fn entropy(&self, into: &mut [u8]) -> io::Result<()> {
        let mut world = self.shared.world.lock();
        world.alive(self.pid)?;
        world.rng.fill(into);
        Ok(())
    }

    fn mark(&self, step: Step) {
        self.shared.world.lock().record(Event::Mark(step));
    }
}
