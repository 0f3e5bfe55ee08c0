//! The rows of a stream's chunks: all of them where they are few, else those that are asked for.
//!
//! A stream shows one instant. Rows that are looked for later are those of that instant as long as
//! the stream was only added to; where it was moved back meanwhile, that is told.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::{Store, StreamView};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Ordinal, StreamId};
use crate::manifest::{ChunkRow, Reading, Snapshot, StreamRow};

/// With more chunks than this a stream holds only those rows that it is asked for.
pub(in crate::recording) const CHUNKS_HELD_MAX: u64 = 1024;
/// Rows that are looked for at once, since the next ones are wanted next.
const WINDOW: u64 = 64;

/// The chunks of a stream.
#[derive(Debug, Clone)]
pub(super) struct Chunks {
    stream: StreamId,
    /// What the stream's row said.
    row: StreamRow,
    held: Held,
}

#[derive(Debug, Clone)]
enum Held {
    All(Arc<Vec<ChunkRow>>),
    /// The last ones asked for: the position of the first, and the rows.
    Some(Store, Arc<Mutex<(u64, Vec<ChunkRow>)>>),
}

impl Chunks {
    /// Takes the chunks of a view, which has none where they are too many.
    pub(super) fn of_view(store: &Store, view: &mut StreamView) -> Result<Self> {
        let (stream, row) = (view.stream, view.row.clone());
        let chunks = std::mem::take(&mut view.chunks);
        if row.next_ordinal.0 > CHUNKS_HELD_MAX && chunks.is_empty() {
            let held = Held::Some(store.clone(), Arc::default());
            return Ok(Self { stream, row, held });
        }
        let rows: Vec<ChunkRow> = chunks.into_iter().map(|(_, chunk)| chunk).collect();
        let this = Self { stream, row, held: Held::All(Arc::new(Vec::new())) };
        this.check(0, &rows)?;
        if rows.len() as u64 != this.len() {
            let cause = format!("{} chunks, {} in its row", rows.len(), this.len());
            return Err(Error::damage("read", this.place(), cause));
        }
        Ok(Self { held: Held::All(Arc::new(rows)), ..this })
    }

    /// Of a view whose chunks are looked at elsewhere.
    pub(super) fn none(view: &StreamView) -> Self {
        Self { stream: view.stream, row: view.row.clone(), held: Held::All(Arc::default()) }
    }

    fn place(&self) -> String {
        format!("stream {:?}", self.row.name)
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.row.next_ordinal.0
    }

    /// The row of the chunk at position `at`.
    ///
    /// # Errors
    /// `Damage`; `Conflict` when the stream was moved back since it was opened.
    pub(super) fn get(&self, at: u64) -> Result<ChunkRow> {
        let missing = || Error::damage("read", self.place(), format!("no chunk number {at}"));
        match &self.held {
            Held::All(rows) => {
                usize::try_from(at).ok().and_then(|at| rows.get(at)).cloned().ok_or_else(missing)
            }
            Held::Some(store, window) => {
                let mut window = window.lock();
                let within = |window: &(u64, Vec<ChunkRow>)| {
                    window.1.get(usize::try_from(at.checked_sub(window.0)?).ok()?).cloned()
                };
                if let Some(row) = within(&window) {
                    return Ok(row);
                }
                *window = (at, self.look(&store.snapshot()?, at, WINDOW)?);
                within(&window).ok_or_else(missing)
            }
        }
    }

    /// The number of chunks at the beginning of which `before` holds.
    ///
    /// # Errors
    /// As [`Chunks::get`].
    pub(super) fn partition_point(&self, before: impl Fn(&ChunkRow) -> bool) -> Result<u64> {
        let (store, _) = match &self.held {
            Held::All(rows) => return Ok(rows.partition_point(before) as u64),
            Held::Some(store, window) => (store, window),
        };
        let snapshot = store.snapshot()?;
        let (mut from, mut upto) = (0, self.len());
        while from < upto {
            let middle = from + (upto - from) / 2;
            match self.look(&snapshot, middle, 1)?.first() {
                Some(row) if before(row) => from = middle + 1,
                _ => upto = middle,
            }
        }
        Ok(from)
    }

    /// Every row in turn.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<ChunkRow>> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// `count` rows from position `at` on, as far as they are there.
    fn look(&self, snapshot: &Snapshot, at: u64, count: u64) -> Result<Vec<ChunkRow>> {
        let now = snapshot.get::<StreamRow>(&self.stream)?;
        if now.is_none_or(|now| now.generation != self.row.generation) {
            let cause = "it was moved back or retired since it was opened; open it again";
            return Err(Error::new(ErrorKind::Conflict, "read", self.place(), cause));
        }
        let upto = at.saturating_add(count).min(self.len());
        let range = (self.stream, Ordinal(at))..(self.stream, Ordinal(upto));
        let rows =
            snapshot.list::<ChunkRow>(range, usize::try_from(count).unwrap_or(usize::MAX))?;
        let rows: Vec<ChunkRow> = rows.into_iter().map(|(_, row)| row).collect();
        if rows.len() as u64 != upto.saturating_sub(at) {
            let cause = format!("{} of its chunks {at}..{upto} are there", rows.len());
            return Err(Error::damage("read", self.place(), cause));
        }
        self.check(at, &rows)?;
        Ok(rows)
    }

    /// Whether the rows from position `at` on follow each other, and end where the stream does.
    fn check(&self, at: u64, rows: &[ChunkRow]) -> Result<()> {
        let begins = self.row.taken_upto.0;
        let mut next = if at == 0 { Some(begins) } else { rows.first().map(|row| row.first.0) };
        for (ordinal, row) in (at..).zip(rows) {
            if Some(row.first.0) != next || row.records > row.records_written {
                let place = format!("{} chunk {ordinal}", self.place());
                let wanted = next.unwrap_or_default();
                let cause = format!("it begins at record {} instead of {wanted}", row.first);
                return Err(Error::damage("read", place, cause));
            }
            // P9: rows come from disk. What saturates cannot equal what is compared next.
            next = Some(row.first.0.saturating_add(row.records));
        }
        let sealed = self.row.sealed_upto.0;
        let is_last = at.saturating_add(rows.len() as u64) >= self.len();
        if is_last && next.unwrap_or_default() != sealed {
            let cause = format!("{} records in chunks, {sealed} sealed", next.unwrap_or_default());
            return Err(Error::damage("read", self.place(), cause));
        }
        Ok(())
    }
}
