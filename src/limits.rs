//! Every bound in one place, with its unit in its name.

use crate::error::{Error, Result};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Bounds of a store. All may differ from one opening to the next, but for `sealed_folders`, which
/// is fixed at birth.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes accepted and not yet written, over all streams.
    pub queue_bytes: u64,
    /// How long a record may wait in memory before it goes to the journal, in milliseconds.
    pub linger_millis: u64,
    /// A journal file is finished when it reaches this length.
    pub journal_file_bytes: u64,
    /// Past this sum of journal files, records of slow streams are copied forward.
    pub journal_budget_bytes: u64,
    /// Zeros written ahead of a journal's end.
    pub journal_prewrite_bytes: u64,
    /// The longest journal frame, header included.
    pub frame_bytes_max: u64,
    /// A payload above this is sealed first, and its frame names its digest.
    pub payload_inline_bytes_max: u64,
    /// Raw bytes of records after which a stream's tail is sealed into a chunk.
    pub chunk_bytes: u64,
    /// Objects up to this length live in the manifest.
    pub object_inline_bytes_max: u64,
    /// Length of a block in a sealed file, each with its own checksum.
    pub block_bytes: u64,
    /// A sealed file is closed when its content reaches this length.
    pub sealed_file_bytes: u64,
    /// A file with a larger share of dead bytes than this is compacted, in percent.
    pub compact_dead_percent: u8,
    /// Folders under `sealed/`: a power of two from 1 to 256, fixed at birth.
    pub sealed_folders: u16,
    /// Cache of the manifest.
    pub manifest_cache_bytes: u64,
    /// Up to this length of manifest its integrity is checked at each open.
    pub check_integrity_bytes_max: u64,
    /// Space kept for a full disk.
    pub ballast_bytes: u64,
    /// Free space below which the ballast is released.
    pub low_water_bytes: u64,
    /// HEAD is rewritten after so many commits.
    pub head_commits: u64,
    /// Replaced values kept for each name of the state.
    pub history_max: u64,
    /// A snapshot of the rows is written after so many publications, or once 32,768 rows changed; 0
    /// is never. One at close, and one when a recording ends, is written all the same.
    pub snapshot_publications: u64,
    /// The longest chain of snapshots, a base and what changed since; 64 times as long on a base
    /// above 4 MiB. 0 writes none at all.
    pub snapshot_chain_max: u64,
    /// Receipts kept.
    pub receipts_max: u64,
    /// Rows of ended owners kept.
    pub owners_max: u64,
    /// Unsealed bytes of a stage's intake above which appending seals them into parts.
    pub stage_unsealed_bytes: u64,
    /// Threads of the store may run (linger). Off, every step happens inside a call that waits:
    /// streams that fail or drop when the queue is full go on doing so until somebody does.
    pub background: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue_bytes: 16 * MIB,
            linger_millis: 100,
            journal_file_bytes: 64 * MIB,
            journal_budget_bytes: 256 * MIB,
            journal_prewrite_bytes: MIB,
            frame_bytes_max: 16 * MIB,
            payload_inline_bytes_max: 256 * KIB,
            chunk_bytes: MIB,
            object_inline_bytes_max: 4 * KIB,
            // Smaller blocks make short ranges cheap; larger ones gain little.
            block_bytes: 64 * KIB,
            sealed_file_bytes: 64 * MIB,
            compact_dead_percent: 50,
            sealed_folders: 256,
            manifest_cache_bytes: 64 * MIB,
            check_integrity_bytes_max: 64 * MIB,
            ballast_bytes: 4 * MIB,
            low_water_bytes: 16 * MIB,
            head_commits: 16,
            history_max: 8,
            snapshot_publications: 256,
            snapshot_chain_max: 32,
            receipts_max: 10_000,
            owners_max: 10_000,
            stage_unsealed_bytes: 32 * MIB,
            background: true,
        }
    }
}

impl Limits {
    /// Checks every bound.
    ///
    /// # Errors
    /// `Invalid`, naming the bound and what is acceptable.
    pub fn check(&self) -> Result<()> {
        let refuse = |name: &str, cause: &str| Err(Error::invalid("open", name, cause));
        for (name, value) in [
            ("queue_bytes", self.queue_bytes),
            ("journal_file_bytes", self.journal_file_bytes),
            ("journal_budget_bytes", self.journal_budget_bytes),
            ("chunk_bytes", self.chunk_bytes),
            ("block_bytes", self.block_bytes),
            ("sealed_file_bytes", self.sealed_file_bytes),
            ("manifest_cache_bytes", self.manifest_cache_bytes),
            ("head_commits", self.head_commits),
            ("owners_max", self.owners_max),
            ("stage_unsealed_bytes", self.stage_unsealed_bytes),
        ] {
            if value == 0 {
                return refuse(name, "zero is not a limit; give at least 1");
            }
        }
        if !self.sealed_folders.is_power_of_two() || self.sealed_folders > 256 {
            return refuse("sealed_folders", "give a power of two from 1 to 256");
        }
        if self.block_bytes > 64 * MIB {
            return refuse("block_bytes", "give at most 64 MiB");
        }
        if self.journal_file_bytes < 256 {
            return refuse("journal_file_bytes", "give at least 256 bytes: a header must fit");
        }
        if self.frame_bytes_max < KIB || self.frame_bytes_max > 64 * MIB {
            return refuse("frame_bytes_max", "give 1 KiB to 64 MiB");
        }
        if self.payload_inline_bytes_max.saturating_add(KIB) > self.frame_bytes_max {
            return refuse("payload_inline_bytes_max", "a frame must hold it with 1 KiB to spare");
        }
        if self.history_max > 1 << 16 {
            return refuse("history_max", "give at most 65,536");
        }
        if self.compact_dead_percent == 0 || self.compact_dead_percent > 100 {
            return refuse("compact_dead_percent", "give 1 to 100");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the defaults acceptable, and zero limits refused by name?
    #[test]
    fn zero_limits_are_refused_by_name() {
        Limits::default().check().unwrap();
        let zero = Limits { chunk_bytes: 0, ..Limits::default() };
        assert_eq!(zero.check().unwrap_err().place(), "chunk_bytes");
        let most = Limits { payload_inline_bytes_max: u64::MAX, ..Limits::default() };
        assert_eq!(most.check().unwrap_err().place(), "payload_inline_bytes_max");
        let odd = Limits { sealed_folders: 3, ..Limits::default() };
        assert_eq!(odd.check().unwrap_err().place(), "sealed_folders");
    }
}
