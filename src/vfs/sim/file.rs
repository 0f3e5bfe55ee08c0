//! An open file of the simulated disk.

use std::fmt;
use std::io;
use std::sync::Arc;

use nix::libc;
use parking_lot::MutexGuard;

use super::disk::{DEVICE, Shared};
use super::event::Event;
use super::locks::Span;
use super::world::{HandleId, Inode, World, refusal};
use crate::vfs::counts::Operation;
use crate::vfs::disk::{Access, File, Identity, LockRange, Sharing};

/// Longest file, as on ext4 with pages of 4 KiB.
const LEN_MAX: u64 = 16 << 40;

/// A handle of one simulated process.
pub(super) struct SimFile {
    shared: Arc<Shared>,
    pid: u32,
    inode: Inode,
    handle: HandleId,
    writable: bool,
}

impl SimFile {
    pub(super) fn new(
        shared: Arc<Shared>,
        pid: u32,
        inode: Inode,
        handle: HandleId,
        access: Access,
    ) -> Self {
        Self { shared, pid, inode, handle, writable: access != Access::Read }
    }

    fn begin(&self, operation: Operation) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.shared.world.lock();
        world.begin(self.pid, operation)?;
        Ok(world)
    }

    fn writable(&self, otherwise: i32) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(refusal(otherwise)) }
    }

    fn sync(&self, all: bool) -> io::Result<()> {
        let operation = if all { Operation::SyncAll } else { Operation::SyncData };
        let mut world = self.begin(operation)?;
        world.record(Event::SyncFile { inode: self.inode, all, failed: None });
        Ok(())
    }

    /// The span to lock, if this handle may lock it so.
    fn span(&self, range: LockRange, sharing: Sharing) -> io::Result<Span> {
        if sharing == Sharing::Exclusive {
            self.writable(libc::EBADF)?;
        }
        Span::of(range)
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile(inode {}, handle {})", self.inode, self.handle)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.shared.world.lock().close(self.handle);
        self.shared.released.notify_all();
    }
}

impl File for SimFile {
    fn len(&self) -> io::Result<u64> {
        let world = self.shared.world.lock();
        world.alive(self.pid)?;
        Ok(world.content(self.inode)?.len())
    }

    fn identity(&self) -> io::Result<Identity> {
        self.shared.world.lock().alive(self.pid)?;
        Ok(Identity { device: DEVICE, inode: self.inode })
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.begin(Operation::Read)?;
        if i64::try_from(offset).is_err() {
            return Err(refusal(libc::EINVAL));
        }
        let read = world.content(self.inode)?.read(into, offset);
        world.counts.bytes_read += read as u64;
        Ok(read)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let mut world = self.begin(Operation::Write)?;
        self.writable(libc::EBADF)?;
        if i64::try_from(offset).is_err() {
            return Err(refusal(libc::EINVAL));
        }
        if from.is_empty() {
            return Ok(0);
        }
        if offset.checked_add(from.len() as u64).is_none_or(|end| end > LEN_MAX) {
            return Err(refusal(libc::EFBIG));
        }
        world.content_mut(self.inode)?.write(from, offset);
        world.counts.bytes_written += from.len() as u64;
        world.record(Event::Write { inode: self.inode, offset, bytes: from.into() });
        Ok(from.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.begin(Operation::SetLen)?;
        self.writable(libc::EINVAL)?;
        if i64::try_from(len).is_err() {
            return Err(refusal(libc::EINVAL));
        }
        if len > LEN_MAX {
            return Err(refusal(libc::EFBIG));
        }
        world.content_mut(self.inode)?.set_len(len);
        world.record(Event::SetLen { inode: self.inode, len });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(false)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(true)
    }

    fn evict(&self) -> io::Result<()> {
        self.begin(Operation::Evict).map(drop)
    }

    fn try_lock(&self, range: LockRange, sharing: Sharing) -> io::Result<bool> {
        let mut world = self.begin(Operation::Lock)?;
        let span = self.span(range, sharing)?;
        let free = !world.locks.conflict(self.inode, self.handle, span, sharing);
        if free {
            world.locks.take(self.inode, self.handle, span, sharing);
        }
        drop(world);
        // A lock that became shared lets others in.
        self.shared.released.notify_all();
        Ok(free)
    }

    fn lock(&self, range: LockRange, sharing: Sharing) -> io::Result<()> {
        let mut world = self.begin(Operation::Lock)?;
        let span = self.span(range, sharing)?;
        while world.locks.conflict(self.inode, self.handle, span, sharing) {
            self.shared.released.wait(&mut world);
            world.alive(self.pid)?;
        }
        world.locks.take(self.inode, self.handle, span, sharing);
        drop(world);
        self.shared.released.notify_all();
        Ok(())
    }

    fn unlock(&self, range: LockRange) -> io::Result<()> {
        let mut world = self.begin(Operation::Unlock)?;
        world.locks.release(self.inode, self.handle, Span::of(range)?);
        drop(world);
        self.shared.released.notify_all();
        Ok(())
    }

    fn is_locked(&self, range: LockRange) -> io::Result<bool> {
        let world = self.shared.world.lock();
        world.alive(self.pid)?;
        Ok(world.locks.conflict(self.inode, self.handle, Span::of(range)?, Sharing::Exclusive))
    }
}
