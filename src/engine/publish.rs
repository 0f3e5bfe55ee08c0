//! Publish: chunks of streams, and objects under a lease, become visible in one transaction.
//!
//! ```text
//!   ChunkBuild --- [Store::seal_chunks] ---> Sealing --- [Sealing::publish] ---> rows
//! ```
//! Between the two the bytes are durable and invisible; a crash there leaves orphans.

use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::append::{JOURNAL_HOLDER, JOURNAL_LEASES, payload_purpose};
use super::chunk_label::ChunkLabels;
use super::core::Core;
use super::hold::check_held;
use super::seal::{Content, RowText, SealedSet};
use super::store::Store;
use super::streams::{End, Streams, unknown};
use crate::digest::Digest;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Generation, LeaseId, ObjectId, Ordinal, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{ChunkRow, Key, LeaseRow, Reading, StreamRow, Table, Write};
use crate::protection::Protection;
use crate::vfs::Step;

/// A sealed run of records of one stream, encoded by the face that knows what they are.
#[derive(Debug, Clone)]
pub struct ChunkBuild {
    /// The stream.
    pub stream: StreamId,
    /// The first record: the stream's first unsealed one.
    pub first: Sequence,
    /// How many records; at least 1.
    pub records: u64,
    /// The encoded records. A record whose payload is an object is in it by digest.
    pub content: Vec<u8>,
    /// What the sealed file's footer says of it, for salvage.
    pub about: Vec<u8>,
    /// Bytes of the records before encoding.
    pub raw_len: u64,
    /// First and last iteration, where the records have one.
    pub iterations: Option<(i64, i64)>,
    /// First and last time, where the records have one.
    pub times: Option<(f64, f64)>,
    /// Objects that the content names by digest: they stay as long as the chunk does.
    pub payloads: Vec<ObjectId>,
}

impl ChunkBuild {
    /// The times as a row keeps them.
    pub(super) fn time_bits(&self) -> Option<(u64, u64)> {
        self.times.map(|(first, last)| (first.to_bits(), last.to_bits()))
    }
}

/// Chunks whose bytes are durable and that no row names yet. Dropped, they never were.
#[derive(Debug)]
pub struct Sealing {
    store: Store,
    set: SealedSet,
    chunks: Vec<Planned>,
    /// Records that were dropped before those in the chunks, to be counted with them.
    dropped: Vec<(StreamId, u64)>,
}

/// Chunks that fit their streams and are not built yet.
#[derive(Debug)]
pub(super) struct Planning {
    contents: Vec<Content>,
    chunks: Vec<Planned>,
}

impl Planning {
    /// Bytes of content.
    pub(super) fn bytes(&self) -> u64 {
        self.contents.iter().map(|content| content.bytes.len() as u64).sum()
    }
}

#[derive(Debug, Clone)]
struct Planned {
    stream: StreamId,
    generation: Generation,
    first: Sequence,
    records: u64,
    raw_len: u64,
    iterations: Option<(i64, i64)>,
    /// As bits.
    times: Option<(u64, u64)>,
    payloads: Vec<ObjectId>,
    leases: Vec<LeaseId>,
    /// Its row, as far as it is known before its transaction, and those of its stream.
    text: RowText,
    context: Arc<[RowText]>,
    /// The records were never appended: publication gives them their sequences.
    is_direct: bool,
}

impl Store {
    /// Seals and publishes `builds`: one file and one commit for any number of chunks of any
    /// number of streams, as far as they fit into a file.
    ///
    /// # Errors
    /// `Invalid` when a chunk does not start at its stream's first unsealed record or covers more
    /// than the stream has; `NotFound` for an unknown stream; `Conflict` when a stream was moved
    /// back meanwhile, or its recording has ended.
    ///
    /// # Durability
    /// When it returns, records, descriptors and bytes are durable.
    pub fn publish_chunks(&self, builds: Vec<ChunkBuild>) -> Result<Vec<(StreamId, Ordinal)>> {
        if builds.is_empty() {
            return Ok(Vec::new());
        }
        self.seal_chunks(builds)?.publish()
    }

