//! What a stream of a new recording is to be: its fields, which observations, where chunks end.

use crate::recording::describing::{ChunkLimits, Every, Overflow};

/// Describes one stream, for [`NewRecording::stream_as`](crate::recording::NewRecording::stream_as).
#[derive(Debug, Clone)]
#[must_use]
pub struct StreamOptions {
    pub(super) name: String,
    pub(super) fields: Vec<String>,
    pub(super) every: Every,
    pub(super) overflow: Overflow,
    chunk_bytes: Option<Option<u64>>,
    chunk_records: Option<Option<u64>>,
    chunk_span: Option<Option<f64>>,
}

impl StreamOptions {
    /// A stream of these fields, of every observation, with the recording's own limits. The order
    /// of the fields does not matter: records have schema order.
    pub fn new(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            name: name.into(),
            fields: fields.into_iter().map(Into::into).collect(),
            every: Every::observation(),
            overflow: Overflow::default(),
            chunk_bytes: None,
            chunk_records: None,
            chunk_span: None,
        }
    }

    /// Which observations it records.
    pub fn every(mut self, every: Every) -> Self {
        self.every = every;
        self
    }

    /// What it does with a record for which the queue has no room. Default: the observer waits.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Bytes of records, before encoding, after which a chunk ends; `None` for no such limit.
    pub fn chunk_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.chunk_bytes = Some(bytes.into());
        self
    }

    /// Records after which a chunk ends; `None` for no such limit.
    pub fn chunk_records(mut self, records: impl Into<Option<u64>>) -> Self {
        self.chunk_records = Some(records.into());
        self
    }

    /// Physical time after which a chunk ends, as [`NewRecording::chunk_span`](crate::recording::NewRecording::chunk_span)
    /// says; `None` for no such limit.
    pub fn chunk_span(mut self, span: impl Into<Option<f64>>) -> Self {
        self.chunk_span = Some(span.into());
        self
    }

    /// Its limits, where `wide` are those of the recording.
    pub(in crate::recording) fn limits(&self, wide: &ChunkLimits) -> ChunkLimits {
        ChunkLimits {
            bytes: self.chunk_bytes.unwrap_or(wide.bytes),
            records: self.chunk_records.unwrap_or(wide.records),
            span: self.chunk_span.unwrap_or(wide.span),
        }
    }
}

/// What is wrong with the limits of a stream whose records are `timed` or not, if anything is.
pub(super) fn fault(limits: &ChunkLimits, timed: bool) -> Option<String> {
    match *limits {
        ChunkLimits { bytes: Some(0), .. } => Some("chunk_bytes is zero".into()),
        ChunkLimits { records: Some(0), .. } => Some("chunk_records is zero".into()),
        ChunkLimits { bytes: None, records: None, .. } => {
            Some("its limits are missing: give chunk_bytes or chunk_records".into())
        }
        ChunkLimits { span: Some(span), .. } if !(span > 0.0 && span.is_finite()) => {
            Some(format!("chunk_span {span} is not above zero and finite"))
        }
        ChunkLimits { span: Some(_), .. } if !timed => {
            Some("chunk_span is of physical time, and the records have none".into())
        }
        _ => None,
    }
}
