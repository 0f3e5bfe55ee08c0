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

use super::objects::Objects;
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
    GroupRow, GroupState, OutputRow, PartRow, ProducerKey, StageRow, StreamRow, Table, from_value,
};
use crate::sealed::Referrer;

/// Sequences of a producer that its row remembers, at most.
const RECENT_MAX: usize = 256;

/// No record of a stream has a higher number.
const SEQUENCE_MAX: u64 = 1 << 59;

/// Records of a stream that have one key: what a part is known by before its row is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    intake: StreamId,
    first: Sequence,
    upto: Sequence,
    key: Vec<u8>,
}

/// A part that the snapshot does not know.
pub(super) struct NewPart {
    object: ObjectId,
    stage: StageId,
    span: Span,
    sequences: Vec<u64>,
    rows: u64,
    len: u64,
    first_at: Option<i64>,
    last_at: Option<i64>,
    payloads: Vec<Digest>,
    marks: Vec<Mark>,
}

/// What a batch says of its producer.
struct Mark {
    name: String,
    sequence: u64,
    position: Vec<u8>,
    fingerprint: [u8; 16],
    rows: u64,
}

/// An output that the snapshot does not know.
pub(super) struct NewOutput {
    object: ObjectId,
    stage: StageId,
    row: OutputRow,
    parts: Vec<((GroupId, PartId), PartRow)>,
    commit: CommitSeq,
}

/// What labels and contents tell of stages.
#[derive(Default)]
pub(super) struct NewStaged {
    parts: Vec<NewPart>,
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
            rows: frames.iter().fold(0, |sum, frame| sum.saturating_add(frame.head.rows)),
            len: frames.iter().fold(0, |sum, frame| sum.saturating_add(frame.len())),
            first_at: frames.iter().filter_map(|frame| frame.head.at).min(),
            last_at: frames.iter().filter_map(|frame| frame.head.at).max(),
            payloads: frames.iter().filter_map(payload).collect(),
            marks: frames.iter().filter_map(mark).collect(),
        }
    }
}

impl NewStaged {
    /// Takes note of a part's content.
    pub(super) fn part(&mut self, part: NewPart) {
        self.parts.push(part);
    }

    /// Takes note of an output that a label tells of, with the parts that it was made of.
    pub(super) fn output(
        &mut self,
        object: ObjectId,
        told: &Referrer,
        all: &[Referrer],
        commit: CommitSeq,
    ) {
        if Table::from_number(told.table) != Some(Table::Outputs) {
            return;
        }
        let stage = told.key.first_chunk::<8>().map(|stage| StageId(u64::from_be_bytes(*stage)));
        if let (Some(stage), Ok(row)) = (stage, from_value::<OutputRow>(&told.key, &told.value)) {
            let parts = all.iter().filter_map(decoded::<PartRow>).collect();
            self.outputs.push(NewOutput { object, stage, row, parts, commit });
        }
    }
}

