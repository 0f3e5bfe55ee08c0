//! What an arm does, row by row. Each runs in a process of its own.

pub mod acknowledged;
pub mod bulk;
pub mod commit;
mod observed;
mod ours;
pub mod reading;
mod recorded;
pub mod reopen;
pub mod sizes;
pub mod staged;
pub mod wide;
pub mod written;

use std::path::PathBuf;
use std::time::Instant;

use crate::Outcome;
use crate::outcome::{Measured, percentile};
use crate::usage;

/// One run of one arm.
#[derive(Debug)]
pub struct Job {
    pub arm: String,
    /// Empty, unless the row keeps its stores from round to round.
    pub dir: PathBuf,
    pub amount: u64,
}

/// From the first unit of work to the last.
struct Watch {
    started: Instant,
    cpu: f64,
}

impl Watch {
    fn start() -> Outcome<Self> {
        Ok(Self { cpu: usage::cpu_seconds()?, started: Instant::now() })
    }

    /// Stops; memory is what the process held up to here.
    fn stop(&self) -> Outcome<Measured> {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu = usage::cpu_seconds()? - self.cpu;
        Ok(Measured {
            seconds,
            cpu,
            peak_mib: usage::peak_mib(),
            syncs: -1.0,
            ..Measured::default()
        })
    }
}

/// Takes in what single acknowledgements took, in microseconds.
fn with_latencies(mut measured: Measured, mut micros: Vec<f64>) -> Measured {
    micros.sort_by(f64::total_cmp);
    measured.p50 = percentile(&micros, 0.5);
    measured.p99 = percentile(&micros, 0.99);
    measured
}
