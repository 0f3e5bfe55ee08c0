//! The unsealed records of an intake as the batches that they are.

use super::append::ROWS_MAX;
use super::stage::Stage;
use crate::digest::Digest;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::{BATCH_HEAD_BYTES_MAX, BatchHead, decode_batch, decode_head};
use crate::ids::{ObjectId, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::Reading;
use crate::staging::describing::Key;

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

/// An unsealed record that is no batch of its stage, or does not read.
#[derive(Debug)]
pub(in crate::staging) struct Unread<'a> {
    /// Its position in the intake.
    pub(in crate::staging) sequence: Sequence,
    /// What is there of it.
    pub(in crate::staging) payload: &'a Payload,
    /// Why it is none.
    pub(in crate::staging) why: Error,
}

/// What a visit of a tail is told of each record.
pub(in crate::staging) type OnRecord<'v> =
    &'v mut dyn FnMut(std::result::Result<TailBatch<'_>, Unread<'_>>) -> Result<()>;

/// Visits the records of `tail`, in order: of those that lie in objects only the heads are read. P6: one
/// that does not read is told in its place, and the others go on.
///
/// # Errors
/// What `visit` returns; `NotFound` when an object went since the tail was read; `NewerFormat` for a record
/// of a later release; `Io`.
pub(in crate::staging) fn each_batch(
    stage: &Stage,
    intake: StreamId,
    tail: &[(Sequence, Payload)],
    visit: OnRecord<'_>,
) -> Result<()> {
    for (sequence, payload) in tail {
        let sequence = *sequence;
        let of_record = |e: Error| {
            let place = format!("record {sequence} of intake {intake}");
            Error::new(e.kind(), "read", place, e.cause()).with_source(e)
        };
        let mut beginning = Vec::new();
        match batch_of(stage, sequence, payload, &mut beginning) {
            Ok(batch) => visit(Ok(batch))?,
            Err(e) if e.kind() == ErrorKind::Damage => {
                visit(Err(Unread { sequence, payload, why: of_record(e) }))?;
            }
            Err(e) if e.kind() == ErrorKind::NewerFormat => return Err(of_record(e)),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A batch of the tail; what had to be read of it comes to `beginning`.
fn batch_of<'a>(
    stage: &Stage,
    sequence: Sequence,
    payload: &'a Payload,
    beginning: &'a mut Vec<u8>,
) -> Result<TailBatch<'a>> {
    let (head, record) = match payload {
        Payload::Inline(whole) => {
            let (head, bytes) = decode_batch(whole)?;
            (head, TailRecord::Held { whole, bytes })
        }
        Payload::Object { digest, len } => {
            *beginning = beginning_of(&stage.store, digest, *len)?;
            let (head, used) = decode_head(beginning)?;
            let head_bytes = beginning.get(..used).unwrap_or_default();
            (head, TailRecord::Named { digest, len: *len, head: head_bytes })
        }
    };
    check_head(stage, &head)?;
    Ok(TailBatch { sequence, head, record })
}

/// Fails for a batch that no append to `stage` takes.
///
/// # Errors
/// `Damage`.
pub(in crate::staging) fn check_head(stage: &Stage, head: &BatchHead<'_>) -> Result<()> {
    let wrong = |cause: String| Error::damage("read", "batch", cause);
    if head.rows > ROWS_MAX {
        return Err(wrong(format!(
            "it says {} rows, and a batch has at most {ROWS_MAX}",
            head.rows
        )));
    }
    let key = Key::from_bytes(head.key).and_then(|key| stage.key_shape().check(&key));
    key.map_err(|e| wrong("its key is none of its stage".to_owned()).with_source(e))
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
