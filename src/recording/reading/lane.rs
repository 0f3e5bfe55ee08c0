//! One stream of a recording that is followed: what was told of it, and what was read ahead.

use std::collections::VecDeque;
use std::sync::Arc;

use super::follow_chunk::payloads;
use super::followed::{Followed, FollowedRecord};
use crate::engine::{Follower, Store, Take};
use crate::error::{Error, Result};
use crate::format::column::Schema;
use crate::ids::{Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{ChunkRow, Reading, StreamRow};
use crate::protection::Protection;

#[derive(Debug)]
pub(super) struct Lane {
    pub id: StreamId,
    name: Arc<str>,
    schema: Arc<Schema>,
    /// The next record to tell.
    told: u64,
    sealed_told: u64,
    ahead: VecDeque<FollowedRecord>,
    /// Nothing more comes before another look.
    is_dry: bool,
}

impl Lane {
    pub fn new(id: StreamId, row: &StreamRow) -> Result<Self> {
        Ok(Self {
            id,
            name: Arc::from(row.name.as_str()),
            schema: Arc::new(Schema::from_bytes(&row.schema)?),
            told: 0,
            sealed_told: 0,
            ahead: VecDeque::new(),
            is_dry: true,
        })
    }

    /// A look may have brought something.
    pub fn looked(&mut self) {
        self.is_dry = false;
    }

    /// The iteration of the next record.
    pub fn head(&self) -> Option<i64> {
        self.ahead.front().map(FollowedRecord::iteration)
    }

    /// The next record, which counts as told.
    pub fn pop(&mut self) -> Option<Followed> {
        let record = self.ahead.pop_front()?;
        self.told = record.sequence() + 1;
        Some(Followed::Appended { stream: Arc::clone(&self.name), record })
    }

    /// What was sealed of what was told, if that was not told yet.
    pub fn sealed(&mut self, follower: &Follower) -> Option<Followed> {
        let upto = follower.sealed_upto(self.id).0;
        if upto <= self.sealed_told || self.told < upto {
            return None;
        }
        self.sealed_told = upto;
        Some(Followed::Sealed { stream: Arc::clone(&self.name), upto })
    }

    /// Reads ahead, unless something is at hand. Returns what is to be told before anything else.
    pub fn fill(
        &mut self,
        store: &Store,
        follower: &mut Follower,
        held_bytes: u64,
    ) -> Result<Option<Followed>> {
        while self.ahead.is_empty() && !self.is_dry {
            match follower.take(store, self.id)? {
                Take::Rewound { to } => {
                    if let Some(told) = self.rewound(to) {
                        return Ok(Some(told));
                    }
                }
                Take::Record { sequence, payload } => {
                    self.take_record(store, follower, sequence, &payload)?;
                }
                Take::InChunk { chunk, at, from } => {
                    let place = format!("stream {:?} chunk {at}", self.name);
                    match payloads(store, &place, &self.schema, &chunk, from, held_bytes) {
                        Ok(found) => self.take_all(follower, from, found)?,
                        // The rows may have moved on under us: it is damage only if they did not.
                        Err(e) => {
                            let now = store.snapshot()?.get::<ChunkRow>(&(self.id, at))?;
                            if now.as_ref() == Some(&chunk) {
                                return Err(e);
                            }
                            self.moved(follower);
                        }
                    }
                }
                Take::Moved => self.moved(follower),
                Take::Nothing => self.is_dry = true,
            }
        }
        Ok(None)
    }

    /// The rows moved on since they were looked at: what comes next is not known before the next
    /// look, and least of all that nothing does.
    fn moved(&mut self, follower: &mut Follower) {
        self.is_dry = true;
        if Protection::FollowMoved.is_on() {
            follower.look_again();
        }
    }

    fn rewound(&mut self, to: Sequence) -> Option<Followed> {
        if to.0 >= self.told {
            return None;
        }
        self.told = to.0;
        self.sealed_told = self.sealed_told.min(to.0);
        let rewound = Followed::Rewound { stream: Arc::clone(&self.name), to: to.0 };
        Protection::RewindTold.is_on().then_some(rewound)
    }

    fn take_all(
        &mut self,
        follower: &mut Follower,
        from: Sequence,
        found: Vec<Vec<u8>>,
    ) -> Result<()> {
        follower.advance(self.id, found.len() as u64);
        for (payload, sequence) in found.into_iter().zip(from.0..) {
            self.push(sequence, Arc::from(payload))?;
        }
        Ok(())
    }

    fn take_record(
        &mut self,
        store: &Store,
        follower: &mut Follower,
        sequence: Sequence,
        payload: &Payload,
    ) -> Result<()> {
        let bytes = match payload {
            Payload::Inline(bytes) => Arc::from(&**bytes),
            Payload::Object { .. } => match store.payload_bytes(payload) {
                Ok(bytes) => Arc::from(bytes),
                // Its object went with the journal's name for it: it is in a chunk, or cut away.
                Err(e) => {
                    let now = store.snapshot()?.get::<StreamRow>(&self.id)?;
                    if follower.is_row(self.id, now.as_ref()) {
                        return Err(e);
                    }
                    follower.give_back(self.id, sequence);
                    self.moved(follower);
                    return Ok(());
                }
            },
        };
        self.push(sequence.0, bytes)
    }

    fn push(&mut self, sequence: u64, payload: Arc<[u8]>) -> Result<()> {
        let record = FollowedRecord::new(&self.name, &self.schema, sequence, payload)?;
        let next = self.ahead.back().map_or(self.told, |last| last.sequence() + 1);
        if record.sequence() != next {
            let cause = format!("record {sequence} came where {next} was to come");
            return Err(Error::damage("follow", format!("stream {:?}", self.name), cause));
        }
        self.ahead.push_back(record);
        Ok(())
    }
}
