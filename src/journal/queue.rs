//! Frames on their way to the file, and what is known of those that got there. No I/O.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::format::frame::{FRAME_HEADER_BYTES, padded};
use crate::format::record::Place;
use crate::ids::{Sequence, StreamId};
use crate::protection::Protection;

/// Where the records of a frame belong.
#[derive(Debug, Clone)]
pub(super) enum Places {
    One(Place),
    Many(Arc<[Place]>),
}

impl Places {
    pub fn iter(&self) -> std::slice::Iter<'_, Place> {
        match self {
            Self::One(place) => std::slice::from_ref(place).iter(),
            Self::Many(places) => places.iter(),
        }
    }
}

/// One encoded frame.
#[derive(Debug, Clone)]
pub(super) struct Queued {
    pub position: u64,
    pub body: Arc<[u8]>,
    pub body_checksum: u32,
    pub places: Places,
    pub at_nanos: u64,
}

impl Queued {
    /// What it will take of the file.
    pub fn bytes(&self) -> u64 {
        padded(FRAME_HEADER_BYTES + self.body.len()) as u64
    }
}

/// How far a frame has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// No byte of it has been handed to the disk.
    Queued,
    /// Some of its bytes may be in the file: a write of it is under way, or failed.
    Begun,
    Written,
    Durable,
}

#[derive(Debug)]
struct Entry {
    frame: Queued,
    /// Its records are durable by another way.
    settled: bool,
}

/// What `settle` and `flush_partly_sealed` ask of a stream: up to where it is sealed.
pub(super) type SealedUpTo<'a> = &'a dyn Fn(StreamId) -> Sequence;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Entry>,
    bytes: u64,
    /// The most that `bytes` ever was.
    peak: u64,
    /// The last position given out.
    last: u64,
    /// Frames up to here may be in the file in part: they keep their order and their place.
    begun: u64,
    /// Frames up to here are in a leader's hands.
    held: u64,
    unsynced: Unsynced,
}

/// Frames that are written and not yet synced: enough of them to know whether a sync is needed.
#[derive(Debug, Default)]
struct Unsynced {
    positions: VecDeque<RangeInclusive<u64>>,
    /// The lowest and the highest sequence of each stream.
    streams: BTreeMap<StreamId, (Sequence, Sequence)>,
}

