//! Retire: commit that nothing refers to some things any more.
//!
//! P4: ONE transaction for any number of things; rows and edges go, and an object whose last edge
//! went is condemned with them. The cost follows the batch, not the store.

use super::hold::let_go;
use super::phases::{Phases, Stopwatch};
use super::removing::remove_lease;
use super::store::Store;
use super::streams::{Streams, unknown};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::ids::{CheckpointId, LeaseId, Ordinal, ReceiptId, StreamId};
use crate::manifest::{
    CheckpointRow, ChunkRow, LeaseRow, Reading, ReceiptRow, Settled, StreamRow, Table, TakenApart,
    Write,
};
use crate::vfs::Step;

/// Things, and digests of objects, that a receipt names.
const NAMED_IN_RECEIPT_MAX: usize = 32;

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
    /// How long it took (OBJ25).
    pub phases: Phases,
}

/// What a face takes away in one retirement.
#[derive(Debug, Default)]
pub(crate) struct Going {
    /// The things whose rows went, for people.
    pub(crate) things: Vec<String>,
    /// Recipes are taken apart later, in bounded transactions.
    pub(crate) is_apart_later: bool,
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
        let mut watch = Stopwatch::start(self.core());
        let mut phases = Phases::default();
        let committed = self.core().transact(Step::RetireCommit, |w| {
            phases.manifest += watch.lap();
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
            phases.retire += watch.lap();
            let settled = w.settle()?;
            phases.index += watch.lap();
            (retired.objects, retired.bytes) = (settled.objects, settled.bytes);
            if retired.things > 0 {
                let what = format!("{} things", retired.things);
                write_receipt(w, receipts_max, &settled, what, why, at)?;
            }
            Ok(retired)
        })?;
        phases.manifest += watch.lap();
        self.ask_to_reclaim();
        for thing in things {
            if let Thing::Stream(stream) = thing {
                streams.remove(*stream);
            }
        }
        drop(streams);
        self.core().note_untidy(self.forget_journals());
        Ok(Retired { phases, ..committed.value })
    }

    /// For the faces: takes rows away with `remove`, condemns what lost its last reference, and writes the
    /// receipt, in ONE transaction (OBJ15). What `remove` says of the things goes into the receipt.
    ///
    /// # Errors
    /// As [`Store::transact`]; none leaves anything changed (OBJ16).
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub(crate) fn retire_rows<T>(
        &self,
        step: Step,
        why: &str,
        remove: impl FnOnce(&mut Write<'_>, &mut Going) -> Result<T>,
    ) -> Result<(T, Retired)> {
        let core = self.core();
        let (at, receipts_max) = (core.disk.wall_nanos(), core.limits.receipts_max);
        let mut watch = Stopwatch::start(core);
        let mut phases = Phases::default();
        let committed = core.transact(step, |w| {
            phases.manifest += watch.lap();
            let mut going = Going::default();
            let value = remove(w, &mut going)?;
            phases.retire += watch.lap();
            if going.is_apart_later {
                w.take_apart_later();
            }
            let settled = w.settle()?;
            phases.index += watch.lap();
            if !going.things.is_empty() {
                write_receipt(w, receipts_max, &settled, told(&going.things), why, at)?;
            }
            let (objects, bytes) = (settled.objects, settled.bytes);
            let things = going.things.len() as u64;
            Ok((value, Retired { things, objects, bytes, ..Retired::default() }))
        })?;
        phases.manifest += watch.lap();
        self.ask_to_reclaim();
        let (value, retired) = committed.value;
        Ok((value, Retired { phases, ..retired }))
    }

    /// Goes on taking apart what was retired before, in ONE transaction of at most `references_max`
    /// references to pieces, or as many as one row has: after a crash as well. What a reader of this process
    /// is in the middle of is left, and so is, with a warning in `health`, what other rows contradict.
    ///
    /// # Errors
    /// As [`Store::transact`].
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub fn go_on_retiring(&self, references_max: u64) -> Result<(TakenApart, Retired)> {
        self.writer("retire")?;
        if self.snapshot()?.count(Table::Retiring)? == 0 {
            return Ok(Default::default());
        }
        let done = self.retire_rows(Step::RetirePart, "taken apart", |w, going| {
            let apart = w.take_apart(references_max)?;
            if apart.recipes > 0 {
                going.things.push(format!("{} recipes", apart.recipes));
            }
            Ok(apart)
        })?;
        if done.0.contradicted > 0 {
            let place = format!("{} retiring objects", done.0.contradicted);
            let cause = "other rows contradict, and nothing of them was removed: check says which";
            self.core().condition.warn(Error::damage("retire", place, cause));
        }
        Ok(done)
    }
}

/// The things that a receipt names.
fn told(things: &[String]) -> String {
    let named = things.iter().take(NAMED_IN_RECEIPT_MAX).map(String::as_str);
    let mut told = named.collect::<Vec<_>>().join(", ");
    if let Some(more) = things.len().checked_sub(NAMED_IN_RECEIPT_MAX).filter(|more| *more > 0) {
        told.push_str(&format!(" and {more} more"));
    }
    told
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
        let at = self.core().disk.wall_nanos();
        write_receipt(w, self.core().limits.receipts_max, &settled, what.to_owned(), why, at)?;
        Ok((settled.objects, settled.bytes))
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

/// How a receipt names a digest: by its first 16 hexadecimal digits, which keeps receipts short.
pub(super) fn in_receipt(digest: &Digest) -> String {
    format!("{:016x}", digest.prefix())
}

fn write_receipt(
    w: &mut Write,
    receipts_max: u64,
    settled: &Settled,
    mut what: String,
    why: &str,
    at: Option<i64>,
) -> Result<()> {
    if receipts_max == 0 {
        return Ok(());
    }
    let id = w.next_receipt_id()?;
    for (n, digest) in settled.first.iter().take(NAMED_IN_RECEIPT_MAX).enumerate() {
        what.push_str(if n == 0 { "; objects " } else { " " });
        what.push_str(&in_receipt(digest));
    }
    let row = ReceiptRow {
        commit: w.commit_seq(),
        what,
        why: why.to_owned(),
        at,
        objects: settled.objects,
        bytes: settled.bytes,
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
