//! The rows of docs/BENCHMARKS.md: what work, who does it, what is to be reached.

mod read;
mod size;
mod stage;
mod write;

use crate::Outcome;
use crate::arms::Job;
use crate::goals::Goal;
use crate::outcome::Measured;

/// One row.
#[derive(Debug)]
pub struct Row {
    pub id: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub is_less_better: bool,
    pub value: fn(&Measured) -> f64,
    /// The arm that the goals are about, the one that is the disk's own limit, and all.
    pub ours: &'static str,
    pub limit: &'static str,
    pub arms: &'static [&'static str],
    pub goals: &'static [Goal],
    /// How much work at scale 1, and in a smoke run.
    pub amount: u64,
    pub smoke: u64,
    /// The store is made once by this, and stays from round to round.
    pub prepare: Option<fn(&Job) -> Outcome<()>>,
    /// Rows behind each other that name the same stores here share them.
    pub stores: &'static str,
    pub run: fn(&Job) -> Outcome<Measured>,
    /// Why an arm cannot run on this machine, if it cannot.
    pub absent: fn(&str) -> Option<String>,
    pub table: Table,
}

/// What a row's table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Speed or waits, and what they cost.
    Speeds,
    /// How small, and how fast in both directions.
    Sizes,
}

impl Row {
    /// What most rows have in common.
    const PLAIN: Self = Self {
        id: "",
        title: "",
        unit: "",
        is_less_better: false,
        value: per_second,
        ours: "sealstone",
        limit: "raw",
        arms: &[],
        goals: &[],
        amount: 0,
        smoke: 0,
        prepare: None,
        stores: "",
        run: |_| Err("it has no work".into()),
        absent: |_| None,
        table: Table::Speeds,
    };

    /// Whether a command line that says `name` means this row: B11 means B11a, B11b and so on.
    pub fn is_called(&self, name: &str) -> bool {
        let all = self.id.trim_end_matches(|part: char| part.is_ascii_lowercase());
        self.id.eq_ignore_ascii_case(name) || all.eq_ignore_ascii_case(name)
    }
}

const GIB: u64 = 1 << 30;

fn per_second(m: &Measured) -> f64 {
    m.work / m.seconds
}

fn p50(m: &Measured) -> f64 {
    m.p50
}

fn p50_millis(m: &Measured) -> f64 {
    m.p50 / 1e3
}

fn cpu_millis(m: &Measured) -> f64 {
    m.cpu * 1e3 / m.work
}

fn millis(m: &Measured) -> f64 {
    m.seconds * 1e3 / m.work
}

fn percent(m: &Measured) -> f64 {
    100.0 * m.disk_bytes / m.payload_bytes
}

pub static ROWS: &[&Row] = &[
    &write::B1,
    &write::B2,
    &write::B3,
    &write::B4,
    &write::B5,
    &write::B6,
    &write::B7,
    &write::B8,
    &write::B10,
    &read::SCAN,
    &read::RANDOM,
    &read::RANGE,
    &read::PROJECTION,
    &size::LORENZ,
    &size::BODIES,
    &size::HEAT,
    &size::SENSORS,
    &size::WEATHER,
    &size::LOGS,
    &size::SWEEP,
    &stage::B14,
];

/// In a smoke run these arms would take all the time there is.
pub fn is_slow(arm: &str) -> bool {
    arm.ends_with("@10000") || arm.ends_with("@100000")
}
