//! Reversible rearrangements that let zstd see more: byte planes, differences, and the mapping of
//! doubles to integers of the same order. Each is exact for every bit pattern.

/// Maps the bits of a double to an integer that sorts as the double does (IEEE 754 totalOrder).
pub fn ordered(bits: u64) -> u64 {
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The inverse of [`ordered`].
pub fn unordered(word: u64) -> u64 {
    if word >> 63 == 1 { word & !(1 << 63) } else { !word }
}

/// Folds small negative numbers onto small positive ones.
pub fn zigzag(word: u64) -> u64 {
    (word << 1) ^ (word >> 63).wrapping_neg()
}

/// The inverse of [`zigzag`].
pub fn unzigzag(word: u64) -> u64 {
    (word >> 1) ^ (word & 1).wrapping_neg()
}

/// Replaces each word by its wrapping difference from the one before, `order` times.
pub fn delta(words: &mut [u64], order: u8) {
    for _ in 0..order {
        let mut before = 0;
        for word in words.iter_mut() {
            let now = *word;
            *word = now.wrapping_sub(before);
            before = now;
        }
    }
}

/// The inverse of [`delta`].
pub fn undelta(words: &mut [u64], order: u8) {
    for _ in 0..order {
        let mut sum = 0u64;
        for word in words.iter_mut() {
            sum = sum.wrapping_add(*word);
            *word = sum;
        }
    }
}

/// Appends the words byte plane by byte plane, the lowest first.
pub fn shuffle(words: &[u64], into: &mut Vec<u8>) {
    into.reserve(words.len() * 8);
    for plane in 0..8 {
        into.extend(words.iter().map(|word| (word >> (8 * plane)) as u8));
    }
}

/// The inverse of [`shuffle`]; bytes beyond a multiple of 8 are ignored.
pub fn unshuffle(bytes: &[u8]) -> Vec<u64> {
    let count = bytes.len() / 8;
    let mut words = vec![0u64; count];
    for (plane, bytes) in bytes.chunks_exact(count.max(1)).take(8).enumerate() {
        for (word, byte) in words.iter_mut().zip(bytes) {
            *word |= u64::from(*byte) << (8 * plane);
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

    /// Does every bit pattern come back, infinities, NaN payloads and -0 among them?
    #[test]
    fn every_bit_comes_back() {
        for word in HARD {
            assert_eq!(unordered(ordered(word)), word);
            assert_eq!(unzigzag(zigzag(word)), word);
        }
        for order in 0..=3 {
            let mut words = HARD.to_vec();
            delta(&mut words, order);
            undelta(&mut words, order);
            assert_eq!(words, HARD);
        }
        let mut bytes = Vec::new();
        shuffle(&HARD, &mut bytes);
        assert_eq!(unshuffle(&bytes), HARD);
        assert!(unshuffle(&[]).is_empty());
    }

    /// Do mapped doubles sort as doubles do?
    #[test]
    fn order_is_preserved() {
        let sorted = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 1e-300, 2.0, 3.0];
        for pair in sorted.windows(2) {
            assert!(ordered(pair[0].to_bits()) < ordered(pair[1].to_bits()));
        }
    }
}
