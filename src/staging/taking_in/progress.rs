//! Progress: how far producers got, with what is not sealed yet.

use std::collections::BTreeMap;

use super::producer::count;
use super::stage::Stage;
use super::tail::each_batch;
use crate::error::{ErrorKind, Result};
use crate::manifest::{
    ClaimKind, ClaimRow, ProducerKey, ProducerRow, Reading, ResourceKey, Snapshot,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// How far a producer got: all of it is there together, the position with the rows that it stands behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its name.
    pub producer: String,
    /// The number of its last batch.
    pub sequence: u64,
    /// Where its source stood behind that batch.
    pub position: Vec<u8>,
    /// Rows of its batches.
    pub rows: u64,
    /// Its batches.
    pub batches: u64,
}

/// How often objects may go under a reader before it gives up.
const TRIES_MAX: usize = 64;

impl Stage {
    /// How far `producer` got, counting what was accepted and may not be durable yet: after a crash ask
    /// again. `None` when no batch of it was taken.
    ///
    /// # Errors
    /// `NotFound` once the stage was removed; `Halted`, `Closed`, `Damage`.
    pub fn progress(&self, producer: &str) -> Result<Option<Progress>> {
        self.check("read")?;
        let slot = self.memory.slots.lock().known(producer);
        if let Some(slot) = slot
            && let Some(known) = &*slot.lock()
        {
            return Ok(progress_of(producer, &known.row));
        }
        Ok(progress_of(producer, &self.producer_row(producer)?))
    }

    /// How far each producer got, by name.
    ///
    /// # Errors
    /// As [`Stage::progress`].
    pub fn producers(&self) -> Result<Vec<Progress>> {
        self.check("read")?;
        let stage = self.id();
        let from = ProducerKey { stage, name: String::new() };
        let all = self.counted(&|_| true, &|snapshot| {
            let rows = match stage.next() {
                Some(next) => {
                    let upto = ProducerKey { stage: next, name: String::new() };
                    snapshot.list::<ProducerRow>(from.clone()..upto, usize::MAX)?
                }
                None => snapshot.list::<ProducerRow>(from.clone().., usize::MAX)?,
            };
            Ok(rows.into_iter().map(|(key, row)| (key.name, row)).collect())
        })?;
        Ok(all.iter().filter_map(|(name, row)| progress_of(name, row)).collect())
    }

    /// Lets go of `producer`, so that another process can append for it: what was accepted of it is
    /// durable first. Nothing to do where one process writes the store.
    ///
    /// # Errors
    /// As [`Stage::barrier`]: it is still held then.
    ///
    /// # Durability
    /// *Durable* when it returns, batches and release.
    pub fn release_producer(&self, producer: &str) -> Result<()> {
        self.check("release")?;
        let slot = self.slot(producer);
        let mut held = slot.lock();
        let Some((me, _)) = self.store.owner().filter(|_| self.store.is_shared()) else {
            return Ok(());
        };
        self.store.barrier()?;
        let resource = ResourceKey::of_producer(self.id(), producer);
        self.store.transact(Step::ClaimCommit, |w| {
            if w.get::<ClaimRow>(&resource)?.is_some_and(|row| row.owner == me) {
                w.remove::<ClaimRow>(&resource)?;
            }
            Ok(())
        })?;
        *held = None;
        Ok(())
    }

    /// Claims `producer` where several processes write, and looks how far it got. The claim stays until it
    /// is released, or this opening ends. What its last holder told is durable by then: it made it so
    /// before it let go, or its journals were synced when it was found dead.
    pub(super) fn claimed_producer(&self, producer: &str) -> Result<ProducerRow> {
        if self.store.is_shared() && Protection::StageProducerClaim.is_on() {
            let resource = ResourceKey::of_producer(self.id(), producer);
            let (kind, step) = (ClaimKind::Producer, Step::ClaimCommit);
            match self.store.claim_with(&resource, kind, step, |w| self.row(w).map(drop)) {
                Ok((_, claim)) => claim.left_to_opening(),
                // A look at it failed after it was claimed.
                Err(e) if e.kind() == ErrorKind::Conflict && self.is_ours(&resource)? => {}
                Err(e) => return Err(e),
            }
        }
        self.producer_row(producer)
    }

    fn is_ours(&self, resource: &ResourceKey) -> Result<bool> {
        let held = self.store.snapshot()?.get::<ClaimRow>(resource)?;
        let me = self.store.owner().map(|(me, _)| me);
        Ok(held.is_some_and(|held| Some(held.owner) == me))
    }

    /// The row of a producer, with what is unsealed.
    fn producer_row(&self, producer: &str) -> Result<ProducerRow> {
        let key = ProducerKey { stage: self.id(), name: producer.to_owned() };
        let mut rows = self.counted(&|name| name == producer, &|snapshot| {
            let row = snapshot.get::<ProducerRow>(&key)?;
            Ok(row.into_iter().map(|row| (key.name.clone(), row)).collect())
        })?;
        Ok(rows.remove(producer).unwrap_or_default())
    }

    /// What `sealed` finds of producers, and what unsealed batches add for those that are `wanted`.
    fn counted(
        &self,
        wanted: &dyn Fn(&str) -> bool,
        sealed: &dyn Fn(&Snapshot) -> Result<BTreeMap<String, ProducerRow>>,
    ) -> Result<BTreeMap<String, ProducerRow>> {
        self.with_tails(|| {
            let streams = |snapshot: &Snapshot| Ok(self.row(snapshot)?.intakes);
            let (views, mut rows) = self.store.views_with(streams, sealed)?;
            for view in &views {
                each_batch(self, view.stream, &view.tail, &mut |batch| {
                    // Whose a record is that does not read, nobody knows.
                    let Ok(batch) = batch else { return Ok(()) };
                    if let Some(mark) = batch.head.producer.filter(|mark| wanted(mark.name)) {
                        count(
                            rows.entry(mark.name.to_owned()).or_default(),
                            &mark,
                            batch.head.rows,
                        );
                    }
                    Ok(())
                })?;
            }
            Ok(rows)
        })
    }

    /// Looks again where an object went between a view and the look at it.
    pub(super) fn with_tails<T>(&self, look: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 1..TRIES_MAX {
            match look() {
                Err(e) if e.kind() == ErrorKind::NotFound && e.operation() == "read" => {}
                looked => return looked,
            }
        }
        look()
    }
}

fn progress_of(producer: &str, row: &ProducerRow) -> Option<Progress> {
    Some(Progress {
        producer: producer.to_owned(),
        sequence: row.last?,
        position: row.position.clone(),
        rows: row.rows,
        batches: row.batches,
    })
}
