//! How much of each journal belongs to a snapshot.
//!
//! The journals are read after the snapshot, so that everything its rows rely on is there; a writer
//! goes on meanwhile. What it wrote since may rely on rows that the snapshot does not have, so a
//! journal that is open ends, for the copy, before the first frame that the snapshot does not
//! explain. Frames are whole groups in the order in which they were accepted: what is kept is a
//! prefix (G2, G3), and everything acknowledged before the snapshot lies in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::left::{Lasts, is_left, note_last};
use crate::engine::recover::in_order;
use crate::engine::streams::is_kept;
use crate::engine::view::{expect, is_missing};
use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::HEADER_BYTES;
use crate::format::layout;
use crate::ids::{OwnerId, Sequence, StreamId};
use crate::journal::{self, Payload, Record, Tail};
use crate::manifest::{CountersRow, JournalRow, JournalState, Reading, Snapshot, StreamRow};
use crate::vfs::Disk;

/// Where the open journals of a snapshot end.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) open: BTreeMap<(OwnerId, u64), u64>,
    /// The last record of each stream in the journals that owners who have not ended answer for:
    /// closing would say the same.
    pub(super) lasts: BTreeMap<(OwnerId, u64), Lasts>,
}

/// Reads every journal of `snapshot` on `disk`. Nothing may remove one meanwhile.
pub(super) fn read(disk: &Arc<dyn Disk>, core: &Core, snapshot: &Snapshot) -> Result<Bounds> {
    let rows = in_order(snapshot)?;
    let is_aside = |(_, row): &(_, JournalRow)| matches!(row.state, JournalState::SetAside { .. });
    let mut known = Known {
        snapshot,
        counters: snapshot.counters()?,
        streams: BTreeMap::new(),
        allow_gap: rows.iter().any(is_aside),
    };
    let mut bounds = Bounds::default();
    for ((owner, n), row) in &rows {
        let mut lasts = Lasts::new();
        let end = read_one((disk, core), (*owner, *n), row, &mut known, &mut lasts)?;
        if !is_left(snapshot, row.keeper)? {
            bounds.lasts.insert((*owner, *n), lasts);
        }
        if row.state == JournalState::Open {
            bounds.open.insert((*owner, *n), end);
        }
    }
    Ok(bounds)
}

fn read_one(
    (disk, core): (&Arc<dyn Disk>, &Core),
    (owner, n): (OwnerId, u64),
    row: &JournalRow,
    known: &mut Known<'_>,
    lasts: &mut Lasts,
) -> Result<u64> {
    let path = layout::journal(&core.root, owner, n);
    let damage = |cause: String| Err(Error::damage("back up", path.display(), cause));
    let is_open = row.state == JournalState::Open;
    let (mut end, mut is_past) = (HEADER_BYTES as u64, false);
    let expected = expect(core, owner, n, row);
    let scan = journal::scan(&**disk, &path, &expected, &mut |at, records| {
        for record in &records {
            if !known.explains(record)? && is_open {
                is_past = true;
                let cause = "the rest is newer than the snapshot";
                return Err(Error::new(ErrorKind::Cancelled, "back up", path.display(), cause));
            }
        }
        records.iter().for_each(|record| note_last(lasts, record.stream, record.sequence));
        end = at.end;
        Ok(())
    });
    match scan {
        Err(_) if is_past => Ok(end),
        Err(e) if is_missing(&e) => {
            damage("the file is missing although its row stands".to_owned())
        }
        Err(e) => Err(e),
        Ok(scan) => match scan.tail {
            Tail::Damaged { offset, upto }
                if !matches!(row.state, JournalState::SetAside { .. }) =>
            {
                damage(format!("bytes {offset}..{upto} were durable and do not read"))
            }
            _ => Ok(end),
        },
    }
}

/// What a snapshot knows of streams and objects.
struct Known<'s> {
    snapshot: &'s Snapshot,
    counters: CountersRow,
    /// The row of each stream that a record named, and the sequence that may come next.
    streams: BTreeMap<StreamId, Option<(StreamRow, Sequence)>>,
    allow_gap: bool,
}

impl Known<'_> {
    /// Whether the record may have been written before the snapshot was taken.
    fn explains(&mut self, record: &Record) -> Result<bool> {
        let Record { stream, generation, sequence, .. } = *record;
        if !self.streams.contains_key(&stream) {
            let row = self.snapshot.get::<StreamRow>(&stream)?;
            let known = row.map(|row| {
                let next = row.sealed_upto;
                (row, next)
            });
            self.streams.insert(stream, known);
        }
        let Some(Some((row, next))) = self.streams.get_mut(&stream) else {
            // Retired before it, or made after it.
            return Ok(stream <= self.counters.stream);
        };
        if generation > row.generation {
            return Ok(false);
        }
        if sequence < row.sealed_upto || !is_kept(row, generation, sequence) {
            return Ok(true);
        }
        // What lies between went into a chunk that is newer.
        if sequence > *next && !self.allow_gap {
            return Ok(false);
        }
        if let Payload::Object { digest, .. } = &record.payload
            && self.snapshot.object_of(digest)?.is_empty()
        {
            return Ok(false);
        }
        *next = (*next).max(Sequence(sequence.0.saturating_add(1)));
        Ok(true)
    }
}
