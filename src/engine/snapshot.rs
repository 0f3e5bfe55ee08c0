//! Manifest snapshots: all rows, or those that changed, as sealed files. They serve salvage alone.
//!
//! ```text
//!   rows of one commit -> bytes -> seal -> ONE transaction: its row, with its edge; a new base lets
//!                                          the chain before it go
//! ```
//! Written on close, when a recording ends and after every so many publications. What fails here
//! fails no call: the rows stand, and the next snapshot comes. A single-file store has none.

use std::ops::{Bound, ControlFlow};

use super::seal::{Content, OnPiece, SealedSet};
use super::store::Store;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::format::snapshot::{SnapshotHeader, SnapshotWriter};
use crate::ids::{CommitSeq, StoreId};
use crate::manifest::{
    CHANGED_ROWS_DUE, Key, ObjectRow, Raw, Reading, RowKey, Snapshot, SnapshotRow, Table, Write,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// The newest snapshot of the rows, and how old it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotAge {
    /// The commit whose rows it holds.
    pub covers: CommitSeq,
    /// Commits since then, its own included.
    pub commits: u64,
    /// Wall-clock nanoseconds since 1970 when it was written.
    pub at: Option<i64>,
    /// Snapshots in its chain, the base included.
    pub chain: u64,
    /// Stored bytes of the chain.
    pub bytes: u64,
    /// Whether nothing but bookkeeping was committed since: a salvage from it would lack nothing.
    pub is_complete: bool,
}

/// The snapshots that stand, oldest first.
struct Chain {
    newest: CommitSeq,
    digest: Digest,
    row: SnapshotRow,
    len: u64,
    base_bytes: u64,
    base_rows: u64,
    bytes: u64,
}

impl Chain {
    fn read(snapshot: &Snapshot) -> Result<Option<Self>> {
        let mut chain: Option<Self> = None;
        for (covers, row) in snapshot.list::<SnapshotRow>(.., usize::MAX)? {
            let object = snapshot.require::<ObjectRow>(&row.object)?;
            let is_base = row.onto.is_none();
            let before = chain.filter(|_| !is_base);
            let (len, base_bytes, base_rows, bytes) = before
                .map_or((0, object.stored_len, row.rows, 0), |chain| {
                    (chain.len, chain.base_bytes, chain.base_rows, chain.bytes)
                });
            chain = Some(Self {
                newest: CommitSeq(covers),
                digest: object.digest,
                row,
                len: len + 1,
                base_bytes,
                base_rows,
                bytes: bytes.saturating_add(object.stored_len),
            });
        }
        Ok(chain)
    }

    /// Whether another delta may go onto it: it stays below twice its base, and short; on a large
    /// base it may become longer, so that a base costs each of its deltas no more the larger it is.
    fn takes_one_more(&self, chain_max: u64) -> bool {
        let is_short = self.len < chain_max
            || (self.base_bytes > LARGE_BASE_BYTES && self.len < chain_max.saturating_mul(LONGER));
        is_short && self.bytes <= self.base_bytes.saturating_mul(2)
    }
}

/// A base above this is worth a chain that is so many times longer.
const LARGE_BASE_BYTES: u64 = 4 << 20;
const LONGER: u64 = 64;
/// A snapshot up to this is encoded once and held; a longer one twice: first its header is found, then
/// it is written as it is encoded again.
const HELD_BYTES_MAX: usize = 8 << 20;

/// What a snapshot is to tell.
struct Telling {
    store: StoreId,
    snapshot: Snapshot,
    covers: CommitSeq,
    /// Those that changed, or all.
    rows: Option<Vec<RowKey>>,
    onto: Option<Chain>,
}

