//! Health and statistics, for people and for monitors.

use super::condition::Attempt;
use super::recover::Recovery;
use super::store::Store;
use crate::error::{Error, Result};
use crate::ids::CommitSeq;
use crate::manifest::{Reading, Table, Waits};

/// How an opened store is.
#[derive(Debug, Clone)]
pub struct Health {
    /// Why it halted; `None` while it works.
    pub halted: Option<Error>,
    /// The commit whose outcome was not learnt, if that is why.
    pub attempt: Option<Attempt>,
    /// What went wrong where no caller could be told, or harmed nothing: at most 64.
    pub warnings: Vec<Error>,
    /// Whether the space kept for a full disk is there. While it is not, intake is refused.
    pub is_ballast_held: bool,
    /// What recovery found when the store was opened.
    pub recovery: Recovery,
}

impl Health {
    /// Whether it works, and recovery set nothing aside.
    pub fn is_good(&self) -> bool {
        self.halted.is_none() && self.recovery.set_aside.is_empty()
    }
}

/// Figures of an opened store.
#[derive(Debug, Clone)]
pub struct Stats {
    /// The newest commit.
    pub commit: CommitSeq,
    /// Length of the manifest in bytes.
    pub manifest_bytes: u64,
    /// Reading by table.
    pub rows: Vec<(Table, u64)>,
    /// Bytes accepted and not yet written.
    pub queued_bytes: u64,
    /// The most bytes that ever were, in this opening.
    pub queued_bytes_peak: u64,
    /// Unsealed records of the streams that this opening holds, in journals or queued.
    pub unsealed_records: u64,
    /// Their bytes.
    pub unsealed_bytes: u64,
    /// Futures that wait for a ticket.
    pub futures_waiting: u64,
    /// How often and how long this opening waited for other processes that wrote.
    pub waits: Waits,
}

impl Store {
    /// How the store is. Never fails: a halted store tells why here.
    pub fn health(&self) -> Health {
        let condition = &self.core().condition;
        Health {
            halted: condition.halt_cause(),
            attempt: condition.attempt(),
            warnings: condition.warnings(),
            is_ballast_held: self.core().ballast.as_ref().is_none_or(|ballast| ballast.is_held()),
            recovery: self.recovery(),
        }
    }

    /// Figures of the store. Counting rows costs little; nothing is scanned.
    ///
    /// # Errors
    /// `Halted`, `Closed`, `Damage`.
    pub fn stats(&self) -> Result<Stats> {
        let snapshot = self.snapshot()?;
        let rows = Table::ALL
            .iter()
            .map(|table| Ok((*table, snapshot.count(*table)?)))
            .collect::<Result<Vec<_>>>()?;
        let (mut records, mut bytes, mut queued, mut peak, mut waiting) = (0, 0, 0, 0, 0);
        if let Some(writer) = &self.inner.writer {
            for (_, end) in writer.streams.lock().iter() {
                records += end.tail.len() as u64;
                bytes += end.tail_bytes;
            }
            (queued, peak) = (writer.journal.queued_bytes(), writer.journal.queued_bytes_peak());
            waiting = writer.journal.seats_taken() as u64;
        }
        Ok(Stats {
            commit: snapshot.counters()?.commit_seq,
            manifest_bytes: self.core().manifest.len_bytes()?,
            rows,
            queued_bytes: queued,
            queued_bytes_peak: peak,
            unsealed_records: records,
            unsealed_bytes: bytes,
            futures_waiting: waiting,
            waits: self.core().manifest.waits(),
        })
    }
}
