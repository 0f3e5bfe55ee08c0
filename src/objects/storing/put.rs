//! Putting what a reader or a file gives.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::cutter::Cutter;
use super::options::{PutOptions, Stored};
use super::pieces::InPieces;
use super::preparation::Preparation;
use super::source::{FromFile, Reader, Source};
use crate::digest::Digest;
use crate::error::Result;
use crate::manifest::Reading;

/// Bytes that are asked for first.
const FIRST_BYTES: usize = 64 << 10;

impl Preparation {
    /// Puts what `from` gives, to its end, whatever its length. Memory: a few MiB, and what waits.
    ///
    /// What is cut into pieces is stored and leased as soon as a file's worth of them waits.
    ///
    /// # Errors
    /// As [`Preparation::put`]; what the reader returns; `CallerPanicked` when it panics. Nothing of this
    /// content is put then, and all that was accepted before waits on. `LimitExceeded` above 4,194,304
    /// pieces: cut it into longer ones. `Invalid` for lengths of pieces that cannot be.
    ///
    /// # Durability
    /// *Accepted*: lost unless [`flush`](Self::flush) returns after it. Content above 1 MiB that is not to be
    /// cut is *Durable*.
    pub fn put_reader(&self, from: impl Read, options: &PutOptions) -> Result<Stored> {
        self.put_source(&mut Reader(from), options)
    }

    /// Puts the content of the file at `path`, which is opened for reading, and otherwise left alone: it is
    /// never moved or changed (OBJ4).
    ///
    /// # Errors
    /// As [`Preparation::put_reader`]; `NotFound`; `Conflict` when its length changes while it is read.
    ///
    /// # Durability
    /// As there.
    pub fn put_file(&self, path: impl AsRef<Path>, options: &PutOptions) -> Result<Stored> {
        self.check("put")?;
        let mut file = FromFile::open(&*self.store.disk(), path.as_ref())?;
        self.put_source(&mut file, options)
    }

    fn put_source(&self, from: &mut dyn Source, options: &PutOptions) -> Result<Stored> {
        self.check("put")?;
        let cutter = options.pieces.lengths()?.map(Cutter::new);
        let whole_upto = options.pieces.whole_upto() as usize;
        // Most content is short: the whole window is for what is not.
        let mut window = vec![0; FIRST_BYTES];
        let mut filled = from.fill(&mut window)?;
        if filled == FIRST_BYTES {
            window.resize(cutter.map_or(2 << 20, |cutter| cutter.window_bytes()), 0);
            filled += from.fill(window.get_mut(FIRST_BYTES..).unwrap_or_default())?;
        }
        let mut is_end = filled < window.len();
        let Some(cutter) = cutter.filter(|_| !is_end || filled > whole_upto) else {
            if is_end && filled <= whole_upto {
                let bytes = window.get(..filled).unwrap_or_default();
                return self.put_whole(Digest::of(bytes), Arc::new(bytes.to_vec()), options);
            }
            return self.put_alone(&mut window, filled, from, options);
        };
        let mut pieces = InPieces::new(self, options);
        loop {
            let mut at = 0;
            let left = |at: usize| window.get(at..filled).unwrap_or_default();
            while let Some(len) = cutter.piece(left(at), is_end) {
                pieces.push(left(at).get(..len).unwrap_or_default())?;
                at += len;
            }
            if is_end {
                return pieces.end();
            }
            window.copy_within(at..filled, 0);
            filled -= at;
            let free = window.get_mut(filled..).unwrap_or_default();
            let more = from.fill(free)?;
            is_end = more < free.len();
            filled += more;
        }
    }

    /// Puts bytes that are in memory.
    pub(super) fn put_slice(&self, bytes: &[u8], options: &PutOptions) -> Result<Digest> {
        let cutter = options.pieces.lengths()?.map(Cutter::new);
        if bytes.len() as u64 <= options.pieces.whole_upto() {
            let digest = Digest::of(bytes);
            if !self.queue.lock().has_whole(&digest) {
                let bytes = Arc::new(bytes.to_vec());
                self.queue.lock().add_whole(digest, bytes, options.compress);
            }
            self.seal_if_due()?;
            return Ok(digest);
        }
        let Some(cutter) = cutter else {
            return self.put_alone(&mut [], 0, &mut Reader(bytes), options).map(|put| put.digest);
        };
        let (mut pieces, mut left) = (InPieces::new(self, options), bytes);
        while let Some((piece, later)) =
            cutter.piece(left, true).and_then(|len| left.split_at_checked(len))
        {
            pieces.push(piece)?;
            left = later;
        }
        pieces.end().map(|put| put.digest)
    }

    /// Puts a content that becomes one object, in a file that it shares.
    pub(super) fn put_whole(
        &self,
        digest: Digest,
        bytes: Arc<Vec<u8>>,
        options: &PutOptions,
    ) -> Result<Stored> {
        let len = bytes.len() as u64;
        let is_new = !self.is_known(&digest)?;
        self.queue.lock().add_whole(digest, bytes, options.compress);
        self.seal_if_due()?;
        let new_bytes = if is_new { len } else { 0 };
        Ok(Stored { digest, len, pieces: 0, new_bytes, is_new })
    }

    /// Whether content of this digest waits or is stored, as far as can be seen now.
    pub(super) fn is_known(&self, digest: &Digest) -> Result<bool> {
        Ok(self.queue.lock().has(digest) || !self.store.snapshot()?.object_of(digest)?.is_empty())
    }
}
