//! Refused: batches that a converter did not take, which were in quarantine as a part of their own.

use std::collections::{BTreeMap, BTreeSet};

use super::pieces::Piece;
use super::report::Unconfirmed;
use super::stages::NewPart;
use super::target::Target;
use crate::ids::{Sequence, StreamId};
use crate::manifest::{Key as _, PartRow, QuarantineRow, Table, to_value};

impl Target<'_> {
    /// Batches that were refused, and that nothing else brings back, go to quarantine again.
    pub(super) fn take_refused(
        &mut self,
        refused: Vec<(NewPart, QuarantineRow)>,
        published: &[Piece],
        taken: &mut BTreeMap<StreamId, BTreeSet<u64>>,
    ) {
        let mut seen: BTreeSet<(StreamId, u64)> = BTreeSet::new();
        for (part, told) in refused {
            let span = &part.span;
            let keys = self.keys();
            let holds = |intake, first: Sequence, upto: Sequence| {
                intake == span.intake && first <= span.first && span.upto <= upto
            };
            // It was given back, and converted; or its part stands, and nothing of that went.
            let is_converted = published.iter().any(|piece| piece.span == *span);
            let is_used = published.iter().any(|piece| {
                let of = &piece.span;
                of.key == span.key && holds(of.intake, of.first, of.upto)
            });
            let stands = self.rows.parts.iter().any(|((group, _), row)| {
                let is_of_key = keys.get(group).is_some_and(|key| *key == span.key);
                is_of_key && holds(row.intake, row.first, row.upto)
            });
            let is_twice = part.sequences.iter().any(|at| seen.contains(&(span.intake, *at)));
            let has_all = part.payloads.iter().all(|p| self.objects.by_digest.contains_key(p));
            let is_lost = !has_all || !self.is_stage(part.stage);
            if is_converted || (stands && !is_used) || is_twice || is_lost {
                continue;
            }
            seen.extend(part.sequences.iter().map(|at| (span.intake, *at)));
            taken.entry(span.intake).or_default().extend(&part.sequences);
            self.put_refused(part, told);
        }
    }

    fn put_refused(&mut self, part: NewPart, told: QuarantineRow) {
        let by_digest = &self.objects.by_digest;
        let payloads = part.payloads.iter().filter_map(|p| by_digest.get(p).copied()).collect();
        let (stage, object) = (part.stage, part.object);
        let row = QuarantineRow {
            objects: vec![object],
            part: PartRow { payloads, ..part.row() },
            key: part.span.key.clone(),
            ..told
        };
        let counters = &mut self.rows.counters;
        counters.quarantine.0 = counters.quarantine.0.saturating_add(1);
        counters.group = counters.group.max(row.group);
        let key = (stage, counters.quarantine).to_bytes();
        let (group, rows) = (row.group, part.rows);
        if let Ok(value) = to_value(&key, &row) {
            self.rows.others.insert((Table::Quarantine, key), value);
            self.salvaged.unconfirmed.push(Unconfirmed::Part { stage, group, rows });
        }
        part.marks.into_iter().for_each(|mark| self.take_mark(stage, mark));
    }
}
