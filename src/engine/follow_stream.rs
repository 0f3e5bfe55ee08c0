//! One stream of a follower: what it handed out, what it knows of its row, and what was read of it
//! and waits.

use std::collections::BTreeMap;

use super::store::Store;
use super::streams::is_kept;
use crate::error::{Error, Result};
use crate::ids::{Generation, Ordinal, Sequence, StreamId};
use crate::journal::{Payload, Record};
use crate::manifest::{ChunkRow, Reading, StreamRow};
use crate::protection::Protection;

/// What a follower is given.
#[derive(Debug)]
pub(crate) enum Take {
    /// The end was moved back below what was handed out.
    Rewound { to: Sequence },
    /// The next record.
    Record { sequence: Sequence, payload: Payload },
    /// The next record lies in a chunk; whoever can read it says how far it got.
    InChunk { at: Ordinal, chunk: ChunkRow, from: Sequence },
    /// The rows moved since the last look: look again.
    Moved,
    /// Nothing yet.
    Nothing,
}

#[derive(Debug, Default)]
pub(crate) struct Following {
    row: StreamRow,
    /// The next record to hand out.
    next: Sequence,
    /// The end was moved back to here, below `next`, and this was not told.
    rewound: Option<Sequence>,
    /// What was read of journals, and is neither handed out nor in a chunk.
    waiting: BTreeMap<Sequence, (Generation, Payload)>,
    waiting_bytes: u64,
}

impl Following {
    pub(crate) fn row(&self) -> &StreamRow {
        &self.row
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Takes in a newer row; returns whether it says something new.
    pub(crate) fn see(&mut self, row: StreamRow) -> bool {
        if self.row == row {
            return false;
        }
        let later = row.cuts.iter().filter(|cut| cut.generation > self.row.generation);
        if let Some(to) = later.map(|cut| cut.at).min()
            && to < self.next
        {
            self.next = to;
            self.rewound = Some(self.rewound.map_or(to, |earlier| earlier.min(to)));
        }
        self.row = row;
        let (row, next) = (&self.row, self.next.max(self.row.sealed_upto));
        self.waiting.retain(|sequence, (generation, payload)| {
            let is_known = *generation <= row.generation;
            let counts = is_kept(row, *generation, *sequence) && *sequence >= next;
            // Of a generation that the row does not know yet: a newer one will tell.
            let stays = !is_known || counts || !Protection::FollowGeneration.is_on();
            self.waiting_bytes -= if stays { 0 } else { payload.held_bytes() };
            stays
        });
        true
    }

    /// Whether a record is in a chunk, or was cut away.
    pub(crate) fn is_past(&self, generation: Generation, sequence: Sequence) -> bool {
        let is_known = generation <= self.row.generation;
        is_known && (sequence < self.row.sealed_upto || !is_kept(&self.row, generation, sequence))
    }

    /// A record that was read never counted: what was read from there on is read again.
    pub(crate) fn take_back(&mut self, generation: Generation, from: Sequence) {
        self.waiting.clear();
        self.waiting_bytes = 0;
        if from < self.next && is_kept(&self.row, generation, from) {
            self.next = from;
            self.rewound = Some(self.rewound.map_or(from, |earlier| earlier.min(from)));
        }
    }

    /// Takes in a record that a journal held.
    pub(crate) fn take_in(&mut self, record: Record) {
        let Record { generation, sequence, payload, .. } = record;
        let is_past = sequence < self.next || sequence < self.row.sealed_upto;
        let is_known = generation <= self.row.generation;
        // What is in a chunk, cut away or handed out is never needed again, whatever comes.
        if is_known && (is_past || !is_counted(&self.row, generation, sequence)) {
            return;
        }
        // Copied forward, or of a generation that a later one took the place of.
        if self.waiting.get(&sequence).is_some_and(|(kept, _)| *kept >= generation) {
            return;
        }
        self.waiting_bytes += payload.held_bytes();
        if let Some((_, gone)) = self.waiting.insert(sequence, (generation, payload)) {
            self.waiting_bytes -= gone.held_bytes();
        }
    }

    /// Whether the next record can be handed out.
    pub(crate) fn is_ready(&self) -> bool {
        self.rewound.is_some() || self.next < self.row.sealed_upto || self.has_next()
    }

    fn has_next(&self) -> bool {
        let first = self.waiting.get(&self.next);
        first.is_some_and(|(generation, _)| *generation <= self.row.generation)
    }

    /// The record that is missing, and the one behind it that is there.
    pub(crate) fn hole(&self) -> Option<(Sequence, Sequence)> {
        let known =
            |(_, (generation, _)): &(_, &(Generation, Payload))| *generation <= self.row.generation;
        let (found, _) = self.waiting.iter().find(known)?;
        (self.next >= self.row.sealed_upto && *found > self.next).then_some((self.next, *found))
    }

    pub(crate) fn take(&mut self, store: &Store, stream: StreamId) -> Result<Take> {
        if let Some(to) = self.rewound.take() {
            return Ok(Take::Rewound { to });
        }
        if self.next < self.row.sealed_upto {
            return self.in_chunk(store, stream);
        }
        if !self.has_next() {
            return Ok(Take::Nothing);
        }
        let sequence = self.next;
        let Some((_, payload)) = self.waiting.remove(&sequence) else { return Ok(Take::Nothing) };
        self.waiting_bytes -= payload.held_bytes();
        self.next = Sequence(sequence.0 + 1);
        Ok(Take::Record { sequence, payload })
    }

    pub(crate) fn advance(&mut self, records: u64) {
        self.next = Sequence(self.next.0.saturating_add(records));
    }

    pub(crate) fn give_back(&mut self, sequence: Sequence) {
        self.next = self.next.min(sequence);
    }

    /// The chunk that holds the next record, found by bisection: chunks are dense.
    fn in_chunk(&self, store: &Store, stream: StreamId) -> Result<Take> {
        let snapshot = store.core().snapshot()?;
        let Some(row) = snapshot.get::<StreamRow>(&stream)? else { return Ok(Take::Moved) };
        if row.generation != self.row.generation {
            return Ok(Take::Moved);
        }
        let (mut low, mut high) = (0, row.next_ordinal.0);
        while low < high {
            let at = low + (high - low) / 2;
            let chunk = snapshot.require::<ChunkRow>(&(stream, Ordinal(at)))?;
            if chunk.first > self.next {
                high = at;
            } else if chunk.first.0.saturating_add(chunk.records) <= self.next.0 {
                low = at + 1;
            } else {
                return Ok(Take::InChunk { at: Ordinal(at), chunk, from: self.next });
            }
        }
        let cause = format!("record {} is sealed and in no chunk", self.next);
        Err(Error::damage("follow", format!("stream {stream}"), cause))
    }
}

fn is_counted(row: &StreamRow, generation: Generation, sequence: Sequence) -> bool {
    is_kept(row, generation, sequence) || !Protection::FollowGeneration.is_on()
}
