//! The batches of a view, one after the other.

use std::collections::VecDeque;
use std::ops::Range;

use super::part::{Fetching, Look, PartBatch, read_part};
use super::view::StageView;
use crate::digest::Digest;
use crate::engine::{Pin, Store};
use crate::error::{Error, Result};
use crate::format::staged::decode_batch;
use crate::ids::{ObjectId, OutputId, QuarantineId};
use crate::journal::Payload;
use crate::manifest::PartRow;
use crate::staging::Key;
use crate::staging::taking_in::check_head;

/// Where rows were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Accepted, and not sealed yet.
    Tail,
    /// In a part of a group.
    Part,
    /// In an output.
    Output(OutputId),
    /// In quarantine; it reads all the same.
    Quarantine(QuarantineId),
}

/// Rows of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadBatch {
    /// Their key.
    pub key: Key,
    /// What the bytes are: the name of a batch's form, or that of an output's.
    pub form: String,
    /// How many.
    pub rows: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where they were found.
    pub origin: Origin,
}

/// What of a view comes next.
#[derive(Debug, Default)]
struct Next {
    outputs: usize,
    parts: usize,
    aside: usize,
    tail: usize,
}

/// The batches of a view: see [`StageView::batches`].
#[derive(Debug)]
pub struct StageBatches<'v> {
    view: &'v StageView,
    next: Next,
    /// Batches of the part that was read last, and what of it does not read.
    waiting: VecDeque<PartBatch>,
    fault: Option<Error>,
    of: Option<(Key, Origin)>,
}

impl Fetching for Pin {
    fn store(&self) -> &Store {
        self.store()
    }
    fn object(&self, object: ObjectId) -> Result<Vec<u8>> {
        self.fetch(object)
    }
    fn digest(&self, object: ObjectId) -> Result<Option<Digest>> {
        Ok(self.digest_of(object))
    }
    fn range(&self, object: ObjectId, range: Range<u64>) -> Result<Vec<u8>> {
        self.fetch_range(object, range)
    }
}

impl<'v> StageBatches<'v> {
    pub(super) fn new(view: &'v StageView) -> Self {
        Self { view, next: Next::default(), waiting: VecDeque::new(), fault: None, of: None }
    }

    fn step(&mut self) -> Option<Result<ReadBatch>> {
        let rows = &self.view.rows;
        loop {
            if let Some(batch) = self.waiting.pop_front() {
                return Some(self.batch(batch));
            }
            if let Some(fault) = self.fault.take() {
                return Some(Err(fault));
            }
            if let Some((view, object)) = rows.outputs.get(self.next.outputs) {
                self.next.outputs += 1;
                let (key, form) = (view.key.clone(), view.form.clone());
                let (rows, origin) = (view.rows, Origin::Output(view.id));
                let bytes = self.view.pin.fetch(*object);
                return Some(bytes.map(|bytes| ReadBatch { key, form, rows, bytes, origin }));
            }
            if let Some((key, part)) = rows.parts.get(self.next.parts) {
                self.next.parts += 1;
                self.read(key.clone(), part, Origin::Part);
            } else if let Some((id, row)) = rows.aside.get(self.next.aside) {
                self.next.aside += 1;
                match self.view.stage.key_shape().key_of(&row.key) {
                    Ok(key) => self.read(key, &row.part, Origin::Quarantine(*id)),
                    Err(e) => return Some(Err(e)),
                }
            } else {
                let payload = self.view.tail.get(self.next.tail)?;
                self.next.tail += 1;
                return Some(self.unsealed(payload));
            }
        }
    }

    fn read(&mut self, key: Key, part: &PartRow, origin: Origin) {
        let even_refused = matches!(origin, Origin::Quarantine(_));
        let look = Look { through: false, even_refused };
        match read_part(&self.view.pin, self.view.stage.id(), part, look) {
            Ok(read) => {
                self.waiting = read.batches.into();
                let place = || format!("a part of {key}");
                self.fault = read.fault.map(|fault| Error::damage("read", place(), fault.reason));
            }
            Err(e) => self.fault = Some(e),
        }
        self.of = Some((key, origin));
    }

    fn batch(&self, batch: PartBatch) -> Result<ReadBatch> {
        let batch = batch.read(&self.view.pin)?;
        let Some((key, origin)) = self.of.clone() else {
            return Err(Error::invalid("read", "batch", "it is of no part"));
        };
        let (form, rows) = (batch.form().name().to_owned(), batch.rows());
        Ok(ReadBatch { key, form, rows, bytes: batch.into_bytes(), origin })
    }

    fn unsealed(&self, payload: &Payload) -> Result<ReadBatch> {
        let fetched;
        let record = match payload {
            Payload::Inline(bytes) => &bytes[..],
            Payload::Object { .. } => {
                fetched = self.view.pin.payload_bytes(payload)?;
                &fetched
            }
        };
        let (head, bytes) = decode_batch(record)?;
        check_head(&self.view.stage, &head)?;
        let key = self.view.stage.key_shape().key_of(head.key)?;
        let (form, rows, bytes) = (head.form.name().to_owned(), head.rows, bytes.to_vec());
        Ok(ReadBatch { key, form, rows, bytes, origin: Origin::Tail })
    }
}

impl Iterator for StageBatches<'_> {
    type Item = Result<ReadBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step()
    }
}
