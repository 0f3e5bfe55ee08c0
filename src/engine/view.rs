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
use crate::journal::{self, Expect, Payload};
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
    /// How many records it has.
    pub fn rows(&self) -> u64 {
        self.row.sealed_upto.0 + self.tail.len() as u64
    }
}

/// How often rows may move under a reader before it gives up.
const TRIES_MAX: usize = 64;

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
        match &self.inner.writer {
            Some(_) => self.own_views(streams),
            None => views_from_disk(self.core(), streams),
        }
    }

    fn own_views(&self, streams: &[StreamId]) -> Result<Vec<StreamView>> {
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
                Ok(StreamView { stream, chunks: chunks_of(&snapshot, stream)?, row, tail })
            })
            .collect()
    }

    /// The bytes of an unsealed record.
    ///
    /// # Errors
    /// `Damage` when they are an object that does not read.
    pub fn payload_bytes(&self, payload: &Payload) -> Result<Vec<u8>> {
        match payload {
            Payload::Inline(bytes) => Ok(bytes.to_vec()),
            Payload::Object { digest, .. } => {
                let objects = self.snapshot()?.object_of(digest)?;
                match objects.first() {
                    Some((object, _)) => self.fetch(*object),
                    None => {
                        let cause = "no object has this digest, which a journal names";
                        Err(Error::damage("read", digest, cause))
                    }
                }
            }
        }
    }
}

fn chunks_of(snapshot: &Snapshot, stream: StreamId) -> Result<Vec<(Ordinal, ChunkRow)>> {
    let mut chunks = Vec::new();
    let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
    snapshot.scan::<ChunkRow>(range, &mut |(_, ordinal), row| {
        chunks.push((ordinal, row));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(chunks)
}

fn views_from_disk(core: &Core, streams: &[StreamId]) -> Result<Vec<StreamView>> {
    let mut missing: Option<((OwnerId, u64), JournalRow)> = None;
    for _ in 0..TRIES_MAX {
        let rows = core.snapshot()?.list::<JournalRow>(.., usize::MAX)?;
        let mut merge = Merge::default();
        let mut gone = None;
        for ((owner, n), row) in rows {
            match scan_for(core, owner, n, &row, streams, &mut merge) {
                Ok(()) => {}
                Err(e) if is_missing(&e) => {
                    if missing.as_ref() == Some(&((owner, n), row.clone())) {
                        let cause = "the file is missing although its row stands";
                        return Err(Error::damage("read", e.place(), cause));
                    }
                    gone = Some(((owner, n), row));
                    break;
                }
                Err(e) => return Err(e),
            }
        }
        if gone.is_some() {
            missing = gone;
            continue;
        }
        let snapshot = core.snapshot()?;
        return streams
            .iter()
            .map(|&stream| {
                let row = check_stream(snapshot.get::<StreamRow>(&stream)?, stream)?;
                let tail = (row.sealed_upto.0..)
                    .map(Sequence)
                    .zip(merge.tail(stream, &row, true)?)
                    .map(|(sequence, record)| (sequence, record.payload))
                    .collect();
                Ok(StreamView { stream, chunks: chunks_of(&snapshot, stream)?, row, tail })
            })
            .collect();
    }
    let cause = format!("its journals moved on {TRIES_MAX} times; call again");
    Err(Error::new(ErrorKind::Conflict, "read", core.root.display(), cause))
}

fn scan_for(
    core: &Core,
    owner: OwnerId,
    n: u64,
    row: &JournalRow,
    streams: &[StreamId],
    merge: &mut Merge,
) -> Result<()> {
    let path = layout::journal(&core.root, owner, n);
    let expect = expect(core, owner, n, row);
    journal::scan(&*core.disk, &path, &expect, &mut |_, records| {
        for record in records {
            if streams.contains(&record.stream) {
                merge.take(record, Source::Adopted { owner, n });
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// What the row says of its file.
pub(super) fn expect(core: &Core, owner: OwnerId, n: u64, row: &JournalRow) -> Expect {
    let end = match row.state {
        JournalState::Finished { end } | JournalState::Adopted { end } => Some(end),
        JournalState::Open | JournalState::SetAside { .. } => None,
    };
    Expect { store: core.manifest.meta().store, owner, n, salt: Some(row.salt), end }
}

pub(super) fn is_missing(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
