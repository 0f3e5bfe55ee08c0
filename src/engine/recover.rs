//! Recover: what an opening does about those who did not close.
//!
//! Each journal is synced before it is read, so that nothing shown is ever taken back; its cached
//! pages are dropped first, since after a write error they can hold what the disk does not. Then
//! ONE transaction ends the dead owners, takes over their journals and releases their claims. The
//! time follows the unsealed journals, not the store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::append::{JOURNAL_LEASES, stream_of_payload};
use super::core::{Core, Me};
use super::journals::{Adopted, unlink_journals};
use super::left::{Lasts, add, note_last, trim};
use super::merge::Merge;
use super::owner::{Dead, the_dead};
use super::streams::{End, Source, Streams};
use super::sweep::sweep_ended;
use super::view::{expect, is_missing};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{Epoch, LeaseId, OwnerId, StreamId};
use crate::journal::{self, Payload, Tail};
use crate::manifest::{
    ClaimRow, Cursor, Cut, JournalRow, JournalState, LeaseRow, ObjectRow, OwnerEnd, OwnerRow,
    Reading, Snapshot, StreamRow, Write,
};
use crate::vfs::Step;

/// What recovery found and did when a store was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Owners that had ended without closing.
    pub ended: Vec<OwnerId>,
    /// Journals read.
    pub journals: u64,
    /// Unsealed records found in them.
    pub records: u64,
    /// Incomplete tails, expected after a crash: file, and bytes beyond its last whole frame.
    pub torn: Vec<(PathBuf, u64)>,
    /// Journals kept aside because part of what was durable does not read: file, offset, reason.
    pub set_aside: Vec<(PathBuf, u64, String)>,
    /// Files of ended owners removed: none of them held anything acknowledged.
    pub swept: u64,
}

pub(super) struct Recovered {
    pub(super) streams: Streams,
    pub(super) adopted: Vec<Adopted>,
    pub(super) recovery: Recovery,
}

struct Found {
    owner: OwnerId,
    n: u64,
    row: JournalRow,
    state: JournalState,
    end: u64,
    lasts: Lasts,
}

pub(super) fn recover(core: &Core, set_aside_allowed: bool) -> Result<Recovered> {
    let me = core.check_write("recover")?;
    let mut recovery = Recovery::default();
    let (dead, living) = the_dead(core, me.owner)?;
    let mut merge = Merge::default();
    let mut found = Vec::new();
    // P2: what is read here is the unsealed journals alone, so time follows them and not the store.
    for ((owner, n), row) in in_order(&core.snapshot()?)? {
        if living.contains(&row.keeper) {
            continue;
        }
        core.disk.mark(Step::OpenReplay);
        let one = replay(core, (owner, n), row, set_aside_allowed, &mut merge, &mut recovery)?;
        found.push(one);
    }
    recovery.journals = found.len() as u64;
    let is_aside = !recovery.set_aside.is_empty();
    let is_new = |one: &Found| {
        let aside = |state: &JournalState| matches!(state, JournalState::SetAside { .. });
        aside(&one.state) && !aside(&one.row.state)
    };
    let is_cut_anew = found.iter().any(is_new);
    let (mut streams, cuts) = tails(core, &mut merge, is_aside, is_cut_anew)?;
    recovery.records = streams.iter().map(|(_, end)| end.tail.len() as u64).sum();
    let mut stale = match_leases(core, &mut streams, None)?;
    if is_aside {
        // P7: what lies behind the damage may name them, and stays with them.
        stale.clear();
    }
    // A copy of the store is being made: journals that nobody needs go later.
    let right = super::retain::may_remove(core)?;
    let is_held = right.is_none();
    let taken =
        TakeOver { me, dead: &dead, found: &found, stale: &stale, cuts: &cuts, is_aside, is_held };
    let adopted = taken.commit(core, &streams)?;
    recovery.ended = dead.iter().map(|dead| dead.owner).collect();
    match sweep_ended(core, &living) {
        Ok(swept) => recovery.swept = swept,
        Err(e) => core.note_untidy(Err(e)),
    }
    Ok(Recovered { streams, adopted, recovery })
}

