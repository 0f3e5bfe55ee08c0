//! The lines of a file or of standard input, with where each of them stands.
//!
//! Nobody can wait for standard input until a given time, so that a thread reads it and this waits for
//! the thread.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use sealstone::clock::monotonic_nanos;
use sealstone::vfs::{Access, Disk, File, RealDisk};
use sealstone::{Error, ErrorKind, Result};

/// Bytes read at a time, and how many such pieces the thread reads ahead.
const PIECE_BYTES: usize = 64 << 10;
const AHEAD: usize = 16;

/// What came next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A line: see [`Lines::line`].
    Line,
    /// None came before the time was up.
    Waited,
    /// There is no more.
    End,
}

/// Lines, one after the other.
#[derive(Debug)]
pub struct Lines {
    source: Source,
    buffer: Vec<u8>,
    /// Of the line that was given last, in the buffer.
    line: Range<usize>,
    /// Where the buffer begins in the input.
    buffer_at: u64,
    is_over: bool,
    line_bytes_max: usize,
}

#[derive(Debug)]
enum Source {
    File { file: Arc<dyn File>, at: u64 },
    Stdin(Receiver<io::Result<Vec<u8>>>),
}

impl Lines {
    /// Opens `path`; `-` is standard input.
    pub fn open(path: &Path, line_bytes_max: u64) -> Result<Self> {
        let source = if path == Path::new("-") {
            Source::Stdin(read_stdin().map_err(|e| failed("standard input", e))?)
        } else {
            let file = RealDisk::new().open(path, Access::Read);
            let is_special =
                |kind| matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory);
            if file.as_ref().is_err_and(|e| is_special(e.kind())) {
                let cause =
                    "it is no regular file; give - for a pipe, and lead it to standard input";
                return Err(Error::new(ErrorKind::Input, "append", path.display(), cause));
            }
            Source::File { file: file.map_err(|e| failed(path.display(), e))?, at: 0 }
        };
        let line_bytes_max = usize::try_from(line_bytes_max).unwrap_or(usize::MAX);
        let (buffer, line, buffer_at) = (Vec::new(), 0..0, 0);
        Ok(Self { source, buffer, line, buffer_at, is_over: false, line_bytes_max })
    }

    /// Whether more may come to it than is there.
    pub fn is_stdin(&self) -> bool {
        matches!(self.source, Source::Stdin(_))
    }

    /// The line that was given last, with its end.
    pub fn line(&self) -> &[u8] {
        self.buffer.get(self.line.clone()).unwrap_or_default()
    }

    /// Where the next line begins, in bytes from the beginning of the input.
    pub fn offset(&self) -> u64 {
        self.buffer_at + self.line.end as u64
    }

    /// Where the line that was given last begins.
    pub fn line_start(&self) -> u64 {
        self.buffer_at + self.line.start as u64
    }

    /// Gives the last line back: it is the next one again.
    pub fn give_back(&mut self) {
        self.line = self.line.start..self.line.start;
    }

    /// Passes over the bytes before `offset`.
    ///
    /// # Errors
    /// `Conflict` for an input that is shorter.
    pub fn skip_to(&mut self, offset: u64) -> Result<()> {
        let is_shorter = match &mut self.source {
            Source::File { file, at } => {
                *at = offset;
                self.buffer_at = offset;
                file.len().map_err(|e| failed("the input", e))? < offset
            }
            Source::Stdin(_) => {
                while !self.is_over && self.buffer_at + (self.buffer.len() as u64) < offset {
                    self.buffer_at += self.buffer.len() as u64;
                    self.buffer.clear();
                    self.fill(None)?;
                }
                let within = usize::try_from(offset - self.buffer_at).unwrap_or(usize::MAX);
                let within_buffer = within.min(self.buffer.len());
                self.line = within_buffer..within_buffer;
                within > self.buffer.len()
            }
        };
        if is_shorter {
            let cause = format!(
                "it ends before byte {offset}, where the producer stands: give the same input, from its \
                 beginning, or another --producer"
            );
            return Err(Error::new(ErrorKind::Conflict, "append", "the input", cause));
        }
        Ok(())
    }

    /// The next line. Without `until`, a time of the monotonic clock, it waits as long as it takes.
    pub fn next(&mut self, until: Option<u64>) -> Result<Next> {
        let mut searched = self.line.end;
        loop {
            let unseen = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = unseen.iter().position(|byte| *byte == b'\n') {
                self.line = self.line.end..searched + at + 1;
                return Ok(Next::Line);
            }
            searched = self.buffer.len();
            if self.is_over {
                self.line = self.line.end..searched;
                return Ok(if self.line.is_empty() { Next::End } else { Next::Line });
            }
            if searched - self.line.end > self.line_bytes_max {
                let cause = format!(
                    "a line is longer than {} bytes; --row-size-max allows more",
                    self.line_bytes_max
                );
                let place = format!("the input at byte {}", self.offset());
                return Err(Error::new(ErrorKind::Input, "append", place, cause));
            }
            // What was given goes, so that the buffer holds one line and a piece at most.
            self.buffer.drain(..self.line.end);
            self.buffer_at += self.line.end as u64;
            searched -= self.line.end;
            self.line = 0..0;
            if !self.fill(until)? {
                return Ok(Next::Waited);
            }
        }
    }

    /// Reads a piece; `false` if none came in time.
    fn fill(&mut self, until: Option<u64>) -> Result<bool> {
        match &mut self.source {
            Source::File { file, at } => {
                let mut piece = vec![0; PIECE_BYTES];
                let read = file.read_at(&mut piece, *at).map_err(|e| failed("the input", e))?;
                *at += read as u64;
                self.is_over = read == 0;
                self.buffer.extend_from_slice(piece.get(..read).unwrap_or_default());
            }
            Source::Stdin(pieces) => {
                let received = match until {
                    None => pieces.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(until) => {
                        let left = until.saturating_sub(monotonic_nanos());
                        pieces.recv_timeout(Duration::from_nanos(left))
                    }
                };
                match received {
                    Ok(piece) => {
                        let piece = piece.map_err(|e| failed("standard input", e))?;
                        self.buffer.extend_from_slice(&piece);
                    }
                    Err(RecvTimeoutError::Timeout) => return Ok(false),
                    Err(RecvTimeoutError::Disconnected) => self.is_over = true,
                }
            }
        }
        Ok(true)
    }
}

fn failed(place: impl std::fmt::Display, e: io::Error) -> Error {
    Error::io("append", place, e)
}

/// Pieces of standard input, until it ends.
fn read_stdin() -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (to, pieces) = sync_channel(AHEAD);
    let read = move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut piece = vec![0; PIECE_BYTES];
            let sent = match stdin.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    piece.truncate(read);
                    to.send(Ok(piece))
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    let _ = to.send(Err(e));
                    return;
                }
            };
            if sent.is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    Ok(pieces)
}
