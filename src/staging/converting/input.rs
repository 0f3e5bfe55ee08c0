//! What a converter reads: the batches of the parts of one output, part after part.
//!
//! ```text
//!   part ──[read_part]──▶ batches ──[next]──▶ converter        counted as taken when given
//!           ╰─ what does not read ──▶ quarantine, in the transaction that publishes the rest
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::options::{ConvertProgress, OnProgress};
use super::output_writer::check_group;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{PartId, StageId};
use crate::manifest::PartRow;
use crate::staging::Batch;
use crate::staging::reading::{Fault, Look, PartBatch, read_part};

/// What of a part is in an output now, and what cannot be.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) part: PartId,
    pub(super) row: PartRow,
    pub(super) batches: u64,
    pub(super) rows: u64,
    pub(super) len: u64,
    /// Batches of it that nobody took yet.
    pub(super) waiting: u64,
    pub(super) fault: Option<Fault>,
}

/// How far all outputs of a conversion are.
pub(super) struct Meter<'a> {
    pub(super) groups: u64,
    pub(super) groups_done: AtomicU64,
    pub(super) rows: AtomicU64,
    pub(super) on_progress: Option<OnProgress<'a>>,
    /// The caller wants no more.
    pub(super) is_cancelled: AtomicBool,
}

impl<'a> Meter<'a> {
    pub(super) fn new(groups: u64, on_progress: Option<OnProgress<'a>>) -> Self {
        let (groups_done, rows) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { groups, groups_done, rows, on_progress, is_cancelled: AtomicBool::new(false) }
    }

    /// Tells the caller; `Cancelled` when that is enough.
    pub(super) fn tell(&self) -> Result<()> {
        let now = ConvertProgress {
            groups_done: self.groups_done.load(Ordering::Acquire),
            groups: self.groups,
            rows: self.rows.load(Ordering::Acquire),
        };
        if self.on_progress.is_some_and(|tell| tell(now).is_break()) {
            self.is_cancelled.store(true, Ordering::Release);
        }
        if self.is_cancelled.load(Ordering::Acquire) {
            let cause = "it was cancelled; what was not published is free again";
            return Err(Error::new(ErrorKind::Cancelled, "convert", "groups", cause));
        }
        Ok(())
    }
}

/// The batches of the parts of one output, in the order in which they were accepted. A part that lost its
/// end gives those before the tear; one that does not decode in its middle gives none: what they do not
/// give is put into quarantine when the output is published, and reported. An error ends it, and with
/// it the conversion of the group.
pub struct Input<'a> {
    store: &'a Store,
    stage: StageId,
    all: Vec<(PartId, PartRow)>,
    parts: VecDeque<(PartId, PartRow)>,
    schema: &'a [u8],
    look: Look,
    waiting: VecDeque<PartBatch>,
    used: Vec<Used>,
    rows: u64,
    has_failed: &'a AtomicBool,
    meter: &'a Meter<'a>,
    error: Option<Error>,
}

impl<'a> Input<'a> {
    pub(super) fn new(
        (store, stage): (&'a Store, StageId),
        parts: &[(PartId, PartRow)],
        schema: &'a [u8],
        even_refused: bool,
        (has_failed, meter): (&'a AtomicBool, &'a Meter<'a>),
    ) -> Self {
        Self {
            store,
            stage,
            all: parts.to_vec(),
            parts: parts.iter().cloned().collect(),
            schema,
            look: Look { through: true, even_refused },
            waiting: VecDeque::new(),
            used: Vec::new(),
            rows: 0,
            has_failed,
            meter,
            error: None,
        }
    }

    /// Rows of the batches given so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The schema of the stage when its plan was made; empty while it has none.
    pub fn stage_schema(&self) -> &[u8] {
        self.schema
    }

    /// Begins with the first batch again, as if none had been given: for a converter that looks at all of
    /// them before it writes. What does not read then is not read the second time either.
    pub fn start_over(&mut self) {
        self.parts = self.all.iter().cloned().collect();
        self.waiting.clear();
        self.used.clear();
        self.meter.rows.fetch_sub(self.rows, Ordering::AcqRel);
        self.rows = 0;
    }

    /// Ends it: what was used, and the rows of that. An error that the converter passed over is told here.
    pub(super) fn finish(self) -> Result<(Vec<Used>, u64)> {
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.used, self.rows)),
        }
    }

    fn take(&mut self) -> Result<Option<Batch>> {
        // STG29: a worker stops before its next batch.
        check_group(self.has_failed)?;
        self.meter.tell()?;
        let batch = loop {
            if let Some(batch) = self.waiting.pop_front() {
                break batch;
            }
            let Some((part, row)) = self.parts.pop_front() else { return Ok(None) };
            let read = read_part(self.store, self.stage, &row, self.look)?;
            let (batches, rows, len, waiting) = (0, 0, 0, read.batches.len() as u64);
            self.waiting.extend(read.batches);
            self.used.push(Used { part, row, batches, rows, len, waiting, fault: read.fault });
        };
        let (rows, len) = (batch.rows, batch.len);
        let batch = batch.read(self.store)?;
        if let Some(used) = self.used.last_mut() {
            used.batches += 1;
            used.waiting = used.waiting.saturating_sub(1);
            used.rows = used.rows.saturating_add(rows);
            used.len = used.len.saturating_add(len);
        }
        self.rows = self.rows.saturating_add(rows);
        self.meter.rows.fetch_add(rows, Ordering::AcqRel);
        Ok(Some(batch))
    }
}

impl Iterator for Input<'_> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.error.is_some() {
            return None;
        }
        let taken = self.take();
        if let Err(e) = &taken {
            self.error = Some(e.clone());
        }
        taken.transpose()
    }
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("parts", &self.parts.len())
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}
