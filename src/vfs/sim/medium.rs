//! What is on the medium, and what is on its way: durable content and names, and the events that
//! no sync has covered. A live world carries one along, and a cursor moves another one through a
//! log; both go by the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::content::Content;
use super::event::{Event, Place, SyncFailure};
use super::order::takes_along;
use super::outcome::{Outcome, Profile};
use super::rng::mix;
use super::settle::{settle, settle_content, settle_name};
use super::tree::{Body, Inode, Names, ROOT};

/// A file or directory on the medium.
#[derive(Debug, Clone)]
pub(super) struct Durable {
    pub(super) body: Arc<Body>,
    /// What it was before the last sync: what a stale read returns.
    pub(super) before: Arc<Body>,
    /// The length that processes see.
    len_seen: u64,
}

impl Durable {
    pub(super) fn new(body: Arc<Body>) -> Self {
        let len_seen = match &*body {
            Body::File(content) => content.len(),
            Body::Directory(_) => 0,
        };
        Self { before: Arc::clone(&body), body, len_seen }
    }
}

/// An event that no sync has covered.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) event: Event,
    /// Its place in the log; `None` if it is older than the log.
    pub(super) index: Option<usize>,
    /// It made its file longer.
    pub(super) grows: bool,
    /// A rename whose new name is durable: only the removal of the old one is still to come.
    pub(super) half: bool,
}

impl Pending {
    /// The names it touches, if it is about names.
    pub(super) fn places(&self) -> [Option<&Place>; 2] {
        match &self.event {
            Event::Create { at, .. }
            | Event::Mkdir { at, .. }
            | Event::Link { at, .. }
            | Event::Unlink { at, .. } => [Some(at), None],
            Event::Rename { from, .. } if self.half => [Some(from), None],
            Event::Rename { from, to, .. } => [Some(from), Some(to)],
            _ => [None, None],
        }
    }

    pub(super) fn is_name(&self) -> bool {
        self.places()[0].is_some()
    }

    /// Whether it changes the content of `inode`.
    fn is_content_of(&self, inode: Inode) -> bool {
        match &self.event {
            Event::Write { inode: of, .. } | Event::SetLen { inode: of, .. } => *of == inode,
            _ => false,
        }
    }

    /// What it gives a name to.
    fn named(&self) -> Option<Inode> {
        match &self.event {
            Event::Create { inode, .. }
            | Event::Mkdir { inode, .. }
            | Event::Link { inode, .. } => Some(*inode),
            Event::Rename { inode, .. } if !self.half => Some(*inode),
            _ => None,
        }
    }

    fn takes_a_name(&self) -> bool {
        matches!(self.event, Event::Unlink { .. } | Event::Rename { .. })
    }

    pub(super) fn is_rename_across(&self) -> bool {
        matches!(&self.event, Event::Rename { from, to, .. }
            if !self.half && from.directory != to.directory)
    }
}

/// What a sync of a directory does to a pending event.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Stay,
    Due,
    /// Of a rename from elsewhere the new name becomes durable, the removal does not.
    Half,
}

pub(super) type Durables = BTreeMap<Inode, Durable>;

/// A medium, and what is on its way to it.
#[derive(Debug, Clone)]
pub(super) struct Medium {
    pub(super) profile: Profile,
    pub(super) nodes: Durables,
    pub(super) pending: Vec<Pending>,
}

impl Medium {
    pub(super) fn empty() -> Self {
        let root = Durable::new(Arc::new(Body::Directory(Names::new())));
        Self::of(BTreeMap::from([(ROOT, root)]))
    }

    /// A medium that holds what the names in `nodes` lead to, all durable.
    pub(super) fn of_reachable(nodes: &Durables) -> Self {
        let kept = reachable(nodes, [ROOT].into_iter());
        let named = nodes.iter().filter(|(inode, _)| kept.contains(inode));
        Self::of(named.map(|(inode, node)| (*inode, node.clone())).collect())
    }

    /// A medium that holds `nodes`, all durable.
    fn of(nodes: Durables) -> Self {
        Self { profile: Profile::PosixHarshest, nodes, pending: Vec::new() }
    }

