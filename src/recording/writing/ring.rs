//! What a stream keeps in memory until it is triggered: the newest of its records.

use super::tally::Counted;
use std::collections::VecDeque;

/// The newest records of a stream, oldest first.
#[derive(Debug, Default)]
pub(in crate::recording) struct Ring {
    kept: VecDeque<Kept>,
    /// So many of the first were triggered: they do not fall out any more.
    promised: usize,
    /// Bytes of the others.
    bytes: u64,
}

/// An encoded record, and what counting needs to know of it.
#[derive(Debug)]
pub(in crate::recording) struct Kept {
    pub payload: Vec<u8>,
    pub counted: Counted,
}

impl Kept {
    fn len(&self) -> u64 {
        self.payload.len() as u64
    }
}

impl Ring {
    /// Iteration and time of the newest.
    pub fn last(&self) -> Option<(i64, Option<f64>)> {
        self.kept.back().map(|kept| (kept.counted.iteration, kept.counted.time))
    }

    /// How many records it keeps.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Takes a record in; returns how many fell out for it, itself where it is above the bound.
    pub fn push(&mut self, kept: Kept, records_max: u64, bytes_max: u64) -> u64 {
        if kept.len() > bytes_max {
            return 1;
        }
        let mut fallen = 0;
        while self.kept.len() > self.promised
            && ((self.kept.len() - self.promised) as u64 >= records_max
                || self.bytes + kept.len() > bytes_max)
        {
            if let Some(oldest) = self.kept.remove(self.promised) {
                self.bytes -= oldest.len();
                fallen += 1;
            }
        }
        self.bytes += kept.len();
        self.kept.push_back(kept);
        fallen
    }

    /// What is in it falls out no more; returns the iteration of the last of it.
    pub fn promise(&mut self) -> Option<i64> {
        (self.promised, self.bytes) = (self.kept.len(), 0);
        self.last().map(|(iteration, _)| iteration)
    }

    /// The promised records.
    pub fn promised(&self) -> impl Iterator<Item = &Kept> {
        self.kept.iter().take(self.promised)
    }

    /// The first `count` promised ones are in the journal.
    pub fn recorded(&mut self, count: usize) {
        let count = count.min(self.promised);
        self.kept.drain(..count);
        self.promised -= count;
    }

    /// Forgets all of it; returns how many records that were.
    pub fn clear(&mut self) -> u64 {
        let count = self.kept.len() as u64;
        *self = Self::default();
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(iteration: i64, len: usize) -> Kept {
        let counted = Counted { iteration, time: None, len: len as u64, cells_len: 0 };
        Kept { payload: vec![0; len], counted }
    }

    fn iterations(ring: &Ring) -> Vec<i64> {
        ring.kept.iter().map(|kept| kept.counted.iteration).collect()
    }

    /// Does it keep the newest within both bounds, and what was promised beyond them?
    #[test]
    fn it_keeps_the_newest_and_what_was_promised() {
        let mut ring = Ring::default();
        let fallen: u64 = (0..10).map(|n| ring.push(kept(n, 10), 4, 35)).sum();
        assert_eq!((fallen, iterations(&ring)), (7, vec![7, 8, 9]));
        assert_eq!(ring.push(kept(10, 36), 4, 35), 1, "above the bound by itself");
        assert_eq!(ring.push(kept(11, 35), 4, 35), 3);
        assert_eq!(ring.promise(), Some(11));
        assert_eq!(ring.push(kept(12, 1), 2, 35), 0);
        assert_eq!(ring.push(kept(13, 1), 2, 35), 0);
        assert_eq!(ring.push(kept(14, 1), 2, 35), 1);
        assert_eq!(iterations(&ring), [11, 13, 14]);
        assert_eq!(ring.promised().count(), 1);
        ring.recorded(9);
        assert_eq!((iterations(&ring), ring.last()), (vec![13, 14], Some((14, None))));
        assert_eq!((ring.clear(), ring.last()), (2, None));
    }
}
