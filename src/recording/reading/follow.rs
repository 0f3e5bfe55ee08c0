//! Following a recording while it is written, from any process: each record once, in order.
//!
//! ```text
//!   poll: what was read ahead -> [dry] look -> records of all streams, in the order of iterations
//!   next_event: poll, and where nothing came wait and poll again
//! ```
//! Nobody tells another process that something came, so waiting is polling, in pauses from 1 ms to
//! 100 ms; in the process that writes a pause ends when something was written or committed.

use std::collections::VecDeque;
use std::time::Duration;

use super::followed::Followed;
use super::lane::Lane;
use crate::engine::{FollowLevel, Follower, Store, pause};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EventId, RecordingId, StoreId};
use crate::manifest::{Reading, RecordingNameRow, RecordingRow, RecordingStatus, StreamRow};
use crate::recording::keeping::{Event, events_from};

const PAUSE_MILLIS_MIN: u64 = 1;
const PAUSE_MILLIS_MAX: u64 = 100;
/// Records read ahead, all streams together.
const AHEAD_BYTES: u64 = 32 << 20;
/// One stream's share is at least this, and at most that.
const SHARE_BYTES: std::ops::RangeInclusive<u64> = (4 << 10)..=(2 << 20);
/// Looks of one poll that found nothing to tell and said that there is more.
const LOOKS_MAX: usize = 64;

/// A recording that is followed: `for event in store.follow("run")? { .. }`.
///
/// The iterator waits for what comes next, and ends behind [`Followed::Ended`] or an error. A process
/// that was killed ends nothing: its recording is still *running*, and may be resumed.
#[derive(Debug)]
pub struct Follow {
    store: Store,
    at: PausedFollow,
}

/// Where a follower stands, without a store: [`PausedFollow::over`] goes on.
#[derive(Debug)]
pub struct PausedFollow {
    of: StoreId,
    id: RecordingId,
    name: String,
    follower: Follower,
    lanes: Vec<Lane>,
    status: RecordingStatus,
    /// What is told before any record.
    first: VecDeque<Followed>,
    events: VecDeque<Event>,
    /// `None` when there can be no further one.
    next_event: Option<EventId>,
    is_over: bool,
}

impl Store {
    /// Follows the recording called `name` from its first record on, at [`FollowLevel::Written`].
    ///
    /// What is shown at that level may be taken back by a power cut, or when another process takes
    /// over what its writer had: [`Followed::Rewound`] says so.
    ///
    /// A store whose writer was killed opens for reading as a copy that keeps writers out
    /// ([`Info::is_recovered_copy`](crate::engine::Info)): let go of it with [`Follow::pause`], and go on
    /// over a new opening with [`PausedFollow::over`].
    ///
    /// # Errors
    /// `NotFound`; `Damage`.
    pub fn follow(&self, name: &str) -> Result<Follow> {
        self.follow_at(name, FollowLevel::default())
    }

    /// As [`Store::follow`], and shows a record once it is as safe as `level` says.
    ///
    /// # Errors
    /// As [`Store::follow`].
    pub fn follow_at(&self, name: &str, level: FollowLevel) -> Result<Follow> {
        let snapshot = self.snapshot()?;
        let Some(named) = snapshot.get::<RecordingNameRow>(&name.to_owned())? else {
            let cause = "there is no recording of this name";
            return Err(Error::new(ErrorKind::NotFound, "follow", format!("{name:?}"), cause));
        };
        let row = snapshot.require::<RecordingRow>(&named.recording)?;
        drop(snapshot);
        let at = PausedFollow {
            of: self.id(),
            id: named.recording,
            name: name.to_owned(),
            follower: Follower::new(level),
            lanes: Vec::new(),
            status: RecordingStatus::Running,
            first: VecDeque::new(),
            events: VecDeque::new(),
            next_event: Some(EventId(0)),
            is_over: false,
        };
        let mut follow = Follow { store: self.clone(), at };
        follow.add_streams(&row)?;
        Ok(follow)
    }
}

impl Follow {
    /// Lets go of the store, and keeps where it stands.
    pub fn pause(self) -> PausedFollow {
        self.at
    }

    /// The recording's name.
    pub fn name(&self) -> &str {
        &self.at.name
    }

