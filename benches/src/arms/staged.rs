//! B14: JSON log lines of eight sources to Parquet. Ours takes them in batches, each acknowledged durable,
//! and converts minute after minute while the next is coming; arrow-rs alone reads, decodes and writes
//! them, a file for each source, and promises nothing.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use sealstone::staging::{
    Batch, ConvertOptions, Key, KeyPart, KeyShape, Level, PlanOptions, Produced, Ready, Stage,
    ToParquet,
};

use super::ours::Ours;
use super::{Job, Watch};
use crate::Outcome;
use crate::outcome::Measured;
use crate::text::Random;
use crate::usage;

const PRODUCERS: u64 = 8;
/// Lines of a batch.
const BATCH: usize = 1000;
/// Lines of one producer that fall into a minute.
const MINUTE: u64 = 12_500;

/// Converts `job.amount` lines. They are written to files before, from which each producer reads its own.
pub fn run(job: &Job) -> Outcome<Measured> {
    let lines = (job.amount / PRODUCERS).max(BATCH as u64).next_multiple_of(BATCH as u64);
    let sources = job.dir.join("sources");
    fs::create_dir(&sources)?;
    let mut bytes = 0;
    for producer in 0..PRODUCERS {
        bytes += write_source(&source(&job.dir, producer), producer, lines)?;
    }
    let outputs = job.dir.join("outputs");
    fs::create_dir(&outputs)?;
    let mut measured = match job.arm.as_str() {
        "sealstone" => ours(job, &outputs, lines)?,
        _ => arrow_alone(job, &outputs, lines)?,
    };
    check(&outputs, lines)?;
    measured.work = (lines * PRODUCERS) as f64;
    measured.payload_bytes = bytes as f64;
    Ok(measured)
}

fn source(dir: &Path, producer: u64) -> PathBuf {
    dir.join(format!("sources/{producer}.jsonl"))
}

/// Lines as services log them; how many bytes.
fn write_source(path: &Path, producer: u64, lines: u64) -> Outcome<u64> {
    const LEVELS: [&str; 4] = ["INFO", "INFO", "DEBUG", "WARN"];
    const PATHS: [&str; 5] = ["/", "/api/v1/items", "/api/v1/orders", "/login", "/health"];
    let mut random = Random::new(producer);
    let mut text = Vec::new();
    for n in 0..lines {
        let bits = random.next();
        let second = n % MINUTE * 60 / MINUTE;
        writeln!(
            text,
            "{{\"time\":\"2026-12-01T09:{:02}:{second:02}.{:03}Z\",\"producer\":{producer},\"n\":{n},\
             \"level\":\"{}\",\"path\":\"{}/{}\",\"status\":{},\"bytes\":{},\"took_ms\":{}.{},\
             \"trace\":\"{:016x}\",\"user\":{{\"id\":{},\"agent\":\"client/{}.{}\"}}}}",
            n / MINUTE % 60,
            bits % 1000,
            LEVELS[(bits >> 10) as usize % 4],
            PATHS[(bits >> 12) as usize % 5],
            (bits >> 15) % 100_000,
            [200, 200, 200, 201, 404, 500][(bits >> 32) as usize % 6],
            (bits >> 35) % 65_536,
            (bits >> 51) % 300,
            (bits >> 60) % 10,
            random.next(),
            bits % 5000,
            bits % 7,
            bits % 10,
        )?;
    }
    File::create(path)?.write_all(&text)?;
    Ok(text.len() as u64)
}

fn ours(job: &Job, outputs: &Path, lines: u64) -> Outcome<Measured> {
    let mut ours = Ours::create(&job.dir)?;
    let stage = ours.store.create_stage("logs", &KeyShape::new().minute("minute"))?;
    let minutes: Vec<AtomicI64> = (0..PRODUCERS).map(|_| AtomicI64::new(0)).collect();
    let at_work = AtomicUsize::new(PRODUCERS as usize);
    ours.begin();
    let watch = Watch::start()?;
    thread::scope(|scope| -> Outcome<()> {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let (stage, minutes, at_work) = (stage.clone(), &minutes, &at_work);
                scope.spawn(move || {
                    let done = produce(&stage, job, producer, &minutes[producer as usize]);
                    minutes[producer as usize].store(i64::MAX, Ordering::Release);
                    at_work.fetch_sub(1, Ordering::AcqRel);
                    done
                })
            })
            .collect();
        let mut converted_upto = 0;
        while at_work.load(Ordering::Acquire) > 0 {
            // What every producer has passed is complete.
            let upto =
                minutes.iter().map(|minute| minute.load(Ordering::Acquire)).min().unwrap_or(0);
            if upto > converted_upto && upto < i64::MAX {
                convert(&stage, &Ready::Before("minute", upto))?;
                converted_upto = upto;
            } else {
                thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        for producer in producers {
            producer.join().map_err(|_| "a producer panicked")??;
        }
        convert(&stage, &Ready::All)
    })?;
    let mut measured = watch.stop()?;
    measured.syncs = ours.syncs();
    if stage.view()?.rows() != lines * PRODUCERS {
        return Err("the stage has other rows".into());
    }
    for output in stage.outputs()? {
        let mut file = File::create(outputs.join(format!("{}.parquet", output.id)))?;
        stage.copy_output(output.id, &mut file)?;
    }
    ours.store.close()?;
    measured.disk_bytes = usage::disk_bytes(&job.dir.join("run.stone"))? as f64;
    Ok(measured)
}

