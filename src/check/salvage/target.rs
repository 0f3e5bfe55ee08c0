//! The new store: what the rows of the snapshot say as far as bytes are there, and what is newer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::journey::{Found, Segment, follow};
use super::objects::{Copier, Objects};
use super::report::{Salvaged, Unconfirmed};
use super::rows::Rows;
use super::run::{NUMBERS_PASSED_OVER, counts_from};
use super::source::At;
use super::tails::{OfStream, Tails};
use crate::engine::{Append, Store};
use crate::error::Result;
use crate::format::snapshot::SnapshotHeader;
use crate::ids::{Generation, ObjectId, Ordinal, OwnerId, RecordingId, Sequence, StreamId};
use crate::journal::Payload;
use crate::limits::Limits;
use crate::manifest::{
    Birth, CheckIntegrity, ChunkRow, CountersRow, Cut, Key, LeaseRow, Manifest, Open,
    RecordingNameRow, RecordingRow, Row, StateBytes, StreamRow, Table, Write, edges_of_value,
    from_value,
};
use crate::sealed::{Described, Referrer};
use crate::vfs::Step;

/// Records appended in one go.
const GROUP_BYTES: usize = 1 << 20;

/// A chunk that a label tells of and the snapshot does not.
struct Draft {
    stream: StreamId,
    row: ChunkRow,
}