/// Journal rows by epoch of their owner, then number: the order in which they were written.
pub(super) fn in_order(snapshot: &Snapshot) -> Result<Vec<((OwnerId, u64), JournalRow)>> {
    let mut rows = snapshot.list::<JournalRow>(.., usize::MAX)?;
    let mut epochs: BTreeMap<OwnerId, Epoch> = BTreeMap::new();
    for ((owner, _), _) in &rows {
        if let Some(row) = snapshot.get::<OwnerRow>(owner)? {
            epochs.insert(*owner, row.epoch);
        }
    }
    rows.sort_by_key(|((owner, n), _)| (epochs.get(owner).copied(), *n));
    Ok(rows)
}

fn replay(
    core: &Core,
    (owner, n): (OwnerId, u64),
    row: JournalRow,
    set_aside_allowed: bool,
    merge: &mut Merge,
    recovery: &mut Recovery,
) -> Result<Found> {
    let path = layout::journal(&core.root, owner, n);
    // G10, G14: what we are about to show is on the medium, and is what the medium holds.
    journal::sync_before_trust(&*core.disk, &path).map_err(|e| missing_file(&path, e))?;
    let source = Source::Adopted { owner, n };
    let expected = expect(core, owner, n, &row);
    let mut lasts = Lasts::new();
    let scan = journal::scan(&*core.disk, &path, &expected, &mut |_, records| {
        for record in records {
            note_last(&mut lasts, record.stream, record.sequence);
            merge.take(record, source);
        }
        Ok(())
    })?;
    let mut state = match &row.state {
        JournalState::SetAside { from, reason } => {
            recovery.set_aside.push((path.clone(), *from, reason.clone()));
            row.state.clone()
        }
        _ => JournalState::Adopted { end: scan.end },
    };
    match scan.tail {
        Tail::Clean => {}
        Tail::Torn { bytes } => recovery.torn.push((path, bytes)),
        Tail::Damaged { .. } if matches!(state, JournalState::SetAside { .. }) => {}
        Tail::Damaged { offset, upto } => {
            let reason = format!("bytes {offset}..{upto} were durable and do not read");
            if !set_aside_allowed {
                let cause = format!(
                    "{reason}; open with set_aside_damage to go on without them, or salvage"
                );
                return Err(Error::damage("recover", path.display(), cause));
            }
            recovery.set_aside.push((path, offset, reason.clone()));
            state = JournalState::SetAside { from: offset, reason };
        }
    }
    Ok(Found { owner, n, row, state, end: scan.end, lasts })
}

pub(super) fn missing_file(path: &Path, error: Error) -> Error {
    if is_missing(&error) {
        let cause = "the file is missing although its row stands; put it back, or salvage";
        return Error::damage("recover", path.display(), cause);
    }
    error
}

/// The tails, and the streams whose tail ends at a hole.
fn tails(
    core: &Core,
    merge: &mut Merge,
    allow_gap: bool,
    is_cut_anew: bool,
) -> Result<(Streams, Vec<Cursor>)> {
    let snapshot = core.snapshot()?;
    let mut streams = Streams::default();
    let mut cuts = Vec::new();
    let named: Vec<_> = merge.streams().collect();
    for stream in named {
        // A stream without a row was retired: its records are gone with it.
        let Some(row) = snapshot.get::<StreamRow>(&stream)? else { continue };
        let mut end = End::of(&row);
        let (tail, is_cut) = merge.tail(stream, &row, allow_gap)?;
        tail.into_iter().for_each(|record| end.push(record));
        if is_cut || is_cut_anew {
            // G5: a number behind the damage is not given again in the same generation.
            end.generation = end.generation.next().unwrap_or(end.generation);
            cuts.push(Cursor { stream, generation: end.generation, end: end.next() });
        }
        streams.insert(stream, end);
    }
    Ok((streams, cuts))
}

