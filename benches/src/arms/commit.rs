//! B8: what one more chunk costs in processor time, by the number of chunks that are there. The store
//! stays from round to round; its name ends with its number of chunks.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use sealstone::Store;
use sealstone::digest::Digest;
use sealstone::engine::ChunkBuild;
use sealstone::ids::{Generation, Ordinal, Sequence, StreamId};
use sealstone::manifest::{ChunkRow, InlineRow, ObjectRow, Place, Reading, StreamRow};
use sealstone::vfs::Step;

use super::ours::Ours;
use super::{Job, Watch};
use crate::Outcome;
use crate::outcome::Measured;
use crate::payload::{Payload, Source};
use crate::peers::{self, Promise, Setup};
use crate::usage;

/// A chunk as large as goes into the manifest: the file that a larger one takes is not the question.
const CHUNK_BYTES: usize = 512;
/// Rows in one transaction while the store is being filled.
const FILL: u64 = 1000;
/// What a peer holds for a chunk: as long as a descriptor of ours.
const DESCRIPTOR_BYTES: usize = 120;

fn parts(arm: &str) -> Outcome<(&str, u64)> {
    let (name, chunks) = arm.split_once('@').ok_or("how many chunks?")?;
    Ok((name, chunks.parse()?))
}

/// Fills the store.
pub fn prepare(job: &Job) -> Outcome<()> {
    let (name, chunks) = parts(&job.arm)?;
    match name {
        "sealstone" => {
            let store = Store::create(job.dir.join("run.stone"))?;
            for _ in 0..chunks / FILL {
                fill_stream(&store, FILL)?;
            }
            Ok(store.close()?)
        }
        "json" => write_json(&job.dir, chunks),
        peer => {
            let mut payload = Payload::new(DESCRIPTOR_BYTES);
            let mut peer = peers::open(peer, &job.dir, &setup())?;
            for from in (0..chunks).step_by(FILL as usize) {
                peer.append(from..from + FILL, &mut payload)?;
            }
            Ok(())
        }
    }
}

fn setup() -> Setup {
    Setup { promise: Promise::Durable, record_bytes: DESCRIPTOR_BYTES as u64, records: 0 }
}

/// Commits `job.amount` chunks, one at a time.
pub fn run(job: &Job) -> Outcome<Measured> {
    let (name, chunks) = parts(&job.arm)?;
    let mut measured = match name {
        "sealstone" => ours(job)?,
        "json" => {
            let watch = Watch::start()?;
            // It is slow where there are many, and the same each time.
            let commits = if chunks > 1000 { job.amount.div_ceil(10) } else { job.amount };
            (0..commits).try_for_each(|n| write_json(&job.dir, chunks + n))?;
            Measured { work: commits as f64, ..watch.stop()? }
        }
        peer => {
            let mut payload = Payload::new(DESCRIPTOR_BYTES);
            let mut peer = peers::open(peer, &job.dir, &setup())?;
            let from = peer.count()?;
            let watch = Watch::start()?;
            for number in from..from + job.amount {
                peer.append(number..number + 1, &mut payload)?;
            }
            let syncs = peer.syncs().map_or(-1.0, |syncs| syncs as f64);
            let measured = Measured { work: job.amount as f64, syncs, ..watch.stop()? };
            let last = from + job.amount - 1;
            payload.check(last, &peer.read(last)?)?;
            measured
        }
    };
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}

fn ours(job: &Job) -> Outcome<Measured> {
    let mut ours = Ours::open(&job.dir)?;
    let store = ours.store.clone();
    let committed = || -> Outcome<u64> { Ok(store.snapshot()?.counters()?.commit_seq.0) };
    let stream = store.create_stream("measured")?;
    let mut payload = Payload::new(CHUNK_BYTES);
    let epoch = store.owner().map_or(0, |(_, epoch)| epoch.0);
    let mut build = |first: u64, records: u64| ChunkBuild {
        stream,
        first: Sequence(first),
        records,
        // Not what an earlier round stored: nothing is deduplicated.
        content: payload.record(epoch << 32 | first).to_vec(),
        about: Vec::new(),
        raw_len: CHUNK_BYTES as u64,
        iterations: None,
        times: None,
        payloads: Vec::new(),
    };
    let before = committed()?;
    ours.begin();
    let watch = Watch::start()?;
    for n in 0..job.amount {
        store.publish_chunks(vec![build(n, 1)])?;
    }
    let syncs = ours.syncs();
    let measured = Measured { work: job.amount as f64, syncs, ..watch.stop()? };
    // Chunks sealed together cost one commit.
    let together = (job.amount..job.amount + 100).map(|n| build(n, 1)).collect();
    let between = committed()?;
    store.publish_chunks(together)?;
    if (between - before, committed()? - between) != (job.amount, 1) {
        return Err("a chunk cost more than one commit".into());
    }
    let view = store.view(stream)?;
    let last = &view.chunks.last().ok_or("no chunk is there")?.1;
    if view.record_count() != job.amount + 100
        || store.fetch(last.object)? != build(last.first.0, 1).content
    {
        return Err("what was published did not come back".into());
    }
    drop(store);
    ours.store.close()?;
    Ok(measured)
}

/// Adds a stream of `chunks` chunks of one record each, in one transaction.
pub fn fill_stream(store: &Store, chunks: u64) -> Outcome<StreamId> {
    let committed = store.transact(Step::PublishCommit, |w| {
        let stream = w.next_stream_id()?;
        for ordinal in 0..chunks {
            let object = w.next_object_id()?;
            let mut bytes = [stream.0.to_le_bytes(), ordinal.to_le_bytes()].concat();
            bytes.resize(CHUNK_BYTES, 7);
            let (digest, len) = (Digest::of(&bytes), bytes.len() as u64);
            let row = ObjectRow { digest, len, stored_len: len, codec: 0, place: Place::Inline };
            w.put(&object, &row)?;
            w.put(&object, &InlineRow { bytes })?;
            let chunk = ChunkRow {
                object,
                generation: Generation(0),
                first: Sequence(ordinal),
                records: 1,
                records_written: 1,
                iterations: None,
                times: None,
                raw_len: len,
                payloads: Vec::new(),
            };
            w.put(&(stream, Ordinal(ordinal)), &chunk)?;
        }
        let row = StreamRow {
            name: format!("s{stream}"),
            sealed_upto: Sequence(chunks),
            next_ordinal: Ordinal(chunks),
            ..StreamRow::default()
        };
        w.put(&stream, &row)?;
        Ok(stream)
    })?;
    Ok(committed.value)
}

/// A manifest as many tools keep it: one JSON file, rewritten whole, durable and atomic.
fn write_json(dir: &Path, chunks: u64) -> Outcome<()> {
    let mut text = String::from("{\"chunks\":[");
    for n in 0..chunks {
        let comma = if n == 0 { "" } else { "," };
        let digest = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        write!(
            text,
            "{comma}{{\"stream\":1,\"ordinal\":{n},\"digest\":\"{digest:064x}\",\"first\":{n},\
             \"rows\":1,\"length\":{CHUNK_BYTES},\"offset\":{}}}",
            n * CHUNK_BYTES as u64
        )?;
    }
    text.push_str("]}");
    let next = dir.join("manifest.next");
    let mut file = File::create(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&next, dir.join("manifest.json"))?;
    Ok(File::open(dir)?.sync_all()?)
}
