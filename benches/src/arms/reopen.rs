//! B10: opening after kill -9, with much data and many rows, from the medium. The store stays from
//! round to round: each opening makes one more record durable and is killed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Child;

use sealstone::Store;
use sealstone::engine::{Append, ChunkBuild};
use sealstone::ids::Sequence;
use sealstone::journal::Level;
use sealstone::manifest::CheckIntegrity;
use sealstone::vfs::{Access, Disk, RealDisk};

use super::commit::fill_stream;
use super::{Job, Watch};
use crate::Outcome;
use crate::outcome::Measured;
use crate::payload::Payload;
use crate::peers::{self, Promise, Setup};
use crate::run;
use crate::usage;

const RECORD_BYTES: u64 = 1024;
const BATCH: u64 = 8192;
/// Rows of one chunk of ours: object, bytes, digest, chunk, edge.
const ROWS_OF_A_CHUNK: u64 = 5;
const CHUNKS_OF_A_STREAM: u64 = 1000;
/// Unsealed records in the journal.
const UNSEALED: u64 = 1000;

fn setup(records: u64) -> Setup {
    Setup { promise: Promise::Durable, record_bytes: RECORD_BYTES, records }
}

/// Fills the store in a process that is then killed.
pub fn prepare(job: &Job) -> Outcome<()> {
    killed_when_ready(run::hold(job, "fill")?).map(drop)
}

/// Opens it in a process that is then killed.
pub fn run(job: &Job) -> Outcome<Measured> {
    make_cold(&job.dir)?;
    let mut measured = Measured::from_line(&killed_when_ready(run::hold(job, "open")?)?)?;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

/// Waits until the process says something, and kills it.
fn killed_when_ready(mut child: Child) -> Outcome<String> {
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut said)?;
    }
    child.kill()?;
    child.wait()?;
    if said.is_empty() { Err("the process failed before it was killed".into()) } else { Ok(said) }
}

/// What [`run::hold`] starts: works, says so, and waits to be killed.
pub fn hold(job: &Job, what: &str) -> Outcome<()> {
    // Kept alive: the death is sudden.
    let _alive: Box<dyn std::any::Any> = match (job.arm.as_str(), what) {
        ("sealstone" | "sealstone-check", "fill") => Box::new(fill_ours(job)?),
        ("sealstone" | "sealstone-check", _) => Box::new(open_ours(job)?),
        (_, "fill") => Box::new(fill_peer(job)?),
        _ => Box::new(open_peer(job)?),
    };
    loop {
        std::thread::park();
    }
}

fn tell(line: &str) -> Outcome<()> {
    println!("{line}");
    Ok(std::io::stdout().flush()?)
}

/// `job.amount` records of 1 KiB, as chunks, and as many rows.
fn fill_ours(job: &Job) -> Outcome<Store> {
    let store = Store::create(job.dir.join("run.stone"))?;
    let data = store.create_stream("data")?;
    let payload = Payload::new(RECORD_BYTES as usize);
    for first in (0..job.amount).step_by(BATCH as usize) {
        let mut content = vec![0; (BATCH * RECORD_BYTES) as usize];
        for (number, record) in (first..).zip(content.chunks_exact_mut(RECORD_BYTES as usize)) {
            payload.fill(number, record);
        }
        store.publish_chunks(vec![ChunkBuild {
            stream: data,
            first: Sequence(first),
            records: BATCH,
            raw_len: content.len() as u64,
            content,
            about: Vec::new(),
            iterations: None,
            times: None,
            payloads: Vec::new(),
        }])?;
    }
    let mut chunks = job.amount / ROWS_OF_A_CHUNK;
    while chunks > 0 {
        let some = chunks.min(CHUNKS_OF_A_STREAM);
        fill_stream(&store, some)?;
        chunks -= some;
    }
    let unsealed = store.create_stream("unsealed")?;
    for n in 0..UNSEALED {
        store.append(vec![Append { stream: unsealed, payload: n.to_le_bytes().to_vec() }])?;
    }
    store.barrier()?;
    tell("ready")?;
    Ok(store)
}

fn open_ours(job: &Job) -> Outcome<Store> {
    let check = match job.arm.as_str() {
        "sealstone-check" => CheckIntegrity::Always,
        _ => CheckIntegrity::Never,
    };
    let watch = Watch::start()?;
    let store = Store::options().check_integrity(check).open(job.dir.join("run.stone"))?;
    let measured = Measured { work: 1.0, ..watch.stop()? };
    if store.recovery().records < UNSEALED {
        return Err(format!("{} unsealed records came back", store.recovery().records).into());
    }
    let again = store.create_stream("again")?;
    let accepted = store.append(vec![Append { stream: again, payload: vec![1; 8] }])?;
    store.wait(&accepted.ticket, Level::Durable)?;
    tell(&measured.to_line())?;
    Ok(store)
}

fn fill_peer(job: &Job) -> Outcome<Box<dyn peers::Peer>> {
    let mut peer = peers::open(&job.arm, &job.dir, &setup(job.amount))?;
    let mut payload = Payload::new(RECORD_BYTES as usize);
    for from in (0..job.amount).step_by(BATCH as usize) {
        peer.append(from..from + BATCH, &mut payload)?;
    }
    tell("ready")?;
    Ok(peer)
}

fn open_peer(job: &Job) -> Outcome<Box<dyn peers::Peer>> {
    let mut payload = Payload::new(RECORD_BYTES as usize);
    let watch = Watch::start()?;
    let mut peer = peers::open(&job.arm, &job.dir, &setup(job.amount))?;
    // SQLite recovers at the first use.
    payload.check(0, &peer.read(0)?)?;
    let measured = Measured { work: 1.0, ..watch.stop()? };
    payload.check(job.amount - 1, &peer.read(job.amount - 1)?)?;
    let number = u64::from(std::process::id()) << 32;
    peer.append(number..number + 1, &mut payload)?;
    tell(&measured.to_line())?;
    Ok(peer)
}

/// Takes everything below `path` out of the page cache.
fn make_cold(path: &Path) -> Outcome<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            make_cold(&entry?.path())?;
        }
        return Ok(());
    }
    let file = RealDisk::new().open(path, Access::Read)?;
    file.sync_all()?;
    Ok(file.evict()?)
}
