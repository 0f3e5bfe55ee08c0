//! The leader's hands: files are begun, filled, synced and finished here, by one thread at a time.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::ids::{Generation, Sequence, StreamId};
use crate::vfs::Step;

use super::append::JournalConfig;
use super::birth::{self, Registrar};
use super::book::Book;
use super::open_file::{Failure, OpenFile, PIECE_BYTES};
use super::queue::Queued;

/// A file that [`finish`](super::Journal::finish) closed and that the registrar was not told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its number.
    pub n: u64,
    /// It is durable up to here, and nothing follows.
    pub end: u64,
    /// The lowest sequence of each stream and generation in it.
    pub first: Vec<(StreamId, Generation, Sequence)>,
}

/// What became of a run of frames.
#[derive(Debug, Default)]
pub(super) struct Appended {
    /// So many of its first frames are in the file.
    pub written: usize,
    /// The position of the last of which a part may be in a file.
    pub begun: u64,
    /// What stopped it.
    pub failure: Option<Failure>,
}

pub(super) struct Writer {
    config: Arc<JournalConfig>,
    registrar: Arc<dyn Registrar>,
    book: Arc<Mutex<Book>>,
    next_n: u64,
    open: Option<OpenFile>,
    /// The last frame written, and the last known durable.
    written_position: u64,
    synced_position: u64,
    buffer: Vec<u8>,
}

impl Writer {
    pub fn new(
        config: Arc<JournalConfig>,
        registrar: Arc<dyn Registrar>,
        book: Arc<Mutex<Book>>,
    ) -> Self {
        let next_n = config.first_n;
        Self {
            config,
            registrar,
            book,
            next_n,
            open: None,
            written_position: 0,
            synced_position: 0,
            buffer: Vec::new(),
        }
    }

    /// All that is written up to this position is durable.
    pub fn synced_position(&self) -> u64 {
        self.synced_position
    }

    /// Writes the frames of `run`, as many as the file takes, beginning a file where there is none.
    pub fn append(&mut self, run: &[Queued]) -> Appended {
        let mut done = Appended::default();
        if !run.is_empty() {
            let result = self.make_room().and_then(|()| self.fill(run, &mut done));
            done.failure = result.err();
        }
        self.buffer.shrink_to(2 * PIECE_BYTES);
        done
    }

    fn make_room(&mut self) -> Result<(), Failure> {
        let file_bytes = self.config.limits.journal_file_bytes;
        if self.open.as_ref().is_some_and(|file| file.is_full(file_bytes)) {
            self.finish_open()?;
        }
        let file = match self.open.take() {
            Some(file) => file,
            None => {
                let n = self.next_n;
                // A name is used once, so that what a failed birth left behind cannot matter.
                self.next_n += 1;
                birth::create(&self.config, n)?
            }
        };
        let file = self.open.insert(file);
        if !file.registered {
            self.registrar.born(file.n, file.salt)?;
            file.registered = true;
            self.book.lock().open(file.n, file.path.clone(), file.end());
        }
        Ok(())
    }

    fn fill(&mut self, run: &[Queued], done: &mut Appended) -> Result<(), Failure> {
        let Some(file) = self.open.as_mut() else { return Ok(()) };
        let file_bytes = self.config.limits.journal_file_bytes;
        self.config.disk.mark(Step::AppendWrite);
        let mut left = run;
        while !left.is_empty() && !file.is_full(file_bytes) {
            let (frames, result) = file.write_piece(left, file_bytes, &mut self.buffer);
            let (piece, rest) = left.split_at(frames);
            done.begun = piece.last().map_or(done.begun, |frame| frame.position);
            result?;
            done.written += frames;
            self.written_position = done.begun;
            let places = piece.iter().flat_map(|frame| frame.places.iter());
            self.book.lock().wrote(file.n, file.end(), places);
            left = rest;
        }
        file.write_ahead(&self.config);
        Ok(())
    }

    /// Makes all that is written durable.
    pub fn sync(&mut self) -> Result<(), Failure> {
        if let Some(file) = self.open.as_mut() {
            file.sync(&self.config)?;
        }
        self.synced_position = self.written_position;
        Ok(())
    }

    /// Lets the open file say that all of it is durable.
    pub fn state_synced(&mut self) {
        if let Some(file) = self.open.as_mut() {
            file.state_synced(&mut self.buffer);
        }
    }

    /// Makes the open file durable for good and tells the registrar.
    pub fn finish_open(&mut self) -> Result<(), Failure> {
        if let Some(finished) = self.settle_open()? {
            self.registrar.finished(finished.n, finished.end, &finished.first)?;
            self.close_open(finished.n);
        }
        Ok(())
    }

    /// Makes the open file durable for good; whoever calls tells of its end.
    pub fn settle_open(&mut self) -> Result<Option<Finished>, Failure> {
        let Some(file) = self.open.as_mut().filter(|file| file.registered) else { return Ok(None) };
        file.settle(&self.config)?;
        self.synced_position = self.written_position;
        let (n, end) = (file.n, file.end());
        let first = self.book.lock().file(n).map(|file| file.first()).unwrap_or_default();
        Ok(Some(Finished { n, end, first }))
    }

    /// Lets go of the open file.
    pub fn close_open(&mut self, n: u64) {
        self.open = None;
        self.book.lock().finish(n);
    }
}
