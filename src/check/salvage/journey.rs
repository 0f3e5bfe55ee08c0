//! One stream from its beginning: chunks as far as they follow each other, then records of
//! journals. Where something is missing, what lies behind becomes a stream of its own.
//!
//! ```text
//!   chunk chunk record record | gap | chunk record     -> two segments and a gap
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use crate::journal::Payload;
use crate::manifest::ChunkRow;

/// A chunk whose bytes are there.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) row: ChunkRow,
    /// It is newer than the snapshot.
    pub(super) is_new: bool,
}

/// Records that follow each other without a hole.
#[derive(Debug, Default)]
pub(super) struct Segment {
    /// The first, by its sequence in the old stream.
    pub(super) start: u64,
    pub(super) chunks: Vec<Found>,
    pub(super) records: Vec<Payload>,
}

impl Segment {
    fn at(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// The sequence behind its chunks.
    pub(super) fn sealed_upto(&self) -> u64 {
        self.chunks.last().map_or(self.start, |chunk| chunk.row.first.0 + chunk.row.records)
    }

    /// The sequence behind its last record.
    pub(super) fn end(&self) -> u64 {
        self.sealed_upto() + self.records.len() as u64
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.records.is_empty()
    }
}

/// A stream as far as it is there.
#[derive(Debug, Default)]
pub(super) struct Journey {
    /// The first begins where the stream does, and may be empty.
    pub(super) segments: Vec<Segment>,
    pub(super) gaps: Vec<Range<u64>>,
}

/// Follows a stream from `start` to at least `end`.
pub(super) fn follow(
    start: u64,
    end: u64,
    mut chunks: Vec<Found>,
    mut records: BTreeMap<u64, Payload>,
) -> Journey {
    chunks.sort_by_key(|chunk| (chunk.row.first, std::cmp::Reverse(chunk.row.records)));
    let mut journey = Journey::default();
    let mut segment = Segment::at(start);
    let mut chunks = chunks.into_iter().peekable();
    let mut at = start;
    loop {
        // What begins before is there already.
        while chunks.next_if(|chunk| chunk.row.first.0 < at).is_some() {}
        let is_sealing = segment.records.is_empty();
        let has_record = records.contains_key(&at);
        if (is_sealing || !has_record)
            && let Some(chunk) = chunks.next_if(|chunk| chunk.row.first.0 == at)
        {
            if !is_sealing {
                journey.segments.push(std::mem::replace(&mut segment, Segment::at(at)));
            }
            at += chunk.row.records;
            segment.chunks.push(chunk);
            continue;
        }
        if let Some(record) = records.remove(&at) {
            segment.records.push(record);
            at += 1;
            continue;
        }
        let chunk = chunks.peek().map(|chunk| chunk.row.first.0);
        let record = records.range(at..).next().map(|(at, _)| *at);
        let next = chunk.into_iter().chain(record).min();
        let Some(next) = next else { break };
        journey.gaps.push(at..next);
        at = next;
        journey.segments.push(std::mem::replace(&mut segment, Segment::at(at)));
    }
    if at < end {
        journey.gaps.push(at..end);
    }
    if journey.segments.is_empty() || !segment.is_empty() {
        journey.segments.push(segment);
    }
    journey
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Generation, ObjectId, Sequence};

    fn chunk(first: u64, records: u64) -> Found {
        let row = ChunkRow {
            object: ObjectId(1),
            generation: Generation(0),
            first: Sequence(first),
            records,
            records_written: records,
            iterations: None,
            times: None,
            raw_len: 0,
            payloads: Vec::new(),
        };
        Found { row, is_new: false }
    }

    fn records(at: &[u64]) -> BTreeMap<u64, Payload> {
        at.iter().map(|at| (*at, Payload::Inline([1].into()))).collect()
    }

    type Spans = (Vec<(u64, u64, u64)>, Vec<(u64, u64)>);

    fn told(journey: &Journey) -> Spans {
        let segment = |s: &Segment| (s.start, s.sealed_upto(), s.end());
        let gaps = journey.gaps.iter().map(|gap| (gap.start, gap.end));
        (journey.segments.iter().map(segment).collect(), gaps.collect())
    }

    /// Is every record that is there in exactly one segment, and every one that is not in a gap?
    #[test]
    fn g25_gaps_are_marked_and_what_lies_behind_is_kept() {
        let whole = follow(0, 5, vec![chunk(3, 2), chunk(0, 3)], records(&[5, 6]));
        assert_eq!(told(&whole), (vec![(0, 5, 7)], vec![]));
        let lost = follow(0, 9, vec![chunk(0, 3), chunk(6, 2)], records(&[9]));
        let expected = vec![(0, 3, 3), (6, 8, 8), (9, 9, 10)];
        assert_eq!(told(&lost), (expected, vec![(3, 6), (8, 9)]));
        let first = follow(0, 4, vec![chunk(2, 2)], records(&[]));
        assert_eq!(told(&first), (vec![(0, 0, 0), (2, 4, 4)], vec![(0, 2)]));
        let last = follow(0, 4, vec![chunk(0, 2)], records(&[]));
        assert_eq!(told(&last), (vec![(0, 2, 2)], vec![(2, 4)]));
        let behind = follow(0, 0, vec![chunk(2, 2)], records(&[0, 1]));
        assert_eq!(told(&behind), (vec![(0, 0, 2), (2, 4, 4)], vec![]));
        let healed = follow(0, 4, vec![chunk(0, 2)], records(&[2, 3]));
        assert_eq!(told(&healed), (vec![(0, 2, 4)], vec![]));
    }
}
