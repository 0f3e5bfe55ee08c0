//! The new store: what the rows of the snapshot say as far as bytes are there, and what is newer.

use std::collections::{BTreeMap, BTreeSet};

use super::files::NewFiles;
use super::journey::{Found, Segment, follow};
use super::objects::{Copier, Objects};
use super::report::{Salvaged, Unconfirmed};
use super::rows::Rows;
use super::source::{At, stored};
use super::stages::{NewPart, NewStaged};
use super::tails::{OfStream, Tails};
use crate::error::Result;
use crate::format::snapshot::SnapshotHeader;
use crate::format::staged::PART_BYTES_MAX;
use crate::ids::{Generation, ObjectId, Ordinal, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{
    ChunkRow, Cut, Key, ProducerRow, QuarantineRow, RecordingRow, Row, StreamRow, Table, from_value,
};
use crate::sealed::{Described, Referrer};

/// A chunk that a label tells of and the snapshot does not.
struct Draft {
    stream: StreamId,
    row: ChunkRow,
}

/// The new store while it is being made.
pub(super) struct Target<'s> {
    pub(super) rows: Rows,
    pub(super) objects: Objects,
    pub(super) copier: Copier<'s>,
    pub(super) salvaged: Salvaged,
    drafts: Vec<Draft>,
    /// Rows of streams that only labels know.
    new_streams: BTreeMap<StreamId, StreamRow>,
    /// What labels say of objects that no row of the snapshot refers to.
    pub(super) told: BTreeMap<ObjectId, String>,
    pub(super) tails: Vec<(StreamId, Vec<Payload>)>,
    /// Parts and outputs that the snapshot does not know.
    pub(super) staged: NewStaged,
    /// Streams whose records are batches of a stage: done already.
    pub(super) intakes: BTreeSet<StreamId>,
    /// Files and names that labels tell of.
    pub(super) files: NewFiles,
    pub(super) next_object: ObjectId,
    pub(super) next_stream: StreamId,
}

impl<'s> Target<'s> {
    pub(super) fn new(
        rows: Rows,
        objects: Objects,
        copier: Copier<'s>,
        salvaged: Salvaged,
    ) -> Self {
        Self {
            next_object: rows.counters.object,
            next_stream: rows.counters.stream,
            rows,
            objects,
            copier,
            salvaged,
            drafts: Vec::new(),
            new_streams: BTreeMap::new(),
            told: BTreeMap::new(),
            tails: Vec::new(),
            staged: NewStaged::default(),
            intakes: BTreeSet::new(),
            files: NewFiles::default(),
        }
    }

    /// Sealed files that the snapshot does not know: of their labels is learnt what they were for.
    pub(super) fn take_new_files(&mut self, tails: &Tails) -> Result<()> {
        let known: BTreeSet<_> = self.rows.files.values().map(|row| row.unique).collect();
        let source = self.copier.source;
        for (file, sealed) in source.files.iter().enumerate() {
            if known.contains(&sealed.unique) {
                continue;
            }
            let referrers = sealed.label.as_ref().map_or(&[][..], |label| &label.referrers);
            referrers.iter().for_each(|row| self.take_context(row));
            for (position, described) in sealed.extents.iter().enumerate() {
                let of_it = |row: &&Referrer| row.extent.is_some_and(|at| at as usize == position);
                let of_it: Vec<_> = referrers.iter().filter(of_it).collect();
                let object = self.take_extent(file, described, &of_it, tails)?;
                let commit = sealed.label.as_ref().map(|label| label.commit).unwrap_or_default();
                if let Some(object) = object {
                    let inputs = sealed.label.as_ref().map_or(&[][..], |label| &label.inputs);
                    let told = (referrers, inputs);
                    of_it.iter().for_each(|r| self.staged.output(object, r, told, commit));
                }
            }
        }
        Ok(())
    }

