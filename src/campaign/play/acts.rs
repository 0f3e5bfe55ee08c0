//! What each shape does: calls on the store, and what they mean for the model.

use std::sync::Arc;

use super::{Go, Player, Stop};
use crate::campaign::content::SavedState;
use crate::campaign::finding::{Finding, Rule};
use crate::campaign::history::Shape;
use crate::campaign::model::{Bytes, Frame, Model, Stream};
use crate::engine::{Append, Budget, Thing};
use crate::error::ErrorKind;
use crate::ids::{CheckpointId, LeaseId, OwnerId, Sequence, StreamId};
use crate::journal::Level;
use crate::manifest::{ClaimKind, ClaimRow, Cursor, OwnerEnd, OwnerRow, Reading, ResourceKey};
use crate::vfs::Step;
use crate::vfs::sim::Rng;

/// What all checkpoints of a play belong to.
const SCOPE: u64 = 1;

/// Longer than a checkpoint's row may hold.
const LARGE_STATE_BYTES: usize = (64 << 10) + 100;

impl Player {
    /// Does `shape`, the operation number `at` of the history.
    pub(super) fn act(&mut self, at: usize, shape: Shape) -> Go {
        self.rng = Rng::new(self.history.seed ^ (at as u64 + 1).wrapping_mul(0x9e37_79b9));
        match shape {
            Shape::Birth => self.birth(),
            Shape::Stream => self.create_stream().map(|_| ()),
            Shape::Append => self.append(1, 20),
            Shape::Group => self.append(3, 50),
            Shape::Large => self.append(1, 900),
            Shape::Fill => self.fill(),
            Shape::Written => self.wait(Level::Written),
            Shape::Durable => self.wait(Level::Durable),
            Shape::Barrier => self.barrier(),
            Shape::Checkpoint => self.checkpoint(40),
            Shape::LargeState => self.checkpoint(LARGE_STATE_BYTES),
            Shape::Rewind => self.rewind(),
            Shape::Publish => self.publish_tail(),
            Shape::PublishMany => self.publish_many(),
            Shape::Direct => self.publish_direct(),
            Shape::SealStore => self.seal_and_store(),
            Shape::SealGone => self.seal_and_lose(),
            Shape::SealDrop => self.seal_and_drop(),
            Shape::Objects => self.objects(),
            Shape::Same => self.same_objects(),
            Shape::RetireLease => self.retire_lease(),
            Shape::RetireCheckpoint => self.retire_checkpoint(),
            Shape::RetireStream => self.retire_stream(),
            Shape::Reclaim => self.reclaim(),
            Shape::Names => self.change_names(),
            Shape::Claim => self.claim(),
            Shape::Release => self.release(),
            Shape::Reopen => self.reopen(),
            Shape::Kill => self.kill(),
            Shape::Fence => self.fence(),
            Shape::Compact => self.compact(),
            Shape::Backup => self.back_up(false),
            Shape::BackupBeside => self.back_up(true),
            Shape::Snapshot => self.snapshot(),
            Shape::Full => self.fill_disk(),
        }
    }

    /// One of the numbers, or none of none.
    pub(super) fn pick(&mut self, of: impl Iterator<Item = u64>) -> Option<u64> {
        let all: Vec<u64> = of.collect();
        let at = self.rng.index(all.len());
        all.get(at).copied()
    }

    pub(super) fn create_stream(&mut self) -> Go<u64> {
        let name = format!("stream {}", self.states.len());
        let made = name.clone();
        let stream = self.step(
            "create a stream",
            |store| store.create_stream(&name),
            move |model, id| {
                model.streams.insert(id.0, Stream { name: made, ..Stream::default() });
            },
        )?;
        Ok(stream.0)
    }

    pub(super) fn some_stream(&mut self) -> Go<u64> {
        match self.pick(self.model.streams.keys().copied().collect::<Vec<_>>().into_iter()) {
            Some(stream) => Ok(stream),
            None => self.create_stream(),
        }
    }

    /// A record that no other one equals.
    pub(super) fn record(&mut self, len: usize) -> Bytes {
        self.counter += 1;
        let mut bytes = self.counter.to_le_bytes().to_vec();
        let fill = self.counter as u8;
        bytes.resize(len.max(8), fill);
        Arc::from(bytes)
    }

