//! A process that does everything a store can do, until it is killed.

use std::path::Path;

use sealstone::engine::{Append, Budget, ChunkBuild, Claim, Store, Thing};
use sealstone::error::ErrorKind;
use sealstone::ids::{LeaseId, StreamId};
use sealstone::journal::Level;
use sealstone::manifest::{ClaimKind, LeaseRow, Reading, ResourceKey, StreamRow};
use sealstone::vfs::Step;

use crate::content::{Pair, Rng, encode, layout, noise, options, pairs, record, state};
use crate::marks::marking;
use crate::model::Log;

struct Writer {
    store: Store,
    rng: Rng,
    log: Log,
    pairs: Vec<Pair>,
    leases: Vec<LeaseId>,
    claims: Vec<Claim>,
    /// It is to be killed in a reclaim: that comes more often then.
    reclaims: bool,
}

/// Works until killed.
pub fn run(root: &Path, out: &Path, seed: u64, stop_at: Option<(String, u64)>) {
    let (stop_at, passes) = match stop_at {
        Some((name, passes)) => {
            (Step::ALL.iter().copied().find(|step| step.name() == name), passes)
        }
        None => (None, 0),
    };
    let protocol = stop_at.map_or("", Step::name);
    let reclaims = protocol.starts_with("reclaim.") || protocol.starts_with("compact.");
    let disk = marking(&out.join("marks"), stop_at, passes);
    let mut rng = Rng(seed);
    let log = Log::create(&out.join("log"));
    let how = || options(disk.clone()).layout(layout(root)).wait_millis(20_000);
    let open = || how().open_or_create(root).unwrap();
    let store = open();
    let leases = store.snapshot().unwrap().list::<LeaseRow>(.., usize::MAX).unwrap();
    let leases = leases.into_iter().filter(|(_, row)| row.holder == "writer");
    let mut writer = Writer {
        pairs: pairs(&store).unwrap(),
        leases: leases.map(|(lease, _)| lease).collect(),
        store,
        rng: Rng(rng.next()),
        log,
        claims: Vec::new(),
        reclaims,
    };
    loop {
        if rng.below(60) == 0 {
            writer.claims.clear();
            let Writer { store, log, pairs, leases, .. } = writer;
            store.close().unwrap();
            let (store, claims) = (open(), Vec::new());
            writer = Writer { store, rng: Rng(rng.next()), log, pairs, leases, claims, reclaims };
        }
        writer.step();
    }
}

impl Writer {
    fn step(&mut self) {
        if self.pairs.is_empty() {
            self.create_pair();
        }
        if self.reclaims && self.rng.below(4) == 0 {
            self.store.reclaim(Budget::default()).unwrap();
        }
        match self.rng.below(21) {
            0..=5 => self.append(),
            6 => self.barrier(),
            7..=9 => self.publish(),
            10 => self.bulk(),
            11 => self.checkpoint(),
            12 => self.rewind(),
            13 => self.put(),
            14 => self.drop_lease(),
            15 => self.retire_pair(),
            16 => drop(self.store.reclaim(Budget::default()).unwrap()),
            17 => self.claim(),
            18 => self.seal_and_drop(),
            19 => self.state(),
            _ if self.pairs.len() < 3 => self.create_pair(),
            _ => self.append(),
        }
    }

    fn pair(&mut self) -> Pair {
        let at = self.rng.below(self.pairs.len() as u64) as usize;
        self.pairs[at]
    }

    fn records(&self, stream: StreamId) -> u64 {
        self.store.view(stream).unwrap().record_count()
    }

    fn create_pair(&mut self) {
        let committed = self.store.transact(Step::PublishCommit, |w| {
            let (a, b) = (w.next_stream_id()?, w.next_stream_id()?);
            for (stream, half) in [(a, 'a'), (b, 'b')] {
                let name = format!("{a}{half}");
                w.put(&stream, &StreamRow { name, ..StreamRow::default() })?;
            }
            Ok((a, b))
        });
        let pair = committed.unwrap().value;
        self.log.pair('+', pair, None);
        self.pairs.push(pair);
    }

    fn append(&mut self) {
        let (a, b) = self.pair();
        let records = self.records(a);
        let more = 1 + self.rng.below(12);
        self.log.pair('t', (a, b), Some(records + more));
        let group = (records..records + more).flat_map(|sequence| {
            [a, b].map(|stream| Append { stream, payload: record(stream, sequence) })
        });
        let accepted = self.store.append(group.collect()).unwrap();
        let level = match self.rng.below(10) {
            0..=3 => Level::Written,
            4..=6 => Level::Durable,
            _ => return,
        };
        self.store.wait(&accepted.ticket, level).unwrap();
        self.log.pair('k', (a, b), Some(records + more));
    }

    fn barrier(&mut self) {
        let records: Vec<_> = self.pairs.iter().map(|&pair| (pair, self.records(pair.0))).collect();
        self.store.barrier().unwrap();
        for (pair, records) in records {
            self.log.pair('k', pair, Some(records));
        }
    }

    fn build(&self, stream: StreamId, first: u64, records: u64) -> ChunkBuild {
        let content = encode(stream, first..first + records);
        ChunkBuild {
            stream,
            first: sealstone::ids::Sequence(first),
            records,
            raw_len: content.len() as u64,
            content,
            about: b"kill".to_vec(),
            iterations: None,
            times: None,
            payloads: Vec::new(),
        }
    }

