//! B11: reading what a store holds, warm: all of it, single records here and there, stretches of time. The
//! store is written once, and each run reads all of it first and compares it.

use std::time::{Duration, Instant};

use super::recorded::open;
use super::{Job, Watch, with_latencies};
use crate::Outcome;
use crate::outcome::Measured;
use crate::payload::Payload;
use crate::peers::{Peer, Promise, Setup};
use crate::text::Random;
use crate::usage;

const RECORD_BYTES: u64 = 1 << 10;
/// Records that are appended as one.
const BATCH: u64 = 8 << 10;
/// So many reads, or as many as there is time for.
const READS: usize = 20_000;
const RANGES: usize = 40;
const TIME: Duration = Duration::from_secs(2);
/// One in so many records is a stretch.
const STRETCH: u64 = 100;

fn records(job: &Job) -> u64 {
    (job.amount / RECORD_BYTES).max(BATCH).next_multiple_of(BATCH)
}

fn setup(records: u64) -> Setup {
    Setup { promise: Promise::Durable, record_bytes: RECORD_BYTES, records }
}

/// Writes the store.
pub fn prepare(job: &Job) -> Outcome<()> {
    let records = records(job);
    let mut payload = Payload::new(RECORD_BYTES as usize);
    let mut peer = open(&job.arm, &job.dir, &setup(records))?;
    for from in (0..records).step_by(BATCH as usize) {
        peer.append(from..from + BATCH, &mut payload)?;
    }
    peer.finish()
}

/// Opens the store, reads all of it, and compares.
fn warm(job: &Job) -> Outcome<Box<dyn Peer>> {
    let records = records(job);
    let mut peer = open(&job.arm, &job.dir, &setup(records))?;
    let mut payload = Payload::new(RECORD_BYTES as usize);
    let mut next = 0;
    peer.scan(0..records, &mut |number, record| {
        if number != next {
            return Err(format!("record {number} came instead of {next}").into());
        }
        next += 1;
        payload.check(number, record)
    })?;
    if next != records {
        return Err(format!("{next} of {records} records came back").into());
    }
    Ok(peer)
}

/// Looks at a record without comparing all of it: it says its own number.
fn glance(number: u64, record: &[u8]) -> Outcome<()> {
    if record.len() as u64 == RECORD_BYTES && record[..8] == number.to_le_bytes() {
        return Ok(());
    }
    Err(format!("record {number} came back otherwise").into())
}

fn with_sizes(job: &Job, mut measured: Measured) -> Outcome<Measured> {
    measured.payload_bytes = (records(job) * RECORD_BYTES) as f64;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

/// All records, in order.
pub fn scan(job: &Job) -> Outcome<Measured> {
    let mut peer = warm(job)?;
    let watch = Watch::start()?;
    let mut seen = 0;
    peer.scan(0..records(job), &mut |number, record| {
        seen += 1;
        glance(number, record)
    })?;
    let measured = watch.stop()?;
    if seen != records(job) {
        return Err(format!("{seen} records were seen").into());
    }
    let work = (seen * RECORD_BYTES) as f64 / f64::from(1 << 20);
    with_sizes(job, Measured { work, ..measured })
}

/// Single records, by number, anywhere.
pub fn random(job: &Job) -> Outcome<Measured> {
    let mut peer = warm(job)?;
    let mut random = Random::new(11);
    many(job, READS, || {
        let number = random.next() % records(job);
        glance(number, &peer.read(number)?)
    })
}

/// One in a hundred records, that lie together, anywhere.
pub fn range(job: &Job) -> Outcome<Measured> {
    let mut peer = warm(job)?;
    let mut random = Random::new(12);
    let len = records(job) / STRETCH;
    many(job, RANGES, || {
        let from = random.next() % (records(job) - len);
        let mut seen = 0;
        peer.scan(from..from + len, &mut |number, record| {
            seen += 1;
            glance(number, record)
        })?;
        if seen == len { Ok(()) } else { Err(format!("{seen} of {len} records").into()) }
    })
}

fn many(job: &Job, at_most: usize, one: impl FnMut() -> Outcome<()>) -> Outcome<Measured> {
    with_sizes(job, repeated(at_most, one)?)
}

/// Does it as often as that, or as there is time for, each timed by itself.
pub fn repeated(at_most: usize, mut one: impl FnMut() -> Outcome<()>) -> Outcome<Measured> {
    let mut micros = Vec::with_capacity(at_most);
    let watch = Watch::start()?;
    let started = Instant::now();
    while micros.len() < at_most && started.elapsed() < TIME {
        let began = Instant::now();
        one()?;
        micros.push(began.elapsed().as_secs_f64() * 1e6);
    }
    let measured = Measured { work: micros.len() as f64, ..watch.stop()? };
    Ok(with_latencies(measured, micros))
}
