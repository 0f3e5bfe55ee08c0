//! B4, B5, B6: small records, each acknowledged durable, with one or with many in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use sealstone::Store;
use sealstone::engine::Append;
use sealstone::ids::StreamId;
use sealstone::journal::{Level, Ticket};

use super::ours::{Ours, check_tails, number_of};
use super::{Job, Watch, with_latencies};
use crate::Outcome;
use crate::outcome::Measured;
use crate::payload::{Payload, sample};
use crate::peers::{self, Group, Peer, Promise, Setup};
use crate::usage;

const RECORD_BYTES: usize = 200;
/// An arm whose name ends so has a thread for each record in flight.
const THREADS_SUFFIX: &str = "@threads";
/// Eight connections of their own, and no group: each commit syncs for itself.
const CONNECTIONS: &str = "sqlite-connections";
/// They are slow: so much less work for them.
const CONNECTIONS_SHARE: u64 = 20;

/// Who submits, and how much each may leave unacknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub threads: u64,
    pub each: u64,
}

/// Appends `job.amount` records.
pub fn run(job: &Job, flight: Flight) -> Outcome<Measured> {
    let (arm, flight) = match job.arm.strip_suffix(THREADS_SUFFIX) {
        Some(arm) => (arm, Flight { threads: flight.threads * flight.each, each: 1 }),
        None => (job.arm.as_str(), flight),
    };
    let share = if arm == CONNECTIONS { CONNECTIONS_SHARE } else { 1 };
    let each = (job.amount / share / flight.threads).max(flight.each);
    let records = each * flight.threads;
    let mut measured = match arm {
        "sealstone" => ours(job, flight, each)?,
        CONNECTIONS => connections(job, flight, each)?,
        _ => grouped(job, arm, flight, each)?,
    };
    measured.work = records as f64;
    measured.payload_bytes = (records * RECORD_BYTES as u64) as f64;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

/// One thread of a store under load: submits its records, and waits for each, the oldest first.
fn fly<T>(
    payload: &Payload,
    numbers: std::ops::Range<u64>,
    in_flight: u64,
    mut submit: impl FnMut(&[u8]) -> Outcome<T>,
    mut wait: impl FnMut(T) -> Outcome<()>,
) -> Outcome<Vec<f64>> {
    let mut record = [0; RECORD_BYTES];
    let mut open = VecDeque::new();
    let mut micros = Vec::with_capacity((numbers.end - numbers.start) as usize);
    for number in numbers {
        payload.fill(number, &mut record);
        let submitted = Instant::now();
        open.push_back((submitted, submit(&record)?));
        if open.len() as u64 == in_flight {
            land(&mut open, &mut wait, &mut micros, in_flight)?;
        }
    }
    while !open.is_empty() {
        land(&mut open, &mut wait, &mut micros, in_flight)?;
    }
    Ok(micros)
}

/// Waits for the older half of what is in flight.
fn land<T>(
    open: &mut VecDeque<(Instant, T)>,
    wait: &mut impl FnMut(T) -> Outcome<()>,
    micros: &mut Vec<f64>,
    in_flight: u64,
) -> Outcome<()> {
    for (submitted, one) in open.drain(..open.len().min(in_flight.div_ceil(2) as usize)) {
        wait(one)?;
        micros.push(submitted.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
}

/// Runs one closure for each thread, on its numbers.
fn on_threads(
    flight: Flight,
    each: u64,
    work: impl Fn(u64, std::ops::Range<u64>) -> Outcome<Vec<f64>> + Sync,
) -> Outcome<Vec<f64>> {
    let work = &work;
    thread::scope(|scope| {
        let one = |n: u64| scope.spawn(move || work(n, n * each..(n + 1) * each));
        let threads: Vec<_> = (0..flight.threads).map(one).collect();
        let mut micros = Vec::new();
        for thread in threads {
            micros.extend(thread.join().map_err(|_| "a thread panicked")??);
        }
        Ok(micros)
    })
}

fn ours(job: &Job, flight: Flight, each: u64) -> Outcome<Measured> {
    let mut ours = Ours::create(&job.dir)?;
    let streams: Vec<StreamId> = (0..flight.threads)
        .map(|n| ours.store.create_stream(&format!("s{n}")))
        .collect::<Result<_, _>>()?;
    // The journal's first file is there before the watch starts, as the peers' files are.
    let warm = ours.store.create_stream("warm")?;
    let accepted = append(&ours.store, warm, &[0; RECORD_BYTES])?;
    ours.store.wait(&accepted, Level::Durable)?;
    let payload = Payload::new(RECORD_BYTES);
    ours.begin();
    let watch = Watch::start()?;
    let store = &ours.store;
    let micros = on_threads(flight, each, |n, numbers| {
        let stream = streams[n as usize];
        let submit = |record: &[u8]| append(store, stream, record);
        fly(&payload, numbers, flight.each, submit, |ticket| {
            Ok(store.wait(&ticket, Level::Durable)?)
        })
    })?;
    let mut measured = with_latencies(watch.stop()?, micros);
    measured.syncs = ours.syncs();
    ours.store.close()?;
    check_tails(&job.dir, &streams, each * flight.threads, RECORD_BYTES)?;
    Ok(measured)
}

fn append(store: &Store, stream: StreamId, record: &[u8]) -> Outcome<Ticket> {
    Ok(store.append(vec![Append { stream, payload: record.to_vec() }])?.ticket)
}

fn setup(records: u64) -> Setup {
    Setup { promise: Promise::Durable, record_bytes: RECORD_BYTES as u64, records }
}

fn grouped(job: &Job, arm: &str, flight: Flight, each: u64) -> Outcome<Measured> {
    let records = each * flight.threads;
    let payload = Payload::new(RECORD_BYTES);
    let group = Group::new(peers::open(arm, &job.dir, &setup(records))?);
    let watch = Watch::start()?;
    let micros = on_threads(flight, each, |_, numbers| {
        let submit = |record: &[u8]| Ok(group.submit(record));
        fly(&payload, numbers, flight.each, submit, |number| group.wait(number))
    })?;
    let mut measured = with_latencies(watch.stop()?, micros);
    let mut peer = group.into_peer().ok_or("the peer is gone")?;
    measured.syncs = peer.syncs().map_or(-1.0, |syncs| syncs as f64);
    check(&mut *peer, records)?;
    Ok(measured)
}

fn check(peer: &mut dyn Peer, records: u64) -> Outcome<()> {
    let mut payload = Payload::new(RECORD_BYTES);
    for at in sample(records, 100) {
        let record = peer.read(at)?;
        payload.check(number_of(&record, records)?, &record)?;
    }
    let found = peer.count()?;
    if found == records { Ok(()) } else { Err(format!("{found} of {records} are there").into()) }
}

/// Each thread has a connection of its own: what an application without a group does.
fn connections(job: &Job, flight: Flight, each: u64) -> Outcome<Measured> {
    let records = each * flight.threads;
    let setup = setup(records);
    drop(peers::open("sqlite", &job.dir, &setup)?);
    let dir = Arc::new(job.dir.clone());
    let watch = Watch::start()?;
    let micros = on_threads(flight, each, |_, numbers| {
        let mut peer = peers::open("sqlite", &dir, &setup)?;
        let mut payload = Payload::new(RECORD_BYTES);
        let mut micros = Vec::new();
        for number in numbers {
            let submitted = Instant::now();
            peer.append(number..number + 1, &mut payload)?;
            micros.push(submitted.elapsed().as_secs_f64() * 1e6);
        }
        Ok(micros)
    })?;
    let measured = with_latencies(watch.stop()?, micros);
    check(&mut *peers::open("sqlite", &job.dir, &setup)?, records)?;
    Ok(measured)
}
