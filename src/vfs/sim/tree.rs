//! The cached tree: what every process sees at once, by name and by inode.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use nix::libc;

use super::content::Content;
use super::event::Place;
use super::medium::Durables;

/// The number of a file or directory; never used twice in a world.
pub type Inode = u64;

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

impl Body {
    /// Pages that take up space. Directories are free.
    fn pages(&self) -> u64 {
        match self {
            Self::File(content) => content.pages(),
            Self::Directory(_) => 0,
        }
    }
}

#[derive(Debug)]
struct Node {
    body: Arc<Body>,
    /// Names it has.
    links: u64,
    /// Handles open on it.
    handles: u64,
}

/// The error a kernel would give.
pub(super) fn refusal(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// Every file and directory that has a name or an open handle.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: BTreeMap<Inode, Node>,
    pub(super) next_inode: Inode,
    /// Pages that take up space.
    pub(super) used: u64,
}

impl Tree {
    /// The tree of a disk whose cache is empty.
    pub(super) fn of(durables: &Durables, next_inode: Inode) -> Self {
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
        let used = nodes.values().map(|node| node.body.pages()).sum();
        Self { nodes, next_inode, used }
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

    /// Lets `change` happen to a file's content, and keeps count of the space.
    pub(super) fn change(
        &mut self,
        inode: Inode,
        change: impl FnOnce(&mut Content),
    ) -> io::Result<()> {
        let Some(node) = self.nodes.get_mut(&inode) else { return Err(refusal(libc::ENOENT)) };
        let before = node.body.pages();
        let Body::File(content) = Arc::make_mut(&mut node.body) else {
            return Err(refusal(libc::EISDIR));
        };
        change(content);
        self.used = self.used - before + content.pages();
        Ok(())
    }

    /// What `parts` lead through, from the root down to what they name.
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
        Ok((Place { directory, name: Arc::from(&*name) }, stack))
    }

    /// What stands at `place` now. Only here is a name found too long, as in a kernel.
    pub(super) fn at(&self, place: &Place) -> io::Result<Option<Inode>> {
        if place.name.len() > NAME_BYTES_MAX {
            return Err(refusal(libc::ENAMETOOLONG));
        }
        Ok(self.names(place.directory)?.get(&place.name).copied())
    }

    /// Makes a new inode under a free name.
    pub(super) fn create(&mut self, place: &Place, body: Body) -> io::Result<Inode> {
        let inode = self.next_inode;
        self.names_mut(place.directory)?.insert(Arc::clone(&place.name), inode);
        self.next_inode += 1;
        self.nodes.insert(inode, Node { body: Arc::new(body), links: 1, handles: 0 });
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
            let gone = self.nodes.remove(&inode);
            self.used -= gone.map_or(0, |node| node.body.pages());
        }
    }

    /// Every file.
    pub(super) fn files(&self) -> Vec<Inode> {
        let file =
            |(inode, node): (&Inode, &Node)| matches!(&*node.body, Body::File(_)).then_some(*inode);
        self.nodes.iter().filter_map(file).collect()
    }

    /// Counts a handle opened on `inode`.
    pub(super) fn opened(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.handles += 1;
        }
    }

    /// Counts a handle closed on `inode`; what has neither name nor handle is gone.
    pub(super) fn closed(&mut self, inode: Inode) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.handles = node.handles.saturating_sub(1);
        }
        self.forget_if_unused(inode);
    }
}
