//! Reads a part: its batches that no output has, and what of it does not read.
//!
//! P6: what leaves here passed a checksum: that of its block, or where the part does not read whole
//! that of its frame. A part that lost its end gives the batches before the tear; one that is wrong in its
//! middle gives none.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::digest::Digest;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::{Content, Form, PartEnd, PartFrame, PartHeader, scan_part};
use crate::ids::{ObjectId, Sequence, StageId};
use crate::manifest::{ObjectRow, PartRow, Reading};
use crate::staging::Batch;

/// Where the bytes of objects come from: the store as it is, or what a view keeps of it.
pub(in crate::staging) trait Fetching {
    /// The store itself.
    fn store(&self) -> &Store;
    /// An object's bytes, verified.
    fn object(&self, object: ObjectId) -> Result<Vec<u8>>;
    /// The digest of an object; `None` where it is not there.
    fn digest(&self, object: ObjectId) -> Result<Option<Digest>>;
    /// Some of them.
    fn range(&self, object: ObjectId, range: Range<u64>) -> Result<Vec<u8>>;
}

impl Fetching for Store {
    fn store(&self) -> &Store {
        self
    }
    fn object(&self, object: ObjectId) -> Result<Vec<u8>> {
        self.fetch(object)
    }
    fn digest(&self, object: ObjectId) -> Result<Option<Digest>> {
        Ok(self.snapshot()?.get::<ObjectRow>(&object)?.map(|row| row.digest))
    }
    fn range(&self, object: ObjectId, range: Range<u64>) -> Result<Vec<u8>> {
        self.fetch_range(object, range)
    }
}

/// Why a part gives less than its row says.
#[derive(Debug, Clone)]
pub(in crate::staging) struct Fault {
    /// In words, for whoever looks at it later.
    pub(in crate::staging) reason: String,
}

/// A batch of a part.
#[derive(Debug)]
pub(in crate::staging) struct PartBatch {
    /// Its record's position in the intake.
    pub(in crate::staging) sequence: Sequence,
    /// Who sent it.
    pub(in crate::staging) producer: Option<String>,
    form: Form,
    pub(in crate::staging) rows: u64,
    pub(in crate::staging) len: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Here(Vec<u8>),
    Object(ObjectId, Range<u64>),
}

impl PartBatch {
    /// With its bytes.
    pub(in crate::staging) fn read(self, from: &dyn Fetching) -> Result<Batch> {
        let bytes = match self.body {
            Body::Here(bytes) => bytes,
            Body::Object(object, range) => from.range(object, range)?,
        };
        Ok(Batch::of(self.form, bytes, self.rows))
    }
}

/// What a part gives.
#[derive(Debug)]
pub(in crate::staging) struct PartRead {
    /// Its batches, but for those that are in an output already.
    pub(in crate::staging) batches: Vec<PartBatch>,
    /// What does not read, if something does not.
    pub(in crate::staging) fault: Option<Fault>,
}

/// How a part is read.
#[derive(Debug, Clone, Copy)]
pub(in crate::staging) struct Look {
    /// Batches that lie in objects are read to see whether they do.
    pub(in crate::staging) through: bool,
    /// Bytes that the disk refuses are bytes that do not read, and no error.
    pub(in crate::staging) even_refused: bool,
}

/// Reads the part of `row`.
///
/// # Errors
/// What the disk refuses; `NotFound` when the part is there no more; `NewerFormat`.
pub(in crate::staging) fn read_part(
    from: &dyn Fetching,
    stage: StageId,
    row: &PartRow,
    look: Look,
) -> Result<PartRead> {
    let (bytes, told) = match from.object(row.object) {
        Ok(bytes) => (bytes, None),
        Err(e) if is_fault(&e, look) => {
            (from.store().remains(row.object, look.even_refused)?, Some(e))
        }
        Err(e) => return Err(e),
    };
    let scan = scan_part(&bytes);
    let mut found = Found { from, row, look, batches: Vec::new(), named: None };
    let fault = match scan.end {
        PartEnd::Damaged { offset, cause } if cause.kind() == ErrorKind::Damage => {
            found.refuse(format!("at byte {offset}: {}", cause.cause()))
        }
        PartEnd::Damaged { cause, .. } => return Err(cause),
        PartEnd::Torn { offset, bytes } => {
            let torn = format!(
                "it lost its end: from byte {offset} on nothing is whole, and {bytes} bytes are there"
            );
            found.take(stage, scan.header, &scan.frames)?.or(Some(torn))
        }
        PartEnd::Whole => match found.take(stage, scan.header, &scan.frames)? {
            None => found.sums(),
            fault => fault,
        },
    };
    let reason = |fault: String| match &told {
        Some(told) => format!("{fault} ({told})"),
        None => fault,
    };
    let fault = fault.map(|fault| Fault { reason: reason(fault) });
    Ok(PartRead { batches: found.batches, fault })
}

