//! Aside: an unsealed record that is no batch, or does not read, goes to quarantine with what is there of
//! it, in the transaction that seals all others.
//!
//! P7: nothing of it is dropped: a record in the journal becomes an object; one that lies in an object
//! keeps that, next to a copy of what can be read of it.

use super::stage::Stage;
use super::tail::{Unread, object_named};
use crate::digest::Digest;
use crate::engine::Content;
use crate::error::{Error, Result};
use crate::ids::{GroupId, ObjectId, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{PartRow, QuarantineRow, Write};

/// A record to be put aside.
#[derive(Debug)]
pub(super) struct RecordAside {
    intake: StreamId,
    sequence: Sequence,
    /// The object that it lies in, if it lies in one.
    named: Option<Digest>,
    len: u64,
    /// As many of its bytes as are there.
    bytes: Vec<u8>,
    /// Why it is no batch.
    pub(super) why: Error,
}

impl RecordAside {
    /// With what is there of it.
    ///
    /// # Errors
    /// `NotFound` when its object went; `Io`.
    pub(super) fn of(stage: &Stage, intake: StreamId, unread: Unread<'_>) -> Result<Self> {
        let Unread { sequence, payload, why } = unread;
        let (named, bytes, len) = match payload {
            Payload::Inline(bytes) => (None, bytes.to_vec(), bytes.len() as u64),
            Payload::Object { digest, len } => {
                let object = object_named(&stage.store.snapshot()?, digest)?;
                (Some(*digest), stage.store.remains(object, true)?, *len)
            }
        };
        Ok(Self { intake, sequence, named, len, bytes, why })
    }

    /// Whether the set that is published has bytes of it.
    fn has_content(&self) -> bool {
        self.named.is_none() || !self.bytes.is_empty()
    }

    /// Its bytes, for the set that is published.
    pub(super) fn content(&self) -> Option<Content> {
        self.has_content().then(|| Content::new(self.bytes.clone(), None))
    }

    /// Writes its row, inside the transaction; of `objects` it takes its own.
    pub(super) fn put(
        &self,
        w: &mut Write<'_>,
        stage: &Stage,
        objects: &mut impl Iterator<Item = ObjectId>,
    ) -> Result<()> {
        let kept = if self.has_content() { objects.next() } else { None };
        let object = match &self.named {
            Some(digest) => Some(object_named(w, digest)?),
            None => kept,
        };
        let Some(object) = object else {
            return Err(Error::invalid("seal", "record", "its bytes are not in the set"));
        };
        let upto = Sequence(self.sequence.0.saturating_add(1));
        let part = PartRow {
            object,
            payloads: Vec::new(),
            rows: 0,
            batches: 1,
            skip: 0,
            len: self.len,
            intake: self.intake,
            first: self.sequence,
            upto,
        };
        let row = QuarantineRow {
            group: GroupId(0),
            key: Vec::new(),
            reason: self.why.to_string(),
            objects: kept.into_iter().collect(),
            part,
            at: stage.store.wall_nanos(),
        };
        let id = w.next_quarantine_id()?;
        w.put(&(stage.id(), id), &row)
    }
}