impl Queue {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Whether a frame of `bytes` may be pushed. What was durable before is copied forward whatever its
    /// length: it comes alone.
    pub fn has_room(&self, bytes: u64, limit: u64) -> bool {
        self.bytes == 0 || self.bytes + bytes <= limit || !Protection::QueueBudget.is_on()
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a frame in, giving it the next position.
    pub fn push(&mut self, body: Arc<[u8]>, checksum: u32, places: Places, now: u64) -> u64 {
        self.last += 1;
        let position = self.last;
        let frame = Queued { position, body, body_checksum: checksum, places, at_nanos: now };
        self.bytes += frame.bytes();
        self.peak = self.peak.max(self.bytes);
        self.waiting.push_back(Entry { frame, settled: false });
        position
    }

    pub fn standing(&self, position: u64) -> Standing {
        let waiting = self.waiting.binary_search_by_key(&position, |e| e.frame.position);
        match waiting.ok().and_then(|at| self.waiting.get(at)) {
            Some(entry) if entry.settled => Standing::Durable,
            Some(_) if position <= self.begun.max(self.held) => Standing::Begun,
            Some(_) => Standing::Queued,
            None if self.unsynced.holds(position) => Standing::Written,
            None => Standing::Durable,
        }
    }

    /// Every waiting frame. They keep their places until [`end_run`](Self::end_run).
    pub fn begin_run(&mut self) -> Vec<Queued> {
        self.held = self.last;
        self.waiting.iter().map(|e| e.frame.clone()).collect()
    }

    /// The first `written` frames of the run are in the file, and those up to `begun` may be in part.
    pub fn end_run(&mut self, written: usize, begun: u64) {
        for entry in self.waiting.drain(..written.min(self.waiting.len())) {
            if !entry.settled {
                self.bytes -= entry.frame.bytes();
            }
            self.unsynced.push(&entry.frame);
        }
        self.begun = self.begun.max(begun);
        self.held = 0;
        let begun = self.begun;
        self.waiting.retain(|entry| !entry.settled || entry.frame.position <= begun);
    }

    /// All that is written up to `position` is durable.
    pub fn synced(&mut self, position: u64) {
        self.unsynced.forget(position);
    }

    /// Drops each frame all of whose records are sealed; one that may be in the file in part keeps
    /// its place there. Returns whether any was settled.
    pub fn settle(&mut self, sealed_upto: SealedUpTo<'_>) -> bool {
        let mut any = false;
        let (begun, bytes) = (self.begun.max(self.held), &mut self.bytes);
        self.waiting.retain_mut(|entry| {
            let sealed = |p: &Place| p.sequence < sealed_upto(p.stream);
            if !entry.settled && entry.frame.places.iter().all(sealed) {
                entry.settled = true;
                // Nobody waits for it any more, so it counts against nobody's queue.
                *bytes -= entry.frame.bytes();
                any = true;
            }
            !entry.settled || entry.frame.position <= begun
        });
        any
    }

    /// The last frame that is not durable yet.
    pub fn last_open(&self) -> Option<u64> {
        let waiting = self.waiting.iter().rev().find(|e| !e.settled).map(|e| e.frame.position);
        waiting.or_else(|| self.unsynced.last())
    }

    /// The last frame that is not durable yet and holds a record of `stream`.
    pub fn last_open_of(&self, stream: StreamId) -> Option<u64> {
        let is_here = |e: &&Entry| !e.settled && e.frame.places.iter().any(|p| p.stream == stream);
        let waiting = self.waiting.iter().rev().find(is_here).map(|e| e.frame.position);
        let unsynced = || self.unsynced.last().filter(|_| self.unsynced.lowest(stream).is_some());
        waiting.or_else(unsynced)
    }

    /// The lowest record of `stream` in a frame that is not durable yet.
    pub fn first_open_of(&self, stream: StreamId) -> Option<Sequence> {
        let waiting = self.waiting.iter().filter(|e| !e.settled);
        let places = waiting.flat_map(|e| e.frame.places.iter());
        let here = places.filter(|place| place.stream == stream).map(|place| place.sequence);
        here.chain(self.unsynced.lowest(stream)).min()
    }

    /// The last frame that nothing of is in the file yet, or only a part.
    pub fn last_unwritten(&self) -> Option<u64> {
        self.waiting.iter().rev().find(|e| !e.settled).map(|e| e.frame.position)
    }

    /// The last frame that is written and not durable yet.
    pub fn last_unsynced(&self) -> Option<u64> {
        self.unsynced.last()
    }

    /// The last frame, not durable yet, that must be before records below `sealed_upto` are published:
    /// it holds one that is not, and one of it or of a later frame is. G2: what survives has no holes,
    /// also between streams.
    pub fn last_partly_sealed(&self, sealed_upto: SealedUpTo<'_>) -> Option<u64> {
        let sealed = |p: &Place| p.sequence < sealed_upto(p.stream);
        let touched = |e: &Entry| !e.settled && e.frame.places.iter().any(sealed);
        let whole = |e: &Entry| e.settled || e.frame.places.iter().all(sealed);
        let upto = self.waiting.iter().rposition(touched);
        let before = self.waiting.iter().take(upto.map_or(0, |last| last + 1));
        // The mutant takes only an observation that is itself cut in two.
        let counts = |e: &&Entry| Protection::EarlierFrames.is_on() || touched(e);
        let waiting = before.rev().filter(counts).find(|e| !whole(e)).map(|e| e.frame.position);
        waiting.or_else(|| {
            let is_followed = upto.is_some() || self.unsynced.is_touched(sealed_upto);
            self.unsynced.last().filter(|_| is_followed && self.unsynced.is_open(sealed_upto))
        })
    }

    /// When the oldest frame that nobody has asked for yet was taken in.
    pub fn oldest_nanos(&self) -> Option<u64> {
        self.waiting.iter().find(|e| !e.settled).map(|e| e.frame.at_nanos)
    }
}

impl Unsynced {
    fn push(&mut self, frame: &Queued) {
        match self.positions.back_mut() {
            Some(range) if *range.end() + 1 == frame.position => {
                *range = *range.start()..=frame.position;
            }
            _ => self.positions.push_back(frame.position..=frame.position),
        }
        for place in frame.places.iter() {
            let (low, high) =
                self.streams.entry(place.stream).or_insert((place.sequence, place.sequence));
            *low = place.sequence.min(*low);
            *high = place.sequence.max(*high);
        }
    }

    fn forget(&mut self, upto: u64) {
        while self.positions.front().is_some_and(|range| *range.end() <= upto) {
            self.positions.pop_front();
        }
        if let Some(range) = self.positions.front_mut()
            && *range.start() <= upto
        {
            *range = upto + 1..=*range.end();
        }
        if self.positions.is_empty() {
            *self = Self::default();
        }
    }

