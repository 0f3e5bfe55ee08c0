//! Group commit without a thread: whoever waits first becomes the leader who writes and syncs for all.

use parking_lot::MutexGuard;

use crate::error::{Error, ErrorKind, Result};

use super::append::Journal;
use super::open_file::Failure;
use super::queue::{Queue, Standing};
use super::seats::Seats;
use super::ticket::Level;
use super::waiters::{Calls, Told, Waiters};
use super::writer::Writer;

pub(super) struct State {
    pub queue: Queue,
    /// Absent while a leader has it.
    pub writer: Option<Box<Writer>>,
    /// A leader panicked: the writer never comes back.
    pub is_writer_lost: bool,
    pub poison: Option<Error>,
    pub closed: bool,
    /// Threads that wait.
    pub waiters: Waiters,
    /// Futures that wait.
    pub seats: Seats,
    /// How many steps failed, and the last of them that did.
    failures: u64,
    failure: Option<Failed>,
}

/// A step that failed and may be tried again.
struct Failed {
    /// It was about frames up to this position...
    upto: u64,
    /// ...that had not come further than this.
    standing: Standing,
    error: Error,
}

/// Poisons the journal when a leader unwinds, so that nobody waits for it.
struct Leadership<'a> {
    journal: &'a Journal,
    ended: bool,
}

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let cause = "a panic interrupted the writer";
            let place = self.journal.config.root.display();
            self.journal.state.lock().is_writer_lost = true;
            self.journal.poison(Error::new(ErrorKind::Halted, "append to", place, cause));
        }
    }
}

impl Journal {
    /// Waits for a leader to bring the frame to `level`, or leads.
    pub(super) fn drive<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        position: u64,
        level: Level,
    ) -> Result<()> {
        let (level, failures) = (self.raised(level), state.failures);
        loop {
            if let Some(outcome) = state.outcome(position, level, failures) {
                return outcome;
            }
            state = match state.writer.take() {
                Some(writer) => self.lead(state, writer, Some(position), level),
                None => {
                    let waiter = state.waiters.enter(position, level, failures);
                    drop(state);
                    if waiter.wait() == Told::Reached {
                        return Ok(());
                    }
                    self.state.lock()
                }
            };
        }
    }

    /// Writes all that is queued, and syncs if the leader asked for it: for its own frame, or for
    /// any that a future waits for, whatever became of what was to be written.
    pub(super) fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut writer: Box<Writer>,
        position: Option<u64>,
        level: Level,
    ) -> MutexGuard<'a, State> {
        let run = state.queue.begin_run();
        drop(state);
        let mut leadership = Leadership { journal: self, ended: false };
        let last = run.last().map_or(0, |frame| frame.position);
        let done = writer.append(&run);
        drop(run);

        let mut state = self.state.lock();
        state.queue.end_run(done.written, done.begun);
        state.queue.synced(writer.synced_position());
        state.note(done.failure, last, Standing::Begun);
        let is_mine = position.is_some_and(|at| state.queue.standing(at) == Standing::Written);
        let wanted = level == Level::Durable && (is_mine || state.is_sync_wanted());
        if wanted && state.poison.is_none() {
            let written = state.queue.last_unsynced().unwrap_or_default();
            // Whoever asked for less need not wait for the sync.
            self.ring(&mut state);
            drop(state);
            let result = writer.sync();
            state = self.state.lock();
            let synced = result.is_ok();
            state.queue.synced(writer.synced_position());
            state.note(result.err(), written, Standing::Written);
            // The frames of whoever leads next state it too.
            if synced && !state.is_run_due() {
                drop(state);
                writer.state_synced();
                state = self.state.lock();
            }
        }
        leadership.ended = true;
        state.writer = Some(writer);
        self.ring(&mut state);
        state
    }

    /// Leads once for something else than frames.
    pub(super) fn led<T>(&self, work: impl FnOnce(&mut Writer) -> Result<T, Failure>) -> Result<T> {
        let mut state = self.state.lock();
        let mut writer = loop {
            if let Some(root) = &state.poison {
                return Err(root.clone().as_kind(ErrorKind::Halted));
            }
            match state.writer.take() {
                Some(writer) => break writer,
                None => self.changed.wait(&mut state),
            }
        };
        drop(state);
        let mut leadership = Leadership { journal: self, ended: false };
        let result = work(&mut writer);
        let mut state = self.state.lock();
        leadership.ended = true;
        state.queue.synced(writer.synced_position());
        state.writer = Some(writer);
        let result = result.map_err(|failure| {
            state.note(Some(failure.clone()), 0, Standing::Queued);
            match failure {
                Failure::Again(error) => error,
                Failure::Fatal(error) => error.as_kind(ErrorKind::OutcomeUnknown),
            }
        });
        self.ring(&mut state);
        result
    }
}

