//! The unsealed records of an intake as the batches that they are.

use crate::digest::Digest;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::{BATCH_HEAD_BYTES_MAX, BatchHead, decode_batch, decode_head};
use crate::ids::{ObjectId, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::Reading;

/// An unsealed batch.
#[derive(Debug)]
pub(in crate::staging) struct TailBatch<'a> {
    /// Its record's position in the intake.
    pub(in crate::staging) sequence: Sequence,
    /// What it is.
    pub(in crate::staging) head: BatchHead<'a>,
    /// Its bytes, where they are in memory.
    pub(in crate::staging) record: TailRecord<'a>,
}

/// Where the record of an unsealed batch is.
#[derive(Debug, Clone, Copy)]
pub(in crate::staging) enum TailRecord<'a> {
    /// In memory: all of it, and the batch's bytes, which are its end.
    Held { whole: &'a [u8], bytes: &'a [u8] },
    /// In an object: its name, its length, and its head.
    Named { digest: &'a Digest, len: u64, head: &'a [u8] },
}

impl TailBatch<'_> {
    /// Bytes of the batch.
    pub(in crate::staging) fn len(&self) -> u64 {
        match self.record {
            TailRecord::Held { bytes, .. } => bytes.len() as u64,
            TailRecord::Named { len, head, .. } => len.saturating_sub(head.len() as u64),
        }
    }
}

/// Visits the batches of `tail`, in order. Of those that lie in objects only the heads are read.
///
/// # Errors
/// What `visit` returns; `NotFound` when an object went since the tail was read; `Damage` for a record
/// that is no batch, `NewerFormat` for one of a later release.
pub(in crate::staging) fn each_batch(
    store: &Store,
    intake: StreamId,
    tail: &[(Sequence, Payload)],
    visit: &mut dyn FnMut(TailBatch<'_>) -> Result<()>,
) -> Result<()> {
    for (sequence, payload) in tail {
        let of_record = |e: Error| {
            let place = format!("record {sequence} of intake {intake}");
            Error::new(e.kind(), "read", place, e.cause()).with_source(e)
        };
        let sequence = *sequence;
        match payload {
            Payload::Inline(whole) => {
                let (head, bytes) = decode_batch(whole).map_err(of_record)?;
                visit(TailBatch { sequence, head, record: TailRecord::Held { whole, bytes } })?;
            }
            Payload::Object { digest, len } => {
                let beginning = beginning_of(store, digest, *len)?;
                let (head, used) = decode_head(&beginning).map_err(of_record)?;
                let bytes = beginning.get(..used).unwrap_or_default();
                let record = TailRecord::Named { digest, len: *len, head: bytes };
                visit(TailBatch { sequence, head, record })?;
            }
        }
    }
    Ok(())
}

fn beginning_of(store: &Store, digest: &Digest, len: u64) -> Result<Vec<u8>> {
    let object = object_named(&store.snapshot()?, digest)?;
    store.fetch_range(object, 0..len.min(BATCH_HEAD_BYTES_MAX as u64))
}

/// The object with this digest.
pub(super) fn object_named(rows: &impl Reading, digest: &Digest) -> Result<ObjectId> {
    let found = rows.object_of(digest)?;
    found.first().map(|(object, _)| *object).ok_or_else(|| {
        let cause = "no object has this digest any more; look again";
        Error::new(ErrorKind::NotFound, "read", digest, cause)
    })
}
