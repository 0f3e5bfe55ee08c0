//! Verify: an object's digest, computed anew from all of its bytes.

use super::object::Object;
use super::reader::{READ_AHEAD_BYTES, Windows};
use crate::digest::Hasher;
use crate::engine::Run;
use crate::error::{Error, Result};

impl Object {
    /// Reads all of it and compares its digest.
    ///
    /// # Errors
    /// `Damage` where a checksum does not fit, and where they all do and the digest does not: it names
    /// the file and the offset at which the object begins, of a recipe those of the first piece that is
    /// another. As [`Object::bytes`] otherwise.
    pub fn verify(&self) -> Result<()> {
        let (mut windows, mut hasher, mut at) = (Windows::default(), Hasher::default(), 0);
        while at < self.len() {
            let window = windows.at(self, at)?;
            hasher.update(window);
            at = at.saturating_add(window.len() as u64);
        }
        if hasher.finish() == self.digest() {
            return Ok(());
        }
        let place = match self.wrong_piece()? {
            Some(piece) => piece,
            None => self.pin.place_of(self.id),
        };
        let cause = format!("its checksums fit, and its digest is not {}", self.digest());
        Err(Error::damage("verify", place, cause))
    }

    /// Where the first piece lies whose bytes are not those of its digest.
    fn wrong_piece(&self) -> Result<Option<String>> {
        let (mut run, mut at) = (Run::default(), 0);
        while at < self.len() {
            let Some(piece) = self.pin.piece_at(self.id, at, &mut run)? else { return Ok(None) };
            let end = at.saturating_add(piece.len).min(self.len());
            let (mut hasher, mut from) = (Hasher::default(), at);
            while from < end {
                let to = from.saturating_add(READ_AHEAD_BYTES).min(end);
                hasher.update(&self.pin.fetch_run(self.id, from..to, &mut run)?);
                from = to;
            }
            if hasher.finish() != piece.digest {
                return Ok(Some(piece.place));
            }
            at = at.saturating_add(piece.len.max(1));
        }
        Ok(None)
    }
}
