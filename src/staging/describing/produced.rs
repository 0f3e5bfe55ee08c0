//! Produced: whose batch it is, so that one that comes twice is taken once.

use crate::error::{Error, ErrorKind, Result};
use crate::format::staged::{POSITION_BYTES_MAX, PRODUCER_BYTES_MAX};

/// Which batch of which producer it is, and where the producer's source stood behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produced {
    /// The producer's name: at least 1 byte, at most
    /// [`PRODUCER_BYTES_MAX`](crate::staging::PRODUCER_BYTES_MAX).
    pub producer: String,
    /// The number of the batch: it rises from one batch of the producer to the next, and is below
    /// `u64::MAX`, behind which there would be no other.
    pub sequence: u64,
    /// Where the source stands once the batch is taken, in whatever way the producer puts it; at most
    /// [`POSITION_BYTES_MAX`](crate::staging::POSITION_BYTES_MAX) bytes.
    /// A batch that comes again is known by its number, key, form and bytes, whatever position comes with
    /// it: the one that came first stays.
    pub position: Vec<u8>,
}

impl Produced {
    /// Batch number `sequence` of `producer`, without a position.
    pub fn new(producer: impl Into<String>, sequence: u64) -> Self {
        Self { producer: producer.into(), sequence, position: Vec::new() }
    }

    /// The same, with where the source stands behind it.
    #[must_use]
    pub fn at(self, position: impl Into<Vec<u8>>) -> Self {
        Self { position: position.into(), ..self }
    }

    /// Whether it can be taken.
    ///
    /// # Errors
    /// `Invalid` for a blank name and for the last number; `LimitExceeded` for what is too long.
    pub(in crate::staging) fn check(&self, place: &str) -> Result<()> {
        if self.producer.trim().is_empty() {
            return Err(Error::invalid("append", place, "its producer's name is blank"));
        }
        if self.sequence == u64::MAX {
            let cause = "no number of the producer could come behind this one; begin at 0 or 1";
            return Err(Error::invalid("append", place, cause));
        }
        for (what, len, max) in [
            ("a producer's name", self.producer.len(), PRODUCER_BYTES_MAX),
            ("a position", self.position.len(), POSITION_BYTES_MAX),
        ] {
            if len > max {
                let cause = format!("{what} of {len} bytes; it has at most {max}");
                return Err(Error::new(ErrorKind::LimitExceeded, "append", place, cause));
            }
        }
        Ok(())
    }
}
