//! An open file of the simulated disk.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use nix::libc;
use parking_lot::MutexGuard;

use super::disk::{DEVICE, Shared};
use super::event::Event;
use super::falsify::falsify;
use super::fault::{Fault, FaultKind, Twist};
use super::locks::Span;
use super::tree::{Inode, refusal};
use super::world::{HandleId, World};
use crate::vfs::counts::Operation;
use crate::vfs::disk::{File, Identity, LockRange, Sharing};

/// Longest file, as on ext4 with pages of 4 KiB.
const LEN_MAX: u64 = 16 << 40;

/// A handle of one simulated process.
pub(super) struct SimFile {
    pub(super) shared: Arc<Shared>,
    pub(super) pid: u32,
    pub(super) inode: Inode,
    pub(super) handle: HandleId,
    pub(super) path: PathBuf,
    pub(super) writable: bool,
}

impl SimFile {
    fn begin(&self, operation: Operation) -> io::Result<(MutexGuard<'_, World>, Option<Twist>)> {
        let mut world = self.shared.world.lock();
        let twist = world.begin(self.pid, operation, &self.path)?;
        Ok((world, twist))
    }

    fn writable(&self, otherwise: i32) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(refusal(otherwise)) }
    }

    fn sync(&self, all: bool) -> io::Result<()> {
        let operation = if all { Operation::SyncAll } else { Operation::SyncData };
        let (mut world, twist) = self.begin(operation)?;
        let mut failure = None;
        if let Some(twist) = twist
            && let FaultKind::SyncFails(how) = twist.kind
        {
            world.faults.fire(twist, operation, &self.path);
            failure = Some(how);
        }
        world.sync_file(self.inode, all, failure)
    }

    /// Takes a lock if nobody stands in the way; `None` if somebody does.
    fn take(&self, world: &mut World, span: Span, sharing: Sharing) -> Option<()> {
        if world.locks.conflict(self.inode, self.handle, span, sharing) {
            return None;
        }
        world.locks.take(self.inode, self.handle, span, sharing);
        // A lock that became shared lets others in.
        self.shared.released.notify_all();
        Some(())
    }

    /// The span to lock, if this handle may lock it so.
    fn span(&self, range: LockRange, sharing: Sharing) -> io::Result<Span> {
        let span = Span::of(range)?;
        if sharing == Sharing::Exclusive {
            self.writable(libc::EBADF)?;
        }
        Ok(span)
    }

    /// How much of `from` a write takes that meets `twist`.
    fn shortened(&self, world: &mut World, twist: Option<Twist>, from: &[u8]) -> usize {
        let Some(twist) = twist else { return from.len() };
        match twist.kind {
            FaultKind::ShortWrite if from.len() > 1 => {
                world.faults.fire(twist, Operation::Write, &self.path);
                let next = Fault::new(world.faults.operations + 1, FaultKind::Eio);
                let path = self.path.to_string_lossy();
                world.faults.arm(next.on(&path).only(Operation::Write));
                1 + world.rng.index(from.len() - 1)
            }
            FaultKind::EnospcUntilFreed => {
                world.faults.fire(twist, Operation::Write, &self.path);
                world.fill_up();
                from.len()
            }
            _ => from.len(),
        }
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
        Ok(world.tree.content(self.inode)?.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        let world = self.shared.world.lock();
        world.alive(self.pid)?;
        Ok(world.tree.content(self.inode)?.pages() * super::content::PAGE as u64)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<bool> {
        let (mut world, twist) = self.begin(Operation::Write)?;
        self.writable(libc::EBADF)?;
        if let Some(twist) = twist.filter(|twist| twist.kind == FaultKind::EnospcUntilFreed) {
            world.faults.fire(twist, Operation::Write, &self.path);
            world.fill_up();
        }
        let len = usize::try_from(len).map_err(io::Error::other)?;
        // All of it or nothing.
        if len == 0 || world.fitting(self.inode, offset, len)? < len {
            return if len == 0 { Ok(true) } else { Err(refusal(libc::ENOSPC)) };
        }
        world.tree.change(self.inode, |content| content.allocate(offset, len as u64))?;
        Ok(true)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.shared.world.lock().alive(self.pid)?;
        Ok(Identity { device: DEVICE, inode: self.inode })
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (mut world, twist) = self.begin(Operation::Read)?;
        if i64::try_from(offset).is_err() {
            return Err(refusal(libc::EINVAL));
        }
        let mut read = world.tree.content(self.inode)?.read(into, offset);
        if let Some(twist) = twist
            && let Some(twisted) =
                falsify(&mut world, twist.kind, self.inode, offset, &into[..read])
        {
            world.faults.fire(twist, Operation::Read, &self.path);
            read = twisted.len();
            into[..read].copy_from_slice(&twisted);
        }
        world.counts.bytes_read += read as u64;
        Ok(read)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let (mut world, twist) = self.begin(Operation::Write)?;
        if i64::try_from(offset).is_err() {
            return Err(refusal(libc::EINVAL));
        }
        self.writable(libc::EBADF)?;
        if from.is_empty() {
            return Ok(0);
        }
        if offset.checked_add(from.len() as u64).is_none_or(|end| end > LEN_MAX) {
            return Err(refusal(libc::EFBIG));
        }
        let wanted = self.shortened(&mut world, twist, from);
        let taken = world.fitting(self.inode, offset, wanted)?;
        if taken == 0 {
            return Err(refusal(libc::ENOSPC));
        }
        let bytes = &from[..taken];
        world.tree.change(self.inode, |content| content.write(bytes, offset))?;
        world.counts.bytes_written += taken as u64;
        world.record(Event::Write { inode: self.inode, offset, bytes: bytes.into() });
        Ok(taken)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (mut world, _) = self.begin(Operation::SetLen)?;
        if i64::try_from(len).is_err() {
            return Err(refusal(libc::EINVAL));
        }
        self.writable(libc::EINVAL)?;
        if len > LEN_MAX {
            return Err(refusal(libc::EFBIG));
        }
        world.tree.change(self.inode, |content| content.set_len(len))?;
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
        let (mut world, _) = self.begin(Operation::Evict)?;
        world.evict(self.inode)
    }

    fn try_lock(&self, range: LockRange, sharing: Sharing) -> io::Result<bool> {
        let (mut world, twist) = self.begin(Operation::Lock)?;
        let span = self.span(range, sharing)?;
        if let Some(twist) = twist {
            world.faults.fire(twist, Operation::Lock, &self.path);
            return Ok(false);
        }
        Ok(self.take(&mut world, span, sharing).is_some())
    }

    fn lock(&self, range: LockRange, sharing: Sharing) -> io::Result<()> {
        let (mut world, twist) = self.begin(Operation::Lock)?;
        let span = self.span(range, sharing)?;
        if let Some(twist) = twist {
            world.faults.fire(twist, Operation::Lock, &self.path);
            return Err(refusal(libc::EAGAIN));
        }
        while self.take(&mut world, span, sharing).is_none() {
            self.shared.released.wait(&mut world);
            world.alive(self.pid)?;
        }
        Ok(())
    }

    fn unlock(&self, range: LockRange) -> io::Result<()> {
        let (mut world, _) = self.begin(Operation::Unlock)?;
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
