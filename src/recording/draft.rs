//! A recording that is not started yet: everything about it is checked before anything is written.

use std::collections::HashSet;

use super::bulk::{Bulk, check_open};
use super::filling::Filling;
use super::recorder::Recorder;
use super::schema::stream_schema;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::{RecordingId, StreamId};
use crate::limits::Limits;
use crate::manifest::{RecordingNameRow, RecordingRow, RecordingStatus, StreamRow, Write};
use crate::vfs::Step;

/// The longest name of a recording or stream, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// Builds a recording: `store.record(name, &schema).stream(..).start()?`.
#[derive(Debug, Clone)]
#[must_use]
pub struct NewRecording {
    store: Store,
    name: String,
    schema: Schema,
    streams: Vec<(String, Vec<String>)>,
    metadata: Vec<(String, String)>,
    chunk_bytes: u64,
}

impl Store {
    /// Describes a recording called `name` of records of `schema`. Nothing is written before it
    /// is started.
    pub fn record(&self, name: &str, schema: &Schema) -> NewRecording {
        NewRecording {
            store: self.clone(),
            name: name.to_owned(),
            schema: schema.clone(),
            streams: Vec::new(),
            metadata: Vec::new(),
            chunk_bytes: Limits::default().chunk_bytes,
        }
    }
}

impl NewRecording {
    /// Adds a stream of these fields. Their order does not matter: records have schema order.
    pub fn stream(
        mut self,
        name: &str,
        fields: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let fields = fields.into_iter().map(Into::into).collect();
        self.streams.push((name.to_owned(), fields));
        self
    }

    /// Adds something to say of it.
    pub fn metadata(mut self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.metadata.push((key.into(), text.into()));
        self
    }

    /// Bytes of records, before encoding, after which a chunk is sealed. Default: 1 MiB.
    pub fn chunk_bytes(mut self, bytes: u64) -> Self {
        self.chunk_bytes = bytes;
        self
    }

    /// Starts it, for records that arrive one by one and may have to be durable at once.
    ///
    /// # Errors
    /// `Invalid`, each wrong thing with its own message; `Exists` when the name is taken, and the
    /// recording of that name stays as it is; `ReadOnly`.
    ///
    /// # Durability
    /// The running recording is durable when this returns, or nothing of it is there.
    pub fn start(self) -> Result<Recorder> {
        if self.streams.is_empty() {
            return Err(Error::invalid("record", self.place(), "it has no stream"));
        }
        let (id, fillings) = self.begin()?;
        Ok(Recorder::new(self.store, id, self.name, self.chunk_bytes, fillings))
    }

    /// Starts it, for many records that need not be durable one by one: they go straight into
    /// chunks. Streams may be added later.
    ///
    /// # Errors
    /// As [`NewRecording::start`]; `LimitExceeded` for more streams or columns than can be open.
    ///
    /// # Durability
    /// As there.
    pub fn start_bulk(self) -> Result<Bulk> {
        let columns = self.streams.iter().map(|(_, fields)| fields.len() + 1).sum();
        check_open(self.streams.len(), columns)
            .map_err(|cause| Error::new(ErrorKind::LimitExceeded, "record", self.place(), cause))?;
        let (id, fillings) = self.begin()?;
        Ok(Bulk::new(self.store, id, self.name, self.schema, self.chunk_bytes, fillings))
    }

    fn place(&self) -> String {
        format!("{:?}", self.name)
    }

    fn begin(&self) -> Result<(RecordingId, Vec<Filling>)> {
        let schemas = self.check()?;
        let created = crate::clock::wall_nanos();
        let committed = self.store.transact(Step::PublishCommit, |w| {
            let recording = w.next_recording_id()?;
            let name_row = RecordingNameRow { recording };
            if !w.insert_absent(&self.name, &name_row)? {
                let cause = "a recording of this name is there already";
                return Err(Error::new(ErrorKind::Exists, "record", self.place(), cause));
            }
            let mut streams = Vec::with_capacity(schemas.len());
            for (position, ((name, _), schema)) in self.streams.iter().zip(&schemas).enumerate() {
                streams.push(add_stream(w, recording, position, name, schema)?);
            }
            let row = RecordingRow {
                name: self.name.clone(),
                status: RecordingStatus::Running,
                streams: streams.clone(),
                metadata: self.metadata.clone(),
                created,
                schema: self.schema.to_bytes()?,
            };
            w.put(&recording, &row)?;
            Ok((recording, streams))
        })?;
        let (recording, ids) = committed.value;
        // Where several processes write: a record is accepted before it comes to the journal.
        self.store.hold_streams(&ids)?;
        let named = self.streams.iter().map(|(name, _)| name.clone());
        let fillings = ids.into_iter().zip(named).zip(schemas);
        let fillings = fillings.map(|((id, name), schema)| Filling::new(Some(id), name, schema));
        Ok((recording, fillings.collect()))
    }

    /// REC2: finds every error before anything is written. Returns each stream's schema.
    fn check(&self) -> Result<Vec<Schema>> {
        check_recording_name(&self.name)?;
        if self.chunk_bytes == 0 {
            return Err(Error::invalid("record", self.place(), "chunk_bytes is zero"));
        }
        if let Some((key, _)) = self.metadata.iter().find(|(key, _)| key.trim().is_empty()) {
            let cause = format!("the metadata key {key:?} is blank");
            return Err(Error::invalid("record", self.place(), cause));
        }
        let mut seen = HashSet::new();
        let mut schemas = Vec::with_capacity(self.streams.len());
        for (name, fields) in &self.streams {
            check_name("stream", name)?;
            if !seen.insert(name) {
                let place = format!("stream {name:?}");
                return Err(Error::invalid("record", place, "the name is used twice"));
            }
            schemas.push(stream_schema(&self.schema, name, fields)?);
        }
        Ok(schemas)
    }
}

/// Writes the row of a new stream.
pub(super) fn add_stream(
    w: &mut Write,
    recording: RecordingId,
    position: usize,
    name: &str,
    schema: &Schema,
) -> Result<StreamId> {
    let Ok(position) = u32::try_from(position) else {
        let kind = ErrorKind::LimitExceeded;
        return Err(Error::new(kind, "record", format!("stream {name:?}"), "too many streams"));
    };
    let stream = w.next_stream_id()?;
    let row = StreamRow {
        recording: Some(recording),
        name: name.to_owned(),
        position,
        schema: schema.to_bytes()?,
        ..StreamRow::default()
    };
    w.put(&stream, &row)?;
    Ok(stream)
}

/// Whether a recording can be called so.
pub(super) fn check_recording_name(name: &str) -> Result<()> {
    check_name("recording", name)?;
    if name.contains(char::is_control) {
        let cause = "its name has a control character";
        return Err(Error::invalid("record", format!("recording {name:?}"), cause));
    }
    Ok(())
}

/// Whether a stream can be called so. Streams are named by values of others' files, so that any
/// character is kept; whoever prints a name sees to it.
pub(super) fn check_name(what: &str, name: &str) -> Result<()> {
    let place = format!("{what} {name:?}");
    if name.trim().is_empty() {
        return Err(Error::invalid("record", place, "its name is blank"));
    }
    if name.len() > NAME_BYTES_MAX {
        let cause = format!("its name has more than {NAME_BYTES_MAX} bytes");
        return Err(Error::invalid("record", what, cause));
    }
    Ok(())
}
