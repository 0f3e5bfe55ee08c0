//! B11, projection: one field of twenty, over one in a hundred records that lie together. The store is
//! written once, and each run reads the whole field first and compares it.

mod columns;
mod lines;
mod ours;
mod parquet;
mod rows;
mod sqlite;

use std::ops::Range;

use super::Job;
use super::reading::repeated;
use crate::Outcome;
use crate::outcome::Measured;
use crate::text::Random;
use crate::usage;

pub const FIELDS: usize = 20;
/// The one that is asked for.
const WANTED: usize = 7;
/// Records that are appended as one.
pub const BATCH: u64 = 8 << 10;
const RANGES: usize = 100;
/// One in so many records is a stretch.
const STRETCH: u64 = 100;

/// The name of a field.
pub fn name(field: usize) -> String {
    format!("f{field:02}")
}

/// What the record `number` has in a field: two decimals, and no pattern.
pub fn value(number: u64, field: usize) -> f64 {
    let seed = number * FIELDS as u64 + field as u64;
    (Random::new(seed).next() % 10_000_000) as f64 / 100.0
}

/// Records of twenty doubles; their number is their time.
pub trait Wide {
    /// Appends the records of these numbers.
    fn append(&mut self, numbers: Range<u64>) -> Outcome<()>;
    /// All is appended.
    fn finish(&mut self) -> Outcome<()> {
        Ok(())
    }
    /// One field of the records with these numbers.
    fn project(&mut self, field: usize, numbers: Range<u64>) -> Outcome<Vec<f64>>;
}

fn open(job: &Job) -> Outcome<Box<dyn Wide>> {
    Ok(match job.arm.as_str() {
        "raw" => Box::new(columns::Columns::open(&job.dir)?),
        "sealstone" => Box::new(ours::Ours::open(&job.dir)?),
        "sqlite" => Box::new(sqlite::Sqlite::open(&job.dir)?),
        "parquet" => Box::new(parquet::Parquet::open(&job.dir)?),
        "jsonl" => Box::new(lines::Lines::open(&job.dir)?),
        peer => Box::new(rows::Rows::open(peer, &job.dir, records(job))?),
    })
}

fn records(job: &Job) -> u64 {
    job.amount.max(BATCH).next_multiple_of(BATCH)
}

/// Writes the store.
pub fn prepare(job: &Job) -> Outcome<()> {
    let mut store = open(job)?;
    for from in (0..records(job)).step_by(BATCH as usize) {
        store.append(from..from + BATCH)?;
    }
    store.finish()
}

/// Fails unless `found` is the field of these records.
fn check(field: usize, numbers: Range<u64>, found: &[f64]) -> Outcome<()> {
    let is_long = found.len() as u64 == numbers.end - numbers.start;
    if is_long && numbers.zip(found).all(|(number, found)| value(number, field) == *found) {
        return Ok(());
    }
    Err(format!("{} values of field {field} came back, or others", found.len()).into())
}

/// Reads stretches, anywhere.
pub fn run(job: &Job) -> Outcome<Measured> {
    let mut store = open(job)?;
    let all = 0..records(job);
    check(WANTED, all.clone(), &store.project(WANTED, all)?)?;
    let (first, last) = (store.project(0, 0..10)?, store.project(FIELDS - 1, 0..10)?);
    check(0, 0..10, &first)?;
    check(FIELDS - 1, 0..10, &last)?;
    let mut random = Random::new(13);
    let len = records(job) / STRETCH;
    let mut read = Vec::new();
    let mut measured = repeated(RANGES, || {
        let from = random.next() % (records(job) - len);
        read.push((from, store.project(WANTED, from..from + len)?));
        Ok(())
    })?;
    for (from, values) in &read {
        check(WANTED, *from..from + len, values)?;
    }
    measured.payload_bytes = (records(job) * 8 * FIELDS as u64) as f64;
    measured.disk_bytes = usage::disk_bytes(&job.dir)? as f64;
    Ok(measured)
}