    /// As [`Store::publish_chunks`]; the same transaction counts so many dropped records of streams.
    pub(crate) fn publish_counting(
        &self,
        builds: Vec<ChunkBuild>,
        dropped: Vec<(StreamId, u64)>,
    ) -> Result<()> {
        let sealing = self.seal_chunks(builds)?;
        Sealing { dropped, ..sealing }.publish().map(drop)
    }

    /// The first half of [`Store::publish_chunks`]: builds, syncs and places the files.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// The bytes are durable, and nothing refers to them.
    pub fn seal_chunks(&self, builds: Vec<ChunkBuild>) -> Result<Sealing> {
        self.core().check_intake("seal")?;
        let planning = self.plan_chunks(builds, &mut BTreeMap::new())?;
        self.seal_planned(planning)
    }

    /// What must be so before chunks are built. `reached` is up to where each stream was planned
    /// before, by chunks that are not published yet.
    pub(super) fn plan_chunks(
        &self,
        builds: Vec<ChunkBuild>,
        reached: &mut BTreeMap<StreamId, Sequence>,
    ) -> Result<Planning> {
        let chunks = self.plan(&builds, reached)?;
        let bounds: BTreeMap<StreamId, Sequence> =
            chunks.iter().map(|c| (c.stream, Sequence(c.first.0 + c.records))).collect();
        self.settle_mixed_frames(&bounds)?;
        let contents = builds
            .into_iter()
            .zip(&chunks)
            .map(|(build, planned)| Content {
                about: build.about,
                context: planned.context.clone(),
                ..Content::new(build.content, Some(planned.text.clone()))
            })
            .collect();
        Ok(Planning { contents, chunks })
    }

    /// Builds, syncs and places the files of what was planned.
    pub(super) fn seal_planned(&self, planning: Planning) -> Result<Sealing> {
        let Planning { contents, chunks } = planning;
        let building = &self.writer("seal")?.building;
        let set = SealedSet::seal(self.core(), self.files(), building, contents)?;
        Ok(Sealing { store: self.clone(), set, chunks, dropped: Vec::new() })
    }

    /// Checks every build against the ends of the streams; several chunks of one stream follow
    /// each other.
    fn plan(
        &self,
        builds: &[ChunkBuild],
        reached: &mut BTreeMap<StreamId, Sequence>,
    ) -> Result<Vec<Planned>> {
        let writer = self.writer("seal")?;
        let mut streams = writer.streams.lock();
        let mut planned = Vec::with_capacity(builds.len());
        let named: Vec<StreamId> = builds.iter().map(|build| build.stream).collect();
        self.load_all(&mut streams, &named)?;
        let mut label = ChunkLabels::new(self.core().snapshot()?);
        for build in builds {
            let end = streams.known("seal", build.stream)?;
            end.check_growing("seal", build.stream)?;
            let planned_upto = reached.get(&build.stream).copied().unwrap_or_default();
            let expected = planned_upto.max(end.sealed_upto);
            check_build(build, end, expected)?;
            reached.insert(build.stream, Sequence(build.first.0 + build.records));
            let from = (build.first.0 - end.sealed_upto.0) as usize;
            let (text, context) = label.of(build, end.generation)?;
            let covered = end.tail.iter().skip(from).take(build.records as usize);
            planned.push(Planned {
                stream: build.stream,
                generation: end.generation,
                first: build.first,
                records: build.records,
                raw_len: build.raw_len,
                iterations: build.iterations,
                times: build.time_bits(),
                payloads: build.payloads.clone(),
                leases: covered.filter_map(|record| record.lease).collect(),
                text,
                context: context.into(),
                is_direct: end.tail.is_empty(),
            });
        }
        Ok(planned)
    }

    /// Bulk path: before a chunk is published, what was accepted up to its last record and belongs to
    /// other streams is durable in the journal: no observation is ever half there, or there without an
    /// earlier one.
    pub(super) fn settle_mixed_frames(&self, bounds: &BTreeMap<StreamId, Sequence>) -> Result<()> {
        let writer = self.writer("seal")?;
        if !Protection::EarlierSettled.is_on() {
            return Ok(());
        }
        let upto = |stream| bounds.get(&stream).copied().unwrap_or_default();
        writer.journal.flush_partly_sealed(&upto).inspect_err(|e| self.note_journal_failure(e))
    }

