//! What columns are made of beside numbers: flags, and values of varying length.

/// One flag per record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    words: Vec<u64>,
    len: usize,
}

impl Flags {
    /// `len` flags, all set.
    pub fn all_set(len: usize) -> Self {
        let mut words = vec![u64::MAX; len / 64];
        if !len.is_multiple_of(64) {
            words.push((1 << (len % 64)) - 1);
        }
        Self { words, len }
    }

    /// Adds one flag.
    pub fn push(&mut self, flag: bool) {
        let (word, bit) = (self.len / 64, self.len % 64);
        if word == self.words.len() {
            self.words.push(0);
        }
        self.words[word] |= u64::from(flag) << bit;
        self.len += 1;
    }

    /// The flag of record `at`; false beyond the end.
    pub fn get(&self, at: usize) -> bool {
        at < self.len && self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// How many flags there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many are set.
    pub fn count_set(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// Values of varying length, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blob {
    /// Where each value ends in `bytes`.
    pub(super) ends: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    /// The bytes of value `at`; none beyond the end.
    pub fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends.get(at - 1).copied().unwrap_or(0) };
        let end = self.ends.get(at).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or(&[])
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where each value ends in the bytes of all, and those bytes.
    pub(super) fn parts(&self) -> (&[usize], &[u8]) {
        (&self.ends, &self.bytes)
    }

    pub(super) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }
}
