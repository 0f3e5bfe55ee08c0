//! What an owner does in one step, and what it must be answered.

use std::sync::Arc;

use super::world::{Stage, enter};
use crate::campaign::content::encode_record;
use crate::campaign::finding::Rule;
use crate::campaign::model::Bytes;
use crate::campaign::play::root;
use crate::engine::{Append, Budget, ChunkBuild, Store, Thing};
use crate::error::{Error, ErrorKind, Result};
use crate::format::layout;
use crate::ids::{LeaseId, StreamId};
use crate::journal::Level;
use crate::vfs::Disk;

/// One step of `who`; `inside` an operation of the other it may also be the other's death.
pub(super) fn step(stage: &Stage, who: usize, inside: bool) {
    let (store, life, act) = {
        let mut world = stage.lock();
        let Some(store) = world.actors[who].store.clone() else { return };
        (store, world.actors[who].life, world.rng.below(if inside { 21 } else { 20 }))
    };
    let mut actor = Acting { stage, who, life, store, inside };
    match act {
        0..6 => actor.append(),
        6 => actor.written(),
        7..9 => actor.durable(),
        9..11 => actor.seal(),
        11..13 => actor.publish(),
        13 => actor.release(),
        14 => actor.put(),
        15 => actor.retire(),
        16 => actor.reclaim(),
        17 => actor.take_over(),
        18 if inside => actor.durable(),
        18 => actor.reopen(),
        19 if inside => actor.reclaim(),
        19 => actor.lose_a_lock(),
        _ => kill(stage, 1 - who),
    }
    // Killed every now and then.
    let dies = !inside && stage.lock().rng.one_in(9);
    if dies {
        kill(stage, who);
    }
    let dead: Vec<usize> = (0..2).filter(|who| stage.lock().actors[*who].store.is_none()).collect();
    if !inside {
        dead.into_iter().for_each(|who| enter(stage, who));
    }
}

/// The process of `who` ends without a word.
fn kill(stage: &Stage, who: usize) {
    let dead = {
        let mut world = stage.lock();
        let life = world.actors[who].life;
        let dead = std::mem::take(&mut world.actors[who]);
        world.actors[who].life = life + 1;
        if let Some(disk) = &dead.disk {
            disk.kill();
        }
        world.model.ended(who);
        world.told();
        dead
    };
    drop(dead);
}

struct Acting<'a> {
    stage: &'a Stage,
    who: usize,
    life: u64,
    store: Store,
    /// The other is in the middle of something: what it claims or lets go of is not told yet.
    inside: bool,
}

