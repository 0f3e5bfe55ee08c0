//! Left: journals whose records are nobody's in memory. Their owner has ended, or has let go of a
//! stream; whoever claims one of their streams reads its tail in them.
//!
//! ```text
//!   open, finished --- its owner ended, [take_over], [close] ---> left, needed for some streams
//!   left --- a claimer sealed or copied the last of them [forget_left] ---> gone
//! ```
//! The row says for which streams, and up to which record of each, its file is still needed. Once
//! an owner has ended, that list and the rows of the streams alone decide when the file may go.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::core::Core;
use super::journals::{is_needed, unlink_journals};
use super::store::Store;
use super::streams::Source;
use crate::error::Result;
use crate::ids::{OwnerId, Sequence, StreamId};
use crate::journal::OpenJournal;
use crate::manifest::{JournalRow, JournalState, OwnerRow, Reading, StreamRow};
use crate::vfs::Step;

/// A journal, and a stream that we claimed and whose tail we read in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Left {
    pub(crate) owner: OwnerId,
    pub(crate) n: u64,
    pub(crate) stream: StreamId,
}

/// The last record of each stream in a journal.
pub(super) type Lasts = BTreeMap<StreamId, Sequence>;

/// Takes note of a record that lies in a journal.
pub(super) fn note_last(lasts: &mut Lasts, stream: StreamId, sequence: Sequence) {
    let last = lasts.entry(stream).or_insert(sequence);
    *last = sequence.max(*last);
}

/// Keeps of `needed` what the rows of the streams do not say to be sealed or gone.
pub(super) fn trim(rows: &impl Reading, needed: &mut Vec<(StreamId, Sequence)>) -> Result<()> {
    let mut kept = Vec::with_capacity(needed.len());
    for (stream, last) in needed.drain(..) {
        if rows.get::<StreamRow>(&stream)?.is_some_and(|row| row.sealed_upto <= last) {
            kept.push((stream, last));
        }
    }
    *needed = kept;
    Ok(())
}

/// Adds what `lasts` names.
pub(super) fn add(needed: &mut Vec<(StreamId, Sequence)>, lasts: &Lasts) {
    let mut all: Lasts = lasts.clone();
    for (stream, last) in needed.drain(..) {
        note_last(&mut all, stream, last);
    }
    needed.extend(all);
}

/// Whether a journal is in nobody's memory, and its file in nobody's hands.
pub(super) fn is_left(rows: &impl Reading, owner: OwnerId) -> Result<bool> {
    Ok(rows.get::<OwnerRow>(&owner)?.is_none_or(|row| row.ended.is_some()))
}

/// Whether the row of a left journal may go.
pub(super) fn is_spent(row: &JournalRow) -> bool {
    // P7: what was set aside stays.
    row.needed.is_empty() && !matches!(row.state, JournalState::SetAside { .. })
}