    fn take_extent(
        &mut self,
        file: usize,
        described: &Described,
        referrers: &[&Referrer],
        tails: &Tails,
    ) -> Result<Option<ObjectId>> {
        let extent = &described.extent;
        if SnapshotHeader::from_bytes(&described.about).is_ok() {
            return Ok(None);
        }
        let drafts: Vec<(StreamId, ChunkRow)> =
            referrers.iter().filter_map(|row| self.draft_of(row)).collect();
        let known = self.objects.by_digest.get(&extent.digest).copied();
        // Its records are appended anew with it.
        let is_payload = tails.payloads.contains_key(&extent.digest);
        if drafts.is_empty() && (known.is_some() || is_payload) {
            return Ok(None);
        }
        let object = match known {
            Some(object) => object,
            None => {
                let at = At { file, extent: stored(extent) };
                self.next_object = ObjectId(self.next_object.0 + 1);
                if !self.copier.copy_new(extent, at, self.next_object, &mut self.objects)? {
                    let what = format!("object {}, {}", extent.digest, told(referrers));
                    self.salvaged.lose(
                        what,
                        drafts.iter().map(|d| d.1.records).sum(),
                        "its bytes do not read",
                    );
                    return Ok(None);
                }
                // A part says itself what it is.
                if drafts.is_empty()
                    && extent.len <= PART_BYTES_MAX as u64
                    && let Ok(bytes) = self.copier.source.bytes(at)
                    && let Some(part) = NewPart::read(self.next_object, &bytes)
                {
                    let aside = referrers.iter().find_map(|row| decoded::<QuarantineRow>(row));
                    self.staged.part(part, aside.map(|(_, row)| row));
                }
                self.next_object
            }
        };
        self.told.entry(object).or_insert_with(|| told(referrers));
        let drafts = drafts.into_iter();
        self.drafts
            .extend(drafts.map(|(stream, row)| Draft { stream, row: ChunkRow { object, ..row } }));
        Ok(Some(object))
    }

    /// The chunk that a label tells of, unless the snapshot has it or had its stream retired.
    fn draft_of(&self, referrer: &Referrer) -> Option<(StreamId, ChunkRow)> {
        let (key, row) = decoded::<ChunkRow>(referrer)?;
        let is_new = match self.rows.streams.get(&key.0) {
            Some(stream) => row.first >= stream.sealed_upto && row.generation >= stream.generation,
            None => key.0 > self.rows.counters.stream,
        };
        (is_new && row.records > 0).then_some((key.0, row))
    }

    /// A stream or a recording that is newer than the snapshot.
    fn take_context(&mut self, referrer: &Referrer) {
        self.take_stage_row(referrer);
        self.files.take(referrer);
        if let Some((producer, row)) = decoded::<ProducerRow>(referrer) {
            self.take_producer_row(producer, row);
        }
        if let Some((stream, row)) = decoded::<StreamRow>(referrer)
            && stream > self.rows.counters.stream
        {
            self.new_streams.entry(stream).or_insert(row);
        }
        if let Some((recording, row)) = decoded::<RecordingRow>(referrer)
            && recording > self.rows.counters.recording
        {
            self.rows.recordings.entry(recording).or_insert(row);
        }
    }

    /// Every stream from its beginning, as far as it is there.
    pub(super) fn take_streams(&mut self, tails: Tails) {
        let mut tails = tails.streams;
        let mut drafts: BTreeMap<StreamId, Vec<ChunkRow>> = BTreeMap::new();
        for Draft { stream, row } in std::mem::take(&mut self.drafts) {
            drafts.entry(stream).or_default().push(row);
        }
        let mut all: BTreeSet<StreamId> = self.rows.streams.keys().copied().collect();
        let is_new = |stream: &&StreamId| **stream > self.rows.counters.stream;
        all.extend(drafts.keys().chain(tails.keys()).filter(is_new));
        all.retain(|stream| !self.intakes.contains(stream));
        self.next_stream = all.last().copied().unwrap_or_default().max(self.next_stream);
        let chunks = std::mem::take(&mut self.rows.chunks);
        for stream in all {
            let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
            let known = chunks.range(range).map(|(_, row)| row.clone()).collect();
            let newer = drafts.remove(&stream).unwrap_or_default();
            self.take_stream(stream, known, newer, tails.remove(&stream).unwrap_or_default());
        }
    }

