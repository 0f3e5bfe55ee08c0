//! The unsealed records of a stream, for the face that makes chunks of them: they are in memory
//! anyway, so that nobody needs to hold them twice.

use std::ops::Range;

use super::store::Store;
use super::streams::unknown;
use crate::error::{Error, Result};
use crate::ids::{Generation, Sequence, StreamId};
use crate::journal::Payload;
use crate::manifest::{Reading, StreamRow};

/// Where a stream of ours ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TailEnd {
    pub(crate) generation: Generation,
    /// Records below are in chunks.
    pub(crate) sealed_upto: Sequence,
    /// The sequence of the next record.
    pub(crate) next: Sequence,
}

impl Store {
    /// The disk's monotonic clock, for what is sampled by it.
    pub(crate) fn monotonic_nanos(&self) -> u64 {
        self.core().disk.monotonic_nanos()
    }

    /// Where `stream` ends, which is claimed by that where several processes write.
    pub(crate) fn tail_end(&self, stream: StreamId) -> Result<TailEnd> {
        let mut streams = self.writer("read")?.streams.lock();
        self.load(&mut streams, stream)?;
        let end = streams.known("read", stream)?;
        let (generation, sealed_upto) = (end.generation, end.sealed_upto);
        Ok(TailEnd { generation, sealed_upto, next: end.next() })
    }

    /// The unsealed records `records` of `stream`, shared and not copied. Those that are objects are
    /// read with [`Store::payload_bytes`].
    ///
    /// # Errors
    /// `Conflict` when some of them were sealed, moved back or retired meanwhile.
    pub(crate) fn tail_payloads(
        &self,
        stream: StreamId,
        records: Range<u64>,
    ) -> Result<Vec<Payload>> {
        let streams = self.writer("read")?.streams.lock();
        let Some(end) = streams.get(stream) else { return Err(unknown("seal", stream)) };
        let from = records.start.checked_sub(end.sealed_upto.0);
        if records.end > end.next().0 || from.is_none() {
            let cause = format!(
                "records {records:?} are not its unsealed ones, which are {}..{}",
                end.sealed_upto,
                end.next()
            );
            let place = format!("stream {stream}");
            return Err(Error::new(crate::error::ErrorKind::Conflict, "seal", place, cause));
        }
        let from = from.unwrap_or_default() as usize;
        let count = (records.end - records.start) as usize;
        Ok(end.tail.range(from..from + count).map(|record| record.payload.clone()).collect())
    }

    /// Whether the end of `stream` is in memory; where several processes write, it is then ours.
    pub(crate) fn has_stream_at_hand(&self, stream: StreamId) -> bool {
        self.writer("look at").is_ok_and(|writer| writer.streams.lock().get(stream).is_some())
    }

    /// Whether `stream` never had a record that counts.
    pub(crate) fn is_untouched(&self, stream: StreamId) -> Result<bool> {
        let row = self.snapshot()?.get::<StreamRow>(&stream)?;
        let row = row.ok_or_else(|| unknown("read", stream))?;
        let end = self.tail_end(stream)?;
        Ok(row.next_ordinal.0 == 0 && row.generation.0 == 0 && end.next == Sequence(0))
    }
}
