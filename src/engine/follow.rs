//! Follow: what comes to some streams, read as it comes, from any process.
//!
//! ```text
//!   look: rows and journals [before] -> new frames of each journal -> rows [now]
//!           `- rows moved between the two: the journals once more
//!   take: below sealed_upto from the chunks; from there on what the journals held
//! ```
//! A follower remembers for each journal how far it read and for each stream what it handed out, so
//! that a look costs what is new. It trusts rows alone: a record counts if its generation and the
//! cuts say so, whatever it was read from, and the rows that judge it are younger than the reading.
//! Records of a generation that these do not know yet wait. A store that is one file is read as the
//! rows' snapshot has it: what its writer keeps in memory is not written, and what a commit holds is
//! durable.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::core::Core;
use super::follow_journal::{Named, Standing};
use super::follow_stream::{Following, Take};
use super::recover::in_order;
use super::store::Store;
use super::view::{expect, is_missing};
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{OwnerId, Sequence, StreamId};
use crate::journal::{Record, Stopped};
use crate::manifest::{
    BodyDisk, Cursor, JournalRow, JournalState, OwnerEnd, OwnerRow, Reading, Snapshot, StreamRow,
};
use crate::protection::Protection;
use crate::vfs::Disk;

/// Records held that were read and not handed out; a look stops at the next frame, if it can.
const HELD_BYTES: u64 = 16 << 20;

/// How safe a record has to be before a follower shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum FollowLevel {
    /// Journals hold it: it survives the death of its writer, and a power cut may take it.
    #[default]
    Written,
    /// It survives a power cut.
    Durable,
    /// It is in a chunk.
    Sealed,
}

type JournalKey = (OwnerId, u64);
type Journals = Vec<(JournalKey, JournalRow)>;

/// Where a follower stands.
#[derive(Debug)]
pub(crate) struct Follower {
    level: FollowLevel,
    streams: BTreeMap<StreamId, Following>,
    journals: BTreeMap<JournalKey, Standing>,
    /// Whether the last look stopped before all was read.
    is_behind: bool,
    /// A hole that the last look saw: the same again, under the same row, is damage.
    hole: Option<(StreamId, StreamRow)>,
}

/// A journal that did not read as its row says.
struct Refused {
    key: JournalKey,
    row: JournalRow,
    error: Error,
}

impl Follower {
    pub(crate) fn new(level: FollowLevel) -> Self {
        Self {
            level,
            streams: BTreeMap::new(),
            journals: BTreeMap::new(),
            is_behind: false,
            hole: None,
        }
    }

    /// Follows `stream` from its first record on as well.
    pub(crate) fn add(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_insert_with(|| {
            // What was read so far was read without it.
            self.journals.values_mut().for_each(Standing::begin_again);
            Following::default()
        });
    }

    /// Whether another look at once would find more.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// What was taken could not be read, since the rows moved on: another look tells.
    pub(crate) fn look_again(&mut self) {
        self.is_behind = true;
    }

    /// Reads what is new, and returns the rows by which it was judged.
    ///
    /// # Errors
    /// `NotFound` when a stream is gone; `Damage` only where the row is unchanged; `Io`.
    pub(crate) fn look(&mut self, store: &Store) -> Result<Arc<Snapshot>> {
        let core = store.core();
        let before = Arc::new(core.snapshot()?);
        let mut journals = self.journals_of(&before)?;
        self.see_rows(&before)?;
        self.settle(&before, &journals)?;
        let files = files_of(core, &before);
        drop(before);
        let refused = self.read_on(core, &*files, &journals)?;
        drop(files);
        let mut now = Arc::new(core.snapshot()?);
        let mut is_whole = refused.is_empty();
        // G3: published, moved back or rolled over since the first look: the rest of an observation
        // that the rows already show may have come to a journal behind our back.
        if self.see_rows(&now)? || !is_whole {
            journals = self.journals_of(&now)?;
            self.settle(&now, &journals)?;
            let again = self.read_on(core, &*files_of(core, &now), &journals)?;
            is_whole = again.is_empty();
            if !is_whole {
                now = Arc::new(core.snapshot()?);
                let stands = self.journals_of(&now)?;
                for second in again {
                    let is_same =
                        |first: &Refused| first.key == second.key && first.row == second.row;
                    let is_listed = stands.contains(&(second.key, second.row.clone()));
                    if is_listed && refused.iter().any(is_same) {
                        return Err(second.error);
                    }
                }
                self.see_rows(&now)?;
                self.is_behind = true;
            }
        }
        if is_whole && !self.is_behind {
            self.check_holes(&journals)?;
        }
        Ok(now)
    }

