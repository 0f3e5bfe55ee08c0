//! Rows of events: what was said of a recording while it ran.

use serde::{Deserialize, Serialize};

use super::recordings::Cursor;
use crate::ids::{EventId, ObjectId, RecordingId};
use crate::manifest::row::Row;
use crate::manifest::table::Table;

/// What the bytes of an event are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventForm {
    /// Any bytes.
    Bytes,
    /// UTF-8 text.
    Text,
    /// The text of one JSON value.
    Json,
}

/// One event of a recording, by recording and number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// The last iteration that was recorded before it.
    pub iteration: Option<i64>,
    /// Wall-clock nanoseconds.
    pub at: Option<i64>,
    /// What kind of event, in its owner's words.
    pub kind: String,
    /// What the bytes are.
    pub form: EventForm,
    /// What there is to say.
    pub body: Vec<u8>,
    /// The end, then, of a stream that holds the last iteration: a cut below it takes back the
    /// history in which the event was made.
    pub anchor: Option<Cursor>,
}

impl Row for EventRow {
    type Key = (RecordingId, EventId);
    const TABLE: Table = Table::Events;
    const VERSION: u8 = 1;
    fn edges(&self, _to: &mut dyn FnMut(ObjectId)) {}
}
