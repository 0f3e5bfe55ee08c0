//! Crash images: a cursor that walks through a log and, at each cut, rebuilds what may survive.
//! The medium walks along, so that an image costs what is pending, not what happened before.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::choices;
use super::content::short_hash;
use super::disk::SimDisk;
use super::event::Event;
use super::log::{EventLog, Heritage};
use super::medium::{Durables, Medium, Pending};
use super::outcome::{Outcome, Outcomes, Profile};
use super::rng::{Rng, mix};
use super::tree::{Body, ROOT};
use super::world::World;
use crate::vfs::step::Step;

/// A place in a log, and what is on the medium there.
#[derive(Debug, Clone)]
pub struct ImageCursor {
    log: EventLog,
    cut: usize,
    medium: Medium,
    step: Option<Step>,
    notes: Vec<Arc<[u8]>>,
    seen: HashSet<(u128, usize, Option<Step>)>,
    duplicates: u64,
}

impl ImageCursor {
    pub(super) fn new(log: EventLog, profile: Profile) -> Self {
        let medium = Medium { profile, ..Medium::clone(&log.base) };
        let (step, notes, seen) = (None, Vec::new(), HashSet::new());
        Self { log, cut: 0, medium, step, notes, seen, duplicates: 0 }
    }

    /// Events before the crash.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// The step in progress.
    pub fn step(&self) -> Option<Step> {
        self.step
    }

    /// What the workload has noted, in order.
    pub fn notes(&self) -> &[Arc<[u8]>] {
        &self.notes
    }

    /// Events that no sync has covered.
    pub fn pending_len(&self) -> usize {
        self.medium.pending.len()
    }

    /// Images not given because an equal one was given before, in the same step and with the same
    /// notes.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Moves past one event; `None` at the end of the log.
    pub fn advance(&mut self) -> Option<&Event> {
        let event = self.log.events.get(self.cut)?;
        match event {
            Event::Mark(step) => self.step = Some(*step),
            Event::Note(note) => self.notes.push(Arc::clone(note)),
            _ => self.medium.apply(self.cut, event),
        }
        self.cut += 1;
        Some(event)
    }

    /// Moves forward until `cut` events are behind; stops at the end of the log.
    pub fn advance_to(&mut self, cut: usize) {
        while self.cut < cut && self.advance().is_some() {}
    }

    /// Crashes worth looking at here, at most `budget`: every subset of the pending events where
    /// they are few, else none, all, each missing, each alone, every prefix and random ones; and
    /// torn, cut and zeroed writes among them. The first two are none and all.
    pub fn outcomes(&self, rng: &mut Rng, budget: usize) -> Vec<Outcomes> {
        choices::of(&self.medium, self.cut, rng, budget)
            .into_iter()
            .map(|pending| Outcomes { profile: self.medium.profile, cut: self.cut, pending })
            .collect()
    }

    /// The images of [`outcomes`](Self::outcomes), without those whose like this cursor has given
    /// already in the same step and with the same notes: each step that is marked gets its crashes.
    pub fn images(&mut self, rng: &mut Rng, budget: usize) -> Vec<Image> {
        let mut images = Vec::new();
        for outcomes in self.outcomes(rng, budget) {
            let image = self.image(&outcomes.pending);
            if self.seen.insert((image.fingerprint, self.notes.len(), self.step)) {
                images.push(image);
            } else {
                self.duplicates += 1;
            }
        }
        images
    }

    /// What survives a crash here if the pending events come to `pending`.
    pub fn image(&self, pending: &[Outcome]) -> Image {
        let profile = self.medium.profile;
        let nodes = self.medium.survivors(pending);
        let fingerprint = fingerprint(&nodes);
        let outcomes = Outcomes { profile, cut: self.cut, pending: pending.to_vec() };
        let on_its_way =
            (profile == Profile::ProcessKill).then(|| self.medium_of_the_killed(pending));
        Image { outcomes, fingerprint, nodes, on_its_way, heritage: self.log.heritage }
    }

    /// After a kill the kernel lives on: what was pending still is, the last write perhaps shorter.
    fn medium_of_the_killed(&self, pending: &[Outcome]) -> Medium {
        let mut medium = Medium { profile: Profile::PosixHarshest, ..self.medium.clone() };
        for pending in &mut medium.pending {
            pending.index = None;
        }
        if let Some(Outcome::Cut(at)) = pending.get(self.medium.pending.len().saturating_sub(1))
            && let Some(last) = medium.pending.last_mut()
            && let Event::Write { bytes, .. } = &mut last.event
        {
            let at = usize::try_from(*at).unwrap_or(usize::MAX).min(bytes.len());
            *bytes = bytes[..at].into();
        }
        medium
    }

    /// The pending events in words, each with its place in `Outcomes::pending`.
    pub fn describe_pending(&self) -> Vec<String> {
        let older = |event: &Event| format!("before the log: {event:?}");
        let text = |pending: &Pending| match pending.index {
            Some(index) if pending.half => {
                format!("{} (the old name goes)", self.log.describe(index))
            }
            Some(index) => self.log.describe(index),
            None => older(&pending.event),
        };
        self.medium.pending.iter().map(text).collect()
    }
}

/// What survived one crash.
#[derive(Debug, Clone)]
pub struct Image {
    outcomes: Outcomes,
    fingerprint: u128,
    nodes: Durables,
    on_its_way: Option<Medium>,
    heritage: Heritage,
}

impl Image {
    /// The crash; its text form rebuilds this image from the same log.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// A hash of every name and every byte that survived.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// A disk that holds what survived: no handle, no lock, another boot (after a kill the same
    /// one), clocks that go on.
    pub fn disk(&self) -> SimDisk {
        let crash = mix(self.heritage.seed ^ mix(self.outcomes.cut as u64 + 1));
        let mut world = World::survived(&self.nodes, self.heritage, crash);
        match &self.on_its_way {
            Some(medium) => {
                world.boot = self.heritage.boot;
                world.base = Arc::new(medium.clone());
                world.medium = medium.clone();
                SimDisk::over(world, 1001)
            }
            None => SimDisk::over(world, 1000),
        }
    }
}

/// A hash of the tree below the root: names, kinds, contents, and which names are one file's.
fn fingerprint(nodes: &Durables) -> u128 {
    let mut text = Vec::with_capacity(4096);
    let mut met = HashMap::new();
    let mut next = vec![ROOT];
    while let Some(inode) = next.pop() {
        let Some(node) = nodes.get(&inode) else { continue };
        match &*node.body {
            Body::File(content) => {
                let number = met.len() as u64;
                let number = *met.entry(inode).or_insert(number);
                text.push(b'f');
                text.extend(number.to_le_bytes());
                text.extend(content.len().to_le_bytes());
                text.extend(content.hash().to_le_bytes());
            }
            Body::Directory(names) => {
                text.push(b'd');
                text.extend((names.len() as u64).to_le_bytes());
                for (name, inode) in names {
                    text.extend(name.as_bytes());
                    text.push(0);
                    next.push(*inode);
                }
            }
        }
    }
    short_hash(&text)
}
