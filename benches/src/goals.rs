//! What sealstone is to reach in a row, and by how much it does.

use crate::outcome::Measured;
use crate::rows::Row;

/// One goal of a row.
#[derive(Debug)]
pub enum Goal {
    /// At least so many times as good as another arm: faster, or sooner done.
    Than(&'static str, f64),
    /// The same, for another arm of ours.
    Of(&'static str, &'static str, f64),
    /// At most so much memory, in MiB.
    PeakMib(f64),
    /// At most so many processor seconds for each GiB.
    CpuPerGib(f64),
    /// At most so much more on the disk than payload, in percent.
    DiskPercent(f64),
    /// At most so many syncs for each unit of work.
    SyncsPerUnit(f64),
    /// At most so many, or so much, in the row's unit.
    AtMost(f64),
    /// At least so many, for an arm of ours.
    AtLeast(&'static str, f64),
    /// At least so many times smaller than another arm, payload for payload.
    SmallerThan(&'static str, f64),
    /// At least so many times as fast as another arm in making, or in reading back.
    FastAs(&'static str, f64),
    BackAsFastAs(&'static str, f64),
}

/// What became of a goal.
#[derive(Debug)]
pub struct Verdict {
    pub text: String,
    pub found: String,
    pub is_met: bool,
}

/// How many times as good `ours` is as `other`.
pub fn ratio(row: &Row, ours: &Measured, other: &Measured) -> f64 {
    let (ours, other) = ((row.value)(ours), (row.value)(other));
    if row.is_less_better { other / ours } else { ours / other }
}

impl Goal {
    /// Compares with what was measured; `None` where an arm did not run.
    pub fn judge(&self, row: &Row, found: &dyn Fn(&str) -> Option<Measured>) -> Option<Verdict> {
        let ours = found(row.ours);
        let verdict = |text: String, value: f64, is_met: bool, unit: &str| Verdict {
            text,
            found: format!("{}{unit}", short(value)),
            is_met,
        };
        Some(match *self {
            Self::Than(other, least) => {
                let ratio = ratio(row, &ours?, &found(other)?);
                verdict(format!("at least {least} x {other}"), ratio, ratio >= least, " x")
            }
            Self::Of(arm, other, least) => {
                let ratio = ratio(row, &found(arm)?, &found(other)?);
                verdict(format!("{arm} at least {least} x {other}"), ratio, ratio >= least, " x")
            }
            Self::PeakMib(most) => {
                let peak = ours?.peak_mib;
                verdict(format!("at most {most} MiB of memory"), peak, peak <= most, " MiB")
            }
            Self::CpuPerGib(most) => {
                let cpu = ours?.cpu / (ours?.payload_bytes / f64::from(1 << 30));
                verdict(format!("at most {most} CPU s/GiB"), cpu, cpu <= most, " CPU s/GiB")
            }
            Self::DiskPercent(most) => {
                let over = 100.0 * (ours?.disk_bytes / ours?.payload_bytes - 1.0);
                verdict(
                    format!("at most {most} % over the payload on disk"),
                    over,
                    over <= most,
                    " %",
                )
            }
            Self::SyncsPerUnit(most) => {
                let syncs = ours?.syncs / ours?.work;
                let text = format!("at most {most} syncs for each");
                verdict(text, syncs, syncs <= most * 1.01, " syncs")
            }
            Self::AtMost(most) => {
                let value = (row.value)(&ours?);
                verdict(format!("at most {most} {}", row.unit), value, value <= most, "")
            }
            Self::AtLeast(arm, least) => {
                let value = (row.value)(&found(arm)?);
                verdict(format!("{arm}: at least {least} {}", row.unit), value, value >= least, "")
            }
            Self::SmallerThan(other, least) => {
                let size = |m: Measured| m.disk_bytes / m.payload_bytes;
                let ratio = size(found(other)?) / size(ours?);
                let text = format!("at least {} x smaller than {other}", short(least));
                verdict(text, ratio, ratio >= least, " x")
            }
            Self::FastAs(other, least) => {
                let speed = |m: Measured| m.work / m.seconds;
                let ratio = speed(ours?) / speed(found(other)?);
                let text = format!("made at least {least} x as fast as {other}");
                verdict(text, ratio, ratio >= least, " x")
            }
            Self::BackAsFastAs(other, least) => {
                let speed = |m: Measured| m.work / m.back_seconds;
                let ratio = speed(ours?) / speed(found(other)?);
                let text = format!("read back at least {least} x as fast as {other}");
                verdict(text, ratio, ratio >= least, " x")
            }
        })
    }
}

/// Three digits that count.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
