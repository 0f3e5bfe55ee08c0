//! What the rows of a recording and of its streams say of them that the manifest does not read.

use serde::{Deserialize, Serialize};

use super::axis::TimeAxis;
use super::chunk_limits::ChunkLimits;
use super::every::Sampling;
use super::overflow::Overflow;
use crate::codec;
use crate::error::{Error, ErrorKind, Result};

/// The version of both forms.
const VERSION: u16 = 1;

/// Of a recording.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(in crate::recording) struct RecordingAbout {
    pub axis: TimeAxis,
}

/// Of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(in crate::recording) struct StreamAbout {
    pub sampling: Sampling,
    pub chunk_bytes: Option<u64>,
    pub chunk_records: Option<u64>,
    pub chunk_span: Option<f64>,
    pub overflow: Overflow,
}

impl RecordingAbout {
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        codec::encode("recording", &(VERSION, self))
    }

    /// A row that says nothing has the defaults.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode("recording", bytes)
    }
}

impl StreamAbout {
    pub fn new(sampling: &Sampling, limits: &ChunkLimits, overflow: Overflow) -> Self {
        Self {
            sampling: sampling.clone(),
            chunk_bytes: limits.bytes,
            chunk_records: limits.records,
            chunk_span: limits.span,
            overflow,
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        codec::encode("stream", &(VERSION, self))
    }

    /// A row that says nothing has the defaults.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode("stream", bytes)
    }

    pub fn limits(&self) -> ChunkLimits {
        let Self { chunk_bytes, chunk_records, chunk_span, .. } = *self;
        ChunkLimits { bytes: chunk_bytes, records: chunk_records, span: chunk_span }
    }
}

fn decode<T: Default + serde::de::DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    if bytes.is_empty() {
        return Ok(T::default());
    }
    // P9: the codec bounds what a length in the bytes may allocate.
    let version = bytes.first_chunk::<2>().map_or(0, |b| u16::from_le_bytes(*b));
    if version > VERSION {
        let cause = format!("version {version} of what it says of itself is of a newer release");
        return Err(Error::new(ErrorKind::NewerFormat, "read", what, cause));
    }
    codec::decode::<(u16, T)>(what, bytes).map(|(_, about)| about)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do both forms come back, is a newer one told apart, and is any cut an error?
    #[test]
    fn both_forms_come_back_and_cut_ones_do_not() {
        let stream = StreamAbout {
            sampling: Sampling::Time(0.5),
            chunk_records: Some(7),
            ..StreamAbout::default()
        };
        let bytes = stream.to_bytes().unwrap();
        assert_eq!(StreamAbout::from_bytes(&bytes).unwrap(), stream);
        assert_eq!(StreamAbout::from_bytes(&[]).unwrap(), StreamAbout::default());
        let axis = TimeAxis::named("step", "").time("t", "s");
        let recording = RecordingAbout { axis };
        let mut bytes = recording.to_bytes().unwrap();
        assert_eq!(RecordingAbout::from_bytes(&bytes).unwrap(), recording);
        for len in 1..bytes.len() {
            assert!(RecordingAbout::from_bytes(&bytes[..len]).is_err(), "{len}");
        }
        bytes[0] = 9;
        let newer = RecordingAbout::from_bytes(&bytes).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::NewerFormat);
    }
}
