//! Writers side by side, killed one by one.

use std::path::Path;

/// What a writer does.
pub fn write(_root: &Path, _out: &Path, _seed: u64) {}
