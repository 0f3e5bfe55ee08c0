//! Rows that read: B11. All of them look at the same stores, but for the projection.

use super::{GIB, Row, p50, p50_millis, per_second};
use crate::arms::{reading, wide};
use crate::goals::Goal::Than;

const ARMS: &[&str] = &[
    "raw",
    "sealstone",
    "sealstone-chunks",
    "sqlite",
    "sqlite-tuned",
    "redb",
    "fjall",
    "mcap",
    "parquet",
];

const PLAIN: Row = Row {
    limit: "raw",
    arms: ARMS,
    amount: GIB,
    smoke: 16 << 20,
    stores: "B11",
    prepare: Some(reading::prepare),
    ..Row::PLAIN
};

pub static SCAN: Row = Row {
    id: "B11a",
    title: "1 GiB of 1 KiB records, warm, all of them in order",
    unit: "MiB/s",
    value: per_second,
    goals: &[
        Than("raw", 0.5),
        Than("sqlite", 1.5),
        Than("sqlite-tuned", 1.5),
        Than("redb", 1.5),
        Than("fjall", 1.5),
        Than("mcap", 1.5),
        Than("parquet", 1.5),
    ],
    run: reading::scan,
    ..PLAIN
};

pub static RANDOM: Row = Row {
    id: "B11b",
    title: "1 GiB of 1 KiB records, warm, one anywhere, median wait",
    unit: "us",
    is_less_better: true,
    value: p50,
    goals: &[
        Than("sqlite", 1.0 / 0.85),
        Than("sqlite-tuned", 1.0 / 0.85),
        Than("redb", 1.0 / 0.85),
        Than("fjall", 1.0 / 0.85),
        Than("mcap", 1.0 / 0.85),
        Than("parquet", 1.0 / 0.85),
    ],
    run: reading::random,
    ..PLAIN
};

pub static RANGE: Row = Row {
    id: "B11c",
    title: "1 GiB of 1 KiB records, warm, 1 % of the time, median wait",
    unit: "ms",
    is_less_better: true,
    value: p50_millis,
    goals: &[
        Than("sqlite", 1.0 / 0.6),
        Than("sqlite-tuned", 1.0 / 0.6),
        Than("redb", 1.0 / 0.6),
        Than("fjall", 1.0 / 0.6),
        Than("mcap", 1.0 / 0.6),
        Than("parquet", 1.0 / 0.6),
    ],
    run: reading::range,
    ..PLAIN
};

pub static PROJECTION: Row = Row {
    id: "B11d",
    title: "1,048,576 records of twenty doubles, warm, one field over 1 % of the time, median wait",
    unit: "ms",
    is_less_better: true,
    value: p50_millis,
    limit: "raw",
    arms: &["raw", "sealstone", "sqlite", "redb", "fjall", "mcap", "parquet", "jsonl"],
    goals: &[Than("jsonl", 10.0), Than("parquet", 1.0), Than("sqlite", 1.0)],
    amount: 1 << 20,
    smoke: 8192,
    prepare: Some(wide::prepare),
    run: wide::run,
    ..Row::PLAIN
};
