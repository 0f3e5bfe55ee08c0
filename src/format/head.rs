//! HEAD: the store's name and the highest commit number known durable, from its committer's own
//! hand. `magic 8 | version u16 | store 16 | commit u64 | quiet_since u64 | checksum u32`, little-endian.

use crate::digest::checksum;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CommitSeq, StoreId};

/// The first bytes of HEAD.
pub const MAGIC: [u8; 8] = *b"sealHEAD";
/// The version that this release writes.
pub const VERSION: u16 = 1;
/// Where the version stands.
pub const VERSION_AT: usize = 8;
/// Where the store's id stands.
pub const STORE_AT: usize = 10;
/// Where the commit number stands.
pub const COMMIT_AT: usize = 26;
/// Where the commit stands since which nothing but bookkeeping was committed.
pub const QUIET_AT: usize = 34;
/// Where the CRC-32C over everything before it stands.
pub const CHECKSUM_AT: usize = 42;
/// The length of HEAD.
pub const BYTES: usize = 46;

/// What HEAD says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The store that it stands in.
    pub store: StoreId,
    /// A commit that was durable when it was written.
    pub commit: CommitSeq,
    /// From this commit to `commit` nothing but bookkeeping was committed: a snapshot that covers
    /// it lacks nothing that a caller was told. Equal to `commit` while the store is open.
    pub quiet_since: CommitSeq,
}

impl Head {
    /// As bytes.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..VERSION_AT].copy_from_slice(&MAGIC);
        bytes[VERSION_AT..STORE_AT].copy_from_slice(&VERSION.to_le_bytes());
        bytes[STORE_AT..COMMIT_AT].copy_from_slice(&self.store.0);
        bytes[COMMIT_AT..QUIET_AT].copy_from_slice(&self.commit.0.to_le_bytes());
        bytes[QUIET_AT..CHECKSUM_AT].copy_from_slice(&self.quiet_since.0.to_le_bytes());
        let sum = checksum(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// From the whole bytes of HEAD; `place` names it in an error.
    ///
    /// # Errors
    /// `Damage` when they are not what a release of ours wrote, `NewerFormat` for a later one's.
    pub fn from_bytes(bytes: &[u8], place: &str) -> Result<Self> {
        let refuse = |cause: &str| Err(Error::damage("read", place, cause));
        if !bytes.starts_with(&MAGIC) {
            return refuse("it does not begin as HEAD does");
        }
        let Some((covered, sum)) = bytes.split_last_chunk::<{ BYTES - CHECKSUM_AT }>() else {
            return refuse("it is too short");
        };
        if u32::from_le_bytes(*sum) != checksum(covered) {
            return refuse("its checksum does not fit");
        }
        let Some(version) = covered.get(VERSION_AT..STORE_AT) else {
            return refuse("it is too short");
        };
        if version != VERSION.to_le_bytes() {
            let cause = "a newer release wrote it";
            return Err(Error::new(ErrorKind::NewerFormat, "read", place, cause));
        }
        let (mut store, mut commit, mut quiet) = ([0; 16], [0; 8], [0; 8]);
        if bytes.len() != BYTES {
            return refuse("its length is not that of HEAD");
        }
        store.copy_from_slice(&bytes[STORE_AT..COMMIT_AT]);
        commit.copy_from_slice(&bytes[COMMIT_AT..QUIET_AT]);
        quiet.copy_from_slice(&bytes[QUIET_AT..CHECKSUM_AT]);
        let number = |bytes| CommitSeq(u64::from_le_bytes(bytes));
        Ok(Self { store: StoreId(store), commit: number(commit), quiet_since: number(quiet) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does HEAD read back, and nothing near it?
    #[test]
    fn only_the_exact_bytes_are_a_witness() {
        let store = StoreId::from_parts(5, [9; 10]);
        let head = Head { store, commit: CommitSeq(77), quiet_since: CommitSeq(70) };
        let bytes = head.to_bytes();
        assert_eq!(Head::from_bytes(&bytes, "HEAD").unwrap(), head);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::from_bytes(&flipped, "HEAD").is_err());
        }
        for len in 0..bytes.len() {
            assert!(Head::from_bytes(&bytes[..len], "HEAD").is_err());
        }
    }
}
