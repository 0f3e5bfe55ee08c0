//! What to plan, and within which bounds to convert.

use std::fmt;
use std::ops::ControlFlow;

use crate::staging::{Key, Ready};

/// What a plan takes.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions<'a> {
    /// At most so many groups.
    pub groups_max: usize,
    /// Of those that are detached, only those that this says are ready: as a rule it sees how often each
    /// failed. It is asked before anything is claimed.
    pub ready: Ready<'a>,
    /// Only groups of these keys; `None` for those of all.
    pub keys: Option<&'a [Key]>,
}

impl Default for PlanOptions<'_> {
    fn default() -> Self {
        Self { groups_max: 64, ready: Ready::All, keys: None }
    }
}

/// How far a conversion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConvertProgress {
    /// Groups that are decided, one way or the other.
    pub groups_done: u64,
    /// All of them.
    pub groups: u64,
    /// Rows given to converters so far.
    pub rows: u64,
}

/// Told how far it is, from any of its threads; `Break` cancels: what is not published then is not, and
/// is free again.
pub type OnProgress<'a> = &'a (dyn Fn(ConvertProgress) -> ControlFlow<()> + Sync);

/// Within which bounds to convert.
#[derive(Clone, Copy)]
pub struct ConvertOptions<'a> {
    /// At most so many outputs are written at once; at least 1. Where the store runs no threads of its
    /// own (`Limits::background`) there is one, the caller's.
    pub threads_max: usize,
    /// A group with more parts becomes several outputs, each of at most so many; at least 1.
    pub parts_per_output_max: usize,
    /// A longer output is an error of its group, in bytes.
    pub output_bytes_max: u64,
    /// Told before each batch.
    pub progress: Option<OnProgress<'a>>,
}

impl Default for ConvertOptions<'_> {
    fn default() -> Self {
        Self {
            threads_max: 2,
            parts_per_output_max: 512,
            output_bytes_max: 4 << 30,
            progress: None,
        }
    }
}

impl fmt::Debug for ConvertOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConvertOptions")
            .field("threads_max", &self.threads_max)
            .field("parts_per_output_max", &self.parts_per_output_max)
            .field("output_bytes_max", &self.output_bytes_max)
            .finish_non_exhaustive()
    }
}

/// Which outputs to merge, and within which bounds.
#[derive(Clone, Copy)]
pub struct MergeOptions<'a> {
    /// Outputs that are longer stay as they are, in bytes.
    pub input_bytes_max: u64,
    /// At most so many become one; at least 2.
    pub inputs_max: usize,
    /// Fewer than so many of one key stay as they are; at least 2.
    pub inputs_min: usize,
    /// A longer output is an error of its merge, in bytes; a merge begins with outputs that are no
    /// longer together.
    pub output_bytes_max: u64,
    /// At most so many merges at once; at least 1.
    pub threads_max: usize,
    /// Told before each merge. Its `groups` are merges.
    pub progress: Option<OnProgress<'a>>,
}

impl Default for MergeOptions<'_> {
    fn default() -> Self {
        Self {
            input_bytes_max: 64 << 20,
            inputs_max: 64,
            inputs_min: 2,
            output_bytes_max: 512 << 20,
            threads_max: 2,
            progress: None,
        }
    }
}

impl fmt::Debug for MergeOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeOptions")
            .field("input_bytes_max", &self.input_bytes_max)
            .field("inputs_max", &self.inputs_max)
            .field("inputs_min", &self.inputs_min)
            .field("output_bytes_max", &self.output_bytes_max)
            .field("threads_max", &self.threads_max)
            .finish_non_exhaustive()
    }
}