/// Gives each large payload its lease; returns the leases whose record never became durable, of all
/// streams or of those asked for.
pub(super) fn match_leases(
    core: &Core,
    streams: &mut Streams,
    of: Option<&BTreeSet<StreamId>>,
) -> Result<Vec<LeaseId>> {
    let snapshot = core.snapshot()?;
    // By stream as well: a lease belongs to a stream's holder, whoever else names such bytes.
    let mut free: BTreeMap<(Option<StreamId>, Digest), Vec<LeaseId>> = BTreeMap::new();
    // Those of journals alone: the time follows the unsealed journals.
    for (lease, row) in snapshot.list::<LeaseRow>(LeaseId(JOURNAL_LEASES).., usize::MAX)? {
        let stream = stream_of_payload(&row);
        if of.is_some_and(|of| !stream.is_some_and(|stream| of.contains(&stream))) {
            continue;
        }
        for object in &row.objects {
            if let Some(object) = snapshot.get::<ObjectRow>(object)? {
                free.entry((stream, object.digest)).or_default().push(lease);
            }
        }
    }
    let named: Vec<_> = streams.iter().map(|(stream, _)| stream).collect();
    for stream in named {
        let Some(end) = streams.get_mut(stream) else { continue };
        for record in &mut end.tail {
            if let Payload::Object { digest, .. } = &record.payload {
                record.lease = free.get_mut(&(Some(stream), *digest)).and_then(Vec::pop);
            }
        }
    }
    Ok(free.into_values().flatten().collect())
}

/// What one opening takes over from those that ended.
struct TakeOver<'a> {
    me: Me,
    dead: &'a [Dead],
    found: &'a [Found],
    stale: &'a [LeaseId],
    /// Streams that begin a generation where damage cut them.
    cuts: &'a [Cursor],
    /// Something was set aside: nothing that was read is let go.
    is_aside: bool,
    /// Nor while a copy of the store is made.
    is_held: bool,
}

impl TakeOver<'_> {
    /// ONE transaction ends the dead, takes over their journals and frees their claims.
    fn commit(&self, core: &Core, streams: &Streams) -> Result<Vec<Adopted>> {
        let needed: BTreeSet<Source> = streams
            .iter()
            .flat_map(|(_, end)| end.tail.iter().map(|record| record.source))
            .collect();
        let is_kept = |one: &Found| {
            self.is_aside
                || self.is_held
                || needed.contains(&Source::Adopted { owner: one.owner, n: one.n })
        };
        let is_idle = self.dead.is_empty() && self.found.is_empty() && self.stale.is_empty();
        if !is_idle {
            core.transact(Step::OpenTakeOver, |w| self.write(w, &is_kept))?;
        }
        let (kept, gone): (Vec<&Found>, Vec<&Found>) =
            self.found.iter().partition(|one| is_kept(one));
        if !gone.is_empty() {
            let gone: Vec<_> = gone.iter().map(|one| (one.owner, one.n)).collect();
            core.note_untidy(unlink_journals(core, &gone));
        }
        let adopted = |one: &Found| Adopted {
            owner: one.owner,
            n: one.n,
            end: one.end,
            is_set_aside: self.is_aside,
        };
        Ok(kept.into_iter().map(adopted).collect())
    }

    fn write(&self, w: &mut Write, is_kept: &dyn Fn(&Found) -> bool) -> Result<()> {
        for one in self.dead {
            if let Some(mut row) = w.get::<OwnerRow>(&one.owner)? {
                row.ended = Some(OwnerEnd::TakenOver { by: self.me.owner });
                w.put(&one.owner, &row)?;
            }
        }
        for (resource, row) in w.list::<ClaimRow>(.., usize::MAX)? {
            if self.dead.iter().any(|dead| dead.owner == row.owner) {
                w.remove::<ClaimRow>(&resource)?;
            }
        }
        for one in self.found {
            let key = (one.owner, one.n);
            if is_kept(one) {
                let (keeper, state) = (self.me.owner, one.state.clone());
                let mut row = JournalRow { keeper, state, ..one.row.clone() };
                // Should we end without a close, and the next one not be alone.
                add(&mut row.needed, &one.lasts);
                trim(w, &mut row.needed)?;
                w.put(&key, &row)?;
            } else {
                w.remove::<JournalRow>(&key)?;
            }
        }
        for lease in self.stale {
            w.remove::<LeaseRow>(lease)?;
        }
        for cut in self.cuts {
            if let Some(mut row) = w.get::<StreamRow>(&cut.stream)? {
                row.generation = cut.generation;
                row.cuts.retain(|earlier| earlier.at < cut.end);
                row.cuts.push(Cut { generation: cut.generation, at: cut.end });
                w.put(&cut.stream, &row)?;
            }
        }
        Ok(())
    }
}
