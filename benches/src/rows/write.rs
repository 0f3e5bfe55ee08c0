//! Rows that write: B1 to B8, B10.

use super::{GIB, Row, cpu_millis, millis, p50, per_second};
use crate::arms::acknowledged::{self, Flight};
use crate::arms::{bulk, commit, reopen, written};
use crate::goals::Goal::{
    AtLeast, AtMost, CpuPerGib, DiskPercent, Of, PeakMib, SmallerThan, SyncsPerUnit, Than,
};

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

pub static B1: Row = Row {
    id: "B1",
    title: "1 GiB of 1 KiB records, durable after each 8 MiB",
    unit: "MiB/s",
    value: per_second,
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
    run: |job| bulk::run(job, 1 << 10),
    ..Row::PLAIN
};

pub static B2: Row = Row {
    id: "B2",
    title: "1 GiB of 64 KiB records, durable after each 8 MiB",
    unit: "MiB/s",
    value: per_second,
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
    run: |job| bulk::run(job, 64 << 10),
    ..Row::PLAIN
};

pub static B3: Row = Row {
    id: "B3",
    title: "1 GiB of 1 KiB records of text, by zstd-1, durable after each 8 MiB (raw-zstd, sealstone-each), \
            on the way (sealstone), at the end (MCAP, Parquet)",
    unit: "MiB/s",
    value: per_second,
    limit: "raw-zstd",
    arms: &["raw-zstd", "sealstone", "sealstone-each", "mcap-zstd", "parquet-zstd"],
    goals: &[
        Than("mcap-zstd", 1.4),
        Than("parquet-zstd", 1.8),
        SmallerThan("mcap-zstd", 1.0 / 1.05),
    ],
    amount: GIB,
    smoke: 16 << 20,
    run: |job| bulk::compressed(job),
    ..Row::PLAIN
};

pub static B4: Row = Row {
    id: "B4",
    title: "200 B records, each acknowledged durable, 1 thread, median wait",
    unit: "us",
    is_less_better: true,
    value: p50,
    limit: "raw-prewritten",
    arms: &["raw-prewritten", "raw", "sealstone", "sqlite", "redb", "fjall"],
    goals: &[Than("raw-prewritten", 1.0 / 1.05), Than("sqlite", 1.0 / 0.8), SyncsPerUnit(1.0)],
    amount: 4_000,
    smoke: 40,
    run: |job| acknowledged::run(job, Flight { threads: 1, each: 1 }),
    ..Row::PLAIN
};

pub static B5: Row = Row {
    id: "B5",
    title: "200 B records, each acknowledged durable, 8 threads, group commit",
    unit: "records/s",
    value: per_second,
    limit: "raw-prewritten",
    arms: &["raw-prewritten", "sealstone", "sqlite", "sqlite-connections", "redb", "fjall"],
    goals: &[Than("raw-prewritten", 1.0), Than("sqlite-connections", 20.0)],
    amount: 32_000,
    smoke: 160,
    run: |job| acknowledged::run(job, Flight { threads: 8, each: 1 }),
    ..Row::PLAIN
};

pub static B6: Row = Row {
    id: "B6",
    title: "200 B records, each acknowledged durable, 256 in flight: 8 threads of 32 each",
    unit: "records/s",
    value: per_second,
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
    run: |job| acknowledged::run(job, Flight { threads: 8, each: 32 }),
    ..Row::PLAIN
};

pub static B7: Row = Row {
    id: "B7",
    title: "200 B records, and 32 B ones (+scalars), written to the kernel, 1 thread, a wait for \
            each or for 1,000 (+batch); a state of three doubles, observed (+observe)",
    unit: "records/s",
    value: per_second,
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
        "sealstone+observe",
        "sealstone+observe+batch",
    ],
    goals: &[AtLeast("sealstone+observe+batch", 1e6)],
    amount: 400_000,
    smoke: 2_000,
    run: written::run,
    ..Row::PLAIN
};

pub static B8: Row = Row {
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
    ..Row::PLAIN
};

pub static B10: Row = Row {
    id: "B10",
    title: "open after kill -9, with 1 GiB of data and 1,048,576 rows, from the medium",
    unit: "ms",
    is_less_better: true,
    value: millis,
    limit: "redb-quick",
    arms: &["sealstone", "sealstone-check", "sqlite", "redb", "redb-quick", "fjall"],
    goals: &[AtMost(50.0), Than("fjall", 15.0)],
    amount: 1 << 20,
    smoke: 8192,
    prepare: Some(reopen::prepare),
    run: reopen::run,
    ..Row::PLAIN
};