    fn take_stream(
        &mut self,
        stream: StreamId,
        known: Vec<ChunkRow>,
        newer: Vec<ChunkRow>,
        records: OfStream,
    ) {
        let generations =
            newer.iter().map(|row| row.generation).chain(records.keys().map(|(g, _)| *g));
        let row = match self.rows.streams.get(&stream) {
            Some(row) => row.clone(),
            None => self.new_row(stream, generations.clone().min().unwrap_or_default()),
        };
        let later: BTreeSet<Generation> = generations.filter(|g| *g > row.generation).collect();
        let mut chunks: Vec<Found> =
            known.into_iter().filter_map(|row| self.found(row, false)).collect();
        let newer: Vec<Found> = newer.into_iter().filter_map(|row| self.found(row, true)).collect();
        let of = |g: Generation| newer.iter().filter(move |c| c.row.generation == g).cloned();
        chunks.extend(of(row.generation));
        // Ascending: of two records with one number the later generation counts.
        let own = records.iter().filter(|((g, _), _)| *g <= row.generation);
        let own = own.map(|((_, at), payload)| (*at, payload.clone())).collect();
        let (start, end) = (row.taken_upto.0, row.sealed_upto.0);
        self.take_journey(stream, &row, start, end, chunks, own, None);
        for g in later {
            let range = (g, 0)..=(g, u64::MAX);
            let own: BTreeMap<u64, Payload> =
                records.range(range).map(|((_, at), payload)| (*at, payload.clone())).collect();
            let chunks: Vec<Found> = of(g).collect();
            let firsts = chunks.iter().map(|c| c.row.first.0).chain(own.keys().copied());
            let start = firsts.min().unwrap_or_default();
            self.take_journey(stream, &row, start, start, chunks, own, Some(g));
        }
    }

    fn new_row(&self, stream: StreamId, generation: Generation) -> StreamRow {
        let row = self.new_streams.get(&stream).cloned().unwrap_or_else(|| StreamRow {
            name: format!("stream {stream}"),
            ..StreamRow::default()
        });
        let (taken_upto, sealed_upto, next_ordinal) = Default::default();
        StreamRow { generation, taken_upto, sealed_upto, next_ordinal, cuts: Vec::new(), ..row }
    }

    /// A chunk whose object is there, without payloads that are not.
    fn found(&mut self, mut row: ChunkRow, is_new: bool) -> Option<Found> {
        if !self.objects.rows.contains_key(&row.object) {
            return None;
        }
        let there = |object: &ObjectId| self.objects.rows.contains_key(object);
        let before = row.payloads.len();
        row.payloads.retain(there);
        // Numbers newer than the snapshot mean nothing here; the content names payloads by digest.
        let gone = before - row.payloads.len();
        if gone > 0 && !is_new {
            let what = format!("{gone} payloads of records from {} on", row.first);
            self.salvaged.lose(what, gone as u64, "their bytes do not read");
        }
        Some(Found { row, is_new })
    }

    #[expect(clippy::too_many_arguments, reason = "what a stream consists of")]
    fn take_journey(
        &mut self,
        stream: StreamId,
        row: &StreamRow,
        start: u64,
        end: u64,
        chunks: Vec<Found>,
        records: BTreeMap<u64, Payload>,
        generation: Option<Generation>,
    ) {
        let records = self.readable(stream, records);
        let journey = follow(start, end, chunks, records);
        for gap in journey.gaps {
            let what =
                format!("records {}..{} of stream {stream}, {:?}", gap.start, gap.end, row.name);
            self.salvaged.lose(what, gap.end - gap.start, "nothing that holds them reads");
        }
        let is_known = stream <= self.rows.counters.stream;
        for (at, segment) in journey.segments.into_iter().enumerate() {
            if at == 0 && generation.is_none() {
                if !is_known {
                    let name = row.name.clone();
                    self.salvaged.unconfirmed.push(Unconfirmed::Stream { stream, name });
                }
                let mut row = row.clone();
                let end = Sequence(segment.end());
                if row.cuts.iter().any(|cut| cut.at > end) {
                    // What they cut is lost; the generation still begins somewhere.
                    row.cuts.retain(|cut| cut.at < end);
                    row.cuts.push(Cut { generation: row.generation, at: end });
                }
                self.take_segment(stream, row, segment);
                continue;
            }
            let name = match generation {
                Some(generation) => {
                    format!("{} (generation {generation} from {})", row.name, segment.start)
                }
                None => format!("{} (from {})", row.name, segment.start),
            };
            self.next_stream = StreamId(self.next_stream.0 + 1);
            let stream = self.next_stream;
            let row = StreamRow { name, schema: row.schema.clone(), ..StreamRow::default() };
            let name = row.name.clone();
            self.salvaged.unconfirmed.push(Unconfirmed::Stream { stream, name });
            self.take_segment(stream, row, rebased(segment));
        }
    }

