//! Hold: where several processes write, a stream is written by the owner that holds its claim.
//!
//! ```text
//!   free --- first touch, [Store::claim_stream] ---> held, its tail read --- [release_stream] ---> free
//!                                                      \--- its owner ended, [take_over] -------> free
//! ```
//! While a claim is held, the end in memory is the truth: nobody else moves it. When it is taken,
//! the end comes from the row, and the tail from the journals that are left for the stream, in the
//! order of epoch and number.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::claim::held_by;
use super::core::Core;
use super::left::{Left, add, streams_of};
use super::merge::Merge;
use super::recover::{in_order, match_leases};
use super::store::Store;
use super::streams::{End, Ended, Streams, unknown};
use super::view::{Refused, scan_all};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{OwnerId, StreamId};
use crate::manifest::{
    ClaimKind, ClaimRow, JournalRow, JournalState, LeaseRow, Reading, ResourceKey, StreamRow, Write,
};
use crate::protection::Protection;
use crate::vfs::Step;

/// How often journals may go while a tail is read before it is given up.
const TRIES_MAX: usize = 64;

impl Store {
    /// Claims `stream`, which the first append, publication or rewind of it does as well. In single
    /// access every stream is ours, and this only looks whether it stands.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` with the process that holds it, if that lives.
    ///
    /// # Durability
    /// *Durable*: it ends with [`Store::release_stream`], or when this opening has ended.
    pub fn claim_stream(&self, stream: StreamId) -> Result<()> {
        self.hold_streams(&[stream])
    }

    /// Claims all of `streams`, or none.
    ///
    /// # Errors
    /// As [`Store::claim_stream`].
    ///
    /// # Durability
    /// As there.
    pub fn hold_streams(&self, streams: &[StreamId]) -> Result<()> {
        let writer = self.writer("claim")?;
        self.core().check_write("claim")?;
        self.load_all(&mut writer.streams.lock(), streams)
    }

    /// Lets go of `stream`, so that another process can go on at its end. What was accepted of it is
    /// made durable first, and the file that it lies in is finished. Nothing to do in single access.
    ///
    /// # Errors
    /// As [`Store::barrier`]; the claim is then still held.
    ///
    /// # Durability
    /// *Durable* when it returns, records and release.
    pub fn release_stream(&self, stream: StreamId) -> Result<()> {
        let writer = self.writer("release")?;
        self.core().check_write("release")?;
        let is_loaded = || writer.streams.lock().get(stream).is_some();
        if !self.is_shared() || !is_loaded() {
            return Ok(());
        }
        self.transact_releasing(Step::ClaimCommit, &[stream], |_| Ok(()))
    }

    /// Whether other processes may write as well.
    pub(crate) fn is_shared(&self) -> bool {
        self.core().is_shared()
    }

    /// Changes rows as [`Store::transact`], and lets go of `named` in the same transaction. What was
    /// accepted of them is made durable first.
    ///
    /// # Errors
    /// As [`Store::barrier`]; what `change` returns: all of them are then still held.
    ///
    /// # Durability
    /// *Durable* when it returns, records, change and release.
    pub(crate) fn transact_releasing<T>(
        &self,
        step: Step,
        named: &[StreamId],
        change: impl FnOnce(&mut Write) -> Result<T>,
    ) -> Result<T> {
        let writer = self.writer("release")?;
        let me = self.core().check_write("release")?;
        if !self.is_shared() || !Protection::StreamsLetGo.is_on() {
            let mut streams = writer.streams.lock();
            let committed = self.transact(step, change)?;
            // Whoever comes next reads their rows, and whether their recording has ended.
            for stream in named {
                if streams.get(*stream).is_some_and(|end| !end.has_tail()) {
                    streams.remove(*stream);
                }
            }
            return Ok(committed.value);
        }
        // No group may be on its way.
        let _alone = writer.releasing.write();
        let mut streams = writer.streams.lock();
        let has_tail = |stream: &StreamId| streams.get(*stream).is_some_and(End::has_tail);
        if named.iter().any(has_tail) {
            writer.journal.barrier().inspect_err(|e| self.note_journal_failure(e))?;
            writer.journal.roll().inspect_err(|e| self.note_journal_failure(e))?;
        }
        let needed = self.needed_of_ours(&streams, Some(named))?;
        let committed = self.core().transact(step, |w| {
            for (file, lasts) in needed.iter().filter(|(_, lasts)| !lasts.is_empty()) {
                let key = (me.owner, file.n);
                let mut row = w.require::<JournalRow>(&key)?;
                add(&mut row.needed, lasts);
                w.put(&key, &row)?;
            }
            named.iter().try_for_each(|stream| let_go(w, *stream, me.owner))?;
            change(w)
        })?;
        named.iter().for_each(|stream| streams.remove(*stream));
        writer.left.lock().retain(|left| !named.contains(&left.stream));
        Ok(committed.value)
    }