fn is_fault(error: &Error, look: Look) -> bool {
    match error.kind() {
        ErrorKind::Damage => true,
        ErrorKind::Io => look.even_refused,
        _ => false,
    }
}

/// Batches of a part, as they are found.
struct Found<'a> {
    from: &'a dyn Fetching,
    row: &'a PartRow,
    look: Look,
    batches: Vec<PartBatch>,
    /// The objects that the part's row names, by digest; looked up once.
    named: Option<BTreeMap<Digest, ObjectId>>,
}

impl Found<'_> {
    /// Takes the batches that are in no output. `Some` is why some of them are not there.
    fn take(
        &mut self,
        stage: StageId,
        header: Option<PartHeader>,
        frames: &[PartFrame<'_>],
    ) -> Result<Option<String>> {
        let row = self.row;
        if let Some(header) = header
            && (header.stage, header.intake, header.first, header.upto)
                != (stage, row.intake, row.first, row.upto)
        {
            return Ok(self.refuse("it is another part than its row says".to_owned()));
        }
        let skip = usize::try_from(row.skip).unwrap_or(usize::MAX);
        let mut unread: Option<String> = None;
        for frame in frames.iter().skip(skip) {
            match (self.batch(frame)?, &unread) {
                (Ok(batch), None) => self.batches.push(batch),
                (Ok(_), Some(why)) => {
                    let why = format!("{why}, and batches behind it do");
                    return Ok(self.refuse(why));
                }
                (Err(why), None) => unread = Some(why),
                (Err(_), Some(_)) => {}
            }
        }
        Ok(unread)
    }

    /// None of it is used.
    fn refuse(&mut self, why: String) -> Option<String> {
        self.batches.clear();
        Some(why)
    }

    /// A batch, or why it does not read.
    fn batch(&mut self, frame: &PartFrame<'_>) -> Result<Result<PartBatch, String>> {
        let body = match frame.content {
            Content::Inline(bytes) => Body::Here(bytes.to_vec()),
            Content::Object { digest, len, skip } => {
                let Some(object) = self.object(&digest)? else {
                    let why = format!("batch {}: its row does not name {digest}", frame.sequence);
                    return Ok(Err(why));
                };
                if self.look.through {
                    match self.from.object(object) {
                        Ok(_) => {}
                        Err(e) if is_fault(&e, self.look) => {
                            return Ok(Err(format!("batch {} does not read: {e}", frame.sequence)));
                        }
                        Err(e) => return Err(e),
                    }
                }
                Body::Object(object, skip..len)
            }
        };
        let (sequence, form, rows) = (frame.sequence, frame.head.form, frame.head.rows);
        let producer = frame.head.producer.map(|mark| mark.name.to_owned());
        Ok(Ok(PartBatch { sequence, producer, form, rows, len: frame.len(), body }))
    }

    fn object(&mut self, digest: &Digest) -> Result<Option<ObjectId>> {
        if self.named.is_none() {
            let mut named = BTreeMap::new();
            for object in &self.row.payloads {
                if let Some(digest) = self.from.digest(*object)? {
                    named.insert(digest, *object);
                }
            }
            self.named = Some(named);
        }
        Ok(self.named.as_ref().and_then(|named| named.get(digest).copied()))
    }

    /// Whether the batches are those that the row counts.
    fn sums(&mut self) -> Option<String> {
        let (mut rows, mut len) = (0u64, 0u64);
        for batch in &self.batches {
            (rows, len) = (rows.saturating_add(batch.rows), len.saturating_add(batch.len));
        }
        let (batches, row) = (self.batches.len() as u64, self.row);
        if (batches, rows, len) == (row.batches, row.rows, row.len) {
            return None;
        }
        let why = format!(
            "it holds {rows} rows in {batches} batches of {len} bytes, its row says {} in {} of {}",
            row.rows, row.batches, row.len
        );
        self.refuse(why)
    }
}