    fn holds(&self, position: u64) -> bool {
        let at = self.positions.partition_point(|range| *range.end() < position);
        self.positions.get(at).is_some_and(|range| range.contains(&position))
    }

    fn lowest(&self, stream: StreamId) -> Option<Sequence> {
        self.streams.get(&stream).map(|(low, _)| *low)
    }

    fn last(&self) -> Option<u64> {
        self.positions.back().map(|range| *range.end())
    }

    /// Whether a record of these frames lies below `sealed_upto`.
    fn is_touched(&self, sealed_upto: SealedUpTo<'_>) -> bool {
        self.streams.iter().any(|(&stream, &(low, _))| low < sealed_upto(stream))
    }

    /// Whether a record of these frames does not.
    fn is_open(&self, sealed_upto: SealedUpTo<'_>) -> bool {
        self.streams.iter().any(|(&stream, &(_, high))| high >= sealed_upto(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Generation;

    fn push(queue: &mut Queue, records: &[(u64, u64)]) -> u64 {
        let place = |&(s, q): &(u64, u64)| Place {
            stream: StreamId(s),
            generation: Generation(0),
            sequence: Sequence(q),
        };
        let places = Places::Many(records.iter().map(place).collect());
        queue.push([1].into(), 0, places, 0)
    }

    /// Does a frame that a leader holds, or that is in the file in part, ever leave its place?
    #[test]
    fn a_begun_frame_is_settled_in_place() {
        let mut queue = Queue::default();
        let first = push(&mut queue, &[(1, 0)]);
        assert_eq!(queue.begin_run().len(), 1);
        let second = push(&mut queue, &[(1, 1)]);
        assert!(queue.settle(&|_| Sequence(9)));
        assert_eq!(queue.standing(first), Standing::Durable);
        assert_eq!(queue.standing(second), Standing::Durable);
        assert_eq!(queue.last_open(), None);
        assert_eq!(queue.begin_run().len(), 1, "the first keeps its place in the file");
        queue.end_run(0, 0);
        queue.settle(&|_| Sequence(9));
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    /// Is a settled frame between written ones ever taken for an unsynced one?
    #[test]
    fn settled_frames_leave_gaps_among_the_unsynced() {
        let mut queue = Queue::default();
        for sequence in 0..3 {
            push(&mut queue, &[(sequence, 0)]);
        }
        queue.settle(&|stream| Sequence(u64::from(stream == StreamId(1))));
        queue.begin_run();
        queue.end_run(2, 0);
        let standings: Vec<_> = (1..=3).map(|p| queue.standing(p)).collect();
        assert_eq!(standings, [Standing::Written, Standing::Durable, Standing::Written]);
        queue.synced(1);
        assert_eq!(queue.standing(1), Standing::Durable);
        assert_eq!(queue.standing(3), Standing::Written);
        queue.synced(3);
        assert_eq!(queue.last_open(), None);
    }

    /// Is an observation of which one part is about to be sealed found, queued or written?
    #[test]
    fn partly_sealed_groups_are_found() {
        let mut queue = Queue::default();
        push(&mut queue, &[(1, 0)]);
        let group = push(&mut queue, &[(1, 1), (2, 0)]);
        push(&mut queue, &[(1, 2)]);
        let sealed = |stream| Sequence(if stream == StreamId(1) { 2 } else { 0 });
        assert_eq!(queue.last_partly_sealed(&sealed), Some(group));
        assert_eq!(queue.last_partly_sealed(&|_| Sequence(0)), None);
        assert_eq!(queue.last_partly_sealed(&|_| Sequence(9)), None);
        queue.begin_run();
        queue.end_run(3, 0);
        assert_eq!(queue.last_partly_sealed(&sealed), Some(3));
        assert_eq!(queue.last_partly_sealed(&|_| Sequence(9)), None);
        queue.synced(3);
        assert_eq!(queue.last_partly_sealed(&sealed), None);
    }

    /// G2: may a record be published while an earlier one of another stream is only in memory?
    #[test]
    fn g2_what_stands_before_a_sealed_record_is_found() {
        let mut queue = Queue::default();
        let earlier = push(&mut queue, &[(2, 0)]);
        push(&mut queue, &[(1, 0)]);
        push(&mut queue, &[(2, 1)]);
        let sealed = |stream| Sequence(if stream == StreamId(1) { 1 } else { 0 });
        assert_eq!(queue.last_partly_sealed(&sealed), Some(earlier));
        assert_eq!(queue.last_partly_sealed(&|_| Sequence(0)), None);
    }
}