    /// Stores `contents` under a lease, each once, and returns object and digest of each in order.
    ///
    /// # Errors
    /// `NotFound` when the lease does not stand; `DiskFull`.
    ///
    /// # Durability
    /// When it returns, bytes and references are durable.
    pub fn put_objects(
        &self,
        lease: LeaseId,
        contents: Vec<Vec<u8>>,
    ) -> Result<Vec<(ObjectId, Digest)>> {
        let writer = self.writer("put")?;
        self.core().check_intake("put")?;
        let referrer = Some((Table::Leases.number(), lease.to_bytes(), Vec::new()));
        let contents =
            contents.into_iter().map(|bytes| Content::new(bytes, referrer.clone())).collect();
        let set = SealedSet::seal(self.core(), self.files(), &writer.building, contents)?;
        let digests = set.digests().to_vec();
        let committed = set.publish(self.files(), Step::PublishCommit, |w, objects| {
            let Some(mut row) = w.get::<LeaseRow>(&lease)? else {
                let cause = "the lease does not stand";
                return Err(Error::new(
                    ErrorKind::NotFound,
                    "put",
                    format!("lease {lease}"),
                    cause,
                ));
            };
            for object in objects {
                if !row.objects.contains(object) {
                    row.objects.push(*object);
                }
            }
            w.put(&lease, &row)?;
            Ok(objects.to_vec())
        })?;
        self.count_publication();
        Ok(committed.value.into_iter().zip(digests).collect())
    }

    /// Seals one content for a row of the engine's own.
    pub(super) fn seal_one(&self, bytes: Vec<u8>, referrer: RowText) -> Result<SealedSet> {
        let content = Content::new(bytes, Some(referrer));
        let building = &self.writer("seal")?.building;
        SealedSet::seal(self.core(), self.files(), building, vec![content])
    }

    /// Stores one large payload before the frame that names it, under a lease of its own.
    pub(super) fn put_payload(
        &self,
        stream: StreamId,
        bytes: Vec<u8>,
    ) -> Result<(Payload, LeaseId)> {
        let len = bytes.len() as u64;
        let set = self.seal_one(bytes, (Table::Leases.number(), Vec::new(), Vec::new()))?;
        let digest = set.digests()[0];
        let committed = set.publish(self.files(), Step::PublishCommit, |w, objects| {
            let lease = LeaseId(JOURNAL_LEASES | w.next_lease_id()?.0);
            let row = LeaseRow {
                holder: JOURNAL_HOLDER.to_owned(),
                purpose: payload_purpose(stream),
                deadline: None,
                objects: objects.to_vec(),
            };
            w.put(&lease, &row)?;
            Ok(lease)
        })?;
        Ok((Payload::Object { digest, len }, committed.value))
    }
}

fn check_build(build: &ChunkBuild, end: &End, expected: Sequence) -> Result<()> {
    let place = format!("stream {}", build.stream);
    if build.records == 0 {
        return Err(Error::invalid("seal", place, "a chunk holds at least one record"));
    }
    if build.first != expected {
        let cause = format!("the chunk starts at {}, the unsealed end at {expected}", build.first);
        return Err(Error::invalid("seal", place, cause));
    }
    let chunk_end = build.first.0.checked_add(build.records);
    let fits = match chunk_end {
        Some(chunk_end) => end.tail.is_empty() || chunk_end <= end.next().0,
        None => false,
    };
    if !fits {
        let cause = format!("{} records from {} pass its end", build.records, build.first);
        return Err(Error::invalid("seal", place, cause));
    }
    Ok(())
}

impl Sealing {
    /// Takes in what was sealed behind it, for one transaction.
    pub(super) fn join(&mut self, later: Self) {
        self.set.join(later.set);
        self.chunks.extend(later.chunks);
        self.dropped.extend(later.dropped);
    }

