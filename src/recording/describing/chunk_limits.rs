//! Where the chunks of a stream are to end.

/// Where a chunk ends. What any chunk may hold bounds it as well.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(in crate::recording) struct ChunkLimits {
    /// Bytes of records before encoding.
    pub bytes: Option<u64>,
    /// Records.
    pub records: Option<u64>,
    /// Physical time from its first record on.
    pub span: Option<f64>,
}

impl ChunkLimits {
    /// Whether there are others than that of bytes.
    pub fn is_more(&self) -> bool {
        self.records.is_some() || self.span.is_some()
    }
}
