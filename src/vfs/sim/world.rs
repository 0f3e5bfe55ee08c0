//! The simulated world as its processes see it: the cached tree, clocks, handles, locks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use nix::libc;

use super::content::Content;
use super::event::{Event, Place};
use super::locks::Locks;
use super::log::{EventLog, Heritage};
use super::medium::{Durables, Medium, reachable};
use super::rng::Rng;
use crate::vfs::counts::{Counts, Operation};

/// The number of a file or directory; never used twice in a world.
pub type Inode = u64;

/// The number of an open handle; never used twice in a world.
pub(super) type HandleId = u64;

/// The directory `/`, there from the start.
pub(super) const ROOT: Inode = 1;

/// Longest name of a directory entry, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The names in a directory.
pub(super) type Names = BTreeMap<Arc<str>, Inode>;

/// What an inode holds.
#[derive(Debug, Clone)]
pub(super) enum Body {
    File(Content),
    Directory(Names),
}

/// An inode of the cached tree.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) body: Arc<Body>,
    /// Names it has.
    pub(super) links: u64,
    /// Handles open on it.
    pub(super) handles: u64,
}

impl Node {
    fn new(body: Body) -> Self {
        Self { body: Arc::new(body), links: 1, handles: 0 }
    }
}

/// The cached tree of a disk whose cache is empty.
fn cached(durables: &Durables) -> BTreeMap<Inode, Node> {
    let node = |body: &Arc<Body>| Node { body: Arc::clone(body), links: 0, handles: 0 };
    let mut nodes: BTreeMap<_, _> =
        durables.iter().map(|(inode, durable)| (*inode, node(&durable.body))).collect();
    let named = durables.values().filter_map(|durable| match &*durable.body {
        Body::Directory(names) => Some(names.values()),
        Body::File(_) => None,
    });
    for inode in named.flatten().chain([&ROOT]) {
        if let Some(node) = nodes.get_mut(inode) {
            node.links += 1;
        }
    }
    nodes
}

