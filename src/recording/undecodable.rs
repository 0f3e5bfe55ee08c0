//! Unsealed records whose frames are whole and that are no records of their stream: where the valid
//! prefix ends, and what becomes of the rest.

use super::resume_from::last_chunk;
use crate::engine::{Store, StreamView};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, row_payload};
use crate::ids::{LeaseId, ObjectId, Sequence};
use crate::manifest::Cursor;

use serde::{Deserialize, Serialize};

/// Who keeps what was set aside.
pub const QUARANTINE_HOLDER: &str = "quarantine";

/// A stream whose unsealed records do not all decode.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Undecodable {
    /// Its position.
    pub position: usize,
    /// Its name.
    pub stream: String,
    /// The first record that does not decode; those before it do.
    pub first: Sequence,
    /// How many records there are from there on.
    pub records: u64,
    /// Records of other streams count up to below this iteration: they were observed before it.
    pub iteration: i64,
    /// What is wrong with it.
    pub cause: String,
}

impl Undecodable {
    pub(super) fn error(&self, operation: &'static str, recording: &str) -> Error {
        let Self { stream, first, records, cause, .. } = self;
        let place = format!("{recording:?} stream {stream:?} record {first}");
        let cause = format!(
            "it does not decode ({cause}); the {first} records before it are whole. Resume with \
             set_aside to go on behind them: the bytes of the other {records} are kept"
        );
        Error::damage(operation, place, cause)
    }
}

/// Looks at the unsealed records of `views`, one by one.
pub(super) fn find(store: &Store, views: &[StreamView]) -> Result<Vec<Undecodable>> {
    let mut found = Vec::new();
    for (position, view) in views.iter().enumerate() {
        let schema = Schema::from_bytes(&view.row.schema)?;
        // One that was cut says what it had before.
        let whole = last_chunk(store, view)?.filter(|chunk| chunk.rows == chunk.rows_written);
        let mut last = whole.and_then(|chunk| chunk.iterations).map(|(_, at)| at);
        let mut values = Vec::new();
        for (sequence, payload) in &view.tail {
            let bytes = store.payload_bytes(payload)?;
            let decoded = row_payload::decode(&schema, &bytes, &mut values);
            values = Vec::new();
            let cause = match decoded {
                Ok((iteration, _)) if last.is_none_or(|last| iteration > last) => {
                    last = Some(iteration);
                    continue;
                }
                Ok((iteration, _)) => format!("its iteration {iteration} does not follow"),
                Err(e) if e.kind() == ErrorKind::NewerFormat => return Err(e),
                Err(e) => e.to_string(),
            };
            let after = last.map_or(i64::MIN, |last| last.saturating_add(1));
            let own = row_payload::iteration(&bytes).ok().filter(|own| *own >= after);
            found.push(Undecodable {
                position,
                stream: view.row.name.clone(),
                first: *sequence,
                records: view.rows().saturating_sub(sequence.0),
                iteration: own.unwrap_or(after),
                cause,
            });
            break;
        }
    }
    Ok(found)
}

/// What a resume set aside, and where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quarantined {
    /// The lease that keeps it; retire it once it was looked at.
    pub lease: LeaseId,
    /// The bytes: see [`Quarantined::records`].
    pub object: ObjectId,
    /// How many records.
    pub count: u64,
}

/// One record that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetAside {
    /// Its stream.
    pub stream: String,
    /// Its place there.
    pub sequence: u64,
    /// Its bytes, as the journal had them.
    pub bytes: Vec<u8>,
}

impl Quarantined {
    /// The records, byte for byte.
    ///
    /// # Errors
    /// `NotFound` once the lease was retired; `Damage`.
    pub fn records(&self, store: &Store) -> Result<Vec<SetAside>> {
        crate::codec::decode("quarantine", &store.fetch(self.object)?)
    }
}

/// Keeps the bytes of all unsealed records at or behind `cursors`.
///
/// # Durability
/// *Durable* when it returns.
pub(super) fn quarantine(
    store: &Store,
    recording: &str,
    views: &[StreamView],
    cursors: &[Cursor],
) -> Result<Quarantined> {
    let mut records = Vec::new();
    for (view, cursor) in views.iter().zip(cursors) {
        for (sequence, payload) in view.tail.iter().filter(|(at, _)| *at >= cursor.end) {
            let bytes = store.payload_bytes(payload)?;
            let (stream, sequence) = (view.row.name.clone(), sequence.0);
            records.push(SetAside { stream, sequence, bytes });
        }
    }
    let purpose = format!("records of recording {recording:?} that do not decode");
    let lease = store.lease(QUARANTINE_HOLDER, &purpose, None, &[])?;
    let count = records.len() as u64;
    let content = crate::codec::encode("quarantine", &records)?;
    let object = store.put_objects(lease, vec![content])?.first().map(|(object, _)| *object);
    let object = object.ok_or_else(|| Error::damage("resume", "quarantine", "nothing was kept"))?;
    Ok(Quarantined { lease, object, count })
}
