//! A group of records between their encoding and their acceptance, in memory that is used again
//! for the next group.

use std::ops::Range;

use super::admit::Fate;
use super::open_stream::{OpenStream, Sampled};
use super::ring::Kept;
use super::tally::Counted;
use crate::error::{Error, ErrorKind, Result};
use crate::format::column::{CHUNK_RAW_BYTES_MAX, Field, RowEncoder};
use crate::ids::StreamId;
use crate::recording::describing::Moment;

/// Memory of the buffer that is kept for the next group.
const KEPT_BYTES: usize = 1 << 20;

/// One record of a group.
#[derive(Debug, Clone, Copy)]
pub(in crate::recording) struct Recorded {
    /// The position of its stream.
    pub stream: usize,
    pub counted: Counted,
    pub sampled: Sampled,
}

/// Records that are accepted together.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub bytes: Vec<u8>,
    /// Each record's stream, and where its payload lies in `bytes`.
    pub parts: Vec<(StreamId, Range<usize>)>,
    pub records: Vec<Recorded>,
    /// What becomes of each.
    pub fates: Vec<Fate>,
    /// The parts that were offered to the store last.
    pub offered: Vec<(StreamId, Range<usize>)>,
    /// The iteration that was observed, if it is an observation.
    pub observed: Option<i64>,
}

impl Group {
    /// Forgets what was collected.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.parts.clear();
        self.records.clear();
        self.fates.clear();
        self.offered.clear();
        self.observed = None;
    }

    /// Collects promised records of the stream at `position`, up to iteration `last`: one, or as many as
    /// take `bytes_max`. Returns how many.
    pub fn collect_kept(
        &mut self,
        position: usize,
        stream: &OpenStream,
        last: Option<i64>,
        bytes_max: u64,
    ) -> usize {
        let wanted = |kept: &&Kept| last.is_some_and(|last| kept.counted.iteration <= last);
        for kept in stream.ring.promised().take_while(wanted) {
            let start = self.bytes.len();
            if start > 0 && (start + kept.payload.len()) as u64 > bytes_max {
                break;
            }
            self.bytes.extend_from_slice(&kept.payload);
            let (counted, sampled) = (kept.counted, Sampled::default());
            self.records.push(Recorded { stream: position, counted, sampled });
            self.parts.push((stream.id, start..self.bytes.len()));
        }
        self.records.len()
    }

    /// Encodes a record of the stream at `position`; `value` adds the value of each field.
    pub fn encode(
        &mut self,
        position: usize,
        stream: &OpenStream,
        now: Moment,
        sampled: Sampled,
        mut value: impl FnMut(usize, &Field, &mut RowEncoder, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let start = self.bytes.len();
        let mut encoder =
            RowEncoder::begin(&stream.schema, now.iteration, now.time, &mut self.bytes);
        for (at, field) in stream.schema.fields().iter().enumerate() {
            value(at, field, &mut encoder, &mut self.bytes)?;
        }
        let cells_len = encoder.cells_len();
        if cells_len > CHUNK_RAW_BYTES_MAX {
            let cause = format!("{cells_len} bytes; {CHUNK_RAW_BYTES_MAX} is the most");
            let place = format!("stream {:?} iteration {}", stream.name, now.iteration);
            return Err(Error::new(ErrorKind::LimitExceeded, "append", place, cause));
        }
        let range = start..self.bytes.len();
        let (iteration, time, len) = (now.iteration, now.time, range.len() as u64);
        let counted = Counted { iteration, time, len, cells_len };
        self.records.push(Recorded { stream: position, counted, sampled });
        self.parts.push((stream.id, range));
        Ok(())
    }
}
