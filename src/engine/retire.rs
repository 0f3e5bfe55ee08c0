//! Retire: commit that nothing refers to some things any more.
//!
//! P4: ONE transaction for any number of things; rows and edges go, and an object whose last edge
//! went is condemned with them. The cost follows the batch, not the store.

use super::hold::let_go;
use super::removing::remove_lease;
use super::store::Store;
use super::streams::{Streams, unknown};
use crate::error::Result;
use crate::ids::{CheckpointId, LeaseId, Ordinal, ReceiptId, StreamId};
use crate::manifest::{CheckpointRow, ChunkRow, LeaseRow, Reading, ReceiptRow, StreamRow, Write};
use crate::vfs::Step;

/// Something that can be retired.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thing {
    /// A lease, with its hold on objects.
    Lease(LeaseId),
    /// A stream with all its chunks and unsealed records.
    Stream(StreamId),
    /// A checkpoint of a scope.
    Checkpoint(u64, CheckpointId),
}

/// What a retirement did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retired {
    /// Things whose rows went.
    pub things: u64,
    /// Things that were not there: retiring them again is no error.
    pub unknown: Vec<Thing>,
    /// Objects that nothing refers to any more.
    pub objects: u64,
    /// Their bytes, given back by reclaim.
    pub bytes: u64,
}

impl Store {
    /// Retires `things`, all or none. `why` goes into the receipt.
    ///
    /// # Errors
    /// Any error leaves every table as it was.
    ///
    /// # Durability
    /// *Durable* when it returns; bytes are given back by [`Store::reclaim`].
    pub fn retire(&self, things: &[Thing], why: &str) -> Result<Retired> {
        let writer = self.writer("retire")?;
        let me = self.core().check_write("retire")?;
        let at = self.core().disk.wall_nanos();
        let receipts_max = self.core().limits.receipts_max;
        let mut streams = writer.streams.lock();
        self.hold_to_retire(&mut streams, things)?;
        let payload_leases: Vec<LeaseId> = things
            .iter()
            .filter_map(|thing| match thing {
                Thing::Stream(stream) => streams.get(*stream),
                _ => None,
            })
            .flat_map(|end| end.tail.iter().filter_map(|record| record.lease))
            .collect();
        let committed = self.core().transact(Step::RetireCommit, |w| {
            let mut retired = Retired::default();
            for lease in &payload_leases {
                w.remove::<LeaseRow>(lease)?;
            }
            for thing in things {
                if let Thing::Stream(stream) = thing {
                    let_go(w, *stream, me.owner)?;
                }
                if remove(w, thing)? {
                    retired.things += 1;
                } else {
                    retired.unknown.push(thing.clone());
                }
            }
            let settled = w.settle()?;
            (retired.objects, retired.bytes) = (settled.objects, settled.bytes);
            if retired.things > 0 {
                let what = format!("{} things", retired.things);
                write_receipt(w, receipts_max, &retired, what, why, at)?;
            }
            Ok(retired)
        })?;
        for thing in things {
            if let Thing::Stream(stream) = thing {
                streams.remove(*stream);
            }
        }
        drop(streams);
        self.core().note_untidy(self.forget_journals());
        Ok(committed.value)
    }
}

impl Store {
    /// Where several processes write, only who holds a stream may retire it.
    fn hold_to_retire(&self, streams: &mut Streams, things: &[Thing]) -> Result<()> {
        if !self.core().is_shared() {
            return Ok(());
        }
        let snapshot = self.core().snapshot()?;
        let mut standing = Vec::new();
        for thing in things {
            if let Thing::Stream(stream) = thing
                && snapshot.get::<StreamRow>(stream)?.is_some()
            {
                standing.push(*stream);
            }
        }
        drop(snapshot);
        self.load_all(streams, &standing)
    }

    /// For the faces: inside the transaction that removed the rows of `what`, condemns what lost its
    /// last reference and writes the receipt. Returns objects and bytes.
    ///
    /// # Errors
    /// As [`Store::transact`].
    pub fn write_receipt(&self, w: &mut Write, what: &str, why: &str) -> Result<(u64, u64)> {
        let settled = w.settle()?;
        let (objects, bytes) = (settled.objects, settled.bytes);
        let retired = Retired { things: 1, unknown: Vec::new(), objects, bytes };
        let at = self.core().disk.wall_nanos();
        write_receipt(w, self.core().limits.receipts_max, &retired, what.to_owned(), why, at)?;
        Ok((objects, bytes))
    }
}

fn remove(w: &mut Write, thing: &Thing) -> Result<bool> {
    match thing {
        Thing::Lease(lease) => Ok(remove_lease(w, *lease)?.is_some()),
        Thing::Checkpoint(scope, id) => Ok(w.remove::<CheckpointRow>(&(*scope, *id))?.is_some()),
        Thing::Stream(stream) => {
            let range = (*stream, Ordinal(0))..=(*stream, Ordinal(u64::MAX));
            while let Some((key, _)) = w.last::<ChunkRow>(range.clone())? {
                w.remove::<ChunkRow>(&key)?;
            }
            Ok(w.remove::<StreamRow>(stream)?.is_some())
        }
    }
}

fn write_receipt(
    w: &mut Write,
    receipts_max: u64,
    retired: &Retired,
    what: String,
    why: &str,
    at: Option<i64>,
) -> Result<()> {
    if receipts_max == 0 {
        return Ok(());
    }
    let id = w.next_receipt_id()?;
    let row = ReceiptRow {
        commit: w.commit_seq(),
        what,
        why: why.to_owned(),
        at,
        objects: retired.objects,
        bytes: retired.bytes,
    };
    w.put(&id, &row)?;
    if let Some(oldest) = id.0.checked_sub(receipts_max) {
        w.remove::<ReceiptRow>(&ReceiptId(oldest))?;
    }
    Ok(())
}

/// The stream must stand.
pub(super) fn check_stream(row: Option<StreamRow>, stream: StreamId) -> Result<StreamRow> {
    row.ok_or_else(|| unknown("read", stream))
}