/// The batches that outputs hold although their parts are gone.
type Published = Vec<Span>;

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
        let NewStaged { parts, outputs } = std::mem::take(&mut self.staged);
        let mut parts = parts;
        let published = self.take_outputs(outputs, &mut parts);
        self.drop_lost();
        let taken = self.take_parts(parts);
        for row in self.rows.stages.clone().into_values() {
            for intake in row.intakes {
                let own = taken.get(&intake).cloned().unwrap_or_default();
                self.take_intake(intake, &own, &published, tails);
            }
        }
        self.count_groups();
    }

    fn is_stage(&self, stage: StageId) -> bool {
        self.rows.stages.values().any(|row| row.stage == stage)
    }

    fn take_outputs(&mut self, mut outputs: Vec<NewOutput>, new: &mut Vec<NewPart>) -> Published {
        // Of two tries at the same parts the later one may have been published; what a later output was
        // merged from is in that one.
        outputs.sort_by_key(|output| std::cmp::Reverse((output.commit, output.object)));
        let mut published = Published::new();
        let mut merged: BTreeSet<GroupId> = BTreeSet::new();
        for output in outputs {
            let spans: Vec<Span> =
                output.parts.iter().map(|(_, row)| span(row, &output.row)).collect();
            let is_made = spans.iter().any(|span| published.contains(span));
            if is_made || !self.is_stage(output.stage) || !self.has_lost(&output, &spans, new) {
                continue;
            }
            for (key, _) in &output.parts {
                self.rows.parts.remove(key);
            }
            for merged in &output.row.merged {
                self.rows.outputs.remove(&(output.stage, *merged));
            }
            new.retain(|part| !spans.contains(&part.span));
            published.extend(spans);
            let groups = &output.row.groups;
            if groups.is_empty() || !groups.iter().all(|group| merged.contains(group)) {
                if !output.row.merged.is_empty() {
                    merged.extend(groups);
                }
                self.publish(output);
            }
        }
        published
    }

    /// Whether some of what an output was made of is not there: then it is the only one that has it.
    fn has_lost(&self, output: &NewOutput, spans: &[Span], new: &[NewPart]) -> bool {
        let objects = &self.objects.rows;
        let is_part = |(key, row): (&(GroupId, PartId), &Span)| match self.rows.parts.get(key) {
            Some(part) => objects.contains_key(&part.object),
            None => new.iter().any(|part| part.span == *row),
        };
        let is_output = |merged: &OutputId| {
            let row = self.rows.outputs.get(&(output.stage, *merged));
            row.is_some_and(|row| objects.contains_key(&row.object))
        };
        let parts = output.parts.iter().map(|(key, _)| key).zip(spans);
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
        let row = PartRow {
            object: part.object,
            payloads,
            rows: part.rows,
            batches: part.sequences.len() as u64,
            skip: 0,
            len: part.len,
            intake: part.span.intake,
            first: part.span.first,
            upto: part.span.upto,
        };
        self.rows.parts.insert((group, counters.part), row);
        let rows = part.rows;
        self.salvaged.unconfirmed.push(Unconfirmed::Part { stage, group, rows });
        part.marks.into_iter().for_each(|mark| self.take_mark(stage, mark));
    }

    fn take_mark(&mut self, stage: StageId, mark: Mark) {
        let row = self.rows.producers.entry(ProducerKey { stage, name: mark.name }).or_default();
        row.batches = row.batches.saturating_add(1);
        row.rows = row.rows.saturating_add(mark.rows);
        if row.last.is_none_or(|last| last < mark.sequence) {
            (row.last, row.position) = (Some(mark.sequence), mark.position);
            row.recent.push((mark.sequence, mark.fingerprint));
            let over = row.recent.len().saturating_sub(RECENT_MAX);
            row.recent.drain(..over);
        }
    }

    /// The unsealed batches of an intake: those that are in no part and in no output. Their numbers mean
    /// nothing but their order, so a gap parts nothing.
    fn take_intake(
        &mut self,
        intake: StreamId,
        taken: &BTreeSet<u64>,
        published: &[Span],
        tails: &mut Tails,
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
        let covers = |at: u64| {
            let is = move |span: &&Span| (span.first.0..span.upto.0).contains(&at);
            published.iter().filter(move |span| span.intake == intake).filter(is)
        };
        let known: BTreeSet<u64> = records.keys().chain(taken).copied().collect();
        let gone = gaps(from, &known, published.iter().filter(|span| span.intake == intake));
        if gone > 0 {
            let what = format!("{gone} batches of stream {intake}, {:?}", row.name);
            self.salvaged.lose(what, gone, "nothing that holds them reads");
        }
        records.retain(|at, payload| {
            let Payload::Inline(bytes) = payload else { return false };
            let key = decode_head(bytes).map(|(head, _)| head.key).unwrap_or_default();
            !covers(*at).any(|span| span.key == key)
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

fn span(row: &PartRow, of: &OutputRow) -> Span {
    let (intake, first, upto) = (row.intake, row.first, row.upto);
    Span { intake, first, upto, key: of.key.clone() }
}

fn why(objects: &Objects, object: ObjectId) -> String {
    objects.lost.get(&object).cloned().unwrap_or_default()
}
