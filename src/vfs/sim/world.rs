//! The simulated world as its processes see it: cached tree, clocks, handles, locks, faults.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use nix::libc;

use super::content::PAGE;
use super::event::{Event, SyncFailure};
use super::fault::{Faults, Twist};
use super::locks::Locks;
use super::log::{EventLog, Heritage};
use super::medium::{Durables, Medium};
use super::rng::Rng;
use super::tree::{Body, Inode, ROOT, Tree, refusal};
use crate::vfs::counts::{Counts, Operation};

/// The number of an open handle; never used twice in a world.
pub(super) type HandleId = u64;

/// The whole world, behind one lock.
#[derive(Debug)]
pub(super) struct World {
    pub(super) tree: Tree,
    next_handle: HandleId,
    /// Who owns each open handle, and on what.
    pub(super) handles: BTreeMap<HandleId, (u32, Inode)>,
    pub(super) handles_max: Option<usize>,
    pub(super) locks: Locks,
    /// What is on the medium now, and what was when the log began.
    pub(super) medium: Medium,
    pub(super) base: Arc<Medium>,
    log: Vec<Event>,
    log_on: bool,
    pub(super) counts: Counts,
    killed: BTreeSet<u32>,
    pub(super) faults: Faults,
    /// Files whose cache may hold what no sync will write any more.
    ghosts: BTreeSet<Inode>,
    /// Files that never sync again.
    unsyncable: BTreeSet<Inode>,
    /// The pages in use when the disk became full until some are freed.
    full_at: Option<u64>,
    pub(super) capacity: Option<u64>,
    seed: u64,
    pub(super) rng: Rng,
    pub(super) monotonic: u64,
    /// Wall clock minus monotonic clock; `None` while the wall clock cannot be represented.
    pub(super) wall_ahead: Option<i64>,
    pub(super) boot: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let boot = Rng::new(!seed).next_u64();
        let heritage = Heritage {
            seed,
            next_inode: ROOT + 1,
            monotonic: 1_000_000_000,
            wall_ahead: Some(1_700_000_000_000_000_000),
            boot,
            capacity: None,
        };
        Self { boot, ..Self::survived(&Medium::empty().nodes, heritage, seed) }
    }

    /// The world after a crash that left `durables`, booted anew from `seed`.
    pub(super) fn survived(durables: &Durables, heritage: Heritage, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let boot = rng.next_u64();
        let medium = Medium::of_reachable(durables);
        Self {
            tree: Tree::of(&medium.nodes, heritage.next_inode),
            next_handle: 1,
            handles: BTreeMap::new(),
            handles_max: None,
            locks: Locks::default(),
            base: Arc::new(medium.clone()),
            medium,
            log: Vec::new(),
            log_on: true,
            counts: Counts::default(),
            killed: BTreeSet::new(),
            faults: Faults::default(),
            ghosts: BTreeSet::new(),
            unsyncable: BTreeSet::new(),
            full_at: None,
            capacity: heritage.capacity,
            seed,
            rng,
            monotonic: heritage.monotonic,
            wall_ahead: heritage.wall_ahead,
            boot,
        }
    }

    /// The log as it stands.
    pub(super) fn events(&self) -> EventLog {
        EventLog {
            base: Arc::clone(&self.base),
            events: self.log.as_slice().into(),
            heritage: Heritage {
                seed: self.seed,
                next_inode: self.tree.next_inode,
                monotonic: self.monotonic,
                wall_ahead: self.wall_ahead,
                boot: self.boot,
                capacity: self.capacity,
            },
        }
    }

    /// Begins the log anew, or ends it.
    pub(super) fn restart_log(&mut self, on: bool) {
        self.log = Vec::new();
        self.log_on = on;
        for pending in &mut self.medium.pending {
            pending.index = None;
        }
        self.base = Arc::new(self.medium.clone());
    }

    /// Lets an event reach the medium, and writes it down.
    pub(super) fn record(&mut self, event: Event) {
        self.medium.apply(self.log.len(), &event);
        if self.log_on {
            self.log.push(event);
        }
    }

    /// Lets time pass, counts the call, and finds the fault it meets.
    pub(super) fn begin(
        &mut self,
        pid: u32,
        operation: Operation,
        path: &Path,
    ) -> io::Result<Option<Twist>> {
        self.tick();
        self.alive(pid)?;
        self.counts.add(operation);
        if self.full_at.is_some_and(|at| self.tree.used < at) {
            self.full_at = None;
        }
        self.faults.meet(operation, path)
    }

    pub(super) fn tick(&mut self) {
        self.monotonic += 1000;
    }

    pub(super) fn alive(&self, pid: u32) -> io::Result<()> {
        if self.killed.contains(&pid) {
            return Err(io::Error::other("the process was killed"));
        }
        Ok(())
    }

    /// Opens a handle of process `pid` on `inode`.
    pub(super) fn open(&mut self, pid: u32, inode: Inode) -> HandleId {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.handles.insert(handle, (pid, inode));
        self.tree.opened(inode);
        handle
    }

    /// Refuses what needs a handle when the process has as many as it may.
    pub(super) fn spare_handle(&self, pid: u32) -> io::Result<()> {
        let Some(max) = self.handles_max else { return Ok(()) };
        let held = self.handles.values().filter(|(owner, _)| *owner == pid).count();
        if held < max { Ok(()) } else { Err(refusal(libc::EMFILE)) }
    }

    /// Closes a handle and releases its locks.
    pub(super) fn close(&mut self, handle: HandleId) {
        let Some((_, inode)) = self.handles.remove(&handle) else { return };
        self.locks.end(handle);
        self.tree.closed(inode);
    }

    /// Ends a process: its handles close, its locks go.
    pub(super) fn kill(&mut self, pid: u32) {
        self.killed.insert(pid);
        let of_process =
            |(handle, (owner, _)): (&HandleId, &(u32, Inode))| (*owner == pid).then_some(*handle);
        let handles: Vec<_> = self.handles.iter().filter_map(of_process).collect();
        for handle in handles {
            self.close(handle);
        }
    }

    /// From now on what needs new space fails, until some is freed.
    pub(super) fn fill_up(&mut self) {
        self.full_at = Some(self.tree.used);
    }

    /// Pages still free; `None` where there is no end of them.
    pub(super) fn free_pages(&self) -> Option<u64> {
        if self.full_at.is_some() {
            return Some(0);
        }
        self.capacity.map(|bytes| (bytes / PAGE as u64).saturating_sub(self.tree.used))
    }

    /// Refuses a new name when nothing is free.
    pub(super) fn room_for_a_name(&self) -> io::Result<()> {
        if self.free_pages() == Some(0) { Err(refusal(libc::ENOSPC)) } else { Ok(()) }
    }

    /// How many of `len` bytes at `offset` of a file find space.
    pub(super) fn fitting(&self, inode: Inode, offset: u64, len: usize) -> io::Result<usize> {
        let content = self.tree.content(inode)?;
        let Some(mut free) = self.free_pages() else { return Ok(len) };
        let end = offset + len as u64;
        let mut at = offset;
        while at < end {
            if content.is_hole(at) {
                if free == 0 {
                    break;
                }
                free -= 1;
            }
            at = (at / PAGE as u64 + 1) * PAGE as u64;
        }
        usize::try_from(at.min(end) - offset).map_err(io::Error::other)
    }

    /// A file's sync. `failure` is how it fails, if it does.
    pub(super) fn sync_file(
        &mut self,
        inode: Inode,
        all: bool,
        failure: Option<SyncFailure>,
    ) -> io::Result<()> {
        let failure = match failure {
            None if self.unsyncable.contains(&inode) => Some(SyncFailure::NeverAgain),
            failure => failure,
        };
        let mut pick = || u32::try_from(self.rng.below(1 << 32)).unwrap_or_default();
        let failed = failure.map(|failure| (failure, pick()));
        self.record(Event::SyncFile { inode, all, failed });
        let Some(failure) = failure else { return Ok(()) };
        self.ghosts.insert(inode);
        match failure {
            SyncFailure::CacheReverted => self.evict(inode)?,
            SyncFailure::NeverAgain => {
                self.unsyncable.insert(inode);
            }
            SyncFailure::NothingKept | SyncFailure::RandomPart => {}
        }
        Err(refusal(libc::EIO))
    }

    /// Drops clean pages: what stays is what is on the medium or on its way there.
    pub(super) fn evict(&mut self, inode: Inode) -> io::Result<()> {
        if !self.ghosts.remove(&inode) {
            return Ok(());
        }
        match self.medium.seen(inode).as_deref() {
            Some(Body::File(seen)) => self.tree.change(inode, |content| *content = seen.clone()),
            _ => Ok(()),
        }
    }
}
