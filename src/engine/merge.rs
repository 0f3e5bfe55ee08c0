//! Merge: records read from journals become the tails of streams, each record once and in order.
//!
//! Journals may hold a record twice (copied forward), sealed already, or of an older generation
//! beyond a cut. What is kept follows from the stream's row alone.

use std::collections::BTreeMap;

use super::streams::{Source, Unsealed, is_kept};
use crate::error::{Error, Result};
use crate::ids::{Generation, Sequence, StreamId};
use crate::journal::Record;
use crate::manifest::StreamRow;
use crate::protection::Protection;

#[derive(Debug, Default)]
pub(crate) struct Merge {
    found: BTreeMap<StreamId, BTreeMap<Sequence, Unsealed>>,
}

impl Merge {
    /// Takes in a record read from `source`.
    pub(crate) fn take(&mut self, record: Record, source: Source) {
        let of_stream = self.found.entry(record.stream).or_default();
        let kept = of_stream.get(&record.sequence);
        if kept.is_none_or(|kept| kept.generation < record.generation) {
            let (generation, payload) = (record.generation, record.payload);
            let unsealed = Unsealed { generation, payload, source, lease: None };
            of_stream.insert(record.sequence, unsealed);
        }
    }

    /// The streams that any record named.
    pub(crate) fn streams(&self) -> impl Iterator<Item = StreamId> {
        self.found.keys().copied()
    }

    /// The tail of `stream`, whose row is `row`: from `sealed_upto` on, without holes, and whether
    /// records lie behind a hole.
    ///
    /// # Errors
    /// `Damage` when a record is missing and a later one is there, unless `allow_gap`.
    pub(crate) fn tail(
        &mut self,
        stream: StreamId,
        row: &StreamRow,
        allow_gap: bool,
    ) -> Result<(Vec<Unsealed>, bool)> {
        let mut tail = Vec::new();
        let mut next = row.sealed_upto;
        for (sequence, record) in self.found.remove(&stream).unwrap_or_default() {
            if sequence < row.sealed_upto || !keep(row, record.generation, sequence) {
                continue;
            }
            if sequence != next {
                if allow_gap {
                    return Ok((tail, true));
                }
                let cause = format!("record {next} is missing although record {sequence} is there");
                return Err(Error::damage("recover", format!("stream {stream}"), cause));
            }
            tail.push(record);
            next = Sequence(sequence.0.saturating_add(1));
        }
        Ok((tail, false))
    }
}

fn keep(row: &StreamRow, generation: Generation, sequence: Sequence) -> bool {
    !Protection::RecordGeneration.is_on() || is_kept(row, generation, sequence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::streams::inline;

    fn record(generation: u32, sequence: u64, byte: u8) -> Record {
        Record {
            stream: StreamId(1),
            generation: Generation(generation),
            sequence: Sequence(sequence),
            payload: inline(&[byte]),
        }
    }

    /// Is a record that lies in two journals kept once?
    #[test]
    fn a_record_copied_forward_is_kept_once() {
        let mut merge = Merge::default();
        for source in [Source::Own { since: 1 }, Source::Own { since: 9 }] {
            (0..3).for_each(|n| merge.take(record(0, n, n as u8), source));
        }
        let row = StreamRow { sealed_upto: Sequence(1), ..StreamRow::default() };
        assert_eq!(merge.tail(StreamId(1), &row, false).unwrap().0.len(), 2);
    }

    /// Is a hole damage, and is what lies before it still given where that is allowed?
    #[test]
    fn a_hole_is_damage() {
        for allow_gap in [false, true] {
            let mut merge = Merge::default();
            for n in [0, 1, 3] {
                merge.take(record(0, n, 0), Source::Own { since: n });
            }
            let tail = merge.tail(StreamId(1), &StreamRow::default(), allow_gap);
            let found = tail.ok().map(|(tail, is_cut)| (tail.len(), is_cut));
            assert_eq!(found, allow_gap.then_some((2, true)));
        }
    }
}
