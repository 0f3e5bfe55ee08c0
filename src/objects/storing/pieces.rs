//! Content on its way into the queue, piece by piece. Given up before its end, nothing of it stays.

use std::sync::Arc;

use super::options::{PutOptions, Stored};
use super::preparation::Preparation;
use super::prepare::place;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, ErrorKind, Result};

/// The most pieces of one content: their list is in memory, 24 bytes each.
pub const PIECES_MAX: usize = 1 << 22;

/// Content of which some pieces were put.
pub(super) struct InPieces<'p> {
    prep: &'p Preparation,
    options: &'p PutOptions,
    hasher: Hasher,
    len: u64,
    new_bytes: u64,
    count: usize,
    /// The first piece, until there is another one: content of one piece is no list.
    first: Option<(Digest, Arc<Vec<u8>>)>,
    list: Option<u64>,
}

impl<'p> InPieces<'p> {
    pub(super) fn new(prep: &'p Preparation, options: &'p PutOptions) -> Self {
        let hasher = Hasher::default();
        Self { prep, options, hasher, len: 0, new_bytes: 0, count: 0, first: None, list: None }
    }

    /// The next piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<()> {
        let digest = Digest::of(piece);
        self.hasher.update(piece);
        self.len += piece.len() as u64;
        match (self.list, self.first.take()) {
            (Some(list), _) => self.add(list, digest, piece),
            (None, None) => {
                self.first = Some((digest, Arc::new(piece.to_vec())));
                Ok(())
            }
            (None, Some((first, bytes))) => {
                let list = self.prep.queue.lock().begin_list();
                self.list = Some(list);
                self.add(list, first, &bytes)?;
                self.add(list, digest, piece)
            }
        }
    }

    fn add(&mut self, list: u64, digest: Digest, piece: &[u8]) -> Result<()> {
        self.count += 1;
        if self.count > PIECES_MAX {
            let cause = format!("more than {PIECES_MAX} pieces; cut it into longer ones");
            let place = place(self.prep.name());
            return Err(Error::new(ErrorKind::LimitExceeded, "put", place, cause));
        }
        let queue = &self.prep.queue;
        if queue.lock().add_known_piece(list, &digest, piece.len()) {
            return Ok(());
        }
        if !self.prep.is_known(&digest)? {
            self.new_bytes += piece.len() as u64;
        }
        let bytes = Arc::new(piece.to_vec());
        queue.lock().add_piece(list, digest, bytes, self.options.compress);
        self.prep.seal_if_due()
    }

    /// That was all.
    pub(super) fn end(mut self) -> Result<Stored> {
        let Some(list) = self.list else {
            let (digest, bytes) =
                self.first.take().unwrap_or_else(|| (Digest::of(&[]), Arc::default()));
            return self.prep.put_whole(digest, bytes, self.options);
        };
        let digest = self.hasher.finish();
        let is_new = !self.prep.is_known(&digest)?;
        self.prep.queue.lock().end_list(list, digest, self.len);
        self.list = None;
        let (len, pieces) = (self.len, self.count as u64);
        Ok(Stored { digest, len, pieces, new_bytes: self.new_bytes, is_new })
    }
}

impl Drop for InPieces<'_> {
    fn drop(&mut self) {
        if let Some(list) = self.list {
            self.prep.queue.lock().give_up_list(list);
        }
    }
}