    /// The recording of `named` is running again.
    pub(crate) fn reopened(&self, named: &[StreamId]) -> Result<()> {
        let mut streams = self.writer("resume")?.streams.lock();
        for stream in named {
            if let Some(end) = streams.get_mut(*stream) {
                end.is_ended = false;
            }
        }
        Ok(())
    }

    /// Lets go of those of `named` that were claimed for something that came to nothing. As long as
    /// `resource` is ours all of them are in use, and stay. A failure is a warning.
    pub(crate) fn give_up_streams(&self, named: &[StreamId], resource: &ResourceKey) {
        let Ok(writer) = self.writer("release") else { return };
        let Some(me) = self.core().me.filter(|_| self.is_shared()) else { return };
        if !named.iter().any(|stream| writer.streams.lock().get(*stream).is_some()) {
            return;
        }
        let given_up = self.transact_releasing(Step::ClaimCommit, named, |w| {
            match w.get::<ClaimRow>(resource)? {
                Some(held) if held.owner == me.owner => {
                    Err(Error::new(ErrorKind::Conflict, "release", resource, "it is being written"))
                }
                _ => Ok(()),
            }
        });
        if let Err(e) = given_up
            && e.kind() != ErrorKind::Conflict
        {
            self.core().note_untidy(Err(e));
        }
    }

    /// Makes sure that the ends of `wanted` are in memory, and that they are ours.
    pub(super) fn load_all(&self, streams: &mut Streams, wanted: &[StreamId]) -> Result<()> {
        let mut missing: Vec<StreamId> =
            wanted.iter().copied().filter(|stream| streams.get(*stream).is_none()).collect();
        missing.sort();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        if !self.core().is_shared() {
            let (snapshot, mut ended) = (self.core().snapshot()?, Ended::default());
            for stream in missing {
                let Some(row) = snapshot.get::<StreamRow>(&stream)? else {
                    return Err(unknown("open", stream));
                };
                let is_ended = ended.has(&snapshot, &row)?;
                streams.insert(stream, End { is_ended, ..End::of(&row) });
            }
            return Ok(());
        }
        self.take_claims(&missing)?;
        let (loaded, left) = read_tails(self.core(), &missing).inspect_err(|_| {
            // What cannot be gone on with here is nobody's: another process may be able to.
            let Some(me) = self.core().me else { return };
            let freed = self.core().transact(Step::ClaimCommit, |w| {
                missing.iter().try_for_each(|stream| let_go(w, *stream, me.owner))
            });
            self.core().note_untidy(freed.map(drop));
        })?;
        self.writer("claim")?.left.lock().extend(left);
        loaded.into_ends().for_each(|(stream, end)| streams.insert(stream, end));
        Ok(())
    }

    fn take_claims(&self, missing: &[StreamId]) -> Result<()> {
        let me = self.core().check_write("claim")?;
        let since = self.core().disk.wall_nanos();
        let mut asked: Vec<OwnerId> = Vec::new();
        loop {
            let holder = Cell::new(None);
            let tried = self.core().transact(Step::ClaimCommit, |w| {
                let taken = w.commit_seq();
                for stream in missing {
                    if w.get::<StreamRow>(stream)?.is_none() {
                        return Err(unknown("claim", *stream));
                    }
                    let key = ResourceKey::of_stream(*stream);
                    let (owner, epoch, kind) = (me.owner, me.epoch, ClaimKind::Stream);
                    match w.get::<ClaimRow>(&key)? {
                        None => w.put(&key, &ClaimRow { owner, epoch, kind, since, taken })?,
                        Some(held) if held.owner == me.owner => {}
                        Some(_) if !Protection::StreamClaim.is_on() => {}
                        Some(held) => {
                            holder.set(Some(held.owner));
                            return Err(held_by(w, "claim", &key, &held)?);
                        }
                    }
                }
                Ok(())
            });
            match (tried, holder.get()) {
                (Ok(_), _) => return Ok(()),
                (Err(e), Some(owner)) if !asked.contains(&owner) => {
                    asked.push(owner);
                    if !self.take_over_of(owner)? {
                        return Err(e);
                    }
                }
                (Err(e), _) => return Err(e),
            }
        }
    }
}

