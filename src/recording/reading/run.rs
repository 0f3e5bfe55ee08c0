//! A run of records, decoded: what lies between two records, from one chunk or from the tail.

use std::ops::Range;

use super::stream::Stream;
use crate::error::{Error, Result};
use crate::format::column::{Column, ColumnId, Value};
use crate::protection::Protection;

/// Decoded records that follow each other.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) records: Range<u64>,
    pub(super) iterations: Column,
    pub(super) times: Option<Column>,
    pub(super) columns: Vec<Column>,
}

impl Stream {
    /// All columns of `records`, which lie in one chunk, or in the tail.
    pub(super) fn run(&self, records: Range<u64>) -> Result<Run> {
        let fields: Vec<usize> = (0..self.schema().fields().len()).collect();
        let run = match self.chunk_of(records.start)? {
            Some(at) => {
                let mut open = self.open_chunk(at)?;
                open.fetch_whole()?;
                let column = |column| open.column(column, records.clone());
                let times = self.schema().is_timed().then_some(ColumnId::Time);
                Run {
                    records: records.clone(),
                    iterations: column(ColumnId::Iteration)?,
                    times: times.map(column).transpose()?,
                    columns: fields
                        .iter()
                        .map(|at| column(ColumnId::Field(*at)))
                        .collect::<Result<_>>()?,
                }
            }
            None => {
                let tail = self.tail(&fields, records.clone())?;
                let (iterations, times, columns) = (tail.iterations, tail.times, tail.columns);
                Run { records: records.clone(), iterations, times, columns }
            }
        };
        let wanted = records.end.saturating_sub(records.start);
        let all = run.columns.iter().chain(&run.times).chain([&run.iterations]);
        if all.into_iter().any(|column| column.len() as u64 != wanted) {
            return Err(self.wrong("columns of different lengths"));
        }
        Ok(run)
    }
}

/// Where iterations stop growing: the position, the iteration there and the one before it.
pub(super) fn not_growing(column: &Column, mut last: Option<i64>) -> Option<(usize, i64, i64)> {
    if !Protection::IterationsGrow.is_on() {
        return None;
    }
    for (at, value) in column.iter().enumerate() {
        let Value::I64(iteration) = value else { continue };
        if let Some(last) = last.filter(|last| *last >= iteration) {
            return Some((at, iteration, last));
        }
        last = Some(iteration);
    }
    None
}

/// The error of records whose iterations do not grow.
pub(super) fn backwards(place: String, (_, iteration, last): (usize, i64, i64)) -> Error {
    Error::damage("read", place, format!("iteration {iteration} follows iteration {last}"))
}
