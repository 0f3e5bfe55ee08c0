//! One journal that a follower reads: how far it got, and what it read that may be taken back yet.
//!
//! A frame that was read is not durable before a later one, or the journal's row, says so. Whoever
//! takes over a dead owner adopts its journal with the end that the medium has; what was read behind
//! that end never counted, and its numbers are given to other records.

use std::collections::VecDeque;

use crate::ids::{Generation, Sequence, StreamId};
use crate::journal::{ReadOn, Record};

/// A record that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    pub(super) stream: StreamId,
    pub(super) generation: Generation,
    pub(super) sequence: Sequence,
}

/// Where a follower stands in one journal.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) at: ReadOn,
    /// Groups that wait until they are durable, with the ends of their frames, where that is asked.
    unsynced: VecDeque<(u64, Vec<Record>)>,
    pub(super) unsynced_bytes: u64,
    /// What was taken in and is not known to be durable, with the ends of its frames.
    unsure: VecDeque<(u64, Vec<Named>)>,
}

impl Standing {
    /// Keeps a group until it is durable.
    pub(super) fn hold(&mut self, end: u64, group: Vec<Record>) {
        self.unsynced_bytes += held_bytes(&group);
        self.unsynced.push_back((end, group));
    }

    /// The next group that was kept and is durable by now.
    pub(super) fn take_synced(&mut self) -> Option<Vec<Record>> {
        let synced_up_to = self.at.synced_up_to;
        self.unsynced.front().filter(|(end, _)| *end <= synced_up_to)?;
        let (_, group) = self.unsynced.pop_front()?;
        self.unsynced_bytes -= held_bytes(&group);
        Some(group)
    }

    /// Remembers what is taken in before it is known to be durable.
    pub(super) fn note(&mut self, end: u64, named: Vec<Named>) {
        if !named.is_empty() && self.unsure.back().is_none_or(|(last, _)| *last < end) {
            self.unsure.push_back((end, named));
        }
    }

    /// Forgets what is durable by now.
    pub(super) fn forget_synced(&mut self) {
        while self.unsure.front().is_some_and(|(end, _)| *end <= self.at.synced_up_to) {
            self.unsure.pop_front();
        }
    }

    /// Forgets the frames all of whose records are `past`.
    pub(super) fn forget(&mut self, past: impl Fn(&Named) -> bool) {
        self.unsure.retain(|(_, named)| !named.iter().all(&past));
    }

    /// The journal ends at `end`: what was read behind it and may have been told.
    pub(super) fn cut(&mut self, end: u64) -> Vec<Named> {
        self.unsynced.retain(|(last, _)| *last <= end);
        self.unsynced_bytes = self.unsynced.iter().map(|(_, group)| held_bytes(group)).sum();
        let kept = self.unsure.partition_point(|(last, _)| *last <= end);
        self.unsure.split_off(kept).into_iter().flat_map(|(_, named)| named).collect()
    }

    /// Everything is read once more.
    pub(super) fn begin_again(&mut self) {
        self.at.offset = 0;
        self.unsynced.clear();
        self.unsynced_bytes = 0;
    }
}

fn held_bytes(group: &[Record]) -> u64 {
    group.iter().map(|record| record.payload.held_bytes()).sum()
}
