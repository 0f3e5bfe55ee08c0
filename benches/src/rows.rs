//! The rows of docs/BENCHMARKS.md: what work, who does it, what is to be reached.

use crate::Outcome;
use crate::arms::acknowledged::{self, Flight};
use crate::arms::{Job, bulk, commit, reopen, written};
use crate::goals::Goal::{
    self, AtLeast, AtMost, CpuPerGib, DiskPercent, Of, PeakMib, SyncsPerUnit, Than,
};
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
    pub run: fn(&Job) -> Outcome<Measured>,
}

const GIB: u64 = 1 << 30;

fn per_second(m: &Measured) -> f64 {
    m.work / m.seconds
}

fn p50(m: &Measured) -> f64 {
    m.p50
}

fn cpu_millis(m: &Measured) -> f64 {
    m.cpu * 1e3 / m.work
}

fn millis(m: &Measured) -> f64 {
    m.seconds * 1e3 / m.work
}

const BULK: &[&str] = &[
    "raw",
    "raw-direct",
    "sealstone",
    "sealstone-each",
    "sqlite",
    "sqlite-tuned",
    "redb",
    "fjall",
];

pub const ROWS: &[Row] = &[
    Row {
        id: "B1",
        title: "1 GiB of 1 KiB records, durable after each 8 MiB",
        unit: "MiB/s",
        is_less_better: false,
        value: per_second,
        ours: "sealstone",
        limit: "raw",
        arms: BULK,
        goals: &[
            Than("raw", 0.90),
            Than("sqlite", 6.0),
            Than("sqlite-tuned", 3.0),
            Than("redb", 6.0),
            Than("fjall", 4.5),
            CpuPerGib(1.2),
            PeakMib(64.0),
            DiskPercent(2.0),
        ],
        amount: GIB,
        smoke: 16 << 20,
        prepare: None,
        run: |job| bulk::run(job, 1 << 10),
    },
    Row {
        id: "B2",
        title: "1 GiB of 64 KiB records, durable after each 8 MiB",
        unit: "MiB/s",
        is_less_better: false,
        value: per_second,
        ours: "sealstone",
        limit: "raw",
        arms: BULK,
        goals: &[
            Than("raw", 0.90),
            Than("sqlite", 5.0),
            Than("sqlite-tuned", 2.8),
            Than("redb", 3.0),
            Than("fjall", 2.3),
            CpuPerGib(1.2),
            PeakMib(64.0),
            DiskPercent(2.0),
        ],
        amount: GIB,
        smoke: 16 << 20,
        prepare: None,
        run: |job| bulk::run(job, 64 << 10),
    },
    Row {
        id: "B4",
        title: "200 B records, each acknowledged durable, 1 thread, median wait",
        unit: "us",
        is_less_better: true,
        value: p50,
        ours: "sealstone",
        limit: "raw-prewritten",
        arms: &["raw-prewritten", "raw", "sealstone", "sqlite", "redb", "fjall"],
        goals: &[Than("raw-prewritten", 1.0 / 1.05), Than("sqlite", 1.0 / 0.8), SyncsPerUnit(1.0)],
        amount: 4_000,
        smoke: 40,
        prepare: None,
        run: |job| acknowledged::run(job, Flight { threads: 1, each: 1 }),
    },
    Row {
        id: "B5",
        title: "200 B records, each acknowledged durable, 8 threads, group commit",
        unit: "records/s",
        is_less_better: false,
        value: per_second,
        ours: "sealstone",
        limit: "raw-prewritten",
        arms: &["raw-prewritten", "sealstone", "sqlite", "sqlite-connections", "redb", "fjall"],
        goals: &[Than("raw-prewritten", 1.0), Than("sqlite-connections", 20.0)],
        amount: 32_000,
        smoke: 160,
        prepare: None,
        run: |job| acknowledged::run(job, Flight { threads: 8, each: 1 }),
    },
    Row {
        id: "B6",
        title: "200 B records, each acknowledged durable, 256 in flight: 8 threads of 32 each",
        unit: "records/s",
        is_less_better: false,
        value: per_second,
        ours: "sealstone",
        limit: "raw-prewritten",
        arms: &[
            "raw-prewritten",
            "sealstone",
            "sqlite",
            "redb",
            "fjall",
            "raw-prewritten@threads",
            "sealstone@threads",
            "fjall@threads",
        ],
        goals: &[
            Than("raw-prewritten", 1.2),
            Of("sealstone@threads", "raw-prewritten@threads", 1.2),
            Of("sealstone@threads", "fjall@threads", 1.2),
        ],
        amount: 256_000,
        smoke: 2_560,
        prepare: None,
        run: |job| acknowledged::run(job, Flight { threads: 8, each: 32 }),
    },
    Row {
        id: "B7",
        title: "200 B records, and 32 B ones (+scalars), written to the kernel, 1 thread, a wait for \
                each or for 1,000 (+batch)",
        unit: "records/s",
        is_less_better: false,
        value: per_second,
        ours: "sealstone",
        limit: "raw-prewritten",
        arms: &[
            "raw-prewritten",
            "sealstone",
            "sqlite",
            "fjall",
            "raw-prewritten+batch",
            "sealstone+batch",
            "sqlite+batch",
            "fjall+batch",
            "sealstone+scalars",
            "sealstone+scalars+batch",
        ],
        goals: &[AtLeast("sealstone+scalars+batch", 1e6)],
        amount: 400_000,
        smoke: 2_000,
        prepare: None,
        run: written::run,
    },
    Row {
        id: "B8",
        title: "one chunk commit at 1,000, 10,000 and 100,000 chunks, processor time",
        unit: "CPU ms",
        is_less_better: true,
        value: cpu_millis,
        ours: "sealstone@100000",
        limit: "redb@100000",
        arms: &[
            "sealstone@1000",
            "sealstone@10000",
            "sealstone@100000",
            "redb@1000",
            "redb@100000",
            "sqlite@1000",
            "sqlite@100000",
            "json@1000",
            "json@10000",
            "json@100000",
        ],
        goals: &[Than("sealstone@1000", 1.0 / 1.3), Than("json@100000", 200.0)],
        amount: 200,
        smoke: 20,
        prepare: Some(commit::prepare),
        run: commit::run,
    },
    Row {
        id: "B10",
        title: "open after kill -9, with 1 GiB of data and 1,048,576 rows, from the medium",
        unit: "ms",
        is_less_better: true,
        value: millis,
        ours: "sealstone",
        limit: "redb-quick",
        arms: &["sealstone", "sealstone-check", "sqlite", "redb", "redb-quick", "fjall"],
        goals: &[AtMost(50.0), Than("fjall", 15.0)],
        amount: 1 << 20,
        smoke: 8192,
        prepare: Some(reopen::prepare),
        run: reopen::run,
    },
];

/// In a smoke run these arms would take all the time there is.
pub fn is_slow(arm: &str) -> bool {
    arm.ends_with("@10000") || arm.ends_with("@100000")
}
