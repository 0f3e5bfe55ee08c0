//! A reader that gives out only so many bytes until it is told of a new row, so that a quote which
//! is never closed does not gather the rest of the input in memory.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes may still be read for the row at hand.
#[derive(Debug, Clone, Default)]
pub struct Allowance(Arc<AtomicU64>);

impl Allowance {
    /// Allows `bytes` from now on.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Whether nothing may be read any more.
    pub fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Reads from `inner` within an allowance.
#[derive(Debug)]
pub struct Gate<R> {
    inner: R,
    left: Allowance,
}

impl<R: Read> Gate<R> {
    /// Puts `inner` behind an allowance.
    pub fn new(inner: R, left: Allowance) -> Self {
        Self { inner, left }
    }
}

impl<R: Read> Read for Gate<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.left.0.load(Ordering::Relaxed);
        if left == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the row is too long"));
        }
        let most = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut into[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}
