//! B12: how small columns become, and how fast, in memory and in one thread.

use std::time::Instant;

use bytes::Bytes;
use sealstone::format::column::BlockCodec;

use super::Job;
use crate::Outcome;
use crate::columns::parquet::How;
use crate::columns::{Table, hdf5, ours, parquet, plain};
use crate::outcome::Measured;
use crate::usage;

/// Each direction is done again and again for about so long.
const SECONDS: f64 = 0.5;

/// Why an arm cannot run here.
pub fn absent(arm: &str) -> Option<String> {
    let reason = if arm == "hdf5" { hdf5::versions().err() } else { None };
    reason.map(|e| e.to_string())
}

/// Encodes and decodes at least `job.amount` bytes of what `set` makes.
pub fn run(job: &Job, set: fn(u64) -> Outcome<Table>) -> Outcome<Measured> {
    let table = set(job.amount)?;
    let timed = Timed { table: &table, seconds: if job.amount < 1 << 22 { 0.0 } else { SECONDS } };
    let mut measured = match job.arm.as_str() {
        "raw" => timed.plain(None)?,
        "zstd" => timed.plain(Some(3))?,
        "sealstone" => timed.ours(ours::How::default())?,
        "sealstone-8mib" => {
            timed.ours(ours::How { chunk_bytes: Some(8 << 20), ..Default::default() })?
        }
        "parquet" => timed.parquet(How { level: Some(3), is_split: false })?,
        "parquet-split" => timed.parquet(How { level: Some(3), is_split: true })?,
        "hdf5" => {
            let found = hdf5::run(&table, &job.dir, timed.seconds)?;
            Measured {
                seconds: found.encode_seconds,
                back_seconds: found.decode_seconds,
                disk_bytes: found.bytes,
                cpu: found.cpu_seconds,
                peak_mib: found.peak_mib,
                ..Measured::default()
            }
        }
        other => {
            let codec = Some(codec_of(other).ok_or_else(|| format!("no codec is called {other}"))?);
            timed.ours(ours::How { codec, ..Default::default() })?
        }
    };
    measured.work = table.raw_len() as f64 / f64::from(1 << 20);
    measured.payload_bytes = table.raw_len() as f64;
    measured.syncs = -1.0;
    Ok(measured)
}

/// What an arm's name says: one codec of ours, and whether across records.
fn codec_of(arm: &str) -> Option<(BlockCodec, bool)> {
    let name = arm.strip_prefix("only-")?;
    let (name, is_across) = match name.strip_suffix("-across") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let codec = match name {
        "raw" => BlockCodec::Raw,
        "constant" => BlockCodec::Constant,
        "zstd" => BlockCodec::Zstd,
        "shuffle-zstd" => BlockCodec::ShuffleZstd,
        "delta1" => BlockCodec::Delta1,
        "delta2" => BlockCodec::Delta2,
        "delta3" => BlockCodec::Delta3,
        "pco" => BlockCodec::Pco,
        _ => return None,
    };
    Some((codec, is_across))
}

struct Timed<'a> {
    table: &'a Table,
    seconds: f64,
}

impl Timed<'_> {
    fn plain(&self, level: Option<i32>) -> Outcome<Measured> {
        let all = |encoded: &Vec<Vec<Vec<u8>>>| encoded.iter().flatten().map(Vec::len).sum();
        self.there_and_back(
            || plain::encode(self.table, level),
            all,
            |encoded| plain::decode(self.table, encoded, level),
        )
    }

    fn ours(&self, how: ours::How) -> Outcome<Measured> {
        self.there_and_back(
            || ours::encode(self.table, how),
            |chunks| chunks.iter().map(Vec::len).sum(),
            |chunks| ours::decode(self.table, chunks),
        )
    }

    fn parquet(&self, how: How) -> Outcome<Measured> {
        self.there_and_back(
            || Ok(Bytes::from(parquet::encode(self.table, how)?)),
            Bytes::len,
            |file| parquet::decode(self.table, file),
        )
    }

    fn there_and_back<T>(
        &self,
        encode: impl Fn() -> Outcome<T>,
        size: impl Fn(&T) -> usize,
        decode: impl Fn(&T) -> Outcome<Table>,
    ) -> Outcome<Measured> {
        let cpu = usage::cpu_seconds()?;
        let (seconds, encoded) = self.again_and_again(encode)?;
        let (back_seconds, found) = self.again_and_again(|| decode(&encoded))?;
        let measured = Measured {
            seconds,
            back_seconds,
            cpu: usage::cpu_seconds()? - cpu,
            peak_mib: usage::peak_mib(),
            disk_bytes: size(&encoded) as f64,
            ..Measured::default()
        };
        self.table.check(&found)?;
        Ok(measured)
    }

    /// Seconds for one time, and what came of the last.
    fn again_and_again<T>(&self, work: impl Fn() -> Outcome<T>) -> Outcome<(f64, T)> {
        let started = Instant::now();
        let mut times = 0.0;
        loop {
            let result = work()?;
            times += 1.0;
            let seconds = started.elapsed().as_secs_f64();
            if seconds >= self.seconds {
                return Ok((seconds / times, result));
            }
        }
    }
}
