//! Rows that encode: B12, a row for each data set.

use super::{Row, Table, percent};
use crate::arms::sizes;
use crate::goals::Goal::{BackAsFastAs, FastAs, SmallerThan};
use crate::sets;

const ARMS: &[&str] = &[
    "raw",
    "zstd",
    "hdf5",
    "parquet",
    "parquet-split",
    "sealstone",
    "sealstone-8mib",
    "only-raw",
    "only-constant",
    "only-zstd",
    "only-shuffle-zstd",
    "only-delta1",
    "only-delta2",
    "only-delta3",
    "only-pco",
];

/// With those that lay the elements of arrays across records.
const ARRAY_ARMS: &[&str] = &[
    "raw",
    "zstd",
    "hdf5",
    "parquet",
    "parquet-split",
    "sealstone",
    "sealstone-8mib",
    "only-raw",
    "only-constant",
    "only-zstd",
    "only-shuffle-zstd",
    "only-delta1",
    "only-delta2",
    "only-delta3",
    "only-pco",
    "only-zstd-across",
    "only-shuffle-zstd-across",
    "only-delta1-across",
    "only-delta2-across",
    "only-delta3-across",
    "only-pco-across",
];

const PLAIN: Row = Row {
    unit: "% of raw",
    is_less_better: true,
    value: percent,
    limit: "zstd",
    arms: ARMS,
    goals: &[
        SmallerThan("zstd", 1.0),
        SmallerThan("hdf5", 1.0),
        SmallerThan("parquet", 1.0),
        SmallerThan("parquet-split", 1.0),
        FastAs("parquet", 1.0),
        BackAsFastAs("parquet", 1.0),
    ],
    amount: 64 << 20,
    smoke: 1 << 20,
    table: Table::Sizes,
    absent: sizes::absent,
    ..Row::PLAIN
};

pub static LORENZ: Row = Row {
    id: "B12a",
    title: "the path of examples/lorenz.rs, three doubles a record",
    run: |job| sizes::run(job, sets::lorenz),
    ..PLAIN
};

pub static BODIES: Row = Row {
    id: "B12b",
    title: "trajectories: eight bodies, twenty-four doubles a record",
    run: |job| sizes::run(job, sets::bodies),
    ..PLAIN
};

pub static HEAT: Row = Row {
    id: "B12c",
    title: "the frames of examples/heat2d.rs, 48 by 64 doubles a record",
    arms: ARRAY_ARMS,
    run: |job| sizes::run(job, sets::heat),
    ..PLAIN
};

pub static SENSORS: Row = Row {
    id: "B12d",
    title: "sensors: eight decimals and a counter a record",
    run: |job| sizes::run(job, sets::sensors),
    ..PLAIN
};

pub static WEATHER: Row = Row {
    id: "B12e",
    title: "weather: fifteen typed columns with gaps, 26,115 records",
    run: |job| sizes::run(job, sets::weather),
    ..PLAIN
};

pub static LOGS: Row = Row {
    id: "B12f",
    title: "log lines, one a record",
    run: |job| sizes::run(job, sets::logs),
    ..PLAIN
};

pub static SWEEP: Row = Row {
    id: "B12g",
    title: "the paths of examples/sweep.rs, two doubles a record",
    run: |job| sizes::run(job, sets::sweep),
    ..PLAIN
};
