//! Taking: records leave a stream for rows of a face, in the transaction that writes those rows.
//!
//! ```text
//!   unsealed [unsealed] --- [seal_contents] ---> SealedSet --- [publish_taking] ---> rows of the face,
//!                                                                and the stream begins behind them
//! ```
//! P4: the rows and the new beginning of the stream are ONE transaction, so that a reader finds each
//! record once: in the stream before, in what the rows name after.

use std::collections::BTreeMap;

use super::append::{JOURNAL_LEASES, stream_of_payload};
use super::claim::held_by;
use super::core::Core;
use super::hold::{check_held, let_go};
use super::seal::{Content, OnPiece, SealedSet};
use super::store::Store;
use super::streams::unknown;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Generation, LeaseId, ObjectId, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{ClaimRow, LeaseRow, Reading, ResourceKey, StreamRow, Write};
use crate::protection::Protection;
use crate::vfs::Step;

/// Unsealed records of a stream that leave it: all from its first unsealed one to below `upto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The stream.
    pub(crate) stream: StreamId,
    /// The first: where its unsealed records began when they were read.
    pub(crate) first: Sequence,
    /// The one behind the last.
    pub(crate) upto: Sequence,
}

/// The same, as it stood when its transaction was prepared.
struct Covered {
    taken: Taken,
    generation: Generation,
    /// What keeps the large payloads among them.
    leases: Vec<LeaseId>,
}

impl Store {
    /// Builds, syncs and places the files of `contents`. The number of syncs follows the bytes.
    ///
    /// # Errors
    /// `DiskFull`; `Io`, after which the store may have halted.
    ///
    /// # Durability
    /// The bytes are durable, and nothing refers to them: dropped, they never were.
    pub(crate) fn seal_contents(&self, contents: Vec<Content>) -> Result<SealedSet> {
        if contents.is_empty() {
            // Also on a full disk: what follows may make room.
            self.core().check_write("seal")?;
        } else {
            self.core().check_intake("seal")?;
        }
        let building = &self.writer("seal")?.building;
        SealedSet::seal(self.core(), self.files(), building, contents)
    }