impl Telling {
    /// Encodes it; its body goes to `to` piece by piece.
    fn encode(&self, to: OnPiece<'_>) -> Result<SnapshotHeader> {
        let mut writer = SnapshotWriter::default();
        let mut push = |table: Table, key: &[u8], value: Option<&[u8]>| {
            writer.push(table.number(), key, value)?;
            match writer.take() {
                piece if piece.is_empty() => Ok(()),
                piece => to(&piece),
            }
        };
        match &self.rows {
            Some(rows) => {
                for (table, key) in rows {
                    let value = self.snapshot.raw_get(*table, key)?;
                    push(*table, key, value.as_deref())?;
                }
            }
            None => {
                for table in Table::ALL.iter().filter(|table| table.is_in_snapshots()) {
                    let everything = (Bound::Unbounded, Bound::Unbounded);
                    self.snapshot.raw_scan(*table, everything, false, &mut |key, value| {
                        push(*table, key, Some(value)).map(ControlFlow::Continue)
                    })?;
                }
            }
        }
        let onto = self.onto.as_ref().map(|chain| chain.digest);
        let (header, rest) = writer.finish(self.store, self.covers, onto)?;
        to(&rest)?;
        Ok(header)
    }

    /// Its header, and its body if that is short.
    fn header(&self) -> Result<(SnapshotHeader, Option<Vec<u8>>)> {
        let mut held = Some(Vec::new());
        let header = self.encode(&mut |piece| {
            held = held.take().filter(|held| held.len() + piece.len() <= HELD_BYTES_MAX);
            held.iter_mut().for_each(|held| held.extend_from_slice(piece));
            Ok(())
        })?;
        Ok((header, held))
    }

    fn write(&self, header: &SnapshotHeader, held: Option<&[u8]>, to: OnPiece<'_>) -> Result<()> {
        to(&header.to_bytes())?;
        if let Some(body) = held {
            return to(body);
        }
        if self.encode(to)? != *header {
            let cause = "the rows of one commit were read twice, and differed";
            return Err(Error::damage("snapshot", format!("commit {}", self.covers), cause));
        }
        Ok(())
    }
}

impl Store {
    /// Writes a snapshot of the rows, unless nothing but bookkeeping changed since the newest one;
    /// returns the commit that it covers.
    ///
    /// # Errors
    /// `DiskFull`, `Io`: nothing changed. `OutcomeUnknown` after which the store has halted.
    ///
    /// # Durability
    /// *Durable* when it returns: salvage finds it without the manifest.
    pub fn write_snapshot(&self) -> Result<Option<CommitSeq>> {
        let core = self.core();
        let writer = self.writer("snapshot")?;
        if !self.has_snapshots() {
            return Ok(None);
        }
        core.check_intake("snapshot")?;
        let mut published = writer.published.lock();
        let Some(telling) = self.telling()? else { return Ok(None) };
        let (header, held) = telling.header()?;
        let (covers, rows) = (telling.covers, header.rows);
        let onto = telling.onto.as_ref().map(|chain| chain.newest);
        let referrer = Some((Table::Snapshots.number(), covers.0.to_bytes(), Vec::new()));
        let about = header.to_bytes().to_vec();
        let content = Content { about, in_file: true, ..Content::new(Vec::new(), referrer) };
        let set = SealedSet::seal_streamed(core, &writer.building, content, |to, _| {
            telling.write(&header, held.as_deref(), to)
        })?;
        // Pages of the rows that it reads stay as long as it does.
        drop(telling);
        let at = core.disk.wall_nanos();
        set.publish(self.files(), Step::SnapshotCommit, |w, objects| {
            w.keep_quiet();
            if onto.is_none() || !Protection::SnapshotChainKept.is_on() {
                // Its place is taken: their files go with the next reclaim.
                for (old, _) in w.list::<SnapshotRow>(.., usize::MAX)? {
                    w.remove::<SnapshotRow>(&old)?;
                }
            }
            let object = objects[0];
            w.put(&covers.0, &SnapshotRow { onto, object, rows, at, quiet_upto: covers })
        })?;
        core.manifest.note_covered(covers);
        *published = 0;
        Ok(Some(covers))
    }