    fn journals_of(&self, snapshot: &Snapshot) -> Result<Journals> {
        match self.level {
            FollowLevel::Written | FollowLevel::Durable => in_order(snapshot),
            FollowLevel::Sealed => Ok(Vec::new()),
        }
    }

    /// Takes in the rows of all streams; returns whether one of them moved.
    fn see_rows(&mut self, snapshot: &Snapshot) -> Result<bool> {
        let mut moved = false;
        for (stream, following) in &mut self.streams {
            let row = super::retire::check_stream(snapshot.get::<StreamRow>(stream)?, *stream)?;
            moved |= following.see(row);
        }
        Ok(moved)
    }

    /// Takes back what was read behind the end with which a journal was adopted.
    ///
    /// Of a journal that a dead owner left and that is gone by now nobody can say where it ended:
    /// what was read of it before it was known to be durable is told once more.
    fn settle(&mut self, snapshot: &Snapshot, journals: &Journals) -> Result<()> {
        let rows: BTreeMap<_, _> = journals.iter().map(|(key, row)| (*key, &row.state)).collect();
        let (streams, mut lost) = (&self.streams, Vec::new());
        let is_past = |named: &Named| {
            let following = streams.get(&named.stream);
            following.is_none_or(|it| it.is_past(named.generation, named.sequence))
        };
        for (key, standing) in &mut self.journals {
            match rows.get(key) {
                // Sealed by an owner that is at work: it was durable before.
                Some(JournalState::Open | JournalState::Finished { .. }) => {
                    standing.forget(is_past);
                }
                Some(JournalState::Adopted { end } | JournalState::SetAside { from: end, .. }) => {
                    lost.extend(standing.cut(*end));
                }
                None if is_taken_over(snapshot, key.0)? => lost.extend(standing.cut(0)),
                // Its owner let it go: all that counts of it is durable elsewhere.
                None => {}
            }
        }
        self.journals.retain(|key, _| rows.contains_key(key));
        if lost.is_empty() || !Protection::FollowAdopted.is_on() {
            return Ok(());
        }
        for Named { stream, generation, sequence } in lost {
            if let Some(following) = self.streams.get_mut(&stream) {
                following.take_back(generation, sequence);
            }
        }
        // What took its place may have been read already, and was taken for the same.
        self.journals.values_mut().for_each(Standing::begin_again);
        Ok(())
    }

