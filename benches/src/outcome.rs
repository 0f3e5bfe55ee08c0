//! What one run of one arm measured, and how it goes from the child's process to the parent's.

use crate::Outcome;

/// One run of one arm.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Units of work done: MiB, records, commits, openings.
    pub work: f64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds that the way back took, where there is one.
    pub back_seconds: f64,
    /// Median and 99th percentile of the single acknowledgement, in microseconds; 0 without.
    pub p50: f64,
    pub p99: f64,
    /// Processor seconds.
    pub cpu: f64,
    /// Peak memory of the process in MiB.
    pub peak_mib: f64,
    /// Bytes on disk, and bytes of payload in them.
    pub disk_bytes: f64,
    pub payload_bytes: f64,
    /// Syncs; below 0 where they are not counted.
    pub syncs: f64,
}

const FIELDS: usize = 10;

impl Measured {
    fn fields(&mut self) -> [&mut f64; FIELDS] {
        [
            &mut self.work,
            &mut self.seconds,
            &mut self.back_seconds,
            &mut self.p50,
            &mut self.p99,
            &mut self.cpu,
            &mut self.peak_mib,
            &mut self.disk_bytes,
            &mut self.payload_bytes,
            &mut self.syncs,
        ]
    }

    /// One line for the parent.
    pub fn to_line(mut self) -> String {
        let words = self.fields().map(|field| format!("{:e}", *field));
        format!("measured {}", words.join(" "))
    }

    /// Reads such a line.
    pub fn from_line(line: &str) -> Outcome<Self> {
        let words = line.trim().strip_prefix("measured ").ok_or("no measurement came back")?;
        let mut measured = Self::default();
        for (field, word) in measured.fields().into_iter().zip(words.split(' ')) {
            *field = word.parse()?;
        }
        Ok(measured)
    }

    /// The median of each field by itself.
    pub fn median(of: &[Self]) -> Self {
        let mut median = Self::default();
        for (at, field) in median.fields().into_iter().enumerate() {
            let mut values: Vec<f64> = of.iter().map(|one| *one.clone().fields()[at]).collect();
            *field = middle(&mut values);
        }
        median
    }
}

fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value below which `share` of `sorted` lies.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
