//! A recording that is not started yet: everything about it is checked before anything is written.

use serde::Serialize;
use std::collections::HashSet;

use super::batch::Batch;
use super::begin::{Checked, NewStream, begin};
use super::bulk::{Bulk, check_open};
use super::filling::Filling;
use super::open_stream::OpenStream;
use super::recorder::Recorder;
use super::stream_options::{StreamOptions, fault};
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::limits::Limits;
use crate::recording::describing::{
    ChunkLimits, Every, Given, Parameter, RecordingAbout, Settings, StreamAbout, StreamSettings,
    TimeAxis, check_name, check_recording_name, stream_schema,
};

/// The longest encoded schema: the footer of each chunk holds it.
const SCHEMA_BYTES_MAX: usize = 1 << 20;

/// Builds a recording: `store.record(name, &schema).stream(..).start()?`.
#[derive(Debug, Clone)]
#[must_use]
pub struct NewRecording {
    store: Store,
    name: String,
    schema: Schema,
    streams: Vec<StreamOptions>,
    axis: TimeAxis,
    parameters: Given,
    metadata: Vec<(String, String)>,
    limits: ChunkLimits,
}

impl Store {
    /// Describes a recording called `name` of records of `schema`. Nothing is written before it
    /// is started.
    pub fn record(&self, name: &str, schema: &Schema) -> NewRecording {
        let bytes = Some(Limits::default().chunk_bytes);
        NewRecording {
            store: self.clone(),
            name: name.to_owned(),
            schema: schema.clone(),
            streams: Vec::new(),
            axis: TimeAxis::default(),
            parameters: Given::default(),
            metadata: Vec::new(),
            limits: ChunkLimits { bytes, ..ChunkLimits::default() },
        }
    }
}

impl NewRecording {
    /// Adds a stream of these fields, of every observation. The order of the fields does not
    /// matter: records have schema order.
    pub fn stream(self, name: &str, fields: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stream_as(StreamOptions::new(name, fields))
    }

    /// As [`NewRecording::stream`], of some observations.
    pub fn stream_every(
        self,
        name: &str,
        fields: impl IntoIterator<Item = impl Into<String>>,
        every: Every,
    ) -> Self {
        self.stream_as(StreamOptions::new(name, fields).every(every))
    }

    /// Adds a stream with options of its own.
    pub fn stream_as(mut self, options: StreamOptions) -> Self {
        self.streams.push(options);
        self
    }

    /// Says what iterations and physical time are called, and their units.
    pub fn time_axis(mut self, axis: TimeAxis) -> Self {
        self.axis = axis;
        self
    }

    /// Adds the entries of a map or struct as parameters, those inside others with dots between
    /// the names. Its `task_index` replaces any other parameter or metadata of that name. Whole numbers
    /// above [`i64::MAX`] are doubles where those are exact, and refused otherwise: give them as text.
    pub fn parameters(mut self, task: &impl Serialize) -> Self {
        self.parameters.task(task);
        self
    }

    /// Adds one parameter. Of a `u64` or `usize` that is none the start tells.
    pub fn parameter<V>(mut self, key: impl Into<String>, value: V) -> Self
    where
        V: TryInto<Parameter>,
        V::Error: std::fmt::Display,
    {
        let key = key.into();
        match value.try_into() {
            Ok(value) => self.parameters.one(key, value),
            Err(e) => self.parameters.refused(&key, &e),
        }
        self
    }

    /// Adds something to say of it, once under each key.
    pub fn metadata(mut self, key: impl Into<String>, text: impl Into<String>) -> Self {
        self.metadata.push((key.into(), text.into()));
        self
    }