    /// Lets `event`, number `index` of the log, happen.
    pub(super) fn apply(&mut self, index: usize, event: &Event) {
        let mut grows = false;
        match event {
            Event::Create { inode, .. } => self.insert(*inode, Body::File(Content::default())),
            Event::Mkdir { inode, .. } => self.insert(*inode, Body::Directory(Names::new())),
            Event::Write { inode, offset, bytes } => {
                let Some(node) = self.nodes.get_mut(inode) else { return };
                let end = offset + bytes.len() as u64;
                grows = end > node.len_seen;
                node.len_seen = node.len_seen.max(end);
            }
            Event::SetLen { inode, len } => {
                let Some(node) = self.nodes.get_mut(inode) else { return };
                grows = *len > node.len_seen;
                node.len_seen = *len;
            }
            Event::Rename { .. } | Event::Link { .. } | Event::Unlink { .. } => {}
            Event::SyncFile { inode, all, failed } => {
                return match failed {
                    None => self.sync_file(*inode, *all),
                    Some((failure, pick)) => self.sync_file_failed(*inode, *failure, *pick),
                };
            }
            Event::SyncDir { inode, failed: false } => return self.sync_dir(*inode),
            Event::SyncDir { .. } | Event::Mark(_) | Event::Note(_) => return,
        }
        let event = event.clone();
        self.pending.push(Pending { event, index: Some(index), grows, half: false });
    }

    fn insert(&mut self, inode: Inode, body: Body) {
        self.nodes.insert(inode, Durable::new(Arc::new(body)));
    }

    /// The name of `inode`, durable or on its way.
    pub(super) fn name_of(&self, inode: Inode) -> Option<String> {
        if inode == ROOT {
            return Some(String::new());
        }
        let durable = self.nodes.iter().find_map(|(directory, node)| match &*node.body {
            Body::Directory(names) => {
                let name = names.iter().find(|(_, named)| **named == inode)?.0;
                Some((*directory, Arc::clone(name)))
            }
            Body::File(_) => None,
        });
        let (directory, name) = durable.or_else(|| {
            let naming = self.pending.iter().rev().find(|p| p.named() == Some(inode))?;
            let place = naming.places().into_iter().flatten().last()?;
            Some((place.directory, Arc::clone(&place.name)))
        })?;
        Some(format!("{}/{name}", self.name_of(directory)?))
    }

    fn take_content_of(&mut self, inode: Inode) -> Vec<Pending> {
        self.pending.extract_if(.., |pending| pending.is_content_of(inode)).collect()
    }

