//! Memory that starts where direct I/O wants it to.

use std::fmt;

/// What direct I/O asks of address, offset and length: a multiple of this suits every device.
pub(super) const ALIGNMENT_BYTES: usize = 4096;

/// A buffer of fixed capacity whose first byte lies on a 4 KiB boundary.
///
/// Fill it, write it whole at an aligned offset, clear it, go on: that keeps a large sequential
/// write direct.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    capacity: usize,
}

impl AlignedBuffer {
    /// What direct I/O asks of addresses, offsets and lengths, in bytes.
    pub const ALIGNMENT_BYTES: usize = ALIGNMENT_BYTES;

    /// An empty buffer that holds at least `bytes`, rounded up to whole alignment units.
    pub fn with_capacity(bytes: usize) -> Self {
        let capacity = bytes.max(1).next_multiple_of(ALIGNMENT_BYTES);
        let memory = vec![0; capacity + ALIGNMENT_BYTES];
        // Where the address cannot be learnt the buffer starts anywhere, and writes are buffered.
        let start = memory.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES);
        Self { memory, start, len: 0, capacity }
    }

    /// Takes in as much of `bytes` as there is room for, and says how much that was.
    pub fn fill(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        let at = self.start + self.len;
        self.memory[at..at + taken].copy_from_slice(&bytes[..taken]);
        self.len += taken;
        taken
    }

    /// Appends zeros up to the next alignment boundary, and says how many.
    pub fn pad(&mut self) -> usize {
        let padded = self.len.next_multiple_of(ALIGNMENT_BYTES);
        let added = padded - self.len;
        self.memory[self.start + self.len..self.start + padded].fill(0);
        self.len = padded;
        added
    }

    /// Forgets the content.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// What was filled in.
    pub fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Bytes filled in.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was filled in.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// Whether no byte fits any more.
    pub fn is_full(&self) -> bool {
        self.room() == 0
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} of {} bytes)", self.len, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the content start on a boundary, wherever the allocator puts the memory, also after a
    /// move?
    #[test]
    fn content_starts_on_a_boundary() {
        let buffers: Vec<_> = (0..64)
            .map(|n| {
                let mut buffer = AlignedBuffer::with_capacity(n * 1000);
                buffer.fill(&[7; 100]);
                buffer
            })
            .collect();
        for buffer in &buffers {
            assert_eq!(buffer.as_slice().as_ptr().align_offset(ALIGNMENT_BYTES), 0);
            assert_eq!(buffer.as_slice(), [7; 100]);
        }
    }

    /// Does it stop at its capacity, and does padding overwrite what an earlier round left?
    #[test]
    fn it_stops_at_its_capacity_and_pads_with_zeros() {
        let mut buffer = AlignedBuffer::with_capacity(ALIGNMENT_BYTES + 1);
        assert_eq!(buffer.fill(&vec![1; 3 * ALIGNMENT_BYTES]), 2 * ALIGNMENT_BYTES);
        assert!(buffer.is_full());
        buffer.clear();
        buffer.fill(b"abc");
        assert_eq!(buffer.pad(), ALIGNMENT_BYTES - 3);
        assert_eq!(&buffer.as_slice()[..3], b"abc");
        assert!(buffer.as_slice()[3..].iter().all(|&b| b == 0));
        assert_eq!(buffer.pad(), 0);
    }
}