    /// Appends a group of `count` records of about `len` bytes.
    pub(super) fn append(&mut self, count: usize, len: usize) -> Go {
        let mut group = Vec::new();
        for _ in 0..count {
            let stream = self.some_stream()?;
            let len = len + self.rng.index(len / 2);
            group.push((stream, self.record(len)));
        }
        self.append_group(group)
    }

    pub(super) fn append_group(&mut self, group: Vec<(u64, Bytes)>) -> Go {
        let appends = group
            .iter()
            .map(|(stream, bytes)| Append { stream: StreamId(*stream), payload: bytes.to_vec() })
            .collect();
        let accepted = self.step(
            "append",
            |store| store.append(appends),
            move |model, _| {
                let mut frame = Frame::default();
                for (id, bytes) in group {
                    if let Some(stream) = model.streams.get_mut(&id) {
                        frame.items.push((id, stream.records.len()));
                        stream.records.push(bytes);
                    }
                }
                model.pending.push(frame);
            },
        )?;
        self.ticket = Some((accepted.ticket, self.accepted));
        self.accepted += 1;
        Ok(())
    }

    fn fill(&mut self) -> Go {
        for _ in 0..4 {
            self.append(3, 300)?;
            self.barrier()?;
        }
        Ok(())
    }

    fn wait(&mut self, level: Level) -> Go {
        let Some((ticket, number)) = self.ticket.clone() else { return self.barrier() };
        // Frames before the first pending one are durable already.
        let first = self.accepted - self.model.pending.len() as u64;
        let covered = (number + 1).saturating_sub(first) as usize;
        self.step(
            "wait",
            |store| store.wait(&ticket, level),
            |model, ()| match level {
                Level::Durable => model.settle_frames(covered),
                _ => model.pending[..covered].iter_mut().for_each(|frame| frame.written = true),
            },
        )
    }

    pub(super) fn barrier(&mut self) -> Go {
        self.step("barrier", |store| store.barrier(), |model, ()| model.settle_all())
    }

    fn checkpoint(&mut self, len: usize) -> Go {
        let state = self.record(len);
        let streams: Vec<StreamId> = self.model.streams.keys().map(|id| StreamId(*id)).collect();
        self.step(
            "checkpoint",
            |store| store.checkpoint(SCOPE, &streams, &state),
            |model, id| {
                model.settle_all();
                let end = |(id, stream): (&u64, &Stream)| (*id, stream.records.len() as u64);
                let cursors = model.streams.iter().map(end).collect();
                let saved = SavedState { cursors, state: Arc::clone(&state) };
                model.checkpoints.insert((SCOPE, id.0), saved);
            },
        )
        .map(|_| ())
    }

    fn rewind(&mut self) -> Go {
        let Some((_, saved)) = self.model.checkpoints.last_key_value() else {
            return self.checkpoint(30);
        };
        let stands = |(id, end): &&(u64, u64)| {
            self.model.streams.get(id).is_some_and(|s| s.records.len() as u64 >= *end)
        };
        let cursors: Vec<(u64, u64)> = saved.cursors.iter().filter(stands).copied().collect();
        let cursor = |(id, end): &(u64, u64)| Cursor {
            stream: StreamId(*id),
            generation: Default::default(),
            end: Sequence(*end),
        };
        let rows: Vec<Cursor> = cursors.iter().map(cursor).collect();
        self.step(
            "rewind",
            |store| store.rewind(&rows),
            |model, ()| cursors.iter().for_each(|(id, end)| model.rewind(*id, *end as usize)),
        )
    }

    pub(super) fn lease(&mut self) -> Go<LeaseId> {
        self.step(
            "lease",
            |store| store.lease("campaign", "a play", None, &[]),
            |model, lease| {
                model.leases.insert(lease.0, Vec::new());
            },
        )
    }

    /// Stores `contents` under a new lease.
    pub(super) fn store_objects(&mut self, contents: Vec<Bytes>) -> Go<LeaseId> {
        let lease = self.lease()?;
        let bytes = contents.iter().map(|content| content.to_vec()).collect();
        self.step(
            "store objects",
            |store| store.put_objects(lease, bytes),
            move |model, _| {
                // One object for equal contents: the lease lists it once.
                let mut listed: Vec<Bytes> = Vec::new();
                for content in contents {
                    if !listed.contains(&content) {
                        listed.push(content);
                    }
                }
                model.leases.insert(lease.0, listed);
            },
        )?;
        Ok(lease)
    }

