//! What stands before a record behind which others of its stream were dropped: how many.
//!
//! ```text
//! kind u8 = 3 | dropped u64, little-endian, above 0 | the record, of any other kind
//! ```

use std::ops::Range;

use crate::error::{Error, Result};

/// The first byte of a record that tells what was dropped before it.
pub const DROPPED_KIND: u8 = 3;

/// Adds to `bytes` the record that lies there in `record`, told of `dropped` others before it; returns
/// where that is.
pub fn behind_dropped(bytes: &mut Vec<u8>, record: Range<usize>, dropped: u64) -> Range<usize> {
    let start = bytes.len();
    bytes.push(DROPPED_KIND);
    bytes.extend_from_slice(&dropped.to_le_bytes());
    bytes.extend_from_within(record);
    start..bytes.len()
}

/// How many were dropped before the record, and the record alone.
///
/// # Errors
/// `Damage` when the count is cut, or none.
pub fn split_dropped(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let Some(rest) = bytes.strip_prefix(&[DROPPED_KIND]) else { return Ok((0, bytes)) };
    let wrong = |cause| Err(Error::damage("decode", "record", cause));
    match rest.split_first_chunk::<8>() {
        Some((count, record)) => match u64::from_le_bytes(*count) {
            0 => wrong("it tells of no dropped records"),
            _ if record.first() == Some(&DROPPED_KIND) => wrong("it tells twice what was dropped"),
            dropped => Ok((dropped, record)),
        },
        None => wrong("the count of dropped records is cut"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// Does the count come back with the record, and is each way to be wrong told?
    #[test]
    fn the_count_comes_back_and_hostile_ones_do_not() {
        let mut bytes = b"..\x01record".to_vec();
        let range = behind_dropped(&mut bytes, 2..9, 7);
        let told = bytes[range].to_vec();
        assert_eq!(split_dropped(&told).unwrap(), (7, &b"\x01record"[..]));
        assert_eq!(split_dropped(b"\x01record").unwrap(), (0, &b"\x01record"[..]));
        assert_eq!(split_dropped(b"").unwrap(), (0, &b""[..]));
        let (mut twice, mut none) = (told.clone(), told.clone());
        let len = twice.len();
        behind_dropped(&mut twice, 0..len, 1);
        none[1..9].fill(0);
        for wrong in [&told[..8], &twice[len..], &none] {
            assert_eq!(split_dropped(wrong).unwrap_err().kind(), ErrorKind::Damage);
        }
    }
}
