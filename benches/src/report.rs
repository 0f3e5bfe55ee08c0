//! Tables for people and for docs/BENCHMARKS.md: the same text.

use std::fmt::Write as _;

use crate::args::Args;
use crate::columns::hdf5;
use crate::goals::{ratio, short};
use crate::outcome::Measured;
use crate::rows::{Row, Table};
use crate::run::ByArm;

/// What is printed before all rows.
pub fn preamble(args: &Args) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "{cores} processors, {} round(s), scale {}{}. Arms take turns; medians of all rounds.\n",
        args.rounds,
        if args.smoke { 0.0 } else { args.scale },
        if args.smoke { " (smoke run: the figures mean nothing)" } else { "" }
    );
    if args.rows.iter().any(|row| row.arms.contains(&"hdf5")) {
        let found = hdf5::versions().unwrap_or_else(|e| format!("left out: {e}"));
        let _ = writeln!(text, "hdf5: {}", found.trim());
    }
    text
}

/// One row's table, and what became of its goals.
pub fn row(row: &Row, args: &Args, measured: &ByArm) -> String {
    let found = |arm: &str| measured.get(arm).map(|runs| Measured::median(runs));
    let mut text = format!("### {}: {}\n\n", row.id, row.title);
    match row.table {
        Table::Speeds => speeds(&mut text, row, measured),
        Table::Sizes => sizes(&mut text, row, measured),
    }
    let verdicts = row.goals.iter().filter_map(|goal| goal.judge(row, &found));
    for verdict in verdicts.filter(|_| !args.smoke) {
        let word = if verdict.is_met { "met" } else { "MISSED" };
        let _ = write!(text, "\n- {word}: {}; found {}", verdict.text, verdict.found);
    }
    text.push('\n');
    text
}

fn speeds(text: &mut String, row: &Row, measured: &ByArm) {
    let found = |arm: &str| measured.get(arm).map(|runs| Measured::median(runs));
    let unit = row.unit;
    let _ = writeln!(
        text,
        "| arm | {unit} | lowest - highest | sealstone is so many x better | of the limit | p50 / p99 us | \
         disk / payload | peak MiB | CPU s | syncs |"
    );
    let _ = writeln!(text, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let (ours, limit) = (found(row.ours), found(row.limit));
    for arm in row.arms {
        let (Some(median), Some(runs)) = (found(arm), measured.get(arm)) else { continue };
        let against = ours.map_or(f64::NAN, |ours| ratio(row, &ours, &median));
        let of_limit = limit.map_or(f64::NAN, |limit| ratio(row, &median, &limit));
        let _ = writeln!(
            text,
            "| {arm} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            short((row.value)(&median)),
            between(runs, row.value),
            short(against),
            short(of_limit),
            waits(&median),
            short(median.disk_bytes / median.payload_bytes),
            short(median.peak_mib),
            short(median.cpu),
            if median.syncs < 0.0 { "not counted".to_owned() } else { format!("{}", median.syncs) },
        );
    }
}

fn sizes(text: &mut String, row: &Row, measured: &ByArm) {
    let found = |arm: &str| measured.get(arm).map(|runs| Measured::median(runs));
    let _ = writeln!(
        text,
        "| arm | {} | sealstone is so many x smaller | made at MiB/s | lowest - highest | read back at MiB/s | \
         lowest - highest | peak MiB | CPU s |",
        row.unit
    );
    let _ = writeln!(text, "|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let ours = found(row.ours);
    for arm in row.arms {
        let (Some(median), Some(runs)) = (found(arm), measured.get(arm)) else { continue };
        let against = ours.map_or(f64::NAN, |ours| ratio(row, &ours, &median));
        let made = |m: &Measured| m.work / m.seconds;
        let back = |m: &Measured| m.work / m.back_seconds;
        let _ = writeln!(
            text,
            "| {arm} | {} | {} | {} | {} | {} | {} | {} | {} |",
            short((row.value)(&median)),
            short(against),
            short(made(&median)),
            between(runs, made),
            short(back(&median)),
            between(runs, back),
            short(median.peak_mib),
            short(median.cpu),
        );
    }
}

/// Bytes by arm and data set, of all rows that encode.
pub fn bytes_of_sets(rows: &[(&'static Row, ByArm)]) -> String {
    let rows: Vec<_> = rows.iter().filter(|(row, _)| row.table == Table::Sizes).collect();
    let mut arms: Vec<&str> = Vec::new();
    for arm in rows.iter().flat_map(|(row, _)| row.arms) {
        if !arms.contains(arm) {
            arms.push(arm);
        }
    }
    let mut text = String::new();
    if rows.len() < 2 {
        return text;
    }
    let ids = rows.iter().map(|(row, _)| format!(" {} |", row.id)).collect::<String>();
    let _ = writeln!(
        text,
        "### B12: bytes of each\n\n| arm |{ids}\n|---|{}",
        "--:|".repeat(rows.len())
    );
    for arm in arms {
        let _ = write!(text, "| {arm} |");
        for (_, measured) in &rows {
            let _ = match measured.get(arm).map(|runs| Measured::median(runs)) {
                Some(found) => write!(text, " {} |", found.disk_bytes),
                None => write!(text, " - |"),
            };
        }
        text.push('\n');
    }
    text
}

fn between(runs: &[Measured], value: impl Fn(&Measured) -> f64) -> String {
    let mut values: Vec<f64> = runs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    format!("{} - {}", short(values[0]), short(values[values.len() - 1]))
}

fn waits(m: &Measured) -> String {
    if m.p50 == 0.0 { "-".to_owned() } else { format!("{} / {}", short(m.p50), short(m.p99)) }
}
