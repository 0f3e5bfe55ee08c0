//! The envelope of a manifest value: `version u8 | body | checksum u32 LE`.
//!
//! The checksum covers where the value stands (table and key) as well as what it says, because
//! redb verifies no page on an ordinary read: a value that turns up under another key is damage.

use crate::digest::{checksum, checksum_more};
use crate::error::{Error, ErrorKind, Result};

/// Bytes in front of the body: the version of the row's type.
pub const VERSION_BYTES: usize = 1;
/// Bytes behind the body: CRC-32C over table, key, version and body, little-endian.
pub const CHECKSUM_BYTES: usize = 4;

/// Puts `body` into its envelope, for the row at `key` of table number `table`.
pub fn seal(table: u8, key: &[u8], version: u8, body: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(VERSION_BYTES + body.len() + CHECKSUM_BYTES);
    value.push(version);
    value.extend_from_slice(body);
    let sum = checksum_of(table, key, &value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// Takes the body out of its envelope; `place` names the row in an error.
///
/// # Errors
/// `Damage` when the checksum does not fit; `NewerFormat` when it does, and the version is not
/// `version`.
pub fn open<'v>(
    table: u8,
    key: &[u8],
    version: u8,
    value: &'v [u8],
    place: &dyn Fn() -> String,
) -> Result<&'v [u8]> {
    let Some((covered, sum)) = value.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::damage("read", place(), "the value is too short to be a row"));
    };
    let Some((found, body)) = covered.split_first() else {
        return Err(Error::damage("read", place(), "the value is too short to be a row"));
    };
    if u32::from_le_bytes(*sum) != checksum_of(table, key, covered) {
        return Err(Error::damage("read", place(), "the row's checksum does not fit"));
    }
    if *found != version {
        let cause = format!("the row has version {found}, this release knows {version}");
        return Err(Error::new(ErrorKind::NewerFormat, "read", place(), cause));
    }
    Ok(body)
}

/// Whether `value` is an envelope of the row at `key`, of whatever version: for whoever hands rows
/// on without reading them.
pub fn is_whole(table: u8, key: &[u8], value: &[u8]) -> bool {
    match value.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((covered, sum)) => {
            !covered.is_empty() && u32::from_le_bytes(*sum) == checksum_of(table, key, covered)
        }
        None => false,
    }
}

fn checksum_of(table: u8, key: &[u8], covered: &[u8]) -> u32 {
    checksum_more(checksum_more(checksum(&[table]), key), covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'v>(table: u8, key: &[u8], value: &'v [u8]) -> Result<&'v [u8]> {
        open(table, key, 1, value, &|| "x".to_owned())
    }

    /// Is a row that moved, changed by one bit or lost its end damage, and a newer one not?
    #[test]
    fn any_flip_or_move_is_damage_and_a_newer_version_is_not() {
        let value = seal(3, b"key", 1, b"body");
        assert_eq!(read(3, b"key", &value).unwrap(), b"body");
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(3, b"key", &flipped).unwrap_err().kind(), ErrorKind::Damage);
        }
        for len in 0..value.len() {
            assert_eq!(read(3, b"key", &value[..len]).unwrap_err().kind(), ErrorKind::Damage);
        }
        assert_eq!(read(3, b"kez", &value).unwrap_err().kind(), ErrorKind::Damage);
        assert_eq!(read(4, b"key", &value).unwrap_err().kind(), ErrorKind::Damage);
        let newer = seal(3, b"key", 2, b"other body");
        assert_eq!(read(3, b"key", &newer).unwrap_err().kind(), ErrorKind::NewerFormat);
    }
}