/// The error a kernel would give.
pub(super) fn refusal(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// The whole world, behind one lock.
#[derive(Debug)]
pub(super) struct World {
    pub(super) nodes: BTreeMap<Inode, Node>,
    pub(super) next_inode: Inode,
    pub(super) next_handle: HandleId,
    /// Who owns each open handle, and on what.
    pub(super) handles: BTreeMap<HandleId, (u32, Inode)>,
    pub(super) locks: Locks,
    /// What is on the medium now, and what was when the log began.
    pub(super) medium: Medium,
    pub(super) base: Arc<Medium>,
    pub(super) log: Vec<Event>,
    pub(super) log_on: bool,
    pub(super) counts: Counts,
    pub(super) killed: BTreeSet<u32>,
    pub(super) seed: u64,
    pub(super) rng: Rng,
    pub(super) capacity: Option<u64>,
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
        let kept = reachable(durables, [ROOT].into_iter());
        let kept: Durables = durables
            .iter()
            .filter(|(inode, _)| kept.contains(inode))
            .map(|(inode, node)| (*inode, node.clone()))
            .collect();
        let mut rng = Rng::new(seed);
        let boot = rng.next_u64();
        let medium = Medium::of(kept);
        Self {
            nodes: cached(&medium.nodes),
            next_inode: heritage.next_inode,
            next_handle: 1,
            handles: BTreeMap::new(),
            locks: Locks::default(),
            base: Arc::new(medium.clone()),
            medium,
            log: Vec::new(),
            log_on: true,
            counts: Counts::default(),
            killed: BTreeSet::new(),
            seed,
            rng,
            capacity: heritage.capacity,
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
                next_inode: self.next_inode,
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

    /// Lets time pass and counts the call.
    pub(super) fn begin(&mut self, pid: u32, operation: Operation) -> io::Result<()> {
        self.tick();
        self.alive(pid)?;
        self.counts.add(operation);
        Ok(())
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

    /// Lets an event reach the medium, and writes it down.
    pub(super) fn record(&mut self, event: Event) {
        self.medium.apply(self.log.len(), &event);
        if self.log_on {
            self.log.push(event);
        }
    }

    pub(super) fn names(&self, inode: Inode) -> io::Result<&Names> {
        match self.nodes.get(&inode).map(|node| &*node.body) {
            Some(Body::Directory(names)) => Ok(names),
            Some(Body::File(_)) => Err(refusal(libc::ENOTDIR)),
            None => Err(refusal(libc::ENOENT)),
        }
    }

    fn names_mut(&mut self, inode: Inode) -> io::Result<&mut Names> {
        match self.nodes.get_mut(&inode).map(|node| Arc::make_mut(&mut node.body)) {
            Some(Body::Directory(names)) => Ok(names),
            Some(Body::File(_)) => Err(refusal(libc::ENOTDIR)),
            None => Err(refusal(libc::ENOENT)),
        }
    }

    pub(super) fn content(&self, inode: Inode) -> io::Result<&Content> {
        match self.nodes.get(&inode).map(|node| &*node.body) {
            Some(Body::File(content)) => Ok(content),
            Some(Body::Directory(_)) => Err(refusal(libc::EISDIR)),
            None => Err(refusal(libc::ENOENT)),
        }
    }

    pub(super) fn content_mut(&mut self, inode: Inode) -> io::Result<&mut Content> {
        match self.nodes.get_mut(&inode).map(|node| Arc::make_mut(&mut node.body)) {
            Some(Body::File(content)) => Ok(content),
            Some(Body::Directory(_)) => Err(refusal(libc::EISDIR)),
            None => Err(refusal(libc::ENOENT)),
        }
    }

    /// The directories from the root down to the one that `path` names, and whether the last
    /// component was a name at all.
    fn walk<'a>(&self, parts: impl Iterator<Item = Component<'a>>) -> io::Result<Vec<Inode>> {
        let mut stack = vec![ROOT];
        for part in parts {
            match part {
                Component::Normal(name) => {
                    let name = name.to_string_lossy();
                    let last = stack.last().copied().unwrap_or(ROOT);
                    let names = self.names(last)?;
                    if name.len() > NAME_BYTES_MAX {
                        return Err(refusal(libc::ENAMETOOLONG));
                    }
                    stack.push(*names.get(&*name).ok_or_else(|| refusal(libc::ENOENT))?);
                }
                Component::ParentDir => {
                    self.names(stack.last().copied().unwrap_or(ROOT))?;
                    if stack.len() > 1 {
                        stack.pop();
                    }
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(stack)
    }

    /// What `path` names.
    pub(super) fn find(&self, path: &Path) -> io::Result<Inode> {
        if path.as_os_str().is_empty() {
            return Err(refusal(libc::ENOENT));
        }
        Ok(self.walk(path.components())?.last().copied().unwrap_or(ROOT))
    }

    /// The directory that holds, or would hold, the name `path`, with every directory above it.
    pub(super) fn place(&self, path: &Path) -> io::Result<(Place, Vec<Inode>)> {
        if path.as_os_str().is_empty() {
            return Err(refusal(libc::ENOENT));
        }
        let mut parts = path.components();
        let Some(Component::Normal(name)) = parts.next_back() else {
            return Err(refusal(libc::EBUSY));
        };
        let name = name.to_string_lossy();
        let stack = self.walk(parts)?;
        let directory = stack.last().copied().unwrap_or(ROOT);
        self.names(directory)?;
        if name.len() > NAME_BYTES_MAX {
            return Err(refusal(libc::ENAMETOOLONG));
        }
        Ok((Place { directory, name: Arc::from(&*name) }, stack))
    }

    /// What stands at `place` now.
    pub(super) fn at(&self, place: &Place) -> io::Result<Option<Inode>> {
        Ok(self.names(place.directory)?.get(&place.name).copied())
    }

    /// Makes a new inode under a free name.
    pub(super) fn create(&mut self, place: &Place, body: Body) -> io::Result<Inode> {
        let inode = self.next_inode;
        self.names_mut(place.directory)?.insert(Arc::clone(&place.name), inode);
        self.next_inode += 1;
        self.nodes.insert(inode, Node::new(body));
        Ok(inode)
    }

    /// Puts `inode` under `place`; what had the name before loses it.
    pub(super) fn put_name(&mut self, place: &Place, inode: Inode) -> io::Result<()> {
        let before = self.names_mut(place.directory)?.insert(Arc::clone(&place.name), inode);
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.links += 1;
        }
        if let Some(before) = before {
            self.drop_link(before);
        }
        Ok(())
    }

    /// Takes the name `place` from what has it.
    pub(super) fn take_name(&mut self, place: &Place) -> io::Result<()> {
        if let Some(before) = self.names_mut(place.directory)?.remove(&place.name) {
            self.drop_link(before);
        }
        Ok(())
    }

    fn drop_link(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.links = node.links.saturating_sub(1);
        }
        self.forget_if_unused(inode);
    }

    fn forget_if_unused(&mut self, inode: Inode) {
        if self.nodes.get(&inode).is_some_and(|node| node.links == 0 && node.handles == 0) {
            self.nodes.remove(&inode);
        }
    }

    /// Opens a handle of process `pid` on `inode`.
    pub(super) fn open(&mut self, pid: u32, inode: Inode) -> HandleId {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.handles.insert(handle, (pid, inode));
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.handles += 1;
        }
        handle
    }

    /// Closes a handle and releases its locks.
    pub(super) fn close(&mut self, handle: HandleId) {
        let Some((_, inode)) = self.handles.remove(&handle) else { return };
        self.locks.end(handle);
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.handles = node.handles.saturating_sub(1);
        }
        self.forget_if_unused(inode);
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
}
