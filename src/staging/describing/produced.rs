//! Produced: whose batch it is, so that one that comes twice is taken once.

/// Which batch of which producer it is, and where the producer's source stood behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produced {
    /// The producer's name: at least 1 byte, at most
    /// [`PRODUCER_BYTES_MAX`](crate::staging::PRODUCER_BYTES_MAX).
    pub producer: String,
    /// The number of the batch: it rises from one batch of the producer to the next.
    pub sequence: u64,
    /// Where the source stands once the batch is taken, in whatever way the producer puts it; at most
    /// [`POSITION_BYTES_MAX`](crate::staging::POSITION_BYTES_MAX) bytes.
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
}