/// Appends the lines of a source, each batch acknowledged before the next.
fn produce(stage: &Stage, job: &Job, producer: u64, at: &AtomicI64) -> Outcome<()> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(source(&job.dir, producer))?);
    let name = format!("producer-{producer}");
    let (mut sequence, mut offset) = (0_u64, 0_u64);
    loop {
        let mut text = Vec::with_capacity(BATCH * 256);
        for _ in 0..BATCH {
            reader.read_until(b'\n', &mut text)?;
        }
        if text.is_empty() {
            return Ok(());
        }
        let minute = (sequence * BATCH as u64 / MINUTE) as i64;
        at.store(minute, Ordering::Release);
        offset += text.len() as u64;
        let produced = Produced::new(name.clone(), sequence).at(offset.to_be_bytes());
        let key = Key::new([KeyPart::Minute(minute)]);
        let appended = stage.append(&key, Batch::json_lines(text)?, Some(&produced))?;
        stage.wait(&appended.ticket, Level::Durable)?;
        sequence += 1;
    }
}

/// Publishes what is ready.
fn convert(stage: &Stage, ready: &Ready<'_>) -> Outcome<()> {
    stage.flush(ready)?;
    let plan = stage.plan(&PlanOptions::default())?;
    for group in plan.convert(&ToParquet::new(), &ConvertOptions::default())? {
        group.made?;
    }
    Ok(())
}

fn arrow_alone(job: &Job, outputs: &Path, lines: u64) -> Outcome<Measured> {
    let watch = Watch::start()?;
    thread::scope(|scope| -> Outcome<()> {
        let threads: Vec<_> = (0..PRODUCERS)
            .map(|producer| scope.spawn(move || decode(job, outputs, producer, lines)))
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    let mut measured = watch.stop()?;
    measured.disk_bytes = usage::disk_bytes(outputs)? as f64;
    Ok(measured)
}

/// The schema of the first lines, then all lines in batches of the same size, as one file.
fn decode(job: &Job, outputs: &Path, producer: u64, lines: u64) -> Outcome<()> {
    let open = || -> Outcome<_> {
        Ok(BufReader::with_capacity(1 << 20, File::open(source(&job.dir, producer))?))
    };
    let (schema, _) = infer_json_schema(open()?, Some(BATCH))?;
    let schema = Arc::new(schema);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .build();
    let file = File::create(outputs.join(format!("{producer}.parquet")))?;
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
    let mut rows = 0;
    for batch in ReaderBuilder::new(schema).with_batch_size(BATCH).build(open()?)? {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.close()?;
    if rows == lines { Ok(()) } else { Err(format!("{rows} of {lines} lines were read").into()) }
}

/// Every line of every source is there, and none twice.
fn check(outputs: &Path, lines: u64) -> Outcome<()> {
    let mut seen = vec![false; (lines * PRODUCERS) as usize];
    for entry in fs::read_dir(outputs)? {
        let file = File::open(entry?.path())?;
        for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
            let batch = batch?;
            let column = |name: &str| {
                batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>().values())
            };
            let (producers, numbers) = column("producer").zip(column("n")).ok_or("no column")?;
            for (producer, n) in producers.iter().zip(numbers) {
                let at = usize::try_from(producer * lines as i64 + n)?;
                match seen.get_mut(at) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Err(format!("line {n} of {producer} is there twice").into()),
                }
            }
        }
    }
    match seen.iter().filter(|seen| !**seen).count() {
        0 => Ok(()),
        missing => Err(format!("{missing} lines are missing").into()),
    }
}
