//! What a process used: processor time, memory, room on the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::Outcome;

/// Processor seconds of this process so far, all of its threads.
pub fn cpu_seconds() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 / 1e6)
}

/// The most memory that this process ever held, in MiB.
pub fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

/// Bytes that everything below `path` takes of the disk.
pub fn disk_bytes(path: &Path) -> Outcome<u64> {
    let meta = fs::symlink_metadata(path)?;
    let mut sum = meta.blocks() * 512;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            sum += disk_bytes(&entry?.path())?;
        }
    }
    Ok(sum)
}
