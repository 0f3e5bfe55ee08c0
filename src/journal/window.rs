//! Reading a file forward through a bounded buffer, never past its end.

use std::io;
use std::sync::Arc;

use crate::vfs::File;

const WINDOW_BYTES: usize = 256 << 10;
/// What a look at whether there is something new reads.
const PROBE_BYTES: usize = 512;

#[derive(Debug)]
pub(super) struct Window {
    file: Arc<dyn File>,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
    /// What the next filling reads at least.
    step: usize,
}

impl Window {
    pub fn new(file: Arc<dyn File>) -> io::Result<Self> {
        let len = file.len()?;
        Ok(Self { file, len, start: 0, bytes: Vec::new(), step: WINDOW_BYTES })
    }

    /// The same for a reader that expects little: it begins with a small piece, and each next one is
    /// twice as long.
    pub fn probing(file: Arc<dyn File>) -> io::Result<Self> {
        Ok(Self { step: PROBE_BYTES, ..Self::new(file)? })
    }

    /// Length of the file when it was last asked.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Forgets what was read and asks for the length again. Clean cached pages are dropped, so that
    /// the next read is the medium's own word.
    pub fn renew(&mut self) -> io::Result<()> {
        self.bytes.clear();
        self.file.evict()?;
        self.len = self.file.len()?;
        Ok(())
    }

    /// `want` bytes at `offset`, or as many as there are.
    pub fn at(&mut self, offset: u64, want: usize) -> io::Result<&[u8]> {
        let inside = |start: u64, have: usize| {
            let skip = usize::try_from(offset.checked_sub(start)?).ok()?;
            (skip.checked_add(want)? <= have).then_some(skip)
        };
        let skip = match inside(self.start, self.bytes.len()) {
            Some(skip) => skip,
            None => {
                self.fill(offset, want)?;
                0
            }
        };
        let end = self.bytes.len().min(skip.saturating_add(want));
        Ok(&self.bytes[skip..end])
    }

    fn fill(&mut self, offset: u64, want: usize) -> io::Result<()> {
        // P9: no allocation beyond what the file itself holds.
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.bytes.clear();
        self.bytes.resize(want.max(self.step).min(left), 0);
        self.step = (self.step * 2).min(WINDOW_BYTES);
        self.start = offset;
        let mut have = 0;
        while have < self.bytes.len() {
            match self.file.read_at(&mut self.bytes[have..], offset + have as u64) {
                // It is shorter than it was: what is there is there.
                Ok(0) => break,
                Ok(n) => have += n.min(self.bytes.len() - have),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.bytes.clear();
                    return Err(e);
                }
            }
        }
        self.bytes.truncate(have);
        if self.bytes.capacity() > 2 * WINDOW_BYTES && want <= WINDOW_BYTES {
            self.bytes.shrink_to(WINDOW_BYTES);
        }
        Ok(())
    }
}
