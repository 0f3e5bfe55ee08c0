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
//! Records of a generation that these do not know yet wait.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use super::follow_stream::{Following, Take};
use super::recover::in_order;
use super::store::Store;
use super::view::{expect, is_missing};
use crate::error::{Error, Result};
use crate::format::layout;
use crate::ids::{OwnerId, Sequence, StreamId};
use crate::journal::{ReadOn, Record, Stopped};
use crate::manifest::{Cursor, JournalRow, JournalState, Reading, Snapshot, StreamRow};

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

/// Where it stands in one journal.
#[derive(Debug, Default)]
struct Standing {
    at: ReadOn,
    /// Groups that are not known to be durable, with the ends of their frames, where that is asked.
    unsynced: VecDeque<(u64, Vec<Record>)>,
    unsynced_bytes: u64,
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
            self.journals.clear();
            Following::default()
        });
    }

    /// Whether another look at once would find more.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Reads what is new, and returns the rows by which it was judged.
    ///
    /// # Errors
    /// `NotFound` when a stream is gone; `Damage` only where the row is unchanged; `Io`.
    pub(crate) fn look(&mut self, store: &Store) -> Result<Snapshot> {
        let before = store.core().snapshot()?;
        let mut journals = self.journals_of(&before)?;
        self.see_rows(&before)?;
        drop(before);
        let refused = self.read_on(store, &journals)?;
        let mut now = store.core().snapshot()?;
        let mut is_whole = refused.is_empty();
        // G3: published, moved back or rolled over since the first look: the rest of an observation
        // that the rows already show may have come to a journal behind our back.
        if self.see_rows(&now)? || !is_whole {
            journals = self.journals_of(&now)?;
            let again = self.read_on(store, &journals)?;
            is_whole = again.is_empty();
            if !is_whole {
                now = store.core().snapshot()?;
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

    /// Reads on in every journal; returns those that do not read as their rows say.
    fn read_on(&mut self, store: &Store, journals: &Journals) -> Result<Vec<Refused>> {
        let core = store.core();
        let mut refused = Vec::new();
        // Gone: all that counts of it is in chunks.
        self.journals.retain(|key, _| journals.iter().any(|(listed, _)| listed == key));
        self.is_behind = false;
        for (key, row) in journals {
            let mut standing = self.journals.remove(key).unwrap_or_default();
            let path = layout::journal(&core.root, key.0, key.1);
            let expected = expect(core, key.0, key.1, row);
            let stopped = standing.at.read_on(&*core.disk, &path, &expected, &mut |at, group| {
                if self.level == FollowLevel::Durable {
                    standing.unsynced_bytes += held_bytes(&group);
                    standing.unsynced.push_back((at.end, group));
                } else {
                    self.take_in(group);
                }
                Ok(match self.is_full(standing.unsynced_bytes) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
            });
            let synced_up_to = standing.at.synced_up_to;
            while standing.unsynced.front().is_some_and(|(end, _)| *end <= synced_up_to) {
                let Some((_, group)) = standing.unsynced.pop_front() else { break };
                standing.unsynced_bytes -= held_bytes(&group);
                self.take_in(group);
            }
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

    /// The next `rows` records of `stream` were taken out of a chunk.
    pub(crate) fn advance(&mut self, stream: StreamId, rows: u64) {
        if let Some(following) = self.streams.get_mut(&stream) {
            following.advance(rows);
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
    }
}

fn held_bytes(group: &[Record]) -> u64 {
    group.iter().map(|record| record.payload.held_bytes()).sum()
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
