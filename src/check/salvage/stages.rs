//! Stages: the rows of the snapshot as far as their bytes are there; then parts, outputs and batches
//! that are newer.
//!
//! ```text
//!   output   what it was made of is all there? ---> kept by a lease, its parts are used
//!                 `--- some of that is gone   ---> an output, and the rest of that goes
//!   part     none of its batches came with another one ---> a part of the open group of its key
//!   batch of a journal   in no part, and in no output ---> unsealed again
//! ```
//! So each row that anything holds is there once. What is newer than the snapshot is unconfirmed.

use std::collections::{BTreeMap, BTreeSet};

use super::merged::Merged;
use super::objects::Objects;
use super::pieces::{Piece, Rest, Span, is_covered, rest};
use super::producers::Mark;
use super::report::Unconfirmed;
use super::tails::Tails;
use super::target::{Target, decoded};
use crate::digest::Digest;
use crate::format::staged::{Content, PartEnd, PartFrame, PartHeader, decode_head, scan_part};
use crate::ids::{
    CommitSeq, Generation, GroupId, ObjectId, OutputId, PartId, Sequence, StageId, StreamId,
};
use crate::journal::Payload;
use crate::manifest::{
    GroupRow, GroupState, OutputRow, PartRow, QuarantineRow, StageRow, StreamRow, Table, from_value,
};
use crate::sealed::Referrer;

/// No record of a stream has a higher number.
const SEQUENCE_MAX: u64 = 1 << 59;

/// A part that the snapshot does not know.
pub(super) struct NewPart {
    pub(super) object: ObjectId,
    pub(super) stage: StageId,
    pub(super) span: Span,
    pub(super) sequences: Vec<u64>,
    /// Batches at its beginning that an output has.
    skip: u64,
    pub(super) rows: u64,
    len: u64,
    first_at: Option<i64>,
    last_at: Option<i64>,
    pub(super) payloads: Vec<Digest>,
    pub(super) marks: Vec<Mark>,
}

/// An output that the snapshot does not know.
pub(super) struct NewOutput {
    pub(super) object: ObjectId,
    pub(super) stage: StageId,
    pub(super) row: OutputRow,
    /// What of each part it holds.
    parts: Vec<((GroupId, PartId), PartRow)>,
    /// What it was made of, by digest.
    pub(super) inputs: Vec<Digest>,
    commit: CommitSeq,
}

/// What labels and contents tell of stages.
#[derive(Default)]
pub(super) struct NewStaged {
    parts: Vec<NewPart>,
    /// Parts of batches that a converter refused.
    refused: Vec<(NewPart, QuarantineRow)>,
    outputs: Vec<NewOutput>,
}

impl NewPart {
    /// The part whose content `bytes` is.
    pub(super) fn read(object: ObjectId, bytes: &[u8]) -> Option<Self> {
        let scan = scan_part(bytes);
        let (header, PartEnd::Whole) = (scan.header?, &scan.end) else { return None };
        // P9: what no stream can count to is no number of it.
        if header.upto.0 > SEQUENCE_MAX {
            return None;
        }
        let key = scan.frames.first()?.head.key;
        Some(Self::of(object, &header, key, &scan.frames))
    }

    fn of(object: ObjectId, header: &PartHeader, key: &[u8], frames: &[PartFrame<'_>]) -> Self {
        let (intake, first, upto) = (header.intake, header.first, header.upto);
        let mark = |frame: &PartFrame<'_>| {
            let mark = frame.head.producer?;
            Some(Mark {
                name: mark.name.to_owned(),
                sequence: mark.sequence,
                position: mark.position.to_vec(),
                fingerprint: mark.fingerprint,
                rows: frame.head.rows,
            })
        };
        let payload = |frame: &PartFrame<'_>| match frame.content {
            Content::Object { digest, .. } => Some(digest),
            Content::Inline(_) => None,
        };
        Self {
            object,
            stage: header.stage,
            span: Span { intake, first, upto, key: key.to_vec() },
            sequences: frames.iter().map(|frame| frame.sequence.0).collect(),
            skip: 0,
            rows: frames.iter().fold(0, |sum, frame| sum.saturating_add(frame.head.rows)),
            len: frames.iter().fold(0, |sum, frame| sum.saturating_add(frame.len())),
            first_at: frames.iter().filter_map(|frame| frame.head.at).min(),
            last_at: frames.iter().filter_map(|frame| frame.head.at).max(),
            payloads: frames.iter().filter_map(payload).collect(),
            marks: frames.iter().filter_map(mark).collect(),
        }
    }
}

