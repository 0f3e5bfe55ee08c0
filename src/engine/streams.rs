//! The unsealed end of each stream, in memory: what recovery read from the journals, and what was
//! accepted since. Whatever lies below `sealed_upto` is in chunks and no longer here.

use std::collections::{BTreeMap, VecDeque};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Generation, LeaseId, OwnerId, RecordingId, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{Reading, RecordingRow, RecordingStatus, StreamRow};
use crate::protection::Protection;

/// Which journal holds a record that is not sealed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Ours. Copies in files below `since` are not needed any more.
    Own { since: u64 },
    /// One that a dead owner left.
    Adopted { owner: OwnerId, n: u64 },
}

#[derive(Debug, Clone)]
pub(crate) struct Unsealed {
    pub(crate) generation: Generation,
    pub(crate) payload: Payload,
    pub(crate) source: Source,
    /// Keeps the object of a large payload until a chunk refers to it.
    pub(crate) lease: Option<LeaseId>,
}

/// One stream's end.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) generation: Generation,
    /// Records below are in chunks.
    pub(crate) sealed_upto: Sequence,
    /// Records from `sealed_upto` on, without holes.
    pub(crate) tail: VecDeque<Unsealed>,
    pub(crate) tail_bytes: u64,
    /// The recording that it belongs to has ended: it grows no more.
    pub(crate) is_ended: bool,
}

impl End {
    pub(crate) fn of(row: &StreamRow) -> Self {
        Self {
            generation: row.generation,
            sealed_upto: row.sealed_upto,
            tail: VecDeque::new(),
            tail_bytes: 0,
            is_ended: false,
        }
    }

    /// The sequence that the next record gets.
    pub(crate) fn next(&self) -> Sequence {
        Sequence(self.sealed_upto.0 + self.tail.len() as u64)
    }

    /// Fails for a stream whose recording has ended.
    pub(crate) fn check_growing(&self, operation: &'static str, stream: StreamId) -> Result<()> {
        if !self.is_ended || !Protection::EndedGrowsNot.is_on() {
            return Ok(());
        }
        let cause = "its recording has ended; resume it with reopen to go on with it";
        Err(Error::new(ErrorKind::Conflict, operation, format!("stream {stream}"), cause))
    }

    pub(crate) fn has_tail(&self) -> bool {
        !self.tail.is_empty()
    }

    pub(crate) fn push(&mut self, record: Unsealed) {
        self.tail_bytes += record.payload.held_bytes();
        self.tail.push_back(record);
    }

    /// Forgets what lies below `upto`: it is in a chunk now.
    pub(crate) fn sealed(&mut self, upto: Sequence) {
        while self.sealed_upto < upto {
            if let Some(gone) = self.tail.pop_front() {
                self.tail_bytes -= gone.payload.held_bytes();
                self.sealed_upto.0 += 1;
            } else {
                self.sealed_upto = upto;
            }
        }
    }

    /// Moves the end back: nothing at or above `end` stays.
    pub(crate) fn rewind(&mut self, generation: Generation, end: Sequence) {
        self.generation = generation;
        while self.next() > end {
            match self.tail.pop_back() {
                Some(gone) => self.tail_bytes -= gone.payload.held_bytes(),
                None => self.sealed_upto = end,
            }
        }
    }
}

/// All streams that were touched since opening, or have an unsealed tail.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    ends: BTreeMap<StreamId, End>,
}

impl Streams {
    pub(crate) fn insert(&mut self, stream: StreamId, end: End) {
        self.ends.insert(stream, end);
    }

    pub(crate) fn into_ends(self) -> impl Iterator<Item = (StreamId, End)> {
        self.ends.into_iter()
    }

    pub(crate) fn remove(&mut self, stream: StreamId) {
        self.ends.remove(&stream);
    }

    pub(crate) fn get(&self, stream: StreamId) -> Option<&End> {
        self.ends.get(&stream)
    }

    pub(crate) fn get_mut(&mut self, stream: StreamId) -> Option<&mut End> {
        self.ends.get_mut(&stream)
    }

    pub(crate) fn known(&self, operation: &'static str, stream: StreamId) -> Result<&End> {
        self.ends.get(&stream).ok_or_else(|| unknown(operation, stream))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (StreamId, &End)> {
        self.ends.iter().map(|(id, end)| (*id, end))
    }

    pub(crate) fn sealed_upto(&self, stream: StreamId) -> Sequence {
        // A stream that is gone needs none of its records.
        self.ends.get(&stream).map_or(Sequence(u64::MAX), |end| end.sealed_upto)
    }
}

/// Which recordings have ended, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    known: BTreeMap<RecordingId, bool>,
}

impl Ended {
    /// Whether the recording of the stream of `row` has.
    pub(crate) fn has(&mut self, rows: &impl Reading, row: &StreamRow) -> Result<bool> {
        let Some(id) = row.recording else { return Ok(false) };
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let row = rows.get::<RecordingRow>(&id)?;
        let has = row.is_some_and(|row| row.status != RecordingStatus::Running);
        self.known.insert(id, has);
        Ok(has)
    }
}

pub(crate) fn unknown(operation: &'static str, stream: StreamId) -> Error {
    Error::new(ErrorKind::NotFound, operation, format!("stream {stream}"), "no such stream")
}

/// A record's place among those that are kept, by generation and cut.
///
/// A record is dropped when a later generation moved the end to or below it.
pub(crate) fn is_kept(row: &StreamRow, generation: Generation, sequence: Sequence) -> bool {
    generation <= row.generation
        && row.cuts.iter().all(|cut| cut.generation <= generation || sequence < cut.at)
}

/// Payload bytes in memory, shared with readers.
pub(crate) fn inline(payload: &[u8]) -> Payload {
    Payload::Inline(payload.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Cut;

    fn row(generation: u32, cuts: &[(u32, u64)]) -> StreamRow {
        StreamRow {
            generation: Generation(generation),
            cuts: cuts
                .iter()
                .map(|&(g, at)| Cut { generation: Generation(g), at: Sequence(at) })
                .collect(),
            ..StreamRow::default()
        }
    }

    /// Are exactly the records beyond a later cut dropped?
    #[test]
    fn a_record_beyond_a_later_cut_is_dropped() {
        let twice = row(2, &[(1, 10), (2, 4)]);
        assert!(is_kept(&twice, Generation(0), Sequence(3)));
        assert!(!is_kept(&twice, Generation(0), Sequence(4)));
        assert!(!is_kept(&twice, Generation(1), Sequence(9)));
        assert!(is_kept(&twice, Generation(2), Sequence(9)));
        assert!(!is_kept(&twice, Generation(3), Sequence(0)));
    }

    /// Does moving the end back and sealing keep the count and the bytes?
    #[test]
    fn the_tail_has_no_holes() {
        let mut end = End::of(&row(0, &[]));
        for n in 0..10u8 {
            let payload = inline(&[n; 10]);
            let source = Source::Own { since: 0 };
            end.push(Unsealed { generation: Generation(0), payload, source, lease: None });
        }
        end.sealed(Sequence(4));
        end.rewind(Generation(1), Sequence(6));
        assert_eq!((end.next(), end.tail.len(), end.tail_bytes), (Sequence(6), 2, 20));
        end.rewind(Generation(2), Sequence(1));
        assert_eq!((end.next(), end.tail.len(), end.tail_bytes), (Sequence(1), 0, 0));
        end.sealed(Sequence(5));
        assert_eq!(end.next(), Sequence(5));
    }
}
