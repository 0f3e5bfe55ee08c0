//! B1, B2: much data, durable after each 8 MiB. Ours goes the bulk path: whole chunks, the next one
//! filled while earlier ones become durable; `sealstone-each` waits for each before it goes on, as the
//! peers do.

use sealstone::Store;
use sealstone::engine::ChunkBuild;
use sealstone::ids::{Sequence, StreamId};

use super::ours::Ours;
use super::recorded;
use super::{Job, Watch};
use crate::Outcome;
use crate::outcome::Measured;
use crate::payload::{Payload, sample};
use crate::peers::{self, Peer, Promise, Setup};
use crate::usage;

/// All arms are durable after so many bytes.
const BATCH_BYTES: u64 = 8 << 20;
const SAMPLE: u64 = 200;

/// Writes `job.amount` bytes of records.
pub fn run(job: &Job, record_bytes: u64) -> Outcome<Measured> {
    let batch = BATCH_BYTES / record_bytes;
    let records = (job.amount / record_bytes).max(batch).next_multiple_of(batch);
    let mut measured = match job.arm.as_str() {
        "sealstone" | "sealstone-each" => ours(job, record_bytes, records)?,
        _ => peer(job, record_bytes, records)?,
    };
    measured.work = (records * record_bytes) as f64 / f64::from(1 << 20);
    measured.payload_bytes = (records * record_bytes) as f64;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

/// B3: text, through zstd-1, `job.amount` bytes before it. Ours is a recording, as its users write one.
pub fn compressed(job: &Job) -> Outcome<Measured> {
    let record_bytes = 1 << 10;
    let batch = BATCH_BYTES / record_bytes;
    let records = (job.amount / record_bytes).max(batch).next_multiple_of(batch);
    let setup = Setup { promise: Promise::Durable, record_bytes, records };
    let store = recorded::open(&job.arm, &job.dir, &setup)?;
    let mut measured = append_all(store, &setup, Payload::text(record_bytes as usize))?;
    measured.work = (records * record_bytes) as f64 / f64::from(1 << 20);
    measured.payload_bytes = (records * record_bytes) as f64;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

fn peer(job: &Job, record_bytes: u64, records: u64) -> Outcome<Measured> {
    let setup = Setup { promise: Promise::Durable, record_bytes, records };
    let peer = peers::open(&job.arm, &job.dir, &setup)?;
    append_all(peer, &setup, Payload::new(record_bytes as usize))
}

fn append_all(mut peer: Box<dyn Peer>, setup: &Setup, mut payload: Payload) -> Outcome<Measured> {
    let Setup { record_bytes, records, .. } = *setup;
    let watch = Watch::start()?;
    let batch = BATCH_BYTES / record_bytes;
    for from in (0..records).step_by(batch as usize) {
        peer.append(from..from + batch, &mut payload)?;
    }
    peer.finish()?;
    let mut measured = watch.stop()?;
    measured.syncs = peer.syncs().map_or(-1.0, |syncs| syncs as f64);
    for number in sample(records, SAMPLE) {
        payload.check(number, &peer.read(number)?)?;
    }
    let found = peer.count()?;
    if found != records {
        return Err(format!("{found} records of {records} are there").into());
    }
    Ok(measured)
}

fn ours(job: &Job, record_bytes: u64, records: u64) -> Outcome<Measured> {
    let mut ours = Ours::create(&job.dir)?;
    let stream = ours.store.create_stream("bulk")?;
    let payload = Payload::new(record_bytes as usize);
    let count = BATCH_BYTES / record_bytes;
    ours.begin();
    let watch = Watch::start()?;
    let waits = job.arm == "sealstone-each";
    let mut sealer = ours.store.sealer()?;
    let mut record = vec![0; record_bytes as usize];
    for first in (0..records).step_by(count as usize) {
        let mut content = Vec::with_capacity(BATCH_BYTES as usize);
        for number in first..first + count {
            payload.fill(number, &mut record);
            content.extend_from_slice(&record);
        }
        sealer.push(chunk(stream, first, count, content))?;
        if waits {
            sealer.barrier()?;
        }
    }
    sealer.finish()?;
    let mut measured = watch.stop()?;
    measured.syncs = ours.syncs();
    ours.store.close()?;
    check(job, stream, record_bytes, records)?;
    Ok(measured)
}

pub(super) fn chunk(stream: StreamId, first: u64, records: u64, content: Vec<u8>) -> ChunkBuild {
    ChunkBuild {
        stream,
        first: Sequence(first),
        records,
        raw_len: content.len() as u64,
        content,
        about: Vec::new(),
        iterations: None,
        times: None,
        payloads: Vec::new(),
    }
}

/// Reads some records in another opening, and counts all.
fn check(job: &Job, stream: StreamId, record_bytes: u64, records: u64) -> Outcome<()> {
    let store = Store::open(job.dir.join("run.stone"))?;
    let view = store.view(stream)?;
    if view.record_count() != records {
        return Err(format!("{} records of {records} are there", view.record_count()).into());
    }
    let mut payload = Payload::new(record_bytes as usize);
    for number in sample(records, SAMPLE) {
        let at = view.chunks.partition_point(|(_, row)| row.first.0 + row.records <= number);
        let row = &view.chunks.get(at).ok_or("a chunk is missing")?.1;
        let start = (number - row.first.0) * record_bytes;
        payload.check(number, &store.fetch_range(row.object, start..start + record_bytes)?)?;
    }
    Ok(store.close()?)
}
