//! Manifest snapshots: all rows, or those that changed, as sealed files. They serve salvage alone.
//!
//! ```text
//!   rows of one commit -> bytes -> seal -> ONE transaction: its row, with its edge; a new base lets
//!                                          the chain before it go
//! ```
//! Written on close, when a recording ends and after every so many publications. What fails here
//! fails no call: the rows stand, and the next snapshot comes. A single-file store has none.

use std::ops::{Bound, ControlFlow};

use super::seal::{Content, SealedSet};
use super::store::Store;
use crate::digest::Digest;
use crate::error::Result;
use crate::format::snapshot::SnapshotWriter;
use crate::ids::CommitSeq;
use crate::manifest::{Key, ObjectRow, Raw, Reading, RowKey, Snapshot, SnapshotRow, Table, Write};
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
    bytes: u64,
}

impl Chain {
    fn read(snapshot: &Snapshot) -> Result<Option<Self>> {
        let mut chain: Option<Self> = None;
        for (covers, row) in snapshot.list::<SnapshotRow>(.., usize::MAX)? {
            let object = snapshot.require::<ObjectRow>(&row.object)?;
            let is_base = row.onto.is_none();
            let before = chain.filter(|_| !is_base);
            let (len, base_bytes, bytes) = before.map_or((0, object.stored_len, 0), |chain| {
                (chain.len, chain.base_bytes, chain.bytes)
            });
            chain = Some(Self {
                newest: CommitSeq(covers),
                digest: object.digest,
                row,
                len: len + 1,
                base_bytes,
                bytes: bytes.saturating_add(object.stored_len),
            });
        }
        Ok(chain)
    }

    /// Whether another delta may go onto it: the chain stays short, and below twice its base.
    fn takes_one_more(&self, chain_max: u64) -> bool {
        self.len < chain_max && self.bytes <= self.base_bytes.saturating_mul(2)
    }
}

/// A snapshot's bytes, and what its row will say.
struct Written {
    bytes: Vec<u8>,
    about: Vec<u8>,
    covers: CommitSeq,
    onto: Option<CommitSeq>,
    rows: u64,
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
        let Some(written) = self.gather()? else { return Ok(None) };
        let Written { bytes, about, covers, onto, rows } = written;
        let referrer = Some((Table::Snapshots.number(), covers.0.to_bytes(), Vec::new()));
        let content = Content { about, in_file: true, ..Content::new(bytes, referrer) };
        let set = SealedSet::seal(core, self.files(), &writer.building, vec![content])?;
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

    /// Encodes all rows, or what changed; `None` when nothing did.
    fn gather(&self) -> Result<Option<Written>> {
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
        let changed = core.manifest.changed_since(newest, now)?;
        let mut writer = SnapshotWriter::default();
        match &changed {
            Some(rows) => write_changed(&snapshot, rows, &mut writer)?,
            None => {
                // From the moment on when nobody wrote, every change is noted.
                snapshot = core.snapshot()?;
                write_all(&snapshot, &mut writer)?;
            }
        }
        let covers = snapshot.counters()?.commit_seq;
        let onto = changed.and(chain);
        let digest = onto.as_ref().map(|chain| chain.digest);
        let (header, bytes) = writer.finish(self.id(), covers, digest)?;
        let (about, rows) = (header.to_bytes().to_vec(), header.rows);
        let onto = onto.map(|chain| chain.newest);
        Ok(Some(Written { bytes, about, covers, onto, rows }))
    }

    /// Writes one where that is due; what goes wrong is a warning.
    pub(crate) fn keep_snapshot(&self) {
        self.core().note_untidy(self.write_snapshot().map(|_| ()));
    }

    /// Counts a publication, and writes a snapshot after every so many.
    pub(super) fn count_publication(&self) {
        let due = self.core().limits.snapshot_publications;
        let Ok(writer) = self.writer("snapshot") else { return };
        let count = {
            let mut published = writer.published.lock();
            *published += 1;
            *published
        };
        if due > 0 && count >= due {
            self.keep_snapshot();
        }
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

fn write_all(snapshot: &Snapshot, writer: &mut SnapshotWriter) -> Result<()> {
    for table in Table::ALL.iter().filter(|table| table.is_in_snapshots()) {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        snapshot.raw_scan(*table, everything, false, &mut |key, value| {
            writer.push(table.number(), key, Some(value))?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(())
}

fn write_changed(snapshot: &Snapshot, rows: &[RowKey], writer: &mut SnapshotWriter) -> Result<()> {
    for (table, key) in rows {
        let value = snapshot.raw_get(*table, key)?;
        writer.push(table.number(), key, value.as_deref())?;
    }
    Ok(())
}