    /// Whether the end was told, or the iterator gave an error: nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.at.is_over
    }

    /// What comes next, if it is there by now; `None` also when it [is over](Follow::is_over). What a call costs follows what is new, not how long
    /// the recording is.
    ///
    /// # Errors
    /// `NotFound` when the recording was retired; `Damage` only where rows and bytes contradict each
    /// other and stay so; `Io`. The same call may be made again.
    pub fn poll(&mut self) -> Result<Option<Followed>> {
        for _ in 0..LOOKS_MAX {
            if self.at.is_over {
                return Ok(None);
            }
            if let Some(told) = self.at_hand()? {
                return Ok(Some(told));
            }
            self.look()?;
            if let Some(told) = self.at_hand()? {
                return Ok(Some(told));
            }
            if !self.at.follower.is_behind() {
                return Ok(self.ended());
            }
        }
        Ok(None)
    }

    /// What comes next; waits for it, `timeout` at most. `None` when nothing came in time, and also,
    /// at once, when it [is over](Follow::is_over).
    ///
    /// # Errors
    /// As [`Follow::poll`].
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<Followed>> {
        let disk = self.store.disk();
        let (began, most) = (disk.monotonic_nanos(), timeout.as_nanos());
        let mut millis = PAUSE_MILLIS_MIN;
        loop {
            let heard = self.store.rings();
            if let Some(told) = self.poll()? {
                return Ok(Some(told));
            }
            let waited = u128::from(disk.monotonic_nanos().saturating_sub(began));
            if self.at.is_over || waited >= most {
                return Ok(None);
            }
            let left = Duration::from_nanos(u64::try_from(most - waited).unwrap_or(u64::MAX));
            self.store.wait_for_ring(heard, left.min(Duration::from_millis(millis)));
            millis = (millis * 2).min(PAUSE_MILLIS_MAX);
        }
    }

    /// What was read ahead; the stream of the lowest iteration first, and an event behind the records
    /// of its iteration.
    fn at_hand(&mut self) -> Result<Option<Followed>> {
        let share = AHEAD_BYTES / (self.at.lanes.len().max(1) as u64);
        let share = share.clamp(*SHARE_BYTES.start(), *SHARE_BYTES.end());
        for lane in &mut self.at.lanes {
            if self.at.first.is_empty() {
                self.at.first.extend(lane.sealed(&self.at.follower));
            }
            while self.at.first.is_empty()
                && let Some(told) = lane.fill(&self.store, &mut self.at.follower, share)?
            {
                self.at.first.push_back(told);
            }
        }
        if let Some(told) = self.at.first.pop_front() {
            return Ok(Some(told));
        }
        let heads = self.at.lanes.iter().enumerate();
        let next = heads.filter_map(|(at, lane)| lane.head().map(|head| (head, at))).min();
        let is_due = |event: &Event| next.is_none_or(|(head, _)| event.iteration() < Some(head));
        if self.at.events.front().is_some_and(is_due) {
            return Ok(self.at.events.pop_front().map(Followed::Event));
        }
        Ok(next.and_then(|(_, at)| self.at.lanes.get_mut(at)?.pop()))
    }

    fn look(&mut self) -> Result<()> {
        let retired = |cause: Error| {
            let why = "it was retired while it was followed";
            Error::new(ErrorKind::NotFound, "follow", format!("{:?}", self.at.name), why)
                .with_source(cause)
        };
        let snapshot = match self.at.follower.look(&self.store) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(retired(e)),
            looked => looked?,
        };
        let Some(row) = snapshot.get::<RecordingRow>(&self.at.id)? else {
            let cause = "the manifest does not have it any more";
            let place = format!("recording {}", self.at.id);
            return Err(retired(Error::new(ErrorKind::NotFound, "follow", place, cause)));
        };
        let found = match self.at.next_event {
            Some(next) => events_from(&snapshot, self.at.id, next)?,
            None => Vec::new(),
        };
        drop(snapshot);
        if let Some(last) = found.last() {
            self.at.next_event = last.id().next();
        }
        self.at.events.extend(found);
        self.add_streams(&row)?;
        self.at.status = row.status;
        self.at.lanes.iter_mut().for_each(Lane::looked);
        Ok(())
    }

    /// Streams may come to a recording in bulk.
    fn add_streams(&mut self, row: &RecordingRow) -> Result<()> {
        if row.streams.len() == self.at.lanes.len() {
            return Ok(());
        }
        let snapshot = self.store.snapshot()?;
        for id in row.streams.iter().skip(self.at.lanes.len()) {
            self.at.lanes.push(Lane::new(*id, &snapshot.require::<StreamRow>(id)?)?);
            self.at.follower.add(*id);
            self.at.follower.look_again();
        }
        Ok(())
    }

    /// Nothing came, and all was looked at.
    fn ended(&mut self) -> Option<Followed> {
        if self.at.status == RecordingStatus::Running {
            return None;
        }
        self.at.is_over = true;
        Some(Followed::Ended(self.at.status.clone()))
    }
}

impl PausedFollow {
    /// Waits for `most`: a process that is to write gets the store meanwhile.
    pub fn wait(&self, most: Duration) {
        pause(most);
    }

    /// Goes on from where it stands over an opening of the same store, in this process or whichever
    /// holds it now. One that was over looks again: a recording that was resumed since goes on, and
    /// of one that was not the end is told once more.
    ///
    /// # Errors
    /// `Foreign` for another store.
    pub fn over(self, store: &Store) -> Result<Follow> {
        if store.id() != self.of {
            let cause = format!("it is store {}, not {}", store.id(), self.of);
            return Err(Error::new(ErrorKind::Foreign, "follow", store.path().display(), cause));
        }
        Ok(Follow { store: store.clone(), at: Self { is_over: false, ..self } })
    }
}

impl Iterator for Follow {
    type Item = Result<Followed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.at.is_over {
            match self.next_event(Duration::MAX) {
                Ok(Some(told)) => return Some(Ok(told)),
                Ok(None) => {}
                Err(e) => {
                    self.at.is_over = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}
