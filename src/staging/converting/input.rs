//! What a converter reads: the batches of the parts of one output, part after part.
//!
//! ```text
//!   part ──[read_part]──▶ batches ──[next]──▶ converter        counted as taken when given
//!           │                                   ╰─[refuse]─▶ ╮
//!           ╰─ what does not read ─────────────────────────────┴─▶ quarantine, in the transaction that
//!                                                                   publishes the rest
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::options::{ConvertProgress, OnProgress};
use super::output_writer::check_group;
use super::refused::Refused;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{PartId, Sequence, StageId};
use crate::manifest::PartRow;
use crate::staging::Batch;
use crate::staging::describing::shortened;
use crate::staging::reading::{Fault, Look, PartBatch, read_part};

/// What of a part is in an output now, and what cannot be.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) part: PartId,
    pub(super) row: PartRow,
    /// Batches that were taken from its beginning, with those that were refused; and their rows and bytes.
    pub(super) batches: u64,
    pub(super) rows: u64,
    pub(super) len: u64,
    /// Batches of it that nobody took yet.
    pub(super) waiting: u64,
    pub(super) fault: Option<Fault>,
    /// Those of its batches that the converter does not take.
    pub(super) refused: Vec<Refused>,
}

impl Used {
    fn count(&mut self, rows: u64, len: u64) {
        self.batches += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.rows = self.rows.saturating_add(rows);
        self.len = self.len.saturating_add(len);
    }

    /// Of its rows those that were not refused.
    pub(super) fn rows_in_output(&self) -> u64 {
        self.refused.iter().fold(self.rows, |rows, one| rows.saturating_sub(one.rows))
    }

    /// Whether no output has anything of it: all that was taken was refused.
    pub(super) fn is_all_refused(&self) -> bool {
        self.batches == self.refused.len() as u64
    }
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
    /// The batch that was given last, as it would be refused; and why others were.
    last: Option<Refused>,
    refused: BTreeMap<(PartId, Sequence), String>,
    /// Whose batches these are.
    producers: BTreeSet<String>,
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
            last: None,
            refused: BTreeMap::new(),
            producers: BTreeSet::new(),
            has_failed,
            meter,
            error: None,
        }
    }

    /// Rows of the batches given so far, without those that were refused.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The schema of the stage when its plan was made; empty while it has none.
    pub fn stage_schema(&self) -> &[u8] {
        self.schema
    }

    /// Begins with the first batch again, as if none had been given: for a converter that looks at all of
    /// them before it writes. What does not read then is not read the second time either, and what was
    /// refused is not given again.
    pub fn start_over(&mut self) {
        self.last = None;
        self.parts = self.all.iter().cloned().collect();
        self.waiting.clear();
        self.used.clear();
        self.meter.rows.fetch_sub(self.rows, Ordering::AcqRel);
        self.rows = 0;
    }

    /// Refuses the batch that was given last: it goes to quarantine, with its bytes and with `why`, in the
    /// transaction that publishes the others, and its rows are not to be in the output. For a batch that can
    /// never be converted: what may go well another time is an error of [`Converter::convert`]. Where the
    /// output has no rows, what was refused goes only if nothing else was taken.
    ///
    /// # Errors
    /// `Invalid` when no batch was given since the last refusal, or since it began.
    ///
    /// [`Converter::convert`]: super::Converter::convert
    pub fn refuse(&mut self, why: impl Into<String>) -> Result<()> {
        let (Some(last), Some(used)) = (self.last.take(), self.used.last_mut()) else {
            let cause = "there is none; a batch is refused once, before the next one is taken";
            return Err(Error::invalid("refuse", "batch", cause));
        };
        let why = shortened(why.into());
        self.rows = self.rows.saturating_sub(last.rows);
        self.meter.rows.fetch_sub(last.rows, Ordering::AcqRel);
        self.refused.insert((used.part, last.sequence), why.clone());
        used.refused.push(Refused { why, ..last });
        Ok(())
    }

    /// As if it ended here: all batches are read, and given to nobody.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.try_for_each(|batch| batch.map(drop))
    }

    /// What was used so far.
    pub(super) fn used(&self) -> (&[Used], &BTreeSet<String>) {
        (&self.used, &self.producers)
    }

    /// Ends it: what was used, and the rows of that. An error that the converter passed over is told here.
    pub(super) fn finish(self) -> Result<(Vec<Used>, u64)> {
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.used, self.rows)),
        }
    }

    fn take(&mut self) -> Result<Option<Batch>> {
        self.last = None;
        loop {
            // STG29: a worker stops before its next batch.
            check_group(self.has_failed)?;
            self.meter.tell()?;
            let Some(mut batch) = self.next_batch()? else { return Ok(None) };
            self.producers.extend(batch.producer.take());
            let (sequence, rows, len) = (batch.sequence, batch.rows, batch.len);
            let Some(used) = self.used.last_mut() else { return Ok(None) };
            if let Some(why) = self.refused.get(&(used.part, sequence)) {
                used.count(rows, len);
                used.refused.push(Refused { sequence, rows, len, why: why.clone() });
                continue;
            }
            let batch = batch.read(self.store)?;
            used.count(rows, len);
            self.rows = self.rows.saturating_add(rows);
            self.meter.rows.fetch_add(rows, Ordering::AcqRel);
            self.last = Some(Refused { sequence, rows, len, why: String::new() });
            return Ok(Some(batch));
        }
    }

    /// The next batch of the part at hand, or of the next.
    fn next_batch(&mut self) -> Result<Option<PartBatch>> {
        loop {
            if let Some(batch) = self.waiting.pop_front() {
                return Ok(Some(batch));
            }
            let Some((part, row)) = self.parts.pop_front() else { return Ok(None) };
            let read = read_part(self.store, self.stage, &row, self.look)?;
            let (batches, rows, len, waiting) = (0, 0, 0, read.batches.len() as u64);
            self.waiting.extend(read.batches);
            let (fault, refused) = (read.fault, Vec::new());
            self.used.push(Used { part, row, batches, rows, len, waiting, fault, refused });
        }
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