    /// Chunks of both streams, or of one, or several of one.
    fn builds(&mut self, pair: Pair) -> Vec<ChunkBuild> {
        let mut builds = Vec::new();
        let both = self.rng.below(3) > 0;
        for stream in [pair.0, pair.1].into_iter().take(if both { 2 } else { 1 }) {
            let view = self.store.view(stream).unwrap();
            let (mut first, end) = (view.row.sealed_upto.0, view.record_count());
            while first < end && builds.len() < 6 {
                let records = 1 + self.rng.below(end - first);
                builds.push(self.build(stream, first, records));
                first += records;
            }
        }
        builds
    }

    fn publish(&mut self) {
        let pair = self.pair();
        let builds = self.builds(pair);
        // What is published is acknowledged with the other half of its observations.
        let upto = builds.iter().map(|build| build.first.0 + build.records).max();
        self.store.publish_chunks(builds).unwrap();
        if let Some(upto) = upto {
            self.log.pair('k', pair, Some(upto));
        }
    }

    fn seal_and_drop(&mut self) {
        let pair = self.pair();
        let builds = self.builds(pair);
        drop(self.store.seal_chunks(builds).unwrap());
    }

    /// Records that never were in a journal.
    fn bulk(&mut self) {
        let (a, b) = self.pair();
        let views = self.store.views(&[a, b]).unwrap();
        if views.iter().any(|view| !view.tail.is_empty()) {
            return self.publish();
        }
        let (first, records) = (views[0].record_count(), 1 + self.rng.below(100));
        self.log.pair('t', (a, b), Some(first + records));
        let builds = vec![self.build(a, first, records), self.build(b, first, records)];
        self.store.publish_chunks(builds).unwrap();
        self.log.pair('k', (a, b), Some(first + records));
    }

    fn checkpoint(&mut self) {
        let streams: Vec<_> = self.pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let len = if self.rng.below(4) == 0 { 90_000 } else { 50 };
        let state = state(self.rng.next(), len);
        let id = self.store.checkpoint(1, &streams, &state).unwrap();
        self.log.line(&format!("C {id}"));
        if let Some(old) = id.0.checked_sub(5) {
            let old = Thing::Checkpoint(1, sealstone::ids::CheckpointId(old));
            self.store.retire(&[old], "newer ones stand").unwrap();
        }
    }

    fn rewind(&mut self) {
        let Ok(checkpoint) = self.store.latest_checkpoint(1) else { return };
        let pair = self.pair();
        let of = |stream| checkpoint.cursors.iter().find(|cursor| cursor.stream == stream).copied();
        let (Some(a), Some(b)) = (of(pair.0), of(pair.1)) else { return };
        if a.end.0 > self.records(pair.0) {
            return;
        }
        self.log.pair('w', pair, Some(a.end.0));
        self.store.rewind(&[a, b]).unwrap();
        self.log.pair('W', pair, Some(a.end.0));
    }

    fn put(&mut self) {
        let lease = match self.leases.last() {
            Some(lease) if self.rng.below(2) == 0 => *lease,
            _ => self.store.lease("writer", "test", None, &[]).unwrap(),
        };
        // From few seeds, so that contents come again.
        let made: Vec<(u64, usize)> = (0..1 + self.rng.below(4))
            .map(|_| {
                let seed = self.rng.below(40);
                (seed, if seed < 10 { 100 } else { 400 * seed as usize })
            })
            .collect();
        let contents = made.iter().map(|&(seed, len)| noise(seed, len)).collect();
        let put = self.store.put_objects(lease, contents).unwrap();
        for ((object, _), (seed, len)) in put.iter().zip(made) {
            self.log.line(&format!("P {lease} {object} {seed} {len}"));
        }
        if self.leases.last() != Some(&lease) {
            self.leases.push(lease);
        }
    }

    fn drop_lease(&mut self) {
        if self.leases.len() < 3 {
            return self.put();
        }
        let at = self.rng.below(self.leases.len() as u64) as usize;
        let lease = self.leases.remove(at);
        self.log.line(&format!("l {lease}"));
        self.store.retire(&[Thing::Lease(lease)], "test").unwrap();
        self.log.line(&format!("L {lease}"));
    }

    fn retire_pair(&mut self) {
        let at = self.rng.below(self.pairs.len() as u64) as usize;
        if self.pairs.len() < 2 || self.records(self.pairs[at].0) < 300 {
            return self.append();
        }
        let pair = self.pairs.remove(at);
        self.log.pair('r', pair, None);
        let things = [Thing::Stream(pair.0), Thing::Stream(pair.1)];
        self.store.retire(&things, "test").unwrap();
        self.log.pair('R', pair, None);
    }

    /// A value under a name, now and then a snapshot of all rows.
    fn state(&mut self) {
        let value = self.rng.next().to_le_bytes();
        self.store.state().put_bytes("last", &value).unwrap();
        if self.rng.below(2) == 0 {
            self.store.write_snapshot().unwrap();
        }
    }

    /// Some claims are let go at once, some stand until the process ends.
    fn claim(&mut self) {
        let resource = ResourceKey(format!("work {}", self.rng.below(5)).into_bytes());
        match self.store.claim(&resource, ClaimKind::Maintenance) {
            Ok(claim) if self.rng.below(2) == 0 => self.claims.push(claim),
            Ok(claim) => drop(claim),
            // Ours, and held.
            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e:?}"),
        }
    }
}