impl Acting<'_> {
    fn is_dead(&self) -> bool {
        self.stage.lock().actors[self.who].life != self.life
    }

    fn failed(&self, doing: &str, error: &Error) {
        if !self.is_dead() {
            self.stage.lock().failed(Rule::Acted, doing, error);
        }
    }

    fn a_stream(&self) -> Option<u64> {
        let mut world = self.stage.lock();
        let ids: Vec<u64> = world.model.streams.keys().copied().collect();
        let at = world.rng.index(ids.len().max(1));
        ids.get(at).copied()
    }

    fn a_held_stream(&self) -> Option<u64> {
        let mut world = self.stage.lock();
        let is_ours = |s: &super::model::Stream| s.holder == Some(self.who);
        let ids: Vec<u64> =
            world.model.streams.iter().filter(|(_, s)| is_ours(s)).map(|(id, _)| *id).collect();
        let at = world.rng.index(ids.len().max(1));
        ids.get(at).copied()
    }

    /// Claims a stream; whether it is ours now. Refused only by one that holds it and lives.
    fn claim(&self, id: u64) -> bool {
        let claimed = self.store.claim_stream(StreamId(id));
        if self.is_dead() {
            return false;
        }
        let holder = self.stage.lock().model.streams.get(&id).and_then(|s| s.holder);
        match claimed {
            Ok(()) if holder == Some(self.who) => true,
            Ok(()) if holder.is_some() && !self.inside => {
                self.stage.lock().found(Rule::Claims, format!("two owners hold stream {id}"));
                false
            }
            Ok(()) => self.adopt(id),
            Err(e) if e.kind() == ErrorKind::Conflict && self.inside => false,
            Err(e) if e.kind() == ErrorKind::Conflict && holder == Some(1 - self.who) => false,
            Err(e) => {
                self.failed("claim", &e);
                false
            }
        }
    }

    /// It goes on exactly where it ended.
    fn adopt(&self, id: u64) -> bool {
        let found = match read(&self.store, id) {
            Ok(found) => found,
            Err(e) => {
                self.failed("read a claimed stream", &e);
                return false;
            }
        };
        if self.is_dead() {
            return false;
        }
        let mut world = self.stage.lock();
        if let Err(why) = world.model.claimed(id, self.who, &found) {
            world.found(Rule::State, format!("claimed: {why}"));
            return false;
        }
        world.told();
        true
    }

    fn append(&mut self) {
        let Some(id) = self.a_stream().filter(|id| self.claim(*id)) else { return };
        let record: Bytes = {
            let mut world = self.stage.lock();
            world.counter += 1;
            // Some are sealed before their frame, and some of those are equal.
            let text = match world.rng.below(5) {
                0 => format!("large {} {}", world.counter % 3, "x".repeat(700)),
                _ => format!("record {} of {id} by {}", world.counter, self.who),
            };
            let record: Bytes = Arc::from(text.into_bytes());
            if let Some(stream) = world.model.streams.get_mut(&id) {
                stream.records.push(Arc::clone(&record));
            }
            world.told();
            record
        };
        let append = Append { stream: StreamId(id), payload: record.to_vec() };
        let accepted = self.store.append(vec![append]);
        if self.is_dead() {
            return;
        }
        match accepted {
            Ok(accepted) => self.stage.lock().actors[self.who].ticket = Some(accepted.ticket),
            Err(e) => self.failed("append", &e),
        }
    }

    fn written(&mut self) {
        let Some(ticket) = self.stage.lock().actors[self.who].ticket.clone() else { return };
        let waited = self.store.wait(&ticket, Level::Written);
        if self.is_dead() {
            return;
        }
        if let Err(e) = waited {
            return self.failed("wait", &e);
        }
        let mut world = self.stage.lock();
        let held = world.model.streams.values_mut().filter(|s| s.holder == Some(self.who));
        held.for_each(|stream| stream.written = stream.records.len());
        world.told();
    }

    fn durable(&mut self) {
        let done = self.store.barrier();
        if self.is_dead() {
            return;
        }
        match done {
            Ok(()) => {
                let mut world = self.stage.lock();
                world.model.settle(self.who);
                world.told();
            }
            Err(e) => self.failed("barrier", &e),
        }
    }

    fn seal(&mut self) {
        let Some(id) = self.a_held_stream() else { return };
        let Ok(view) = self.store.view(StreamId(id)) else { return };
        if view.tail.is_empty() || self.stage.lock().actors[self.who].sealed.is_some() {
            return;
        }
        let mut content = Vec::new();
        view.tail.iter().for_each(|(_, payload)| encode_record(payload, &mut content));
        let (first, records) = (view.row.sealed_upto, view.tail.len() as u64);
        let build = ChunkBuild {
            stream: StreamId(id),
            first,
            records,
            raw_len: content.len() as u64,
            content,
            about: Vec::new(),
            iterations: None,
            times: None,
            payloads: Vec::new(),
        };
        let sealing = self.store.seal_chunks(vec![build]);
        if self.is_dead() {
            return;
        }
        match sealing {
            Ok(sealing) => {
                let (from, upto) = (first.0 as usize, (first.0 + records) as usize);
                self.stage.lock().actors[self.who].sealed = Some((id, from, upto, sealing));
            }
            Err(e) => self.failed("seal", &e),
        }
    }

    fn publish(&mut self) {
        let Some((id, from, upto, sealing)) = self.stage.lock().actors[self.who].sealed.take()
        else {
            return;
        };
        let stream = self.stage.lock().model.streams.get(&id).cloned().unwrap_or_default();
        let is_valid = stream.holder == Some(self.who) && stream.sealed == from;
        let published = sealing.publish();
        if self.is_dead() {
            return;
        }
        match published {
            Ok(_) => {
                let mut world = self.stage.lock();
                if let Some(stream) = world.model.streams.get_mut(&id) {
                    stream.sealed = upto;
                    stream.written = stream.written.max(upto);
                    stream.durable = stream.durable.max(upto);
                }
                world.told();
            }
            Err(_) if !is_valid => {}
            Err(e) => self.failed("publish", &e),
        }
    }

    fn release(&mut self) {
        let Some(id) = self.a_held_stream() else { return };
        let released = self.store.release_stream(StreamId(id));
        if self.is_dead() {
            return;
        }
        if let Err(e) = released {
            return self.failed("release", &e);
        }
        let mut world = self.stage.lock();
        let stream = world.model.streams.get_mut(&id);
        if let Some(stream) = stream.filter(|stream| stream.holder == Some(self.who)) {
            stream.holder = None;
            (stream.written, stream.durable) = (stream.records.len(), stream.records.len());
        }
        world.told();
    }

    /// Both store the same few contents, so that one finds what the other stored.
    fn put(&mut self) {
        let n = self.stage.lock().rng.below(3);
        let content = format!("content {n} {}", "y".repeat(200)).into_bytes();
        let put = self
            .store
            .lease("play", "keep", None, &[])
            .and_then(|lease| self.store.put_objects(lease, vec![content.clone()]).map(|_| lease));
        if self.is_dead() {
            return;
        }
        match put {
            Ok(lease) => {
                let mut world = self.stage.lock();
                world.model.leases.insert(lease.0, (vec![Arc::from(content)], false));
                world.told();
            }
            Err(e) => self.failed("put", &e),
        }
    }

    fn retire(&mut self) {
        let lease = {
            let mut world = self.stage.lock();
            let Some((lease, kept)) = world.model.leases.iter_mut().next() else { return };
            kept.1 = true;
            let lease = *lease;
            world.told();
            lease
        };
        let retired = self.store.retire(&[Thing::Lease(LeaseId(lease))], "played");
        if self.is_dead() {
            return;
        }
        match retired {
            Ok(_) => drop(self.stage.lock().model.leases.remove(&lease)),
            Err(e) => self.failed("retire", &e),
        }
        self.stage.lock().told();
    }

    fn reclaim(&mut self) {
        if let Err(e) = self.store.reclaim(Budget::default()) {
            self.failed("reclaim", &e);
        }
    }

    fn take_over(&mut self) {
        let other = self.stage.lock().actors[1 - self.who].owner();
        match self.store.take_over() {
            Ok(ended) if other.is_some_and(|other| ended.contains(&other)) => {
                if self.stage.lock().actors[1 - self.who].owner() == other {
                    self.stage.lock().found(Rule::Fenced, "a living owner was robbed");
                }
            }
            Ok(_) => {}
            Err(e) => self.failed("take over", &e),
        }
    }

    fn reopen(&mut self) {
        let actor = {
            let mut world = self.stage.lock();
            let life = world.actors[self.who].life;
            let actor = std::mem::take(&mut world.actors[self.who]);
            world.actors[self.who].life = life;
            actor
        };
        drop(actor.sealed);
        let closed = self.store.clone().close();
        if self.is_dead() {
            return;
        }
        if let Err(e) = closed {
            self.failed("close", &e);
        }
        let mut world = self.stage.lock();
        world.model.settle(self.who);
        world.model.ended(self.who);
        world.told();
    }

    /// Somebody removes the other's lock file: it is taken over, and from then on it is told nothing.
    fn lose_a_lock(&mut self) {
        let (other, robbed) = {
            let world = self.stage.lock();
            let other = &world.actors[1 - self.who];
            (other.store.clone(), other.owner())
        };
        let (Some(other), Some(robbed)) = (other, robbed) else { return };
        let path = layout::owner_lock(&root(), robbed);
        if self.stage.lock().disk.clone().unlink(&path).is_err() {
            return;
        }
        self.stage.lock().hook = None;
        match self.store.take_over() {
            Ok(ended) if ended.contains(&robbed) => {}
            Ok(_) => {
                return self.stage.lock().found(Rule::Claims, "its lock is gone, and it stands");
            }
            Err(e) => return self.failed("take over", &e),
        }
        self.stage.lock().model.ended(1 - self.who);
        self.stage.lock().told();
        let how = self.stage.lock().rng.below(2);
        let told = match how {
            0 => other.create_stream("no").map(|_| ()),
            _ => other.barrier(),
        };
        match told {
            Err(e) if e.kind() == ErrorKind::Fenced => {}
            Err(e) => self.failed("act after the loss of a lock", &e),
            Ok(()) => self.stage.lock().found(Rule::Fenced, "a fenced owner was told of success"),
        }
        drop(other);
        kill(self.stage, 1 - self.who);
    }
}

/// Every record of a stream.
fn read(store: &Store, id: u64) -> Result<Vec<Bytes>> {
    let mut content = crate::campaign::content::Content::read(store)?;
    let gone = || Error::new(ErrorKind::NotFound, "read", format!("stream {id}"), "it is gone");
    content.streams.remove(&id).map(|(_, records)| records).ok_or_else(gone)
}
