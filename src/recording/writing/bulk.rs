//! Recording many at once: records go straight into chunks, bytes reach the disk once.

use std::collections::HashMap;

use super::begin::add_stream;
use super::filling::{Filling, Sealed};
use crate::engine::{Claim, Store};
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{Schema, Value};
use crate::ids::RecordingId;
use crate::manifest::{Reading, RecordingRow, RecordingStatus};
use crate::recording::describing::{ChunkLimits, Overflow, Sampling, StreamAbout, check_name};
use crate::recording::keeping::{Expected, give_up, remove, replace, set_status};
use crate::vfs::Step;

/// Chunks are published together once their bytes reach those of so many full ones,
const BATCH_CHUNKS: u64 = 16;
/// or 16 MiB.
const BATCH_BYTES_MAX: u64 = 16 << 20;
/// Records of all streams that are held before encoding: 64 MiB. Past it the fullest stream's
/// are sealed early.
const HELD_BYTES_MAX: u64 = 64 << 20;
/// The most streams of one recording that is filled in bulk.
pub const BULK_STREAMS_MAX: usize = 10_000;
/// And the most columns of all of them together, iterations included: an open column takes about
/// 160 bytes before its first value.
pub const BULK_COLUMNS_MAX: usize = 1 << 18;

/// A running recording that is filled in bulk. Dropped, it stays *running* with what was
/// published; [`Bulk::discard`] removes it.
#[derive(Debug)]
pub struct Bulk {
    store: Store,
    id: RecordingId,
    name: String,
    claim: Option<Claim>,
    schema: Schema,
    chunk_bytes: u64,
    fillings: Vec<Filling>,
    positions: HashMap<String, usize>,
    columns: usize,
    held_bytes: u64,
    ready: Vec<(usize, Sealed)>,
    ready_bytes: u64,
}

/// Whether so many streams of so many columns in all can be open at once; says the way out.
pub(super) fn check_open(streams: usize, columns: usize) -> std::result::Result<(), String> {
    let what = if streams > BULK_STREAMS_MAX {
        format!("{BULK_STREAMS_MAX} streams are the most")
    } else if columns > BULK_COLUMNS_MAX {
        format!("{columns} columns of {streams} streams; {BULK_COLUMNS_MAX} in all are the most")
    } else {
        return Ok(());
    };
    Err(format!("{what}: choose streams by something of fewer values, or record fewer columns"))
}

impl Bulk {
    pub(super) fn new(
        store: Store,
        id: RecordingId,
        name: String,
        claim: Claim,
        schema: Schema,
        chunk_bytes: u64,
        fillings: Vec<Filling>,
    ) -> Self {
        let named = fillings.iter().enumerate();
        let positions = named.map(|(at, filling)| (filling.name.clone(), at)).collect();
        let columns = fillings.iter().map(|filling| filling.schema().fields().len() + 1).sum();
        Self {
            store,
            id,
            name,
            claim: Some(claim),
            schema,
            chunk_bytes,
            fillings,
            positions,
            columns,
            held_bytes: 0,
            ready: Vec::new(),
            ready_bytes: 0,
        }
    }

