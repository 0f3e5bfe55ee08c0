//! Producers: how far they got, by the snapshot, by the labels of outputs and by the batches of parts.
//!
//! A label tells of a time at which all that a producer had sent was in parts and outputs; a batch of a part that
//! is counted already counts once. So a producer stands where its rows do.

use super::target::Target;
use crate::ids::StageId;
use crate::manifest::{ProducerKey, ProducerRow};

/// Sequences of a producer that its row remembers, at most.
const RECENT_MAX: usize = 256;

/// What a batch says of its producer.
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) sequence: u64,
    pub(super) position: Vec<u8>,
    pub(super) fingerprint: [u8; 16],
    pub(super) rows: u64,
}

impl Target<'_> {
    /// Counts a batch of a part that comes back.
    pub(super) fn take_mark(&mut self, stage: StageId, mark: Mark) {
        let row = self.rows.producers.entry(ProducerKey { stage, name: mark.name }).or_default();
        let at = row.recent.partition_point(|(known, _)| *known < mark.sequence);
        let is_known = row.recent.get(at).is_some_and(|(known, _)| *known == mark.sequence);
        let is_older = at == 0 && row.recent.len() >= RECENT_MAX;
        if is_known || is_older {
            return;
        }
        row.batches = row.batches.saturating_add(1);
        row.rows = row.rows.saturating_add(mark.rows);
        row.recent.insert(at, (mark.sequence, mark.fingerprint));
        if row.last.is_none_or(|last| last < mark.sequence) {
            (row.last, row.position) = (Some(mark.sequence), mark.position);
        }
        let over = row.recent.len().saturating_sub(RECENT_MAX);
        row.recent.drain(..over);
    }

    /// How far a producer got when an output was made: what it sent until then is in parts and outputs.
    pub(super) fn take_producer_row(&mut self, producer: ProducerKey, told: ProducerRow) {
        let row = self.rows.producers.entry(producer).or_default();
        if row.last < told.last {
            *row = told;
        }
    }
}
