//! Columns as an HDF5 file through h5py, which a Python of its own brings: see docs/BENCHMARKS.md. The arrays
//! go to it as files, so that both sides see the same bits; the script times itself, and compares what it
//! read with what it was given.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::plain::bytes_of;
use super::{Data, Table};
use crate::Outcome;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hdf5.py");
/// Names another Python than the one beside the build.
const PYTHON: &str = "SEALSTONE_BENCH_PYTHON";

fn python() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/target/h5py/bin/python");
    std::env::var_os(PYTHON).map_or_else(|| PathBuf::from(beside), PathBuf::from)
}

/// The versions of what would run.
pub fn versions() -> Outcome<String> {
    let found = Command::new(python()).arg(SCRIPT).output();
    let found = found.map_err(|e| format!("{}: {e}", python().display()))?;
    if !found.status.success() {
        let said = String::from_utf8_lossy(&found.stderr);
        return Err(said.lines().last().unwrap_or("it failed").to_owned().into());
    }
    Ok(String::from_utf8(found.stdout)?.trim().to_owned())
}

/// What the script found.
#[derive(Debug, Default)]
pub struct Found {
    pub encode_seconds: f64,
    pub decode_seconds: f64,
    pub bytes: f64,
    pub cpu_seconds: f64,
    pub peak_mib: f64,
}

/// Writes the arrays into `dir`, and lets the script encode and decode them.
pub fn run(table: &Table, dir: &Path, seconds: f64) -> Outcome<Found> {
    let mut list = String::new();
    for (at, column) in table.columns.iter().enumerate() {
        let kind = match column.data {
            Data::F64(_) => "f64",
            Data::I64(_) => "i64",
            Data::Text(_) => "text",
        };
        let axes: Vec<String> = column.axes.iter().map(usize::to_string).collect();
        let flags = if column.present.is_some() { "flags" } else { "all" };
        list.push_str(&format!("{kind} {} {flags} {}\n", column.rows(), axes.join(",")));
        File::create(dir.join(format!("{at}.bin")))?.write_all(&bytes_of(column))?;
    }
    fs::write(dir.join("columns.txt"), list)?;
    let output = Command::new(python()).arg(SCRIPT).arg(dir).arg(seconds.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let said = String::from_utf8(output.stdout)?;
    let words: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [encode_seconds, decode_seconds, bytes, cpu_seconds, peak_mib] = words[..] else {
        return Err(format!("the script said {said:?}").into());
    };
    Ok(Found { encode_seconds, decode_seconds, bytes, cpu_seconds, peak_mib })
}
