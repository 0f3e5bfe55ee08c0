//! A long recording of small chunks: does its writer need more memory, or more time for a chunk, the
//! longer it is? And how many observations a second does one thread get written?
//!
//! `cargo run --release --example many_chunks -- 1000000`

use std::error::Error;
use std::time::Instant;

use sealstone::Store;
use sealstone::recording::{Field, FieldType, Level, Schema, StreamOptions};

/// Records of a chunk, and numbers of a record: 4 times 248 bytes and what a record has besides.
const RECORDS: u64 = 4;
const NUMBERS: u32 = 29;
/// Observations of three numbers, for their speed.
const OBSERVATIONS: i64 = 2_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let chunks = std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    many_chunks(&Store::create(folder.path().join("many.stone"))?, chunks)?;
    let folder = tempfile::tempdir()?;
    speed(&Store::create(folder.path().join("speed.stone"))?)
}

/// Numbers that no codec makes shorter.
fn fill(state: &mut u64, values: &mut [f64]) {
    for value in values {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *value = f64::from_bits(*state & !(0x7ff << 52) | (0x3ff << 52));
    }
}

fn many_chunks(store: &Store, chunks: u64) -> Result<(), Box<dyn Error>> {
    let schema = Schema::new(vec![Field::new("v", FieldType::F64).array([NUMBERS])])?;
    let options = StreamOptions::new("s", ["v"]).chunk_records(RECORDS);
    let run = store.record("many", &schema).stream_as(options).start()?;
    let commits = store.stats()?.commit.0;
    let (mut state, mut values) = (1u64, [0f64; NUMBERS as usize]);
    let started = Instant::now();
    let mut tenths = vec![cpu_nanos()];
    for chunk in 0..chunks {
        for record in 0..RECORDS {
            fill(&mut state, &mut values);
            let iteration = (chunk * RECORDS + record) as i64;
            run.observe_with(iteration, None, |_, to| to.put(&values))?;
        }
        if (chunk + 1) * 10 / chunks > chunk * 10 / chunks {
            tenths.push(cpu_nanos());
            let peak = peak_mib().unwrap_or_default();
            let elapsed = started.elapsed().as_secs_f64();
            println!("{} chunks, {elapsed:.1} s, peak {peak} MiB resident", chunk + 1);
        }
    }
    run.complete()?;
    let commits = store.stats()?.commit.0 - commits;
    let per_chunk = |tenth: usize| {
        let nanos = tenths.get(tenth + 1).zip(tenths.get(tenth)).map_or(0, |(b, a)| b - a);
        nanos as f64 / 1e3 / (chunks as f64 / 10.0)
    };
    let (first, last) = (per_chunk(0), per_chunk(tenths.len().saturating_sub(2)));
    println!("{chunks} chunks in {commits} commits, peak {:?} MiB resident", peak_mib());
    println!("CPU for a chunk: {first:.1} us in the first tenth, {last:.1} us in the last");

    let stream = store.recording("many")?.stream("s")?;
    assert_eq!(stream.record_count(), chunks * RECORDS);
    assert_eq!(stream.chunk_count() as u64, chunks);
    let mut expected = 1u64;
    for record in 0..chunks * RECORDS {
        fill(&mut expected, &mut values);
        if record % (chunks * RECORDS / 100).max(1) == 0 {
            let read = stream.field("v")?.records(record..record + 1).to_vec::<Vec<f64>>()?;
            assert!(read.len() == 1 && read[0] == values, "record {record}");
        }
    }
    Ok(())
}

fn speed(store: &Store) -> Result<(), Box<dyn Error>> {
    let fields = ["x", "y", "z"].map(|name| Field::new(name, FieldType::F64));
    let schema = Schema::new(fields.to_vec())?;
    let run = store.record("speed", &schema).stream("s", ["x", "y", "z"]).start()?;
    let (started, cpu) = (Instant::now(), cpu_nanos());
    let mut ticket = None;
    for iteration in 0..OBSERVATIONS {
        let t = iteration as f64;
        ticket = Some(run.observe_with(iteration, None, |name, to| match name {
            "x" => to.put(t),
            "y" => to.put(t * 0.5),
            _ => to.put(-t),
        })?);
    }
    if let Some(ticket) = ticket {
        run.wait(&ticket, Level::Written)?;
    }
    let (elapsed, cpu) = (started.elapsed().as_secs_f64(), cpu_nanos() - cpu);
    println!(
        "{:.0} observations of three numbers a second, written; {:.0} ns of CPU for each",
        OBSERVATIONS as f64 / elapsed,
        cpu as f64 / OBSERVATIONS as f64
    );
    run.complete()?;
    assert_eq!(store.recording("speed")?.stream("s")?.record_count(), OBSERVATIONS as u64);
    Ok(())
}

/// CPU time of this thread so far, where the system tells.
fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0)
}

/// The most memory that this process held, in MiB, where the system tells.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib >> 10)
}
