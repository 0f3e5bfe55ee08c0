//! What a label tells of files that consist of pieces, and of names: by digest, since the numbers of objects
//! are not known yet when a file is sealed.
//!
//! Both are rows of a label that refer to no extent. Their keys and values are these, and not those of the
//! rows in the manifest.

use crate::codec;
use crate::digest::Digest;
use crate::error::Result;

/// A run of the pieces of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldPieces {
    /// Names the whole.
    pub whole: Digest,
    /// The byte of it at which the first of these pieces begins.
    pub begins: u64,
    /// Digest and length of each.
    pub pieces: Vec<(Digest, u64)>,
}

impl ToldPieces {
    /// Its key: the digest of the whole, then where it begins, big-endian.
    pub fn key(&self) -> Vec<u8> {
        [&self.whole.0[..], &self.begins.to_be_bytes()].concat()
    }

    /// Its value: digests and lengths.
    ///
    /// # Errors
    /// `LimitExceeded` for more than a value may hold.
    pub fn value(&self) -> Result<Vec<u8>> {
        codec::encode("pieces", &self.pieces)
    }

    /// Reads what a label tells; `None` for what is none of these.
    pub fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let (whole, begins) = key.split_last_chunk::<8>()?;
        let whole = Digest(whole.try_into().ok()?);
        let pieces = codec::decode("pieces", value).ok()?;
        Some(Self { whole, begins: u64::from_be_bytes(*begins), pieces })
    }
}

/// The digest that a name was to stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldName(pub Digest);

impl ToldName {
    /// Its value; its key is that of the row of the name.
    ///
    /// # Errors
    /// None that is known.
    pub fn value(&self) -> Result<Vec<u8>> {
        codec::encode("name", &self.0)
    }

    /// Reads what a label tells; `None` for what is none of these.
    pub fn read(value: &[u8]) -> Option<Self> {
        codec::decode("name", value).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does what is told read back, and is anything else none?
    #[test]
    fn what_labels_tell_of_files_reads_back() {
        let pieces = vec![(Digest::of(b"a"), 7), (Digest::of(b"b"), u64::MAX)];
        let told = ToldPieces { whole: Digest::of(b"w"), begins: 300, pieces };
        let value = told.value().unwrap();
        assert_eq!(ToldPieces::read(&told.key(), &value), Some(told.clone()));
        assert_eq!(ToldPieces::read(&told.key()[1..], &value), None);
        for len in 0..value.len() {
            assert_eq!(ToldPieces::read(&told.key(), &value[..len]), None, "{len}");
        }
        let name = ToldName(Digest::of(b"n"));
        assert_eq!(ToldName::read(&name.value().unwrap()), Some(name));
        assert_eq!(ToldName::read(&[0; 31]), None);
    }
}
