//! Several streams as one sequence of records, in the order of iterations; streams that share an
//! iteration keep the order of declaration. Memory is bounded whatever their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::records::Records;
use super::stream::Stream;
use crate::error::Result;

/// Decoded records of all streams together: 64 MiB.
const HELD_BYTES: u64 = 64 << 20;
/// One stream's share is at least this.
const SHARE_BYTES_MIN: u64 = 4 << 10;
/// And at most this: more gains nothing over a chunk at a time.
const SHARE_BYTES_MAX: u64 = 8 << 20;

/// Records of several streams, merged.
#[derive(Debug)]
pub struct Merged<'s> {
    records: Vec<Records<'s>>,
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    current: Option<usize>,
}

impl<'s> Merged<'s> {
    /// Merges `streams`, each with the fields named for it.
    ///
    /// # Errors
    /// As [`Records::advance`].
    pub fn new(streams: &'s [Stream], fields: &[Vec<usize>]) -> Result<Self> {
        let share = HELD_BYTES / (streams.len().max(1) as u64);
        let share = share.clamp(SHARE_BYTES_MIN, SHARE_BYTES_MAX);
        let mut this = Self { records: Vec::new(), heads: BinaryHeap::new(), current: None };
        for (stream, fields) in streams.iter().zip(fields) {
            this.records.push(stream.records(fields.clone(), 0..stream.record_count(), share));
        }
        for at in 0..this.records.len() {
            this.push_head(at)?;
        }
        Ok(this)
    }

    /// Goes to the next record; returns the position of its stream, or `None` at the end. The first
    /// error ends it: the other streams without the one that failed are not the recording.
    ///
    /// # Errors
    /// As [`Records::advance`].
    pub fn advance(&mut self) -> Result<Option<usize>> {
        if let Some(at) = self.current.take()
            && let Err(e) = self.push_head(at)
        {
            self.heads.clear();
            self.records.clear();
            return Err(e);
        }
        self.current = self.heads.pop().map(|Reverse((_, at))| at);
        Ok(self.current)
    }

    /// The records at the position that [`Merged::advance`] gave.
    pub fn records(&self, at: usize) -> Option<&Records<'s>> {
        self.records.get(at)
    }

    fn push_head(&mut self, at: usize) -> Result<()> {
        if let Some(records) = self.records.get_mut(at)
            && records.advance()?
        {
            self.heads.push(Reverse((records.iteration(), at)));
        }
        Ok(())
    }
}
