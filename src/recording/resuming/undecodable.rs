//! Unsealed records whose frames are whole and that are no records of their stream: where the valid
//! prefix ends, and what becomes of the rest.

use super::resume_from::last_chunk;
use crate::engine::{NewObject, Store, StreamView};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, row_payload};
use crate::ids::{LeaseId, ObjectId, Sequence};
use crate::manifest::{Cursor, LeaseRow, Table};
use crate::vfs::Step;

use serde::{Deserialize, Serialize};

/// Who keeps what was set aside.
pub const QUARANTINE_HOLDER: &str = "quarantine";

/// The most bytes of records in one object of them.
const PART_BYTES: usize = 32 << 20;

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
        let whole = last_chunk(store, view)?.filter(|chunk| chunk.records == chunk.records_written);
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
                records: view.record_count().saturating_sub(sequence.0),
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
    /// The bytes, in parts: see [`Quarantined::records`].
    pub objects: Vec<ObjectId>,
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
        let mut records: Vec<SetAside> = Vec::new();
        for object in &self.objects {
            let part: Vec<SetAside> = crate::codec::decode("quarantine", &store.fetch(*object)?)?;
            for next in part {
                match records.last_mut() {
                    // One that is longer than a part goes on.
                    Some(last)
                        if (&last.stream, last.sequence) == (&next.stream, next.sequence) =>
                    {
                        last.bytes.extend(next.bytes);
                    }
                    _ => records.push(next),
                }
            }
        }
        Ok(records)
    }
}

/// Keeps the bytes of all unsealed records at or behind `cursors`.
///
/// # Durability
/// *Durable* when it returns; after an error nothing of it is there.
pub(super) fn quarantine(
    store: &Store,
    recording: &str,
    views: &[StreamView],
    cursors: &[Cursor],
) -> Result<Quarantined> {
    let mut parts = Parts { most: PART_BYTES, parts: Vec::new(), at_hand: Vec::new(), bytes: 0 };
    let mut count = 0;
    for (view, cursor) in views.iter().zip(cursors) {
        for (sequence, payload) in view.tail.iter().filter(|(at, _)| *at >= cursor.end) {
            parts.add(&view.row.name, sequence.0, &store.payload_bytes(payload)?)?;
            count += 1;
        }
    }
    let contents = parts.finish()?;
    let purpose = format!("records of recording {recording:?} that do not decode");
    let referrer = Some((Table::Leases, Vec::new()));
    let new = |bytes| NewObject { bytes, referrer: referrer.clone() };
    let contents: Vec<NewObject> = contents.into_iter().map(new).collect();
    let kept = store.transact_with(Step::LeaseCommit, contents, |w, objects| {
        let lease = w.next_lease_id()?;
        let mut row = LeaseRow {
            holder: QUARANTINE_HOLDER.to_owned(),
            purpose: purpose.clone(),
            deadline: None,
            objects: Vec::new(),
        };
        for object in objects {
            if !row.objects.contains(object) {
                row.objects.push(*object);
            }
        }
        w.put(&lease, &row)?;
        Ok((lease, objects.to_vec()))
    })?;
    let (lease, objects) = kept.value;
    Ok(Quarantined { lease, objects, count })
}

/// Lets go of what was set aside.
pub(super) fn take_back(store: &Store, kept: &Quarantined) -> Result<()> {
    let removed =
        store.transact(Step::LeaseCommit, |w| w.remove::<LeaseRow>(&kept.lease).map(|_| ()));
    removed.map(|_| ())
}

/// Records in the form of [`SetAside`], in parts that can be encoded.
struct Parts {
    /// The most bytes of records in a part, and of one record there.
    most: usize,
    parts: Vec<Vec<u8>>,
    at_hand: Vec<SetAside>,
    bytes: usize,
}

impl Parts {
    fn add(&mut self, stream: &str, sequence: u64, bytes: &[u8]) -> Result<()> {
        // An empty record is one piece all the same.
        let mut rest = bytes;
        loop {
            let (piece, more) = rest.split_at(rest.len().min(self.most));
            // What a piece takes besides its bytes is counted as well.
            let len = piece.len() + stream.len() + 24;
            if self.bytes > 0 && self.bytes.saturating_add(len) > self.most {
                self.cut()?;
            }
            self.bytes = self.bytes.saturating_add(len);
            let (stream, bytes) = (stream.to_owned(), piece.to_vec());
            self.at_hand.push(SetAside { stream, sequence, bytes });
            rest = more;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn cut(&mut self) -> Result<()> {
        self.parts.push(crate::codec::encode("quarantine", &self.at_hand)?);
        self.at_hand.clear();
        self.bytes = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Vec<u8>>> {
        if !self.at_hand.is_empty() {
            self.cut()?;
        }
        Ok(self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is every record in the parts, in order, in pieces where it is longer than a part, and is no part
    /// much longer than it may be?
    #[test]
    fn rec35_what_is_set_aside_is_encoded_in_parts() {
        let mut parts = Parts { most: 100, parts: Vec::new(), at_hand: Vec::new(), bytes: 0 };
        let lens = [0usize, 5, 60, 60, 350, 100, 1, 0];
        for (at, len) in lens.into_iter().enumerate() {
            parts.add("s", at as u64, &vec![at as u8; len]).unwrap();
        }
        let parts = parts.finish().unwrap();
        assert!(parts.len() > 5 && parts.iter().all(|part| part.len() < 250), "{parts:?}");
        let mut found = vec![Vec::new(); lens.len()];
        for part in &parts {
            for piece in crate::codec::decode::<Vec<SetAside>>("quarantine", part).unwrap() {
                found[piece.sequence as usize].extend(piece.bytes);
            }
        }
        let expected = lens.into_iter().enumerate().map(|(at, len)| vec![at as u8; len]);
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
}