impl NewPart {
    /// Its row, but for what it names by digest.
    pub(super) fn row(&self) -> PartRow {
        PartRow {
            object: self.object,
            payloads: Vec::new(),
            rows: self.rows,
            batches: (self.sequences.len() as u64).saturating_sub(self.skip),
            skip: self.skip,
            len: self.len,
            intake: self.span.intake,
            first: self.span.first,
            upto: self.span.upto,
        }
    }
}

impl NewStaged {
    /// Takes note of a part's content; `aside` is what its label says where its batches were refused.
    pub(super) fn part(&mut self, part: NewPart, aside: Option<QuarantineRow>) {
        match aside {
            None => self.parts.push(part),
            Some(row) => self.refused.push((part, row)),
        }
    }

    /// Takes note of an output that a label tells of, with the parts that it was made of.
    pub(super) fn output(
        &mut self,
        object: ObjectId,
        told: &Referrer,
        (all, inputs): (&[Referrer], &[Digest]),
        commit: CommitSeq,
    ) {
        if Table::from_number(told.table) != Some(Table::Outputs) {
            return;
        }
        let stage = told.key.first_chunk::<8>().map(|stage| StageId(u64::from_be_bytes(*stage)));
        if let (Some(stage), Ok(row)) = (stage, from_value::<OutputRow>(&told.key, &told.value)) {
            let parts = all.iter().filter_map(decoded::<PartRow>).collect();
            let inputs = inputs.to_vec();
            self.outputs.push(NewOutput { object, stage, row, parts, inputs, commit });
        }
    }
}

/// The batches that outputs hold although their parts are gone.
type Published = Vec<Piece>;

