//! The shapes that seal and publish, and the full disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Go, Player, Stop};
use crate::campaign::content::encode_record;
use crate::campaign::finding::{Finding, Rule};
use crate::campaign::model::{Bytes, Model};
use crate::engine::{ChunkBuild, Layout, Store, Thing};
use crate::error::{ErrorKind, Result};
use crate::ids::{ObjectId, StreamId};
use crate::journal::Payload;
use crate::manifest::Reading;

/// A chunk of the first `records` records of a stream's tail.
fn build(store: &Store, stream: u64, records: usize) -> Result<ChunkBuild> {
    let view = store.view(StreamId(stream))?;
    let snapshot = store.snapshot()?;
    let (mut content, mut payloads) = (Vec::new(), Vec::<ObjectId>::new());
    let records = records.min(view.tail.len());
    for (_, payload) in &view.tail[..records] {
        encode_record(payload, &mut content);
        if let Payload::Object { digest, .. } = payload {
            payloads.extend(snapshot.object_of(digest)?.first().map(|(object, _)| *object));
        }
    }
    Ok(ChunkBuild {
        stream: view.stream,
        first: view.row.sealed_upto,
        records: records as u64,
        raw_len: content.len() as u64,
        content,
        about: b"a play".to_vec(),
        iterations: None,
        times: None,
        payloads,
    })
}

/// The streams that `builds` cover, and up to where.
fn covered(builds: &[ChunkBuild]) -> BTreeMap<u64, usize> {
    builds.iter().map(|b| (b.stream.0, (b.first.0 + b.records) as usize)).collect()
}

impl Player {
    fn tail_len(&self, stream: u64) -> usize {
        self.model.streams.get(&stream).map_or(0, |s| s.records.len() - s.sealed)
    }

    /// A stream with an unsealed tail, made where there is none.
    fn stream_with_tail(&mut self) -> Go<u64> {
        let with_tail: Vec<u64> =
            self.model.streams.keys().copied().filter(|id| self.tail_len(*id) > 0).collect();
        if let Some(stream) = self.pick(with_tail.into_iter()) {
            return Ok(stream);
        }
        let stream = self.some_stream()?;
        let record = self.record(40);
        self.append_group(vec![(stream, record)])?;
        Ok(stream)
    }

    /// Builds a chunk without changing anything; a failure ends the play.
    fn build(&mut self, stream: u64, records: usize) -> Go<ChunkBuild> {
        self.step("build a chunk", |store| build(store, stream, records), |_, _| {})
    }

    fn publish(&mut self, builds: Vec<ChunkBuild>) -> Go {
        let upto = covered(&builds);
        let then = |model: &mut Model, _: &_| model.seal(&upto);
        self.step("publish", |store| store.publish_chunks(builds), then).map(|_| ())
    }

    pub(super) fn publish_tail(&mut self) -> Go {
        let stream = self.stream_with_tail()?;
        let one = self.build(stream, usize::MAX)?;
        self.publish(vec![one])
    }

    pub(super) fn publish_many(&mut self) -> Go {
        self.stream_with_tail()?;
        let mut builds = Vec::new();
        let streams: Vec<u64> = self.model.streams.keys().copied().collect();
        for stream in streams {
            let records = self.tail_len(stream).div_ceil(2);
            if records > 0 {
                builds.push(self.build(stream, records)?);
            }
        }
        self.publish(builds)
    }

