//! Rules over what a run did to the disk, whatever survives of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::finding::{Finding, Rule};
use crate::vfs::Step;
use crate::vfs::sim::{Event, EventLog, Inode, Place};

/// What is known of the tree from the events.
#[derive(Debug, Default)]
struct Tree {
    names: BTreeMap<(Inode, Arc<str>), Inode>,
    directories: BTreeMap<Inode, (Inode, Arc<str>)>,
    /// Files with bytes that no sync covers.
    dirty: BTreeSet<Inode>,
    /// Directories with a new name that no sync covers.
    unsynced: BTreeSet<Inode>,
    /// Files whose sync failed.
    failed: BTreeSet<Inode>,
    /// The step under way, and whether what reclaim is about to unlink was marked by a commit.
    step: Option<Step>,
    is_marked: bool,
}

impl Tree {
    /// The name of a directory as far as it matters: its own and its parent's.
    fn is_sealed(&self, directory: Inode) -> bool {
        let up = |inode| self.directories.get(&inode);
        up(directory)
            .and_then(|(parent, _)| up(*parent))
            .is_some_and(|(_, name)| &**name == "sealed")
    }

    fn sealed_name_of(&self, inode: Inode) -> Option<&str> {
        self.names
            .iter()
            .find(|((directory, _), named)| **named == inode && self.is_sealed(*directory))
            .map(|((_, name), _)| &**name)
    }

    fn is_manifest(&self, inode: Inode) -> bool {
        self.names.iter().any(|((_, name), named)| *named == inode && &**name == "manifest.redb")
    }

    fn put(&mut self, at: &Place, inode: Inode) {
        self.names.insert((at.directory, Arc::clone(&at.name)), inode);
        self.unsynced.insert(at.directory);
    }

    fn take(&mut self, at: &Place) {
        self.names.remove(&(at.directory, Arc::clone(&at.name)));
    }

    fn content_changed(&mut self, inode: Inode) -> Option<Finding> {
        self.dirty.insert(inode);
        let name = self.sealed_name_of(inode)?;
        Some(Finding::new(Rule::TraceSealed, format!("a write to sealed/../{name}")))
    }

    fn named(&mut self, at: &Place, inode: Inode) -> Option<Finding> {
        self.put(at, inode);
        let is_dirty = self.is_sealed(at.directory) && self.dirty.contains(&inode);
        is_dirty.then(|| {
            let seen = format!("{} got its name before its bytes were synced", at.name);
            Finding::new(Rule::TraceCommit, seen)
        })
    }

    fn synced(&mut self, inode: Inode, failed: bool) -> Option<Finding> {
        if self.failed.contains(&inode) {
            return Some(Finding::new(Rule::TraceSync, format!("file #{inode} was synced again")));
        }
        if failed {
            self.failed.insert(inode);
            return None;
        }
        self.dirty.remove(&inode);
        if !self.is_manifest(inode) {
            return None;
        }
        let dirty = self.dirty.iter().find_map(|inode| self.sealed_name_of(*inode));
        let unsynced = self.unsynced.iter().any(|directory| self.is_sealed(*directory));
        (dirty.is_some() || unsynced).then(|| {
            let what = dirty.unwrap_or("a name in sealed/");
            Finding::new(Rule::TraceCommit, format!("a commit while {what} was not synced"))
        })
    }

    fn unlinked(&mut self, at: &Place) -> Option<Finding> {
        self.take(at);
        if !self.is_sealed(at.directory) {
            return None;
        }
        // What opening and sweeping unlink is judged by the images: only they know the rows.
        let is_early = self.step == Some(Step::ReclaimUnlink) && !self.is_marked;
        is_early.then(|| {
            let seen = format!("{} went before a commit said that it was to go", at.name);
            Finding::new(Rule::TraceUnlink, seen)
        })
    }

    fn begun(&mut self, step: Step) {
        self.step = Some(step);
        match step {
            Step::ReclaimMark => self.is_marked = true,
            Step::ReclaimForget => self.is_marked = false,
            _ => {}
        }
    }
}

/// Checks what happened since the disk was made. A log that begins later knows no names.
pub fn check_trace(log: &EventLog) -> Option<Finding> {
    let mut tree = Tree::default();
    for (at, event) in log.events().iter().enumerate() {
        let found = match event {
            Event::Write { inode, .. } | Event::SetLen { inode, .. } => {
                tree.content_changed(*inode)
            }
            Event::SyncFile { inode, failed, .. } => tree.synced(*inode, failed.is_some()),
            Event::Create { at, inode } => {
                tree.put(at, *inode);
                None
            }
            Event::Mkdir { at, inode } => {
                tree.directories.insert(*inode, (at.directory, Arc::clone(&at.name)));
                None
            }
            Event::Rename { from, to, inode, .. } => {
                tree.take(from);
                tree.named(to, *inode)
            }
            Event::Link { at, inode } => tree.named(at, *inode),
            Event::Unlink { at, .. } => tree.unlinked(at),
            Event::SyncDir { inode, failed } => {
                if !failed {
                    tree.unsynced.remove(inode);
                }
                None
            }
            Event::Mark(step) => {
                tree.begun(*step);
                None
            }
            _ => None,
        };
        if let Some(finding) = found {
            let seen = format!("{} ({})", finding.seen, log.describe(at));
            return Some(Finding { seen, ..finding });
        }
    }
    None
}