impl Failed {
    fn meets(&self, position: u64, standing: Standing) -> bool {
        position <= self.upto && standing <= self.standing
    }
}

impl State {
    pub fn new(writer: Writer) -> Self {
        Self {
            queue: Queue::default(),
            writer: Some(Box::new(writer)),
            is_writer_lost: false,
            poison: None,
            closed: false,
            waiters: Waiters::default(),
            seats: Seats::default(),
            failures: 0,
            failure: None,
        }
    }

    /// Whether somebody waits who will write at once what is queued.
    fn is_run_due(&self) -> bool {
        !self.waiters.is_empty() && self.queue.last_unwritten().is_some()
    }

    /// Takes the threads that can be told something, and one to lead where nobody does.
    pub(super) fn take_calls(&mut self) -> Calls {
        let mut waiters = std::mem::take(&mut self.waiters);
        let mut calls = waiters.take_told(|position, level, failures| {
            self.outcome(position, level, failures).map(|outcome| match outcome {
                Ok(()) => Told::Reached,
                Err(_) => Told::Look,
            })
        });
        if self.writer.is_some() {
            waiters.take_next(&mut calls);
        }
        self.waiters = waiters;
        calls
    }

    /// Fails unless frames are taken in.
    pub fn check_intake(&self) -> Result<()> {
        if let Some(root) = &self.poison {
            return Err(root.clone().as_kind(ErrorKind::Halted));
        }
        if self.closed {
            let cause = "it was finished";
            return Err(Error::new(ErrorKind::Closed, "append", "journal", cause));
        }
        Ok(())
    }

    /// The last failure, if a step failed since so many had.
    pub fn failure_since(&self, failures: u64) -> Option<Error> {
        let failed = self.failure.as_ref().filter(|_| self.failures > failures);
        failed.map(|failed| failed.error.clone())
    }

    /// How many steps have failed so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// What to tell one who waits for a frame since so many steps had failed; nothing yet.
    pub fn outcome(&self, position: u64, level: Level, failures: u64) -> Option<Result<()>> {
        let standing = self.queue.standing(position);
        match (standing, level) {
            (Standing::Durable, _) => return Some(Ok(())),
            (_, Level::Accepted) => return Some(Ok(())),
            (Standing::Written, Level::Written) if self.poison.is_none() => return Some(Ok(())),
            _ => {}
        }
        if let Some(root) = &self.poison {
            // P8: what is unknown is called unknown.
            let unknown = standing != Standing::Queued;
            let kind = if unknown { ErrorKind::OutcomeUnknown } else { ErrorKind::Halted };
            return Some(Err(root.clone().as_kind(kind)));
        }
        match &self.failure {
            Some(failed) if self.failures > failures && failed.meets(position, standing) => {
                Some(Err(failed.error.clone()))
            }
            _ => None,
        }
    }

    fn note(&mut self, failure: Option<Failure>, upto: u64, standing: Standing) {
        match failure {
            None => {}
            Some(Failure::Again(error)) => {
                self.failures += 1;
                self.failure = Some(Failed { upto, standing, error });
            }
            // P8, G14: the first cause is what everybody is told from now on.
            Some(Failure::Fatal(error)) => drop(self.poison.get_or_insert(error)),
        }
    }
}
