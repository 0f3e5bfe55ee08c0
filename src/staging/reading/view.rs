//! StageView: a stage as it stood at one instant.

use super::batches::StageBatches;
use crate::engine::Pin;
use crate::error::{ErrorKind, Result};
use crate::format::staged::{BATCH_HEAD_BYTES_MAX, decode_head};
use crate::ids::{GroupId, ObjectId, PartId, QuarantineId};
use crate::journal::Payload;
use crate::manifest::{GroupRow, OutputRow, PartRow, QuarantineRow, Reading, Row, Snapshot};
use crate::staging::converting::{OutputView, outputs_of};
use crate::staging::taking_in::check_head;
use crate::staging::{Key, Stage};

/// What the rows of a stage say at one instant.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) outputs: Vec<(OutputView, ObjectId)>,
    pub(super) parts: Vec<(Key, PartRow)>,
    pub(super) aside: Vec<(QuarantineId, QuarantineRow)>,
}

/// A stage as it stood at one instant: every row that was acknowledged then, exactly once. Its bytes stay
/// where they are as long as it stands, in this process: do not keep it for longer than it is needed.
#[derive(Debug)]
pub struct StageView {
    pub(super) stage: Stage,
    pub(super) pin: Pin,
    pub(super) rows: Rows,
    /// Unsealed batches, in the order of their intakes.
    pub(super) tail: Vec<Payload>,
    tail_rows: u64,
}

impl Stage {
    /// The stage as it stands: outputs, parts, quarantine and unsealed batches, all at one instant. A
    /// store opened for reading shows what is *Written*.
    ///
    /// # Errors
    /// `NotFound` once the stage was removed; `Conflict` when its journals moved on too often: call
    /// again; `Halted`, `Closed`, `Damage`.
    pub fn view(&self) -> Result<StageView> {
        self.check("read")?;
        // Before the snapshot: what that names stays.
        let pin = self.store.pin();
        let (views, rows) = self.store.views_with(
            |snapshot| Ok(self.row(snapshot)?.intakes),
            |snapshot| self.rows_at(snapshot, &pin),
        )?;
        let tail: Vec<Payload> =
            views.into_iter().flat_map(|view| view.tail).map(|(_, payload)| payload).collect();
        pin.narrow();
        let mut tail_rows = 0u64;
        for payload in &tail {
            tail_rows = tail_rows.saturating_add(match rows_of(self, &pin, payload) {
                // P6: it is told in its place, and the others count.
                Err(e) if e.kind() == ErrorKind::Damage => 0,
                rows => rows?,
            });
        }
        Ok(StageView { stage: self.clone(), pin, rows, tail, tail_rows })
    }

    fn rows_at(&self, snapshot: &Snapshot, pin: &Pin) -> Result<Rows> {
        let (stage, shape) = (self.id(), self.key_shape());
        let mut rows = Rows::default();
        for ((_, id), row) in snapshot.list::<OutputRow>(outputs_of(stage), usize::MAX)? {
            keep(pin, snapshot, &row)?;
            rows.outputs.push((OutputView::of(snapshot, shape, id, &row)?, row.object));
        }
        let groups = (stage, GroupId(0))..=(stage, GroupId(u64::MAX));
        for ((_, group), row) in snapshot.list::<GroupRow>(groups, usize::MAX)? {
            let key = shape.key_of(&row.key)?;
            let parts = (group, PartId(0))..=(group, PartId(u64::MAX));
            for (_, part) in snapshot.list::<PartRow>(parts, usize::MAX)? {
                keep(pin, snapshot, &part)?;
                rows.parts.push((key.clone(), part));
            }
        }
        let aside = (stage, QuarantineId(0))..=(stage, QuarantineId(u64::MAX));
        for ((_, id), row) in snapshot.list::<QuarantineRow>(aside, usize::MAX)? {
            keep(pin, snapshot, &row)?;
            rows.aside.push((id, row));
        }
        pin.keep_payloads(snapshot, &self.row(snapshot)?.intakes)?;
        Ok(rows)
    }
}

/// Everything that `row` refers to stays.
fn keep<R: Row>(pin: &Pin, snapshot: &Snapshot, row: &R) -> Result<()> {
    let mut objects = Vec::new();
    row.edges(&mut |object| objects.push(object));
    pin.keep(snapshot, objects)
}

/// The rows of an unsealed batch.
fn rows_of(stage: &Stage, pin: &Pin, payload: &Payload) -> Result<u64> {
    let beginning;
    let bytes = match payload {
        Payload::Inline(bytes) => &bytes[..],
        Payload::Object { .. } => {
            beginning = pin.payload_beginning(payload, BATCH_HEAD_BYTES_MAX as u64)?;
            &beginning
        }
    };
    let (head, _) = decode_head(bytes)?;
    check_head(stage, &head)?;
    Ok(head.rows)
}

impl StageView {
    /// Rows, all of them: in outputs, in parts, in quarantine, and unsealed.
    pub fn rows(&self) -> u64 {
        let sealed = self
            .rows
            .outputs
            .iter()
            .map(|(view, _)| view.rows)
            .chain(self.rows.parts.iter().map(|(_, part)| part.rows))
            .chain(self.rows.aside.iter().map(|(_, row)| row.part.rows));
        sealed.fold(self.tail_rows, u64::saturating_add)
    }

    /// Rows that are not sealed yet.
    pub fn unsealed_rows(&self) -> u64 {
        self.tail_rows
    }

    /// Its outputs.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &OutputView> {
        self.rows.outputs.iter().map(|(view, _)| view)
    }

    /// Its batches: outputs first, each as one, then those of parts, what of quarantine reads, and
    /// unsealed ones. What does not read is an error in its place, and the others go on.
    pub fn batches(&self) -> StageBatches<'_> {
        StageBatches::new(self)
    }
}