    /// Records that were never appended; the same ones again and again, so that chunks are equal.
    pub(super) fn publish_direct(&mut self) -> Go {
        let empty: Vec<u64> =
            self.model.streams.keys().copied().filter(|id| self.tail_len(*id) == 0).collect();
        let stream = match self.pick(empty.into_iter()) {
            Some(stream) => stream,
            None => self.create_stream()?,
        };
        let records: Vec<Bytes> = (0..3u8).map(|n| Arc::from(vec![n; 60])).collect();
        let mut content = Vec::new();
        records
            .iter()
            .for_each(|r| encode_record(&Payload::Inline(Arc::clone(r).into()), &mut content));
        let mut one = self.build(stream, 0)?;
        one.records = records.len() as u64;
        (one.raw_len, one.content) = (content.len() as u64, content);
        let upto = covered(std::slice::from_ref(&one));
        self.step(
            "publish directly",
            |store| store.publish_chunks(vec![one]),
            |model, _| {
                if let Some(stream) = model.streams.get_mut(&stream) {
                    stream.records.extend(records);
                }
                model.seal(&upto);
            },
        )
        .map(|_| ())
    }

    /// Seal, meanwhile the same content is stored by another call, publish.
    pub(super) fn seal_and_store(&mut self) -> Go {
        let stream = self.stream_with_tail()?;
        let one = self.build(stream, usize::MAX)?;
        let content: Bytes = Arc::from(&one.content[..]);
        let upto = covered(std::slice::from_ref(&one));
        let bounds = upto.clone();
        let sealing = self.step(
            "seal",
            |store| store.seal_chunks(vec![one]),
            move |model, _| model.settle_mixed(&bounds),
        )?;
        self.store_objects(vec![content])?;
        self.step("publish", |_| sealing.publish(), |model, _| model.seal(&upto)).map(|_| ())
    }

    /// Seal what is stored already, meanwhile that goes for good, publish.
    pub(super) fn seal_and_lose(&mut self) -> Go {
        let stream = self.stream_with_tail()?;
        let one = self.build(stream, usize::MAX)?;
        let content: Bytes = Arc::from(&one.content[..]);
        let upto = covered(std::slice::from_ref(&one));
        let bounds = upto.clone();
        let lease = self.store_objects(vec![content])?;
        let sealing = self.step(
            "seal",
            |store| store.seal_chunks(vec![one]),
            move |model, _| model.settle_mixed(&bounds),
        )?;
        self.retire(Thing::Lease(lease), |model| {
            model.leases.remove(&lease.0);
        })?;
        self.reclaim()?;
        self.step("publish", |_| sealing.publish(), |model, _| model.seal(&upto)).map(|_| ())
    }

    pub(super) fn seal_and_drop(&mut self) -> Go {
        let stream = self.stream_with_tail()?;
        let one = self.build(stream, usize::MAX)?;
        let bounds = covered(std::slice::from_ref(&one));
        let seal = |store: &Store| store.seal_chunks(vec![one]).map(drop);
        self.step("seal and drop", seal, move |model, ()| model.settle_mixed(&bounds))
    }

    /// The disk fills up: intake is refused, what frees space goes on, intake is taken again.
    pub(super) fn fill_disk(&mut self) -> Go {
        let lease = self.store_objects(vec![Arc::from([3; 700])])?;
        let limits = self.history.limited.limits();
        // Less than the low-water mark, more than a commit takes once the ballast is given back.
        let left = limits.low_water_bytes - limits.ballast_bytes / 4;
        self.world.set_capacity(Some(self.world.used() + left));
        // What frees space goes on, and gives the ballast back first.
        self.retire(Thing::Lease(lease), |model| {
            model.leases.remove(&lease.0);
        })?;
        // One file may have room inside for it, or none: tests/engine/no_space.rs tells which.
        let is_directory = self.history.limited.layout() == Layout::Directory;
        let asked = self.store.as_ref().filter(|_| is_directory);
        match asked.map(|store| store.create_stream("of a full disk")) {
            None if !is_directory => {}
            Some(Err(e)) if e.kind() == ErrorKind::DiskFull => {}
            other => {
                let seen = format!("intake on a full disk came to {other:?}");
                self.findings.push(Finding::new(Rule::Acted, seen));
                return Err(Stop);
            }
        }
        self.reclaim()?;
        self.world.set_capacity(None);
        self.create_stream().map(|_| ())
    }
}