impl Target<'_> {
    /// A stage that is newer than the snapshot.
    pub(super) fn take_stage_row(&mut self, referrer: &Referrer) {
        if let Some((name, row)) = decoded::<StageRow>(referrer)
            && row.stage > self.rows.counters.stage
            && !self.rows.stages.values().any(|known| known.stage == row.stage)
        {
            let name = match self.rows.stages.contains_key(&name) {
                true => format!("{name} (stage {})", row.stage),
                false => name,
            };
            self.salvaged.unconfirmed.push(Unconfirmed::Stage { name: name.clone() });
            self.rows.stages.insert(name, row);
        }
    }

    /// Everything of stages, before the streams: what they are taken from is no stream of its own.
    pub(super) fn take_stages(&mut self, tails: &mut Tails) {
        let NewStaged { parts, refused, outputs } = std::mem::take(&mut self.staged);
        let mut parts = parts;
        let merged: BTreeSet<StageId> = (outputs.iter())
            .filter(|output| !output.row.merged.is_empty())
            .map(|output| output.stage)
            .collect();
        let published = self.take_outputs(outputs, &mut parts);
        self.drop_lost();
        let mut taken = self.take_parts(parts);
        self.take_refused(refused, &published, &mut taken);
        let stages: BTreeSet<StageId> = self.rows.stages.values().map(|row| row.stage).collect();
        self.rows.producers.retain(|key, _| stages.contains(&key.stage));
        for row in self.rows.stages.clone().into_values() {
            for intake in row.intakes {
                let own = taken.get(&intake).cloned().unwrap_or_default();
                self.take_intake(intake, &own, &published, tails, merged.contains(&row.stage));
            }
        }
        self.count_groups();
    }

    pub(super) fn is_stage(&self, stage: StageId) -> bool {
        self.rows.stages.values().any(|row| row.stage == stage)
    }

    /// The outputs without which something would be missing; what of parts they hold is taken from these.
    fn take_outputs(&mut self, mut outputs: Vec<NewOutput>, new: &mut Vec<NewPart>) -> Published {
        // Of two tries at the same parts the later one may have been published; what a later output was
        // merged from is in that one.
        outputs.sort_by_key(|output| std::cmp::Reverse((output.commit, output.object)));
        let upto = self.rows.counters.output;
        let mut published = Published::new();
        let mut merged = Merged::default();
        for output in outputs {
            let pieces: Vec<Piece> =
                output.parts.iter().map(|(_, row)| Piece::of(row, &output.row.key)).collect();
            if merged.is_in_another(&output, &self.objects) {
                merged.absorb(&output, upto);
                self.drop_merged(&output, upto);
                published.extend(pieces);
                continue;
            }
            if merged.has_any(&output) || !self.has_lost(&output, &pieces, new, &published, upto) {
                continue;
            }
            if !self.is_stage(output.stage) {
                if output.stage > self.rows.counters.stage {
                    self.lose_output(&output, "no label tells of its stage");
                }
                continue;
            }
            if pieces.iter().any(|piece| published.iter().any(|other| piece.meets(other))) {
                if !pieces.iter().all(|piece| is_covered(piece, &published)) {
                    self.lose_output(&output, "another output has some of its rows as well");
                }
                continue;
            }
            merged.absorb(&output, upto);
            self.drop_merged(&output, upto);
            published.extend(pieces);
            self.publish(output);
        }
        self.take_away(&published, new);
        published
    }

    fn lose_output(&mut self, output: &NewOutput, why: &str) {
        let what = format!("an output of stage {}, {} rows", output.stage, output.row.rows);
        let batches = output.parts.iter().fold(0u64, |sum, (_, p)| sum.saturating_add(p.batches));
        self.salvaged.lose(what, batches, why);
    }

    /// Outputs of the snapshot that are in `output`: numbers above `upto` are given anew.
    fn drop_merged(&mut self, output: &NewOutput, upto: OutputId) {
        for merged in output.row.merged.iter().filter(|merged| **merged <= upto) {
            self.rows.outputs.remove(&(output.stage, *merged));
        }
    }

    /// Takes what outputs hold from the parts.
    fn take_away(&mut self, published: &[Piece], new: &mut Vec<NewPart>) {
        let (keys, salvaged) = (self.keys(), &mut self.salvaged);
        let mut lose = |row: &PartRow| {
            let what = format!("a part of stream {}, up to {} rows", row.intake, row.rows);
            salvaged.lose(
                what,
                row.batches,
                "an output has batches behind them, and they stay out",
            );
        };
        self.rows.parts.retain(|(group, _), row| {
            let key = keys.get(group).map_or(&[][..], |key| key);
            match rest(row, key, published) {
                Rest::All => true,
                Rest::Nothing => false,
                Rest::Behind(left) => {
                    *row = left;
                    true
                }
                Rest::Between => {
                    lose(row);
                    false
                }
            }
        });
        new.retain_mut(|part| {
            let row = part.row();
            match rest(&row, &part.span.key, published) {
                Rest::All => true,
                Rest::Nothing => false,
                Rest::Behind(left) => {
                    (part.skip, part.rows, part.len) = (left.skip, left.rows, left.len);
                    true
                }
                Rest::Between => {
                    lose(&row);
                    false
                }
            }
        });
    }

    /// The key of each group.
    pub(super) fn keys(&self) -> BTreeMap<GroupId, Vec<u8>> {
        self.rows.groups.iter().map(|((_, group), row)| (*group, row.key.clone())).collect()
    }

    /// Whether some of what an output was made of is not there, or in another output by now: then it is
    /// the only one that has it.
    fn has_lost(
        &self,
        output: &NewOutput,
        pieces: &[Piece],
        new: &[NewPart],
        published: &[Piece],
        upto: OutputId,
    ) -> bool {
        let objects = &self.objects.rows;
        // A part that was tried again has another number, and is the same records.
        let is_same = |row: &PartRow, span: &Span| {
            (row.intake, row.first, row.upto) == (span.intake, span.first, span.upto)
        };
        let is_part = |(key, piece): (&(GroupId, PartId), &Piece)| {
            let span = &piece.span;
            let known = self.rows.parts.get(key).or_else(|| {
                let mut groups = self.rows.groups.iter().filter(|(_, row)| row.key == span.key);
                groups.find_map(|((_, group), _)| {
                    let own = (*group, PartId(0))..=(*group, PartId(u64::MAX));
                    self.rows.parts.range(own).map(|(_, row)| row).find(|row| is_same(row, span))
                })
            });
            let is_there = match known {
                Some(part) => part.skip <= piece.from && objects.contains_key(&part.object),
                None => new.iter().any(|part| part.span == *span),
            };
            is_there && !published.iter().any(|other| other.span == *span)
        };
        let is_output = |merged: &OutputId| {
            let row = self.rows.outputs.get(&(output.stage, *merged));
            *merged <= upto && row.is_some_and(|row| objects.contains_key(&row.object))
        };
        let parts = output.parts.iter().map(|(key, _)| key).zip(pieces);
        let is_known = !output.parts.is_empty() || !output.row.merged.is_empty();
        !is_known || !parts.into_iter().all(is_part) || !output.row.merged.iter().all(is_output)
    }

    fn publish(&mut self, output: NewOutput) {
        let NewOutput { object, stage, row, .. } = output;
        let len = self.objects.rows.get(&object).map_or(0, |row| row.len);
        let counters = &mut self.rows.counters;
        counters.output.0 = counters.output.0.saturating_add(1);
        let id = counters.output;
        for group in &row.groups {
            counters.group = counters.group.max(*group);
        }
        let merged = row.merged.iter().copied().filter(|merged| *merged < id).collect();
        self.salvaged.unconfirmed.push(Unconfirmed::Output { stage, output: id, rows: row.rows });
        self.rows.outputs.insert((stage, id), OutputRow { object, len, merged, ..row });
    }

    /// Rows of the snapshot whose bytes are not there.
    fn drop_lost(&mut self) {
        let (objects, salvaged) = (&self.objects, &mut self.salvaged);
        self.rows.parts.retain(|(group, part), row| {
            let is_there = objects.rows.contains_key(&row.object);
            if !is_there {
                let what = format!("part {part} of group {group}, {} rows", row.rows);
                salvaged.lose(what, row.batches, why(objects, row.object));
            }
            row.payloads.retain(|object| {
                let is_there = objects.rows.contains_key(object);
                if !is_there {
                    let what = format!("a batch of part {part} of group {group}");
                    salvaged.lose(what, 1, why(objects, *object));
                }
                is_there
            });
            is_there
        });
        self.rows.outputs.retain(|(stage, output), row| {
            let is_there = objects.rows.contains_key(&row.object);
            if !is_there {
                let what = format!("output {output} of stage {stage}, {} rows", row.rows);
                salvaged.lose(what, 0, why(objects, row.object));
            }
            is_there
        });
    }

    /// New parts become parts of open groups. Returns the records of each stream that are in them.
    fn take_parts(&mut self, mut parts: Vec<NewPart>) -> BTreeMap<StreamId, BTreeSet<u64>> {
        let mut taken: BTreeMap<StreamId, BTreeSet<u64>> = BTreeMap::new();
        // Of two tries at the same records the later one has them all.
        parts.sort_by_key(|part| std::cmp::Reverse(part.sequences.len()));
        let mut kept = Vec::new();
        for part in parts {
            let own = taken.entry(part.span.intake).or_default();
            let is_new = match self.rows.streams.get(&part.span.intake) {
                Some(row) => part.span.first >= row.sealed_upto,
                None => part.span.intake > self.rows.counters.stream,
            };
            let is_twice = part.sequences.iter().any(|at| own.contains(at));
            let has_all = part.payloads.iter().all(|p| self.objects.by_digest.contains_key(p));
            if is_new && !is_twice && has_all && self.is_stage(part.stage) {
                own.extend(&part.sequences);
                kept.push(part);
            }
        }
        // As they were taken: the last position of a producer is that of its last batch.
        kept.sort_by_key(|part| (part.span.intake, part.sequences.first().copied()));
        for part in kept {
            self.take_part(part);
        }
        taken
    }

    fn take_part(&mut self, part: NewPart) {
        let stage = part.stage;
        let is_open = |(key, row): (&(StageId, GroupId), &GroupRow)| {
            (key.0 == stage && row.state == GroupState::Open && row.key == part.span.key)
                .then_some(key.1)
        };
        let group = self.rows.groups.iter().find_map(is_open).unwrap_or_else(|| {
            let counters = &mut self.rows.counters;
            counters.group.0 = counters.group.0.saturating_add(1);
            let row = GroupRow {
                key: part.span.key.clone(),
                state: GroupState::Open,
                rows: 0,
                batches: 0,
                len: 0,
                first_at: part.first_at,
                last_at: part.last_at,
                failures: 0,
                failure: None,
            };
            self.rows.groups.insert((stage, counters.group), row);
            counters.group
        });
        if let Some(row) = self.rows.groups.get_mut(&(stage, group)) {
            row.last_at = row.last_at.max(part.last_at);
        }
        let counters = &mut self.rows.counters;
        counters.part.0 = counters.part.0.saturating_add(1);
        let by_digest = &self.objects.by_digest;
        let payloads = part.payloads.iter().filter_map(|p| by_digest.get(p).copied()).collect();
        let row = PartRow { payloads, ..part.row() };
        self.rows.parts.insert((group, counters.part), row);
        let rows = part.rows;
        self.salvaged.unconfirmed.push(Unconfirmed::Part { stage, group, rows });
        part.marks.into_iter().for_each(|mark| self.take_mark(stage, mark));
    }

    /// The unsealed batches of an intake: those that are in no part and in no output. Their numbers mean
    /// nothing but their order, so a gap parts nothing.
    fn take_intake(
        &mut self,
        intake: StreamId,
        taken: &BTreeSet<u64>,
        published: &[Piece],
        tails: &mut Tails,
        is_merged: bool,
    ) {
        let row = match self.rows.streams.get(&intake) {
            Some(row) => row.clone(),
            None => StreamRow { name: format!("stream {intake}"), ..StreamRow::default() },
        };
        let from = row.sealed_upto.0;
        let mut records: BTreeMap<u64, Payload> = BTreeMap::new();
        for ((_, at), payload) in tails.streams.remove(&intake).unwrap_or_default() {
            if (from..SEQUENCE_MAX).contains(&at) && !taken.contains(&at) {
                records.insert(at, payload);
            }
        }
        let mut records = self.readable(intake, records);
        let known: BTreeSet<u64> = records.keys().chain(taken).copied().collect();
        let gone = gaps(from, &known, spans_of(published, intake));
        self.tell_gone(gone, intake, &row, is_merged);
        // The batches of a part are the records of its key, in their order.
        let mut places: BTreeMap<Span, u64> = BTreeMap::new();
        records.retain(|at, payload| {
            let Payload::Inline(bytes) = payload else { return false };
            let key = decode_head(bytes).map(|(head, _)| head.key).unwrap_or_default();
            let is_its = |span: &&Span| (span.first.0..span.upto.0).contains(at) && span.key == key;
            let Some(span) = spans_of(published, intake).find(is_its) else { return true };
            let place = places.entry(span.clone()).or_default();
            *place += 1;
            let is_in = |piece: &Piece| piece.from < *place && *place <= piece.upto;
            !published.iter().any(|piece| piece.span == *span && is_in(piece))
        });
        let base = taken.last().map_or(from, |last| last.saturating_add(1).max(from));
        let upto = self.rows.parts.values().filter(|part| part.intake == intake);
        let base = Sequence(upto.map(|part| part.upto.0).max().unwrap_or(base).max(base));
        let count = records.len() as u64;
        if count > 0 && !self.salvaged.is_complete {
            let (stream, first, records) = (intake, base, count);
            self.salvaged.unconfirmed.push(Unconfirmed::Records { stream, first, records });
        }
        let (generation, cuts) = (Generation(0), Vec::new());
        let row = StreamRow { taken_upto: base, sealed_upto: base, generation, cuts, ..row };
        self.next_stream = self.next_stream.max(intake);
        self.rows.streams.insert(intake, row);
        self.intakes.insert(intake);
        self.tails.push((intake, records.into_values().collect()));
    }

    /// Batches that no part, no journal and no label tells of. What a merged output was made of may be gone,
    /// labels and all, and its own tells nothing of parts.
    fn tell_gone(&mut self, gone: u64, intake: StreamId, row: &StreamRow, is_merged: bool) {
        let what = format!("{gone} batches of stream {intake}, {:?}", row.name);
        match (gone, is_merged) {
            (0, _) => {}
            (_, true) => {
                let note =
                    format!("{what}: no part, journal or label has them, a merged output may");
                self.salvaged.notes.push(note);
            }
            (_, false) => self.salvaged.lose(what, gone, "nothing that holds them reads"),
        }
    }

    /// Groups are the sum of the parts that are there.
    fn count_groups(&mut self) {
        let parts = &self.rows.parts;
        self.rows.groups.retain(|(_, group), row| {
            let own = parts.range((*group, PartId(0))..=(*group, PartId(u64::MAX)));
            let mut count = 0;
            (row.rows, row.batches, row.len) = (0, 0, 0);
            for (_, part) in own {
                count += 1;
                row.rows = row.rows.saturating_add(part.rows);
                row.batches = row.batches.saturating_add(part.batches);
                row.len = row.len.saturating_add(part.len);
            }
            count > 0
        });
        let groups: BTreeSet<GroupId> = self.rows.groups.keys().map(|key| key.1).collect();
        self.rows.parts.retain(|key, _| groups.contains(&key.0));
    }
}

/// How many numbers from `from` on are missing before the last that is known, but for those that
/// `published` spans.
fn gaps<'s>(from: u64, known: &BTreeSet<u64>, published: impl Iterator<Item = &'s Span>) -> u64 {
    let mut spans: Vec<(u64, u64)> = published.map(|span| (span.first.0, span.upto.0)).collect();
    spans.extend(known.iter().map(|at| (*at, at.saturating_add(1))));
    spans.sort_unstable();
    let (mut next, mut gone) = (from, 0u64);
    for (first, upto) in spans {
        gone = gone.saturating_add(first.saturating_sub(next));
        next = next.max(upto);
    }
    gone
}

fn spans_of(published: &[Piece], intake: StreamId) -> impl Iterator<Item = &Span> {
    published.iter().map(|piece| &piece.span).filter(move |span| span.intake == intake)
}

fn why(objects: &Objects, object: ObjectId) -> String {
    objects.lost.get(&object).cloned().unwrap_or_default()
}
