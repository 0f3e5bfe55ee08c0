//! View: a stream as one consistent whole, chunks and unsealed tail, for any process.
//!
//! The writer's own tails are in memory. Another process opens the journals first, takes the
//! snapshot after, and filters by `sealed_upto` and generation: whatever was sealed between the two
//! is then in the chunks. A missing file means that the rows moved on: start again; it is damage
//! only if its row is unchanged.

use std::ops::ControlFlow;

use super::core::Core;
use super::merge::Merge;
use super::retire::check_stream;
use super::store::Store;
use super::streams::Source;
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{Ordinal, OwnerId, Sequence, StreamId};
use crate::journal::{self, Expect, Payload, Tail};
use crate::manifest::{ChunkRow, JournalRow, JournalState, Reading, Snapshot, StreamRow};

/// A stream as it stood at one instant.
#[derive(Debug, Clone)]
pub struct StreamView {
    /// Which.
    pub stream: StreamId,
    /// Its row.
    pub row: StreamRow,
    /// Its chunks, in order.
    pub chunks: Vec<(Ordinal, ChunkRow)>,
    /// Its unsealed records, in order, from `row.sealed_upto` on.
    pub tail: Vec<(Sequence, Payload)>,
}

impl StreamView {
    /// How many records it has, those that left it included.
    pub fn record_count(&self) -> u64 {
        self.row.sealed_upto.0 + self.tail.len() as u64
    }
}

/// How often rows may move under a reader before it gives up.
pub(super) const TRIES_MAX: usize = 64;

impl Store {
    /// One stream, chunks and unsealed tail, at one instant. A reading store shows what is
    /// *Written*: a power cut may still take the newest of it.
    ///
    /// # Errors
    /// `NotFound`; `Damage`.
    pub fn view(&self, stream: StreamId) -> Result<StreamView> {
        let mut views = self.views(&[stream])?;
        views.pop().ok_or_else(|| super::streams::unknown("read", stream))
    }

    /// Several streams, all at the same instant.
    ///
    /// # Errors
    /// As [`Store::view`].
    pub fn views(&self, streams: &[StreamId]) -> Result<Vec<StreamView>> {
        self.views_within(streams, u64::MAX)
    }

    /// As [`Store::views`]; of a stream with more than `chunks_max` chunks the view has none, and
    /// whoever wants them looks for their rows.
    ///
    /// # Errors
    /// As [`Store::view`].
    pub fn views_within(&self, streams: &[StreamId], chunks_max: u64) -> Result<Vec<StreamView>> {
        match &self.inner.writer {
            Some(_) if self.core().is_shared() => self.shared_views(streams, chunks_max),
            Some(_) => self.own_views(streams, chunks_max),
            None => views_from_disk(self.core(), streams, chunks_max),
        }
    }

    /// One stream's row and its unsealed records as far as journals read, without its chunks; and
    /// why there may be more of them, if there may be.
    pub(crate) fn tail_as_far_as_it_reads(
        &self,
        stream: StreamId,
    ) -> Result<(StreamView, Option<Error>)> {
        let whole = self.views_within(&[stream], 0).and_then(|mut views| {
            views.pop().ok_or_else(|| super::streams::unknown("read", stream))
        });
        match whole {
            Ok(view) => Ok((view, None)),
            Err(e) if e.kind() == ErrorKind::Damage => {
                let core = self.core();
                let snapshot = core.snapshot()?;
                let journals = snapshot.list::<JournalRow>(.., usize::MAX)?;
                let row = check_stream(snapshot.get::<StreamRow>(&stream)?, stream)?;
                let mut merge = Merge::default();
                for journal in &journals {
                    // What is refused of it was told by `e`; what it held before that is taken.
                    scan_all(core, std::slice::from_ref(journal), &[stream], &mut merge)?;
                }
                let (records, _) = merge.tail(stream, &row, true)?;
                let sequences = (row.sealed_upto.0..).map(Sequence);
                let tail = sequences.zip(records.into_iter().map(|record| record.payload));
                Ok((StreamView { stream, tail: tail.collect(), row, chunks: Vec::new() }, Some(e)))
            }
            Err(e) => Err(e),
        }
    }