    fn has_snapshots(&self) -> bool {
        // A single-file store keeps its rows and its bytes in one place: what loses the one loses
        // the other.
        let core = self.core();
        core.limits.snapshot_chain_max > 0 && !core.manifest.meta().single_file
    }

    /// All rows, or what changed; `None` when nothing did.
    fn telling(&self) -> Result<Option<Telling>> {
        let core = self.core();
        let mut snapshot = core.snapshot()?;
        let mut chain = Chain::read(&snapshot)?;
        let now = snapshot.counters()?.commit_seq;
        if chain.as_ref().is_some_and(|chain| core.manifest.is_quiet_since(chain.newest, now)) {
            return Ok(None);
        }
        chain.take_if(|chain| !chain.takes_one_more(core.limits.snapshot_chain_max));
        // Asked after the snapshot was taken: what is not in the one is in the other.
        let newest = chain.as_ref().map(|chain| chain.newest);
        let rows = core.manifest.changed_since(newest, now)?;
        if rows.is_none() {
            // From the moment on when nobody wrote, every change is noted.
            snapshot = core.snapshot()?;
        }
        let covers = snapshot.counters()?.commit_seq;
        let onto = chain.filter(|_| rows.is_some());
        Ok(Some(Telling { store: self.id(), snapshot, covers, rows, onto }))
    }

    /// Writes one where that is due; what goes wrong is a warning.
    pub(crate) fn keep_snapshot(&self) {
        self.core().note_untidy(self.write_snapshot().map(|_| ()));
    }

    /// Counts a publication, and writes a snapshot after every so many, or when much changed.
    pub(super) fn count_publication(&self) {
        let Ok(writer) = self.writer("snapshot") else { return };
        let count = {
            let mut published = writer.published.lock();
            *published += 1;
            *published
        };
        match self.is_snapshot_due(count) {
            Ok(true) => self.keep_snapshot(),
            due => self.core().note_untidy(due.map(|_| ())),
        }
    }

    fn is_snapshot_due(&self, publications: u64) -> Result<bool> {
        let (core, due) = (self.core(), self.core().limits.snapshot_publications);
        let load = core.manifest.change_load();
        if due == 0 || !self.has_snapshots() || publications < due && load.rows < CHANGED_ROWS_DUE {
            return Ok(false);
        }
        if load.is_known {
            return Ok(true);
        }
        // It is to be a base, which costs as much as the store has rows: then it waits the longer.
        let base_rows = Chain::read(&core.snapshot()?)?.map_or(0, |chain| chain.base_rows);
        Ok(load.rows >= base_rows / 2 || publications / due >= base_rows / (2 * CHANGED_ROWS_DUE))
    }

    /// The newest snapshot, and how old it is.
    pub(super) fn snapshot_age(&self, snapshot: &Snapshot) -> Result<Option<SnapshotAge>> {
        let Some(chain) = Chain::read(snapshot)? else { return Ok(None) };
        let now = snapshot.counters()?.commit_seq;
        let is_complete = now == chain.row.quiet_upto
            || (self.core().me.is_some() && self.core().manifest.is_quiet_since(chain.newest, now));
        Ok(Some(SnapshotAge {
            covers: chain.newest,
            commits: now.0.saturating_sub(chain.newest.0),
            at: chain.row.at,
            chain: chain.len,
            bytes: chain.bytes,
            is_complete,
        }))
    }

    /// The commit that the newest snapshot covers, if nothing but bookkeeping followed it up to the
    /// commit that `w` is to be.
    pub(super) fn quiet_since(&self, w: &Write) -> Result<Option<CommitSeq>> {
        let newest = w.last::<SnapshotRow>(..)?;
        let covers = newest.map(|(covers, _)| CommitSeq(covers));
        let before = CommitSeq(w.commit_seq().0.saturating_sub(1));
        Ok(covers.filter(|covers| self.core().manifest.is_quiet_since(*covers, before)))
    }
}