    /// As [`Store::seal_contents`], of one content that `write` gives piece by piece; what `content`
    /// has of bytes is not looked at, and what it says of itself is as `write` leaves it. Memory: a slice.
    ///
    /// # Errors
    /// As there, and what `write` returns: its temporary file is gone then.
    ///
    /// # Durability
    /// As there.
    pub(crate) fn seal_written(
        &self,
        content: Content,
        write: impl FnOnce(OnPiece<'_>, &mut Content) -> Result<()>,
    ) -> Result<SealedSet> {
        self.core().check_intake("seal")?;
        let building = &self.writer("seal")?.building;
        SealedSet::seal_streamed(self.core(), building, content, write)
    }

    /// Makes the contents of `set` objects, and lets `refer` write the rows that refer to them, in ONE
    /// transaction; the objects come in the order of the contents. `refer` may be called more than
    /// once, may do no I/O and call no code of a caller.
    ///
    /// # Errors
    /// What `refer` returns: nothing was changed, and the bytes are rubbish. `OutcomeUnknown`: nothing
    /// is removed.
    ///
    /// # Durability
    /// *Durable* when it returns, bytes and rows.
    pub(crate) fn publish_set<T>(
        &self,
        set: SealedSet,
        step: Step,
        refer: impl Fn(&mut Write, &[ObjectId]) -> Result<T>,
    ) -> Result<T> {
        let committed = set.publish(self.files(), step, refer)?;
        self.count_publication();
        Ok(committed.value)
    }

    /// As [`Store::publish_set`]: after an error of `refer` the set is as it was, and it can be tried again.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Durability
    /// As there.
    pub(crate) fn publish_again<T>(
        &self,
        set: &mut SealedSet,
        step: Step,
        refer: impl Fn(&mut Write, &[ObjectId]) -> Result<T>,
    ) -> Result<T> {
        let committed = set.publish_again(self.files(), step, refer)?;
        self.count_publication();
        Ok(committed.value)
    }

    /// As [`Store::publish_set`]; in the same transaction the records `taken` leave their streams, which
    /// begin behind them from then on. Large payloads lose the leases that kept them after `refer`: what
    /// it referred to stays, all others go. `refer` may take a stream's row away with [`retire_intake`].
    ///
    /// # Errors
    /// As there; `Conflict` when some of the records were taken, sealed or moved back meanwhile, or are
    /// in chunks; `Invalid` for more records than the stream has; `Fenced` when it is not ours any more.
    ///
    /// # Durability
    /// As there. Those who wait for the records are told that they are durable.
    pub(crate) fn publish_taking<T>(
        &self,
        set: SealedSet,
        step: Step,
        taken: &[Taken],
        refer: impl Fn(&mut Write, &[ObjectId]) -> Result<T>,
    ) -> Result<T> {
        let covered = self.covered(taken)?;
        let bounds: BTreeMap<StreamId, Sequence> =
            taken.iter().map(|one| (one.stream, one.upto)).collect();
        self.settle_mixed_frames(&bounds)?;
        let committed = set.publish(self.files(), step, |w, objects| {
            covered.iter().try_for_each(|one| take(self.core(), w, one))?;
            let value = refer(w, objects)?;
            let leases = covered.iter().flat_map(|one| &one.leases);
            leases.into_iter().try_for_each(|lease| w.remove::<LeaseRow>(lease).map(drop))?;
            let mut gone = Vec::new();
            for one in &covered {
                if w.get::<StreamRow>(&one.taken.stream)?.is_none() {
                    gone.push(one.taken.stream);
                }
            }
            Ok((value, gone))
        })?;
        let (value, gone) = committed.value;
        let ends: Vec<_> =
            covered.iter().map(|c| (c.taken.stream, c.generation, c.taken.upto)).collect();
        let writer = self.writer("publish")?;
        let mut streams = writer.streams.lock();
        gone.iter().for_each(|stream| streams.remove(*stream));
        self.core().note_untidy(self.moved_up(&ends, streams));
        self.count_publication();
        Ok(value)
    }

    /// Checks `taken` against the ends in memory.
    fn covered(&self, taken: &[Taken]) -> Result<Vec<Covered>> {
        let mut streams = self.writer("publish")?.streams.lock();
        let named: Vec<StreamId> = taken.iter().map(|one| one.stream).collect();
        self.load_all(&mut streams, &named)?;
        let mut covered = Vec::with_capacity(taken.len());
        for (at, one) in taken.iter().enumerate() {
            let place = format!("stream {}", one.stream);
            if named[..at].contains(&one.stream) {
                return Err(Error::invalid("publish", place, "it is named twice"));
            }
            let end = streams.known("publish", one.stream)?;
            if one.first > one.upto || one.upto > end.next() {
                let cause = format!(
                    "records {}..{} of {} were to be taken",
                    one.first,
                    one.upto,
                    end.next()
                );
                return Err(Error::invalid("publish", place, cause));
            }
            let count = one.upto.0.saturating_sub(end.sealed_upto.0) as usize;
            let leases = end.tail.iter().take(count).filter_map(|record| record.lease).collect();
            covered.push(Covered { taken: *one, generation: end.generation, leases });
        }
        Ok(covered)
    }

    /// Where the unsealed records of `stream` begin, and all of them, their bytes shared and not copied.
    /// The stream is ours, and is claimed by this where several processes write.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` with the process that holds it; `Damage` for a journal that does not read.
    #[allow(clippy::type_complexity)]
    pub(crate) fn unsealed(
        &self,
        stream: StreamId,
    ) -> Result<(Sequence, Vec<(Sequence, Payload)>)> {
        let mut streams = self.writer("read")?.streams.lock();
        self.core().check_write("read")?;
        self.load(&mut streams, stream)?;
        let end = streams.known("read", stream)?;
        let sequences = (end.sealed_upto.0..).map(Sequence);
        let tail = sequences.zip(end.tail.iter().map(|record| record.payload.clone())).collect();
        Ok((end.sealed_upto, tail))
    }

    /// Bytes of the unsealed records of `stream`, if its end is in memory.
    pub(crate) fn unsealed_bytes(&self, stream: StreamId) -> Result<u64> {
        let streams = self.writer("read")?.streams.lock();
        Ok(streams.get(stream).map_or(0, |end| end.tail_bytes))
    }

    /// Changes rows as [`Store::transact`], and in the same transaction the streams `intakes` go with
    /// what is unsealed in them. Nothing is appended to them meanwhile.
    ///
    /// # Errors
    /// What `change` returns; `Conflict` with the process that holds one of them.
    ///
    /// # Durability
    /// *Durable* when it returns.
    pub(crate) fn transact_retiring<T>(
        &self,
        step: Step,
        intakes: &[StreamId],
        change: impl FnOnce(&mut Write) -> Result<T>,
    ) -> Result<T> {
        let writer = self.writer("retire")?;
        self.core().check_write("retire")?;
        let mut streams = writer.streams.lock();
        if self.core().is_shared() {
            self.load_all(&mut streams, intakes)?;
        }
        let committed = self.core().transact(step, |w| {
            let value = change(w)?;
            intakes.iter().try_for_each(|stream| retire_intake(w, *stream))?;
            Ok(value)
        })?;
        intakes.iter().for_each(|stream| streams.remove(*stream));
        drop(streams);
        self.core().note_untidy(self.forget_journals());
        Ok(committed.value)
    }
}

/// Inside the transaction: the records leave the stream.
fn take(core: &Core, w: &mut Write, one: &Covered) -> Result<()> {
    let Taken { stream, first, upto } = one.taken;
    check_held(core, w, "publish", stream)?;
    let Some(mut row) = w.get::<StreamRow>(&stream)? else {
        return Err(unknown("publish", stream));
    };
    let conflict =
        |cause| Err(Error::new(ErrorKind::Conflict, "publish", format!("stream {stream}"), cause));
    if row.generation != one.generation
        || (row.sealed_upto != first && Protection::TakenOnce.is_on())
    {
        return conflict("its records were taken or moved back meanwhile; read them again");
    }
    if row.taken_upto != row.sealed_upto && Protection::TakenOnce.is_on() {
        return conflict("it has chunks: its records are not taken");
    }
    (row.taken_upto, row.sealed_upto) = (upto, upto);
    w.put(&stream, &row)
}

/// Creates a stream that belongs to no recording, inside a transaction.
///
/// # Errors
/// `Invalid` for a blank name; `LimitExceeded` when no number is left.
pub(crate) fn create_intake(w: &mut Write, name: &str) -> Result<StreamId> {
    if name.trim().is_empty() {
        return Err(Error::invalid("create", "stream", "its name is blank"));
    }
    let stream = w.next_stream_id()?;
    w.put(&stream, &StreamRow { name: name.to_owned(), ..StreamRow::default() })?;
    Ok(stream)
}

/// Takes the row of a stream without chunks away, its claim, and the leases on payloads of its unsealed
/// records, inside a transaction. What the engine has of it in memory goes with
/// [`Store::publish_taking`] or [`Store::transact_retiring`], in which this belongs.
///
/// # Errors
/// `Conflict` with the process that holds it, or when it has chunks.
pub(crate) fn retire_intake(w: &mut Write, stream: StreamId) -> Result<()> {
    let Some(row) = w.get::<StreamRow>(&stream)? else { return Ok(()) };
    if row.next_ordinal.0 > 0 {
        let cause = "it has chunks: retire it";
        return Err(Error::new(ErrorKind::Conflict, "retire", format!("stream {stream}"), cause));
    }
    let key = ResourceKey::of_stream(stream);
    if let Some(held) = w.get::<ClaimRow>(&key)?
        && Some(held.owner) != w.owner()
    {
        return Err(held_by(w, "retire", &key, &held)?);
    }
    for (lease, row) in w.list::<LeaseRow>(LeaseId(JOURNAL_LEASES).., usize::MAX)? {
        if stream_of_payload(&row) == Some(stream) {
            w.remove::<LeaseRow>(&lease)?;
        }
    }
    if let Some(owner) = w.owner() {
        let_go(w, stream, owner)?;
    }
    w.remove::<StreamRow>(&stream).map(drop)
}
