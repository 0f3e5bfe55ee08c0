//! The simulated disk's side of the trait: each call with the refusals that a kernel would give.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use nix::libc;
use parking_lot::MutexGuard;

use super::content::{Content, PAGE};
use super::disk::{DEVICE, Shared, SimDisk};
use super::event::Event;
use super::fault::{FaultKind, Twist};
use super::file::SimFile;
use super::tree::{Body, Names, refusal};
use super::world::{HandleId, World};
use crate::vfs::counts::Operation;
use crate::vfs::disk::{
    Access, DirectIo, Disk, Entry, EntryKind, File, Held, Identity, Meta, Sharing, Space,
};
use crate::vfs::step::Step;

impl SimDisk {
    fn begin(
        &self,
        operation: Operation,
        path: &Path,
    ) -> io::Result<(MutexGuard<'_, World>, Option<Twist>)> {
        let mut world = self.shared.world.lock();
        let twist = world.begin(self.pid, operation, path)?;
        Ok((world, twist))
    }

    /// Begins an operation that needs room for a new name, or a new file.
    fn begin_naming(&self, operation: Operation, path: &Path) -> io::Result<MutexGuard<'_, World>> {
        let (mut world, twist) = self.begin(operation, path)?;
        if let Some(twist) = twist
            && twist.kind == FaultKind::EnospcUntilFreed
        {
            world.faults.fire(twist, operation, path);
            world.fill_up();
        }
        Ok(world)
    }

    fn handle(&self, world: &mut World, inode: u64, path: &Path, access: Access) -> Arc<dyn File> {
        let handle = world.open(self.pid, inode);
        Arc::new(SimFile {
            shared: Arc::clone(&self.shared),
            pid: self.pid,
            inode,
            handle,
            path: path.to_owned(),
            writable: access != Access::Read,
        })
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
                let (mut world, _) = self.begin(Operation::Open, path)?;
                let inode = world.tree.find(path)?;
                world.tree.content(inode)?;
                world.spare_handle(self.pid)?;
                Ok(self.handle(&mut world, inode, path, access))
            }
            Access::CreateNew | Access::CreateNewDirect => {
                let mut world = self.begin_naming(Operation::Create, path)?;
                let (at, _) = world.tree.place(path)?;
                if world.tree.at(&at)?.is_some() {
                    return Err(refusal(libc::EEXIST));
                }
                world.room_for_a_name()?;
                world.spare_handle(self.pid)?;
                let inode = world.tree.create(&at, Body::File(Content::default()))?;
                world.record(Event::Create { at, inode });
                Ok(self.handle(&mut world, inode, path, access))
            }
        }
    }

    fn meta(&self, path: &Path) -> io::Result<Option<Meta>> {
        let (world, _) = self.begin(Operation::Meta, path)?;
        let inode = match world.tree.find(path) {
            Ok(inode) => inode,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let (kind, len, mode) = match world.tree.content(inode) {
            Ok(content) => (EntryKind::File, content.len(), 0o600),
            Err(_) => (EntryKind::Directory, 4096, 0o700),
        };
        Ok(Some(Meta { kind, len, mode, identity: Identity { device: DEVICE, inode } }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut world, _) = self.begin(Operation::Rename, from)?;
        let (from, above_from) = world.tree.place(from)?;
        let (to, above_to) = world.tree.place(to)?;
        let inode = world.tree.at(&from)?.ok_or_else(|| refusal(libc::ENOENT))?;
        let replaced = world.tree.at(&to)?;
        // One name or two of the same file: POSIX says that nothing happens.
        if replaced == Some(inode) {
            return Ok(());
        }
        if above_to.contains(&inode) {
            return Err(refusal(libc::EINVAL));
        }
        if replaced.is_some_and(|replaced| above_from.contains(&replaced)) {
            return Err(refusal(libc::ENOTEMPTY));
        }
        if let Some(replaced) = replaced {
            match (world.tree.names(inode).is_ok(), world.tree.names(replaced)) {
                (true, Ok(names)) if !names.is_empty() => return Err(refusal(libc::ENOTEMPTY)),
                (true, Err(_)) => return Err(refusal(libc::ENOTDIR)),
                (false, Ok(_)) => return Err(refusal(libc::EISDIR)),
                _ => {}
            }
        }
        world.tree.put_name(&to, inode)?;
        world.tree.take_name(&from)?;
        world.record(Event::Rename { from, to, inode, replaced });
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut world, _) = self.begin(Operation::Link, from)?;
        let inode = world.tree.find(from)?;
        let (at, _) = world.tree.place(to)?;
        if world.tree.at(&at)?.is_some() {
            return Err(refusal(libc::EEXIST));
        }
        if world.tree.names(inode).is_ok() {
            return Err(refusal(libc::EPERM));
        }
        world.tree.put_name(&at, inode)?;
        world.record(Event::Link { at, inode });
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let (mut world, _) = self.begin(Operation::Unlink, path)?;
        let (at, _) = world.tree.place(path)?;
        let inode = world.tree.at(&at)?.ok_or_else(|| refusal(libc::ENOENT))?;
        if world.tree.names(inode).is_ok() {
            return Err(refusal(libc::EISDIR));
        }
        world.tree.take_name(&at)?;
        world.record(Event::Unlink { at, inode });
        Ok(())
    }

    fn mkdir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.begin_naming(Operation::Mkdir, path)?;
        let (at, _) = world.tree.place(path)?;
        if world.tree.at(&at)?.is_some() {
            return Err(refusal(libc::EEXIST));
        }
        world.room_for_a_name()?;
        let inode = world.tree.create(&at, Body::Directory(Names::new()))?;
        world.record(Event::Mkdir { at, inode });
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let (mut world, _) = self.begin(Operation::List, path)?;
        world.spare_handle(self.pid)?;
        let names = world.tree.names(world.tree.find(path)?)?;
        let mut entries: Vec<_> = names
            .iter()
            .map(|(name, inode)| {
                let is_file = world.tree.content(*inode).is_ok();
                let kind = if is_file { EntryKind::File } else { EntryKind::Directory };
                Entry { name: name.to_string(), kind }
            })
            .collect();
        world.rng.shuffle(&mut entries);
        Ok(entries)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let (mut world, twist) = self.begin(Operation::SyncDir, path)?;
        let inode = world.tree.find(path)?;
        world.tree.names(inode)?;
        world.spare_handle(self.pid)?;
        world.record(Event::SyncDir { inode, failed: twist.is_some() });
        let Some(twist) = twist else { return Ok(()) };
        world.faults.fire(twist, Operation::SyncDir, path);
        Err(refusal(libc::EIO))
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let (world, _) = self.begin(Operation::Space, path)?;
        world.tree.find(path)?;
        let free = world.free_pages().map_or(1 << 40, |pages| pages * PAGE as u64);
        Ok(Space { free, total: world.capacity.unwrap_or(1 << 41) })
    }

    fn lock_dir(&self, path: &Path, sharing: Sharing) -> io::Result<Option<Box<dyn Held>>> {
        let (mut world, twist) = self.begin(Operation::LockDir, path)?;
        let inode = world.tree.find(path)?;
        world.tree.names(inode)?;
        world.spare_handle(self.pid)?;
        if let Some(twist) = twist {
            world.faults.fire(twist, Operation::LockDir, path);
            return Ok(None);
        }
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