    /// Those that we hold from memory, all others as a reader sees them.
    fn shared_views(&self, streams: &[StreamId], chunks_max: u64) -> Result<Vec<StreamView>> {
        let held: Vec<StreamId> = {
            let ends = self.writer("read")?.streams.lock();
            streams.iter().copied().filter(|stream| ends.get(*stream).is_some()).collect()
        };
        let others: Vec<StreamId> =
            streams.iter().copied().filter(|stream| !held.contains(stream)).collect();
        let mut views = self.own_views(&held, chunks_max)?;
        if !others.is_empty() {
            views.extend(views_from_disk(self.core(), &others, chunks_max)?);
        }
        let place = |view: &StreamView| streams.iter().position(|s| *s == view.stream);
        views.sort_by_key(place);
        Ok(views)
    }

    fn own_views(&self, streams: &[StreamId], chunks_max: u64) -> Result<Vec<StreamView>> {
        let writer = self.writer("read")?;
        let mut ends = writer.streams.lock();
        let snapshot = self.core().snapshot()?;
        streams
            .iter()
            .map(|&stream| {
                let row = check_stream(snapshot.get::<StreamRow>(&stream)?, stream)?;
                self.load(&mut ends, stream)?;
                let end = ends.known("read", stream)?;
                // A publication may have committed and not reached memory yet.
                let sealed = row.sealed_upto;
                let tail = (end.sealed_upto.0..)
                    .map(Sequence)
                    .zip(&end.tail)
                    .filter(|(sequence, _)| *sequence >= sealed)
                    .map(|(sequence, record)| (sequence, record.payload.clone()))
                    .collect();
                let chunks = chunks_of(&snapshot, stream, &row, chunks_max)?;
                Ok(StreamView { stream, chunks, row, tail })
            })
            .collect()
    }

    /// The bytes of an unsealed record.
    ///
    /// # Errors
    /// `Damage` when they are an object that does not read; `NotFound` when that object is gone,
    /// since its record was sealed, moved back or retired after the view was taken: take a fresh
    /// one. It is damage only if the stream's row is still the same.
    pub fn payload_bytes(&self, payload: &Payload) -> Result<Vec<u8>> {
        match payload {
            Payload::Inline(bytes) => Ok(bytes.to_vec()),
            Payload::Object { digest, .. } => {
                let objects = self.snapshot()?.object_of(digest)?;
                match objects.first() {
                    Some((object, _)) => self.fetch(*object),
                    None => {
                        let cause = "no object has this digest any more; take a fresh view";
                        Err(Error::new(ErrorKind::NotFound, "read", digest, cause))
                    }
                }
            }
        }
    }
}

impl Store {
    /// As [`Store::payload_bytes`], copying nothing that is in memory; `fetched` holds what is not.
    pub(crate) fn payload_slice<'a>(
        &self,
        payload: &'a Payload,
        fetched: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        match payload {
            Payload::Inline(bytes) => Ok(bytes),
            Payload::Object { .. } => {
                *fetched = self.payload_bytes(payload)?;
                Ok(fetched)
            }
        }
    }
}

