//! View with: streams and rows of a face, all as of one snapshot.
//!
//! A record that left its stream for a row is in the row or in the stream, never in both and never in
//! neither: so both are read from the same snapshot, and the list of streams as well.

use std::collections::BTreeSet;

use super::merge::Merge;
use super::retire::check_stream;
use super::store::Store;
use super::streams::Streams;
use super::view::{Refused, StreamView, TRIES_MAX, scan_all};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Generation, Sequence, StreamId};
use crate::manifest::{JournalRow, JournalState, Reading, Snapshot, StreamRow};
use crate::protection::Protection;

/// The tails of streams that are not ours, as the journals gave them.
#[derive(Default)]
struct Scanned {
    streams: BTreeSet<StreamId>,
    generations: Vec<(StreamId, Generation)>,
    merge: Merge,
    /// A journal was set aside: what lies behind a hole is not there.
    allow_gap: bool,
}

impl Store {
    /// The streams that `streams` names, without their chunks, and what `also` reads, all at the same
    /// instant: both are asked of one snapshot, again where it moved on meanwhile. A reading store shows
    /// what is *Written*. `also` may do no I/O and call no code of a caller.
    ///
    /// # Errors
    /// What they return; `NotFound` for a stream without a row; `Damage`; `Conflict` when the journals
    /// moved on too often: call again.
    pub(crate) fn views_with<T>(
        &self,
        streams: impl Fn(&Snapshot) -> Result<Vec<StreamId>>,
        also: impl Fn(&Snapshot) -> Result<T>,
    ) -> Result<(Vec<StreamView>, T)> {
        let mut refused: Option<Refused> = None;
        for _ in 0..TRIES_MAX {
            let before = self.core().snapshot()?;
            let others = self.not_in_memory(&before, streams(&before)?)?;
            let early =
                if Protection::ViewOneSnapshot.is_on() { None } else { Some(also(&before)?) };
            let mut scanned = match self.scan_others(before, others)? {
                Ok(scanned) => scanned,
                // Its row may have moved on under us: it is damage only if it is unchanged.
                Err(now) if refused.as_ref().is_some_and(|was| was.is_same(&now)) => {
                    return Err(now.error);
                }
                Err(now) => {
                    refused = Some(now);
                    continue;
                }
            };
            // No record is appended, and no end moves, until the snapshot is taken.
            let held = self.inner.writer.as_ref().map(|writer| writer.streams.lock());
            let snapshot = self.core().snapshot()?;
            let listed = streams(&snapshot)?;
            let count = listed.len();
            let mut views = Vec::with_capacity(count);
            for stream in listed {
                let row = check_stream(snapshot.get::<StreamRow>(&stream)?, stream)?;
                let ours = held.as_deref().and_then(|ends| tail_in(ends, stream, &row));
                let tail = match ours {
                    Some(tail) => Some(tail),
                    None => scanned.tail_of(stream, &row)?,
                };
                let Some(tail) = tail else { break };
                views.push(StreamView { stream, chunks: Vec::new(), row, tail });
            }
            drop(held);
            if views.len() == count {
                let value = early.map_or_else(|| also(&snapshot), Ok)?;
                return Ok((views, value));
            }
        }
        let cause = format!("its journals moved on {TRIES_MAX} times; call again");
        Err(Error::new(ErrorKind::Conflict, "read", self.core().root.display(), cause))
    }

    /// Those of `streams` whose tails have to be read in journals. Where one process writes all ends are
    /// in memory, or have no tail.
    fn not_in_memory(&self, rows: &Snapshot, streams: Vec<StreamId>) -> Result<Vec<StreamId>> {
        let Some(writer) = &self.inner.writer else { return Ok(streams) };
        let mut ends = writer.streams.lock();
        if !self.core().is_shared() {
            for stream in streams {
                if rows.get::<StreamRow>(&stream)?.is_some() {
                    self.load(&mut ends, stream)?;
                }
            }
            return Ok(Vec::new());
        }
        Ok(streams.into_iter().filter(|stream| ends.get(*stream).is_none()).collect())
    }

    /// Reads the tails of `others` in the journals that the rows of `before` name.
    fn scan_others(
        &self,
        before: Snapshot,
        others: Vec<StreamId>,
    ) -> Result<std::result::Result<Scanned, Refused>> {
        let mut scanned = Scanned::default();
        if others.is_empty() {
            return Ok(Ok(scanned));
        }
        for stream in &others {
            if let Some(row) = before.get::<StreamRow>(stream)? {
                scanned.generations.push((*stream, row.generation));
            }
        }
        let journals = before.list::<JournalRow>(.., usize::MAX)?;
        drop(before);
        let is_aside =
            |(_, row): &(_, JournalRow)| matches!(row.state, JournalState::SetAside { .. });
        scanned.allow_gap = journals.iter().any(is_aside);
        if let Some(refused) = scan_all(self.core(), &journals, &others, &mut scanned.merge)? {
            return Ok(Err(refused));
        }
        scanned.streams.extend(others);
        Ok(Ok(scanned))
    }
}

impl Scanned {
    /// What was read of `stream` and is not below the end of `row`; `None` when it was not looked for,
    /// or was moved back since. What was sealed or taken since is in rows of the snapshot of `row`.
    fn tail_of(
        &mut self,
        stream: StreamId,
        row: &StreamRow,
    ) -> Result<Option<Vec<(Sequence, crate::journal::Payload)>>> {
        if !self.streams.contains(&stream) || !self.generations.contains(&(stream, row.generation))
        {
            return Ok(None);
        }
        let (records, _) = self.merge.tail(stream, row, self.allow_gap)?;
        let sequences = (row.sealed_upto.0..).map(Sequence);
        Ok(Some(sequences.zip(records.into_iter().map(|record| record.payload)).collect()))
    }
}

/// The tail of `stream` in memory, if it is there, from the end that its row tells: a publication may
/// have committed and not reached memory yet.
fn tail_in(
    ends: &Streams,
    stream: StreamId,
    row: &StreamRow,
) -> Option<Vec<(Sequence, crate::journal::Payload)>> {
    let end = ends.get(stream)?;
    let sequences = (end.sealed_upto.0..).map(Sequence);
    let tail = sequences.zip(&end.tail).filter(|(sequence, _)| *sequence >= row.sealed_upto);
    Some(tail.map(|(sequence, record)| (sequence, record.payload.clone())).collect())
}
