//! The main job, on real input: import a year of weather into one stream per airport, check the
//! store, export it, and compare every value.
//!
//! `cargo run --release --features cli --example weather`

use std::error::Error;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use sealstone::Store;
use sealstone::check::{CheckOptions, check};
use sealstone::interop::Format;
use sealstone::recording::{ExportOptions, ImportOptions};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/nyc-weather-2013.csv");

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("weather.stone");
    let input = fs::read(INPUT)?;
    println!("input    {INPUT}: {} bytes", input.len());

    let started = Instant::now();
    let store = Store::create(&path)?;
    let options = ImportOptions::new("weather", Format::Csv, "nyc-weather-2013.csv");
    let imported = store
        .import(&input[..], &options.stream_by("origin"), &mut |_| ControlFlow::Continue(()))?;
    let stored: u64 = store
        .recording("weather")?
        .streams()?
        .iter()
        .try_fold(0, |sum, stream| stream.stored_bytes().map(|bytes| sum + bytes))?;
    store.close()?;
    println!(
        "import   {} rows, {} values, {} of them missing, durable in {:.3} s",
        imported.rows,
        imported.values,
        imported.missing,
        started.elapsed().as_secs_f64()
    );
    for (stream, records) in &imported.streams {
        println!("         stream {stream}: {records} records");
    }
    println!("         {stored} bytes stored, {:.1} times less", ratio(input.len() as u64, stored));

    let started = Instant::now();
    let report = check(&path, &CheckOptions::default(), &mut |_| ControlFlow::Continue(()))?;
    for finding in &report.findings {
        println!("         {finding}");
    }
    if report.damages > 0 {
        return Err(format!("{} contradictions found", report.damages).into());
    }
    println!(
        "check    {} rows of the manifest, {} chunks, {} bytes read, nothing damaged, {:.3} s",
        report.looked_at.rows,
        report.looked_at.chunks,
        report.bytes_read,
        started.elapsed().as_secs_f64()
    );

    let started = Instant::now();
    let output = export(&path)?;
    println!("export   {} bytes, {:.3} s", output.len(), started.elapsed().as_secs_f64());

    let same = compare(&input, &output)?;
    if same.missing != imported.missing || same.values != imported.values {
        return Err("the counts of the export are not those of the import".into());
    }
    println!(
        "compare  {} rows, {} values: all equal ({} as numbers, {} as text, {} NA in both)",
        same.rows, same.values, same.numbers, same.texts, same.missing
    );
    Ok(())
}

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

fn export(path: &Path) -> Result<Vec<u8>, sealstone::Error> {
    let store = Store::open_read_only(path)?;
    let options = ExportOptions::new(Format::Csv);
    let recording = store.recording("weather")?;
    let (_, output) = recording.export(Vec::new(), &options, &mut |_| ControlFlow::Continue(()))?;
    Ok(output)
}

#[derive(Default)]
struct Same {
    rows: u64,
    values: u64,
    numbers: u64,
    texts: u64,
    missing: u64,
}

/// Compares two CSV files value by value: as numbers where both are numbers, as text elsewhere.
fn compare(input: &[u8], output: &[u8]) -> Result<Same, Box<dyn Error>> {
    let (mut a, mut b) = (csv::Reader::from_reader(input), csv::Reader::from_reader(output));
    if a.headers()? != b.headers()? {
        return Err("the columns differ".into());
    }
    let mut same = Same::default();
    let mut theirs = b.records();
    for mine in a.records() {
        let mine = mine?;
        let theirs = theirs.next().ok_or("rows are missing")??;
        for (x, y) in mine.iter().zip(theirs.iter()) {
            match (x.parse::<f64>(), y.parse::<f64>()) {
                _ if x == "NA" && y == "NA" => same.missing += 1,
                (Ok(m), Ok(n)) if m == n => same.numbers += 1,
                (Err(_), Err(_)) if x == y => same.texts += 1,
                _ => return Err(format!("row {}: {x:?} became {y:?}", same.rows).into()),
            }
            same.values += 1;
        }
        same.rows += 1;
    }
    if theirs.next().is_some() {
        return Err("there are rows too many".into());
    }
    Ok(same)
}
