//! Phases: how long each part of a retirement or a reclaim took, by the clock of the disk.

use std::time::Duration;

use super::core::Core;

/// How long each phase took, by a clock that never goes back; a clock decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phases {
    /// Taking away the rows of the things themselves.
    pub retire: Duration,
    /// What follows from it: edges, objects that lost their last one, indexes, the books of files.
    pub index: Duration,
    /// Transactions of the manifest, from their begin until they are durable, but for the above.
    pub manifest: Duration,
    /// Unlinking and rewriting files, with the syncs of their directories.
    pub unlink: Duration,
}

impl Phases {
    /// The sum.
    pub fn total(&self) -> Duration {
        self.retire + self.index + self.manifest + self.unlink
    }

    /// Adds what another part of the same work took.
    pub(crate) fn add(&mut self, other: &Self) {
        self.retire += other.retire;
        self.index += other.index;
        self.manifest += other.manifest;
        self.unlink += other.unlink;
    }
}

/// Tells how long it is since it was last asked.
#[derive(Debug)]
pub(crate) struct Stopwatch<'c> {
    core: &'c Core,
    at: u64,
}

impl<'c> Stopwatch<'c> {
    pub(crate) fn start(core: &'c Core) -> Self {
        Self { core, at: core.disk.monotonic_nanos() }
    }

    /// The time since the last lap.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = self.core.disk.monotonic_nanos();
        let lap = Duration::from_nanos(now.saturating_sub(self.at));
        self.at = now;
        lap
    }
}
