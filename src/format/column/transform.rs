//! Reversible rearrangements that let zstd see more: byte planes, differences, and the mapping of
//! floats to integers of the same order. Each is exact for every bit pattern of every width.

/// An unsigned integer that holds the bits of a number.
pub trait Word: Copy + Ord + Default + std::fmt::Debug {
    /// Its length in bytes.
    const BYTES: usize;
    /// The wrapping sum.
    fn plus(self, other: Self) -> Self;
    /// The wrapping difference.
    fn minus(self, other: Self) -> Self;
    /// Maps the bits of a float to an integer that sorts as the float does (IEEE 754 totalOrder).
    fn ordered(self) -> Self;
    /// The inverse of [`Word::ordered`].
    fn unordered(self) -> Self;
    /// Folds small negative numbers onto small positive ones.
    fn zigzag(self) -> Self;
    /// The inverse of [`Word::zigzag`].
    fn unzigzag(self) -> Self;
    /// Its byte number `plane`, the lowest first.
    fn byte(self, plane: usize) -> u8;
    /// Sets the bits of byte number `plane`, which are zero.
    fn set_byte(&mut self, plane: usize, byte: u8);
    /// As 64 bits, the upper ones zero.
    fn widen(self) -> u64;
    /// The word whose little-endian bytes come first; zero where there are too few.
    fn of_le(bytes: &[u8]) -> Self;
}

macro_rules! words {
    ($($ty:ty)*) => {$(
        impl Word for $ty {
            const BYTES: usize = size_of::<$ty>();
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn ordered(self) -> Self {
                const SIGN: $ty = 1 << (<$ty>::BITS - 1);
                if self & SIGN != 0 { !self } else { self | SIGN }
            }
            fn unordered(self) -> Self {
                const SIGN: $ty = 1 << (<$ty>::BITS - 1);
                if self & SIGN != 0 { self & !SIGN } else { !self }
            }
            fn zigzag(self) -> Self {
                (self << 1) ^ (self >> (<$ty>::BITS - 1)).wrapping_neg()
            }
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
            fn byte(self, plane: usize) -> u8 {
                (self >> (8 * plane)) as u8
            }
            fn set_byte(&mut self, plane: usize, byte: u8) {
                *self |= <$ty>::from(byte) << (8 * plane);
            }
            fn widen(self) -> u64 {
                u64::from(self)
            }
            fn of_le(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$ty>::from_le_bytes(*bytes))
            }
        }
    )*};
}
words! { u8 u16 u32 u64 }

/// Replaces each word by its wrapping difference from the one before, `order` times.
pub fn delta<W: Word>(words: &mut [W], order: u8) {
    for _ in 0..order {
        let mut before = W::default();
        for word in words.iter_mut() {
            let now = *word;
            *word = now.minus(before);
            before = now;
        }
    }
}

/// The inverse of [`delta`].
pub fn undelta<W: Word>(words: &mut [W], order: u8) {
    for _ in 0..order {
        let mut sum = W::default();
        for word in words.iter_mut() {
            sum = sum.plus(*word);
            *word = sum;
        }
    }
}

/// Appends the words one behind the other, little-endian.
pub fn plain<W: Word>(words: &[W], into: &mut Vec<u8>) {
    into.reserve(words.len() * W::BYTES);
    for word in words {
        let bytes = word.widen().to_le_bytes();
        into.extend_from_slice(&bytes[..W::BYTES]);
    }
}

/// The inverse of [`plain`]; bytes beyond a multiple of the width are ignored.
pub fn unplain<W: Word>(bytes: &[u8]) -> Vec<W> {
    bytes.chunks_exact(W::BYTES).map(W::of_le).collect()
}

/// Appends the words byte plane by byte plane, the lowest first.
pub fn shuffle<W: Word>(words: &[W], into: &mut Vec<u8>) {
    into.reserve(words.len() * W::BYTES);
    for plane in 0..W::BYTES {
        into.extend(words.iter().map(|word| word.byte(plane)));
    }
}

/// The inverse of [`shuffle`]; bytes beyond a multiple of the width are ignored.
pub fn unshuffle<W: Word>(bytes: &[u8]) -> Vec<W> {
    let count = bytes.len() / W::BYTES;
    let mut words = vec![W::default(); count];
    for (plane, bytes) in bytes.chunks_exact(count.max(1)).take(W::BYTES).enumerate() {
        for (word, byte) in words.iter_mut().zip(bytes) {
            word.set_byte(plane, *byte);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARD: [u64; 10] = [
        0,
        1,
        u64::MAX,
        1 << 63,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0001,
        0x7ff8_dead_beef_0001,
        0x3ff0_0000_0000_0000,
        42,
        u64::MAX / 3,
    ];

    fn there_and_back<W: Word>(hard: &[W]) {
        for word in hard {
            assert_eq!(word.ordered().unordered(), *word);
            assert_eq!(word.zigzag().unzigzag(), *word);
        }
        for order in 0..=3 {
            let mut words = hard.to_vec();
            delta(&mut words, order);
            undelta(&mut words, order);
            assert_eq!(words, hard);
        }
        let mut bytes = Vec::new();
        shuffle(hard, &mut bytes);
        assert_eq!(unshuffle::<W>(&bytes), hard);
        bytes.clear();
        plain(hard, &mut bytes);
        assert_eq!(unplain::<W>(&bytes), hard);
        assert!(unshuffle::<W>(&[]).is_empty());
    }

    /// Does every bit pattern come back, infinities, NaN payloads and -0 among them?
    #[test]
    fn every_bit_comes_back() {
        there_and_back(&HARD);
        there_and_back(&HARD.map(|word| (word >> 32) as u32));
        there_and_back(&(0..=u16::MAX).collect::<Vec<_>>());
        there_and_back(&(0..=u8::MAX).collect::<Vec<_>>());
    }

    /// Do mapped floats sort as floats do?
    #[test]
    fn order_is_preserved() {
        let sorted = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 1e-300, 2.0, 3.0];
        for pair in sorted.windows(2) {
            assert!(pair[0].to_bits().ordered() < pair[1].to_bits().ordered());
        }
        let sorted = [f32::NEG_INFINITY, -1.5, -f32::MIN_POSITIVE, -0.0, 0.0, 1e-40, 2.0, 3.0];
        for pair in sorted.windows(2) {
            assert!(pair[0].to_bits().ordered() < pair[1].to_bits().ordered());
        }
    }
}
