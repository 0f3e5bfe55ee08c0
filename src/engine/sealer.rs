//! The bulk path with the disk kept busy: while one chunk is being synced another one is hashed and
//! written, and whatever is sealed is published together, in the order in which it was pushed.
//!
//! ```text
//!   push --> waiting --[a worker: seal]--> ready --[the worker that finds its turn: publish]--> rows
//!                 \--[anything fails]--> nothing pushed later is published
//! ```
//! P3 holds as for `publish_chunks`: the same two halves, run by more threads.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::publish::{ChunkBuild, Planning, Sealing};
use super::store::Store;
use super::worker::Crew;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Sequence, StreamId};
use crate::protection::Protection;

/// Content pushed and not yet published; one chunk may pass it alone.
const IN_FLIGHT_BYTES_MAX: u64 = 32 << 20;
/// One writes, one syncs, one hashes or commits.
const WORKERS: usize = 3;

/// Seals and publishes chunks behind its caller's back. See [`Store::sealer`].
#[derive(Debug)]
pub struct Sealer {
    shared: Arc<Shared>,
    /// Up to where each stream was pushed.
    reached: BTreeMap<StreamId, Sequence>,
    /// Absent where the store's threads may not run: then each push publishes.
    crew: Option<Crew>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    state: Mutex<State>,
    changed: Condvar,
    /// Off for a mutant only.
    in_order: bool,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(u64, Planning)>,
    ready: BTreeMap<u64, (u64, Sealing)>,
    /// Pushed, and published, so far: the next turn is the number of those published.
    pushed: u64,
    published: u64,
    in_flight_bytes: u64,
    is_publishing: bool,
    is_over: bool,
    failure: Option<Error>,
}