    /// Records whose payload is an object that can be had.
    pub(super) fn readable(
        &mut self,
        stream: StreamId,
        mut records: BTreeMap<u64, Payload>,
    ) -> BTreeMap<u64, Payload> {
        let (source, inline) = (self.copier.source, &self.rows);
        records.retain(|at, payload| {
            let Payload::Object { digest, .. } = payload else { return true };
            let from_row = || {
                let mut objects = inline.objects.iter().filter(|(_, row)| row.digest == *digest);
                objects.find_map(|(object, _)| inline.inline.get(object).map(|i| i.bytes.clone()))
            };
            let bytes = source.by_digest(digest).map(|(_, bytes)| bytes).or_else(from_row);
            match bytes {
                Some(bytes) => {
                    *payload = Payload::Inline(bytes.into());
                    true
                }
                None => {
                    let what = format!("the payload of record {at} of stream {stream}");
                    self.salvaged.lose(what, 1, format!("no file holds {digest} any more"));
                    false
                }
            }
        });
        records
    }

    fn take_segment(&mut self, stream: StreamId, row: StreamRow, segment: Segment) {
        let (sealed_upto, tail) = (segment.sealed_upto(), segment.records.len() as u64);
        let mut ordinal = Ordinal(0);
        for Found { row, is_new } in segment.chunks {
            let (first, records) = (row.first, row.records);
            if is_new {
                self.salvaged.unconfirmed.push(Unconfirmed::Chunk { stream, first, records });
            }
            self.rows.chunks.insert((stream, ordinal), row);
            ordinal = Ordinal(ordinal.0 + 1);
        }
        if tail > 0 && !self.salvaged.is_complete {
            let first = Sequence(sealed_upto);
            self.salvaged.unconfirmed.push(Unconfirmed::Records { stream, first, records: tail });
        }
        let (sealed_upto, next_ordinal) = (Sequence(sealed_upto), ordinal);
        self.rows.streams.insert(stream, StreamRow { sealed_upto, next_ordinal, ..row });
        self.tails.push((stream, segment.records));
    }
}

/// The same segment as the whole of a stream.
fn rebased(mut segment: Segment) -> Segment {
    for chunk in &mut segment.chunks {
        chunk.row.first.0 -= segment.start;
        chunk.row.generation = Generation(0);
    }
    segment.start = 0;
    segment
}

pub(super) fn decoded<R: Row>(referrer: &Referrer) -> Option<(R::Key, R)> {
    if Table::from_number(referrer.table) != Some(R::TABLE) {
        return None;
    }
    let key = R::Key::from_bytes(&referrer.key).ok()?;
    Some((key, from_value::<R>(&referrer.key, &referrer.value).ok()?))
}

/// What labels say that an object was for.
fn told(referrers: &[&Referrer]) -> String {
    let one = |row: &&Referrer| match Table::from_number(row.table) {
        Some(table) => match decoded::<ChunkRow>(row) {
            Some((key, chunk)) => {
                let end = chunk.first.0.saturating_add(chunk.records);
                format!("records {}..{end} of stream {}", chunk.first, key.0)
            }
            None => format!("a row of {}", table.name()),
        },
        None => "a row of a later release".to_owned(),
    };
    match referrers.is_empty() {
        true => "of which its label does not tell".to_owned(),
        false => format!("for {}", referrers.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
