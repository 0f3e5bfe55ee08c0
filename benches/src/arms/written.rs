//! B7: small records to *Written*: the kernel has them. Alone, or so many with one wait.

use std::ops::Range;

use sealstone::engine::Append;
use sealstone::ids::StreamId;
use sealstone::journal::Level;

use super::ours::{Ours, check_tails};
use super::{Job, Watch, observed};
use crate::Outcome;
use crate::outcome::Measured;
use crate::payload::{Payload, sample};
use crate::peers::{self, Promise, Setup};
use crate::usage;

const RECORD_BYTES: usize = 200;
/// Iteration and three scalars, as a face would encode them.
const SCALARS_BYTES: usize = 32;
/// Records that go with one wait.
const BATCH: u64 = 1000;

/// Appends `job.amount` records: the arm's name is a peer's, `+batch`, `+scalars` or
/// `+observe` behind it.
pub fn run(job: &Job) -> Outcome<Measured> {
    let mut words = job.arm.split('+');
    let name = words.next().unwrap_or_default();
    let (mut batch, mut bytes, mut is_observed) = (1, RECORD_BYTES, false);
    for word in words {
        match word {
            "batch" => batch = BATCH,
            "scalars" => bytes = SCALARS_BYTES,
            "observe" => (bytes, is_observed) = (SCALARS_BYTES, true),
            other => return Err(format!("an arm cannot be {other}").into()),
        }
    }
    let records = job.amount.max(BATCH).next_multiple_of(batch);
    let mut measured = match name {
        "sealstone" if is_observed => observed::run(job, records, batch)?,
        "sealstone" => ours(job, records, batch, bytes)?,
        _ => peer(job, name, records, batch, bytes)?,
    };
    measured.work = records as f64;
    measured.payload_bytes = (records * bytes as u64) as f64;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

fn ours(job: &Job, records: u64, batch: u64, bytes: usize) -> Outcome<Measured> {
    let mut ours = Ours::create(&job.dir)?;
    let stream = ours.store.create_stream("observed")?;
    let payload = Payload::new(bytes);
    let store = ours.store.clone();
    let append = |numbers: Range<u64>, stream: StreamId| -> Outcome<()> {
        let one = |number| {
            let mut record = vec![0; bytes];
            payload.fill(number, &mut record);
            Append { stream, payload: record }
        };
        let accepted = store.append(numbers.map(one).collect())?;
        Ok(store.wait(&accepted.ticket, Level::Written)?)
    };
    // The journal's first file is there before the watch starts, as the peers' files are.
    append(0..1, store.create_stream("warm")?)?;
    ours.begin();
    let watch = Watch::start()?;
    for from in (0..records).step_by(batch as usize) {
        append(from..from + batch, stream)?;
    }
    let mut measured = watch.stop()?;
    measured.syncs = ours.syncs();
    drop(store);
    ours.store.close()?;
    check_tails(&job.dir, &[stream], records, bytes)?;
    Ok(measured)
}

fn peer(job: &Job, name: &str, records: u64, batch: u64, bytes: usize) -> Outcome<Measured> {
    let setup = Setup { promise: Promise::Written, record_bytes: bytes as u64, records };
    let mut peer = peers::open(name, &job.dir, &setup)?;
    let mut payload = Payload::new(bytes);
    let watch = Watch::start()?;
    for from in (0..records).step_by(batch as usize) {
        peer.append(from..from + batch, &mut payload)?;
    }
    let mut measured = watch.stop()?;
    measured.syncs = peer.syncs().map_or(-1.0, |syncs| syncs as f64);
    for number in sample(records, 100) {
        payload.check(number, &peer.read(number)?)?;
    }
    let found = peer.count()?;
    if found != records {
        return Err(format!("{found} records of {records} are there").into());
    }
    Ok(measured)
}
