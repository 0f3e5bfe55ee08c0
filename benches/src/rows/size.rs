//! Rows that encode: B12, a row for each data set.

use super::{Row, Table, percent};
use crate::arms::sizes;
use crate::goals::Goal::{BackAsFastAs, FastAs, SmallerThan};
use crate::sets;

const PLAIN: Row = Row {
    unit: "% of raw",
    is_less_better: true,
    value: percent,
    limit: "zstd",
    arms: &["raw", "zstd", "sealstone", "sealstone-8mib", "hdf5", "parquet", "parquet-split"],
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
    title: "a trajectory: Lorenz, three doubles a record",
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
    title: "a field: heat on a plate, 64 by 64 doubles a record",
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