    /// The second half of [`Store::publish_chunks`]: ONE transaction.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// When it returns, records, descriptors and bytes are durable.
    pub fn publish(self) -> Result<Vec<(StreamId, Ordinal)>> {
        let Self { store, set, chunks, dropped } = self;
        store.core().check_intake("publish")?;
        let writer = store.writer("publish")?;
        // A direct chunk's sequences must still be free when its transaction commits, so no append
        // may come between.
        let held = chunks.iter().any(|c| c.is_direct).then(|| writer.streams.lock());
        if let Some(streams) = &held {
            for c in chunks.iter().filter(|c| c.is_direct) {
                if !streams.known("publish", c.stream)?.tail.is_empty() {
                    let cause = "records were appended meanwhile; seal again from its end";
                    let place = format!("stream {}", c.stream);
                    return Err(Error::new(ErrorKind::Conflict, "publish", place, cause));
                }
            }
        }
        let committed = set.publish(store.files(), Step::PublishCommit, |w, objects| {
            count_dropped(w, &dropped)?;
            chunks
                .iter()
                .zip(objects)
                .map(|(c, object)| write_chunk(store.core(), w, c, *object))
                .collect()
        })?;
        let tidied = store.sealed(&chunks, held.unwrap_or_else(|| writer.streams.lock()));
        store.core().note_untidy(tidied);
        store.count_publication();
        Ok(committed.value)
    }
}

/// Counts records of streams that were dropped.
pub(crate) fn count_dropped(w: &mut Write, dropped: &[(StreamId, u64)]) -> Result<()> {
    for (stream, count) in dropped {
        if let Some(mut row) = w.get::<StreamRow>(stream)? {
            row.dropped = row.dropped.saturating_add(*count);
            w.put(stream, &row)?;
        }
    }
    Ok(())
}

fn write_chunk(
    core: &Core,
    w: &mut Write,
    c: &Planned,
    object: ObjectId,
) -> Result<(StreamId, Ordinal)> {
    check_held(core, w, "publish", c.stream)?;
    let Some(mut stream) = w.get::<StreamRow>(&c.stream)? else {
        return Err(unknown("publish", c.stream));
    };
    if stream.generation != c.generation || stream.sealed_upto != c.first {
        let cause = "it was moved back or sealed by another call meanwhile; read its end again";
        let place = format!("stream {}", c.stream);
        return Err(Error::new(ErrorKind::Conflict, "publish", place, cause));
    }
    let ordinal = stream.next_ordinal;
    let Some(next) = ordinal.next() else {
        let place = format!("stream {}", c.stream);
        return Err(Error::new(ErrorKind::LimitExceeded, "publish", place, "no ordinal is left"));
    };
    stream.next_ordinal = next;
    stream.sealed_upto = Sequence(c.first.0 + c.records);
    w.put(&c.stream, &stream)?;
    let mut payloads = c.payloads.clone();
    for lease in &c.leases {
        // What kept a large payload until now: from here on the chunk does.
        if let Some(row) = w.remove::<LeaseRow>(lease)? {
            payloads.extend(row.objects);
        }
    }
    payloads.sort();
    payloads.dedup();
    let row = ChunkRow {
        object,
        generation: c.generation,
        first: c.first,
        records: c.records,
        records_written: c.records,
        iterations: c.iterations,
        times: c.times,
        raw_len: c.raw_len,
        payloads,
    };
    w.put(&(c.stream, ordinal), &row)?;
    Ok((c.stream, ordinal))
}

impl Store {
    /// After the commit: the ends move, waiters of covered frames are told, journals may go.
    fn sealed(&self, chunks: &[Planned], streams: MutexGuard<'_, Streams>) -> Result<()> {
        let ends: Vec<_> = chunks
            .iter()
            .map(|c| (c.stream, c.generation, Sequence(c.first.0 + c.records)))
            .collect();
        self.moved_up(&ends, streams)
    }

    /// As [`Store::sealed`], of streams whose records up to a sequence are in rows now.
    pub(super) fn moved_up(
        &self,
        ends: &[(StreamId, Generation, Sequence)],
        mut streams: MutexGuard<'_, Streams>,
    ) -> Result<()> {
        let writer = self.writer("publish")?;
        for (stream, generation, upto) in ends {
            if let Some(end) = streams.get_mut(*stream)
                && end.generation == *generation
            {
                end.sealed(*upto);
            }
        }
        writer.journal.settle(&|stream| streams.sealed_upto(stream));
        drop(streams);
        self.forget_journals()?;
        self.keep_budget()
    }
}
