//! Could a long input fill the memory of the machine?
//!
//! `SEALSTONE_IMPORT_MIB=1024 cargo nextest run --release --features cli --test memory` does it with
//! a file of 1 GiB; 64 MiB without it.
#![cfg(all(feature = "cli", target_os = "linux"))]

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Import and export stay below this, whatever the length of the file.
const PEAK_MIB_MAX: u64 = 256;
/// With a file of the default length they stay below its length and a fixed share.
const SHORT_MIB: u64 = 64;
const SHORT_PEAK_MIB_MAX: u64 = 128;

/// Writes sensor-like rows of ten columns until `bytes` are reached; returns how many rows.
fn write_rows(path: &Path, bytes: u64) -> u64 {
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut written = 0;
    let mut rows = 0;
    written += file.write(b"site,t,temp,wind,gust,count,ok,note,id,ratio\n").unwrap() as u64;
    while written < bytes {
        let r = next();
        let gust = if r.is_multiple_of(3) {
            "NA".to_owned()
        } else {
            format!("{:.4}", (r % 4000) as f64 / 77.0)
        };
        let line = format!(
            "S{},{rows},{:.2},{:.6},{gust},{},{},note {} of many,{:016x},{}\n",
            r % 40,
            15.0 + ((rows as f64) * 0.001).sin() * 10.0 + (r % 100) as f64 * 0.01,
            (r >> 20) as f64 / 1e9,
            r % 1000,
            r.is_multiple_of(2),
            r % 97,
            next(),
            (r >> 11) as f64 / (1u64 << 53) as f64,
        );
        file.write_all(line.as_bytes()).unwrap();
        written += line.len() as u64;
        rows += 1;
    }
    file.flush().unwrap();
    rows
}

/// Runs the tool and returns what it printed and the most memory it held, in MiB.
fn run(args: &[&str], stdout: Stdio) -> (String, u64) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sealstone"))
        .args(args)
        .env_remove("SEALSTONE_STORE")
        .stdout(stdout)
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) / 1024);
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    (String::from_utf8(output.stdout).unwrap(), peak)
}

/// Does memory stay bounded while a long file goes in, and while it comes out again merged from
/// forty streams?
#[test]
fn memory_does_not_follow_the_input() {
    let mib = std::env::var("SEALSTONE_IMPORT_MIB").map_or(SHORT_MIB, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long.csv");
    let store = dir.path().join("long.stone");
    let rows = write_rows(&file, mib << 20);
    let (file, store) = (file.to_str().unwrap(), store.to_str().unwrap());
    let most = if mib <= SHORT_MIB { SHORT_PEAK_MIB_MAX } else { PEAK_MIB_MAX };

    let (said, peak) =
        run(&["import", store, file, "--stream-by", "site", "--json"], Stdio::piped());
    let summary = said.lines().last().unwrap();
    println!("import of {mib} MiB, {rows} rows: {peak} MiB at most; {summary}");
    assert!(summary.contains(&format!("\"rows\":{rows}")), "{summary}");
    assert!(peak > 0 && peak < most, "{peak} MiB at most, {most} allowed");

    let out = std::fs::File::create(dir.path().join("out.csv")).unwrap();
    let (_, peak) = run(&["export", store, "long"], Stdio::from(out));
    println!("export: {peak} MiB at most");
    assert!(peak > 0 && peak < most, "{peak} MiB at most, {most} allowed");
    let (written, read) = (dir.path().join("out.csv"), dir.path().join("long.csv"));
    assert_eq!(lines(&written), lines(&read));
}

fn lines(path: &Path) -> u64 {
    use std::io::BufRead;
    let mut file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let (mut lines, mut buffer) = (0, Vec::new());
    while file.read_until(b'\n', &mut buffer).unwrap() > 0 {
        lines += 1;
        buffer.clear();
    }
    lines
}