    /// Bytes of records, before encoding, after which a chunk is sealed. Default: 1 MiB. `None` for
    /// no such limit.
    pub fn chunk_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.limits.bytes = bytes.into();
        self
    }

    /// Records after which a chunk is sealed. Default: no such limit.
    pub fn chunk_records(mut self, records: impl Into<Option<u64>>) -> Self {
        self.limits.records = records.into();
        self
    }

    /// Physical time after which a chunk is sealed: a record whose time is `span` or more after that
    /// of the chunk's first begins the next one, compared as doubles, without tolerance. Finite and
    /// above 0. Default: no such limit.
    pub fn chunk_span(mut self, span: impl Into<Option<f64>>) -> Self {
        self.limits.span = span.into();
        self
    }

    /// Starts it, for records that arrive one by one and may have to be durable at once. While the
    /// recorder lives, nobody else writes the recording. What a start left that was killed, or
    /// failed, before its first record, event or checkpoint gives way: who died holds nothing.
    ///
    /// # Errors
    /// `Invalid`, each wrong thing with its own message, intervals and limits of zero among them;
    /// `LimitExceeded` for a schema above 1 MiB; `Exists` when the name is taken, and the
    /// recording of that name stays as it is; `ReadOnly`.
    ///
    /// # Durability
    /// The running recording is durable when this returns. After an error nothing of it is there, or,
    /// where what came behind its commit failed, an abandoned start, which the next one replaces.
    pub fn start(self) -> Result<Recorder> {
        if self.streams.is_empty() {
            return Err(Error::invalid("record", self.place(), "it has no stream"));
        }
        let checked = self.check()?;
        let begun = begin(&self.store, &checked)?;
        let streams = begun.streams.iter().zip(checked.streams).zip(self.streams);
        let streams = streams.map(|((id, new), options)| {
            let (limits, every) = (new.about.limits(), options.every);
            let watched = every.watched().and_then(|name| self.schema.position(name));
            let watched = watched.and_then(|at| self.schema.fields().get(at)).cloned();
            OpenStream::new(*id, new.name, new.schema, limits, every, watched)
                .overflowing(new.about.overflow)
        });
        let (streams, batch) = (streams.collect(), Batch::behind(0));
        let (id, schema, claim) = (begun.id, checked.schema, begun.claim);
        Ok(Recorder::new(self.store, id, self.name, schema, claim, streams, batch))
    }

    /// Starts it, for many records that need not be durable one by one: they go straight into
    /// chunks. Streams may be added later.
    ///
    /// # Errors
    /// As [`NewRecording::start`]; `LimitExceeded` for more streams or columns than can be open;
    /// `Invalid` for what only [`NewRecording::start`] takes: sampling, and limits other than
    /// `chunk_bytes` for all.
    ///
    /// # Durability
    /// As there.
    pub fn start_bulk(self) -> Result<Bulk> {
        let columns = self.streams.iter().map(|stream| stream.fields.len() + 1).sum();
        check_open(self.streams.len(), columns)
            .map_err(|cause| Error::new(ErrorKind::LimitExceeded, "record", self.place(), cause))?;
        let checked = self.check()?;
        let plain = StreamAbout { chunk_bytes: self.limits.bytes, ..StreamAbout::default() };
        let others = checked.streams.iter().any(|stream| stream.about != plain);
        let (Some(chunk_bytes), false) = (plain.chunk_bytes, others || self.limits.is_more())
        else {
            let cause = "filled in bulk, its streams take every record, and chunk_bytes alone";
            return Err(Error::invalid("record", self.place(), cause));
        };
        let begun = begin(&self.store, &checked)?;
        let fillings = begun.streams.iter().zip(checked.streams);
        let fillings = fillings.map(|(id, new)| Filling::new(Some(*id), new.name, new.schema));
        let (fillings, claim) = (fillings.collect(), begun.claim);
        Ok(Bulk::new(self.store, begun.id, self.name, claim, checked.schema, chunk_bytes, fillings))
    }

    /// What its records mean.
    pub(in crate::recording) fn settings(&self) -> Result<Settings> {
        let checked = self.check()?;
        let streams = checked.streams.into_iter().map(|stream| StreamSettings {
            name: stream.name,
            schema: stream.schema,
            sampling: stream.about.sampling,
        });
        let (axis, streams) = (self.axis.clone(), streams.collect());
        Ok(Settings { axis, schema: checked.schema, streams })
    }

    /// What a stream of it records.
    pub(in crate::recording) fn every_of(&self, stream: &str) -> Option<Every> {
        let found = self.streams.iter().find(|options| options.name == stream);
        found.map(|options| options.every.clone())
    }

    /// What it says of a stream.
    pub(in crate::recording) fn about_of(&self, stream: &str) -> Option<StreamAbout> {
        let options = self.streams.iter().find(|options| options.name == stream)?;
        Some(self.about(options))
    }

    fn about(&self, options: &StreamOptions) -> StreamAbout {
        let (sampling, limits) = (options.every.sampling(), options.limits(&self.limits));
        StreamAbout::new(sampling, &limits, options.overflow)
    }

    /// What it says of itself.
    pub(in crate::recording) fn said(&self) -> Result<Vec<(String, String)>> {
        self.check().map(|checked| checked.metadata)
    }

    fn place(&self) -> String {
        format!("{:?}", self.name)
    }

    /// REC2: finds every error before anything is written.
    fn check(&self) -> Result<Checked> {
        check_recording_name(&self.name)?;
        let place = self.place();
        let timed = self.schema.is_timed() || self.axis.time_name().is_some();
        let refuse = |cause: String| Err(Error::invalid("record", &place, cause));
        self.axis.check(&place)?;
        if let Some(cause) = fault(&self.limits, timed).filter(|_| self.streams.is_empty()) {
            return refuse(cause);
        }
        if let Some((key, _)) = self.metadata.iter().find(|(key, _)| key.trim().is_empty()) {
            return refuse(format!("the metadata key {key:?} is blank"));
        }
        let mut keys = HashSet::new();
        if let Some((key, _)) = self.metadata.iter().find(|(key, _)| !keys.insert(key)) {
            return refuse(format!("the metadata {key:?} is given twice"));
        }
        let parameters = self.parameters.resolve(&place)?;
        let mut metadata = self.metadata.clone();
        metadata.retain(|(key, _)| !self.parameters.replaces(key));
        let mut seen = HashSet::new();
        let mut streams = Vec::with_capacity(self.streams.len());
        for options in &self.streams {
            let name = &options.name;
            check_name("stream", name)?;
            if !seen.insert(name) {
                let place = format!("stream {name:?}");
                return Err(Error::invalid("record", place, "the name is used twice"));
            }
            streams.push(self.check_stream(options, timed)?);
        }
        let (name, mut schema) = (self.name.clone(), self.schema.clone());
        if timed {
            schema = schema.timed();
        }
        let len = schema.to_bytes()?.len();
        if len > SCHEMA_BYTES_MAX {
            let cause = format!("its schema takes {len} bytes; {SCHEMA_BYTES_MAX} is the most");
            return Err(Error::new(ErrorKind::LimitExceeded, "record", place, cause));
        }
        let about = RecordingAbout { axis: self.axis.clone() };
        Ok(Checked { name, schema, streams, metadata, about, parameters })
    }

    fn check_stream(&self, options: &StreamOptions, timed: bool) -> Result<NewStream> {
        let StreamOptions { name, fields, every, .. } = options;
        let refuse =
            |cause: String| Err(Error::invalid("record", format!("stream {name:?}"), cause));
        let mut schema = stream_schema(&self.schema, name, fields)?;
        if timed {
            schema = schema.timed();
        }
        let limits = options.limits(&self.limits);
        if let Some(cause) = fault(&limits, timed).or_else(|| every.fault(timed)) {
            return refuse(cause);
        }
        if let Some(field) = every.watched().filter(|field| self.schema.position(field).is_none()) {
            return refuse(format!("it watches the field {field:?}, which there is not"));
        }
        if let Some(cause) = options.overflow.fault() {
            return refuse(cause);
        }
        let about = self.about(options);
        Ok(NewStream { name: name.clone(), schema, about })
    }
}
