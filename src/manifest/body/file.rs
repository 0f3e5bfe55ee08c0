//! A file that lies in the manifest, opened.

use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

use super::content::Stored;
use super::disk::Bodies;
use super::names::Body;
use super::pending::Waiting;
use crate::error::ErrorKind;
use crate::manifest::read::Snapshot;
use crate::vfs::{Access, File, Identity, LockRange, Sharing, Step};

/// A handle on a body.
#[derive(Debug)]
pub(super) struct BodyFile {
    bodies: Arc<Bodies>,
    name: String,
    body: Body,
    access: Access,
    /// What a reader of a journal sees until it evicts: a journal that goes meanwhile stays readable
    /// to whoever has it open. Sealed files never change, and a row that moved on is looked up again.
    pinned: Mutex<Option<Arc<Snapshot>>>,
}

impl BodyFile {
    pub(super) fn open(
        bodies: Arc<Bodies>,
        name: String,
        body: Body,
        access: Access,
    ) -> io::Result<Self> {
        let file = Self { bodies, name, body, access, pinned: Mutex::new(None) };
        file.pin()?;
        Ok(file)
    }

    fn pin(&self) -> io::Result<()> {
        if self.access == Access::Read && matches!(self.body, Body::Frames(..)) {
            *self.pinned.lock() = Some(self.bodies.pin().map_err(io::Error::other)?);
        }
        Ok(())
    }

    fn stored(&self) -> Stored<'_> {
        match self.pinned.lock().clone() {
            Some(pinned) => Stored::then(&self.bodies.manifest, Some(pinned)),
            None => self.bodies.stored(),
        }
    }

    fn length(&self, stored: &Stored<'_>) -> io::Result<u64> {
        let len = self.bodies.pending.len(&self.name, stored).map_err(io::Error::other)?;
        len.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read_once(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let stored = self.stored();
        let len = self.length(&stored)?;
        let page_bytes = self.body.page_bytes();
        let end = len.min(offset.saturating_add(into.len() as u64));
        let mut at = offset;
        while at < end {
            let (page, within) = (at / page_bytes, (at % page_bytes) as usize);
            let want = (page_bytes - within as u64).min(end - at) as usize;
            let target = &mut into[(at - offset) as usize..][..want];
            let copied = match self.bodies.pending.page(self.body, page) {
                Some(Waiting::Page(bytes)) => copy(&bytes, within, target),
                Some(Waiting::Gone) => false,
                None => copy(&stored.page(self.body, page).map_err(wrapped)?, within, target),
            };
            if !copied {
                let place = format!("{} at {at}", self.name);
                let cause = "its page is shorter than its length says";
                return Err(io::Error::other(crate::Error::damage("read", place, cause)));
            }
            at += want as u64;
        }
        Ok(end.saturating_sub(offset) as usize)
    }

    fn may_write(&self) -> io::Result<()> {
        if self.access == Access::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.bodies.may_write()
    }

    /// Commits what waits, where somebody counts on it.
    fn sync(&self) -> io::Result<()> {
        if !self.bodies.pending.has(&self.name, self.body) {
            return Ok(());
        }
        match self.body {
            // Nothing names it yet: whatever does so will carry it.
            Body::Frames(..) if self.bodies.pending.is_new(&self.name) => Ok(()),
            // P1: the barrier.
            Body::Frames(..) => self.bodies.commit(Step::AppendSync),
            // Who syncs what it only reads wants to read what a commit holds.
            Body::Pages(_) if self.access == Access::Read => self.bodies.commit(Step::BodyCommit),
            Body::Pages(_) if self.bodies.is_top(&self.name) => {
                self.bodies.commit(Step::BodyCommit)
            }
            // P3: the transaction that names it carries it.
            Body::Pages(_) => Ok(()),
        }
    }
}

impl File for BodyFile {
    fn len(&self) -> io::Result<u64> {
        self.length(&self.stored())
    }

    fn identity(&self) -> io::Result<Identity> {
        self.bodies.identity_of(self.body)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let now = || (self.bodies.pending.stamp(), self.bodies.manifest.commit_seq());
        loop {
            let seen = now();
            match self.read_once(into, offset) {
                // What was looked up first may have moved on before the rest was: look again.
                Err(e) if is_damage(&e) && seen != now() => {}
                read => return read,
            }
        }
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.may_write()?;
        self.bodies.make_room(from.len() as u64)?;
        let what = (offset, from);
        self.bodies.pending.write(&self.name, self.body, what, &self.stored())?;
        Ok(from.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.may_write()?;
        self.bodies.pending.set_len(&self.name, self.body, len, &self.stored())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn evict(&self) -> io::Result<()> {
        // Where the name is gone, what was pinned stays as it is.
        let is_there = self.bodies.stored().has(&self.name).map_err(wrapped)?;
        if is_there { self.pin() } else { Ok(()) }
    }

    fn try_lock(&self, _range: LockRange, _sharing: Sharing) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock(&self, _range: LockRange, _sharing: Sharing) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self, _range: LockRange) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_locked(&self, _range: LockRange) -> io::Result<bool> {
        Ok(false)
    }
}

fn copy(bytes: &[u8], from: usize, into: &mut [u8]) -> bool {
    match bytes.get(from..).and_then(|bytes| bytes.get(..into.len())) {
        Some(found) => {
            into.copy_from_slice(found);
            true
        }
        None => false,
    }
}

fn is_damage(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<crate::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::Damage)
}

fn wrapped(error: crate::Error) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound.into(),
        _ => io::Error::other(error),
    }
}

/// The lock of an owner: only the process that holds the store can have it, and no file is written.
#[derive(Debug)]
pub(super) struct OwnerLock {
    pub(super) bodies: Arc<Bodies>,
    pub(super) is_held: bool,
}

impl File for OwnerLock {
    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.bodies.store_identity()
    }

    fn read_at(&self, _into: &mut [u8], _offset: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, from: &[u8], _offset: u64) -> io::Result<usize> {
        // Who holds the store stands in table `owners`.
        Ok(from.len())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn evict(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, _range: LockRange, _sharing: Sharing) -> io::Result<bool> {
        Ok(!self.is_held)
    }

    fn lock(&self, _range: LockRange, _sharing: Sharing) -> io::Result<()> {
        if self.is_held { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    }

    fn unlock(&self, _range: LockRange) -> io::Result<()> {
        Ok(())
    }

    fn is_locked(&self, _range: LockRange) -> io::Result<bool> {
        Ok(self.is_held)
    }
}
