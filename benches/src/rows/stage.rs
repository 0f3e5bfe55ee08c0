//! Rows that stage: B14.

use super::{Row, per_second};
use crate::arms::staged;
use crate::goals::Goal::Than;

pub static B14: Row = Row {
    id: "B14",
    title: "2 million JSON log lines of 8 producers to Parquet: each batch of 1,000 acknowledged durable, each \
            line once (sealstone); no promise at all (arrow-rs)",
    unit: "lines/s",
    value: per_second,
    limit: "arrow-rs",
    arms: &["arrow-rs", "sealstone"],
    goals: &[Than("arrow-rs", 0.7)],
    amount: 2_000_000,
    smoke: 24_000,
    run: staged::run,
    ..Row::PLAIN
};
