//! What is known of each journal file of this opening: its length, and which records lie in it. By
//! this the engine learns which files nothing needs any more, and which hold slow streams.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::format::record::Place;
use crate::ids::{Generation, Sequence, StreamId};

use super::queue::SealedUpTo;

/// One journal file of this opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenJournal {
    /// Its number.
    pub n: u64,
    /// Where it stands.
    pub path: PathBuf,
    /// Where its last frame ends.
    pub end: u64,
    /// It gets no further frame.
    pub finished: bool,
    /// The lowest and the highest sequence of each stream and generation in it, both inclusive.
    pub streams: Vec<(StreamId, Generation, Sequence, Sequence)>,
}

impl OpenJournal {
    /// Whether every record in it lies below the end of what is sealed of its stream.
    pub fn is_spent(&self, sealed_upto: &dyn Fn(StreamId) -> Sequence) -> bool {
        self.finished && self.streams.iter().all(|&(s, _, _, high)| high < sealed_upto(s))
    }

    /// The lowest sequence of each stream and generation.
    pub fn first(&self) -> Vec<(StreamId, Generation, Sequence)> {
        self.streams.iter().map(|&(s, g, low, _)| (s, g, low)).collect()
    }
}

#[derive(Debug)]
struct Note {
    path: PathBuf,
    end: u64,
    finished: bool,
    streams: BTreeMap<(StreamId, Generation), (Sequence, Sequence)>,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    files: BTreeMap<u64, Note>,
}

impl Book {
    pub fn open(&mut self, n: u64, path: PathBuf, end: u64) {
        self.files.insert(n, Note { path, end, finished: false, streams: BTreeMap::new() });
    }

    pub fn wrote<'a>(&mut self, n: u64, end: u64, places: impl Iterator<Item = &'a Place>) {
        let Some(note) = self.files.get_mut(&n) else { return };
        note.end = end;
        for place in places {
            let key = (place.stream, place.generation);
            let (low, high) = note.streams.entry(key).or_insert((place.sequence, place.sequence));
            *low = place.sequence.min(*low);
            *high = place.sequence.max(*high);
        }
    }

    pub fn finish(&mut self, n: u64) {
        if let Some(note) = self.files.get_mut(&n) {
            note.finished = true;
        }
    }

    pub fn forget(&mut self, n: u64) {
        self.files.remove(&n);
    }

    pub fn bytes(&self) -> u64 {
        self.files.values().map(|note| note.end).sum()
    }

    pub fn file(&self, n: u64) -> Option<OpenJournal> {
        self.files.get(&n).map(|note| note.shown(n))
    }

    pub fn files(&self) -> Vec<OpenJournal> {
        self.files.iter().map(|(&n, note)| note.shown(n)).collect()
    }

    /// The finished files, oldest first, that must go to bring the sum down to `budget_bytes`, of
    /// those that are not spent anyhow.
    pub fn over_budget(&self, budget_bytes: u64, sealed_upto: SealedUpTo<'_>) -> Vec<OpenJournal> {
        let mut sum: u64 = self.files.values().map(|note| note.end).sum();
        let mut over = Vec::new();
        for file in self.files().into_iter().filter(|file| file.finished) {
            if sum <= budget_bytes {
                break;
            }
            sum -= file.end;
            if !file.is_spent(sealed_upto) {
                over.push(file);
            }
        }
        over
    }
}

impl Note {
    fn shown(&self, n: u64) -> OpenJournal {
        let streams = self.streams.iter().map(|(&(s, g), &(low, high))| (s, g, low, high));
        OpenJournal {
            n,
            path: self.path.clone(),
            end: self.end,
            finished: self.finished,
            streams: streams.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a file with one record of a slow stream ever called spent? Is the newest ever given up?
    #[test]
    fn a_slow_stream_keeps_its_file_until_copied() {
        let mut book = Book::default();
        let place =
            |s, q| Place { stream: StreamId(s), generation: Generation(1), sequence: Sequence(q) };
        for n in 0..3 {
            book.open(n, PathBuf::new(), 88);
            book.wrote(n, 100, [place(1, n), place(2, 7)].iter());
        }
        book.finish(0);
        book.finish(1);
        let sealed = |s| Sequence(if s == StreamId(1) { 1 } else { 8 });
        let spent: Vec<_> = book.files().iter().map(|f| f.is_spent(&sealed)).collect();
        assert_eq!(spent, [true, false, false]);
        let over = |budget| -> Vec<u64> {
            book.over_budget(budget, &sealed).iter().map(|f| f.n).collect()
        };
        assert_eq!(over(300), [0; 0]);
        assert_eq!(over(250), [0; 0]);
        assert_eq!(over(150), [1]);
        assert_eq!(over(0), [1]);
        book.forget(0);
        assert_eq!(book.files().len(), 2);
    }
}