/// Journals of ended owners that the rows say nobody needs: their rows go, then their files.
pub(super) fn forget_spent(core: &Core) -> Result<u64> {
    let snapshot = core.snapshot()?;
    let mut spent = Vec::new();
    snapshot.scan::<JournalRow>(.., &mut |key, mut row| {
        trim(&snapshot, &mut row.needed)?;
        if is_spent(&row) && is_left(&snapshot, key.0)? && is_left(&snapshot, row.keeper)? {
            spent.push(key);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    drop(snapshot);
    if spent.is_empty() {
        return Ok(0);
    }
    // A copy that is being made reads them: they go with a later call.
    let Some(_right) = super::retain::may_remove(core)? else { return Ok(0) };
    core.transact(Step::JournalForget, |w| {
        spent.iter().try_for_each(|key| w.remove::<JournalRow>(key).map(|_| ()))
    })?;
    unlink_journals(core, &spent)?;
    Ok(spent.len() as u64)
}

impl Store {
    /// As [`Store::forget_journals`] where several processes write: takes us off the lists of the
    /// journals that we need no more, and removes those that nobody needs.
    pub(super) fn forget_left(&self) -> Result<()> {
        let writer = self.writer("forget")?;
        let me = self.core().check_write("forget")?;
        let (ours, theirs) = self.done_with()?;
        if ours.is_empty() && theirs.is_empty() {
            return Ok(());
        }
        let Some(_right) = super::retain::may_remove(self.core())? else { return Ok(()) };
        let gone = self.core().transact(Step::JournalForget, |w| {
            let mut gone = Vec::new();
            for (key, streams) in &theirs {
                let Some(mut row) = w.get::<JournalRow>(key)? else { continue };
                row.needed.retain(|(stream, _)| !streams.contains(stream));
                trim(w, &mut row.needed)?;
                if is_spent(&row) && is_left(w, key.0)? {
                    w.remove::<JournalRow>(key)?;
                    gone.push(*key);
                } else {
                    w.put(key, &row)?;
                }
            }
            for n in &ours {
                let key = (me.owner, *n);
                let Some(mut row) = w.get::<JournalRow>(&key)? else { continue };
                trim(w, &mut row.needed)?;
                if is_spent(&row) {
                    w.remove::<JournalRow>(&key)?;
                    gone.push(key);
                }
            }
            Ok(gone)
        })?;
        let gone = gone.value;
        let ours = gone.iter().filter(|(owner, _)| *owner == me.owner);
        ours.for_each(|(_, n)| writer.journal.forget(*n));
        writer.left.lock().retain(|left| {
            let key = (left.owner, left.n);
            !theirs.get(&key).is_some_and(|streams| streams.contains(&left.stream))
        });
        unlink_journals(self.core(), &gone)
    }

    /// Finished journals of ours that hold nothing of what we or others need; and the streams for
    /// which we need a left one no more.
    #[allow(clippy::type_complexity)]
    fn done_with(&self) -> Result<(Vec<u64>, BTreeMap<(OwnerId, u64), Vec<StreamId>>)> {
        let writer = self.writer("forget")?;
        let me = self.core().check_write("forget")?;
        let left: Vec<Left> = writer.left.lock().iter().copied().collect();
        let mut finished = writer.journal.files();
        finished.retain(|file| file.finished);
        let mut theirs: BTreeMap<(OwnerId, u64), Vec<StreamId>> = BTreeMap::new();
        {
            let streams = writer.streams.lock();
            finished.retain(|file| !is_needed(file, &streams));
            for one in left {
                let source = Source::Adopted { owner: one.owner, n: one.n };
                let tail = streams.get(one.stream).map(|end| end.tail.iter());
                if !tail.is_some_and(|mut tail| tail.any(|record| record.source == source)) {
                    theirs.entry((one.owner, one.n)).or_default().push(one.stream);
                }
            }
        }
        let mut ours = Vec::new();
        if !finished.is_empty() {
            let snapshot = self.core().snapshot()?;
            for file in finished {
                if let Some(mut row) = snapshot.get::<JournalRow>(&(me.owner, file.n))? {
                    trim(&snapshot, &mut row.needed)?;
                    if is_spent(&row) {
                        ours.push(file.n);
                    }
                }
            }
        }
        Ok((ours, theirs))
    }

    /// What our own journals hold of the unsealed tails of `streams`; of all in memory with `None`.
    pub(super) fn needed_of_ours(
        &self,
        streams: &super::streams::Streams,
        of: Option<&[StreamId]>,
    ) -> Result<Vec<(OpenJournal, Lasts)>> {
        let files = self.writer("close")?.journal.files();
        let mut found = Vec::new();
        for file in files {
            let mut lasts = Lasts::new();
            for &(stream, _, _, high) in &file.streams {
                let is_asked = of.is_none_or(|of| of.contains(&stream));
                let is_there =
                    |end: &super::streams::End| !end.tail.is_empty() && high >= end.sealed_upto;
                if is_asked && streams.get(stream).is_some_and(is_there) {
                    note_last(&mut lasts, stream, high);
                }
            }
            found.push((file, lasts));
        }
        Ok(found)
    }
}

/// The streams of a list.
pub(super) fn streams_of(needed: &[(StreamId, Sequence)]) -> BTreeSet<StreamId> {
    needed.iter().map(|(stream, _)| *stream).collect()
}