/// The claim of `owner` on `stream` ends in this transaction.
pub(super) fn let_go(w: &mut Write, stream: StreamId, owner: OwnerId) -> Result<()> {
    let key = ResourceKey::of_stream(stream);
    if w.get::<ClaimRow>(&key)?.is_some_and(|held| held.owner == owner) {
        w.remove::<ClaimRow>(&key)?;
    }
    Ok(())
}

/// P5: a stream is changed by its holder alone.
pub(super) fn check_held(
    core: &Core,
    w: &Write,
    operation: &'static str,
    stream: StreamId,
) -> Result<()> {
    if !core.is_shared() || !Protection::StreamClaim.is_on() {
        return Ok(());
    }
    let key = ResourceKey::of_stream(stream);
    match w.get::<ClaimRow>(&key)? {
        Some(held) if Some(held.owner) == w.owner() => Ok(()),
        Some(held) => Err(held_by(w, operation, &key, &held)?),
        None => {
            let cause = "its claim is not held any more";
            Err(Error::new(ErrorKind::Fenced, operation, &key, cause))
        }
    }
}

/// The ends of streams that were just claimed, and the journals that their tails lie in.
fn read_tails(core: &Core, claimed: &[StreamId]) -> Result<(Streams, Vec<Left>)> {
    let asked: BTreeSet<StreamId> = claimed.iter().copied().collect();
    let mut refused: Option<Refused> = None;
    for _ in 0..TRIES_MAX {
        let snapshot = core.snapshot()?;
        let (mut rows, mut ended) = (Vec::with_capacity(claimed.len()), Ended::default());
        for stream in claimed {
            let row = snapshot.get::<StreamRow>(stream)?;
            let row = row.ok_or_else(|| unknown("claim", *stream))?;
            let is_ended = ended.has(&snapshot, &row)?;
            rows.push((*stream, row, is_ended));
        }
        let mut journals = in_order(&snapshot)?;
        drop(snapshot);
        journals.retain(|(_, row)| !asked.is_disjoint(&streams_of(&row.needed)));
        let mut merge = Merge::default();
        match scan_all(core, &journals, claimed, &mut merge)? {
            None => {}
            // It may be spent for all of them, and gone: it is damage only if its row still stands.
            Some(now) if refused.as_ref().is_some_and(|was| was.is_same(&now)) => {
                return Err(now.error);
            }
            Some(now) => {
                refused = Some(now);
                continue;
            }
        }
        let is_aside =
            journals.iter().any(|(_, row)| matches!(row.state, JournalState::SetAside { .. }));
        let mut streams = Streams::default();
        for (stream, row, is_ended) in rows {
            let mut end = End { is_ended, ..End::of(&row) };
            merge.tail(stream, &row, is_aside)?.0.into_iter().for_each(|record| end.push(record));
            streams.insert(stream, end);
        }
        let stale = match_leases(core, &mut streams, Some(&asked))?;
        if !stale.is_empty() && !is_aside {
            core.transact(Step::LeaseCommit, |w| {
                stale.iter().try_for_each(|lease| w.remove::<LeaseRow>(lease).map(|_| ()))
            })?;
        }
        let left = journals.iter().flat_map(|((owner, n), row)| {
            let here = row.needed.iter().filter(|(stream, _)| asked.contains(stream));
            here.map(|(stream, _)| Left { owner: *owner, n: *n, stream: *stream })
        });
        return Ok((streams, left.collect()));
    }
    let cause = format!("its journals moved on {TRIES_MAX} times; call again");
    Err(Error::new(ErrorKind::Conflict, "claim", core.root.display(), cause))
}