    fn sync_file(&mut self, inode: Inode, all: bool) {
        let due = self.take_content_of(inode);
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.before = Arc::clone(&node.body);
        }
        for pending in &due {
            settle_content(&mut self.nodes, pending, Outcome::Full);
        }
        let changes_metadata = || {
            let resized = |p: &Pending| p.grows || matches!(p.event, Event::SetLen { .. });
            all || due.iter().any(resized) || self.pending.iter().any(|p| p.named() == Some(inode))
        };
        if self.profile == Profile::Ext4Ordered && changes_metadata() {
            self.commit_names();
        }
    }

    fn sync_file_failed(&mut self, inode: Inode, failure: SyncFailure, pick: u32) {
        let due = self.take_content_of(inode);
        if failure == SyncFailure::RandomPart {
            for (turn, pending) in (0u64..).zip(&due) {
                settle_content(&mut self.nodes, pending, chance_outcome(pick, turn));
            }
        }
        if failure == SyncFailure::CacheReverted
            && let Some(node) = self.nodes.get_mut(&inode)
        {
            *node = Durable::new(Arc::clone(&node.body));
        }
    }

    /// Makes the names of one directory durable.
    fn sync_dir(&mut self, directory: Inode) {
        if self.profile == Profile::Ext4Ordered {
            self.commit_names();
            return;
        }
        // A rename is whole, so that its removal takes the new name along, in whatever directory,
        // and with it what happened to that name before.
        let mut along = BTreeSet::new();
        let mut fates = vec![Fate::Stay; self.pending.len()];
        for (pending, fate) in self.pending.iter().zip(&mut fates).rev() {
            let [first, second] = pending.places();
            let here = |place: Option<&Place>| place.is_some_and(|p| p.directory == directory);
            let taken = [first, second].into_iter().flatten().any(|place| along.contains(place));
            if here(first) || taken {
                *fate = Fate::Due;
                along.extend([first, second].into_iter().flatten().cloned());
            } else if here(second) {
                *fate = Fate::Half;
            }
        }
        self.settle_by(&fates);
    }

    /// Makes every name durable, in order, and the data that a rename over a file takes along.
    fn commit_names(&mut self) {
        let mut fates = vec![Fate::Stay; self.pending.len()];
        let mut flushed = BTreeSet::new();
        for (pending, fate) in self.pending.iter().zip(&mut fates).rev() {
            if takes_along(&mut flushed, pending, true) || pending.is_name() {
                *fate = Fate::Due;
            }
        }
        self.settle_by(&fates);
    }

    /// Lets what is due become durable, oldest first: of one name the newest is to stand.
    fn settle_by(&mut self, fates: &[Fate]) {
        let mut removed = false;
        let before = std::mem::take(&mut self.pending);
        for (mut pending, fate) in before.into_iter().zip(fates) {
            match fate {
                Fate::Stay => self.pending.push(pending),
                Fate::Due => {
                    settle(&mut self.nodes, &pending, Outcome::Full);
                    removed |= pending.takes_a_name();
                }
                Fate::Half => {
                    settle_name(&mut self.nodes, &pending, Outcome::Torn(0));
                    removed |= pending.takes_a_name();
                    pending.half = true;
                    self.pending.push(pending);
                }
            }
        }
        if removed {
            self.forget_unnamed();
        }
    }

    /// Forgets what has no name and will get none.
    fn forget_unnamed(&mut self) {
        let to_come = self.pending.iter().filter_map(Pending::named);
        let kept = reachable(&self.nodes, to_come.chain([ROOT]));
        self.nodes.retain(|inode, _| kept.contains(inode));
        let nodes = &self.nodes;
        self.pending.retain(|pending| match &pending.event {
            Event::Write { inode, .. } | Event::SetLen { inode, .. } => nodes.contains_key(inode),
            _ => true,
        });
    }

    /// What processes see of `inode` once its clean pages are dropped.
    pub(super) fn seen(&self, inode: Inode) -> Option<Arc<Body>> {
        let node = self.nodes.get(&inode)?.clone();
        let mut alone = BTreeMap::from([(inode, node)]);
        for pending in self.pending.iter().filter(|pending| pending.is_content_of(inode)) {
            settle_content(&mut alone, pending, Outcome::Full);
        }
        alone.remove(&inode).map(|node| node.body)
    }

    /// What survives if the pending events come to `outcomes`; those beyond its end are lost.
    /// What no name leads to is still there.
    pub(super) fn survivors(&self, outcomes: &[Outcome]) -> Durables {
        let mut nodes = self.nodes.clone();
        for (pending, outcome) in self.pending.iter().zip(self.consistent(outcomes)) {
            settle(&mut nodes, pending, outcome);
        }
        nodes
    }
}

fn chance_outcome(pick: u32, turn: u64) -> Outcome {
    let chance = mix(u64::from(pick) ^ mix(turn));
    match chance % 4 {
        0 => Outcome::Lost,
        1 => Outcome::Full,
        _ => Outcome::Torn(u32::try_from(chance >> 40).unwrap_or_default()),
    }
}

/// Every inode that the names lead to from `starts`.
fn reachable(nodes: &Durables, starts: impl Iterator<Item = Inode>) -> BTreeSet<Inode> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<_> = starts.collect();
    while let Some(inode) = next.pop() {
        let Some(node) = nodes.get(&inode) else { continue };
        if seen.insert(inode)
            && let Body::Directory(names) = &*node.body
        {
            next.extend(names.values());
        }
    }
    seen
}
