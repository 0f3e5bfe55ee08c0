//! Group commit over any peer, as sealstone does it itself: whoever waits first appends for all.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use super::Peer;
use crate::Outcome;
use crate::payload::Source;

pub struct Group {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Absent while a leader has it.
    peer: Option<Box<dyn Peer>>,
    waiting: VecDeque<Vec<u8>>,
    /// Records taken in so far, and how many of them keep the promise.
    accepted: u64,
    kept: u64,
    failed: Option<String>,
}

struct Run {
    from: u64,
    records: VecDeque<Vec<u8>>,
}

impl Source for Run {
    fn record(&mut self, number: u64) -> &[u8] {
        &self.records[(number - self.from) as usize]
    }
}

impl Group {
    pub fn new(peer: Box<dyn Peer>) -> Self {
        let waiting = VecDeque::new();
        let state = State { peer: Some(peer), waiting, accepted: 0, kept: 0, failed: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Takes a record in; its number.
    pub fn submit(&self, record: &[u8]) -> u64 {
        let mut state = self.lock();
        state.waiting.push_back(record.to_vec());
        state.accepted += 1;
        state.accepted - 1
    }

    /// Returns when the promise is kept for the record `number`.
    pub fn wait(&self, number: u64) -> Outcome<()> {
        let mut state = self.lock();
        loop {
            if let Some(failed) = &state.failed {
                return Err(failed.clone().into());
            }
            if number < state.kept {
                return Ok(());
            }
            let Some(mut peer) = state.peer.take() else {
                state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
                continue;
            };
            let from = state.kept;
            let mut run = Run { from, records: std::mem::take(&mut state.waiting) };
            drop(state);
            let upto = from + run.records.len() as u64;
            let appended = peer.append(from..upto, &mut run);
            state = self.lock();
            state.peer = Some(peer);
            match appended {
                Ok(()) => state.kept = upto,
                Err(e) => state.failed = Some(e.to_string()),
            }
            self.changed.notify_all();
        }
    }

    /// The peer, when all is done.
    pub fn into_peer(self) -> Option<Box<dyn Peer>> {
        self.state.into_inner().unwrap_or_else(|e| e.into_inner()).peer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}
