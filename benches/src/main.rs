//! Measures sealstone against its peers and against the disk, row by row of docs/BENCHMARKS.md.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml -- [ROW...] [--scale S] [--rounds N]
//! [--dir D] [--smoke]`. Every arm of a row keeps the same promise, runs in a fresh process, and takes
//! turns with the others; medians are printed. What was written is read back and compared: a wrong or
//! missing record ends the run. No time is ever asserted.

mod args;
mod arms;
mod columns;
mod goals;
mod outcome;
mod payload;
mod peers;
mod report;
mod rows;
mod run;
mod sets;
mod text;
mod usage;

use std::process::ExitCode;

/// What a benchmark may end with.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let result = match given.split_first() {
        Some((first, rest)) if first == run::CHILD => run::child(rest),
        _ => args::parse(&given).and_then(|args| run::all(&args)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