    /// The position of the stream called `name`.
    pub fn stream(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// Each stream's name and number of records so far.
    pub fn streams(&self) -> impl Iterator<Item = (&str, u64)> {
        self.fillings.iter().map(|filling| (filling.name.as_str(), filling.record_count()))
    }

    /// Adds a stream of all fields, and returns its position. Its row is written with its first
    /// chunk.
    ///
    /// # Errors
    /// `Invalid` for a blank, overlong or repeated name; `LimitExceeded` past
    /// [`BULK_STREAMS_MAX`] and [`BULK_COLUMNS_MAX`].
    pub fn add_stream(&mut self, name: &str) -> Result<usize> {
        check_name("stream", name)?;
        let place = || format!("stream {name:?}");
        if self.positions.contains_key(name) {
            return Err(Error::invalid("record", place(), "the name is used twice"));
        }
        let columns = self.schema.fields().len() + 1;
        check_open(self.fillings.len() + 1, self.columns + columns)
            .map_err(|cause| Error::new(ErrorKind::LimitExceeded, "record", place(), cause))?;
        self.columns += columns;
        let schema = self.schema.clone();
        let position = self.fillings.len();
        self.fillings.push(Filling::new(None, name.to_owned(), schema));
        self.positions.insert(name.to_owned(), position);
        Ok(position)
    }

    /// Adds one record to a stream that is not timed.
    ///
    /// # Errors
    /// As [`Bulk::push_at`].
    ///
    /// # Durability
    /// As there.
    pub fn push(&mut self, stream: usize, iteration: i64, values: &[Value<'_>]) -> Result<()> {
        self.push_at(stream, iteration, None, values)
    }

    /// Adds one record to a stream, with its time where the schema is timed.
    ///
    /// # Errors
    /// `Invalid` for an unknown stream, values that do not fit its schema, an iteration that
    /// does not grow, or a time that cannot follow; what publishing gives. The record is not taken then, and can be pushed again.
    ///
    /// # Durability
    /// None before [`Bulk::flush`] or [`Bulk::complete`].
    pub fn push_at(
        &mut self,
        stream: usize,
        iteration: i64,
        time: Option<f64>,
        values: &[Value<'_>],
    ) -> Result<()> {
        // What may fail comes first. Nothing more is taken before what is held went its way.
        if self.held_bytes > HELD_BYTES_MAX {
            self.seal_fullest()?;
        }
        self.publish_batch()?;
        let Some(filling) = self.fillings.get_mut(stream) else {
            let cause = format!("there is no stream number {stream}");
            return Err(Error::invalid("append", format!("{:?}", self.name), cause));
        };
        let before = filling.held_len();
        let sealed = filling.push(iteration, time, values, self.chunk_bytes)?;
        self.held_bytes = self.held_bytes - before + filling.held_len();
        if let Some(sealed) = sealed {
            self.ready(stream, sealed);
        }
        Ok(())
    }

    fn ready(&mut self, stream: usize, sealed: Sealed) {
        self.ready_bytes += sealed.content_len();
        self.ready.push((stream, sealed));
    }

    fn seal_fullest(&mut self) -> Result<()> {
        let fullest = self.fillings.iter().enumerate().max_by_key(|(_, f)| f.held_len());
        let Some(at) = fullest.map(|(at, _)| at) else { return Ok(()) };
        self.seal(at)
    }

    fn seal(&mut self, stream: usize) -> Result<()> {
        let Some(filling) = self.fillings.get_mut(stream) else { return Ok(()) };
        let before = filling.held_len();
        if let Some(sealed) = filling.seal()? {
            self.held_bytes -= before;
            self.ready(stream, sealed);
        }
        Ok(())
    }

    /// Seals and publishes all records at hand.
    ///
    /// # Errors
    /// `DiskFull`, `Halted`, and others of the engine.
    ///
    /// # Durability
    /// All records pushed before are durable when this returns.
    pub fn flush(&mut self) -> Result<()> {
        for stream in 0..self.fillings.len() {
            self.seal(stream)?;
            self.publish_batch()?;
        }
        self.publish()
    }

    fn publish_batch(&mut self) -> Result<()> {
        let batch = self.chunk_bytes.saturating_mul(BATCH_CHUNKS).min(BATCH_BYTES_MAX);
        if self.ready_bytes >= batch { self.publish() } else { Ok(()) }
    }

    fn publish(&mut self) -> Result<()> {
        self.write_new_streams()?;
        let mut builds = Vec::with_capacity(self.ready.len());
        for (stream, sealed) in &self.ready {
            if let Some((name, Some(id))) = self.fillings.get(*stream).map(|f| (&f.name, f.id)) {
                builds.push(sealed.clone().build(id, name)?);
            }
        }
        self.store.publish_chunks(builds)?;
        // Only now: after a full disk the same chunks are published by the next call.
        self.ready.clear();
        self.ready_bytes = 0;
        Ok(())
    }

    /// Streams get their rows in one transaction, in the order in which they were added.
    fn write_new_streams(&mut self) -> Result<()> {
        let Some(first) = self.fillings.iter().position(|filling| filling.id.is_none()) else {
            return Ok(());
        };
        let (id, name, fillings) = (self.id, &self.name, &self.fillings);
        let limits = ChunkLimits { bytes: Some(self.chunk_bytes), ..ChunkLimits::default() };
        let about = StreamAbout::new(&Sampling::All, &limits, Overflow::default());
        let committed = self.store.transact(Step::PublishCommit, |w| {
            let mut row = w.get::<RecordingRow>(&id)?.ok_or_else(|| {
                let kind = ErrorKind::NotFound;
                Error::new(kind, "record", format!("{name:?}"), "it was retired meanwhile")
            })?;
            let mut ids = Vec::new();
            for (position, filling) in fillings.iter().enumerate().skip(first) {
                let (stream, schema) = (&filling.name, filling.schema());
                ids.push(add_stream(w, id, position, stream, schema, &about)?);
            }
            row.streams.extend_from_slice(&ids);
            w.put(&id, &row)?;
            Ok(ids)
        })?;
        for (filling, id) in self.fillings[first..].iter_mut().zip(committed.value) {
            filling.id = Some(id);
        }
        Ok(())
    }

    /// Publishes what is left, then ends the recording as *complete*, with more to say of it.
    ///
    /// # Errors
    /// As [`Bulk::flush`]. The recording then stays *running* with what was published.
    ///
    /// # Durability
    /// All records and the end are durable when this returns.
    pub fn complete(mut self, metadata: &[(String, String)]) -> Result<()> {
        self.flush()?;
        let claim = self.take_claim()?;
        let status = RecordingStatus::Complete;
        set_status(&self.store, self.id, &self.name, claim, status, metadata, &[])
    }

    /// Publishes what is left, then in one transaction ends the recording as *complete*, calls it
    /// `name`, and retires the recording that was called so, if there is one.
    ///
    /// # Errors
    /// As [`Bulk::flush`]. Nothing of this recording stays then, unless the store halted, and the
    /// other one is as it was; `OutcomeUnknown` when the commit failed.
    ///
    /// # Durability
    /// The replacement is durable when this returns.
    pub fn complete_replacing(mut self, name: &str, metadata: &[(String, String)]) -> Result<()> {
        let flushed = self.flush();
        let done = flushed.and_then(|()| {
            let claim = self.take_claim()?;
            replace(&self.store, self.id, &self.name, name, claim, metadata)
        });
        if done.is_err() {
            let _ = self.discard();
        }
        done
    }

    fn take_claim(&mut self) -> Result<Claim> {
        self.claim.take().ok_or_else(|| {
            Error::new(ErrorKind::Closed, "complete", format!("{:?}", self.name), "it has ended")
        })
    }

    /// Removes the recording with all that was published of it.
    ///
    /// # Errors
    /// What retiring gives.
    ///
    /// # Durability
    /// Nothing of it is there when this returns; bytes are given back by reclaim.
    pub fn discard(mut self) -> Result<()> {
        // Whoever removes a recording takes its claim.
        drop(self.claim.take());
        let expected = Expected { id: self.id, seen: None };
        remove(&self.store, &self.name, Some(&expected), "it was discarded before its end")
            .map(drop)
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            drop(claim);
            give_up(&self.store, &self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column::{Field, FieldType};

    fn bulk(columns: usize, chunk_bytes: u64) -> (tempfile::TempDir, Bulk) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path().join("run.stone")).unwrap();
        let fields = (0..columns).map(|n| Field::new(format!("f{n}"), FieldType::F64).nullable());
        let schema = Schema::new(fields.collect()).unwrap();
        let bulk = store.record("run", &schema).chunk_bytes(chunk_bytes).start_bulk().unwrap();
        (dir, bulk)
    }

    /// Are missing values, of which a record tells in one bit, counted as the memory they take?
    #[test]
    fn missing_values_count_as_the_memory_they_take() {
        let (_dir, mut bulk) = bulk(4000, u64::MAX);
        let stream = bulk.add_stream("s").unwrap();
        let row = vec![Value::Missing; 4000];
        for at in 0..100 {
            bulk.push(stream, at, &row).unwrap();
        }
        assert!(bulk.held_bytes >= 100 * 4000 * 8, "{} bytes", bulk.held_bytes);
        bulk.flush().unwrap();
        assert_eq!(bulk.held_bytes, 0);
    }

    /// Do many streams of many columns end in a refusal that says the way out, or in no memory?
    #[test]
    fn streams_times_columns_are_bounded() {
        let (_dir, mut bulk) = bulk(4000, 1 << 20);
        let refused = (0..BULK_STREAMS_MAX).find_map(|n| bulk.add_stream(&format!("s{n}")).err());
        let refused = refused.unwrap();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
        assert!(refused.to_string().contains("fewer values"), "{refused}");
        assert_eq!(bulk.fillings.len(), BULK_COLUMNS_MAX / 4001);
    }
}