/// The new store while it is being made.
pub(super) struct Target<'s> {
    rows: Rows,
    objects: Objects,
    copier: Copier<'s>,
    pub(super) salvaged: Salvaged,
    drafts: Vec<Draft>,
    /// Rows of streams that only labels know.
    new_streams: BTreeMap<StreamId, StreamRow>,
    /// What labels say of objects that no row of the snapshot refers to.
    told: BTreeMap<ObjectId, String>,
    tails: Vec<(StreamId, Vec<Payload>)>,
    next_object: ObjectId,
    next_stream: StreamId,
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
                self.take_extent(file, described, &of_it, tails)?;
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
    ) -> Result<()> {
        let extent = &described.extent;
        if SnapshotHeader::from_bytes(&described.about).is_ok() {
            return Ok(());
        }
        let drafts: Vec<(StreamId, ChunkRow)> =
            referrers.iter().filter_map(|row| self.draft_of(row)).collect();
        let known = self.objects.by_digest.get(&extent.digest).copied();
        // Its records are appended anew with it.
        let is_payload = tails.payloads.contains_key(&extent.digest);
        if drafts.is_empty() && (known.is_some() || is_payload) {
            return Ok(());
        }
        let object = match known {
            Some(object) => object,
            None => {
                let (offset, stored_len) = (extent.offset, extent.stored_len);
                let at = At { file, offset, stored_len };
                self.next_object = ObjectId(self.next_object.0 + 1);
                if !self.copier.copy_new(extent, at, self.next_object, &mut self.objects)? {
                    let what = format!("object {}, {}", extent.digest, told(referrers));
                    self.salvaged.lose(
                        what,
                        drafts.iter().map(|d| d.1.rows).sum(),
                        "its bytes do not read",
                    );
                    return Ok(());
                }
                self.next_object
            }
        };
        self.told.entry(object).or_insert_with(|| told(referrers));
        let drafts = drafts.into_iter();
        self.drafts
            .extend(drafts.map(|(stream, row)| Draft { stream, row: ChunkRow { object, ..row } }));
        Ok(())
    }

    /// The chunk that a label tells of, unless the snapshot has it or had its stream retired.
    fn draft_of(&self, referrer: &Referrer) -> Option<(StreamId, ChunkRow)> {
        let (key, row) = decoded::<ChunkRow>(referrer)?;
        let is_new = match self.rows.streams.get(&key.0) {
            Some(stream) => row.first >= stream.sealed_upto && row.generation >= stream.generation,
            None => key.0 > self.rows.counters.stream,
        };
        (is_new && row.rows > 0).then_some((key.0, row))
    }

    /// A stream or a recording that is newer than the snapshot.
    fn take_context(&mut self, referrer: &Referrer) {
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
        self.take_journey(stream, &row, 0, row.sealed_upto.0, chunks, own, None);
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
        let (sealed_upto, next_ordinal) = Default::default();
        StreamRow { generation, sealed_upto, next_ordinal, cuts: Vec::new(), ..row }
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
    fn readable(
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
                    *payload = Payload::Inline(Arc::from(bytes));
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
            let (first, rows) = (row.first, row.rows);
            if is_new {
                self.salvaged.unconfirmed.push(Unconfirmed::Chunk { stream, first, rows });
            }
            self.rows.chunks.insert((stream, ordinal), row);
            ordinal = Ordinal(ordinal.0 + 1);
        }
        if tail > 0 && !self.salvaged.is_complete {
            let first = Sequence(sealed_upto);
            self.salvaged.unconfirmed.push(Unconfirmed::Records { stream, first, rows: tail });
        }
        let (sealed_upto, next_ordinal) = (Sequence(sealed_upto), ordinal);
        self.rows.streams.insert(stream, StreamRow { sealed_upto, next_ordinal, ..row });
        self.tails.push((stream, segment.records));
    }

    /// Takes out what refers to bytes or records that are not there, and keeps what nothing refers
    /// to any more by a lease.
    pub(super) fn settle_rows(&mut self) {
        self.settle_leases();
        self.settle_checkpoints();
        self.settle_recordings();
        let (objects, salvaged) = (&self.objects, &mut self.salvaged);
        self.rows.others.retain(|(table, key), value| {
            let edges = edges_of_value(*table, key, value).unwrap_or_default();
            let lost = edges.iter().find(|object| !objects.rows.contains_key(object));
            if let Some(object) = lost {
                let why = objects.lost.get(object).cloned().unwrap_or_default();
                salvaged.lose(format!("a row of {}, key {key:02x?}", table.name()), 0, why);
            }
            lost.is_none() && edges_of_value(*table, key, value).is_ok()
        });
        self.keep_unnamed();
    }

    fn settle_leases(&mut self) {
        for (lease, row) in &mut self.rows.leases {
            let objects = std::mem::take(&mut row.objects);
            let (there, gone): (Vec<_>, Vec<_>) =
                objects.into_iter().partition(|o| self.objects.rows.contains_key(o));
            row.objects = there;
            for object in gone {
                let why = self.objects.lost.get(&object).cloned().unwrap_or_default();
                let what = format!("object {object} of lease {lease} of {:?}", row.holder);
                self.salvaged.lose(what, 0, why);
            }
        }
    }

    fn settle_checkpoints(&mut self) {
        let ends: BTreeMap<StreamId, u64> = self
            .tails
            .iter()
            .filter_map(|(stream, tail)| {
                let row = self.rows.streams.get(stream)?;
                Some((*stream, row.sealed_upto.0 + tail.len() as u64))
            })
            .collect();
        let (rows, objects, salvaged) = (&self.rows.streams, &self.objects, &mut self.salvaged);
        self.rows.checkpoints.retain(|(scope, id), row| {
            let what = format!("checkpoint {id} of scope {scope}");
            if let StateBytes::Object(object) = row.state
                && !objects.rows.contains_key(&object)
            {
                let why = objects.lost.get(&object).cloned().unwrap_or_default();
                salvaged.lose(what, 0, why);
                return false;
            }
            let beyond = row.cursors.iter().find(|cursor| {
                // One that a rewind went back beyond was no use before.
                let is_cut = |of: &StreamRow| {
                    of.cuts.iter().any(|c| c.generation > cursor.generation && c.at < cursor.end)
                };
                let end = ends.get(&cursor.stream);
                end.is_some_and(|end| *end < cursor.end.0)
                    && !rows.get(&cursor.stream).is_some_and(is_cut)
            });
            if let Some(cursor) = beyond {
                let why =
                    format!("records of stream {} below {} are lost", cursor.stream, cursor.end);
                salvaged.lose(what, 0, why);
            }
            beyond.is_none()
        });
    }

    /// Recordings that only labels know get their names, as far as those are free.
    fn settle_recordings(&mut self) {
        let new = self.rows.counters.recording;
        let streams = &self.rows.streams;
        for (recording, row) in self.rows.recordings.range_mut(RecordingId(new.0 + 1)..) {
            row.streams.retain(|stream| streams.contains_key(stream));
            if self.rows.names.contains_key(&row.name) {
                row.name = format!("{} (recording {recording})", row.name);
            }
            let named = RecordingNameRow { recording: *recording };
            self.rows.names.insert(row.name.clone(), named);
            let name = row.name.clone();
            self.salvaged.unconfirmed.push(Unconfirmed::Recording { name });
        }
        let recordings = &self.rows.recordings;
        for row in self.rows.streams.values_mut() {
            row.recording = row.recording.filter(|recording| recordings.contains_key(recording));
        }
    }

    /// G25: what verifies and has no row to refer to it is kept all the same, and listed.
    fn keep_unnamed(&mut self) {
        let mut unnamed: BTreeSet<ObjectId> = self.objects.rows.keys().copied().collect();
        for row in self.rows.chunks.values() {
            unnamed.remove(&row.object);
            row.payloads.iter().for_each(|object| {
                unnamed.remove(object);
            });
        }
        for object in self.rows.leases.values().flat_map(|row| &row.objects) {
            unnamed.remove(object);
        }
        for row in self.rows.checkpoints.values() {
            if let StateBytes::Object(object) = &row.state {
                unnamed.remove(object);
            }
        }
        for ((table, key), value) in &self.rows.others {
            for object in edges_of_value(*table, key, value).unwrap_or_default() {
                unnamed.remove(&object);
            }
        }
        if unnamed.is_empty() {
            return;
        }
        for object in &unnamed {
            let of = self.told.get(object).cloned();
            let of = of.unwrap_or_else(|| "which a lost row referred to".to_owned());
            if let Some(row) = self.objects.rows.get(object) {
                let (digest, len) = (row.digest, row.len);
                self.salvaged.unconfirmed.push(Unconfirmed::Object { digest, len, of });
            }
        }
        let lease = self.rows.counters.lease.0 + 1;
        let row = LeaseRow {
            holder: "salvage".to_owned(),
            purpose: "objects that verify and that no row is known to refer to".to_owned(),
            deadline: None,
            objects: unnamed.into_iter().collect(),
        };
        self.rows.leases.insert(crate::ids::LeaseId(lease), row);
    }

    /// Writes the manifest: born as any, then every row in ONE transaction.
    pub(super) fn write(&mut self, created: Option<i64>) -> Result<()> {
        let (disk, root) = (&self.copier.source.disk, self.copier.root);
        let birth = Birth {
            store: self.salvaged.store,
            created,
            sealed_folders: self.copier.folders,
            single_file: false,
        };
        let nobody = OwnerId::from_parts(0, [0; 10]);
        let name = format!("{nobody}-{}", super::objects::unique(disk)?);
        Manifest::create(disk, root, &birth, &name)?;
        let open = Open { check_integrity: CheckIntegrity::Always, ..Open::default() };
        let manifest = Manifest::open(disk, root, &open)?;
        let (rows, objects) = (&self.rows, &self.objects);
        let counters = self.counters();
        manifest.write(None, Step::SalvageRows, |w| {
            w.raise_counters(&counters);
            put_all(w, &objects.files)?;
            put_all(w, &objects.inline)?;
            put_all(w, &objects.rows)?;
            put_all(w, &rows.streams)?;
            put_all(w, &rows.chunks)?;
            put_all(w, &rows.checkpoints)?;
            put_all(w, &rows.leases)?;
            put_all(w, &rows.recordings)?;
            put_all(w, &rows.names)?;
            rows.others.iter().try_for_each(|((table, key), value)| w.put_value(*table, key, value))
        })?;
        manifest.close()
    }

    /// Past every number that is used here, and past those that may have been given out since.
    fn counters(&self) -> CountersRow {
        let pass = |number: u64| number.saturating_add(NUMBERS_PASSED_OVER);
        let mut counters = self.rows.counters.clone();
        let file = self.objects.last_file();
        let recording = self.rows.recordings.keys().next_back().copied().unwrap_or_default();
        counters.commit_seq = counts_from(&self.salvaged);
        counters.epoch.0 = pass(counters.epoch.0);
        counters.object.0 = pass(counters.object.max(self.next_object).0);
        counters.file.0 = pass(counters.file.max(file).0);
        counters.lease.0 = pass(counters.lease.0);
        counters.recording.0 = pass(counters.recording.max(recording).0);
        counters.stream.0 = pass(counters.stream.max(self.next_stream).0);
        counters.checkpoint.0 = pass(counters.checkpoint.0);
        counters.receipt.0 = pass(counters.receipt.0);
        counters
    }

    /// Appends the unsealed records as any caller would, and closes the new store.
    pub(super) fn finish(mut self) -> Result<Salvaged> {
        let disk = Arc::clone(&self.copier.source.disk);
        let limits = Limits { background: false, ..Limits::default() };
        disk.mark(Step::SalvageRecords);
        let store = Store::options().disk(disk).limits(limits).open(self.copier.root)?;
        for (stream, payloads) in std::mem::take(&mut self.tails) {
            self.salvaged.records += payloads.len() as u64;
            append(&store, stream, payloads)?;
        }
        store.barrier()?;
        store.close()?;
        let salvaged = &mut self.salvaged;
        salvaged.objects = self.objects.rows.len() as u64;
        salvaged.bytes = self.objects.rows.values().map(|row| row.len).sum();
        salvaged.streams = self.rows.streams.len() as u64;
        salvaged.chunks = self.rows.chunks.len() as u64;
        Ok(self.salvaged)
    }
}

fn append(store: &Store, stream: StreamId, payloads: Vec<Payload>) -> Result<()> {
    let mut group = Vec::new();
    let mut bytes = 0;
    for payload in payloads {
        let Payload::Inline(payload) = payload else { continue };
        if bytes + payload.len() > GROUP_BYTES && !group.is_empty() {
            store.append(std::mem::take(&mut group))?;
            bytes = 0;
        }
        bytes += payload.len();
        group.push(Append { stream, payload: payload.to_vec() });
    }
    if !group.is_empty() {
        store.append(group)?;
    }
    Ok(())
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

fn put_all<R: Row>(w: &mut Write<'_>, rows: &BTreeMap<R::Key, R>) -> Result<()> {
    rows.iter().try_for_each(|(key, row)| w.put(key, row))
}

fn decoded<R: Row>(referrer: &Referrer) -> Option<(R::Key, R)> {
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
                let end = chunk.first.0.saturating_add(chunk.rows);
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