impl Store {
    /// Begins to publish chunks from several threads of the store, at most 32 MiB of them at a time.
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`, `Halted`; `Io` when no thread can be started.
    pub fn sealer(&self) -> Result<Sealer> {
        self.writer("seal")?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let in_order = Protection::SealerOrder.is_on();
        let shared = Arc::new(Shared { store: self.clone(), state, changed, in_order });
        let crew = match self.core().limits.background {
            true => {
                let theirs = Arc::clone(&shared);
                Some(Crew::start("sealstone-seal", WORKERS, move || theirs.work())?)
            }
            false => None,
        };
        Ok(Sealer { shared, reached: BTreeMap::new(), crew })
    }
}

impl Sealer {
    /// Hands over the next chunk, which follows what was pushed of its stream before. Waits while
    /// too much is under way.
    ///
    /// # Errors
    /// As [`Store::publish_chunks`]; also of a chunk that was pushed earlier, and then nothing that
    /// came behind it is published, now or later.
    ///
    /// # Durability
    /// None: [`barrier`](Self::barrier) gives it. What is published at a crash is a prefix.
    pub fn push(&mut self, build: ChunkBuild) -> Result<()> {
        self.shared.store.core().check_intake("seal")?;
        let bytes = build.content.len() as u64;
        {
            let mut state = self.shared.state.lock();
            let is_full = |state: &State| {
                state.in_flight_bytes > 0 && state.in_flight_bytes + bytes > IN_FLIGHT_BYTES_MAX
            };
            self.shared.wait_while(&mut state, is_full)?;
        }
        let (stream, before) = (build.stream, self.reached.get(&build.stream).copied());
        let planned = self.shared.store.plan_chunks(vec![build], &mut self.reached);
        let planning = planned.inspect_err(|_| {
            // It was not taken in: the next one stands in its place.
            self.reached.insert(stream, before.unwrap_or_default());
        })?;
        let mut state = self.shared.state.lock();
        state.in_flight_bytes += bytes;
        let turn = state.pushed;
        state.pushed += 1;
        if self.crew.is_some() {
            state.waiting.push_back((turn, planning));
            self.shared.changed.notify_all();
            return Ok(());
        }
        drop(self.shared.seal(state, turn, planning));
        self.shared.state.lock().check()
    }

    /// Chunks published so far: those that were pushed first.
    pub fn published(&self) -> u64 {
        self.shared.state.lock().published
    }

    /// Returns when everything pushed before is published.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Durability
    /// When it returns, records, descriptors and bytes are durable.
    pub fn barrier(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        self.shared.wait_while(&mut state, |state| state.published < state.pushed)
    }

    /// As [`barrier`](Self::barrier), and ends; how many chunks were published.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    ///
    /// # Durability
    /// When it returns, records, descriptors and bytes are durable.
    pub fn finish(self) -> Result<u64> {
        self.barrier()?;
        Ok(self.published())
    }
}

impl Drop for Sealer {
    /// What no worker has begun is given up; what is under way comes to its end.
    fn drop(&mut self) {
        let given_up = {
            let mut state = self.shared.state.lock();
            state.is_over = true;
            std::mem::take(&mut state.waiting)
        };
        drop(given_up);
        self.shared.changed.notify_all();
        if let Some(crew) = self.crew.take() {
            crew.join();
        }
    }
}

/// Tells everybody when a worker unwinds, so that nobody waits for it.
struct Alive<'a>(&'a Shared);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        let cause = "a panic interrupted the worker";
        let mut state = self.0.state.lock();
        if !state.is_over {
            state.is_publishing = false;
            state.failure.get_or_insert(Error::new(ErrorKind::Halted, "seal", "chunk", cause));
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let _alive = Alive(self);
        let mut state = self.state.lock();
        loop {
            if let Some((turn, planning)) = state.waiting.pop_front() {
                state = self.seal(state, turn, planning);
            } else if state.is_over {
                return;
            } else {
                self.changed.wait(&mut state);
            }
        }
    }

    /// Waits while `is_open`. After a failure it waits for what is being published, and tells it.
    fn wait_while(
        &self,
        state: &mut MutexGuard<'_, State>,
        is_open: impl Fn(&State) -> bool,
    ) -> Result<()> {
        while if state.failure.is_some() { state.is_publishing } else { is_open(state) } {
            self.changed.wait(state);
        }
        state.check()
    }

    /// Seals one chunk, then publishes whatever has its turn.
    fn seal<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        turn: u64,
        planning: Planning,
    ) -> MutexGuard<'a, State> {
        let bytes = planning.bytes();
        drop(state);
        let sealed = self.store.seal_planned(planning);
        let mut state = self.state.lock();
        match sealed {
            Ok(sealing) => drop(state.ready.insert(turn, (bytes, sealing))),
            Err(e) => return self.fail(state, e),
        }
        while let Some((count, bytes, sealing)) = state.take_turn(self.in_order) {
            drop(state);
            let published = sealing.publish();
            state = self.state.lock();
            state.is_publishing = false;
            self.changed.notify_all();
            match published {
                Ok(_) => {
                    state.published += count;
                    state.in_flight_bytes -= bytes;
                }
                Err(e) => return self.fail(state, e),
            }
        }
        state
    }

    fn fail<'a>(&'a self, mut state: MutexGuard<'a, State>, e: Error) -> MutexGuard<'a, State> {
        state.failure.get_or_insert(e);
        let given_up = (std::mem::take(&mut state.waiting), std::mem::take(&mut state.ready));
        drop(state);
        // Takes away their files: not under the lock.
        drop(given_up);
        self.changed.notify_all();
        self.state.lock()
    }
}

impl State {
    fn check(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Everything that follows what is published, as one: how many chunks, their bytes, and they.
    fn take_turn(&mut self, in_order: bool) -> Option<(u64, u64, Sealing)> {
        if self.is_publishing || self.failure.is_some() {
            return None;
        }
        let next = if in_order { self.published } else { *self.ready.keys().next()? };
        let (mut bytes, mut all) = self.ready.remove(&next)?;
        let mut count = 1;
        while let Some((more, later)) = self.ready.remove(&(next + count)) {
            all.join(later);
            bytes += more;
            count += 1;
        }
        self.is_publishing = true;
        Some((count, bytes, all))
    }
}
