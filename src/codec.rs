//! Structures to bytes and back, by bincode's frozen fixed-width little-endian format. Nothing may
//! be left over, and no length read from the bytes allocates more than 16 times them (or 512 bytes).

mod guard;

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::error::DecodeError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

pub use guard::{decode as decode_value, encode as encode_value};

/// The longest encoded structure: 64 MiB.
pub const ENCODED_BYTES_MAX: usize = 1 << 26;

type Bounded<const N: usize> = Configuration<LittleEndian, Fixint, Limit<N>>;

fn bounded<const N: usize>() -> Bounded<N> {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<N>()
}

/// Encodes `value`.
///
/// # Errors
/// `LimitExceeded` above [`ENCODED_BYTES_MAX`]; `Invalid` if the type cannot be encoded.
pub fn encode<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<Vec<u8>> {
    let bytes = bincode::serde::encode_to_vec(value, bounded::<ENCODED_BYTES_MAX>())
        .map_err(|e| Error::invalid("encode", what, "it cannot be encoded").with_source(e))?;
    if bytes.len() > ENCODED_BYTES_MAX {
        let kind = crate::error::ErrorKind::LimitExceeded;
        return Err(Error::new(kind, "encode", what, format!("{} bytes encoded", bytes.len())));
    }
    Ok(bytes)
}

/// Decodes the whole of `bytes`; `what` names it in the error.
///
/// # Errors
/// `Damage` when the bytes do not decode, or some are left over.
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    // A length read from the bytes allocates before it is read, so the limit follows the input.
    let decoded = match bytes.len().next_power_of_two().max(64) {
        0x40 => step::<T, { 8 * 0x40 }>(bytes),
        0x80 => step::<T, { 8 * 0x80 }>(bytes),
        0x100 => step::<T, { 8 * 0x100 }>(bytes),
        0x200 => step::<T, { 8 * 0x200 }>(bytes),
        0x400 => step::<T, { 8 * 0x400 }>(bytes),
        0x800 => step::<T, { 8 * 0x800 }>(bytes),
        0x1000 => step::<T, { 8 * 0x1000 }>(bytes),
        0x2000 => step::<T, { 8 * 0x2000 }>(bytes),
        0x4000 => step::<T, { 8 * 0x4000 }>(bytes),
        0x8000 => step::<T, { 8 * 0x8000 }>(bytes),
        0x1_0000 => step::<T, { 8 * 0x1_0000 }>(bytes),
        0x2_0000 => step::<T, { 8 * 0x2_0000 }>(bytes),
        0x4_0000 => step::<T, { 8 * 0x4_0000 }>(bytes),
        0x8_0000 => step::<T, { 8 * 0x8_0000 }>(bytes),
        0x10_0000 => step::<T, { 8 * 0x10_0000 }>(bytes),
        0x20_0000 => step::<T, { 8 * 0x20_0000 }>(bytes),
        0x40_0000 => step::<T, { 8 * 0x40_0000 }>(bytes),
        0x80_0000 => step::<T, { 8 * 0x80_0000 }>(bytes),
        0x100_0000 => step::<T, { 8 * 0x100_0000 }>(bytes),
        0x200_0000 => step::<T, { 8 * 0x200_0000 }>(bytes),
        ENCODED_BYTES_MAX => step::<T, { 8 * ENCODED_BYTES_MAX }>(bytes),
        more => {
            return Err(Error::damage("decode", what, format!("{more} bytes are too many")));
        }
    };
    let (value, used) = decoded
        .map_err(|e| Error::damage("decode", what, "the bytes do not decode").with_source(e))?;
    if used != bytes.len() {
        let left = bytes.len() - used;
        return Err(Error::damage("decode", what, format!("{left} bytes are left over")));
    }
    Ok(value)
}

fn step<T: DeserializeOwned, const N: usize>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    bincode::serde::decode_from_slice(bytes, bounded::<N>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the wire format the frozen one? (u32 LE, u64 length LE, bytes.)
    #[test]
    fn golden_vector() {
        let bytes = encode("pair", &(7u32, "ab")).unwrap();
        assert_eq!(bytes, [7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b']);
        assert_eq!(decode::<(u32, String)>("pair", &bytes).unwrap(), (7, "ab".to_owned()));
    }

    /// Does a length that lies allocate more than 16 times the input?
    #[test]
    fn g22_a_lying_length_allocates_little() {
        for input in [70usize, 1000, 5000, 70_000, 1 << 20] {
            let claims = |len: u64| {
                let mut bytes = len.to_le_bytes().to_vec();
                bytes.resize(input, 7);
                decode::<String>("lie", &bytes).unwrap_err().chain()
            };
            // Just within the limit it is read, and ends early; beyond it is refused unread.
            let far = claims(16 * input as u64 + 1);
            assert!(far.to_lowercase().contains("limit"), "{input}: {far}");
        }
    }

    /// Are left-over bytes, short bytes and lying lengths damage?
    #[test]
    fn only_the_exact_bytes_decode() {
        let mut bytes = encode("text", "hello").unwrap();
        for len in 0..bytes.len() {
            assert!(decode::<String>("text", &bytes[..len]).is_err());
        }
        bytes.push(0);
        assert!(decode::<String>("text", &bytes).is_err());
        let lie = [0xff; 64];
        assert!(decode::<Vec<u64>>("lie", &lie).is_err());
        assert!(decode::<String>("lie", &lie).is_err());
    }
}
