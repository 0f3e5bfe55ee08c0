//! Reading a recording, whatever its status, from the process that writes it or any other.

use std::ops::ControlFlow;

use super::chunks::CHUNKS_HELD_MAX;
use super::stream::Stream;
use crate::engine::Store;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::Schema;
use crate::ids::{EventId, RecordingId, StreamId};
use crate::manifest::{Reading, RecordingNameRow, RecordingRow, RecordingStatus, StreamRow};
use crate::recording::describing::{RecordingAbout, TimeAxis};
use crate::recording::keeping::{Event, list_events};

/// A recording as it stood when it was opened.
#[derive(Debug, Clone)]
pub struct Recording {
    store: Store,
    id: RecordingId,
    row: RecordingRow,
    schema: Schema,
    about: RecordingAbout,
}

impl Store {
    /// Opens the recording called `name` for reading.
    ///
    /// # Errors
    /// `NotFound`; `Damage`; `NewerFormat`.
    pub fn recording(&self, name: &str) -> Result<Recording> {
        let snapshot = self.snapshot()?;
        let Some(row) = snapshot.get::<RecordingNameRow>(&name.to_owned())? else {
            let cause = "there is no recording of this name";
            return Err(Error::new(ErrorKind::NotFound, "read", format!("{name:?}"), cause));
        };
        let id = row.recording;
        Recording::of_row(self, id, snapshot.require::<RecordingRow>(&id)?)
    }

    /// The first `at_most` recordings, in the order of their names.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat`.
    pub fn recordings(&self, at_most: usize) -> Result<Vec<Recording>> {
        let snapshot = self.snapshot()?;
        let mut found = Vec::new();
        snapshot.scan::<RecordingNameRow>(.., &mut |_, name| {
            if found.len() == at_most {
                return Ok(ControlFlow::Break(()));
            }
            let row = snapshot.require::<RecordingRow>(&name.recording)?;
            found.push(Recording::of_row(self, name.recording, row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

impl Recording {
    pub(in crate::recording) fn of_row(
        store: &Store,
        id: RecordingId,
        row: RecordingRow,
    ) -> Result<Self> {
        let schema = Schema::from_bytes(&row.schema)?;
        let about = RecordingAbout::from_bytes(&row.about)?;
        Ok(Self { store: store.clone(), id, row, schema, about })
    }

    pub(super) fn stream_ids(&self) -> &[StreamId] {
        &self.row.streams
    }

    pub(in crate::recording) fn store(&self) -> &Store {
        &self.store
    }

    /// Its number.
    pub fn id(&self) -> RecordingId {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.row.name
    }

    /// How far it is.
    pub fn status(&self) -> &RecordingStatus {
        &self.row.status
    }

    /// What its owner says of it.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.row.metadata
    }

    /// What its iterations and its physical time are called.
    pub fn time_axis(&self) -> &TimeAxis {
        &self.about.axis
    }

    /// Wall-clock nanoseconds since 1970 when it was started.
    pub fn created(&self) -> Option<i64> {
        self.row.created
    }

    /// All fields, of which each stream has some or all.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How many streams it has.
    pub fn stream_count(&self) -> usize {
        self.row.streams.len()
    }

    /// The stream called `name`, as it is now.
    ///
    /// # Errors
    /// `NotFound`, with the names there are; `Damage`.
    pub fn stream(&self, name: &str) -> Result<Stream> {
        let (id, _) = self.find_stream(name)?;
        let mut views = self.store.views_within(&[id], CHUNKS_HELD_MAX)?;
        let view = views.pop().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "read", format!("stream {name:?}"), "no such stream")
        })?;
        Stream::of_view(&self.store, view)
    }

    /// The fields of the stream called `name`. Reads no file but the manifest.
    ///
    /// # Errors
    /// As [`Recording::stream`].
    pub fn stream_schema(&self, name: &str) -> Result<Schema> {
        Schema::from_bytes(&self.find_stream(name)?.1.schema)
    }

    fn find_stream(&self, name: &str) -> Result<(StreamId, StreamRow)> {
        let snapshot = self.store.snapshot()?;
        let mut names = Vec::new();
        for id in &self.row.streams {
            let row = snapshot.require::<StreamRow>(id)?;
            if row.name == name {
                return Ok((*id, row));
            }
            names.push(format!("{:?}", row.name));
        }
        names.truncate(20);
        let cause = format!("there is no such stream; there are {}", names.join(", "));
        Err(Error::new(ErrorKind::NotFound, "read", format!("stream {name:?}"), cause))
    }

    /// All streams at one instant, in the order of declaration.
    ///
    /// # Errors
    /// `Damage`; `Conflict` when they moved on too often meanwhile.
    pub fn streams(&self) -> Result<Vec<Stream>> {
        let views = self.store.views_within(&self.row.streams, CHUNKS_HELD_MAX)?;
        views.into_iter().map(|view| Stream::of_view(&self.store, view)).collect()
    }
}

impl Recording {
    /// Its events and notes from number `from` on, at most `at_most`, in the order in which they were
    /// made.
    ///
    /// # Errors
    /// `Damage`; `NewerFormat`.
    pub fn events(&self, from: EventId, at_most: usize) -> Result<Vec<Event>> {
        list_events(&self.store().snapshot()?, self.id(), from, at_most)
    }
}