    fn objects(&mut self) -> Go {
        let contents = [700, 30, 900].map(|len| self.record(len)).to_vec();
        self.store_objects(contents).map(|_| ())
    }

    fn same_objects(&mut self) -> Go {
        let leases: Vec<u64> =
            self.model.leases.iter().filter(|(_, o)| !o.is_empty()).map(|(id, _)| *id).collect();
        let Some(lease) = self.pick(leases.into_iter()) else { return self.objects() };
        let mut contents = self.model.leases[&lease].clone();
        contents.truncate(2);
        contents.push(self.record(800));
        self.store_objects(contents).map(|_| ())
    }

    pub(super) fn retire(&mut self, thing: Thing, then: impl FnOnce(&mut Model)) -> Go {
        self.step("retire", |store| store.retire(&[thing], "a play"), |model, _| then(model))
            .map(|_| ())
    }

    fn retire_lease(&mut self) -> Go {
        let leases: Vec<u64> = self.model.leases.keys().copied().collect();
        let Some(id) = self.pick(leases.into_iter()) else { return self.lease().map(|_| ()) };
        self.retire(Thing::Lease(LeaseId(id)), |model| {
            model.leases.remove(&id);
        })
    }

    fn retire_checkpoint(&mut self) -> Go {
        let ids: Vec<u64> = self.model.checkpoints.keys().map(|(_, id)| *id).collect();
        let Some(id) = self.pick(ids.into_iter()) else { return self.checkpoint(10) };
        self.retire(Thing::Checkpoint(SCOPE, CheckpointId(id)), |model| {
            model.checkpoints.remove(&(SCOPE, id));
        })
    }

    fn retire_stream(&mut self) -> Go {
        let id = self.some_stream()?;
        self.retire(Thing::Stream(StreamId(id)), |model| model.retire(id))
    }

    pub(super) fn reclaim(&mut self) -> Go {
        self.step("reclaim", |store| store.reclaim(Budget::default()), |_, _| {}).map(|_| ())
    }

    fn snapshot(&mut self) -> Go {
        self.step("write a snapshot", |store| store.write_snapshot(), |_, _| {}).map(|_| ())
    }

    fn claim(&mut self) -> Go {
        self.counter += 1;
        let resource = ResourceKey(format!("claim {}", self.counter).into_bytes());
        let claim = self.step(
            "claim",
            |store| store.claim(&resource, ClaimKind::Maintenance),
            |model, _| {
                model.claims.insert(resource.0.clone());
            },
        )?;
        self.claims.push(claim);
        Ok(())
    }

    fn release(&mut self) -> Go {
        let Some(claim) = self.claims.pop() else { return self.claim() };
        // The newest name: numbers in it only grow, and so do their lengths.
        let newest = self.model.claims.iter().max_by_key(|name| (name.len(), (*name).clone()));
        let newest = newest.cloned();
        self.step(
            "release",
            |_| {
                drop(claim);
                Ok(())
            },
            |model, ()| {
                if let Some(newest) = newest {
                    model.claims.remove(&newest);
                }
            },
        )
    }

    /// The owner's row is ended, as another process would end it; what it does then is refused.
    fn fence(&mut self) -> Go {
        let Some((me, _)) = self.store.as_ref().and_then(|store| store.owner()) else {
            return Err(Stop);
        };
        let by = OwnerId::from_parts(1, [1; 10]);
        self.step(
            "end the owner's row",
            |store| {
                store.transact(Step::OpenTakeOver, |w| {
                    let mut row = w.require::<OwnerRow>(&me)?;
                    row.ended = Some(OwnerEnd::TakenOver { by });
                    w.put(&me, &row)?;
                    for (resource, row) in w.list::<ClaimRow>(.., usize::MAX)? {
                        if row.owner == me {
                            w.remove::<ClaimRow>(&resource)?;
                        }
                    }
                    Ok(())
                })
            },
            |model, _| model.claims.clear(),
        )?;
        let refused = self.store.as_ref().map(|store| store.create_stream("of a fenced owner"));
        match refused {
            Some(Err(e)) if e.kind() == ErrorKind::Fenced => {}
            other => {
                let seen = format!("a fenced owner was not refused: {other:?}");
                self.findings.push(Finding::new(Rule::Fenced, seen));
                return Err(Stop);
            }
        }
        self.kill()
    }
}