fn chunks_of(
    snapshot: &Snapshot,
    stream: StreamId,
    row: &StreamRow,
    chunks_max: u64,
) -> Result<Vec<(Ordinal, ChunkRow)>> {
    let mut chunks = Vec::new();
    if row.next_ordinal.0 > chunks_max {
        return Ok(chunks);
    }
    let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
    snapshot.scan::<ChunkRow>(range, &mut |(_, ordinal), row| {
        chunks.push((ordinal, row));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(chunks)
}

fn views_from_disk(core: &Core, streams: &[StreamId], chunks_max: u64) -> Result<Vec<StreamView>> {
    let mut refused: Option<Refused> = None;
    for _ in 0..TRIES_MAX {
        let before = core.snapshot()?;
        let journals = before.list::<JournalRow>(.., usize::MAX)?;
        let rows_before = rows_of(&before, streams)?;
        drop(before);
        let mut merge = Merge::default();
        match scan_all(core, &journals, streams, &mut merge)? {
            None => {}
            // The row may have moved on under us: it is damage only if it is unchanged.
            Some(now) if refused.as_ref().is_some_and(|was| was.is_same(&now)) => {
                return Err(now.error);
            }
            Some(now) => {
                refused = Some(now);
                continue;
            }
        }
        let snapshot = core.snapshot()?;
        let rows = rows_of(&snapshot, streams)?;
        // G3: published or moved back between the two looks, and an observation would be half here.
        if rows.iter().zip(&rows_before).any(|(now, was)| has_moved(now, was)) {
            continue;
        }
        let is_set_aside =
            |(_, row): &(_, JournalRow)| matches!(row.state, JournalState::SetAside { .. });
        let allow_gap = journals.iter().any(is_set_aside);
        return streams
            .iter()
            .zip(rows)
            .map(|(&stream, row)| {
                let (records, _) = merge.tail(stream, &row, allow_gap)?;
                let tail = (row.sealed_upto.0..)
                    .map(Sequence)
                    .zip(records)
                    .map(|(sequence, record)| (sequence, record.payload))
                    .collect();
                let chunks = chunks_of(&snapshot, stream, &row, chunks_max)?;
                Ok(StreamView { stream, chunks, row, tail })
            })
            .collect();
    }
    let cause = format!("its journals moved on {TRIES_MAX} times; call again");
    Err(Error::new(ErrorKind::Conflict, "read", core.root.display(), cause))
}

fn rows_of(snapshot: &Snapshot, streams: &[StreamId]) -> Result<Vec<StreamRow>> {
    streams.iter().map(|&s| check_stream(snapshot.get::<StreamRow>(&s)?, s)).collect()
}

fn has_moved(now: &StreamRow, was: &StreamRow) -> bool {
    now.sealed_upto != was.sealed_upto || now.generation != was.generation
}

/// A journal that could not be read as its row says.
pub(super) struct Refused {
    key: (OwnerId, u64),
    row: JournalRow,
    pub(super) error: Error,
}

impl Refused {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key == other.key && self.row == other.row
    }
}

/// Reads every journal; stops at the first that is missing or damaged.
pub(super) fn scan_all(
    core: &Core,
    journals: &[((OwnerId, u64), JournalRow)],
    streams: &[StreamId],
    merge: &mut Merge,
) -> Result<Option<Refused>> {
    for ((owner, n), row) in journals {
        let (owner, n) = (*owner, *n);
        let path = layout::journal(&core.root, owner, n);
        let refused = |cause: String| {
            let error = Error::damage("read", path.display(), cause);
            Ok(Some(Refused { key: (owner, n), row: row.clone(), error }))
        };
        let source = Source::Adopted { owner, n };
        // G14: once; what a living writer puts there later is on its way to the medium.
        if core.fresh.lock().insert((owner, n)) {
            match journal::drop_cached(&*core.disk, &path) {
                Err(e) if is_missing(&e) => {}
                dropped => dropped?,
            }
        }
        let scan =
            journal::scan(&*core.disk, &path, &expect(core, owner, n, row), &mut |_, found| {
                for record in found {
                    if streams.contains(&record.stream) {
                        merge.take(record, source);
                    }
                }
                Ok(())
            });
        match scan {
            Err(e) if is_missing(&e) => {
                return refused("the file is missing although its row stands".to_owned());
            }
            Err(e) => return Err(e),
            Ok(scan) => {
                if let Tail::Damaged { offset, upto } = scan.tail
                    && !matches!(row.state, JournalState::SetAside { .. })
                {
                    return refused(format!("bytes {offset}..{upto} were durable and do not read"));
                }
            }
        }
    }
    Ok(None)
}

/// What the row says of its file.
pub(super) fn expect(core: &Core, owner: OwnerId, n: u64, row: &JournalRow) -> Expect {
    let end = match row.state {
        JournalState::Finished { end } | JournalState::Adopted { end } => Some(end),
        // What was set aside stays aside, even if it reads again one day.
        JournalState::SetAside { from, .. } => Some(from),
        JournalState::Open => None,
    };
    Expect { store: core.manifest.meta().store, owner, n, salt: Some(row.salt), end }
}

pub(super) fn is_missing(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
