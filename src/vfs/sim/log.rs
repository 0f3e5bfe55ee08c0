//! The log of a simulated disk: everything that happened, from which each crash can be rebuilt.

use std::fmt::Write as _;
use std::sync::Arc;

use super::content::short_hash;
use super::cursor::{Image, ImageCursor};
use super::event::{Event, Place};
use super::medium::Medium;
use super::outcome::{Outcomes, Profile};
use super::tree::{Inode, ROOT};
use crate::vfs::step::Step;

/// What an image takes over from the world that crashed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heritage {
    pub(super) seed: u64,
    pub(super) next_inode: Inode,
    pub(super) monotonic: u64,
    pub(super) wall_ahead: Option<i64>,
    pub(super) boot: u64,
    pub(super) capacity: Option<u64>,
}

/// The events of a disk since its log began, and what was on the medium then. A snapshot: the disk
/// may go on. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct EventLog {
    pub(super) base: Arc<Medium>,
    pub(super) events: Arc<[Event]>,
    pub(super) heritage: Heritage,
}

impl EventLog {
    /// Events in it. A crash may come before each and after the last: cuts go from 0 to this.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// All events, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Events that are calls to the disk, not marks or notes.
    pub fn disk_operations(&self) -> usize {
        self.events.iter().filter(|e| !matches!(e, Event::Mark(_) | Event::Note(_))).count()
    }

    /// The step in progress when a crash comes at `cut`.
    pub fn step_at(&self, cut: usize) -> Option<Step> {
        self.events[..cut.min(self.len())].iter().rev().find_map(|event| match event {
            Event::Mark(step) => Some(*step),
            _ => None,
        })
    }

    /// What the workload noted before `cut`, in order.
    pub fn notes(&self, cut: usize) -> impl Iterator<Item = &[u8]> {
        self.events[..cut.min(self.len())].iter().filter_map(|event| match event {
            Event::Note(note) => Some(&**note),
            _ => None,
        })
    }

    /// A cursor at the start of the log, for crashes under `profile`.
    pub fn cursor(&self, profile: Profile) -> ImageCursor {
        ImageCursor::new(self.clone(), profile)
    }

    /// One crash, rebuilt. For many, move a [`cursor`](Self::cursor): this walks from the start.
    pub fn image(&self, outcomes: &Outcomes) -> Image {
        let mut cursor = self.cursor(outcomes.profile);
        cursor.advance_to(outcomes.cut);
        cursor.image(&outcomes.pending)
    }

    /// A hash of everything that happened: equal for equal seeds and equal calls.
    pub fn trace_hash(&self) -> u128 {
        let mut text = String::new();
        for event in &*self.events {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{event:?}");
        }
        short_hash(text.as_bytes())
    }

    /// Event `index` in words, with the name that its file had last.
    pub fn describe(&self, index: usize) -> String {
        let Some(event) = self.events.get(index) else {
            return format!("{index}: beyond the end of the log");
        };
        let place = |at: &Place| format!("{}/{}", self.name_of(at.directory, index), at.name);
        let name = |inode: &Inode| self.name_of(*inode, index);
        let text = match event {
            Event::Write { inode, offset, bytes } => {
                format!("write {} bytes at {offset} of {}", bytes.len(), name(inode))
            }
            Event::SetLen { inode, len } => format!("set_len {len} of {}", name(inode)),
            Event::SyncFile { inode, all, failed } => {
                let verb = if *all { "sync_all" } else { "sync_data" };
                let fate = failed.map(|(how, _)| format!(", failed: {how:?}")).unwrap_or_default();
                format!("{verb} {}{fate}", name(inode))
            }
            Event::Create { at, .. } => format!("create {}", place(at)),
            Event::Mkdir { at, .. } => format!("mkdir {}", place(at)),
            Event::Rename { from, to, .. } => format!("rename {} to {}", place(from), place(to)),
            Event::Link { at, inode } => format!("link {} to {}", name(inode), place(at)),
            Event::Unlink { at, .. } => format!("unlink {}", place(at)),
            Event::SyncDir { inode, failed } => {
                format!("sync_dir {}{}", name(inode), if *failed { ", failed" } else { "" })
            }
            Event::Mark(step) => format!("-- {}", step.name()),
            Event::Note(note) => format!("-- note {}", String::from_utf8_lossy(note)),
        };
        format!("{index}: {text}")
    }

    /// The name that `inode` had last before event `index`.
    fn name_of(&self, inode: Inode, index: usize) -> String {
        if inode == ROOT {
            return String::new();
        }
        let upto = (index + 1).min(self.len());
        for (at, event) in self.events[..upto].iter().enumerate().rev() {
            let (place, named) = match event {
                Event::Create { at, inode }
                | Event::Mkdir { at, inode }
                | Event::Link { at, inode }
                | Event::Rename { to: at, inode, .. } => (at, *inode),
                _ => continue,
            };
            if named == inode {
                let above =
                    if at == 0 { String::new() } else { self.name_of(place.directory, at - 1) };
                return format!("{above}/{}", place.name);
            }
        }
        self.base.name_of(inode).unwrap_or_else(|| format!("#{inode}"))
    }
}