    /// Reads on in every journal; returns those that do not read as their rows say.
    fn read_on(
        &mut self,
        core: &Core,
        files: &dyn Disk,
        journals: &Journals,
    ) -> Result<Vec<Refused>> {
        let mut refused = Vec::new();
        let is_committed = core.manifest.meta().single_file;
        self.is_behind = false;
        for (key, row) in journals {
            let mut standing = self.journals.remove(key).unwrap_or_default();
            let path = layout::journal(&core.root, key.0, key.1);
            let expected = expect(core, key.0, key.1, row);
            let mut at = standing.at;
            let stopped = at.read_on(files, &path, &expected, &mut |frame, group| {
                if is_committed {
                    self.take_in(group);
                } else if self.level == FollowLevel::Durable {
                    standing.hold(frame.end, group);
                } else {
                    standing.note(frame.end, self.named(&group));
                    self.take_in(group);
                }
                Ok(match self.is_full(standing.unsynced_bytes) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            });
            standing.at = at;
            while let Some(group) = standing.take_synced() {
                self.take_in(group);
            }
            standing.forget_synced();
            let (offset, is_aside) = (standing.at.offset, is_set_aside(row));
            self.journals.insert(*key, standing);
            let error = match stopped {
                Ok(Stopped::Told) => {
                    self.is_behind = true;
                    return Ok(refused);
                }
                Ok(Stopped::AtEnd | Stopped::NotYet) => continue,
                Ok(Stopped::Unreadable) if is_aside => continue,
                Ok(Stopped::Unreadable) => {
                    let cause = format!("bytes from {offset} were durable and do not read");
                    Error::damage("follow", path.display(), cause)
                }
                Err(e) if is_missing(&e) => {
                    let cause = "the file is missing although its row stands";
                    Error::damage("follow", path.display(), cause)
                }
                Err(e) => return Err(e),
            };
            refused.push(Refused { key: *key, row: row.clone(), error });
        }
        Ok(refused)
    }

    /// What of a group is followed.
    fn named(&self, group: &[Record]) -> Vec<Named> {
        let followed = group.iter().filter(|record| self.streams.contains_key(&record.stream));
        let named = |record: &Record| {
            let Record { stream, generation, sequence, .. } = *record;
            Named { stream, generation, sequence }
        };
        followed.map(named).collect()
    }

    fn take_in(&mut self, group: Vec<Record>) {
        for record in group {
            if let Some(following) = self.streams.get_mut(&record.stream) {
                following.take_in(record);
            }
        }
    }

    /// Whether enough is held, of which something can be handed out.
    fn is_full(&self, more: u64) -> bool {
        let held: u64 = self.streams.values().map(Following::waiting_bytes).sum();
        held + more > HELD_BYTES && self.streams.values().any(Following::is_ready)
    }

    /// Below what is there no record may be missing.
    fn check_holes(&mut self, journals: &Journals) -> Result<()> {
        if journals.iter().any(|(_, row)| is_set_aside(row)) {
            return Ok(());
        }
        let holes = self.streams.iter().filter_map(|(stream, following)| {
            following.hole().map(|found| (*stream, following.row().clone(), found))
        });
        let seen = self.hole.take();
        let mut holes = holes.peekable();
        if let Some((stream, row, (next, found))) = holes.peek() {
            if seen.is_some_and(|(was, then)| was == *stream && then == *row) {
                let cause = format!("record {next} is missing although record {found} is there");
                return Err(Error::damage("follow", format!("stream {stream}"), cause));
            }
            self.hole = Some((*stream, row.clone()));
            drop(holes);
            self.is_behind = true;
        }
        Ok(())
    }

    /// What comes next of `stream`, as far as the last look saw.
    ///
    /// # Errors
    /// `Damage`; `NotFound`.
    pub(crate) fn take(&mut self, store: &Store, stream: StreamId) -> Result<Take> {
        match self.streams.get_mut(&stream) {
            Some(following) => following.take(store, stream),
            None => Err(super::streams::unknown("follow", stream)),
        }
    }

    /// Up to where `stream` was sealed when it was last looked at.
    pub(crate) fn sealed_upto(&self, stream: StreamId) -> Sequence {
        self.streams.get(&stream).map_or(Sequence(0), |following| following.row().sealed_upto)
    }

    /// The next `records` records of `stream` were taken out of a chunk.
    pub(crate) fn advance(&mut self, stream: StreamId, records: u64) {
        if let Some(following) = self.streams.get_mut(&stream) {
            following.advance(records);
        }
    }

    /// Whether `now` is the row by which `stream` was judged last.
    pub(crate) fn is_row(&self, stream: StreamId, now: Option<&StreamRow>) -> bool {
        self.streams.get(&stream).map(Following::row) == now
    }

    /// A record that was taken could not be read, since the rows moved on.
    pub(crate) fn give_back(&mut self, stream: StreamId, sequence: Sequence) {
        if let Some(following) = self.streams.get_mut(&stream) {
            following.give_back(sequence);
        }
        // It may lie in another journal by now.
        self.journals.values_mut().for_each(Standing::begin_again);
        self.is_behind = true;
    }
}

/// The disk on which journals are read: in a single file as `snapshot` has them.
fn files_of(core: &Core, snapshot: &Arc<Snapshot>) -> Arc<dyn Disk> {
    match core.manifest.meta().single_file && Protection::FollowCommitted.is_on() {
        true => {
            let under = Arc::clone(&core.disk);
            Arc::new(BodyDisk::at(under, &core.root, &core.manifest, snapshot))
        }
        false => Arc::clone(&core.disk),
    }
}

/// Whether `owner` died, as far as anybody knows.
fn is_taken_over(snapshot: &Snapshot, owner: OwnerId) -> Result<bool> {
    let row = snapshot.get::<OwnerRow>(&owner)?;
    Ok(row.is_none_or(|row| matches!(row.ended, Some(OwnerEnd::TakenOver { .. }))))
}

fn is_set_aside(row: &JournalRow) -> bool {
    matches!(row.state, JournalState::SetAside { .. })
}

impl Store {
    /// How often something was written or committed in this process so far.
    pub(crate) fn rings(&self) -> u64 {
        self.core().bell.rings()
    }

    /// The end of `stream`, if it is in memory here.
    pub(crate) fn cursor_of(&self, stream: StreamId) -> Option<Cursor> {
        let ends = self.inner.writer.as_ref()?.streams.lock();
        let end = ends.get(stream)?;
        Some(Cursor { stream, generation: end.generation, end: end.next() })
    }

    /// Waits until more was, `most` at most.
    pub(crate) fn wait_for_ring(&self, heard: u64, most: std::time::Duration) {
        self.core().bell.wait(heard, most);
    }
}
